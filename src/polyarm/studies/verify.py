"""Check a study against its log: replay it and compare the result with everything stored."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polyarm.errors import InvalidInput, PolyarmError
from polyarm.studies import events
from polyarm.studies.events import GENESIS, Event, StoredEvent, seal
from polyarm.studies.projection import COMPLETE, OBSERVED, StudyRow, TrialRow, project, trial_of
from polyarm.studies.state import PLAN, StudyState
from polyarm.studies.statement import Statement
from polyarm.studies.storage import Writer
from polyarm.studies.study import Study

#: Faults listed; the rest are counted.
_MOST_FAULTS = 20
#: Relative difference allowed between an excess and the logged one, perhaps of another machine.
_AGREEMENT = 1e-6


@dataclass(frozen=True)
class StudyVerification:
    """What a replay found: valid if `faults` is empty."""

    events: int
    trials: int
    snapshots: int
    faults: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether everything that is stored follows from the log."""
        return not self.faults


class _Replay:
    """Replays the log from its first event and notes what does not fit.

    Seals are checked to the end. After an event that cannot be replayed nothing else is: `state` is None.
    """

    def __init__(self, states: Mapping[int, list[tuple[str, str]]]) -> None:
        self.state: StudyState | None = None
        self.faults: list[str] = []
        self.study = StudyRow(0, "", "", "")
        self.rows: dict[int, TrialRow] = {}
        self.seq, self.digest = 0, GENESIS
        self._states = dict(states)
        self._alarm: tuple[Any, dict[str, float]] = (None, {})

    def follow(self, stored: StoredEvent) -> None:
        """Check an event against all before it."""
        if stored.seq != self.seq + 1:
            self._break_off(f"event {self.seq + 1} is missing")
        elif stored.digest != seal(self.digest, stored.seq, stored.at, stored.kind, stored.payload):
            self.faults.append(
                f"event {stored.seq}: its seal is broken: it, or an event before it, was changed after it was written"
            )
        self.seq, self.digest = stored.seq, stored.digest
        if stored.seq == 1:
            self._begin(stored)
        if self.state is not None:
            try:
                self._take_in(stored.read(), self.state)
            except Exception as error:  # noqa: BLE001  (a damaged event may hold anything)
                why = str(error) if isinstance(error, PolyarmError) else repr(error)
                self._break_off(f"event {stored.seq} cannot be replayed: {why}")

    def _begin(self, stored: StoredEvent) -> None:
        """Start from the statement in the first event: the log is the truth."""
        self.study = self.study._replace(created_at=stored.at, statement=stored.payload)
        try:
            statement = Statement(**stored.read().payload)
            plan = statement.plan()
        except (InvalidInput, TypeError) as error:
            if not self.faults:  # its seal is whole: the explorer is not loaded, or this polyarm is too old for it
                raise
            self._break_off(f"event 1 does not state the study: {error}")
            return
        self.state = StudyState(plan, statement.seed, statement.breaker)

    def _break_off(self, fault: str) -> None:
        self.faults.append(f"{fault}; from there on nothing was compared with the log")
        self.state = None

    def _take_in(self, event: Event, state: StudyState) -> None:
        where = f"event {event.seq}"
        if event.kind == events.ASKED:
            self._check_ask(where, event.payload, state)
        elif event.kind == events.TRIPPED:
            self._check_alarm(where, event.payload["excess"], state)
        elif event.kind == events.TOLD:
            row = self.rows[event.payload["trial"]]
            if row.state in {COMPLETE, OBSERVED} or row.arm != event.payload["arm"]:
                self.faults.append(f"{where}: tells trial {row.id}, which is {row.state} and of arm {row.arm}")
        number = trial_of(event)
        self.study, trial = project(event, self.study, None if number is None else self.rows.get(number))
        if trial is not None:
            self.rows[trial.id] = trial
        state.apply(event)
        for what, text in self._states.pop(event.seq, ()):
            if text != state.write():
                self.faults.append(f"{what}: differs from the state that the replay gives")

    def _check_ask(self, where: str, asked: Mapping[str, Any], state: StudyState) -> None:
        names = state.session.problem.arms
        arm, route = state.choose()
        if (arm, route) != (asked["arm"], asked["route"]):
            self.faults.append(
                f"{where}: asked for {names[asked['arm']]!r} ({asked['route']}), but the replay gives {names[arm]!r} "
                f"({route})"
            )
        if route == PLAN and self._find_alarm(state):
            self.faults.append(f"{where}: asked by the plan, although the breaker should have tripped before")

    def _check_alarm(self, where: str, excess: Mapping[str, float], state: StudyState) -> None:
        found = self._find_alarm(state)
        if found.keys() != excess.keys() or not all(
            math.isclose(found[name], excess[name], rel_tol=_AGREEMENT) for name in found
        ):
            self.faults.append(f"{where}: the breaker tripped by {dict(excess)}, but the replay gives {found}")

    def _find_alarm(self, state: StudyState) -> dict[str, float]:
        """The alarm of a state, computed once per outcome: in a batch of asks nothing changes."""
        moment = (state.session.steps, state.acknowledged, state.tripped is None)
        if self._alarm[0] != moment:
            self._alarm = (moment, state.alarm())
        return self._alarm[1]

    def compare(self, writer: Writer) -> None:
        """Compare the end of the log, under the study's lock, with what is stored beside it."""
        study, faults = writer.study, self.faults
        if (study.last_seq, study.last_digest) != (self.seq, self.digest):
            faults.append(f"the study says that it has {study.last_seq} events, the log ends at {self.seq}")
        logged = self.study
        if logged.statement and (study.statement, study.created_at) != (logged.statement, logged.created_at):
            faults.append("the study's statement is not the one it was created with")
        if self.state is None:
            return
        if study.lifecycle != logged.lifecycle:
            faults.append(f"the study says that it is {study.lifecycle}, the log that it is {logged.lifecycle}")
        if study.last_trial != logged.last_trial:
            faults.append(f"the study says that it has {study.last_trial} trials, the log has {len(self.rows)}")
        faults += [f"{what}: the log has no such event" for states in self._states.values() for what, _ in states]
        faults += _compare_trials(writer, self.rows)


