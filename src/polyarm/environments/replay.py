"""Logged outcomes: one row per pull, read from CSV or Parquet."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyarm._types import FloatArray
from polyarm.errors import InvalidInput, unknown_name
from polyarm.problem import Problem
from polyarm.tables import read_number, read_table

_ARM, _REWARD = "arm", "reward"


@dataclass(frozen=True)
class ReplayLog:
    """Logged pulls by arm, in the order of the file.

    `outcomes[arm]` has one row per pull: its reward, then its cost under each constraint in `costs`.
    """

    arms: tuple[str, ...]
    costs: tuple[str, ...]
    outcomes: tuple[FloatArray, ...]


class Outcome(NamedTuple):
    """One logged pull: the arm's index, the reward, and the cost under each unknown constraint."""

    arm: int
    reward: float
    costs: tuple[float, ...]


def read_outcomes(path: str | Path, problem: Problem) -> Iterator[Outcome]:
    """Yield the rows of a `.csv` or `.parquet` file with columns `arm`, `reward` and one like each unknown constraint.

    Arms are given by name or by index (by name only, when some name is itself a whole number). Other columns are
    ignored; any value that is missing or not a finite number is an error.
    """
    costs = cost_names(problem)
    for name in (_ARM, _REWARD):
        if name in costs:
            raise InvalidInput(f"constraint {name!r}: a log has another column of that name; rename the constraint")
    columns = (_ARM, _REWARD, *costs)
    labels = _arm_labels(problem)
    for number, (arm, *values) in enumerate(read_table(path, "log file", columns), start=1):
        where = f"{path}, row {number}, column"
        index = None if arm is None else labels.get(str(arm))
        if index is None:
            raise InvalidInput(f"{where} {_ARM!r}: {unknown_name('arm', str(arm), problem.arms)}")
        reward, *rest = (
            read_number(f"{where} {name!r}", value) for name, value in zip(columns[1:], values, strict=True)
        )
        yield Outcome(index, reward, tuple(rest))


def read_log(path: str | Path, problem: Problem) -> ReplayLog:
    """Read a log of outcomes, by arm.

    Arms are given by name or by index (by name only, when some name is itself a whole number). Other columns are
    ignored; any value that is missing or not a finite number is an error.

    Args:
        path: A `.csv` or `.parquet` file with the columns `arm`, `reward` and one named like each unknown constraint.
        problem: The problem that names the arms and the constraints.
    """
    costs = cost_names(problem)
    by_arm: list[list[list[float]]] = [[] for _ in problem.arms]
    for outcome in read_outcomes(path, problem):
        by_arm[outcome.arm].append([outcome.reward, *outcome.costs])
    return ReplayLog(
        arms=problem.arms,
        costs=costs,
        outcomes=tuple(np.array(outcomes, dtype=np.float64).reshape(-1, 1 + len(costs)) for outcomes in by_arm),
    )


def cost_names(problem: Problem) -> tuple[str, ...]:
    """Return the names of the constraints that a log must have measured."""
    return tuple(problem.constraints[i].name for i in problem.unknown)


def _arm_labels(problem: Problem) -> dict[str, int]:
    """Return the labels of each arm: its name and its index, but no index if some name is a number."""
    labels = {name: index for index, name in enumerate(problem.arms)}
    if not any(name.isdecimal() for name in problem.arms):
        labels |= {str(index): index for index in range(problem.n_arms)}
    return labels
