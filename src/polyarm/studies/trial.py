"""Trials, and what callers tell of them."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from polyarm.engine.outcomes import check_costs, check_outcome
from polyarm.environments.replay import cost_names
from polyarm.errors import Conflict, InvalidInput
from polyarm.problem import Problem
from polyarm.studies.projection import OBSERVED, TrialRow


@dataclass(frozen=True)
class Trial:
    """One ask: pull `arm` and tell what it gave, before `lease_until` (None: whenever).

    `route` is "plan", or "control" while the study's breaker is tripped.
    """

    id: int
    arm: str
    arm_index: int
    lease_until: datetime | None
    route: str

    def document(self) -> dict[str, Any]:
        """Return the trial as plain JSON types."""
        return {**vars(self), "lease_until": None if self.lease_until is None else write_time(self.lease_until)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Return the trial that `document` gave.

        Args:
            document: The trial in plain JSON types.
        """
        lease = document["lease_until"]
        return cls(**{**document, "lease_until": None if lease is None else read_time(lease)})


@dataclass(frozen=True)
class Told:
    """The result of a tell: `status` is recorded, partial (`missing` is still to come) or duplicate (no change)."""

    trial: int
    status: str
    missing: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the same as plain JSON types."""
        return {**vars(self), "missing": list(self.missing)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Return what `document` gave."""
        return cls(**{**document, "missing": tuple(document["missing"])})

    def __str__(self) -> str:
        if self.status == "duplicate":
            return f"trial {self.trial}: told before, the same; nothing changed"
        if self.missing:
            return f"trial {self.trial}: recorded; still missing: {', '.join(self.missing)}"
        return f"trial {self.trial}: recorded"


_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
#: The databases' largest integer.
_LARGEST_NUMBER = 2**63 - 1


@dataclass(frozen=True)
class Observed:
    """The trials of outcomes that nobody asked for; `repeated`: they had been recorded before."""

    trials: tuple[int, ...]
    repeated: bool

    def __str__(self) -> str:
        if self.repeated:
            return f"{len(self.trials)} outcomes were recorded before, from the same file; nothing changed"
        return f"{len(self.trials)} outcomes recorded; a certificate that uses them says what that assumes"


class Report(NamedTuple):
    """What a caller tells of a trial, checked: a reward or none yet, and costs by name as far as given.

    `arm` is what the caller takes the trial's arm to be, if they said; `where` is the place in a file, for messages.
    """

    trial: int
    reward: float | None
    costs: Mapping[str, float]
    arm: str | None = None
    where: str = ""


def check_report(
    problem: Problem,
    trial: int | Trial,
    reward: float | None,
    costs: Sequence[float] | Mapping[str, float] | None,
) -> Report:
    """Check a tell without looking up its trial."""
    number = check_number(trial)
    value = None if reward is None else check_outcome("reward", reward)
    given = {} if costs is None else check_costs(problem, costs, partial=True)
    if value is None and not given:
        raise InvalidInput(f"trial {number}: nothing to tell: give reward, costs, or both")
    return Report(number, value, given, trial.arm if isinstance(trial, Trial) else None)


def check_number(trial: int | Trial) -> int:
    """Return the number of a trial, or raise if it cannot be one."""
    number = trial.id if isinstance(trial, Trial) else trial
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _LARGEST_NUMBER:
        raise InvalidInput(f"trial: expected a Trial or its number, 1 or more, got {reprlib.repr(trial)}")
    return number


def check_arm(report: Report, arm: str) -> None:
    """Raise if the caller expects another arm: the trial may belong to another study."""
    if report.arm not in (None, arm):
        raise InvalidInput(
            f"trial {report.trial} is one of {arm!r}, not of {report.arm!r}; nothing changed. Is it from another study?"
        )


def merge(row: TrialRow, report: Report, problem: Problem) -> tuple[dict[str, Any], Told]:
    """Return what an event says of a trial with what is told now; raises if that contradicts what was told before."""
    if row.state == OBSERVED:
        raise InvalidInput(f"trial {row.id} was observed, not asked for: its outcome is final")
    if None not in (row.reward, report.reward) and row.reward != report.reward:
        raise Conflict(_contradiction(row, "reward", row.reward, report.reward))
    for name, cost in report.costs.items():
        if row.costs.get(name, cost) != cost:
            raise Conflict(_contradiction(row, f"cost {name!r}", row.costs[name], cost))
    reward = row.reward if report.reward is None else report.reward
    costs = {**row.costs, **report.costs}
    missing = (*(["reward"] if reward is None else []), *(name for name in cost_names(problem) if name not in costs))
    status = "duplicate" if (reward, costs) == (row.reward, row.costs) else "partial" if missing else "recorded"
    merged = {"trial": row.id, "arm": row.arm, "reward": reward, "costs": costs, "complete": not missing}
    return merged, Told(row.id, status, missing)


def _contradiction(row: TrialRow, field: str, before: float | None, now: float | None) -> str:
    return (
        f"trial {row.id}: {field} was told as {before!r} before, now as {now!r}; nothing changed. An outcome is final: "
        "tell the same value, or omit it"
    )


def write_time(moment: datetime) -> str:
    """Return a time as text that sorts by time; it needs a time zone."""
    if moment.tzinfo is None:
        raise InvalidInput(f"clock: expected a time with its zone, as datetime.now(UTC) gives, got {moment!r}")
    return moment.astimezone(UTC).strftime(_TIME)


def read_time(text: str) -> datetime:
    """Return the time that `write_time` wrote."""
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except (ValueError, TypeError):
        raise InvalidInput(f"time: expected one such as 2026-03-01T12:00:00.000000Z, got {text!r}") from None
