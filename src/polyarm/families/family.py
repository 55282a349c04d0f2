"""The `Family` record and the kernels that dispatch on it.

Dispatch is an integer branch: kernels passed as arguments are not cached across processes. The one exception is
`Family.curved`, whose type tells a compiled step whether it needs more than the Gaussian kernels: even a call that it
never makes would cost it some 10 %, for counting references on every array it might pass.
"""

import math

import numpy as np

from polyarm._compile import inlined_kernel
from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.families import gaussian
from polyarm.families.bernoulli import BERNOULLI, sample_bernoulli
from polyarm.families.bounded import BOUNDED, sample_bounded
from polyarm.families.curved import (
    Domain,
    curved_alternative_cost,
    curved_confidence_ends,
    curved_divergence,
    curved_linearise,
    curved_write_nearest,
)
from polyarm.families.exponential import EXPONENTIAL, sample_exponential
from polyarm.families.gaussian import GAUSSIAN
from polyarm.families.poisson import POISSON, sample_poisson
from polyarm.polytope.neighbours import Move

#: Names a problem may give, and their codes.
FAMILY_CODES = {
    "gaussian": GAUSSIAN,
    "bounded": BOUNDED,
    "bernoulli": BERNOULLI,
    "poisson": POISSON,
    "exponential": EXPONENTIAL,
}

#: Estimated means this close to the edge of their domain are moved in by it, for the nearest alternative only: an arm
#: that has only given zeros has one too. Changes a cost by some 3e-11 times the arm's weight.
MEAN_MARGIN = 1e-12

_INTERVALS = {"bernoulli": (0.0, 1.0), "poisson": (0.0, math.inf), "exponential": (0.0, math.inf)}


@struct
class Family:
    """A family as the kernels see it.

    `scale` is its sub-Gaussian scale per arm (nan if it has none), `low` and `high` are the ends of its means' domain,
    `curved` is None if the Gaussian kernels serve and True if the variance depends on the mean.
    """

    kind: int
    scale: FloatArray
    low: float = -math.inf
    high: float = math.inf
    curved: bool | None = None


def make_family(
    name: str,
    n_arms: int,
    reward_std: float | tuple[float, ...] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Family:
    """Build the record of a named family; Gaussians need `reward_std`, bounded rewards `reward_range`."""
    low, high = reward_range or _INTERVALS.get(name, (-math.inf, math.inf))
    scale = reward_std if name == "gaussian" else 0.5 * (high - low)
    scales = np.full(n_arms, scale if is_sub_gaussian(name) else math.nan, dtype=np.float64)
    curved = None if name in ("gaussian", "bounded") else True
    return Family(FAMILY_CODES[name], scales, float(low), float(high), curved)


def is_sub_gaussian(name: str) -> bool:
    """Tell whether a family has a sub-Gaussian scale, which proved thresholds need."""
    return name not in ("poisson", "exponential")


@inlined_kernel
def divergence(family: Family, arm: int, x: float, y: float) -> float:
    """Kullback-Leibler divergence between the family's members of means x and y."""
    if family.curved is None:
        value = gaussian.gaussian_divergence(family.scale[arm], x, y)
    else:
        value = curved_divergence(family.kind, x, y)
    return value


@inlined_kernel
def confidence_ends(family: Family, arm: int, mean: float, level: float) -> tuple[float, float]:
    """Ends of the interval {y : d(mean, y) <= level}; a mean outside the domain counts as its edge."""
    if family.curved is None:
        low, high = gaussian.gaussian_confidence_ends(family.scale[arm], mean, level)
    else:
        # At zero the interval of an exponential would be that point, infinitely far from every other.
        least = MEAN_MARGIN if family.kind == EXPONENTIAL else family.low
        low, high = curved_confidence_ends(family.kind, min(max(mean, least), family.high), level)
    return low, high


@inlined_kernel
def _inside(family: Family) -> Domain:
    """The means that alternatives may have."""
    return Domain(family.kind, family.low + MEAN_MARGIN, family.high - MEAN_MARGIN)


@inlined_kernel
def alternative_cost(
    family: Family, means: FloatArray, weights: FloatArray, move: Move, target: float
) -> tuple[float, float]:
    """Weighted divergence to the nearest means that give a move the value `target`, and the gap to close.

    A move of no length costs infinity: it leads nowhere. So does a target that no means of the family can give.
    """
    if family.curved is None:
        cost, gap = gaussian.gaussian_alternative_cost(family.scale, means, weights, move, target)
    else:
        cost, gap = curved_alternative_cost(_inside(family), means, weights, move, target)
    return cost, gap


@inlined_kernel
def write_nearest_alternative(
    family: Family, means: FloatArray, weights: FloatArray, move: Move, target: float, alternative_out: FloatArray
) -> None:
    """Write the means that attain `alternative_cost`, kept within limits; the estimates if none do."""
    if family.curved is None:
        gaussian.gaussian_write_nearest(family.scale, means, weights, move, target, alternative_out)
    else:
        curved_write_nearest(_inside(family), means, weights, move, target, alternative_out)


@inlined_kernel
def linearise_move(
    family: Family, means: FloatArray, weights: FloatArray, move: Move, target: float, spread_out: FloatArray
) -> float:
    r"""Write D to the move's row of `spread_out`; return the c with which :math:`c / \sum_k D_k/w_k` is its cost.

    Gaussian: :math:`c = \text{gap}^2/2`, :math:`D_k = \sigma^2 m_k^2`, exact for all weights. Otherwise the cost f
    and its gradient agree at `weights`: :math:`D_k \propto w_k^2 d(\mu_k, \lambda_k)` and :math:`c \propto f^2`, with
    lambda the nearest alternative, scaled to the same :math:`c = \text{gap}^2/2`; a small gap then has the limit
    :math:`D_k = V(\mu_k) m_k^2`, which is also written, with c = 0, when the gap is zero. When nothing gives the move
    the value `target`, or it has no length, c is infinite and D zero. A negative gap counts like a positive one, as in
    `alternative_cost`. Weights below ALLOCATION_FLOOR count as that.
    """
    if family.curved is None:
        strength = gaussian.gaussian_linearise(family.scale, means, move, target, spread_out)
    else:
        strength = curved_linearise(_inside(family), means, weights, move, target, spread_out)
    return strength


@inlined_kernel
def sample_reward(family: Family, arm: int, mean: float, rng: np.random.Generator) -> float:
    """Draw one reward."""
    if family.kind == GAUSSIAN:
        reward = mean + family.scale[arm] * rng.standard_normal()
    elif family.kind == BOUNDED:
        reward = sample_bounded(family.low, family.high, mean, rng)
    elif family.kind == BERNOULLI:
        reward = sample_bernoulli(mean, rng)
    elif family.kind == POISSON:
        reward = sample_poisson(mean, rng)
    else:
        reward = sample_exponential(mean, rng)
    return reward
