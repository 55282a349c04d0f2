"""Settings of the certified stop, shared by `certex` and every explorer with stopping=certified."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from polyarm.certify.terms import Terms, default_lam
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

    @model_validator(mode="after")
    def _refuse_lam_without_mixture(self) -> Self:
        if self.thresholds == "stylised" and self.lam is not None:
            raise ValueError(f"lam={self.lam} changes nothing with thresholds=stylised; leave lam out")
        return self

    def assumed_std(self) -> float | None:
        """The reward noise to assume instead of the declared one: none."""
        return None

    def stops_certified(self) -> bool:
        """Whether the certified rule decides when to stop."""
        return True

    def make_terms(self, model: Model) -> Terms:
        """Fix the constants of this explorer's certificate."""
        return self._share_delta(model, pooled=model.delta, averaged=0.0)

    def _share_delta(self, model: Model, pooled: float, averaged: float) -> Terms:
        return Terms(
            certificate="averaged" if averaged > 0.0 else "pooled",
            thresholds=self.thresholds,
            lam=default_lam(model) if self.lam is None else self.lam,
            pooled_delta=pooled,
            averaged_delta=averaged,
        )

    def make_stop(self, terms: Terms, model: Model, state: Any) -> Stop:
        """Make the certified stop for an exploration's state."""
        return CertifiedStop(terms.make_rule(model), state.round, model)


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
