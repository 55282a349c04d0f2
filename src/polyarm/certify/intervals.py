"""Intervals of single means: how far the mean of one outcome of one arm may be from its estimate, at all times at once.

The lemma of `certify.lemma` with every coefficient one. A precision must be fixed before the data: one pull's worth.
Guesses must be fixed before the outcome that they are for; those of a block are, before its first outcome.
"""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.accounts import DECLARED, KNOWN, LEARNABLE, RANGE, guard, learning_price
from polyarm.certify.constants import REACHES
from polyarm.certify.lemma import deviation_for
from polyarm.estimates import Estimates
from polyarm.model import Model

_REACHES = np.array((*REACHES, np.inf))


def half_widths(estimates: Estimates, model: Model, delta: float) -> FloatArray:
    """Return how far each mean (1 + d, K) may be from its estimate, in units of kernels, all at once.

    Zero for known rows, infinite where nothing was told.

    Args:
        estimates: What was told.
        model: The problem.
        delta: What all intervals may spend together.
    """
    widths = np.zeros((model.accounts.size, model.reward_noise.size))
    n_outcomes = int(np.count_nonzero(model.accounts != KNOWN))
    level = math.log(2.0 * n_outcomes * model.reward_noise.size / delta)  # two sides
    _write_half_widths(estimates, model, level, widths)
    return widths


@kernel
def _write_half_widths(estimates: Estimates, model: Model, level: float, widths_out: FloatArray) -> None:
    for k in range(model.accounts.size):
        for a in range(estimates.pulls.size):
            pulls = estimates.pulls[a]
            if model.accounts[k] == KNOWN:
                widths_out[k, a] = 0.0
            elif pulls == 0.0:
                widths_out[k, a] = np.inf
            elif model.accounts[k] == RANGE:
                widths_out[k, a] = _width_in_range(estimates, model, k, a, level)
            else:
                widths_out[k, a] = _width_by_variance(estimates, model, k, a, level)


@kernel
def _width_by_variance(estimates: Estimates, model: Model, k: int, a: int, level: float) -> float:
    """By the declared variance, or by that of the outcomes so far with the guard of `estimated`."""
    pulls = estimates.pulls[a]
    if model.accounts[k] == DECLARED:
        per_pull = model.reward_noise[a] if k == 0 else model.row_noise[k - 1, a]
    else:
        one, two, m = estimates.totals[0, k, a], estimates.totals[1, k, a], estimates.totals[0, k, a] / pulls
        squares = two - m * one
        fourths = estimates.totals[3, k, a] - m * (4.0 * estimates.totals[2, k, a] - m * (6.0 * two - 3.0 * m * one))
        if not squares > 1e-13 * two:
            return np.inf
        per_pull = squares / pulls * guard(squares, fourths)
    total = per_pull * (pulls + 1.0)
    return float(deviation_for(level + 0.5 * math.log(pulls + 1.0), np.inf) * math.sqrt(total) / pulls)


@kernel
def _width_in_range(estimates: Estimates, model: Model, k: int, a: int, level: float) -> float:
    """By the variance that was learned; any reach is valid, so the best counts."""
    pulls, width = estimates.pulls[a], model.high[k, a] - model.low[k, a]
    squares, prior = estimates.wander[k, a], 0.25 * width * width
    best = width
    for v in range(_REACHES.size):
        u = _REACHES[v] * width / math.sqrt(squares + prior)
        if u <= LEARNABLE:
            variance = learning_price(u) * squares
        else:
            variance = learning_price(LEARNABLE) * squares + prior * pulls
        total = variance + prior
        z = deviation_for(level + 0.5 * math.log(total / prior), _REACHES[v])
        best = min(best, z * math.sqrt(total) / pulls)
    return best
