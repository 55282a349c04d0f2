"""Warm max-min weights for the track-and-stop explorers: few iterations a round, more when the policy moves."""

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import IntArray
from polyarm.bounds.maxmin import STEP_FLOOR, Effort, Weights
from polyarm.polytope.lp import make_basis

WARM_ITERATIONS = 3
COLD_ITERATIONS = 15
#: Relative gap at which a round's solve is good enough.
ACCURACY = 1e-3


@struct
class WarmWeights:
    """Weights of the last round, and the basis that its alternatives belong to."""

    weights: Weights
    basis: IntArray


def make_warm_weights(capacity: int, n_constraints: int) -> WarmWeights:
    """Allocate weights that belong to no basis yet."""
    return WarmWeights(Weights(np.ones(capacity), np.zeros(n_constraints)), make_basis(n_constraints))


@kernel
def plan_effort(basis: IntArray, warm: WarmWeights) -> Effort:
    """Return how much effort to spend; a new basis has other alternatives, so their weights start anew."""
    same = True
    for i in range(basis.size):
        same = same and warm.basis[i] == basis[i]
        warm.basis[i] = basis[i]
    if same:
        return Effort(STEP_FLOOR, WARM_ITERATIONS, ACCURACY)
    for row in range(warm.weights.q.size):
        warm.weights.q[row] = 1.0
    return Effort(STEP_FLOOR, COLD_ITERATIONS, ACCURACY)
