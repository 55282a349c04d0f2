"""`lower_bounds`: how hard an instance is, by every bound."""

from typing import Any

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


def lower_bounds(instance: str | Instance, delta: float | None = None, r: float | None = None) -> dict[str, Any]:
    """Return the bounds of an instance as plain JSON types; what is infinite or undefined is None.

    Args:
        instance: The name of a shipped instance, the TOML file of one, or an `Instance`.
        delta: The error probability, between 0 and 1; by default the instance's own.
        r: How far from the best mix the answer may be, in units of the reward, 0 or more; by default the instance's
            own.

    Keys: instance, delta, r, optimal_policy, value, bounds (by name: T, allocation, samples, closest, ...),
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
    truth = make_truth(problem, chosen.mu, chosen.A)
    bounds = compute_bounds(truth, problem.delta, problem.r)
    bounds["joint"] = describe_joint(problem, chosen.mu, chosen.A)
    price = shadow_price(truth)
    return {
        "instance": chosen.name,
        "delta": problem.delta,
        "r": problem.r,
        "optimal_policy": best.policy.tolist(),
        "value": best.value,
        "bounds": bounds,
        "shadow_price": price,
        "corollary": corollary_bounds(truth),
        "upper_bounds": upper_bounds(truth, bounds["known_restricted"], price, problem.delta),
        "constraints": price_constraints(truth, problem.r),
    }
