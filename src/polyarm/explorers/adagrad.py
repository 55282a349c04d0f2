"""Diagonal AdaGrad on the simplex: the regret minimiser that plays the allocation in the game explorers."""

import math

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.geometry.projection import project_simplex


@kernel
def ascend(
    gains: FloatArray,
    step_size: float,
    epsilon: float,
    iterate: FloatArray,
    squares: FloatArray,
    weights_work: FloatArray,
) -> None:
    r"""Move `iterate` along the gains and back onto the simplex, in AdaGrad's own norm.

    .. math:: h_a = \epsilon + \sqrt{\textstyle\sum_s g_{s,a}^2}, \qquad
              x \leftarrow \Pi_{\Delta, h}(x + \eta\, g / h)

    `squares` holds the running sums of squared gains and is updated.
    """
    for a in range(gains.size):
        squares[a] += gains[a] * gains[a]
        weights_work[a] = math.sqrt(squares[a]) + epsilon
        iterate[a] += step_size * gains[a] / weights_work[a]
    project_simplex(iterate, weights_work, iterate)
