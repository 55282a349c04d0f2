"""When a certificate is to be expected: the number of pulls at which the best plan just reaches its thresholds."""

import math

import numpy as np

from polyarm._types import FloatArray
from polyarm.bounds.joint import JointSearch, Plan
from polyarm.problem import Model
from polyarm.statistics.mixture import Pricing

_ROUNDS = 30
_ACCURACY = 1e-3
#: Statistics grow like the pulls, or like their square while these are fewer than the mixture's precision.
_GROWTH = 1.3
_SHARPNESS = (25.0, 170.0)
_CLIMBS = 4
#: Accuracy and budget of cells of the search for a plan's best response.
_RESPONSE, _RESPONSE_CELLS = 0.1, 2_000
#: No plan is made for more pulls than this.
_FARTHEST = 1e15


def forecast_pulls(
    model: Model, means: FloatArray, rows: FloatArray, pricing: Pricing, start: Plan, guess: float
) -> tuple[float, Plan] | None:
    """Return the pulls at which a certificate is due were all estimates exact, and the plan that gets there first.

    Allocation and answer are planned anew for each number of pulls tried, beginning with `start`: thresholds that grow
    with the pulls of every arm make other plans worth while. None when none is due within 1e15 pulls.
    """
    search = JointSearch(model, means, rows, pricing)
    search.cautious(0.5)  # makes the optimum a witness
    plan, total = start, guess
    for _ in range(_ROUNDS):
        plan, ratio = _plan(search, plan, total)
        if ratio <= 0.0 or total > _FARTHEST:
            return None
        if abs(math.log(ratio)) < _ACCURACY:
            return total, plan
        total *= min(max(ratio ** (-1.0 / _GROWTH), 0.1), 10.0)
    return total, plan


def _plan(search: JointSearch, plan: Plan, total: float) -> tuple[Plan, float]:
    """Improve a plan for `total` pulls; returns it with its least ratio of statistic to threshold."""
    best, reached = plan, search.respond(plan, total, _RESPONSE, _RESPONSE_CELLS).attained
    for sharpness in np.geomspace(*_SHARPNESS, _CLIMBS):
        plan = search.climb(plan, total, float(sharpness), fixed=False)
        ratio = search.respond(plan, total, _RESPONSE, _RESPONSE_CELLS).attained
        if ratio > reached:
            best, reached = plan, ratio
    # The witnesses met last count against the best plan, too.
    return best, search.value(best, total)
