"""Exponential rewards, by their mean: waiting times whose standard deviation is their mean."""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm.families.roots import invert_excess_above, invert_excess_below, log_excess

EXPONENTIAL = 4

#: The logarithm of the largest ratio of a confidence end to its mean, so that ends stay representable.
_MAX_LOG = 600.0


@kernel
def exponential_divergence(x: float, y: float) -> float:
    r"""Kullback-Leibler divergence :math:`x/y - 1 - \log(x/y)`; not convex in y beyond 2 x."""
    if x <= 0.0 or y <= 0.0:
        return 0.0 if x == y else math.inf
    return log_excess(x, y, x - y)


@kernel
def exponential_confidence_ends(mean: float, level: float) -> tuple[float, float]:
    """Ends of {y : d(mean, y) <= level}."""
    return mean / (1.0 + invert_excess_above(level)), mean * math.exp(min(invert_excess_below(level), _MAX_LOG))


@kernel
def exponential_shift(mean: float, ratio: float, y: float, bend: float) -> tuple[float, float]:
    r"""How far the nearest alternative moves this mean, and the derivative in y; see `curved`.

    :math:`\lambda = \mu\, 2/(1 + \sqrt{1 - 4 t})` with :math:`t = k \mu = \text{ratio}\, y/(1 + \text{bend}\, y)^2`:
    the branch on which the divergence is convex.
    """
    q = 1.0 + bend * y
    root = math.sqrt(max((1.0 - bend * y) * (1.0 - bend * y) + 4.0 * (bend - ratio) * y, 0.0))
    factor = 4.0 * mean * ratio / ((q + root) * (q + root))
    return factor * y, factor * (1.0 - bend * y) / max(root, 1e-300)


@kernel
def exponential_far_start(ratio: float) -> float:
    """Least y > 1 at which an arm that is pulled `ratio` times as hard as the pivot is still on its convex branch."""
    return 1.0 if ratio <= 1.0 else 2.0 * ratio - 1.0 + 2.0 * math.sqrt(ratio * (ratio - 1.0))


@kernel
def sample_exponential(mean: float, rng: np.random.Generator) -> float:
    """Draw one waiting time."""
    return rng.exponential(mean)
