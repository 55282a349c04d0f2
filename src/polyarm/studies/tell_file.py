"""Outcomes in a spreadsheet: one row per trial, filled in as far as they are known."""

from pathlib import Path
from typing import Any

from polyarm.environments.replay import cost_names
from polyarm.errors import InvalidInput
from polyarm.problem import Problem
from polyarm.tables import read_number, read_table

Tell = tuple[int, float | None, dict[str, float]]

#: Mistakes that are spelled out; the rest are counted.
_SHOWN = 5


def read_tells(path: str | Path, problem: Problem) -> list[Tell]:
    """Return (trial, reward, costs) of every row with anything in it; all rows are checked before any is returned.

    Needs the columns `id`, `reward` and one per unknown constraint; an empty cell is not known yet.
    """
    columns = ("id", "reward", *cost_names(problem))
    tells: list[Tell] = []
    mistakes = []
    for number, cells in enumerate(read_table(path, "file of outcomes", columns), start=1):
        try:
            trial, *values = (_read_cell(f"row {number}, column {c!r}", v) for c, v in zip(columns, cells, strict=True))
            if trial is None or trial != int(trial):
                raise InvalidInput(f"row {number}, column 'id': expected the number of a trial, got {cells[0]!r}")
        except InvalidInput as error:
            mistakes.append(str(error))
            continue
        costs = {name: cost for name, cost in zip(columns[2:], values[1:], strict=True) if cost is not None}
        if values[0] is not None or costs:
            tells.append((int(trial), values[0], costs))
    if mistakes:
        more = f"; and {len(mistakes) - _SHOWN} more" if len(mistakes) > _SHOWN else ""
        raise InvalidInput(f"{path}: nothing was recorded: {'; '.join(mistakes[:_SHOWN])}{more}")
    return tells


def _read_cell(where: str, value: Any) -> float | None:
    """A number, or None for a cell that is empty."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return read_number(where, value)
