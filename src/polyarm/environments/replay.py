"""Logged outcomes: one row per pull, read from CSV or Parquet."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.errors import InvalidInput, unknown_name
from polyarm.problem import Problem

_ARM, _REWARD = "arm", "reward"


@dataclass(frozen=True)
class ReplayLog:
    """Logged pulls by arm, in the order of the file.

    `outcomes[arm]` has one row per pull: its reward, then its cost under each constraint in `costs`.
    """

    arms: tuple[str, ...]
    costs: tuple[str, ...]
    outcomes: tuple[FloatArray, ...]


def read_log(path: str | Path, problem: Problem) -> ReplayLog:
    """Read a `.csv` or `.parquet` file with columns `arm`, `reward` and one named like each unknown constraint.

    Arms are given by name or by index (by name only, when some name is itself a whole number). Other columns are
    ignored; any value that is missing or not a finite number is an error.
    """
    file = Path(path)
    costs = cost_names(problem)
    for name in (_ARM, _REWARD):
        if name in costs:
            raise InvalidInput(f"constraint {name!r}: a log has another column of that name; rename the constraint")
    if not file.is_file():
        raise InvalidInput(f"no such log file: {file}")
    columns = (_ARM, _REWARD, *costs)
    kind = file.suffix.lower()
    if kind == ".csv":
        rows = _read_csv(file, columns)
    elif kind == ".parquet":
        rows = _read_parquet(file, columns)
    else:
        raise InvalidInput(f"{file}: expected a log that ends in .csv or .parquet")
    labels = _arm_labels(problem)
    by_arm: list[list[list[float]]] = [[] for _ in problem.arms]
    for number, (arm, *values) in enumerate(rows, start=1):
        where = f"{file}, row {number}, column"
        index = None if arm is None else labels.get(str(arm))
        if index is None:
            raise InvalidInput(f"{where} {_ARM!r}: {unknown_name('arm', str(arm), problem.arms)}")
        by_arm[index].append(
            [_number(f"{where} {name!r}", value) for name, value in zip(columns[1:], values, strict=True)]
        )
    width = len(columns) - 1
    return ReplayLog(
        arms=problem.arms,
        costs=costs,
        outcomes=tuple(np.array(outcomes, dtype=np.float64).reshape(-1, width) for outcomes in by_arm),
    )


def cost_names(problem: Problem) -> tuple[str, ...]:
    """Return the names of the constraints that a log must have measured."""
    return tuple(problem.constraints[i].name for i in problem.unknown)


def _arm_labels(problem: Problem) -> dict[str, int]:
    """Return what may stand for each arm; where names are numbers, an index would be taken for a name."""
    labels = {name: index for index, name in enumerate(problem.arms)}
    if not any(name.isdecimal() for name in problem.arms):
        labels |= {str(index): index for index in range(problem.n_arms)}
    return labels


def _number(where: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: expected a finite number, got {value!r}")
    return number


def _require_columns(file: Path, found: Sequence[str], columns: Sequence[str]) -> None:
    for name in columns:
        if found.count(name) != 1:
            problem = "no column" if name not in found else "more than one column"
            raise InvalidInput(f"{file}: {problem} {name!r}; needed: {list(columns)}, found: {list(found)}")


def _read_csv(file: Path, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, skipinitialspace=True, strict=True)
            header = next(reader, [])
            _require_columns(file, header, columns)
            positions = [header.index(name) for name in columns]
            for number, cells in enumerate(filter(None, reader), start=1):
                if len(cells) != len(header):
                    raise InvalidInput(
                        f"{file}, row {number}: expected {len(header)} values, as in the header, got {len(cells)}"
                    )
                yield [cells[i] for i in positions]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"cannot read {file}: {error}") from None


def _read_parquet(file: Path, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    try:
        import pyarrow as pa  # noqa: PLC0415  (an optional dependency)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise InvalidInput(f"{file}: reading Parquet needs pyarrow: pip install 'polyarm[parquet]'") from None
    try:
        with parquet.ParquetFile(file) as content:
            _require_columns(file, content.schema_arrow.names, columns)
            for batch in content.iter_batches(columns=list(columns)):
                yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"cannot read {file}: {error}") from None
