"""Outcomes in a spreadsheet: one row per trial, with empty cells for what is not known yet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyarm.environments.replay import cost_names
from polyarm.errors import InvalidInput
from polyarm.problem import Problem
from polyarm.studies.trial import Report, check_report
from polyarm.tables import read_number, read_table

#: Mistakes listed; the rest are counted.
_SHOWN = 5


def name_columns(problem: Problem, before: Sequence[str], after: Sequence[str] = ()) -> list[str]:
    """Return the columns of a table of trials, with one per unknown constraint; raises if two share a name."""
    for name in cost_names(problem):
        if name in {*before, *after}:
            raise InvalidInput(
                f"constraint {name!r}: a table of trials has another column of that name; avoid tables (use tell, "
                "export to .json), or rename the constraint in a new study"
            )
    return [*before, *cost_names(problem), *after]


def form_columns(problem: Problem) -> list[str]:
    """Return the columns of a spreadsheet to fill in."""
    return name_columns(problem, ("id", "arm", "reward"))


def read_reports(path: str | Path, problem: Problem) -> list[Report]:
    """Return what each filled row tells; all rows are checked before any is returned.

    Needs the columns `id`, `reward` and one per unknown constraint; an empty cell is not known yet. A column `arm`, if
    there is one, must name each trial's arm.
    """
    form_columns(problem)
    columns = ("id", "reward", *cost_names(problem))
    reports, mistakes = [], []
    for number, cells in enumerate(read_table(path, "file of outcomes", columns, optional=("arm",)), start=1):
        where = f"row {number}"
        try:
            report = _read_row(where, problem, columns, cells)
        except InvalidInput as error:
            mistakes.append(str(error))
            continue
        if report is not None:
            reports.append(report._replace(where=f"{path}, {where}"))
    if mistakes:
        more = f"; and {len(mistakes) - _SHOWN} more" if len(mistakes) > _SHOWN else ""
        raise InvalidInput(f"{path}: nothing was recorded: {'; '.join(mistakes[:_SHOWN])}{more}")
    return reports


def _read_row(where: str, problem: Problem, columns: Sequence[str], cells: Sequence[Any]) -> Report | None:
    """What a row tells; None if it is empty."""
    *values, arm = cells
    trial, reward, *costs = (_read_cell(f"{where}, column {c!r}", v) for c, v in zip(columns, values, strict=True))
    if trial is None or trial != int(trial):
        raise InvalidInput(f"{where}, column 'id': expected the number of a trial, got {cells[0]!r}")
    known = {name: cost for name, cost in zip(columns[2:], costs, strict=True) if cost is not None}
    if reward is None and not known:
        return None
    try:
        report = check_report(problem, int(trial), reward, known)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None
    return report if arm is None or not str(arm).strip() else report._replace(arm=str(arm))


def _read_cell(where: str, value: Any) -> float | None:
    """A number, or None for an empty cell."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return read_number(where, value)
