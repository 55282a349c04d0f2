"""The constants of a certificate: everything but the problem that must be fixed before the first pull."""

from typing import Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from polyarm.certify.constants import INTERVALS_SHARE, tabulate_constants
from polyarm.certify.pooled import make_pricing
from polyarm.certify.verdicts import CertifiedRule, make_certified_rule
from polyarm.errors import Checked
from polyarm.model import Model

BLOCKS: Final = "blocks"
POOLED: Final = "pooled"


class Terms(Checked):
    """Which certificate proves an answer, and with which constants.

    `blocks` proves its answer by blocks, `pooled` by all outcomes at once. `lam` is the precision of the mixture behind
    proved pooled thresholds. `pooled_delta` and `blocks_delta` are what each may spend of delta: beside `blocks`, the
    pooled part is for intervals, the value and the best safe mix. `constants` are those of `certify.constants`, which
    nobody chooses.
    """

    certificate: Literal["blocks", "pooled"]
    thresholds: Literal["proved", "stylised"]
    lam: float = Field(gt=0, allow_inf_nan=False)
    pooled_delta: float = Field(gt=0, lt=1)
    blocks_delta: float = Field(ge=0, lt=1)
    constants: dict[str, float | tuple[float, ...]] = Field(default_factory=tabulate_constants)

    @model_validator(mode="after")
    def _blocks_only_with_proof(self) -> Self:
        if self.certificate == BLOCKS and (self.thresholds != "proved" or self.blocks_delta == 0.0):
            raise ValueError("a certificate by blocks needs proved thresholds and a part of delta")
        if self.constants != tabulate_constants():
            raise ValueError("constants: expected those of this version of polyarm")
        return self

    @property
    def proved(self) -> bool:
        """Whether the thresholds are proved ones; stylised thresholds prove nothing."""
        return self.thresholds == "proved"

    def spend_at_most(self, delta: float) -> bool:
        """Whether the parts of delta, with that of the intervals, add up to no more than delta."""
        return self.pooled_delta + self.blocks_delta <= (1.0 - INTERVALS_SHARE) * delta * (1.0 + 1e-12)

    def make_rule(self, model: Model) -> CertifiedRule:
        """Translate for the kernels: the rule of the pooled certificate."""
        n_known = int(model.known.sum())
        pricing = make_pricing(
            self.proved,
            self.lam,
            self.pooled_delta,
            model.reward_noise.size,
            n_known,
            model.known.size - n_known,
        )
        return make_certified_rule(pricing, model)


def default_lam(model: Model) -> float:
    """Return (largest reward noise / r)^2, at least 1; 1 where no noise is declared."""
    noise = float(np.nanmax(model.reward_noise, initial=0.0))
    return max(noise / model.r**2, 1.0)
