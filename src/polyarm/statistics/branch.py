r"""Certified lower bound on the reward statistic Z_0 = min_q g(q), which is not convex in q.

The simplex of mixes is cut into cells, each the hull of K corners. Let an instance :math:`(\mu', G')` have a winner: a
mix :math:`q = \sum_j c_j v_j` of a cell that satisfies every row and beats the answer by r. By weak LP duality, for any
prices :math:`y \ge 0`, :math:`\sum_j c_j (\mu'^\top v_j - y^\top G' v_j - \mu'^\top p) \ge r`, so the instance lies in
the half-space :math:`H(v, y) = \{\mu'^\top v - y^\top G' v - \mu'^\top p \ge r\}` of at least one corner. A node of the
search is a cell with a list of such half-spaces that were assumed; for each corner of the cell, half the squared
distance from the data to the intersection of the list and the corner's own half-space,

.. math:: \max_{\lambda \ge 0} \lambda^\top h - \tfrac12 \lambda^\top Q \lambda, \qquad
          h_k = r - \hat\mu^\top (v_k - p) + y_k^\top \hat G v_k, \qquad
          Q_{kl} = \langle v_k - p, v_l - p \rangle_{v_0} + e + \sum_i y_{ki} y_{li} \langle v_k, v_l \rangle_{v_i},

and the least of them over the corners, is a lower bound on g over the node. It holds *for any* y and lambda, so inexact
inner solves can only make the search longer, never wrong. Where every row's part of g is at least kappa (see `joint`),
:math:`\sum_i (\sqrt{2\kappa} - s_i)_+^2/2` may be added, s_i being the v_i-norm of
:math:`\sum_k \lambda_k y_{ki} v_k`: for every x and s >= 0, :math:`\max\{x^2/2, \kappa\} \ge
s x - s^2/2 + (\sqrt{2\kappa} - s)_+^2/2`. A node that is not excluded is divided in one of two ways:
one child per corner that is not excluded, with that corner's half-space assumed; or the cell is halved across an edge.
The first is quick on some problems (integer costs, many nearly equal witnesses); the second on most, since around a
minimum q the best prices give g(q) itself and the loss is quadratic in the size of the cell. A search tries both.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._arena import Arena, Size, rest_of
from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray, IntArray
from polyarm.geometry.lp import ITERATION_LIMIT, OPTIMAL
from polyarm.geometry.penalised import (
    PenalisedWork,
    carve_penalised,
    forget_basis,
    lp_floats,
    size_penalised,
    solve_penalised_lp,
)
from polyarm.statistics.joint import FLOOR, SPREAD, Evidence, witness_value
from polyarm.statistics.witnesses import DescentWork, carve_descent, improve_witness, size_descent
from polyarm.tolerances import CERTIFIED_MARGIN, KNOWN_ROW

# Outcomes of a search.
CERTIFIED = 1  # the statistic exceeds what was asked, for certain
WITNESS = 0  # a mix with a smaller value was found
UNRESOLVED = -1  # the node budget ran out

#: The most nodes that wait to be examined.
_MAX_OPEN = 600
#: The most half-spaces that a node assumes.
_MAX_ASSUMED = 24
#: A search is made of attempts, by turns halving only and assuming first, with these shares of the node budget.
_ATTEMPTS = (0.125, 0.125, 0.375, 0.375)
_PRICE_STEPS = 6
#: The price of a known row may be this many times as high as that of an unknown one.
_KNOWN_PENALTY = 1e3
#: The least squared length of a normal, as a share of the smallest variance.
_LEAST_LENGTH = 1e-6
_HALVINGS = 30
#: Steps that look for the best multiplier under floors, and the least curvature (as a share) that they divide by.
_FLOOR_STEPS = 4
_LEAST_CURVATURE = 1e-3
_SWEEPS = 40
#: Larger statistics are not told apart: bounds must be able to exceed them.
_BEYOND_DOUBT = 1e12


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
    """Open nodes: the K corners of the cell, the assumed half-spaces and their multipliers, prices, and the bound."""

    cells: IntArray
    assumed: IntArray
    assumed_prices: FloatArray
    multipliers: FloatArray
    sizes: IntArray
    prices: FloatArray
    bounds: FloatArray


class Node(NamedTuple):
    """The node being examined.

    `gaps` and `costs` are those of the cell's corners as seen from the point of the assumed half-spaces nearest to the
    data; `h` and `Q` describe the half-spaces, with room for one more.
    """

    cell: IntArray
    assumed: IntArray
    assumed_prices: FloatArray
    multipliers: FloatArray
    trial: FloatArray
    h: FloatArray
    Q: FloatArray
    means: FloatArray
    rows: FloatArray
    gaps: FloatArray
    costs: FloatArray
    bounds: FloatArray
    child_multipliers: FloatArray


class BranchWork(NamedTuple):
    """Scratch of the search."""

    corners: Corners
    stack: Stack
    node: Node
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
    """How much of an arena a search of up to `max_nodes` nodes takes."""
    k, d, n, capacity = n_arms, n_constraints, _MAX_ASSUMED, n_arms + max_nodes
    lp, descent = size_penalised(k, d), size_descent(k, d)
    own = capacity * (k + 2 + 2 * d) + _MAX_OPEN * (n * (d + 1) + d + 1)
    own += n * d + 3 * n + n * n + k * (3 + 2 * d) + k * n + (4 + d) * k + 3 * d
    return Size(own + lp.floats + descent.floats, _MAX_OPEN * (k + n + 1) + k + n + lp.ints + descent.ints)


@inlined_kernel
def _carve_corners(k: int, d: int, capacity: int, f: FloatArray) -> Corners:
    at = capacity * k
    return Corners(
        mixes=f[0:at].reshape((capacity, k)),
        gaps=f[at : at + capacity],
        costs=f[at + capacity : at + (1 + d) * capacity].reshape((d, capacity)),
        mu_lengths=f[at + (1 + d) * capacity : at + (2 + d) * capacity],
        row_lengths=f[at + (2 + d) * capacity : at + (2 + 2 * d) * capacity].reshape((d, capacity)),
    )


@inlined_kernel
def _carve_stack(k: int, d: int, arena: Arena) -> Stack:
    m, n, f = _MAX_OPEN, _MAX_ASSUMED, arena.floats
    return Stack(
        cells=arena.ints[0 : m * k].reshape((m, k)),
        assumed=arena.ints[m * k : m * (k + n)].reshape((m, n)),
        assumed_prices=f[0 : m * n * d].reshape((m, n, d)),
        multipliers=f[m * n * d : m * n * (d + 1)].reshape((m, n)),
        sizes=arena.ints[m * (k + n) : m * (k + n + 1)],
        prices=f[m * n * (d + 1) : m * (n * (d + 1) + d)].reshape((m, d)),
        bounds=f[m * (n * (d + 1) + d) : m * (n * (d + 1) + d + 1)],
    )


@inlined_kernel
def _carve_node(k: int, d: int, arena: Arena) -> Node:
    n, f = _MAX_ASSUMED, arena.floats
    at = n * d + 3 * n + n * n
    return Node(
        cell=arena.ints[0:k],
        assumed=arena.ints[k : k + n],
        assumed_prices=f[0 : n * d].reshape((n, d)),
        multipliers=f[n * d : n * d + n],
        trial=f[n * d + n : n * d + 2 * n],
        h=f[n * d + 2 * n : n * d + 3 * n],
        Q=f[n * d + 3 * n : at].reshape((n, n)),
        means=f[at : at + k],
        rows=f[at + 3 * k : at + (3 + d) * k].reshape((d, k)),
        gaps=f[at + k : at + 2 * k],
        costs=f[at + (3 + d) * k : at + (3 + 2 * d) * k].reshape((d, k)),
        bounds=f[at + 2 * k : at + 3 * k],
        child_multipliers=f[at + (3 + 2 * d) * k : at + (3 + 2 * d) * k + k * n].reshape((k, n)),
    )


@inlined_kernel
def _carve(n_arms: int, n_constraints: int, max_nodes: int, arena: Arena) -> BranchWork:
    """Carve the scratch of a search from an arena."""
    k, d, n = n_arms, n_constraints, _MAX_ASSUMED
    capacity = n_arms + max_nodes
    behind_corners = rest_of(arena, capacity * (k + 2 + 2 * d), 0)
    behind_stack = rest_of(behind_corners, _MAX_OPEN * (n * (d + 1) + d + 1), _MAX_OPEN * (k + n + 1))
    own = rest_of(behind_stack, n * d + 3 * n + n * n + k * (3 + 2 * d) + k * n, k + n)
    f = own.floats
    vectors = f[0 : 4 * k].reshape((4, k))
    at = (4 + d) * k
    behind_own = rest_of(own, at + 3 * d, 0)
    return BranchWork(
        corners=_carve_corners(k, d, capacity, arena.floats),
        stack=_carve_stack(k, d, behind_corners),
        node=_carve_node(k, d, behind_stack),
        y=f[at : at + d],
        trial_y=f[at + d : at + 2 * d],
        point=f[at + 2 * d : at + 3 * d],
        lengths=vectors[0],
        scaled_means=vectors[1],
        scaled_rows=f[4 * k : at].reshape((d, k)),
        weights=vectors[2],
        mix=vectors[3],
        lp=carve_penalised(k, d, behind_own),
        descent=carve_descent(k, d, rest_of(behind_own, lp_floats(k, d), d + 1)),
    )


@kernel
def _measure_corner(evidence: Evidence, answer: FloatArray, r: float, j: int, corners: Corners) -> None:
    """Fill in what the bound needs to know of corner j."""
    mix = corners.mixes[j]
    gap = r
    length = evidence.extras[SPREAD]
    smallest = np.inf
    for a in range(answer.size):
        x = mix[a] - answer[a]
        gap -= evidence.mu[a] * x
        length += x * x * evidence.mu_var[a]
        smallest = min(smallest, evidence.mu_var[a])
    corners.gaps[j] = gap
    # A corner at the answer itself has no length and would swamp the others; more length only weakens the bound.
    corners.mu_lengths[j] = max(length, _LEAST_LENGTH * smallest)
    for i in range(evidence.known.size):
        cost = 0.0
        length = 0.0
        for a in range(answer.size):
            cost += evidence.rows[i, a] * mix[a]
            length += mix[a] * mix[a] * evidence.row_var[i, a]
        # Witnesses may break a known row by its tolerance, so the bound must hold for them, too.
        corners.costs[i, j] = cost - KNOWN_ROW if evidence.known[i] else cost
        corners.row_lengths[i, j] = length


@kernel
def _product(
    evidence: Evidence, answer: FloatArray, v: FloatArray, y: FloatArray, u: FloatArray, z: FloatArray
) -> float:
    """Inner product of the normals of H(v, y) and H(u, z): an entry of Q."""
    total = evidence.extras[SPREAD]
    for a in range(answer.size):
        total += (v[a] - answer[a]) * (u[a] - answer[a]) * evidence.mu_var[a]
        both = v[a] * u[a]
        if both != 0.0:
            for i in range(y.size):
                total += y[i] * z[i] * both * evidence.row_var[i, a]
    return total


@kernel
def _ascend(h: FloatArray, Q: FloatArray, size: int, goal: float, multipliers: FloatArray) -> float:
    """Raise the dual by coordinate steps, the newest half-space first; stops beyond the goal. Returns a valid bound."""
    value = _dual_value(h, Q, size, multipliers)
    for _ in range(_SWEEPS):
        change = 0.0
        for back in range(size):
            k = size - 1 - back
            slope = h[k]
            for other in range(size):
                slope -= Q[k, other] * multipliers[other]
            step = max(multipliers[k] + slope / Q[k, k], 0.0) - multipliers[k]
            if step != 0.0:
                multipliers[k] += step
                change += step * (slope - 0.5 * step * Q[k, k])
        value += change
        if value > goal or change < 1e-6 * abs(goal):
            break
    # Once more from scratch: the sum of gains carries the round-off of every step.
    return _dual_value(h, Q, size, multipliers)


@kernel
def _dual_value(h: FloatArray, Q: FloatArray, size: int, multipliers: FloatArray) -> float:
    value = 0.0
    for k in range(size):
        gain = h[k]
        for other in range(size):
            gain -= 0.5 * Q[k, other] * multipliers[other]
        value += multipliers[k] * gain
    return value


@kernel
def _load_node(
    evidence: Evidence, answer: FloatArray, r: float, place: int, corners: Corners, stack: Stack, node: Node
) -> int:
    """Take a node from the stack and look at its cell from the nearest point of its half-spaces; returns how many."""
    d, n_arms = evidence.rows.shape
    size = stack.sizes[place]
    for k in range(n_arms):
        node.cell[k] = stack.cells[place, k]
    if size > 0:
        for a in range(n_arms):
            node.means[a] = evidence.mu[a]
            for i in range(d):
                node.rows[i, a] = evidence.rows[i, a]
    common = 0.0  # how far the data moved in the direction that all half-spaces share
    for k in range(size):
        j = stack.assumed[place, k]
        step = stack.multipliers[place, k]
        common += step * evidence.extras[SPREAD]
        node.assumed[k] = j
        node.multipliers[k] = step
        node.h[k] = corners.gaps[j]
        for i in range(d):
            node.assumed_prices[k, i] = stack.assumed_prices[place, k, i]
            node.h[k] += corners.costs[i, j] * node.assumed_prices[k, i]
        for a in range(n_arms):
            node.means[a] += step * (corners.mixes[j, a] - answer[a]) * evidence.mu_var[a]
            for i in range(d):
                node.rows[i, a] -= step * node.assumed_prices[k, i] * corners.mixes[j, a] * evidence.row_var[i, a]
        for other in range(k + 1):
            product = _product(
                evidence,
                answer,
                corners.mixes[j],
                node.assumed_prices[k],
                corners.mixes[node.assumed[other]],
                node.assumed_prices[other],
            )
            node.Q[k, other] = product
            node.Q[other, k] = product
    for k in range(n_arms):
        if size > 0:
            _look_at_corner(evidence, answer, r - common, k, corners, node)
        else:
            node.gaps[k] = corners.gaps[node.cell[k]]
            for i in range(d):
                node.costs[i, k] = corners.costs[i, node.cell[k]]
    return size


@kernel
def _look_at_corner(evidence: Evidence, answer: FloatArray, r: float, k: int, corners: Corners, node: Node) -> None:
    """Write gap and costs of the cell's corner k as seen from the node's moved data."""
    j = node.cell[k]
    gap = r
    for i in range(node.costs.shape[0]):
        node.costs[i, k] = -KNOWN_ROW if evidence.known[i] else 0.0
    for a in range(answer.size):
        share = corners.mixes[j, a]
        gap -= node.means[a] * (share - answer[a])
        if share != 0.0:
            for i in range(node.costs.shape[0]):
                node.costs[i, k] += node.rows[i, a] * share
    node.gaps[k] = gap


@kernel
def _exclude(corners: Corners, node: Node, y: FloatArray, lengths_out: FloatArray) -> float:
    """Distance from the moved data to the nearest half-space of the cell's corners (negative: inside one).

    Writes the length of each normal, in the order of the cell.
    """
    least = np.inf
    for k in range(node.cell.size):
        j = node.cell[k]
        violation = node.gaps[k]
        length = corners.mu_lengths[j]
        for i in range(y.size):
            violation += node.costs[i, k] * y[i]
            length += corners.row_lengths[i, j] * y[i] * y[i]
        lengths_out[k] = math.sqrt(max(length, 1e-200))
        if not violation / lengths_out[k] >= least:  # so that what is no number is not passed over
            least = violation / lengths_out[k]
    return least


@inlined_kernel
def _search_line(distance: float, work: BranchWork) -> float:
    """Move `work.y` to the best of the points all, half, a quarter ... of the way to `work.trial_y`; returns the gain.

    The distance is quasi-concave along the way, so once it has grown and falls again the best point is behind.
    """
    best, share, best_share = distance, 1.0, 0.0
    for _ in range(_HALVINGS):
        for i in range(work.y.size):
            work.point[i] = work.y[i] + share * (work.trial_y[i] - work.y[i])
        found = _exclude(work.corners, work.node, work.point, work.lengths)
        if found > best:
            best, best_share = found, share
        elif best_share > 0.0:
            break
        share *= 0.5
    for i in range(work.y.size):
        work.y[i] += best_share * (work.trial_y[i] - work.y[i])
    _exclude(work.corners, work.node, work.y, work.lengths)
    return best - distance


@inlined_kernel
def _price(evidence: Evidence, penalty: float, work: BranchWork) -> int:
    """Improve `work.y` for the node; returns the status of the linear programs.

    The smallest ratio violation/length is raised by linearising the lengths at y (a Newton step for fractional
    programs): each step is one linear program over the corners. Its solution, in `work.weights`, is the mix of corners
    that holds the bound down.
    """
    corners, node = work.corners, work.node
    d, n = work.y.size, node.cell.size
    status = OPTIMAL
    distance = _exclude(corners, node, work.y, work.lengths)
    for _ in range(_PRICE_STEPS):
        ratio = max(distance, 0.0)
        for k in range(n):
            j = node.cell[k]
            scale = 1.0 / work.lengths[k]
            level = node.gaps[k] - ratio * work.lengths[k]
            for i in range(d):
                slope = ratio * corners.row_lengths[i, j] * work.y[i] * scale
                level += slope * work.y[i]
                work.scaled_rows[i, k] = (node.costs[i, k] - slope) * scale
            work.scaled_means[k] = -level * scale
        status = solve_penalised_lp(
            work.scaled_means,
            work.scaled_rows,
            evidence.known,
            penalty,
            _KNOWN_PENALTY * penalty,
            work.lp,
            work.weights,
            work.trial_y,
        )
        if status != OPTIMAL:
            break
        gain = _search_line(distance, work)
        distance += gain
        if gain <= 1e-3 * abs(distance):
            break
    return ITERATION_LIMIT if math.isnan(distance) else status


@inlined_kernel
def _write_mix(work: BranchWork) -> None:
    """Write the mix of corners that the last price step found hardest to exclude: a candidate witness."""
    total = 0.0
    for a in range(work.mix.size):
        work.mix[a] = 0.0
    for k in range(work.node.cell.size):
        weight = work.weights[k] / work.lengths[k]
        if weight > 0.0:
            total += weight
            for a in range(work.mix.size):
                work.mix[a] += weight * work.corners.mixes[work.node.cell[k], a]
    for a in range(work.mix.size):
        work.mix[a] /= total


@kernel
def _bound_alone(
    evidence: Evidence, h: float, length: float, y: FloatArray, row_lengths: FloatArray, j: int
) -> tuple[float, float]:
    """Bound by the one half-space H(v_j, y), h from the data with a normal of squared length `length`; its multiplier.

    Without floors the best multiplier is h / length. With them the bound is concave in it and piecewise quadratic: a
    few steps find the piece.
    """
    multiplier = max(h, 0.0) / length
    bound = multiplier * h - 0.5 * multiplier * multiplier * length
    floor = math.sqrt(2.0 * evidence.extras[FLOOR])
    if floor == 0.0:
        return bound, multiplier
    best, best_multiplier, trial = -np.inf, 0.0, multiplier
    for _ in range(_FLOOR_STEPS):
        slope, curvature = h, length
        bound = trial * h - 0.5 * trial * trial * length
        for i in range(y.size):
            if not evidence.known[i]:
                norm = y[i] * math.sqrt(row_lengths[i, j])
                missing = floor - trial * norm
                if missing > 0.0:
                    bound += 0.5 * missing * missing
                    slope -= floor * norm
                    curvature -= norm * norm
        if bound > best:
            best, best_multiplier = bound, trial
        trial = max(slope, 0.0) / max(curvature, _LEAST_CURVATURE * length)
    return best, best_multiplier


@kernel
def _add_floors(evidence: Evidence, j: int, y: FloatArray, size: int, corners: Corners, node: Node) -> float:
    """What the least value of every unknown row's part adds to a bound with the multipliers `node.trial`."""
    floor = math.sqrt(2.0 * evidence.extras[FLOOR])
    if floor == 0.0:
        return 0.0
    total = 0.0
    for i in range(y.size):
        if not evidence.known[i]:
            square = 0.0
            for a in range(evidence.mu.size):
                row = node.trial[size] * y[i] * corners.mixes[j, a]
                for k in range(size):
                    row += node.trial[k] * node.assumed_prices[k, i] * corners.mixes[node.assumed[k], a]
                square += row * row * evidence.row_var[i, a]
            missing = max(floor - math.sqrt(square), 0.0)
            total += 0.5 * missing * missing
    return total


