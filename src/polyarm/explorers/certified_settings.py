"""Settings of the certified stop, shared by `certex` and by every explorer that is told to stop by it."""

import math
from typing import Literal

from pydantic import Field

from polyarm.errors import Checked, InvalidInput
from polyarm.families.family import is_sub_gaussian
from polyarm.problem import Model, Problem
from polyarm.statistics.averaged import Levels, make_levels
from polyarm.statistics.mixture import make_pricing
from polyarm.stopping.certified import MAX_CELLS, CertifiedRule

#: The price of breaking an estimated row, per unit of reward noise: far above any price that an optimum pays.
_PENALTY = 200.0
_FEWEST_CELLS = 1500
_CELLS_TIMES_ARMS = 6_000_000


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


def build_levels(settings: CertifiedSettings, model: Model) -> Levels:
    """Return how the averaged certificate spends what the pooled one leaves it of delta."""
    n_unknown = int((~model.known).sum())
    return make_levels((1.0 - settings.pooled_share()) * model.delta, n_unknown, model.independent)


def build_certified_rule(settings: CertifiedSettings, model: Model) -> CertifiedRule:
    """Translate settings for the kernels: the rule of the pooled certificate."""
    largest = math.sqrt(float(model.reward_noise.max()))
    n_known = int(model.known.sum())
    lam = settings.lam
    if lam is None:
        lam = max((largest / model.r) ** 2, 1.0)
    pricing = make_pricing(
        settings.thresholds == "proved",
        lam,
        settings.pooled_share() * model.delta,
        model.reward_noise.size,
        n_known,
        model.known.size - n_known,
        model.independent,
    )
    # A node's cost grows with the arms: many arms get fewer nodes, so that an unresolved search stays affordable.
    max_cells = min(MAX_CELLS, max(_FEWEST_CELLS, _CELLS_TIMES_ARMS // model.reward_noise.size))
    return CertifiedRule(pricing, _PENALTY * largest, max_cells, iterations=60)
