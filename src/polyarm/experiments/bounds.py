"""`lower_bounds`: how hard an instance is, by every bound."""

from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.bounds.lower import (
    compute_bounds,
    corollary_bounds,
    describe_joint,
    make_truth,
    price_constraints,
    shadow_price,
    upper_bounds,
)
from polyarm.environments.instances import Instance, load_instance
from polyarm.errors import InvalidInput
from polyarm.families.family import is_sub_gaussian
from polyarm.problem import Problem

# Where the noise of an outcome is taken from.
AS_DRAWN = "as the world draws"
AS_DECLARED = "as declared"
BY_FAMILY = "by its family"
HALF_RANGE = "half of the range: an upper bound on the noise"


def lower_bounds(instance: str | Instance, delta: float | None = None, r: float | None = None) -> dict[str, Any]:
    """Return the bounds of an instance as plain JSON types; what is infinite or undefined is None.

    Args:
        instance: The name of a shipped instance, the TOML file of one, or an `Instance`.
        delta: The error probability, between 0 and 1; by default the instance's own.
        r: How far from the best mix the answer may be, in units of the reward, 0 or more; by default the instance's
            own.

    Keys: instance, delta, r, noise (of each outcome: its source, and the standard deviation of each arm that the times
    are for; None where they need none), optimal_policy, value, bounds (by name: T, allocation, samples, closest, ...),
    shadow_price, corollary, upper_bounds, constraints (what each one costs).
    """
    chosen = load_instance(instance) if isinstance(instance, str) else instance
    changes = {name: value for name, value in (("delta", delta), ("r", r)) if value is not None}
    if changes:
        chosen = chosen.with_problem(**changes)
    best = chosen.optimum()
    if best is None:
        raise InvalidInput(f"instance {chosen.name!r}: no mix satisfies its true constraints, so it has no bounds")
    problem = chosen.problem
    sources, stds = find_noise(chosen)
    truth = make_truth(problem, chosen.mu, chosen.A, stds)
    bounds = compute_bounds(truth, problem.delta, problem.r)
    bounds["joint"] = describe_joint(problem, chosen.mu, chosen.A, stds)
    price = shadow_price(truth)
    return {
        "instance": chosen.name,
        "delta": problem.delta,
        "r": problem.r,
        "noise": _describe_noise(problem, sources, stds),
        "optimal_policy": best.policy.tolist(),
        "value": best.value,
        "bounds": bounds,
        "shadow_price": price,
        "corollary": corollary_bounds(truth),
        "upper_bounds": upper_bounds(truth, bounds["known_restricted"], price, problem.delta),
        "constraints": price_constraints(truth, problem.r),
    }


def find_noise(instance: Instance) -> tuple[list[str | None], FloatArray]:
    """Return where the noise of each outcome is taken from (None: it has none), and its standard deviations (1 + d, K).

    Those of the world if the instance says how it draws. Otherwise what is declared, which draws it, too; but nothing
    says how an outcome is spread in its range, so it counts with the most that the range allows.
    """
    problem, true = instance.problem, instance.true_stds()
    family = problem.reward_family
    stds = np.full_like(true, np.nan)
    sources: list[str | None] = [None] * len(stds)
    accounts = [problem.reward_account, *(c.account for c in problem.constraints)]
    for k in (0, *(1 + i for i in problem.unknown)):
        if k == 0 and family not in (None, "gaussian", "bounded"):
            sources[0] = BY_FAMILY
            if is_sub_gaussian(str(family)):
                stds[0] = true[0]
        elif instance.draw is not None:
            sources[k], stds[k] = AS_DRAWN, true[k]
        else:
            sources[k] = AS_DECLARED if accounts[k].kind == "declared" else HALF_RANGE
            stds[k] = accounts[k].scale(problem.n_arms)
    return sources, stds


def _describe_noise(problem: Problem, sources: list[str | None], stds: FloatArray) -> dict[str, Any]:
    outcomes = [
        None if source is None else {"source": source, "std": None if np.isnan(row).any() else row.tolist()}
        for source, row in zip(sources, stds, strict=True)
    ]
    return {"reward": outcomes[0], "costs": {problem.constraints[i].name: outcomes[1 + i] for i in problem.unknown}}
