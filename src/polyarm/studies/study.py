"""A durable experiment: ask for trials, tell their outcomes, from as many processes as you like."""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from polyarm.engine.certificate import Certificate, make_certificate
from polyarm.engine.outcomes import check_costs, check_outcome
from polyarm.engine.session import Recommendation, Session
from polyarm.environments.replay import read_outcomes
from polyarm.errors import ExplorationOver, InvalidInput, StudyHalted
from polyarm.problem import Problem
from polyarm.studies import events
from polyarm.studies.events import Event
from polyarm.studies.state import ARCHIVED, STOPPED, StudyState
from polyarm.studies.statement import Statement
from polyarm.studies.status import StudyStatus, describe, describe_alarm, describe_end
from polyarm.studies.storage import RUNNING, Storage, StudyRow, TrialRow, Writer
from polyarm.studies.trial import (
    EXPIRED,
    OBSERVED,
    PENDING,
    Report,
    Told,
    Trial,
    check_report,
    merge,
    read_time,
    write_time,
)

Costs = Sequence[float] | Mapping[str, float]
Clock = Callable[[], datetime]

#: Events between snapshots: what opening a study may have to replay.
SNAPSHOT_EVERY = 2_000
#: Nobody hands out more at once.
_LARGEST_BATCH = 1_000_000

_log = logging.getLogger("polyarm")


def utc_now() -> datetime:
    """Return the time, for leases and the log."""
    return datetime.now(UTC)


