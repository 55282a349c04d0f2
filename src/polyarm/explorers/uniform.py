"""`uniform`: every arm equally likely at every step. The baseline that no sampling rule should lose to.

With anytime exploration it draws from the point of the exploration set that is nearest to uniform.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm.explorers.round import (
    STOP,
    RoundRule,
    RoundState,
    RoundWork,
    confine,
    examine,
    make_round_state,
    make_round_work,
)
from polyarm.explorers.settings import RoundSettings, build_round_rule
from polyarm.problem import Model


class UniformSettings(RoundSettings):
    """Settings of `uniform`: those of the shared stop test."""


class UniformRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule


class UniformState(NamedTuple):
    """State of `uniform`: that of the round."""

    round: RoundState


class UniformWork(NamedTuple):
    """Scratch of `uniform`: that of the round."""

    round: RoundWork


def build_uniform(settings: UniformSettings, model: Model) -> tuple[UniformRule, UniformState, UniformWork]:
    """Make the rule, a fresh state and scratch."""
    return (
        UniformRule(build_round_rule(settings, model)),
        UniformState(make_round_state(model, settings.stops_certified())),
        UniformWork(make_round_work(model, settings.stops_certified())),
    )


@kernel
def step_uniform(
    rule: UniformRule, state: UniformState, model: Model, rng: np.random.Generator, work: UniformWork
) -> int:
    """Draw the next arm independently of everything, or return STOP."""
    if examine(rule.round, state.round, model, work.round):
        return STOP
    allocation = state.round.allocation
    for a in range(allocation.size):
        allocation[a] = 1.0 / allocation.size
    confine(rule.round, state.round, model, work.round)
    mark = rng.random()
    for a in range(allocation.size):
        mark -= allocation[a]
        if mark < 0.0:
            return a
    return allocation.size - 1  # round-off: the shares add up to a hair less than the draw
