"""`lagex`: Lagrangian gamified explorer, Algorithm 3 of the paper.

A two-player game: AdaGrad plays the allocation, the other player answers with the instance in which some
neighbour of the policy is best, and a Lagrange multiplier prices allocations outside the estimated set.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.estimates import write_shifted
from polyarm.model import Model
from polyarm.polytope.lp import make_basis
from polyarm.polytope.projection import project_simplex
from polyarm.round import Round, make_round
from polyarm.rules.base import RoundRule, RoundWork, make_round_work
from polyarm.rules.game import GameWork, climb, make_game_work, play_instance
from polyarm.rules.multiplier import (
    GAMMA_CODES,
    MultiplierWork,
    compute_gamma,
    find_violated_row,
    make_multiplier_work,
)
from polyarm.rules.settings import GameSettings, MultiplierSettings, build_round_rule


class LagexSettings(GameSettings, MultiplierSettings):
    """Settings of `lagex`: those of the shared stop test, of its game and of its multiplier."""


class LagexRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule
    gamma: int
    step_size: float
    epsilon: float


@struct
class LagexState:
    """State of the round, and the allocation player's iterate and squared gains."""

    round: Round
    iterate: FloatArray
    squares: FloatArray
    slater_basis: IntArray


@struct
class LagexWork:
    """Scratch of one step."""

    round: RoundWork
    game: GameWork
    multiplier: MultiplierWork


def init_lagex(settings: LagexSettings, model: Model) -> tuple[LagexRule, LagexState, LagexWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    rule = LagexRule(
        round=build_round_rule(settings, model)._replace(needs_widths=True),
        gamma=GAMMA_CODES[settings.gamma],
        step_size=settings.step_size,
        epsilon=settings.epsilon,
    )
    state = LagexState(
        round=make_round(model),
        iterate=np.full(n_arms, 1.0 / n_arms),
        squares=np.zeros(n_arms),
        slater_basis=make_basis(d),
    )
    return (
        rule,
        state,
        LagexWork(make_round_work(model), make_game_work(n_arms), make_multiplier_work(n_arms, d)),
    )


@kernel
def allocate_lagex(rule: LagexRule, state: LagexState, model: Model, rng: np.random.Generator, work: LagexWork) -> None:
    """Play one round of the game.

    Source: paper Algorithm 3. Differs from paper: see docs/errata.md for the settings of preset `corrected`.
    """
    allocation, columns = state.round.allocation, work.round.set_columns
    write_shifted(state.round.estimates.columns, work.round.widths, -1.0, columns)
    for a in range(allocation.size):
        allocation[a] = state.iterate[a]
    value = play_instance(rule.round, state.round, model.family, allocation, work.round.moves, work.game)
    row = find_violated_row(columns, allocation)
    if row >= 0 and value < np.inf:  # infinite: no alternative can be reached, so there is nothing to price against
        gamma = compute_gamma(rule.gamma, columns, state.round, state.slater_basis, work.round, work.multiplier)
        for a in range(allocation.size):
            work.game.gains[a] -= value / gamma * columns[row + 1, a]
    climb(work.game.gains, rule.step_size, rule.epsilon, state.iterate, state.squares, work.game.norm)
    project_simplex(state.iterate, work.game.norm, state.iterate)
