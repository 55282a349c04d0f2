"""`lats`: Lagrangian track-and-stop, Algorithm 2 of the paper.

Each round solves the max-min problem on the simplex with the violation priced by the current multiplier, then
the multiplier for the new allocation.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.bounds.maxmin import MaxMinWork, linearise, make_maxmin_work, solve_penalised
from polyarm.estimates import write_shifted
from polyarm.model import Model
from polyarm.polytope.lp import make_basis
from polyarm.polytope.neighbours import Rivals, neighbour_capacity
from polyarm.round import Round, make_round
from polyarm.rules.allocation import WarmWeights, make_warm_weights, plan_effort
from polyarm.rules.base import RoundRule, RoundWork, make_round_work
from polyarm.rules.multiplier import (
    GAMMA_CODES,
    MultiplierWork,
    compute_gamma,
    find_violated_row,
    make_multiplier_work,
)
from polyarm.rules.settings import MultiplierSettings, TrackingSettings, build_round_rule


class LatsSettings(TrackingSettings, MultiplierSettings):
    """Settings of `lats`: those of the shared stop test, tracking and the multiplier."""


class LatsRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule
    gamma: int


@struct
class LatsState:
    """State of the round, warm weights, and the multiplier, one entry per row."""

    round: Round
    warm: WarmWeights
    multiplier: FloatArray
    slater_basis: IntArray


@struct
class LatsWork:
    """Scratch of one step."""

    round: RoundWork
    maxmin: MaxMinWork
    multiplier: MultiplierWork
    penalty: FloatArray


def init_lats(settings: LatsSettings, model: Model) -> tuple[LatsRule, LatsState, LatsWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    capacity = neighbour_capacity(n_arms, d)
    rule = LatsRule(
        round=build_round_rule(settings, model)._replace(needs_widths=True),
        gamma=GAMMA_CODES[settings.gamma],
    )
    state = LatsState(make_round(model), make_warm_weights(capacity, d), np.zeros(d), make_basis(d))
    work = LatsWork(
        make_round_work(model),
        make_maxmin_work(capacity, n_arms, d),
        make_multiplier_work(n_arms, d),
        np.zeros(n_arms),
    )
    return rule, state, work


@kernel
def allocate_lats(rule: LatsRule, state: LatsState, model: Model, rng: np.random.Generator, work: LatsWork) -> None:
    """Improve the allocation, then the multiplier. Source: paper Algorithm 2."""
    allocation, columns = state.round.allocation, work.round.set_columns
    multiplier, penalty = state.multiplier, work.penalty
    rivals = Rivals(work.round.moves, state.round.now.n_moves)
    write_shifted(state.round.estimates.columns, work.round.widths, -1.0, columns)
    for a in range(allocation.size):
        penalty[a] = 0.0
        for i in range(multiplier.size):
            penalty[a] += multiplier[i] * columns[i + 1, a]
    linearise(model.family, state.round.estimates.mu_hat, allocation, rivals, rule.round.target, work.maxmin)
    effort = plan_effort(state.round.basis, state.warm)
    value, _ = solve_penalised(rivals, penalty, effort, state.warm.weights.q, work.maxmin, allocation)
    for a in range(allocation.size):
        value += penalty[a] * allocation[a]
    for i in range(multiplier.size):
        multiplier[i] = 0.0
    row = find_violated_row(columns, allocation)
    if row >= 0 and value < np.inf:  # infinite: no alternative can be reached, so there is nothing to price against
        gamma = compute_gamma(rule.gamma, columns, state.round, state.slater_basis, work.round, work.multiplier)
        multiplier[row] = max(value, 0.0) / gamma
