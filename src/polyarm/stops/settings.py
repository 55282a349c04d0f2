"""Settings of the certified stop, shared by `certex` and by every explorer that is told to stop by it."""

import math
from typing import Any, Literal

from pydantic import Field

from polyarm.certify.pooled import make_pricing
from polyarm.certify.verdicts import CertifiedRule, make_certified_rule
from polyarm.errors import Checked, InvalidInput
from polyarm.families.family import is_sub_gaussian
from polyarm.model import Model
from polyarm.problem import Problem
from polyarm.stops.certified import CertifiedStop, Stop


class CertifiedSettings(Checked):
    """How the certified stop computes its thresholds.

    `thresholds` proved hold at confidence 1 - delta, for all times and any sampling rule; stylised ones are what papers
    use, without a proof. `lam` is the precision of the mixture behind the proved ones; fixed before the first pull, by
    default (largest reward noise / r)^2.
    """

    thresholds: Literal["proved", "stylised"] = "proved"
    lam: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def assumed_std(self) -> float | None:
        """The reward noise to assume instead of the declared one: none."""
        return None

    def stops_certified(self) -> bool:
        """Whether the certified rule decides when to stop."""
        return True

    def pooled_share(self) -> float:
        """The share of delta that the pooled certificate may spend; another one has the rest."""
        return 1.0

    def make_stop(self, model: Model, state: Any) -> Stop | None:
        """Make the stop for an exploration's state; None where the explorer's own test decides."""
        return CertifiedStop(build_certified_rule(self, model), state.round, model) if self.stops_certified() else None


def check_certifiable(problem: Problem) -> None:
    """Raise when no certificate can exist for a problem."""
    if not is_sub_gaussian(problem.family):
        raise InvalidInput(
            f"family {problem.family!r} has no sub-Gaussian scale, which certified stopping needs; use gaussian, "
            "bernoulli or bounded, or an explorer of the paper with its own stopping rule"
        )
    if problem.r == 0.0:
        raise InvalidInput(
            "r = 0 cannot be certified: a tie, or a tight unknown constraint, would need infinitely many pulls; "
            "choose r > 0"
        )


def build_certified_rule(settings: CertifiedSettings, model: Model) -> CertifiedRule:
    """Translate settings for the kernels: the rule of the pooled certificate."""
    lam = settings.lam
    if lam is None:
        lam = max((math.sqrt(float(model.reward_noise.max())) / model.r) ** 2, 1.0)
    n_known = int(model.known.sum())
    pricing = make_pricing(
        settings.thresholds == "proved",
        lam,
        settings.pooled_share() * model.delta,
        model.reward_noise.size,
        n_known,
        model.known.size - n_known,
        model.independent,
    )
    return make_certified_rule(pricing, model)
