"""`ctns` and `ctns-wlag`: track-and-stop with the max-min allocation inside the feasible set.

`ctns` is told every row of the constraint matrix (Carlsson et al. 2024); `ctns-wlag` is the same algorithm on the
set that the sample means describe, "without Lagrangian" in the paper's words.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm.bounds.maxmin import STEP_FLOOR, MaxMinWork, linearise, make_maxmin_work, solve_maxmin
from polyarm.explorers.allocation import ACCURACY, WarmWeights, make_warm_weights, plan_iterations
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
from polyarm.explorers.settings import TrackingSettings, build_round_rule
from polyarm.explorers.tracking import TRACKING_CODES, track
from polyarm.geometry.neighbours import neighbour_capacity
from polyarm.problem import Model


class CtnsSettings(TrackingSettings):
    """Settings of `ctns` and `ctns-wlag`: those of the shared stop test, and tracking."""


class CtnsRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule
    tracking: int


class CtnsState(NamedTuple):
    """State of the round, and warm weights of the max-min problem."""

    round: RoundState
    warm: WarmWeights


class CtnsWork(NamedTuple):
    """Scratch of one step."""

    round: RoundWork
    maxmin: MaxMinWork


def build_ctns(settings: CtnsSettings, model: Model) -> tuple[CtnsRule, CtnsState, CtnsWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    capacity = neighbour_capacity(n_arms, d)
    rule = CtnsRule(build_round_rule(settings, model), TRACKING_CODES[settings.tracking])
    state = CtnsState(make_round_state(model, settings.stops_certified()), make_warm_weights(capacity, d))
    return (
        rule,
        state,
        CtnsWork(make_round_work(model, settings.stops_certified()), make_maxmin_work(capacity, n_arms, d)),
    )


@kernel
def step_ctns(rule: CtnsRule, state: CtnsState, model: Model, rng: np.random.Generator, work: CtnsWork) -> int:
    """Improve the max-min allocation for the current estimates and return the next arm, or STOP."""
    if examine(rule.round, state.round, model, work.round):
        return STOP
    if not has_alternatives(state.round):
        return sample_blindly(state.round)
    moves, count = work.round.moves, state.round.counters[N_MOVES]
    linearise(
        model.family,
        state.round.estimates.mu_hat,
        state.round.allocation,
        moves,
        count,
        rule.round.target,
        work.maxmin,
    )
    solve_maxmin(
        moves,
        count,
        state.round.estimates.columns,
        STEP_FLOOR,
        plan_iterations(state.round.basis, state.warm),
        ACCURACY,
        state.warm.q,
        state.warm.nu,
        work.maxmin,
        state.round.allocation,
    )
    confine(rule.round, state.round, model, work.round)
    return track(rule.tracking, state.round)