@kernel
def _bound_corner(
    evidence: Evidence, answer: FloatArray, j: int, y: FloatArray, size: int, cut: float, corners: Corners, node: Node
) -> float:
    """Bound of the node with the half-space H(v_j, y) assumed as well; its multipliers go to `node.trial`."""
    h, length = corners.gaps[j], corners.mu_lengths[j]
    for i in range(y.size):
        h += corners.costs[i, j] * y[i]
        length += corners.row_lengths[i, j] * y[i] * y[i]
    length = max(length, 1e-200)
    bound, alone = _bound_alone(evidence, h, length, y, corners.row_lengths, j)
    for k in range(size):
        node.trial[k] = node.multipliers[k]
    node.trial[size] = 0.0
    if size == 0:
        node.trial[0] = alone
    elif bound <= cut:
        node.h[size] = h
        node.Q[size, size] = length
        for k in range(size):
            product = _product(
                evidence, answer, corners.mixes[j], y, corners.mixes[node.assumed[k]], node.assumed_prices[k]
            )
            node.Q[k, size] = product
            node.Q[size, k] = product
        together = _ascend(node.h, node.Q, size + 1, cut, node.trial)
        bound = max(bound, together + _add_floors(evidence, j, y, size, corners, node))
    return bound if bound >= 0.0 else 0.0  # what is no number bounds nothing


