"""The lower bounds that the figures show as lines."""

from typing import Any

from polyarm.bounds.lower import make_truth, reward_bounds
from polyarm.environments.instances import Instance


def find_lower_lines(instance: Instance) -> dict[str, Any]:
    """Return the samples that no explorer can do without at r = 0: with known constraints, and with none (`bai`).

    What is infinite is None.
    """
    table = reward_bounds(make_truth(instance.problem, instance.mu, instance.A), instance.problem.delta, 0.0)
    return {"known_bound": table["known"]["samples"], "bai_bound": table["bai"]["samples"]}
