"""`lagex`: Lagrangian gamified explorer, Algorithm 3 of the paper.

A two-player game: AdaGrad plays the allocation, the other player answers with the instance in which some
neighbour of the policy is best, and a Lagrange multiplier prices allocations outside the estimated set.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from polyarm._compile import kernel
from polyarm._types import FloatArray, IntArray
from polyarm.estimates import write_shifted
from polyarm.explorers.adagrad import ascend
from polyarm.explorers.multiplier import (
    GAMMA_CODES,
    MultiplierWork,
    compute_gamma,
    find_violated_row,
    make_multiplier_work,
)
from polyarm.explorers.round import (
    N_MOVES,
    SET_IS_EMPTY,
    STEPS,
    STOP,
    RoundRule,
    RoundState,
    RoundWork,
    examine,
    make_round_state,
    make_round_work,
    sample_blindly,
)
from polyarm.explorers.settings import RoundSettings, build_round_rule
from polyarm.explorers.tracking import TRACKING_CODES, track
from polyarm.families.family import Family, confidence_ends, divergence, write_nearest_alternative
from polyarm.geometry.lp import make_basis
from polyarm.problem import Model
from polyarm.statistics.glr import least_statistic
from polyarm.tolerances import ALLOCATION_FLOOR


class LagexSettings(RoundSettings):
    """Settings of `lagex`: those of the shared stop test, and of its game."""

    tracking: Literal["c", "d"] = "c"
    gamma: Literal["slack", "slater", "centroid"] = "centroid"
    step_size: float = Field(default=1.0 / math.sqrt(2.0), gt=0)
    epsilon: float = Field(default=0.01, gt=0)


class LagexRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule
    tracking: int
    gamma: int
    step_size: float
    epsilon: float


class LagexState(NamedTuple):
    """State of the round, and the allocation player's iterate and squared gains."""

    round: RoundState
    iterate: FloatArray
    squares: FloatArray
    slater_basis: IntArray


class LagexWork(NamedTuple):
    """Scratch of one step."""

    round: RoundWork
    floored: FloatArray
    alternative: FloatArray
    gains: FloatArray
    weights: FloatArray
    multiplier: MultiplierWork


def build_lagex(settings: LagexSettings, model: Model) -> tuple[LagexRule, LagexState, LagexWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    rule = LagexRule(
        round=build_round_rule(settings, model)._replace(needs_widths=True),
        tracking=TRACKING_CODES[settings.tracking],
        gamma=GAMMA_CODES[settings.gamma],
        step_size=settings.step_size,
        epsilon=settings.epsilon,
    )
    state = LagexState(
        round=make_round_state(model),
        iterate=np.full(n_arms, 1.0 / n_arms),
        squares=np.zeros(n_arms),
        slater_basis=make_basis(d),
    )
    work = LagexWork(
        round=make_round_work(model),
        floored=np.zeros(n_arms),
        alternative=np.zeros(n_arms),
        gains=np.zeros(n_arms),
        weights=np.zeros(n_arms),
        multiplier=make_multiplier_work(n_arms, d),
    )
    return rule, state, work


@kernel
def _write_gains(
    family: Family,
    means: FloatArray,
    pulls: FloatArray,
    level: float,
    alternative: FloatArray,
    gains_out: FloatArray,
) -> None:
    r"""Write the optimistic gain of each arm against the other player's instance.

    .. math:: U_a = \max\{g/N_a,\ d(\text{ends of } \{\zeta : N_a d(\hat\mu_a, \zeta) \le g\}, \lambda_a)\}
    """
    for a in range(gains_out.size):
        share = level / pulls[a]
        low, high = confidence_ends(family, a, means[a], share)
        gain = max(divergence(family, a, low, alternative[a]), divergence(family, a, high, alternative[a]))
        gains_out[a] = max(gain, share)


@kernel
def step_lagex(rule: LagexRule, state: LagexState, model: Model, rng: np.random.Generator, work: LagexWork) -> int:
    """Play one round of the game and return the next arm, or STOP.

    Source: paper Algorithm 3. Differs from paper: see docs/errata.md for the settings of preset `corrected`.
    """
    if examine(rule.round, state.round, model, work.round):
        return STOP
    count = state.round.counters[N_MOVES]
    if state.round.counters[SET_IS_EMPTY] == 1 or count == 0:
        return sample_blindly(state.round)
    allocation, columns, moves = state.round.allocation, work.round.set_columns, work.round.moves
    means, pulls = state.round.estimates.mu_hat, state.round.estimates.pulls
    write_shifted(state.round.estimates.columns, work.round.widths, -1.0, columns)
    for a in range(allocation.size):
        allocation[a] = state.iterate[a]
        work.floored[a] = state.iterate[a] + ALLOCATION_FLOOR
    target = rule.round.target
    value, worst = least_statistic(model.family, means, work.floored, moves, count, target, rule.round.one_sided)
    write_nearest_alternative(model.family, means, work.floored, moves, max(worst, 0), target, work.alternative)
    level = math.log(float(state.round.counters[STEPS]))
    _write_gains(model.family, means, pulls, level, work.alternative, work.gains)
    row = find_violated_row(columns, allocation)
    if row >= 0:
        gamma = compute_gamma(
            rule.gamma,
            columns,
            state.round.policy,
            moves,
            count,
            state.slater_basis,
            work.round.lp,
            work.multiplier,
        )
        for a in range(allocation.size):
            work.gains[a] -= value / gamma * columns[row + 1, a]
    ascend(work.gains, rule.step_size, rule.epsilon, state.iterate, state.squares, work.weights)
    return track(rule.tracking, state.round)
