"""Which explorers the suites cover (all that are registered), and instances that each of them accepts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from polyarm import Constraint, Instance, Problem
from polyarm.rules.registry import EXPLORERS, make_settings

ALL_EXPLORERS = sorted(EXPLORERS)
#: Explorers that stop only with a proof: their answers keep a distance from the edge, and infeasibility ends them.
CERTIFYING = {"certex"}


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


def choices(explorer: str) -> dict[str, list[str]]:
    """Return every setting that has a list of choices, with the list."""
    fields = EXPLORERS[explorer].settings.model_fields
    options = {name: [c for c in get_args(field.annotation) if isinstance(c, str)] for name, field in fields.items()}
    return {name: listed for name, listed in options.items() if listed}


#: What a setting needs beside it to have an effect; without that it is refused.
_COMPANIONS = {"thresholds": {"stopping": "certified"}, "exploration_set": {"exploration": "anytime"}}


def with_companions(explorer: str, name: str, choice: str) -> dict[str, Any]:
    """Return a setting with what it needs beside it."""
    needed = _COMPANIONS.get(name, {})
    return {**{key: value for key, value in needed.items() if key in choices(explorer)}, name: choice}


def single_changes(explorer: str) -> list[dict[str, Any]]:
    """Return the default settings, then each choice that differs from them, one at a time."""
    default = make_settings(EXPLORERS[explorer], {}).model_dump()
    return [{}] + [
        with_companions(explorer, name, choice)
        for name, listed in choices(explorer).items()
        for choice in listed
        if choice != default[name]
    ]
