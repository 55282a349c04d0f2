"""Vertices adjacent to the optimal one, read off its basis as sparse moves.

At a simple vertex each non-basic variable opens one edge. At a degenerate one (integer data, known
rows) some of those edges leave the set at once; the true edges are the extreme rays of a cone, found by
the double description method on the few basic variables that are zero.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.tolerances import PIVOT, PRIMAL

#: Returned by `find_neighbours` when a degenerate vertex has more edges than there is room for.
TOO_MANY = -1


@struct
class Moves:
    """Sparse differences v - policy: row k changes `arms[k, :sizes[k]]` by `changes[k, :sizes[k]]`."""

    arms: IntArray
    changes: FloatArray
    sizes: IntArray


class Move(NamedTuple):
    """One of several moves."""

    moves: Moves
    row: int


class Rivals(NamedTuple):
    """The first `size` of these moves."""

    moves: Moves
    size: int


@struct
class NeighbourWork:
    """Scratch of `find_neighbours`: the tableau, and the rays of the double description."""

    tableau: FloatArray
    zero_rows: IntArray
    ray_variables: IntArray
    ray_weights: FloatArray
    ray_sizes: IntArray
    ray_values: FloatArray


def make_moves(capacity: int, n_constraints: int) -> Moves:
    """Allocate room for `capacity` moves; a move touches at most 2 (1 + d) arms."""
    width = 2 * (n_constraints + 1)
    return Moves(
        arms=np.zeros((capacity, width), dtype=np.int64),
        changes=np.zeros((capacity, width)),
        sizes=np.zeros(capacity, dtype=np.int64),
    )


def neighbour_capacity(n_arms: int, n_constraints: int) -> int:
    """Room for every edge of a simple vertex, and a few times that for degenerate ones."""
    return 4 * (n_arms + n_constraints) + 32


def make_neighbour_work(n_arms: int, n_constraints: int, capacity: int = 0) -> NeighbourWork:
    """Allocate the scratch for polytopes of one shape and up to `capacity` neighbours."""
    m = n_constraints + 1
    # New rays are written behind the old ones before those are dropped: twice the room.
    rays = 2 * (capacity or neighbour_capacity(n_arms, n_constraints))
    return NeighbourWork(
        tableau=np.zeros((m, n_arms + n_constraints)),
        zero_rows=np.zeros(m, dtype=np.int64),
        ray_variables=np.zeros((rays, m), dtype=np.int64),
        ray_weights=np.zeros((rays, m)),
        ray_sizes=np.zeros(rays, dtype=np.int64),
        ray_values=np.zeros((rays, m)),
    )


@kernel
def _fill_tableau(columns: FloatArray, inverse: FloatArray, tableau_out: FloatArray) -> None:
    """Write every variable's column in basis coordinates."""
    m, n = columns.shape
    for i in range(m):
        for j in range(n):
            tableau_out[i, j] = inverse[i, 0]  # the first row of `columns` is all ones
        for k in range(1, m):
            factor = inverse[i, k]
            for j in range(n):
                tableau_out[i, j] += factor * columns[k, j]
            tableau_out[i, n + k - 1] = factor


@kernel
def _is_basic(variable: int, basis: IntArray) -> bool:
    for i in range(basis.size):
        if basis[i] == variable:
            return True
    return False


@kernel
def _add_change(arm: int, change: float, row: int, moves_out: Moves) -> None:
    """Append one entry to a move."""
    if change != 0.0:
        size = moves_out.sizes[row]
        moves_out.arms[row, size] = arm
        moves_out.changes[row, size] = change
        moves_out.sizes[row] = size + 1


