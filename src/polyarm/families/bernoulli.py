"""Bernoulli rewards: success or not."""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm.families.poisson import count_divergence
from polyarm.families.roots import LAST_STEP, MAX_STEPS, SAME_POINT, invert_excess_below, newton_step

BERNOULLI = 2

#: The largest number below one.
_BELOW_ONE = 1.0 - 2.0**-53


@kernel
def bernoulli_divergence(x: float, y: float) -> float:
    r"""Kullback-Leibler divergence :math:`x \log(x/y) + (1-x) \log((1-x)/(1-y))`; finite at x = 0 and x = 1.

    The sum of the Poisson divergences of successes and failures: each is accurate, and neither is negative.
    """
    return count_divergence(x, y, y - x) + count_divergence(1.0 - x, 1.0 - y, x - y)


@kernel
def _start_below(mean: float, level: float) -> float:
    """Return a point near the lower end of the confidence interval, or below it.

    Two terms of the end's series in the level; where these fail, the end for the successes alone, whose divergence is
    smaller: from there Newton converges monotonically, because d is convex.
    """
    variance = mean * (1.0 - mean)
    shift = math.sqrt(2.0 * variance * level)
    if shift < 0.3 * min(mean, 1.0 - mean):
        return mean - shift + (1.0 - 2.0 * mean) * level * (2 / 3)
    return mean * math.exp(-invert_excess_below(level / mean))


@kernel
def _find_end(mean: float, level: float, start: float, side: float) -> float:
    """Solve d(mean, y) = level on one side of the mean (+1 above)."""
    y = start
    low, high = (mean, 1.0) if side > 0.0 else (0.0, mean)
    for step in range(MAX_STEPS):
        value = side * (bernoulli_divergence(mean, y) - level)
        slope = side * (y - mean) / (y * (1.0 - y))
        before = y
        y, low, high = newton_step(y, value, slope, low, high, step)
        scale = min(abs(y - mean), y, 1.0 - y)
        if abs(y - before) <= max(LAST_STEP * scale, SAME_POINT * y):
            break
    return y


@kernel
def bernoulli_confidence_ends(mean: float, level: float) -> tuple[float, float]:
    """Ends of {y : d(mean, y) <= level}."""
    if level <= 0.0:
        return mean, mean
    if mean <= 0.0:
        return 0.0, -math.expm1(-level)
    if mean >= 1.0:
        return math.exp(-level), 1.0
    low = _start_below(mean, level)
    high = 1.0 - _start_below(1.0 - mean, level)
    if low > 0.0:  # else it is smaller than any number
        low = _find_end(mean, level, low, -1.0)
    return low, _find_end(mean, level, min(high, _BELOW_ONE), 1.0)


@kernel
def bernoulli_shift(mean: float, ratio: float, y: float) -> tuple[float, float]:
    r"""How far the nearest alternative moves this mean, and the derivative in y; see `curved`.

    With k = ratio y the shift s solves :math:`k s^2 + (1 - k (1 - 2\mu)) s - k \mu (1 - \mu) = 0`; a negative k is the
    same problem for failures.
    """
    k = abs(ratio) * y
    m = mean if ratio > 0.0 else 1.0 - mean
    spread = m * (1.0 - m)
    b = 1.0 - k * (1.0 - 2.0 * m)
    root = math.sqrt((1.0 - k) * (1.0 - k) + 4.0 * k * m)
    if b >= 0.0:
        variance = 2.0 * spread / (b + root)  # V(lambda) = s / k
    else:
        variance = (root - b) / (2.0 * k * k)
    shift = k * variance
    slope = variance * variance / (shift * shift + spread)
    return math.copysign(shift, ratio), slope * ratio


@kernel
def sample_bernoulli(mean: float, rng: np.random.Generator) -> float:
    """Draw 0 or 1."""
    return 1.0 if rng.random() < mean else 0.0
