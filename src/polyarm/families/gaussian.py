"""Gaussian rewards with a known standard deviation per arm."""

import math

import numpy as np

from polyarm._compile import inlined_kernel
from polyarm._types import FloatArray
from polyarm.polytope.neighbours import Move

GAUSSIAN = 0


@inlined_kernel
def gaussian_divergence(scale: float, x: float, y: float) -> float:
    r"""Kullback-Leibler divergence :math:`(x - y)^2 / (2 \sigma^2)`."""
    return (x - y) * (x - y) / (2.0 * scale * scale)


@inlined_kernel
def gaussian_confidence_ends(scale: float, mean: float, level: float) -> tuple[float, float]:
    """Ends of {y : d(mean, y) <= level}."""
    width = scale * math.sqrt(2.0 * level)
    return mean - width, mean + width


@inlined_kernel
def _gap_and_spread(
    scale: FloatArray, means: FloatArray, weights: FloatArray, move: Move, target: float
) -> tuple[float, float]:
    """How far the move's value is below target, and the variance of its estimate at these weights."""
    moves, row = move.moves, move.row
    gap = target
    spread = 0.0
    for k in range(moves.sizes[row]):
        arm = moves.arms[row, k]
        change = moves.changes[row, k]
        gap -= means[arm] * change
        spread += scale[arm] * scale[arm] * change * change / weights[arm]
    return gap, spread


@inlined_kernel
def gaussian_alternative_cost(
    scale: FloatArray, means: FloatArray, weights: FloatArray, move: Move, target: float
) -> tuple[float, float]:
    r"""Cheapest way to give a move the value `target`, and the gap that must be closed.

    .. math:: \min_\lambda \sum_a w_a d(\mu_a, \lambda_a)\ \text{s.t.}\ \lambda^\top m = c
              \;=\; \frac{(c - \mu^\top m)^2}{2 \sum_a \sigma_a^2 m_a^2 / w_a}
    """
    gap, spread = _gap_and_spread(scale, means, weights, move, target)
    if spread <= 0.0:
        return np.inf, gap
    return gap * gap / (2.0 * spread), gap


@inlined_kernel
def gaussian_write_nearest(
    scale: FloatArray, means: FloatArray, weights: FloatArray, move: Move, target: float, alternative_out: FloatArray
) -> None:
    """Write the minimiser of `gaussian_alternative_cost`, kept within ten standard deviations of the means.

    Differs from paper: without the clip an arm whose share hardly changes is sent to infinity as its weight vanishes.
    """
    moves, row = move.moves, move.row
    gap, spread = _gap_and_spread(scale, means, weights, move, target)
    for a in range(means.size):
        alternative_out[a] = means[a]
    if spread > 0.0:
        for k in range(moves.sizes[row]):
            arm = moves.arms[row, k]
            variance = scale[arm] * scale[arm]
            shift = gap / spread * variance * moves.changes[row, k] / weights[arm]
            limit = 10.0 * scale[arm]
            alternative_out[arm] = means[arm] + min(max(shift, -limit), limit)


@inlined_kernel
def gaussian_linearise(
    scale: FloatArray, means: FloatArray, move: Move, target: float, spread_out: FloatArray
) -> float:
    """Write sigma^2 change^2 and return gap^2 / 2; infinity for a move of no length."""
    moves, row = move.moves, move.row
    gap = target
    total = 0.0
    for k in range(moves.sizes[row]):
        arm = moves.arms[row, k]
        change = scale[arm] * moves.changes[row, k]
        gap -= means[arm] * moves.changes[row, k]
        spread_out[row, k] = change * change
        total += change * change
    return 0.5 * gap * gap if total > 0.0 else np.inf
