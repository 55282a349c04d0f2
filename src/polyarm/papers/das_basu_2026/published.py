"""The paper's published medians and bounds, read off its figures, and our bounds to print beside them."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from polyarm.bounds.lower import make_truth, reward_bounds
from polyarm.environments.instances import Instance


def find_lower_lines(instance: Instance) -> dict[str, Any]:
    """Return the least samples of any explorer at r = 0: with known constraints, and with none (`bai`).

    What is infinite is None.
    """
    table = reward_bounds(make_truth(instance.problem, instance.mu, instance.A), instance.problem.delta, 0.0)
    return {"known_bound": table["known"]["samples"], "bai_bound": table["bai"]["samples"]}


#: Which number of a run a published median is about.
STOP = "stopping_time"
VIOLATIONS = "violations"


@cache
def load_published() -> dict[str, Any]:
    """Return the file of published numbers."""
    text = resources.files(__package__).joinpath("published.toml").read_text("utf-8")
    return tomllib.loads(text)


def published_median(measure: str, instance: str, explorer: str) -> float | None:
    """Return a published median (`STOP` or `VIOLATIONS`), or None when there is none."""
    value = load_published()[measure].get(instance, {}).get(explorer)
    return None if value is None else float(value)


def published_bound(instance: str, name: str) -> float | None:
    """Return a published lower bound, `known` or `bai`, or None when there is none."""
    value = load_published()[STOP].get(instance, {}).get(f"{name}_lower_bound")
    return None if value is None else float(value)
