"""`lagex`: Lagrangian gamified explorer, Algorithm 3 of the paper.

A two-player game: AdaGrad plays the allocation, the other player answers with the instance in which some
neighbour of the policy is best, and a Lagrange multiplier prices allocations outside the estimated set.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray, IntArray
from polyarm.estimates import write_shifted
from polyarm.explorers.adagrad import climb
from polyarm.explorers.game import GameWork, make_game_work, play_instance
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
from polyarm.explorers.settings import GameSettings, MultiplierSettings, build_round_rule
from polyarm.explorers.tracking import TRACKING_CODES, track
from polyarm.geometry.lp import make_basis
from polyarm.geometry.projection import project_simplex
from polyarm.problem import Model


class LagexSettings(GameSettings, MultiplierSettings):
    """Settings of `lagex`: those of the shared stop test, of its game and of its multiplier."""


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
    game: GameWork
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
        round=make_round_state(model, settings.stops_certified()),
        iterate=np.full(n_arms, 1.0 / n_arms),
        squares=np.zeros(n_arms),
        slater_basis=make_basis(d),
    )
    return (
        rule,
        state,
        LagexWork(
            make_round_work(model, settings.stops_certified()), make_game_work(n_arms), make_multiplier_work(n_arms, d)
        ),
    )


@kernel
def step_lagex(rule: LagexRule, state: LagexState, model: Model, rng: np.random.Generator, work: LagexWork) -> int:
    """Play one round of the game and return the next arm, or STOP.

    Source: paper Algorithm 3. Differs from paper: see docs/errata.md for the settings of preset `corrected`.
    """
    if examine(rule.round, state.round, model, work.round):
        return STOP
    if not has_alternatives(state.round):
        return sample_blindly(state.round)
    allocation, columns, moves = state.round.allocation, work.round.set_columns, work.round.moves
    count = state.round.counters[N_MOVES]
    write_shifted(state.round.estimates.columns, work.round.widths, -1.0, columns)
    for a in range(allocation.size):
        allocation[a] = state.iterate[a]
    value = play_instance(
        model.family,
        state.round.estimates.mu_hat,
        state.round.estimates.pulls,
        allocation,
        moves,
        count,
        rule.round.target,
        rule.round.one_sided,
        work.game,
    )
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
        for a in range(allocation.size):
            work.game.gains[a] -= value / gamma * columns[row + 1, a]
    climb(work.game.gains, rule.step_size, rule.epsilon, state.iterate, state.squares, work.game.norm)
    project_simplex(state.iterate, work.game.norm, state.iterate)
    confine(rule.round, state.round, model, work.round)
    return track(rule.tracking, state.round)
