"""`cge` and `cge-wlag`: the game of `lagex` with both players confined to the feasible set.

`cge` is told every row of the constraint matrix (Carlsson et al. 2024); `cge-wlag` is the same algorithm on the
set that the sample means describe, "without Lagrangian" in the paper's words.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.model import Model
from polyarm.polytope.projection import project_polytope
from polyarm.round import Round, make_round
from polyarm.rules.base import RoundRule, RoundWork, make_round_work
from polyarm.rules.game import GameWork, climb, make_game_work, play_instance
from polyarm.rules.settings import GameSettings, build_round_rule


class CgeSettings(GameSettings):
    """Settings of `cge` and `cge-wlag`: those of the shared stop test and of the game."""


class CgeRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule
    step_size: float
    epsilon: float


@struct
class CgeState:
    """State of the round, the allocation player's iterate, and multipliers of its two projections."""

    round: Round
    iterate: FloatArray
    squares: FloatArray
    refit_nu: FloatArray
    climb_nu: FloatArray


@struct
class CgeWork:
    """Scratch of one step."""

    round: RoundWork
    game: GameWork


def init_cge(settings: CgeSettings, model: Model) -> tuple[CgeRule, CgeState, CgeWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    rule = CgeRule(
        build_round_rule(settings, model),
        settings.step_size,
        settings.epsilon,
    )
    state = CgeState(
        make_round(model),
        np.full(n_arms, 1.0 / n_arms),
        np.zeros(n_arms),
        np.zeros(d),
        np.zeros(d),
    )
    return rule, state, CgeWork(make_round_work(model), make_game_work(n_arms))


@kernel
def allocate_cge(rule: CgeRule, state: CgeState, model: Model, rng: np.random.Generator, work: CgeWork) -> None:
    """Play one round of the game.

    The set moves with the estimates, so that the iterate is first moved into the current one.
    """
    allocation, columns = state.round.allocation, state.round.estimates.columns
    iterate, projection = state.iterate, work.round.projection
    project_polytope(iterate, model.simplex[0], columns, state.refit_nu, projection, allocation)
    play_instance(rule.round, state.round, model.family, allocation, work.round.moves, work.game)
    climbed = work.round.confined
    for a in range(allocation.size):
        climbed[a] = allocation[a]
    climb(work.game.gains, rule.step_size, rule.epsilon, climbed, state.squares, work.game.norm)
    project_polytope(climbed, work.game.norm, columns, state.climb_nu, projection, iterate)
