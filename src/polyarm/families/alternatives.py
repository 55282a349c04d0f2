r"""Generalised likelihood ratio of a policy against the vertices that could beat it.

.. math:: Z = \min_v \min_\lambda \sum_a N_a d(\hat\mu_a, \lambda_a)
          \quad\text{s.t.}\quad \lambda^\top (v - \pi) = r

which for Gaussians is :math:`\min_v (\hat\mu^\top(\pi - v) + r)_+^2 / (2 \sum_a \sigma_a^2 (\pi_a - v_a)^2 / N_a)`.
With r = 0 the neighbours of the policy suffice; with r > 0 every vertex counts.

Differs from paper: it prints (r - gap)^2, which makes tolerance harder; that sign is `target = -r` here.
"""

import numpy as np

from polyarm._compile import inlined_kernel
from polyarm._types import FloatArray, IntArray
from polyarm.families.family import Family, alternative_cost
from polyarm.polytope.neighbours import Move, Moves, Rivals
from polyarm.polytope.vertices import SUPPORT


@inlined_kernel
def move_statistic(
    family: Family, means: FloatArray, weights: FloatArray, move: Move, target: float, one_sided: bool
) -> float:
    """Evidence against one move being worth `target`; zero, if one-sided, when it already is."""
    cost, gap = alternative_cost(family, means, weights, move, target)
    if one_sided and gap <= 0.0:
        return 0.0
    return cost


@inlined_kernel
def least_statistic(
    family: Family, means: FloatArray, weights: FloatArray, rivals: Rivals, target: float, one_sided: bool
) -> tuple[float, int]:
    """Smallest statistic over the moves to all rivals, and its row (-1 when there is none)."""
    least = np.inf
    worst = -1
    for row in range(rivals.size):
        statistic = move_statistic(family, means, weights, Move(rivals.moves, row), target, one_sided)
        if statistic < least:
            least = statistic
            worst = row
    return least, worst


@inlined_kernel
def write_vertex_move(
    policy: FloatArray, basis: IntArray, candidate: IntArray, values: FloatArray, move_out: Moves
) -> None:
    """Write v - policy, for the vertex v of a candidate, as the single row of `move_out`."""
    size = 0
    for i in range(basis.size):
        if basis[i] < policy.size:
            move_out.arms[0, size] = basis[i]
            move_out.changes[0, size] = -policy[basis[i]]
            size += 1
    held = size
    for c in range(candidate[SUPPORT, 0]):
        arm = candidate[SUPPORT, 1 + c]
        slot = 0
        while slot < held and move_out.arms[0, slot] != arm:
            slot += 1
        if slot == held:
            slot = size
            move_out.arms[0, slot] = arm
            move_out.changes[0, slot] = 0.0
            size += 1
        move_out.changes[0, slot] += max(values[c], 0.0)
    move_out.sizes[0] = size
