"""Poisson rewards: counts whose variance is their mean."""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm.families.roots import invert_excess_above, invert_excess_below, log_excess

POISSON = 3


@kernel
def count_divergence(x: float, y: float, difference: float) -> float:
    """Divergence of Poisson means x and y whose difference y - x may be known better than they are."""
    if x <= 0.0:
        return max(y, 0.0)
    if y <= 0.0:
        return math.inf
    return x * log_excess(y, x, difference)


@kernel
def poisson_divergence(x: float, y: float) -> float:
    r"""Kullback-Leibler divergence :math:`y - x + x \log(x/y)`; finite at x = 0."""
    return count_divergence(x, y, y - x)


@kernel
def poisson_confidence_ends(mean: float, level: float) -> tuple[float, float]:
    """Ends of {y : d(mean, y) <= level}."""
    if mean <= 0.0:
        return 0.0, level
    share = level / mean
    return mean * math.exp(-invert_excess_below(share)), mean * (1.0 + invert_excess_above(share))


@kernel
def poisson_shift(mean: float, ratio: float, y: float, bend: float) -> tuple[float, float]:
    r"""How far the nearest alternative moves this mean, and the derivative in y; see `curved`.

    :math:`\lambda = \mu/(1 - k)` with :math:`k = \text{ratio}\, y/(1 + \text{bend}\, y)`.
    """
    room = 1.0 + (bend - ratio) * y
    slope = mean * ratio / (room * room)
    return slope * y * room, slope


@kernel
def sample_poisson(mean: float, rng: np.random.Generator) -> float:
    """Draw one count."""
    return float(rng.poisson(mean))
