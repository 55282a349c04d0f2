r"""The one lemma behind every proof by blocks, and the numbers that it needs.

A claim is decided by a martingale :math:`M = \sum_t c_t (X_t - \text{mean})` whose coefficients are fixed before their
outcomes. V accounts for its variance (`polyarm.accounts`), :math:`\Lambda > 0` is fixed at a start, and S = V + Lambda.
The mixture over x > 0, half-normal of precision Lambda, of :math:`\exp(x M - \text{account}(x))` is a supermartingale
from 1. If the account is at most :math:`x^2 V / 2` for :math:`x \le Y/\sqrt S`, it is at least

.. math:: \sqrt{\Lambda/S}\; J(M/\sqrt S, Y), \qquad J(z, Y) = \sqrt{2/\pi} \int_0^Y e^{y z - y^2/2}\, dy .

So with probability at least 1 - delta, at all times at once and whatever Y is chosen,
:math:`M < z \sqrt S` for the z with :math:`J(z, Y) = \sqrt{S/\Lambda} / \delta`. docs/guarantee.md has the proof.
"""

import math

from polyarm._compile import inlined_kernel, kernel

#: A deviation this far beyond the reach counts as no larger: J is computed exactly up to there.
_FARTHEST = 30.0
_DOUBLINGS = 60
_NEWTON_STEPS = 30
#: The logarithm of J is met to this accuracy, from above.
_ACCURACY = 1e-9


@inlined_kernel
def normal_below(z: float) -> float:
    """The standard normal distribution function."""
    return 0.5 * math.erfc(-z * math.sqrt(0.5))


@kernel
def log_mixture(z: float, reach: float) -> float:
    """log J(z, Y), for z >= 0 and a reach Y that may be infinite; never above the exact value."""
    z = min(z, reach + _FARTHEST)
    inside = normal_below(reach - z) - normal_below(-z)
    return math.log(2.0 * max(inside, 1e-300)) + 0.5 * z * z


@kernel
def deviation_for(level: float, reach: float) -> float:
    """The least z with log J(z, Y) >= level > 0, from above; infinite where the reach is too short for any.

    log J is convex and grows with z, so Newton's method from above stays above; it aims half the accuracy higher, as
    round-off would else end it early. Without a limit to the reach log J is z^2/2 + log 2 Phi(z), so that the z sought
    is at least `low` and at most the one that begins.
    """
    farthest = reach + _FARTHEST
    low = math.sqrt(2.0 * max(level - math.log(2.0), 0.0))
    z = min(math.sqrt(2.0 * (level - math.log(2.0 * normal_below(low)))) + 1e-9, farthest)
    for _ in range(_DOUBLINGS):
        if log_mixture(z, reach) >= level:
            break
        if z >= farthest:
            return math.inf
        z = min(1.3 * z, farthest)
    for _ in range(_NEWTON_STEPS):
        excess = log_mixture(z, reach) - level
        if excess < _ACCURACY:
            break
        inside = max(normal_below(reach - z) - normal_below(-z), 1e-300)
        ends = math.exp(-0.5 * z * z) - (0.0 if reach == math.inf else math.exp(-0.5 * (reach - z) ** 2))
        slope = z + ends / (inside * math.sqrt(2.0 * math.pi))
        step = z - (excess - 0.5 * _ACCURACY) / slope
        if not step < z or log_mixture(step, reach) < level:
            break
        z = step
    return z
