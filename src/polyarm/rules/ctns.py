"""`ctns` and `ctns-wlag`: track-and-stop with the max-min allocation inside the feasible set.

`ctns` is told every row of the constraint matrix (Carlsson et al. 2024); `ctns-wlag` is the same algorithm on the
set that the sample means describe, "without Lagrangian" in the paper's words.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm.bounds.maxmin import MaxMinWork, linearise, make_maxmin_work, solve_maxmin
from polyarm.model import Model
from polyarm.polytope.neighbours import Rivals, neighbour_capacity
from polyarm.round import Round, make_round
from polyarm.rules.allocation import WarmWeights, make_warm_weights, plan_effort
from polyarm.rules.base import RoundRule, RoundWork, make_round_work
from polyarm.rules.settings import TrackingSettings, build_round_rule


class CtnsSettings(TrackingSettings):
    """Settings of `ctns` and `ctns-wlag`: those of the shared stop test, and tracking."""


class CtnsRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule


@struct
class CtnsState:
    """State of the round, and warm weights of the max-min problem."""

    round: Round
    warm: WarmWeights


@struct
class CtnsWork:
    """Scratch of one step."""

    round: RoundWork
    maxmin: MaxMinWork


def init_ctns(settings: CtnsSettings, model: Model) -> tuple[CtnsRule, CtnsState, CtnsWork]:
    """Make the rule, a fresh state and scratch."""
    d, n_arms = model.known_rows.shape
    capacity = neighbour_capacity(n_arms, d)
    rule = CtnsRule(build_round_rule(settings, model))
    state = CtnsState(make_round(model), make_warm_weights(capacity, d))
    return (
        rule,
        state,
        CtnsWork(make_round_work(model), make_maxmin_work(capacity, n_arms, d)),
    )


@kernel
def allocate_ctns(rule: CtnsRule, state: CtnsState, model: Model, rng: np.random.Generator, work: CtnsWork) -> None:
    """Improve the max-min allocation for the current estimates."""
    core, rivals = state.round, Rivals(work.round.moves, state.round.now.n_moves)
    linearise(model.family, core.estimates.mu_hat, core.allocation, rivals, rule.round.target, work.maxmin)
    effort = plan_effort(core.basis, state.warm)
    solve_maxmin(rivals, core.estimates.columns, effort, state.warm.weights, work.maxmin, core.allocation)
