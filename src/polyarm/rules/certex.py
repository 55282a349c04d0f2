"""`certex`, which stops only with a proof and samples what its stop plans (`stops.planned`).

With the averaged certificate pulls come in blocks, whose answer and counts are fixed beforehand; with the pooled one
the planned allocation is tracked pull by pull.
"""

import math
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm.certify.terms import POOLED, Terms
from polyarm.model import Model
from polyarm.round import Round, make_round
from polyarm.stops.blocks import Block, make_block, take_next
from polyarm.stops.certified import Stop
from polyarm.stops.planned import PlannedBlocks, PooledStop, least_pulls
from polyarm.stops.settings import CertifiedSettings

#: With the averaged certificate, the pooled one keeps this share of delta: for infeasibility, the best safe mix of an
#: unfinished run, and the bounds on slack and value.
_POOLED_SHARE = 0.1


class CertexSettings(CertifiedSettings):
    """Settings of `certex`: those of the certified stop, and which certificate proves the answer.

    `averaged` plans in blocks and answers with the average of their answers: no price per arm; `pooled` weighs all
    outcomes at once, pull by pull. Stylised thresholds exist for `pooled` only, and select it.
    """

    certificate: Literal["averaged", "pooled"] = "averaged"

    @model_validator(mode="before")
    @classmethod
    def _pool_if_stylised(cls, given: Any) -> Any:
        chosen = {"certificate": "pooled"} if given.get("thresholds") == "stylised" else {}
        return {**chosen, **given}

    @model_validator(mode="after")
    def _average_only_with_proof(self) -> Self:
        if self.certificate == "averaged" and self.thresholds != "proved":
            raise ValueError(
                "certificate=averaged has proved thresholds only; use certificate=pooled with stylised ones"
            )
        return self

    def make_terms(self, model: Model) -> Terms:
        """Fix the constants of the certificate."""
        if self.certificate == POOLED:
            return super().make_terms(model)
        averaged = (1.0 - _POOLED_SHARE) * model.delta
        return self._share_delta(model, pooled=_POOLED_SHARE * model.delta, averaged=averaged)

    def make_stop(self, terms: Terms, model: Model, state: Any) -> Stop:
        """Make the stop of the certificate, which also plans."""
        rule = terms.make_rule(model)
        if terms.certificate == POOLED:
            return PooledStop(rule, state.round, model)
        return PlannedBlocks(rule, state.round, model, state.block, terms.averaged_delta)


class PooledRule(NamedTuple):
    """`least_pulls` times sqrt(t) pulls of every arm come before the plan's."""

    least_pulls: float


class BlocksRule(NamedTuple):
    """Nothing to set: a block says what is sampled. (A tuple without fields could not be told from another.)"""

    handed_out: bool


@struct
class PooledState:
    """The round, whose allocation is planned."""

    round: Round


@struct
class BlocksState:
    """The round, whose allocation follows the plan, and the blocks."""

    round: Round
    block: Block


@struct
class CertexWork:
    """Scratch of a step: none."""

    nothing: float


def init_certex(settings: CertexSettings, model: Model) -> tuple[Any, Any, Any]:
    """Make the rule, a fresh state and scratch of the form that belongs to the certificate."""
    round = make_round(model)
    if settings.certificate == POOLED:
        return PooledRule(min(0.75, least_pulls(model))), PooledState(round), CertexWork(0.0)
    round.now.first_pulls = 0  # the first block has every arm
    return BlocksRule(True), BlocksState(round, make_block(model)), CertexWork(0.0)


@kernel
def choose_planned(
    rule: PooledRule, state: PooledState, model: Model, rng: np.random.Generator, work: CertexWork
) -> int:
    """Return the least-pulled arm while it is far behind, otherwise the arm that lags most behind the plan."""
    pulls, allocation = state.round.estimates.pulls, state.round.allocation
    steps = float(state.round.now.steps)
    least = 0
    for a in range(pulls.size):
        if pulls[a] < pulls[least]:
            least = a
    if pulls[least] < rule.least_pulls * math.sqrt(steps):
        return least
    arm = 0
    for a in range(pulls.size):
        if allocation[a] * steps - pulls[a] > allocation[arm] * steps - pulls[arm]:
            arm = a
    return arm


@kernel
def choose_from_block(
    rule: BlocksRule, state: BlocksState, model: Model, rng: np.random.Generator, work: CertexWork
) -> int:
    """Return the next arm of the block."""
    return take_next(state.block)
