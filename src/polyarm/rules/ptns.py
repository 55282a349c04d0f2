"""`ptns`: projected track-and-stop, a baseline of the paper.

Ignores the constraints when it plans: the max-min allocation for finding the single best arm, projected on the
estimated set.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.bounds.characteristic import write_arm_moves
from polyarm.bounds.maxmin import Effort, MaxMinWork, Weights, linearise, make_maxmin_work, solve_maxmin
from polyarm.model import Model
from polyarm.polytope.neighbours import Moves, Rivals, make_moves
from polyarm.polytope.projection import project_polytope
from polyarm.round import Round, make_round
from polyarm.rules.allocation import ACCURACY, WARM_ITERATIONS
from polyarm.rules.base import RoundRule, RoundWork, make_round_work
from polyarm.rules.settings import TrackingSettings, build_round_rule


class PtnsSettings(TrackingSettings):
    """Settings of `ptns`: those of the shared stop test, and tracking."""


class PtnsRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule


@struct
class PtnsState:
    """State of the round, the unprojected plan, weights per rival arm, and multipliers of the projection."""

    round: Round
    plan: FloatArray
    weights: Weights
    nu: FloatArray


@struct
class PtnsWork:
    """Scratch of one step."""

    round: RoundWork
    maxmin: MaxMinWork
    arm_moves: Moves


def init_ptns(settings: PtnsSettings, model: Model) -> tuple[PtnsRule, PtnsState, PtnsWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    rule = PtnsRule(build_round_rule(settings, model))
    state = PtnsState(
        make_round(model), np.full(n_arms, 1.0 / n_arms), Weights(np.ones(n_arms), np.zeros(0)), np.zeros(d)
    )
    work = PtnsWork(make_round_work(model), make_maxmin_work(n_arms, n_arms, 0), make_moves(n_arms, 0))
    return rule, state, work


@kernel
def allocate_ptns(rule: PtnsRule, state: PtnsState, model: Model, rng: np.random.Generator, work: PtnsWork) -> None:
    """Improve the unconstrained plan, project it."""
    n_arms = state.plan.size
    means = state.round.estimates.mu_hat
    best = write_arm_moves(means, work.arm_moves)
    rivals, weights = Rivals(work.arm_moves, n_arms), state.weights.q
    linearise(model.family, means, state.plan, rivals, rule.round.target, work.maxmin)
    effort = Effort(0.0, WARM_ITERATIONS, ACCURACY)
    solve_maxmin(rivals, model.simplex, effort, state.weights, work.maxmin, state.plan)
    # Weights belong to rivals: the present best has none, but may become a rival again.
    for a in range(n_arms):
        weights[a] = max(weights[a], 1e-8)
    weights[best] = 1.0 / n_arms
    project_polytope(
        state.plan,
        model.simplex[0],
        state.round.estimates.columns,
        state.nu,
        work.round.projection,
        state.round.allocation,
    )