@kernel
def _write_simple_moves(
    n_arms: int, basis: IntArray, inverse: FloatArray, tableau: FloatArray, moves_out: Moves
) -> int:
    """One move per non-basic variable of a simple vertex."""
    m = basis.size
    count = 0
    for j in range(tableau.shape[1]):
        if _is_basic(j, basis):
            continue
        length = np.inf
        for i in range(m):
            if tableau[i, j] > PIVOT:
                length = min(length, max(inverse[i, 0], 0.0) / tableau[i, j])
        if length == np.inf:
            continue  # only round-off: the set is bounded, so every true edge ends
        moves_out.sizes[count] = 0
        for i in range(m):
            if basis[i] < n_arms:
                _add_change(basis[i], -length * tableau[i, j], count, moves_out)
        if j < n_arms:
            _add_change(j, length, count, moves_out)
        count += 1
    return count


@kernel
def _support_within(ray: int, first: int, second: int, n_values: int, work: NeighbourWork) -> bool:
    """Tell whether a ray is positive only where one of two others is: then those two share no edge."""
    for k in range(work.ray_sizes[ray]):
        variable = work.ray_variables[ray, k]
        found = False
        for i in range(work.ray_sizes[first]):
            found = found or work.ray_variables[first, i] == variable
        for i in range(work.ray_sizes[second]):
            found = found or work.ray_variables[second, i] == variable
        if not found:
            return False
    for z in range(n_values):
        if (
            work.ray_values[ray, z] > PIVOT
            and work.ray_values[first, z] <= PIVOT
            and work.ray_values[second, z] <= PIVOT
        ):
            return False
    return True


@kernel
def _combine_rays(positive: int, negative: int, level: int, n_zero: int, new: int, work: NeighbourWork) -> bool:
    """Write to ray `new` the combination of two rays whose value at `level` vanishes; False if too wide."""
    up = work.ray_values[positive, level]
    down = -work.ray_values[negative, level]
    size = work.ray_sizes[positive]
    for k in range(size):
        work.ray_variables[new, k] = work.ray_variables[positive, k]
        work.ray_weights[new, k] = down * work.ray_weights[positive, k]
    for k in range(work.ray_sizes[negative]):
        variable = work.ray_variables[negative, k]
        slot = 0
        while slot < size and work.ray_variables[new, slot] != variable:
            slot += 1
        if slot == size:
            if size == work.ray_variables.shape[1]:
                return False
            work.ray_variables[new, slot] = variable
            work.ray_weights[new, slot] = 0.0
            size += 1
        work.ray_weights[new, slot] += up * work.ray_weights[negative, k]
    work.ray_sizes[new] = size
    largest = 0.0
    for k in range(size):
        largest = max(largest, work.ray_weights[new, k])
    for k in range(size):
        work.ray_weights[new, k] /= largest
    for z in range(n_zero):
        work.ray_values[new, z] = (down * work.ray_values[positive, z] + up * work.ray_values[negative, z]) / largest
    work.ray_values[new, level] = 0.0
    return True


@kernel
def _copy_ray(source: int, target: int, n_zero: int, work: NeighbourWork) -> None:
    work.ray_sizes[target] = work.ray_sizes[source]
    for k in range(work.ray_sizes[source]):
        work.ray_variables[target, k] = work.ray_variables[source, k]
        work.ray_weights[target, k] = work.ray_weights[source, k]
    for z in range(n_zero):
        work.ray_values[target, z] = work.ray_values[source, z]


@kernel
def _intersect_rays(count: int, level: int, n_zero: int, work: NeighbourWork) -> int:
    """One step of double description: keep the rays that do not lower zero row `level`."""
    total = count
    for p in range(count):
        if work.ray_values[p, level] <= PIVOT:
            continue
        for q in range(count):
            if work.ray_values[q, level] >= -PIVOT:
                continue
            adjacent = True
            for other in range(count):
                if other not in (p, q) and _support_within(other, p, q, level, work):
                    adjacent = False
                    break
            if adjacent:
                if total == work.ray_sizes.size or not _combine_rays(p, q, level, n_zero, total, work):
                    return TOO_MANY
                total += 1
    kept = 0
    for ray in range(total):
        if work.ray_values[ray, level] >= -PIVOT:
            if kept != ray:
                _copy_ray(ray, kept, n_zero, work)
            kept += 1
    return kept


