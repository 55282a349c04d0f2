"""The `Family` record and the kernels that dispatch on it.

Dispatch is an integer branch: kernels passed as arguments are not cached across processes, and one
compiled step then serves every family.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import inlined_kernel
from polyarm._types import FloatArray
from polyarm.families import gaussian
from polyarm.geometry.neighbours import Moves

GAUSSIAN = 0

#: Names a problem may give, and their codes.
FAMILY_CODES = {"gaussian": GAUSSIAN}


class Family(NamedTuple):
    """A family's code and its noise scale per arm (Gaussian: standard deviations)."""

    kind: int
    scale: FloatArray


@inlined_kernel
def divergence(family: Family, arm: int, x: float, y: float) -> float:
    """Kullback-Leibler divergence between the family's members of means x and y."""
    return gaussian.gaussian_divergence(family.scale[arm], x, y)


@inlined_kernel
def confidence_ends(family: Family, arm: int, mean: float, level: float) -> tuple[float, float]:
    """Ends of the interval {y : d(mean, y) <= level}."""
    return gaussian.gaussian_confidence_ends(family.scale[arm], mean, level)


@inlined_kernel
def alternative_cost(
    family: Family, means: FloatArray, weights: FloatArray, moves: Moves, row: int, target: float
) -> tuple[float, float]:
    """Weighted divergence to the nearest means that give a move the value `target`, and the gap to close.

    A move of no length costs infinity: it leads nowhere.
    """
    return gaussian.gaussian_alternative_cost(family.scale, means, weights, moves, row, target)


@inlined_kernel
def write_nearest_alternative(
    family: Family,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    target: float,
    alternative_out: FloatArray,
) -> None:
    """Write the means that attain `alternative_cost`."""
    gaussian.gaussian_write_nearest(family.scale, means, weights, moves, row, target, alternative_out)


@inlined_kernel
def sample_reward(family: Family, arm: int, mean: float, rng: np.random.Generator) -> float:
    """Draw one reward."""
    return mean + family.scale[arm] * rng.standard_normal()