@kernel
def _bound_corners(
    evidence: Evidence,
    answer: FloatArray,
    y: FloatArray,
    lengths: FloatArray,
    size: int,
    cut: float,
    corners: Corners,
    node: Node,
) -> float:
    """Write the bound and multipliers of every corner of the cell; returns the least bound."""
    least = np.inf
    for k in range(node.cell.size):
        if size == 0:
            violation = node.gaps[k]
            for i in range(y.size):
                violation += node.costs[i, k] * y[i]
            length = lengths[k] * lengths[k]
            bound, alone = _bound_alone(evidence, violation, length, y, corners.row_lengths, node.cell[k])
            node.bounds[k] = bound if bound >= 0.0 else 0.0
            node.child_multipliers[k, 0] = alone
        else:
            node.bounds[k] = _bound_corner(evidence, answer, node.cell[k], y, size, cut, corners, node)
            for other in range(size + 1):
                node.child_multipliers[k, other] = node.trial[other]
        least = min(least, node.bounds[k])
    return least


@inlined_kernel
def _drop_prices(evidence: Evidence, answer: FloatArray, least: float, cut: float, work: BranchWork) -> float:
    """Set prices to zero where that raises the least bound of a cell; returns it.

    A row whose part of g is at its floor is best left without a price: the price loses what the floor gives for free.
    """
    for i in range(work.y.size):
        held = work.y[i]
        if least <= cut and held > 0.0 and not evidence.known[i]:
            work.y[i] = 0.0
            _exclude(work.corners, work.node, work.y, work.lengths)
            found = _bound_corners(evidence, answer, work.y, work.lengths, 0, cut, work.corners, work.node)
            if found > least:
                least = found
            else:
                work.y[i] = held
                _exclude(work.corners, work.node, work.y, work.lengths)
                _bound_corners(evidence, answer, work.y, work.lengths, 0, cut, work.corners, work.node)
    return least


