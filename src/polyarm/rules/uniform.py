"""`uniform`: every arm equally likely at every step. A baseline that every sampling rule should beat.

With anytime exploration it draws from the point of the exploration set that is nearest to uniform.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm.model import Model
from polyarm.round import Round, make_round
from polyarm.rules.base import DRAWN, RoundRule, RoundWork, make_round_work
from polyarm.rules.settings import RoundSettings, build_round_rule


class UniformSettings(RoundSettings):
    """Settings of `uniform`: those of the shared stop test."""


class UniformRule(NamedTuple):
    """Settings as the kernel sees them."""

    round: RoundRule


@struct
class UniformState:
    """State of `uniform`: that of the round."""

    round: Round


@struct
class UniformWork:
    """Scratch of `uniform`: that of the round."""

    round: RoundWork


def init_uniform(settings: UniformSettings, model: Model) -> tuple[UniformRule, UniformState, UniformWork]:
    """Make the rule, a fresh state and scratch."""
    rule = UniformRule(build_round_rule(settings, model)._replace(choice=DRAWN, needs_policy=False))
    return rule, UniformState(make_round(model)), UniformWork(make_round_work(model))


@kernel
def allocate_uniform(
    rule: UniformRule, state: UniformState, model: Model, rng: np.random.Generator, work: UniformWork
) -> None:
    """Give every arm the same share."""
    allocation = state.round.allocation
    for a in range(allocation.size):
        allocation[a] = 1.0 / allocation.size