class Study:
    """One experiment in a storage; get one from `create_study` or `load_study`.

    Every method that changes anything is one transaction: when it returns, what it did is on disk; when it raises,
    nothing was done. Objects of many processes and threads may work on one study at once.
    """

    def __init__(self, storage: Storage, row: StudyRow, clock: Clock = utc_now) -> None:
        self._storage = storage
        self._id = row.id
        self._clock = clock
        self._guard = threading.RLock()
        self._state: StudyState | None = None
        self._snapshot_seq = 0
        self.name = row.name
        self.created_at = read_time(row.created_at)
        self.statement = Statement(**json.loads(row.statement))

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self._storage.address}>"

    @property
    def problem(self) -> Problem:
        """The problem being explored."""
        return self.statement.problem

    @property
    def storage(self) -> str:
        """The address of the storage, without a password."""
        return self._storage.address

    # -- asking and telling -----------------------------------------------------------------------------------------

    def ask(self, n: int = 1) -> list[Trial]:
        """Hand out `n` trials: pull each one's arm and tell what it gave, in any order, whenever it is known.

        Trials under way count as pulls to come. Asking for many more than the explorer is sure to want is allowed; the
        further a batch reaches ahead, the more of it may turn out not to be needed.
        """
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _LARGEST_BATCH:
            raise InvalidInput(f"n: expected a whole number, 1 to {_LARGEST_BATCH}, got {n!r}")
        self._give_up_overdue()
        with self._changing() as (writer, state):
            self._require_lifecycle(writer, RUNNING)
            if state.session.stopped:
                raise ExplorationOver(f"study {self.name!r}: {describe_end(state)}")
            self._trip(writer, state)
            lease = None
            if self.statement.lease is not None:
                lease = read_time(writer.at) + timedelta(seconds=self.statement.lease)
            until = None if lease is None else write_time(lease)
            given = []
            for _ in range(n):
                arm, route = state.choose()
                trial = writer.add_trial(arm, PENDING, asked_at=writer.at)
                asked = {"trial": trial, "arm": arm, "lease_until": until, "route": route}
                state.apply(writer.append(events.ASKED, asked))
                given.append(Trial(trial, self.problem.arms[arm], arm, lease, route))
        return given

    def tell(self, trial: Trial | int, reward: float | None = None, costs: Costs | None = None) -> Told:
        """Record the outcome of a trial, whole or in parts: the reward now, say, and a cost when it is known.

        Telling the same again changes nothing and says so; telling something else raises `InvalidInput` and changes
        nothing. A trial whose lease ran out may still be told.
        """
        return self.tell_many([(trial, reward, costs)])[0]

    def tell_many(self, tells: Iterable[tuple[Trial | int, float | None, Costs | None]]) -> list[Told]:
        """Record many outcomes, `(trial, reward, costs)` each, at once: all of them, or none when one is wrong."""
        reports = [check_report(self.problem, *tell) for tell in tells]
        with self._writing() as writer:
            self._require_lifecycle(writer, RUNNING, STOPPED)
            rows = writer.trials(sorted({report.trial for report in reports}))
            return [self._take_in(writer, rows, report) for report in reports]

    def _take_in(self, writer: Writer, rows: dict[int, Any], report: Report) -> Told:
        if report.trial not in rows:
            asked = f"1 to {writer.last_trial}" if writer.last_trial else "none yet"
            raise InvalidInput(f"trial {report.trial} was never asked for in study {self.name!r}; its trials: {asked}")
        row, told = merge(rows[report.trial], report, self.problem, writer.at)
        if told.status != "duplicate":
            rows[report.trial] = row
            writer.change_trial(row)
            writer.append(
                events.TOLD,
                {
                    "trial": row.id,
                    "arm": row.arm,
                    "reward": row.reward,
                    "costs": row.costs,
                    "complete": not told.missing,
                },
            )
        return told

    def observe(self, arm: int | str, reward: float, costs: Costs = ()) -> int:
        """Record an outcome that nobody asked for; returns the number of its trial. The certificate will say so."""
        return self.observe_many([(arm, reward, costs)])[0]

    def observe_many(self, rows: Iterable[tuple[int | str, float, Costs]]) -> list[int]:
        """Record outcomes that nobody asked for, `(arm, reward, costs)` each: all, or none when one is wrong."""
        checked = [
            (self.problem.arm_index(arm), check_outcome("reward", reward), check_costs(self.problem, costs))
            for arm, reward, costs in rows
        ]
        numbers = []
        with self._writing() as writer:
            self._require_lifecycle(writer, RUNNING, STOPPED)
            for arm, reward, by_name in checked:
                trial = writer.add_trial(arm, OBSERVED, reward=reward, costs=by_name, told_at=writer.at)
                writer.append(events.OBSERVED, {"trial": trial, "arm": arm, "reward": reward, "costs": by_name})
                numbers.append(trial)
        return numbers

    def observe_file(self, path: str | Path) -> list[int]:
        """Record the rows of a CSV or Parquet file (columns: arm, reward, the unknown constraints) as observed."""
        return self.observe_many(read_outcomes(path, self.problem))

    def expire(self, *trials: Trial | int) -> None:
        """Give trials up by hand, as if their lease had run out: their arms will be asked again if need be."""
        numbers = [trial.id if isinstance(trial, Trial) else trial for trial in trials]
        with self._changing() as (writer, state):
            self._require_lifecycle(writer, RUNNING, STOPPED)
            for number in numbers:
                if number not in state.pending:
                    raise InvalidInput(
                        f"trial {number} is not under way: it is told or given up, or was never asked for"
                    )
            self._expire(writer, state, numbers)

    # -- what is known ----------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Whether the explorer has finished: with an answer, or with a proof that there is none.

        Trials whose lease has run out are given up first: that may be what it waits for.
        """
        self._give_up_overdue()
        return self._read().session.stopped

    @property
    def session(self) -> Session:
        """The explorer as it stands; changing it changes nothing that is stored."""
        return self._read().session

    def recommend(self) -> Recommendation:
        """Return the current mix, what is proved of it and under which assumptions; works before the explorer stops."""
        state = self._read()
        answer = state.session.recommend()
        claims = answer.claims
        for assumption in state.assumptions():
            claims = claims.under(assumption, "the study cannot know")
        return replace(answer, claims=claims)

    def certificate(self) -> Certificate:
        """Return what was proved, with every number needed to check it; see docs/guarantee.md."""
        state = self._read()
        return make_certificate(
            state.session,
            {
                "name": self.name,
                "events": state.seq,
                "digest": state.digest,
                **vars(state.tallies),
                "assumptions": state.assumptions(),
            },
        )

    def status(self) -> StudyStatus:
        """Return how the study stands."""
        row = self._storage.read_study(self._id)
        return describe(self._read(), row, write_time(self._clock()))

    def trials(self) -> Iterator[dict[str, Any]]:
        """Yield every trial: id, arm, state, reward, costs, asked_at, told_at."""
        for row in self._storage.trials_of(self._id):
            yield {**row._asdict(), "arm": self.problem.arms[row.arm], "costs": dict(row.costs)}

    def events(self) -> Iterator[Event]:
        """Yield the log."""
        return self._storage.events_after(self._id, 0)

    def export(self, path: str | Path) -> None:
        """Write the trials (.csv, .parquet) or the whole study (.json) to a file; see `export_study`."""
        from polyarm.studies.transfer import export_study  # noqa: PLC0415  (it builds on this module)

        export_study(self, path)

    # -- its life ---------------------------------------------------------------------------------------------------

    def stop(self, reason: str = "") -> None:
        """Hand out no more trials until `resume`; outcomes are still taken."""
        self._set_lifecycle(events.STOPPED, STOPPED, {"reason": reason}, RUNNING, STOPPED)

    def resume(self) -> None:
        """Go on after `stop`, `archive`, or the breaker: constraints that tripped it will not trip it again."""
        self._set_lifecycle(events.RESUMED, RUNNING, {}, RUNNING, STOPPED, ARCHIVED)

    def archive(self) -> None:
        """Close the study: no trial, no outcome, until `resume`."""
        self._set_lifecycle(events.ARCHIVED, ARCHIVED, {}, RUNNING, STOPPED, ARCHIVED)

    def _set_lifecycle(self, kind: str, lifecycle: str, payload: Mapping[str, Any], *allowed: str) -> None:
        with self._changing() as (writer, state):
            self._require_lifecycle(writer, *allowed)
            if lifecycle != writer.lifecycle or state.tripped is not None:
                writer.lifecycle = lifecycle
                state.apply(writer.append(kind, payload))

    def _require_lifecycle(self, writer: Writer, *allowed: str) -> None:
        if writer.lifecycle not in allowed:
            raise StudyHalted(f"study {self.name!r} is {writer.lifecycle}; resume() lets it go on")

    # -- inner works ------------------------------------------------------------------------------------------------

    def _give_up_overdue(self) -> None:
        """Give up the trials whose lease has run out: for good, whatever becomes of the call that noticed."""
        if self.statement.lease is None:
            return
        with self._guard:
            state = self._read()
            if state.lifecycle == RUNNING and state.overdue(write_time(self._clock())):
                with self._changing() as (writer, current):
                    self._expire(writer, current, current.overdue(writer.at))

    def _expire(self, writer: Writer, state: StudyState, trials: Sequence[int]) -> None:
        for row in writer.trials(trials).values():
            writer.change_trial(row._replace(state=EXPIRED))
            state.apply(writer.append(events.EXPIRED, {"trial": row.id}))

    def _trip(self, writer: Writer, state: StudyState) -> None:
        excess = state.alarm()
        if excess:
            _log.warning("study %r: %s", self.name, describe_alarm(excess))
            state.apply(writer.append(events.TRIPPED, {"excess": excess}))

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        """Change the study without looking at the explorer."""
        with self._guard, self._storage.write(self._id, write_time(self._clock())) as writer:
            yield writer

    @contextmanager
    def _changing(self) -> Iterator[tuple[Writer, StudyState]]:
        """Change the study with its state at hand, as of the last event."""
        with self._guard:
            state = self._read()  # most of the log is followed before others are kept waiting
            self._state = None  # the state runs ahead of what is stored until the transaction has ended
            with self._writing() as writer:
                for event in writer.events_after(state.seq):
                    state.apply(event)
                try:
                    yield writer, state
                except BaseException:
                    if state.seq == writer.study.last_seq:
                        self._state = state  # nothing was decided
                    raise
            self._state = state

    def _read(self) -> StudyState:
        """Return the state as of the last event, and keep a snapshot now and then."""
        with self._guard:
            state, self._state = self._state or self._open(), None
            for event in self._storage.events_after(self._id, state.seq):
                state.apply(event)
                self._keep_now_and_then(state)
            self._keep_now_and_then(state)  # of events that this object has added itself
            self._state = state
            return state

    # -- for verification -------------------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[tuple[Writer, StudyState]]:
        """Keep everybody else from changing the study for a while."""
        with self._changing() as (writer, state):
            yield writer, state

    def stored_snapshots(self) -> Iterator[tuple[int, str]]:
        """Yield the snapshots as stored, by event."""
        return self._storage.snapshots_of(self._id)

    def stored_trials(self) -> Iterator[TrialRow]:
        """Yield the trials as stored."""
        return self._storage.trials_of(self._id)

    def _keep_now_and_then(self, state: StudyState) -> None:
        if state.seq - self._snapshot_seq >= SNAPSHOT_EVERY:
            self._storage.add_snapshot(self._id, state.seq, json.dumps(state.pack()))
            self._snapshot_seq = state.seq

    def _open(self) -> StudyState:
        """Return the state of the newest snapshot that can be read, or that of a new study."""
        plan, seed, breaker = self.statement.plan(), self.statement.seed, self.statement.breaker
        for seq, text in self._storage.snapshots_of(self._id):
            try:
                state = StudyState.unpack(json.loads(text), plan, seed, breaker)
            except (InvalidInput, ValueError, KeyError, TypeError) as error:
                _log.warning("study %r: the snapshot at event %d cannot be used: %s", self.name, seq, error)
                continue
            self._snapshot_seq = seq
            return state
        self._snapshot_seq = 0
        return StudyState(plan, seed, breaker)
