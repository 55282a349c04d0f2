"""`cge` and `cge-wlag`: the game of `lagex` with both players confined to the feasible set.

`cge` is told every row of the constraint matrix (Carlsson et al. 2024); `cge-wlag` is the same algorithm on the
set that the sample means describe, "without Lagrangian" in the paper's words.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.explorers.adagrad import climb
from polyarm.explorers.game import GameWork, make_game_work, play_instance
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
from polyarm.explorers.settings import GameSettings, build_round_rule
from polyarm.explorers.tracking import TRACKING_CODES, track
from polyarm.geometry.projection import project_polytope
from polyarm.problem import Model


class CgeSettings(GameSettings):
    """Settings of `cge` and `cge-wlag`: those of the shared stop test and of the game."""


class CgeRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule
    tracking: int
    step_size: float
    epsilon: float


class CgeState(NamedTuple):
    """State of the round, the allocation player's iterate, and multipliers of its two projections."""

    round: RoundState
    iterate: FloatArray
    squares: FloatArray
    refit_nu: FloatArray
    climb_nu: FloatArray


class CgeWork(NamedTuple):
    """Scratch of one step."""

    round: RoundWork
    game: GameWork


def build_cge(settings: CgeSettings, model: Model) -> tuple[CgeRule, CgeState, CgeWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    rule = CgeRule(
        build_round_rule(settings, model),
        TRACKING_CODES[settings.tracking],
        settings.step_size,
        settings.epsilon,
    )
    state = CgeState(
        make_round_state(model, settings.stops_certified()),
        np.full(n_arms, 1.0 / n_arms),
        np.zeros(n_arms),
        np.zeros(d),
        np.zeros(d),
    )
    return rule, state, CgeWork(make_round_work(model, settings.stops_certified()), make_game_work(n_arms))


@kernel
def step_cge(rule: CgeRule, state: CgeState, model: Model, rng: np.random.Generator, work: CgeWork) -> int:
    """Play one round of the game and return the next arm, or STOP.

    The set moves with the estimates, so that the iterate is first moved into the current one.
    """
    if examine(rule.round, state.round, model, work.round):
        return STOP
    if not has_alternatives(state.round):
        return sample_blindly(state.round)
    allocation, columns = state.round.allocation, state.round.estimates.columns
    iterate, projection = state.iterate, work.round.projection
    project_polytope(iterate, model.simplex[0], columns, state.refit_nu, projection, allocation)
    play_instance(
        model.family,
        state.round.estimates.mu_hat,
        state.round.estimates.pulls,
        allocation,
        work.round.moves,
        state.round.counters[N_MOVES],
        rule.round.target,
        rule.round.one_sided,
        work.game,
    )
    climbed = work.round.confined
    for a in range(allocation.size):
        climbed[a] = allocation[a]
    climb(work.game.gains, rule.step_size, rule.epsilon, climbed, state.squares, work.game.norm)
    project_polytope(climbed, work.game.norm, columns, state.climb_nu, projection, iterate)
    confine(rule.round, state.round, model, work.round)
    return track(rule.tracking, state.round)
