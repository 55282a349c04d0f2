"""Proof that a study is what its log says: the log is replayed and compared with all that is stored."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from polyarm.studies import events
from polyarm.studies.events import Event, seal, write_payload
from polyarm.studies.projection import project
from polyarm.studies.state import StudyState
from polyarm.studies.storage import TrialRow
from polyarm.studies.study import Study

#: Faults listed before the rest are only counted.
_MOST_FAULTS = 20


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
    """A state that follows the log from its first event, noting what does not fit."""

    def __init__(self, study: Study) -> None:
        statement = study.statement
        self.state = StudyState(statement.plan(), statement.seed, statement.breaker)
        self.rows: dict[int, TrialRow] = {}
        self.faults: list[str] = []
        self.snapshots = dict(study.stored_snapshots())
        self.n_snapshots = len(self.snapshots)
        self._stated = write_payload(statement.document())

    def follow(self, event: Event) -> None:
        """Check an event against the state before it, then take it in."""
        state, where = self.state, f"event {event.seq}"
        text = write_payload(event.payload)
        if event.digest != seal(state.digest, event.seq, event.at, event.kind, text):
            self.faults.append(
                f"{where}: its seal is broken: it, or an event before it, was changed after it was written"
            )
        if event.kind == events.CREATED and text != self._stated:
            self.faults.append(f"{where}: the study's statement is not the one it was created with")
        if event.kind == events.ASKED:
            arm, route = state.choose()
            if (arm, route) != (event.payload["arm"], event.payload["route"]):
                names = state.session.problem.arms
                self.faults.append(
                    f"{where}: asked for {names[event.payload['arm']]!r} ({event.payload['route']}), but the replay "
                    f"gives {names[arm]!r} ({route})"
                )
        state.apply(event)
        project(event, self.rows)
        stored = self.snapshots.pop(event.seq, None)
        if stored is not None and stored != json.dumps(state.pack()):
            self.faults.append(f"snapshot at event {event.seq}: differs from the state that the replay gives")


def verify_study(study: Study, progress: Callable[[int, int], None] | None = None) -> StudyVerification:
    """Replay a study's log and compare, bit for bit: asks, snapshots, the current state, and every trial."""
    replay = _Replay(study)
    total = study.status().events
    for event in study.events():
        replay.follow(event)
        if progress is not None and event.seq % 1000 == 0:
            progress(event.seq, max(total, event.seq))
    with study.held() as (writer, live):
        for event in writer.events_after(replay.state.seq):  # what others have added meanwhile
            replay.follow(event)
        state, faults = replay.state, replay.faults
        if json.dumps(state.pack()) != json.dumps(live.pack()):
            faults.append("the state in use differs from the one that the replay gives")
        if (writer.study.last_seq, writer.study.last_digest) != (state.seq, state.digest):
            faults.append(f"the study says that it has {writer.study.last_seq} events, the log ends at {state.seq}")
        if writer.study.lifecycle != state.lifecycle:
            faults.append(f"the study says that it is {writer.study.lifecycle}, the log that it is {state.lifecycle}")
        faults += [f"snapshot at event {seq}: the log has no such event" for seq in replay.snapshots]
        faults += _compare_trials(study, replay.rows)
    extra = [f"and {len(faults) - _MOST_FAULTS} more"] if len(faults) > _MOST_FAULTS else []
    return StudyVerification(state.seq, len(replay.rows), replay.n_snapshots, tuple(faults[:_MOST_FAULTS] + extra))


def _compare_trials(study: Study, expected: dict[int, TrialRow]) -> list[str]:
    faults = []
    missing = dict(expected)
    for row in study.stored_trials():
        if missing.pop(row.id, None) != row:
            faults.append(f"trial {row.id}: stored as {row}, but the log gives {expected.get(row.id)}")
    return faults + [f"trial {number}: in the log, but not stored" for number in missing]
