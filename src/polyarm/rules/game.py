"""The two players of the game explorers: AdaGrad plays the allocation, the other the worst instance for it."""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.families.alternatives import least_statistic
from polyarm.families.family import Family, confidence_ends, divergence, write_nearest_alternative
from polyarm.polytope.neighbours import Move, Moves, Rivals
from polyarm.round import Round
from polyarm.rules.base import RoundRule
from polyarm.tolerances import ALLOCATION_FLOOR


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


@struct
class GameWork:
    """Scratch of a game round; `gains` is what the allocation player learns."""

    floored: FloatArray
    alternative: FloatArray
    gains: FloatArray
    norm: FloatArray


def make_game_work(n_arms: int) -> GameWork:
    """Allocate the scratch of a game round."""
    return GameWork(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))


@kernel
def play_instance(
    rule: RoundRule, core: Round, family: Family, allocation: FloatArray, moves: Moves, work: GameWork
) -> float:
    r"""Find the worst instance for an allocation, write each arm's optimistic gain, return the game's value.

    .. math:: U_a = \max\{g/N_a,\ d(\text{ends of } \{\zeta : N_a d(\hat\mu_a, \zeta) \le g\}, \lambda_a)\}

    with g = log t and lambda the nearest alternative of the worst move. Source: paper Algorithm 3, after Degenne et
    al. (2019).
    """
    means, pulls = core.estimates.mu_hat, core.estimates.pulls
    total = 0.0
    for a in range(means.size):
        work.floored[a] = allocation[a] + ALLOCATION_FLOOR
        total += pulls[a]
    rivals = Rivals(moves, core.now.n_moves)
    value, worst = least_statistic(family, means, work.floored, rivals, rule.target, rule.one_sided)
    write_nearest_alternative(family, means, work.floored, Move(moves, max(worst, 0)), rule.target, work.alternative)
    level = math.log(total)
    for a in range(means.size):
        share = level / pulls[a]
        low, high = confidence_ends(family, a, means[a], share)
        gain = max(divergence(family, a, low, work.alternative[a]), divergence(family, a, high, work.alternative[a]))
        work.gains[a] = max(gain, share)
    return value