@inlined_kernel
def _push(top: int, size: int, bound: float, work: BranchWork) -> None:
    """Put the node on the stack with this many of its half-spaces and the current prices."""
    node, stack = work.node, work.stack
    for k in range(node.cell.size):
        stack.cells[top, k] = node.cell[k]
    for k in range(size):
        stack.assumed[top, k] = node.assumed[k]
        stack.multipliers[top, k] = node.multipliers[k]
        for i in range(work.y.size):
            stack.assumed_prices[top, k, i] = node.assumed_prices[k, i]
    for i in range(work.y.size):
        stack.prices[top, i] = work.y[i]
    stack.sizes[top] = size
    stack.bounds[top] = bound


@inlined_kernel
def _assume_corners(top: int, size: int, lower: float, cut: float, work: BranchWork) -> int:
    """Push one child per corner that remains, the lowest bound last; returns the new height of the stack."""
    node = work.node
    while True:
        chosen = -1
        for k in range(node.cell.size):
            if node.bounds[k] <= cut and (chosen < 0 or node.bounds[k] > node.bounds[chosen]):
                chosen = k
        if chosen < 0:
            return top
        _push(top, size, max(node.bounds[chosen], lower), work)
        stack = work.stack
        stack.assumed[top, size] = node.cell[chosen]
        for k in range(size + 1):
            stack.multipliers[top, k] = node.child_multipliers[chosen, k]
        for i in range(work.y.size):
            stack.assumed_prices[top, size, i] = work.y[i]
        stack.sizes[top] = size + 1
        node.bounds[chosen] = np.nan  # taken: no comparison holds any more
        top += 1


