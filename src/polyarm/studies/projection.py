"""The rows that follow from a log, of the study and of its trials. Live writes and replays derive them here alone."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from polyarm.engine.outcomes import with_caps
from polyarm.errors import InvalidInput
from polyarm.problem import Problem
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
_ABOUT_TRIALS = {events.ASKED, events.TOLD, events.OBSERVED, events.REFUSED, events.EXPIRED}


class StudyRow(NamedTuple):
    """A study as stored. `last_*` let a writer go on without reading the log.

    `contradicted` counts the trials whose outcome was refused and not corrected since; `capped` names, as JSON, the
    outcomes whose range was capped since the study was created.
    """

    id: int
    name: str
    created_at: str
    statement: str
    lifecycle: str = RUNNING
    last_seq: int = 0
    last_digest: str = GENESIS
    last_trial: int = 0
    contradicted: int = 0
    capped: str = "{}"


class TrialRow(NamedTuple):
    """A trial: `costs` by name as far as they are known; `refused`: what was told and is outside what is declared."""

    id: int
    arm: int
    state: str
    reward: float | None
    costs: Mapping[str, float]
    asked_at: str | None
    told_at: str | None
    refused: Mapping[str, Any] | None = None

    def store(self) -> "StoredTrial":
        """Return the trial as it is stored."""
        refused = None if self.refused is None else write_payload(self.refused)
        return StoredTrial(*self._replace(costs=write_payload(self.costs), refused=refused))  # type: ignore[arg-type]


class StoredTrial(NamedTuple):
    """A trial as it is stored, its costs and what was refused unread."""

    id: int
    arm: int
    state: str
    reward: float | None
    costs: str
    asked_at: str | None
    told_at: str | None
    refused: str | None


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
    contradicted, capped = study.contradicted, study.capped
    if event.kind in _ABOUT_TRIALS:
        before, trial = trial, _project_trial(event, trial)
        contradicted += _is_contradicted(trial) - _is_contradicted(before)
    if event.kind == events.CAPPED:
        capped = add_caps(capped, event.payload["reward"], event.payload["costs"])
    study = study._replace(
        contradicted=contradicted,
        capped=capped,
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
    if event.kind == events.REFUSED:
        return before._replace(refused={name: value for name, value in said.items() if name not in ("trial", "arm")})
    state = COMPLETE if said["complete"] else EXPIRED if before.state == EXPIRED else PARTIAL
    return before._replace(
        state=state, reward=said["reward"], costs=said["costs"], told_at=event.at, refused=settle(before.refused, said)
    )


def _is_contradicted(trial: TrialRow | None) -> bool:
    return trial is not None and trial.refused is not None


def settle(refused: Mapping[str, Any] | None, said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what remains refused of a trial after it was told: what is outside, and not known yet."""
    if refused is None:
        return None
    reward = refused["outside_reward"] and said["reward"] is None
    costs = [name for name in refused["outside_costs"] if name not in said["costs"]]
    return {**refused, "outside_reward": reward, "outside_costs": costs} if reward or costs else None


def add_caps(capped: str, reward: bool, costs: Iterable[str]) -> str:
    """Return the outcomes whose range was capped, as they are stored, with some more."""
    before = json.loads(capped)
    names = sorted({*before.get("costs", ()), *costs})
    return write_payload({"reward": bool(before.get("reward", False) or reward), "costs": names})


def cap_problem(problem: Problem, capped: str) -> Problem:
    """Return a study's problem with the ranges capped that were capped since it was created."""
    caps = json.loads(capped)
    return with_caps(problem, caps["reward"], caps["costs"]) if caps else problem