def verify_study(study: Study, progress: Callable[[int, int], None] | None = None) -> StudyVerification:
    """Replay a study's log and compare everything, bit for bit: asks, alarms, snapshots, state and trials.

    Args:
        study: The study.
        progress: Called now and then with (events replayed, events in the log); by default nothing is.
    """
    states = {seq: [(f"snapshot at event {seq}", text)] for seq, text in study.stored_snapshots()}
    n_snapshots, total, broken = len(states), 0, None
    try:
        with study.reading() as state:
            total = state.seq
            states.setdefault(total, []).append(("the state in use", state.write()))
    except PolyarmError as error:
        broken = str(error)
    replay = _Replay(states)
    for stored in study.stored_events():
        replay.follow(stored)
        if progress is not None and stored.seq % 1000 == 0:
            progress(stored.seq, max(total, stored.seq))
    with study.held() as writer:
        for stored in writer.events_after(replay.seq):  # added by others meanwhile
            replay.follow(stored)
        replay.compare(writer)
    if broken is not None and not replay.faults:
        replay.faults.append(f"the study cannot be opened: {broken}")
    faults = replay.faults
    extra = [f"and {len(faults) - _MOST_FAULTS} more"] if len(faults) > _MOST_FAULTS else []
    return StudyVerification(replay.seq, len(replay.rows), n_snapshots, tuple(faults[:_MOST_FAULTS] + extra))


def _compare_trials(writer: Writer, expected: Mapping[int, TrialRow]) -> list[str]:
    """Compare the stored trials unread: damaged ones may not be readable."""
    faults = []
    missing = dict(expected)
    for row in writer.stored_trials():
        known = missing.pop(row.id, None)
        wanted = None if known is None else known.store()
        if wanted != row:
            gives = None if wanted is None else wanted._asdict()
            faults.append(f"trial {row.id}: stored as {row._asdict()}, but the log gives {gives}")
    return faults + [f"trial {number}: in the log, but not stored" for number in missing]