@inlined_kernel
def _choose_edge(evidence: Evidence, work: BranchWork) -> tuple[int, int]:
    """Return the two corners whose distance costs the bound most.

    For a mix c of corners the loss is about the sum over pairs of c_j c_k times their squared distance, in noise units.
    If only one corner matters, the other is the one with the next lowest bound.
    """
    node, corners = work.node, work.corners
    first, second, largest = -1, -1, 0.0
    for k in range(node.cell.size):
        if work.weights[k] > 0.0:
            first = k if first < 0 else first
            for other in range(k):
                if work.weights[other] > 0.0:
                    length = 0.0
                    for a in range(work.mix.size):
                        x = corners.mixes[node.cell[k], a] - corners.mixes[node.cell[other], a]
                        if x != 0.0:
                            noise = evidence.mu_var[a]
                            for i in range(work.y.size):
                                noise += work.y[i] * work.y[i] * evidence.row_var[i, a]
                            length += x * x * noise
                    # The LP weighs corners divided by their lengths.
                    loss = length * work.weights[k] * work.weights[other] / (work.lengths[k] * work.lengths[other])
                    if loss > largest:
                        first, second, largest = k, other, loss
    if second < 0:
        for k in range(node.cell.size):
            if k != first and (second < 0 or node.bounds[k] < node.bounds[second]):
                second = k
    return first, second


