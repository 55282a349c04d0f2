"""Outcomes as users tell them, checked: finite numbers, costs by name or in order."""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyarm.environments.replay import cost_names
from polyarm.errors import InvalidInput
from polyarm.problem import Problem

#: Sums of larger outcomes could overflow, and squares of their means would.
_LARGEST_OUTCOME = 1e100


def check_outcome(field: str, value: Any) -> float:
    """Return a reward or a cost as a number, or raise."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{field}: expected a number, got {reprlib.repr(value)}") from None
    if not abs(number) <= _LARGEST_OUTCOME:
        raise InvalidInput(f"{field}: expected a finite number of at most {_LARGEST_OUTCOME:g}, got {number}")
    return number


def check_costs(
    problem: Problem, costs: Sequence[float] | Mapping[str, float], partial: bool = False
) -> dict[str, float]:
    """Return the costs of one pull by name, in the order of the unknown constraints; `partial`: some may be missing."""
    names = list(cost_names(problem))
    if isinstance(costs, Mapping):
        given = dict(costs)
        if not set(given) <= set(names) or (len(given) != len(names) and not partial):
            expected = "some of the unknown constraints" if partial else "the unknown constraints"
            raise InvalidInput(f"costs: expected {expected} {names}, got {list(costs)}")
    else:
        ordered = list(np.atleast_1d(np.asarray(costs, dtype=object)))
        if len(ordered) != len(names):
            raise InvalidInput(
                f"costs: expected {len(names)} numbers, one per unknown constraint {names}, got {len(ordered)}"
            )
        given = dict(zip(names, ordered, strict=True))
    return {name: check_outcome(f"cost {name!r}", given[name]) for name in names if name in given}
