"""Warm max-min weights for the track-and-stop explorers: few iterations a round, more when the policy moves."""

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.polytope.lp import make_basis

WARM_ITERATIONS = 3
COLD_ITERATIONS = 15
#: Relative gap at which a round's solve is good enough.
ACCURACY = 1e-3


@struct
class WarmWeights:
    """Weights on the alternatives, row multipliers, and the basis they belong to."""

    q: FloatArray
    nu: FloatArray
    basis: IntArray


def make_warm_weights(capacity: int, n_constraints: int) -> WarmWeights:
    """Allocate weights that belong to no basis yet."""
    return WarmWeights(np.ones(capacity), np.zeros(n_constraints), make_basis(n_constraints))


@kernel
def plan_iterations(basis: IntArray, warm: WarmWeights) -> int:
    """Return how many iterations to spend; a new basis has other alternatives, so their weights start anew."""
    same = True
    for i in range(basis.size):
        same = same and warm.basis[i] == basis[i]
        warm.basis[i] = basis[i]
    if same:
        return WARM_ITERATIONS
    for row in range(warm.q.size):
        warm.q[row] = 1.0
    return COLD_ITERATIONS