@inlined_kernel
def _halve_cell(
    evidence: Evidence,
    answer: FloatArray,
    r: float,
    top: int,
    size: int,
    lower: float,
    cut: float,
    middle: int,
    work: BranchWork,
) -> int:
    """Push the two halves of the cell, divided at the middle of an edge (the new corner), the lower bound last."""
    node, corners = work.node, work.corners
    first, second = _choose_edge(evidence, work)
    for a in range(answer.size):
        corners.mixes[middle, a] = 0.5 * (corners.mixes[node.cell[first], a] + corners.mixes[node.cell[second], a])
    _measure_corner(evidence, answer, r, middle, corners)
    new = _bound_corner(evidence, answer, middle, work.y, size, cut, corners, node)
    without_first, without_second = new, new
    for k in range(node.cell.size):
        if k != first:
            without_first = min(without_first, node.bounds[k])
        if k != second:
            without_second = min(without_second, node.bounds[k])
    if without_first < without_second:
        replaced, last = second, first
        bound, last_bound = without_second, without_first
    else:
        replaced, last = first, second
        bound, last_bound = without_first, without_second
    _push(top, size, max(bound, lower), work)
    work.stack.cells[top, replaced] = middle
    _push(top + 1, size, max(last_bound, lower), work)
    work.stack.cells[top + 1, last] = middle
    return top + 2


