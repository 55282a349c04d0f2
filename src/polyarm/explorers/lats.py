"""`lats`: Lagrangian track-and-stop, Algorithm 2 of the paper.

Each round solves the max-min problem on the simplex with the violation priced by the current multiplier, then
the multiplier for the new allocation.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray, IntArray
from polyarm.bounds.maxmin import MaxMinWork, linearise, make_maxmin_work, solve_penalised
from polyarm.estimates import write_shifted
from polyarm.explorers.allocation import ACCURACY, WarmWeights, make_warm_weights, plan_iterations
from polyarm.explorers.multiplier import (
    GAMMA_CODES,
    MultiplierWork,
    compute_gamma,
    find_violated_row,
    make_multiplier_work,
)
from polyarm.explorers.round import (
    N_MOVES,
    STOP,
    RoundRule,
    RoundState,
    RoundWork,
    confine,
    examine,
    has_alternatives,
    make_round_state,
    make_round_work,
    sample_blindly,
)
from polyarm.explorers.settings import MultiplierSettings, TrackingSettings, build_round_rule
from polyarm.explorers.tracking import TRACKING_CODES, track
from polyarm.geometry.lp import make_basis
from polyarm.geometry.neighbours import neighbour_capacity
from polyarm.problem import Model


class LatsSettings(TrackingSettings, MultiplierSettings):
    """Settings of `lats`: those of the shared stop test, tracking and the multiplier."""


class LatsRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule
    tracking: int
    gamma: int


class LatsState(NamedTuple):
    """State of the round, warm weights, and the multiplier, one entry per row."""

    round: RoundState
    warm: WarmWeights
    multiplier: FloatArray
    slater_basis: IntArray


class LatsWork(NamedTuple):
    """Scratch of one step."""

    round: RoundWork
    maxmin: MaxMinWork
    multiplier: MultiplierWork
    penalty: FloatArray


def build_lats(settings: LatsSettings, model: Model) -> tuple[LatsRule, LatsState, LatsWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    capacity = neighbour_capacity(n_arms, d)
    rule = LatsRule(
        round=build_round_rule(settings, model)._replace(needs_widths=True),
        tracking=TRACKING_CODES[settings.tracking],
        gamma=GAMMA_CODES[settings.gamma],
    )
    state = LatsState(
        make_round_state(model, settings.stops_certified()), make_warm_weights(capacity, d), np.zeros(d), make_basis(d)
    )
    work = LatsWork(
        make_round_work(model, settings.stops_certified()),
        make_maxmin_work(capacity, n_arms, d),
        make_multiplier_work(n_arms, d),
        np.zeros(n_arms),
    )
    return rule, state, work


@kernel
def step_lats(rule: LatsRule, state: LatsState, model: Model, rng: np.random.Generator, work: LatsWork) -> int:
    """Improve allocation, then multiplier, and return the next arm, or STOP. Source: paper Algorithm 2."""
    if examine(rule.round, state.round, model, work.round):
        return STOP
    if not has_alternatives(state.round):
        return sample_blindly(state.round)
    allocation, columns, moves = state.round.allocation, work.round.set_columns, work.round.moves
    count, multiplier, penalty = state.round.counters[N_MOVES], state.multiplier, work.penalty
    write_shifted(state.round.estimates.columns, work.round.widths, -1.0, columns)
    for a in range(allocation.size):
        penalty[a] = 0.0
        for i in range(multiplier.size):
            penalty[a] += multiplier[i] * columns[i + 1, a]
    linearise(model.family, state.round.estimates.mu_hat, allocation, moves, count, rule.round.target, work.maxmin)
    value, _ = solve_penalised(
        moves,
        count,
        penalty,
        plan_iterations(state.round.basis, state.warm),
        ACCURACY,
        state.warm.q,
        work.maxmin,
        allocation,
    )
    for a in range(allocation.size):
        value += penalty[a] * allocation[a]
    for i in range(multiplier.size):
        multiplier[i] = 0.0
    row = find_violated_row(columns, allocation)
    if row >= 0 and value < np.inf:  # infinite: no alternative can be reached, so there is nothing to price against
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
        multiplier[row] = max(value, 0.0) / gamma
    confine(rule.round, state.round, model, work.round)
    return track(rule.tracking, state.round)
