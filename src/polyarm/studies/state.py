"""The state of a study: a fold over its log. Knows no storage and no clock, so that a log always gives the same state.

Outcomes queue up by arm, in the order of the asks. The explorer is a session that takes one outcome at a time: it asks
for an arm and gets the outcome at the head of that arm's queue, once it is there. So what the explorer sees depends on
the outcomes alone, never on when, in what order or in what batches they came.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from polyarm._types import FloatArray
from polyarm.engine.plan import Plan
from polyarm.engine.session import Session
from polyarm.errors import InvalidInput
from polyarm.studies import events
from polyarm.studies.breaker import Breaker, find_excess
from polyarm.studies.events import GENESIS, Event
from polyarm.studies.storage import RUNNING

STOPPED = "stopped"
ARCHIVED = "archived"

# Where a trial's arm came from.
PLAN = "plan"
CONTROL = "control"

_FORMAT = 1


class Outcome(NamedTuple):
    """A complete outcome that waits for the explorer."""

    reward: float
    costs: tuple[float, ...]
    asked: bool


class Tallies:
    """How many trials were asked, told and so on."""

    def __init__(self) -> None:
        self.asked = 0
        self.told = 0  # complete, of those asked
        self.late = 0  # of those told: after they had been given up
        self.expired = 0  # given up, whether or not they came after all
        self.observed = 0
        self.used_observed = 0  # observed ones that the explorer has taken
        self.replaced = 0  # given up while the explorer still went on, so that it takes others in their place


class StudyState:
    """A session, the queues in front of it, and what else the log says."""

    def __init__(self, plan: Plan, seed: int, breaker: Breaker | None) -> None:
        problem = plan.problem
        self.session = Session(plan, seed)
        self.seq = 0
        self.digest = GENESIS
        self.lifecycle = RUNNING
        self.tallies = Tallies()
        self.breaker = breaker
        self.tripped: Mapping[str, float] | None = None
        self.acknowledged: tuple[str, ...] = ()
        #: Trials by arm that the explorer has not taken, in the order of the asks.
        self._queues: list[deque[int]] = [deque() for _ in problem.arms]
        self._ready: dict[int, Outcome] = {}
        #: Trials asked and neither told nor given up: their arm and the end of their lease.
        self.pending: dict[int, tuple[int, str | None]] = {}
        self._leases: list[tuple[str, int]] = []
        self._control_given = np.zeros(problem.n_arms)

    # -- following the log ------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Take in the next event of the log."""
        if event.seq != self.seq + 1:
            raise InvalidInput(f"the log goes on at {event.seq}, but {self.seq + 1} was expected: an event is missing")
        _RULES[event.kind](self, event.payload)
        self.seq, self.digest = event.seq, event.digest

    def _on_created(self, payload: Mapping[str, Any]) -> None:
        pass

    def _on_asked(self, payload: Mapping[str, Any]) -> None:
        trial, arm, lease = payload["trial"], payload["arm"], payload["lease_until"]
        self.tallies.asked += 1
        self.pending[trial] = (arm, lease)
        self._queues[arm].append(trial)
        if lease is not None:
            heapq.heappush(self._leases, (lease, trial))
        if payload["route"] == CONTROL:
            self._control_given[arm] += 1.0

    def _on_told(self, payload: Mapping[str, Any]) -> None:
        if not payload["complete"]:
            return
        trial, arm = payload["trial"], payload["arm"]
        self.tallies.told += 1
        if trial in self.pending:
            del self.pending[trial]
        else:  # given up before: its place in the queue is gone, the outcome counts all the same
            self.tallies.late += 1
            self._queues[arm].append(trial)
        self._enqueue(trial, payload, asked=True)

    def _on_observed(self, payload: Mapping[str, Any]) -> None:
        self.tallies.observed += 1
        self._queues[payload["arm"]].append(payload["trial"])
        self._enqueue(payload["trial"], payload, asked=False)

    def _on_expired(self, payload: Mapping[str, Any]) -> None:
        trial = payload["trial"]
        arm, _ = self.pending.pop(trial)
        self._queues[arm].remove(trial)
        self.tallies.expired += 1
        if not self.session.stopped:
            self.tallies.replaced += 1
        self._feed()

    def _on_tripped(self, payload: Mapping[str, Any]) -> None:
        self.tripped = payload["excess"]
        self._control_given[:] = 0.0

    def _on_stopped(self, payload: Mapping[str, Any]) -> None:
        self.lifecycle = STOPPED

    def _on_resumed(self, payload: Mapping[str, Any]) -> None:
        self.lifecycle = RUNNING
        if self.tripped is not None:
            self.acknowledged = tuple(sorted({*self.acknowledged, *self.tripped}))
            self.tripped = None

    def _on_archived(self, payload: Mapping[str, Any]) -> None:
        self.lifecycle = ARCHIVED

    def _enqueue(self, trial: int, payload: Mapping[str, Any], asked: bool) -> None:
        problem = self.session.problem
        costs = tuple(payload["costs"][problem.constraints[i].name] for i in problem.unknown)
        self._ready[trial] = Outcome(payload["reward"], costs, asked)
        self._feed()

    def _feed(self) -> None:
        """Let the explorer take what it asks for, as long as that is there."""
        session = self.session
        while not session.stopped:
            arm = session.ask()
            queue = self._queues[arm]
            if not queue or queue[0] not in self._ready:
                return
            outcome = self._ready.pop(queue.popleft())
            session.tell(arm, outcome.reward, outcome.costs)
            self.tallies.used_observed += not outcome.asked

    # -- what is to be done next ------------------------------------------------------------------------------------

    def supply(self) -> FloatArray:
        """How many trials of each arm (K,) are under way or wait for the explorer."""
        return np.array([len(queue) for queue in self._queues], dtype=np.float64)

    @property
    def n_waiting(self) -> int:
        """How many complete outcomes the explorer has not taken."""
        return len(self._ready)

    def choose(self) -> tuple[int, str]:
        """Return the arm of the next trial and where it comes from; the explorer must not have stopped.

        First what the explorer is sure to ask for (the arm it waits for before all); beyond that trials are handed out
        in the proportions of its allocation, counting those under way.
        """
        if self.tripped is not None and self.breaker is not None:
            return _most_wanted(self.breaker.mix(self.session.problem), self._control_given), CONTROL
        supply, committed = self.supply(), self.session.committed()
        arm = self.session.ask()
        if supply[arm] > 0.0:
            short = committed - supply
            arm = int(np.argmax(short))
            if short[arm] <= 0.0:
                arm = _most_wanted(self.session.round.allocation, -short)
        return arm, PLAN

    def overdue(self, now: str) -> list[int]:
        """Return the trials whose lease has run out; the oldest first."""
        found: list[int] = []
        while self._leases and self._leases[0][1] not in self.pending:
            heapq.heappop(self._leases)  # told or given up meanwhile
        if self._leases and self._leases[0][0] <= now:
            found = [trial for lease, trial in sorted(self._leases) if lease <= now and trial in self.pending]
        return found

    def alarm(self) -> dict[str, float]:
        """Return the constraints that the allocation is now proved to break, and by how much."""
        if self.breaker is None or self.tripped is not None or self.session.stopped:
            return {}
        watched = set(self.breaker.watched(self.session.problem)) - set(self.acknowledged)
        return find_excess(self.session, watched)

    def assumptions(self) -> list[str]:
        """What must be true, beside what every certificate assumes, for the proof to hold; in words."""
        found = []
        if self.tallies.replaced:
            found.append(
                f"whether an outcome came back in time does not depend on its value ({self.tallies.replaced} "
                "trials were given up and replaced)"
            )
        if self.tallies.used_observed:
            found.append(
                "the outcomes that nobody had asked for are independent given their arm, and none was reported or left "
                f"out for its value ({self.tallies.used_observed} of them were used)"
            )
        return found

    # -- snapshots --------------------------------------------------------------------------------------------------

    def pack(self) -> dict[str, Any]:
        """Return everything needed to go on from here, as plain JSON types."""
        self._feed()  # the explorer's next decision is taken, whether or not anybody has looked: equal logs, equal bits
        return {
            "format": _FORMAT,
            "seq": self.seq,
            "digest": self.digest,
            "lifecycle": self.lifecycle,
            "tallies": vars(self.tallies),
            "tripped": self.tripped,
            "acknowledged": list(self.acknowledged),
            "control_given": self._control_given.tolist(),
            "queues": [list(queue) for queue in self._queues],
            "ready": [[trial, *outcome] for trial, outcome in self._ready.items()],
            "pending": [[trial, *rest] for trial, rest in self.pending.items()],
            "session": self.session.state_dict(),
        }

    @classmethod
    def unpack(cls, saved: Mapping[str, Any], plan: Plan, seed: int, breaker: Breaker | None) -> Self:
        """Go on from what `pack` returned; raises `InvalidInput` when it is no such thing."""
        if not isinstance(saved, Mapping) or saved.get("format") != _FORMAT:
            raise InvalidInput(f"snapshot: expected format {_FORMAT}")
        state = cls(plan, seed, breaker)
        state.session = Session.from_state_dict(saved["session"])
        state.seq, state.digest, state.lifecycle = saved["seq"], saved["digest"], saved["lifecycle"]
        vars(state.tallies).update(saved["tallies"])
        state.tripped, state.acknowledged = saved["tripped"], tuple(saved["acknowledged"])
        state._control_given = np.array(saved["control_given"])
        state._queues = [deque(queue) for queue in saved["queues"]]
        state._ready = {trial: Outcome(reward, tuple(costs), asked) for trial, reward, costs, asked in saved["ready"]}
        state.pending = {trial: (arm, lease) for trial, arm, lease in saved["pending"]}
        state._leases = [(lease, trial) for trial, (_, lease) in state.pending.items() if lease is not None]
        heapq.heapify(state._leases)
        return state


_RULES: dict[str, Callable[[StudyState, Mapping[str, Any]], None]] = {
    events.CREATED: StudyState._on_created,
    events.ASKED: StudyState._on_asked,
    events.TOLD: StudyState._on_told,
    events.OBSERVED: StudyState._on_observed,
    events.EXPIRED: StudyState._on_expired,
    events.TRIPPED: StudyState._on_tripped,
    events.STOPPED: StudyState._on_stopped,
    events.RESUMED: StudyState._on_resumed,
    events.ARCHIVED: StudyState._on_archived,
}


def _most_wanted(mix: FloatArray, given: FloatArray) -> int:
    """The arm that is furthest behind its share of a mix."""
    return int(np.argmax(mix * (given.sum() + 1.0) - given))