@kernel
def _attempt(
    evidence: Evidence,
    answer: FloatArray,
    r: float,
    incumbent: float,
    accuracy: float,
    enough: float,
    penalty: float,
    assuming: bool,
    max_nodes: int,
    arena: Arena,
    witness_out: FloatArray,
) -> tuple[int, int, float, float]:
    """One search; `assuming`: divide nodes by their corners as long as there is room, otherwise by halving only.

    Returns the outcome, the nodes examined, the lower bound and the incumbent.
    """
    n_arms, d = answer.size, evidence.known.size
    work = _carve(n_arms, d, max_nodes, arena)
    corners, stack, node = work.corners, work.stack, work.node
    cut = (1.0 - accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
    for j in range(n_arms):
        for a in range(n_arms):
            corners.mixes[j, a] = 1.0 if a == j else 0.0
        _measure_corner(evidence, answer, r, j, corners)
        stack.cells[0, j] = j
    for i in range(d):
        stack.prices[0, i] = 0.01 * penalty  # not zero: without reward noise the normals would have no length
    stack.sizes[0] = 0
    stack.bounds[0] = 0.0
    n_corners, top, nodes = n_arms, 1, 0
    forget_basis(work.lp)
    forget_basis(work.descent.lp)
    while top > 0:
        top -= 1
        lower = stack.bounds[top]
        if lower > cut:
            continue
        if nodes >= max_nodes or top >= _MAX_OPEN - n_arms - 2:
            return UNRESOLVED, nodes, _least_open(top + 1, stack.bounds), incumbent
        nodes += 1
        size = _load_node(evidence, answer, r, top, corners, stack, node)
        for i in range(d):
            work.y[i] = stack.prices[top, i]
        if _price(evidence, penalty, work) != OPTIMAL:
            return UNRESOLVED, nodes, _least_open(top + 1, stack.bounds), incumbent
        bound = _bound_corners(evidence, answer, work.y, work.lengths, size, cut, corners, node)
        if size == 0 and evidence.extras[FLOOR] > 0.0:
            bound = _drop_prices(evidence, answer, bound, cut, work)
        lower = max(lower, bound)
        if lower > cut:
            continue
        _write_mix(work)
        found = witness_value(evidence, answer, work.mix, r)
        # An infinite value breaks a known row: the next best mix does not.
        if found < 1.5 * incumbent or found == np.inf:
            steps = 3 if enough > 0.0 else 20
            found = improve_witness(evidence, answer, r, penalty, steps, work.descent, work.mix)
        if found < incumbent or found <= enough:
            for a in range(n_arms):
                witness_out[a] = work.mix[a]
            incumbent = found
            cut = (1.0 - accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
        if found <= enough:
            return WITNESS, nodes, found, found
        if assuming and size < _MAX_ASSUMED - 1:
            top = _assume_corners(top, size, lower, cut, work)
        else:
            top = _halve_cell(evidence, answer, r, top, size, lower, cut, n_corners, work)
            n_corners += 1
    return CERTIFIED, nodes, (1.0 - accuracy) * incumbent, incumbent


@kernel
def _least_open(top: int, bounds: FloatArray) -> float:
    """The lowest bound of an open node: what is certain when a search is given up."""
    least = np.inf
    for k in range(top):
        least = min(least, bounds[k])
    return least


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
    """Bound Z_0 from below: nodes are divided until their bounds exceed (1 - accuracy) times the incumbent.

    `incumbent` is the smallest witness value known (of `witness_out`, which is replaced by better ones), or a threshold
    to be exceeded. The search ends early with WITNESS once it finds a value of at most `enough` (0: it never does,
    unless nothing smaller is possible). Returns the outcome, the number of nodes examined, and a lower bound on Z_0
    (for WITNESS: the witness's value).
    """
    nodes = 0
    lower = 0.0
    incumbent = min(incumbent, _BEYOND_DOUBT)
    for attempt in range(len(_ATTEMPTS)):
        budget = int(_ATTEMPTS[attempt] * max_nodes)
        outcome, examined, bound, incumbent = _attempt(
            evidence, answer, r, incumbent, accuracy, enough, penalty, attempt % 2 == 1, budget, arena, witness_out
        )
        nodes += examined
        if outcome != UNRESOLVED:
            return outcome, nodes, bound
        lower = max(lower, bound)
    return UNRESOLVED, nodes, lower
