"""All vertices, by going through every support and every set of tight rows of matching size."""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.polytope.linear import eliminate_below, swap_pivot
from polyarm.tolerances import PRIMAL, TRUTH

#: More candidates than this are not walked: the neighbours are tested instead, with r left out (docs/settings.md).
MAX_CANDIDATES = 100_000


# A candidate is an integer array of shape (2, 2 + d). Its size s (0: none yet) stands in [SUPPORT, 0], then
# its s arms; the s - 1 rows to hold tight stand in row TIGHT from column 1 on.
SUPPORT = 0
TIGHT = 1


@struct
class VertexWork:
    """Scratch of `solve_candidate`; `values` receives the vertex on the candidate's support."""

    system: FloatArray
    values: FloatArray


def count_candidates(n_arms: int, n_constraints: int) -> int:
    """Return the number of candidates, an upper bound on the number of vertices."""
    return math.comb(n_arms + n_constraints, n_constraints + 1)


def make_candidate(n_constraints: int) -> IntArray:
    """Allocate a candidate that says "none"."""
    return np.zeros((2, n_constraints + 2), dtype=np.int64)


def make_vertex_work(n_constraints: int) -> VertexWork:
    """Allocate the scratch for polytopes of one shape."""
    m = n_constraints + 1
    return VertexWork(system=np.zeros((m, m + 1)), values=np.zeros(m))


@kernel
def _next_combination(candidate: IntArray, row: int, size: int, n: int) -> bool:
    """Advance candidate[row, 1:1 + size], increasing numbers below n, to the next combination, if any."""
    k = size
    while k > 0 and candidate[row, k] == n - size + k - 1:
        k -= 1
    if k == 0:
        return False
    candidate[row, k] += 1
    for i in range(k + 1, size + 1):
        candidate[row, i] = candidate[row, i - 1] + 1
    return True


@kernel
def next_candidate(n_arms: int, n_constraints: int, candidate: IntArray) -> bool:
    """Advance to the next candidate (from size 0: to the first); False after the last."""
    size = candidate[SUPPORT, 0]
    if size > 0:
        if _next_combination(candidate, TIGHT, size - 1, n_constraints):
            return True
        if _next_combination(candidate, SUPPORT, size, n_arms):
            for i in range(1, size):
                candidate[TIGHT, i] = i - 1
            return True
    size += 1
    if size > min(n_arms, n_constraints + 1):
        return False
    candidate[SUPPORT, 0] = size
    for i in range(1, size + 1):
        candidate[SUPPORT, i] = i - 1
        candidate[TIGHT, i] = i - 1
    return True


@kernel
def solve_candidate(columns: FloatArray, candidate: IntArray, work: VertexWork) -> bool:
    """Solve for the point of a candidate; True when it is a vertex of the set, then in `work.values`."""
    system = work.system
    size = candidate[SUPPORT, 0]
    for c in range(size):
        arm = candidate[SUPPORT, 1 + c]
        system[0, c] = columns[0, arm]
        for i in range(1, size):
            system[i, c] = columns[candidate[TIGHT, i] + 1, arm]
    for i in range(size):
        system[i, size] = 1.0 if i == 0 else 0.0
    for c in range(size):
        if not swap_pivot(system, c, size, size + 1):
            return False
        eliminate_below(system, c, size)
    for c in range(size - 1, -1, -1):
        total = system[c, size]
        for k in range(c + 1, size):
            total -= system[c, k] * work.values[k]
        work.values[c] = total / system[c, c]
        if work.values[c] < -PRIMAL:
            return False
    for i in range(1, columns.shape[0]):
        total = 0.0
        for c in range(size):
            total += columns[i, candidate[SUPPORT, 1 + c]] * work.values[c]
        if total > PRIMAL:
            return False
    return True


@kernel
def write_vertices(columns: FloatArray, candidate: IntArray, work: VertexWork, vertices_out: FloatArray) -> int:
    """Write every vertex (degenerate ones repeatedly) until `vertices_out` is full; return how many."""
    m, n = columns.shape
    count = 0
    candidate[SUPPORT, 0] = 0
    while count < vertices_out.shape[0] and next_candidate(n, m - 1, candidate):
        if solve_candidate(columns, candidate, work):
            for a in range(n):
                vertices_out[count, a] = 0.0
            for c in range(candidate[SUPPORT, 0]):
                vertices_out[count, candidate[SUPPORT, 1 + c]] = max(work.values[c], 0.0)
            count += 1
    return count


def enumerate_vertices(columns: FloatArray) -> FloatArray:
    """Return the distinct vertices of {simplex, G x <= 0}, shape (n_vertices, K)."""
    m, n = columns.shape
    room = count_candidates(n, m - 1)
    if room > MAX_CANDIDATES:
        raise ValueError(f"{room} candidate vertices for K={n}, d={m - 1}; at most {MAX_CANDIDATES} are walked")
    found = np.zeros((room, n))
    count = write_vertices(columns, make_candidate(m - 1), make_vertex_work(m - 1), found)
    _, first = np.unique(np.round(found[:count] / TRUTH), axis=0, return_index=True)
    distinct: FloatArray = found[np.sort(first)]
    return distinct
