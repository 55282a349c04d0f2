"""The constants of a certificate: everything but the problem that must be fixed before the first pull."""

import math
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from polyarm.certify.pooled import make_pricing
from polyarm.certify.verdicts import CertifiedRule, make_certified_rule
from polyarm.errors import Checked
from polyarm.model import Model

AVERAGED: Final = "averaged"
POOLED: Final = "pooled"


class Terms(Checked):
    """Which certificate proves an answer, and with which constants.

    `lam` is the precision of the mixture behind proved pooled thresholds. `pooled_delta` and `averaged_delta` are what
    each certificate may spend of delta; the averaged one leaves infeasibility and bounds on slack to the pooled one.
    """

    certificate: Literal["averaged", "pooled"]
    thresholds: Literal["proved", "stylised"]
    lam: float = Field(gt=0, allow_inf_nan=False)
    pooled_delta: float = Field(gt=0, lt=1)
    averaged_delta: float = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _average_only_with_proof(self) -> Self:
        if self.certificate == AVERAGED and (self.thresholds != "proved" or self.averaged_delta == 0.0):
            raise ValueError("an averaged certificate needs proved thresholds and a part of delta")
        return self

    @property
    def proved(self) -> bool:
        """Whether the thresholds are proved ones; stylised thresholds prove nothing."""
        return self.thresholds == "proved"

    def spend_at_most(self, delta: float) -> bool:
        """Whether the parts of delta add up to no more than delta."""
        return self.pooled_delta + self.averaged_delta <= delta * (1.0 + 1e-12)

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
            model.independent,
        )
        return make_certified_rule(pricing, model)


def default_lam(model: Model) -> float:
    """Return (largest reward noise / r)^2, at least 1."""
    return max((math.sqrt(float(model.reward_noise.max())) / model.r) ** 2, 1.0)
