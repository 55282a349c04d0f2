"""The state of a study: a fold over its log. Knows no storage and no clock, so that a log always gives the same state.

Outcomes queue up by arm, in the order of the asks. The explorer is a session that takes one outcome at a time: it asks
for an arm and gets the outcome at the head of that arm's queue, once it is there. So what the explorer sees depends on
the outcomes alone, never on when, in what order or in what batches they came.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from polyarm._json import finite
from polyarm._types import FloatArray
from polyarm.engine.plan import Plan
from polyarm.engine.session import Session
from polyarm.errors import InvalidInput
from polyarm.studies import events
from polyarm.studies.breaker import Breaker, find_excess
from polyarm.studies.events import GENESIS, Event
from polyarm.studies.projection import RUNNING, lifecycle_after
from polyarm.studies.queues import Outcome, Queue, UnderWay, pack_queue, unpack_queue

# Where a trial's arm came from.
PLAN = "plan"
CONTROL = "control"

# Who gave a trial up.
LEASE = "lease"
HAND = "hand"

_FORMAT = 2
#: A reading is kept each time the number of outcomes used has grown by this factor: a million leave some 500.
_GROWTH = 1.03


class History:
    """Readings of a session, in the order of its steps; follows from the outcomes alone, but for the times `at`."""

    def __init__(self, first: int) -> None:
        self._next = first
        self.columns: dict[str, list[Any]] = {
            name: [] for name in ("steps", "at", "statistic", "threshold", "stop_low", "stop_high", "slack")
        }

    def read(self, session: Session, at: str) -> None:
        """Keep a reading if one is due: by the number of steps, or because the explorer has just stopped."""
        steps, taken = session.steps, self.columns["steps"]
        if steps < self._next and not (session.stopped and (not taken or taken[-1] < steps)):
            return
        self._next = max(steps + 1, math.ceil(steps * _GROWTH))
        policy = session.policy
        low, high = session.expected_stop() or (None, None)
        reading = {
            "steps": steps,
            "at": at,
            "statistic": finite(session.statistic),
            "threshold": finite(session.threshold),
            "stop_low": low,
            "stop_high": high,
            "slack": None if policy is None else list(session.estimated_slack(policy).values()),
        }
        for name, value in reading.items():
            self.columns[name].append(value)

    def pack(self) -> dict[str, Any]:
        """Return everything as plain JSON types."""
        return {"next": self._next, **self.columns}

    @classmethod
    def unpack(cls, saved: Mapping[str, Any]) -> Self:
        """Return what `pack` packed."""
        history = cls(saved["next"])
        history.columns = {name: list(saved[name]) for name in history.columns}
        return history


class Tallies:
    """Counts of trials."""

    def __init__(self) -> None:
        self.asked = 0
        self.told = 0  # complete, of those asked
        self.late = 0  # of those told: after they had been given up
        self.expired = 0  # given up, whether or not they came after all
        self.observed = 0
        self.used_observed = 0  # observed ones that the explorer has taken
        self.replaced = 0  # given up while the explorer still went on, so that it takes others in their place
        self.replaced_by_hand = 0  # of those: not because a lease ran out
        self.replaced_late = 0  # of those: told after all, while the explorer still went on


class StudyState:
    """A session, the queues in front of it, and what else the log says."""

    def __init__(self, plan: Plan, seed: int, breaker: Breaker | None) -> None:
        problem = plan.problem
        self.session = Session(plan, seed)
        self.seq = 0
        self.digest = GENESIS
        self.lifecycle = RUNNING
        self.tallies = Tallies()
        self.history = History(first=problem.n_arms)
        self._now = ""
        self.breaker = breaker
        self.tripped: Mapping[str, float] | None = None
        self.acknowledged: tuple[str, ...] = ()
        self._over = False  # the explorer has stopped, and takes nothing more
        self._queues: list[Queue] = [OrderedDict() for _ in problem.arms]
        self.pending = UnderWay()
        self._control_given = np.zeros(problem.n_arms)

    # -- following the log ------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Take in the next event of the log."""
        if event.seq != self.seq + 1:
            raise InvalidInput(f"event {self.seq + 1} is missing: the log continues at {event.seq}")
        rule = _RULES.get(event.kind)
        if rule is None:
            raise InvalidInput(f"event {event.seq}: unknown kind {event.kind!r}: damaged, or of a newer polyarm")
        self._now = event.at
        try:
            rule(self, event.payload)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"event {event.seq} ({event.kind}) does not fit the log before it: {error!r}") from error
        if event.kind in _FEEDING:
            self._feed()
        self.seq, self.digest = event.seq, event.digest
        self.lifecycle = lifecycle_after(event.kind, self.lifecycle)

    def _on_other(self, payload: Mapping[str, Any]) -> None:
        """Nothing that the explorer depends on."""

    def _on_asked(self, payload: Mapping[str, Any]) -> None:
        trial, arm = payload["trial"], payload["arm"]
        self._queues[arm][trial] = None
        self.pending.add(trial, arm, payload["lease_until"])
        self.tallies.asked += 1
        if payload["route"] == CONTROL:
            self._control_given[arm] += 1.0

    def _on_told(self, payload: Mapping[str, Any]) -> None:
        if not payload["complete"]:
            return
        self.tallies.told += 1
        if payload["trial"] in self.pending:
            self.pending.remove(payload["trial"])
        else:  # given up before: its place in the queue is gone, the outcome counts all the same
            self.tallies.late += 1
            self.tallies.replaced_late += not self._over
        self._take_in(payload, asked=True)

    def _on_observed(self, payload: Mapping[str, Any]) -> None:
        self.tallies.observed += 1
        self._take_in(payload, asked=False)

    def _on_expired(self, payload: Mapping[str, Any]) -> None:
        arm = self.pending.remove(payload["trial"])
        self.tallies.expired += 1
        if not self._over:
            self.tallies.replaced += 1
            self.tallies.replaced_by_hand += payload["by"] == HAND
            del self._queues[arm][payload["trial"]]

    def _on_tripped(self, payload: Mapping[str, Any]) -> None:
        self.tripped = payload["excess"]
        self._control_given[:] = 0.0

    def _on_resumed(self, payload: Mapping[str, Any]) -> None:
        if payload["acknowledged"]:
            self.acknowledged = tuple(sorted({*self.acknowledged, *payload["acknowledged"]}))
            self.tripped = None

    def _take_in(self, payload: Mapping[str, Any], asked: bool) -> None:
        """Queue a complete outcome: in the place of its ask, or at the end of its arm's queue."""
        if self._over:
            return  # counted, but never used
        problem = self.session.problem
        costs = tuple(payload["costs"][problem.constraints[i].name] for i in problem.unknown)
        self._queues[payload["arm"]][payload["trial"]] = Outcome(payload["reward"], costs, asked)

    def _feed(self) -> None:
        """Give the explorer the outcomes that it asks for, as long as they are there."""
        session = self.session
        while not session.stopped:
            arm = session.ask()
            queue = self._queues[arm]
            head = next(iter(queue), None)
            outcome = None if head is None else queue[head]
            if outcome is None:
                return
            queue.popitem(last=False)
            session.tell(arm, outcome.reward, outcome.costs)
            self.tallies.used_observed += not outcome.asked
            self.history.read(session, self._now)
        self._over = True
        for queue in self._queues:
            queue.clear()

    # -- what to do next ------------------------------------------------------------------------------------

    def supply(self) -> FloatArray:
        """How many trials of each arm (K,) are under way or wait for the explorer."""
        return np.array([len(queue) for queue in self._queues], dtype=np.float64)

    @property
    def n_waiting(self) -> int:
        """How many complete outcomes the explorer has not taken."""
        return self.tallies.told + self.tallies.observed - self.session.steps

    def choose(self) -> tuple[int, str]:
        """Return the arm of the next trial and where it comes from; the explorer must not have stopped.

        Arms that the explorer is sure to ask for come first, the one it waits for before all. Further trials follow its
        allocation, counting those under way.
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
        return self.pending.overdue(now)

    def alarm(self) -> dict[str, float]:
        """Return the constraints that the allocation is now proved to break, each with its excess."""
        if self.breaker is None or self.tripped is not None or self.session.stopped:
            return {}
        watched = set(self.breaker.watched(self.session.problem)) - set(self.acknowledged)
        return find_excess(self.session, watched)

    def assumptions(self) -> list[str]:
        """Return, in words, what the proof assumes beyond the assumptions of every certificate."""
        found, tallies = [], self.tallies
        if tallies.replaced:
            found.append(
                "whether and when an outcome was told, and whether its trial was given up, does not depend on its "
                f"value ({tallies.replaced} given up, {tallies.replaced_late} of them told late, "
                f"{tallies.replaced_by_hand} by hand)"
            )
        if tallies.used_observed:
            found.append(
                "the outcomes that nobody had asked for are independent given their arm, and none was reported or left "
                f"out for its value ({tallies.used_observed} of them were used)"
            )
        return found

    # -- snapshots --------------------------------------------------------------------------------------------------

    def write(self) -> str:
        """Return a snapshot as text; states of the same log give the same text."""
        return json.dumps(self.pack(), separators=(",", ":"))

    def pack(self) -> dict[str, Any]:
        """Return a snapshot as plain JSON types."""
        self._feed()  # makes the explorer's next decision, so that equal logs give equal snapshots
        return {
            "format": _FORMAT,
            "seq": self.seq,
            "digest": self.digest,
            "lifecycle": self.lifecycle,
            "tallies": vars(self.tallies),
            "history": self.history.pack(),
            "tripped": self.tripped,
            "acknowledged": list(self.acknowledged),
            "control_given": self._control_given.tolist(),
            "pending": self.pending.pack(),
            "queues": [pack_queue(queue) for queue in self._queues],
            "session": self.session.state_dict(),
        }

    @classmethod
    def unpack(cls, saved: Mapping[str, Any], plan: Plan, seed: int, breaker: Breaker | None) -> Self:
        """Return the state of a snapshot; raises `InvalidInput` for an unknown format."""
        if not isinstance(saved, Mapping) or saved.get("format") != _FORMAT:
            raise InvalidInput(f"snapshot: expected format {_FORMAT}")
        state = cls(plan, seed, breaker)
        state.session = Session.from_state_dict(saved["session"])
        state.seq, state.digest, state.lifecycle = saved["seq"], saved["digest"], saved["lifecycle"]
        vars(state.tallies).update(saved["tallies"])
        state.history = History.unpack(saved["history"])
        state.tripped, state.acknowledged = saved["tripped"], tuple(saved["acknowledged"])
        state._control_given = np.array(saved["control_given"])
        state.pending = UnderWay.unpack(saved["pending"])
        state._queues = [unpack_queue(queue, state.pending) for queue in saved["queues"]]
        state._feed()
        return state


_RULES: dict[str, Callable[[StudyState, Mapping[str, Any]], None]] = {
    events.CREATED: StudyState._on_other,
    events.ASKED: StudyState._on_asked,
    events.TOLD: StudyState._on_told,
    events.OBSERVED: StudyState._on_observed,
    events.EXPIRED: StudyState._on_expired,
    events.TRIPPED: StudyState._on_tripped,
    events.STOPPED: StudyState._on_other,
    events.RESUMED: StudyState._on_resumed,
    events.ARCHIVED: StudyState._on_other,
}


#: Kinds after which the explorer may have something to take.
_FEEDING = {events.TOLD, events.OBSERVED, events.EXPIRED}


def _most_wanted(mix: FloatArray, given: FloatArray) -> int:
    """The arm that is furthest behind its share of a mix."""
    return int(np.argmax(mix * (given.sum() + 1.0) - given))