@kernel
def _write_ray_moves(
    count: int, n_arms: int, basis: IntArray, inverse: FloatArray, work: NeighbourWork, moves_out: Moves
) -> int:
    """Follow each ray until a positive basic variable reaches zero."""
    m = basis.size
    if count > moves_out.sizes.size:
        return TOO_MANY
    written = 0
    for ray in range(count):
        length = np.inf
        for i in range(m):
            slope = 0.0
            for k in range(work.ray_sizes[ray]):
                slope += work.ray_weights[ray, k] * work.tableau[i, work.ray_variables[ray, k]]
            if inverse[i, 0] > PRIMAL and slope > PIVOT:
                length = min(length, inverse[i, 0] / slope)
        if length == np.inf:
            continue  # only round-off, as above
        moves_out.sizes[written] = 0
        for i in range(m):
            if basis[i] < n_arms:
                slope = 0.0
                for k in range(work.ray_sizes[ray]):
                    slope += work.ray_weights[ray, k] * work.tableau[i, work.ray_variables[ray, k]]
                _add_change(basis[i], -length * slope, written, moves_out)
        for k in range(work.ray_sizes[ray]):
            if work.ray_variables[ray, k] < n_arms:
                _add_change(work.ray_variables[ray, k], length * work.ray_weights[ray, k], written, moves_out)
        written += 1
    return written


@kernel
def find_neighbours(
    columns: FloatArray, basis: IntArray, inverse: FloatArray, work: NeighbourWork, moves_out: Moves
) -> int:
    r"""Write the moves from the vertex of a basis to each adjacent vertex; return how many.

    With :math:`u_j = B^{-1} \text{column}_j`, the edge of non-basic j is
    :math:`x_B - \theta u_j,\ x_j = \theta` with the largest :math:`\theta` that keeps it feasible.

    Returns TOO_MANY when a degenerate vertex has more edges than `moves_out` or the scratch holds; use
    `find_outer_directions` then. A set of one point has no neighbours and returns 0.
    """
    n = columns.shape[1]
    m = basis.size
    _fill_tableau(columns, inverse, work.tableau)
    n_zero = 0
    for i in range(m):
        if inverse[i, 0] <= PRIMAL:
            work.zero_rows[n_zero] = i
            n_zero += 1
    if n_zero == 0:
        return _write_simple_moves(n, basis, inverse, work.tableau, moves_out)
    count = 0
    for j in range(work.tableau.shape[1]):
        if not _is_basic(j, basis):
            work.ray_variables[count, 0] = j
            work.ray_weights[count, 0] = 1.0
            work.ray_sizes[count] = 1
            for z in range(n_zero):
                work.ray_values[count, z] = -work.tableau[work.zero_rows[z], j]
            count += 1
    for level in range(n_zero):
        count = _intersect_rays(count, level, n_zero, work)
        if count == TOO_MANY:
            return TOO_MANY
    return _write_ray_moves(count, n, basis, inverse, work, moves_out)


@kernel
def find_outer_directions(
    columns: FloatArray, basis: IntArray, inverse: FloatArray, work: NeighbourWork, moves_out: Moves
) -> int:
    """Write one unit direction per non-basic variable, feasible or not; return how many.

    At a degenerate vertex these span a cone that contains the true one: what holds in each of these
    directions holds in every feasible one. Only for tests that do not depend on a move's length.
    """
    n = columns.shape[1]
    _fill_tableau(columns, inverse, work.tableau)
    count = 0
    for j in range(work.tableau.shape[1]):
        if not _is_basic(j, basis):
            moves_out.sizes[count] = 0
            for i in range(basis.size):
                if basis[i] < n:
                    _add_change(basis[i], -work.tableau[i, j], count, moves_out)
            if j < n:
                _add_change(j, 1.0, count, moves_out)
            count += 1
    return count
