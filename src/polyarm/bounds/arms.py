"""Alternatives of best-arm identification: moves from the best arm to each other one."""

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.polytope.neighbours import Moves


@kernel
def write_arm_moves(means: FloatArray, moves_out: Moves) -> int:
    """Write one move per arm, from the best to it (the best's own is empty); return the best arm."""
    best = 0
    for a in range(means.size):
        if means[a] > means[best]:
            best = a
    for a in range(means.size):
        moves_out.sizes[a] = 0 if a == best else 2
        moves_out.arms[a, 0] = best
        moves_out.changes[a, 0] = -1.0
        moves_out.arms[a, 1] = a
        moves_out.changes[a, 1] = 1.0
    return best
