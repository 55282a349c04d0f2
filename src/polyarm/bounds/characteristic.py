r"""Characteristic times of known instances: :math:`T^{-1} = \max_w \min_v f_v(w)`, solved to a known accuracy."""

import math
from dataclasses import dataclass

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.bounds.maxmin import LEAST_STRENGTH, Effort, Weights, linearise, make_maxmin_work, solve_maxmin
from polyarm.families.family import Family
from polyarm.polytope.lp import OPTIMAL, make_basis, make_lp_work, solve_lp, write_vertex
from polyarm.polytope.neighbours import (
    TOO_MANY,
    Moves,
    Rivals,
    find_neighbours,
    make_moves,
    make_neighbour_work,
    neighbour_capacity,
)
from polyarm.polytope.vertices import MAX_CANDIDATES, count_candidates, enumerate_vertices
from polyarm.tolerances import SAME_POLICY


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


_ACCURACY = 1e-6
_ITERATIONS = 20_000
#: Floors of the restricted problem, each solve starting from the last; see `maxmin.STEP_FLOOR`.
_FLOORS = (1e-6, 1e-8, 1e-10, 1e-12)
_LINEARISATIONS = 100


@dataclass(frozen=True)
class CharacteristicTime:
    """T with the allocation that attains it; `accuracy` is the relative gap to a proved bound on T.

    `closest` is the alternative that is hardest to reject. `time` is infinite when two policies are equally good.
    """

    time: float
    allocation: FloatArray
    closest: FloatArray
    accuracy: float


@dataclass(frozen=True)
class Alternatives:
    """A policy and the moves to everything that could beat it."""

    policy: FloatArray
    moves: Moves
    count: int

    def point(self, row: int) -> FloatArray:
        """Return the alternative that a move leads to."""
        point = self.policy.copy()
        size = int(self.moves.sizes[row])
        np.add.at(point, self.moves.arms[row, :size], self.moves.changes[row, :size])
        return point


def optimal_vertex(means: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray, Alternatives]:
    """Return the optimal policy, the LP multipliers of the rows, and the policy's neighbours."""
    m, n_arms = columns.shape
    basis, lp = make_basis(m - 1), make_lp_work(n_arms, m - 1)
    if solve_lp(means, columns, basis, lp) != OPTIMAL:
        raise ValueError("the feasible set is empty")
    policy = np.zeros(n_arms)
    write_vertex(n_arms, basis, lp.inverse, policy)
    # More room than in a step: a degenerate vertex may have many neighbours.
    capacity = 64 * neighbour_capacity(n_arms, m - 1)
    moves = make_moves(capacity, m - 1)
    count = find_neighbours(columns, basis, lp.inverse, make_neighbour_work(n_arms, m - 1, capacity), moves)
    if count == TOO_MANY:
        raise ValueError("the optimal vertex is so degenerate that its neighbours cannot be listed")
    return policy, lp.prices[1:].copy(), Alternatives(policy, moves, count)


def moves_to(policy: FloatArray, vertices: FloatArray) -> Alternatives:
    """Return the moves from a policy (any number of arms) to every vertex but itself."""
    others = vertices[np.abs(vertices - policy).max(axis=1) > SAME_POLICY]
    n_arms = policy.size
    moves = Moves(
        arms=np.tile(np.arange(n_arms), (len(others), 1)),
        changes=np.ascontiguousarray(others - policy),
        sizes=np.full(len(others), n_arms),
    )
    return Alternatives(policy, moves, len(others))


def list_alternatives(means: FloatArray, columns: FloatArray, r: float) -> Alternatives:
    """Return what must be rejected at the optimal policy: its neighbours if r = 0, every vertex otherwise.

    If there are too many vertices to list, the neighbours stand for all: T is then still a lower bound.
    """
    m, n_arms = columns.shape
    policy, _, neighbours = optimal_vertex(means, columns)
    if r == 0.0 or count_candidates(n_arms, m - 1) > MAX_CANDIDATES:
        return neighbours
    return moves_to(policy, enumerate_vertices(columns))


def arm_alternatives(means: FloatArray) -> Alternatives:
    """Return the alternatives of best-arm identification."""
    n_arms = means.size
    moves = make_moves(n_arms, 0)
    best = write_arm_moves(means, moves)
    kept = [a for a in range(n_arms) if a != best]
    return Alternatives(
        np.eye(n_arms)[best], Moves(moves.arms[kept], moves.changes[kept], moves.sizes[kept]), n_arms - 1
    )


def characteristic_time(
    family: Family, means: FloatArray, alternatives: Alternatives, columns: FloatArray, r: float
) -> CharacteristicTime:
    """Solve the max-min problem for these alternatives with the allocation in the given set.

    `columns` with one row leaves the allocation free on the simplex. Families other than Gaussian are solved by
    repeated linearisation at the last allocation.
    """
    rivals, moves, count = Rivals(alternatives.moves, alternatives.count), alternatives.moves, alternatives.count
    m, n_arms = columns.shape
    if count == 0:  # there is only one mix: nothing to tell apart
        return CharacteristicTime(0.0, np.full(n_arms, 1.0 / n_arms), alternatives.policy, 0.0)
    work = make_maxmin_work(count, n_arms, m - 1, moves.changes.shape[1])
    warm = Weights(np.ones(count), np.zeros(m - 1))
    allocation = np.full(n_arms, 1.0 / n_arms)
    floors = _FLOORS if m > 1 else (0.0,)
    value, bound = 0.0, math.inf
    for _ in range(_LINEARISATIONS):
        before = allocation.copy()
        linearise(family, means, allocation, rivals, r, work)
        for floor in floors:
            effort = Effort(floor, _ITERATIONS, _ACCURACY)
            value, bound = solve_maxmin(rivals, columns, effort, warm, work, allocation)
            if bound - value <= _ACCURACY * bound:
                break
        # Gaussian costs are linearised exactly: nothing changes the second time.
        if np.abs(allocation - before).max() <= _ACCURACY:
            break
    worst = int(np.argmax(work.times[:count]))
    tied = work.strength[worst] <= 2.0 * LEAST_STRENGTH * work.spread[worst, : moves.sizes[worst]].sum()
    time = math.inf if tied else 1.0 / value
    return CharacteristicTime(time, allocation, alternatives.point(worst), (bound - value) / bound)
