"""Diagonal AdaGrad: the regret minimiser that plays the allocation in the game explorers."""

import math

from polyarm._compile import kernel
from polyarm._types import FloatArray


@kernel
def climb(
    gains: FloatArray,
    step_size: float,
    epsilon: float,
    iterate: FloatArray,
    squares: FloatArray,
    norm_out: FloatArray,
) -> None:
    r"""Move `iterate` along the gains; the caller projects it back, in the norm written to `norm_out`.

    .. math:: h_a = \epsilon + \sqrt{\textstyle\sum_s g_{s,a}^2}, \qquad x \leftarrow x + \eta\, g / h

    `squares` holds the running sums of squared gains and is updated.
    """
    for a in range(gains.size):
        squares[a] += gains[a] * gains[a]
        norm_out[a] = math.sqrt(squares[a]) + epsilon
        iterate[a] += step_size * gains[a] / norm_out[a]
