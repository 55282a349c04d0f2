"""The rows that follow from a log, of the study and of its trials. Live writes and replays derive them here alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from polyarm.errors import InvalidInput
from polyarm.studies import events
from polyarm.studies.events import GENESIS, Event, write_payload

# Lifecycles of a study.
RUNNING = "running"
STOPPED = "stopped"
ARCHIVED = "archived"

# States of a trial.
PENDING = "pending"  # asked, nothing told
PARTIAL = "partial"  # asked, reward or some costs missing
COMPLETE = "complete"
EXPIRED = "expired"  # given up before it was complete; may still be told
OBSERVED = "observed"  # never asked for

_LIFECYCLES = {events.STOPPED: STOPPED, events.RESUMED: RUNNING, events.ARCHIVED: ARCHIVED}
_ABOUT_TRIALS = {events.ASKED, events.TOLD, events.OBSERVED, events.EXPIRED}


class StudyRow(NamedTuple):
    """A study as stored. `last_*` let a writer go on without reading the log."""

    id: int
    name: str
    created_at: str
    statement: str
    lifecycle: str = RUNNING
    last_seq: int = 0
    last_digest: str = GENESIS
    last_trial: int = 0


class TrialRow(NamedTuple):
    """A trial: `costs` by name as far as they are known."""

    id: int
    arm: int
    state: str
    reward: float | None
    costs: Mapping[str, float]
    asked_at: str | None
    told_at: str | None

    def store(self) -> "StoredTrial":
        """Return the trial as it is stored."""
        return StoredTrial(*self._replace(costs=write_payload(self.costs)))  # type: ignore[arg-type]


class StoredTrial(NamedTuple):
    """A trial as it is stored, its costs unread."""

    id: int
    arm: int
    state: str
    reward: float | None
    costs: str
    asked_at: str | None
    told_at: str | None


def trial_of(event: Event) -> int | None:
    """Return the number of the trial that an event is about, None if it is about none."""
    if event.kind not in _ABOUT_TRIALS:
        return None
    number: int = event.payload["trial"]
    return number


def lifecycle_after(kind: str, before: str) -> str:
    """Return the lifecycle of a study after an event."""
    return _LIFECYCLES.get(kind, before)


def project(event: Event, study: StudyRow, trial: TrialRow | None) -> tuple[StudyRow, TrialRow | None]:
    """Return the rows of a study and of the event's trial as the event leaves them; `trial` is None before its first.

    Rows of trials are for look-ups. A trial that was given up stays so until it is complete.
    """
    if event.kind in _ABOUT_TRIALS:
        trial = _project_trial(event, trial)
    study = study._replace(
        lifecycle=lifecycle_after(event.kind, study.lifecycle),
        last_seq=event.seq,
        last_digest=event.digest,
        last_trial=study.last_trial if trial is None else max(study.last_trial, trial.id),
    )
    return study, trial


def _project_trial(event: Event, before: TrialRow | None) -> TrialRow:
    said: Mapping[str, Any] = event.payload
    number = said["trial"]
    if event.kind == events.ASKED:
        return TrialRow(number, said["arm"], PENDING, None, {}, event.at, None)
    if event.kind == events.OBSERVED:
        return TrialRow(number, said["arm"], OBSERVED, said["reward"], said["costs"], None, event.at)
    if before is None:
        raise InvalidInput(f"event {event.seq} ({event.kind}): there is no trial {number}")
    if event.kind == events.EXPIRED:
        return before._replace(state=EXPIRED)
    state = COMPLETE if said["complete"] else EXPIRED if before.state == EXPIRED else PARTIAL
    return before._replace(state=state, reward=said["reward"], costs=said["costs"], told_at=event.at)
