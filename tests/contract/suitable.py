"""Which explorers the suites cover (all that are registered), and instances that each of them accepts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from polyarm import Constraint, Instance, Problem
from polyarm.explorers.registry import EXPLORERS

ALL_EXPLORERS = sorted(EXPLORERS)


def suit(explorer: str, instance: Instance) -> Instance:
    """Change an instance by the least that an explorer needs to accept it: the one place that knows."""
    if getattr(EXPLORERS[explorer], "needs_known_rows", False):
        return tell_rows(instance)
    return instance


def tell_rows(instance: Instance) -> Instance:
    """Return the same truth with every row known."""
    return replace(instance, problem=instance.problem.with_known_rows(instance.A))


def make_instance(
    mu: Sequence[float],
    A: Sequence[Sequence[float]],
    constraints: Sequence[Constraint | Mapping[str, Any]],
    **changes: Any,
) -> Instance:
    """Build an instance from its truth and its constraints."""
    stated = {"arms": len(mu), "constraints": constraints, "reward_std": 1.0, "delta": 0.1, "r": 0.1, **changes}
    means = np.array(mu, dtype=np.float64)
    return Instance("test", "", Problem(**stated), means, np.array(A, dtype=np.float64).reshape(-1, means.size))


def single_choices(explorer: str) -> list[dict[str, Any]]:
    """Return no settings at all, then every choice of every setting with a list of choices, one at a time."""
    choices = {name: get_args(field.annotation) for name, field in EXPLORERS[explorer].settings.model_fields.items()}
    return [{}] + [{name: choice} for name, options in choices.items() for choice in options if isinstance(choice, str)]
