"""Numbers that the curved families share: a safeguarded Newton step, and u - log(1 + u) with its two inverses.

Kernels cannot be passed to kernels without losing the cache, so a root is a short loop around `newton_step`.
"""

import math

from polyarm._compile import kernel

#: The most steps; the bracket is then narrower than rounding.
MAX_STEPS = 120
#: Newton runs free for this many steps; then every other one halves the bracket, so that it must close.
FREE_STEPS = 12
#: A step this small, relative to the scale on which the function bends, is the last: the next would be about its
#: square.
LAST_STEP = 1e-8
#: Points closer than this, relative to themselves, are one.
SAME_POINT = 4e-16
#: Below this, u - log(1 + u) is summed as a series: the difference would lose digits.
_SMALL = 0.1


@kernel
def newton_step(x: float, value: float, slope: float, low: float, high: float, step: int) -> tuple[float, float, float]:
    """Return the next point and the narrower bracket for the root of a function that rises through it.

    Newton's point if it lies inside the bracket, else the geometric middle: brackets here span many magnitudes.
    """
    if value < 0.0:
        low = x
    else:
        high = x
    if slope > 0.0 and (step < FREE_STEPS or step % 2 == 0):
        guess = x - value / slope
        if low <= guess <= high:
            return guess, low, high
    if high == math.inf:
        return 2.0 * x + 1.0, low, high
    if low > 0.0:
        return math.sqrt(low) * math.sqrt(high), low, high
    return 0.5 * high, low, high


@kernel
def _small_excess(u: float) -> float:
    """Sum u - log(1 + u) for small u, by log(1 + u) = 2 artanh(s), s = u/(2 + u)."""
    s = u / (2.0 + u)
    q = s * s
    series = 1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * (1 / 11 + q * (1 / 13 + q / 15)))))
    return s * (u - 2.0 * q * series)


@kernel
def log_excess(a: float, b: float, difference: float) -> float:
    """Return a/b - 1 - log(a/b) for positive a and b, to the relative accuracy of their difference a - b."""
    u = difference / b
    if abs(u) < _SMALL:
        return _small_excess(u)
    return u - math.log(a / b)


@kernel
def invert_excess_above(v: float) -> float:
    """Return u >= 0 with u - log(1 + u) = v."""
    t = math.sqrt(2.0 * v)
    u = t * (1.0 + t * (1 / 3 + t / 36))  # its series; for large v the function is nearly linear
    low, high = 0.0, math.inf
    for step in range(MAX_STEPS):
        if u <= 0.0:
            break
        value = (_small_excess(u) if u < _SMALL else u - math.log1p(u)) - v
        before = u
        u, low, high = newton_step(u, value, u / (1.0 + u), low, high, step)
        if abs(u - before) <= LAST_STEP * u:
            break
    return u


@kernel
def invert_excess_below(v: float) -> float:
    """Return s >= 0 such that the ratio exp(-s) < 1 has the excess v, that is exp(-s) - 1 + s = v."""
    t = math.sqrt(2.0 * v)
    s = t * (1.0 + t * (1 / 6 + t / 36))
    low, high = 0.0, math.inf
    for step in range(MAX_STEPS):
        if s <= 0.0:
            break
        u = math.expm1(-s)
        value = (_small_excess(u) if u > -_SMALL else u + s) - v
        before = s
        s, low, high = newton_step(s, value, -u, low, high, step)
        if abs(s - before) <= LAST_STEP * s:
            break
    return s
