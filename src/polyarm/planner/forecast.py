"""When to expect a certificate: the number of pulls at which the best plan just reaches its thresholds."""

import math

import numpy as np

from polyarm.bounds.joint import JointSearch, Plan

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


def stylised_pulls(time: float, delta: float) -> float:
    """Solve t = T log((1 + log t)/delta): when the plan that attains T reaches the thresholds that papers use."""
    pulls = 1.0
    for _ in range(100):
        pulls = max(time * math.log((1.0 + math.log(pulls)) / delta), 1.0)
    return pulls


def forecast_pulls(search: JointSearch, start: Plan | None, guess: float) -> tuple[float, Plan] | None:
    """Return the pulls at which a certificate is due if all estimates are exact, and the plan that gets there first.

    Allocation and answer are planned anew for each number of pulls tried: thresholds grow with the pulls of every arm,
    so other plans become better. With a `start`, the search begins only there; otherwise from every start. None when no
    certificate is due within 1e15 pulls.
    """
    if start is not None:
        search.cautious(0.5)  # makes the optimum a witness
        return _solve(search, start, guess)
    starts = list(search.starts(None))
    if not starts:
        return None
    best = None
    for _ in range(2):  # the second time at about the right number of pulls
        plans = [search.ascend(plan, guess, fixed=False) for plan in starts]
        found = _solve(search, max(plans, key=lambda plan: search.value(plan, guess)), guess)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
            guess = found[0]
    return best


def _solve(search: JointSearch, plan: Plan, guess: float) -> tuple[float, Plan] | None:
    total = guess
    for _ in range(_ROUNDS):
        plan, ratio = _improve(search, plan, total)
        if ratio <= 0.0 or total > _FARTHEST:
            return None
        if abs(math.log(ratio)) < _ACCURACY:
            break
        total *= min(max(ratio ** (-1.0 / _GROWTH), 0.1), 10.0)
    return total, plan


def _improve(search: JointSearch, plan: Plan, total: float) -> tuple[Plan, float]:
    """Improve a plan for `total` pulls; returns it with its least ratio of statistic to threshold."""
    best, reached = plan, search.respond(plan, total, _RESPONSE, _RESPONSE_CELLS).attained
    for sharpness in np.geomspace(*_SHARPNESS, _CLIMBS):
        plan = search.climb(plan, total, float(sharpness), fixed=False)
        ratio = search.respond(plan, total, _RESPONSE, _RESPONSE_CELLS).attained
        if ratio > reached:
            best, reached = plan, ratio
    # The witnesses met last count against the best plan, too.
    return best, search.value(best, total)
