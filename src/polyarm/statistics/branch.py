r"""Certified lower bound on the reward statistic Z_0 = min_q g(q), which is not convex in q.

The simplex of mixes is cut into cells, each the hull of K points. Let an instance :math:`(\mu', G')` have a winner, a mix
:math:`q = \sum_j c_j v_j` of a cell that satisfies every row and beats the answer by r. By weak LP duality, for any
prices :math:`y \ge 0`, :math:`\sum_j c_j (\mu'^\top v_j - y^\top G' v_j - \mu'^\top p) \ge r`, so the instance lies in the
half-space of at least one corner. Half the squared distance from the data to the nearest of them,

.. math:: f(y) = \min_j \frac{(r - \hat\mu^\top (v_j - p) + y^\top \hat G v_j)_+^2}
                             {2 (\|v_j - p\|_{v_0}^2 + \sum_i y_i^2 \|v_j\|_{v_i}^2)},

is a lower bound on g over the cell: *for any* y, so an inexact choice of prices can only make the search longer, never
wrong. At a small cell around q the best prices give g(q) itself, and since q is a minimum the loss is quadratic in the
size of the cell. Cells that are not excluded are halved across the edge that loses most.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._arena import Arena, Size, rest_of
from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray, IntArray
from polyarm.geometry.lp import EMPTY, OPTIMAL
from polyarm.geometry.penalised import (
    PenalisedWork,
    carve_penalised,
    forget_basis,
    lp_floats,
    size_penalised,
    solve_penalised_lp,
)
from polyarm.statistics.joint import Evidence, witness_value
from polyarm.statistics.witnesses import DescentWork, carve_descent, improve_witness, size_descent
from polyarm.tolerances import CERTIFIED_MARGIN

# Outcomes of a search.
CERTIFIED = 1  # the statistic exceeds what was asked, for certain
WITNESS = 0  # a mix with a smaller value was found
UNRESOLVED = -1  # the node budget ran out

#: The most cells that wait to be examined.
_MAX_OPEN = 120
_PRICE_STEPS = 6
_HALVINGS = 30


class Corners(NamedTuple):
    """Points that are corners of cells, and all that the bound needs to know of them.

    `mixes` (capacity, K); `gaps` = r - mu.(v - p); `costs` (d, capacity) = G v; `mu_lengths` and `row_lengths`
    (d, capacity) are the squared norms of v - p and of v.
    """

    mixes: FloatArray
    gaps: FloatArray
    costs: FloatArray
    mu_lengths: FloatArray
    row_lengths: FloatArray


class Stack(NamedTuple):
    """Open cells: the indices of their K corners, the best prices known and the bound they give."""

    cells: IntArray
    prices: FloatArray
    bounds: FloatArray


class BranchWork(NamedTuple):
    """Scratch of the search."""

    corners: Corners
    stack: Stack
    cell: IntArray
    y: FloatArray
    trial_y: FloatArray
    point: FloatArray
    lengths: FloatArray
    scaled_means: FloatArray
    scaled_rows: FloatArray
    weights: FloatArray
    mix: FloatArray
    lp: PenalisedWork
    descent: DescentWork


def size_branch(n_arms: int, n_constraints: int, max_nodes: int) -> Size:
    """How much of an arena a search of up to `max_nodes` cells takes."""
    k, d, capacity = n_arms, n_constraints, n_arms + max_nodes
    lp, descent = size_penalised(k, d), size_descent(k, d)
    own = capacity * (k + 2 + 2 * d) + _MAX_OPEN * (d + 1) + (4 + d) * k + 3 * d
    return Size(own + lp.floats + descent.floats, (_MAX_OPEN + 1) * k + lp.ints + descent.ints)


@inlined_kernel
def _carve(n_arms: int, n_constraints: int, max_nodes: int, arena: Arena) -> BranchWork:
    """Carve the scratch of a search from an arena."""
    k, d, capacity = n_arms, n_constraints, n_arms + max_nodes
    f, at = arena.floats, capacity * k
    corners = Corners(
        mixes=f[0:at].reshape((capacity, k)),
        gaps=f[at : at + capacity],
        costs=f[at + capacity : at + (1 + d) * capacity].reshape((d, capacity)),
        mu_lengths=f[at + (1 + d) * capacity : at + (2 + d) * capacity],
        row_lengths=f[at + (2 + d) * capacity : at + (2 + 2 * d) * capacity].reshape((d, capacity)),
    )
    at += (2 + 2 * d) * capacity
    stack = Stack(
        cells=arena.ints[0 : _MAX_OPEN * k].reshape((_MAX_OPEN, k)),
        prices=f[at : at + _MAX_OPEN * d].reshape((_MAX_OPEN, d)),
        bounds=f[at + _MAX_OPEN * d : at + _MAX_OPEN * (d + 1)],
    )
    at += _MAX_OPEN * (d + 1)
    vectors = f[at : at + 4 * k].reshape((4, k))
    at += 4 * k
    rows = f[at : at + d * k].reshape((d, k))
    at += d * k
    after = rest_of(arena, at + 3 * d, (_MAX_OPEN + 1) * k)
    lp = carve_penalised(k, d, after)
    return BranchWork(
        corners=corners,
        stack=stack,
        cell=arena.ints[_MAX_OPEN * k : (_MAX_OPEN + 1) * k],
        y=f[at : at + d],
        trial_y=f[at + d : at + 2 * d],
        point=f[at + 2 * d : at + 3 * d],
        lengths=vectors[0],
        scaled_means=vectors[1],
        scaled_rows=rows,
        weights=vectors[2],
        mix=vectors[3],
        lp=lp,
        descent=carve_descent(k, d, rest_of(after, lp_floats(k, d), d + 1)),
    )


@kernel
def _measure_corner(evidence: Evidence, answer: FloatArray, r: float, j: int, corners: Corners) -> None:
    """Fill in what the bound needs to know of corner j."""
    mix = corners.mixes[j]
    gap = r
    length = 0.0
    for a in range(answer.size):
        x = mix[a] - answer[a]
        gap -= evidence.mu[a] * x
        length += x * x * evidence.mu_var[a]
    corners.gaps[j] = gap
    corners.mu_lengths[j] = length
    for i in range(evidence.known.size):
        cost = 0.0
        length = 0.0
        for a in range(answer.size):
            cost += evidence.rows[i, a] * mix[a]
            length += mix[a] * mix[a] * evidence.row_var[i, a]
        corners.costs[i, j] = cost
        corners.row_lengths[i, j] = length


@kernel
def _exclude(corners: Corners, cell: IntArray, y: FloatArray, lengths_out: FloatArray) -> float:
    """Distance from the data to the nearest half-space of the cell's corners (negative: inside one).

    Writes the length of each normal, in the order of the cell.
    """
    least = np.inf
    for k in range(cell.size):
        j = cell[k]
        violation = corners.gaps[j]
        length = corners.mu_lengths[j]
        for i in range(y.size):
            violation += corners.costs[i, j] * y[i]
            length += corners.row_lengths[i, j] * y[i] * y[i]
        lengths_out[k] = math.sqrt(max(length, 1e-200))
        least = min(least, violation / lengths_out[k])
    return least


@kernel
def _to_bound(distance: float) -> float:
    return 0.5 * distance * distance if distance > 0.0 else 0.0


@inlined_kernel
def _search_line(corners: Corners, cell: IntArray, distance: float, work: BranchWork) -> float:
    """Move `work.y` to the best of the points half, a quarter, ... of the way to `work.trial_y`; returns the gain.

    The distance is quasi-concave along the way, so once it has grown and falls again the best point is behind.
    """
    best, share, best_share = distance, 1.0, 0.0
    for _ in range(_HALVINGS):
        for i in range(work.y.size):
            work.point[i] = work.y[i] + share * (work.trial_y[i] - work.y[i])
        found = _exclude(corners, cell, work.point, work.lengths)
        if found > best:
            best, best_share = found, share
        elif best_share > 0.0:
            break
        share *= 0.5
    for i in range(work.y.size):
        work.y[i] += best_share * (work.trial_y[i] - work.y[i])
    _exclude(corners, cell, work.y, work.lengths)
    return best - distance


@inlined_kernel
def _price(evidence: Evidence, penalty: float, goal: float, distance: float, work: BranchWork) -> tuple[float, int]:
    """Improve `work.y` for `work.cell`, whose distance and lengths are given; returns the distance and a status.

    The smallest ratio violation/length is raised by linearising the lengths at y (a Newton step for fractional
    programs): each step is one linear program over the corners. Its solution, in `work.weights`, is the mix of corners
    that holds the bound down. Stops as soon as the goal is exceeded.
    """
    corners, cell = work.corners, work.cell
    d, n = work.y.size, cell.size
    status = OPTIMAL
    for _ in range(_PRICE_STEPS):
        ratio = max(distance, 0.0)
        for k in range(n):
            j = cell[k]
            scale = 1.0 / work.lengths[k]
            level = corners.gaps[j] - ratio * work.lengths[k]
            for i in range(d):
                slope = ratio * corners.row_lengths[i, j] * work.y[i] * scale
                level += slope * work.y[i]
                work.scaled_rows[i, k] = (corners.costs[i, j] - slope) * scale
            work.scaled_means[k] = -level * scale
        status = solve_penalised_lp(
            work.scaled_means, work.scaled_rows, evidence.known, penalty, work.lp, work.weights, work.trial_y
        )
        if status != OPTIMAL:
            break
        gain = _search_line(corners, cell, distance, work)
        distance += gain
        if _to_bound(distance) > goal or gain <= 1e-3 * abs(distance):
            break
    return distance, status


@inlined_kernel
def _write_mix(work: BranchWork) -> None:
    """Write the mix of corners that the last price step found hardest to exclude: a candidate witness."""
    total = 0.0
    for a in range(work.mix.size):
        work.mix[a] = 0.0
    for k in range(work.cell.size):
        weight = work.weights[k] / work.lengths[k]
        if weight > 0.0:
            total += weight
            for a in range(work.mix.size):
                work.mix[a] += weight * work.corners.mixes[work.cell[k], a]
    for a in range(work.mix.size):
        work.mix[a] /= total


@inlined_kernel
def _runner_up(work: BranchWork, most: int) -> int:
    """Return the corner, other than `most`, whose half-space is nearest to the data."""
    chosen, least = -1, np.inf
    for k in range(work.cell.size):
        j = work.cell[k]
        violation = work.corners.gaps[j]
        for i in range(work.y.size):
            violation += work.corners.costs[i, j] * work.y[i]
        if k != most and violation / work.lengths[k] < least:
            chosen, least = k, violation / work.lengths[k]
    return chosen


@inlined_kernel
def _choose_edge(evidence: Evidence, work: BranchWork) -> tuple[int, int]:
    """Return the two corners whose distance costs the bound most.

    For a mix c of corners the loss is about the sum over pairs of c_j c_k times their squared distance, in noise units.
    """
    first, second, largest = -1, -1, 0.0
    for k in range(work.cell.size):
        if work.weights[k] > 0.0:
            first = k if first < 0 else first
            for other in range(k):
                if work.weights[other] > 0.0:
                    length = 0.0
                    for a in range(work.mix.size):
                        x = work.corners.mixes[work.cell[k], a] - work.corners.mixes[work.cell[other], a]
                        noise = evidence.mu_var[a]
                        for i in range(work.y.size):
                            noise += work.y[i] * work.y[i] * evidence.row_var[i, a]
                        length += x * x * noise
                    # The LP weighs corners divided by their lengths.
                    loss = length * work.weights[k] * work.weights[other] / (work.lengths[k] * work.lengths[other])
                    if loss > largest:
                        first, second, largest = k, other, loss
    if second < 0:
        second = _runner_up(work, first)
    return first, second


@inlined_kernel
def _push(work: BranchWork, top: int, replaced: int, corner: int, bound: float) -> None:
    """Put the cell with one corner replaced on the stack."""
    for k in range(work.cell.size):
        work.stack.cells[top, k] = work.cell[k]
    work.stack.cells[top, replaced] = corner
    for i in range(work.y.size):
        work.stack.prices[top, i] = work.y[i]
    work.stack.bounds[top] = bound


@inlined_kernel
def _bound_child(work: BranchWork, replaced: int, corner: int, lower: float) -> float:
    """Bound of the cell with one corner replaced, at the parent's prices; never below the parent's."""
    held = work.cell[replaced]
    work.cell[replaced] = corner
    distance = _exclude(work.corners, work.cell, work.y, work.lengths)
    work.cell[replaced] = held
    return max(lower, _to_bound(distance))


@kernel
def search_witness(
    evidence: Evidence,
    answer: FloatArray,
    r: float,
    incumbent: float,
    accuracy: float,
    enough: float,
    penalty: float,
    max_nodes: int,
    arena: Arena,
    witness_out: FloatArray,
) -> tuple[int, int, float]:
    """Bound Z_0 from below: every cell is halved until its bound exceeds (1 - accuracy) times the incumbent.

    `incumbent` is the smallest witness value known (of `witness_out`, which is replaced by better ones), or a threshold
    to be exceeded. The search ends early with WITNESS once it finds a value of at most `enough` (0: never, unless nothing
    smaller is possible). Returns the outcome, the number of cells examined, and a lower bound on Z_0 (for WITNESS: the witness's value).
    """
    n_arms, d = answer.size, evidence.known.size
    work = _carve(n_arms, d, max_nodes, arena)
    corners, stack = work.corners, work.stack
    cut = (1.0 - accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
    for j in range(n_arms):
        for a in range(n_arms):
            corners.mixes[j, a] = 1.0 if a == j else 0.0
        _measure_corner(evidence, answer, r, j, corners)
        stack.cells[0, j] = j
    for i in range(d):
        stack.prices[0, i] = 0.01 * penalty  # not zero: without reward noise the normals would have no length
    stack.bounds[0] = 0.0
    n_corners, top, nodes = n_arms, 1, 0
    forget_basis(work.lp)
    forget_basis(work.descent.lp)
    while top > 0:
        top -= 1
        lower = stack.bounds[top]
        if lower > cut:
            continue
        if nodes >= max_nodes or top >= _MAX_OPEN - 2:
            return UNRESOLVED, nodes, _least_open(top + 1, stack.bounds)
        nodes += 1
        for k in range(n_arms):
            work.cell[k] = stack.cells[top, k]
        for i in range(d):
            work.y[i] = stack.prices[top, i]
        distance = _exclude(corners, work.cell, work.y, work.lengths)
        distance, status = _price(evidence, penalty, cut, distance, work)
        if status == EMPTY:
            continue  # no mix of this cell satisfies the known rows: no winner is in it
        if status != OPTIMAL:
            return UNRESOLVED, nodes, _least_open(top + 1, stack.bounds)
        lower = max(lower, _to_bound(distance))
        if lower > cut:
            continue
        _write_mix(work)
        found = witness_value(evidence, answer, work.mix, r)
        if found < 1.5 * incumbent:
            steps = 3 if enough > 0.0 else 20
            found = improve_witness(evidence, answer, r, penalty, steps, work.descent, work.mix)
        if found < incumbent:
            for a in range(n_arms):
                witness_out[a] = work.mix[a]
            incumbent = found
            cut = (1.0 - accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
        if found <= enough:
            return WITNESS, nodes, found
        first, second = _choose_edge(evidence, work)
        for a in range(n_arms):
            corners.mixes[n_corners, a] = 0.5 * (
                corners.mixes[work.cell[first], a] + corners.mixes[work.cell[second], a]
            )
        _measure_corner(evidence, answer, r, n_corners, corners)
        without_first = _bound_child(work, first, n_corners, lower)
        without_second = _bound_child(work, second, n_corners, lower)
        if without_first < without_second:
            _push(work, top, second, n_corners, without_second)
            _push(work, top + 1, first, n_corners, without_first)
        else:
            _push(work, top, first, n_corners, without_first)
            _push(work, top + 1, second, n_corners, without_second)
        top += 2
        n_corners += 1
    return CERTIFIED, nodes, (1.0 - accuracy) * incumbent


@kernel
def _least_open(top: int, bounds: FloatArray) -> float:
    """The lowest bound of an open cell: what is certain when a search is given up."""
    least = np.inf
    for k in range(top):
        least = min(least, bounds[k])
    return least
