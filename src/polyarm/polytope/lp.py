"""Linear programs on {x >= 0, first row = 1, other rows <= 0} by pivoting from a warm basis."""

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.polytope.linear import swap_pivot
from polyarm.tolerances import DUAL, INFEASIBLE, PIVOT, PRIMAL, TIE

OPTIMAL = 0
EMPTY = 1
ITERATION_LIMIT = 2

#: After this many pivots of the steepest reduced cost, Bland's rule takes over: it cannot cycle.
_GREEDY_PIVOTS = 60


@struct
class LpWork:
    """Scratch of `solve_lp`; `inverse` is left as the inverse of the final basis matrix."""

    inverse: FloatArray
    elimination: FloatArray
    prices: FloatArray
    reduced: FloatArray
    entering: FloatArray


def make_lp_work(n_columns: int, n_constraints: int) -> LpWork:
    """Allocate the scratch for programs of this many rows and at most this many columns."""
    m = n_constraints + 1
    return LpWork(
        inverse=np.zeros((m, m)),
        elimination=np.zeros((m, 2 * m)),
        prices=np.zeros(m),
        reduced=np.zeros(n_columns + n_constraints),
        entering=np.zeros(m),
    )


def make_basis(n_constraints: int) -> IntArray:
    """Allocate a basis that says "none yet"."""
    return np.full(n_constraints + 1, -1, dtype=np.int64)


@kernel
def invert_basis(columns: FloatArray, basis: IntArray, work: LpWork) -> bool:
    """Write the inverse of the basis matrix to `work.inverse`; False when it is singular.

    Variable j < K is column j; variable K + i is the slack of row i + 1 (a unit vector).
    """
    m, n = columns.shape
    table = work.elimination
    for c in range(m):
        j = basis[c]
        for i in range(m):
            table[i, c] = columns[i, j] if j < n else 0.0
            table[i, m + c] = 0.0
        if j >= n:
            table[j - n + 1, c] = 1.0
        table[c, m + c] = 1.0
    for c in range(m):
        if not swap_pivot(table, c, m, 2 * m):
            return False
        scale = 1.0 / table[c, c]
        for k in range(c, 2 * m):
            table[c, k] *= scale
        for i in range(m):
            factor = table[i, c]
            if i != c and factor != 0.0:
                for k in range(c, 2 * m):
                    table[i, k] -= factor * table[c, k]
    for i in range(m):
        for c in range(m):
            work.inverse[i, c] = table[i, m + c]
    return True


@kernel
def _pivot(row: int, variable: int, basis: IntArray, work: LpWork) -> None:
    """Let `variable`, whose column in basis coordinates is `work.entering`, replace the basic of `row`."""
    inverse, entering = work.inverse, work.entering
    m = basis.size
    scale = 1.0 / entering[row]
    for k in range(m):
        inverse[row, k] *= scale
    for i in range(m):
        if i != row and entering[i] != 0.0:
            for k in range(m):
                inverse[i, k] -= entering[i] * inverse[row, k]
    basis[row] = variable


@kernel
def _compute_entering(columns: FloatArray, variable: int, work: LpWork) -> None:
    """Write the column of `variable` in basis coordinates to `work.entering`."""
    m, n = columns.shape
    for i in range(m):
        if variable < n:
            total = 0.0
            for k in range(m):
                total += work.inverse[i, k] * columns[k, variable]
            work.entering[i] = total
        else:
            work.entering[i] = work.inverse[i, variable - n + 1]


@kernel
def _reduce_costs(columns: FloatArray, basis: IntArray, work: LpWork) -> None:
    """Subtract prices times columns from `work.reduced` (which holds the objective); exactly 0 for basics."""
    m, n = columns.shape
    for i in range(m):
        price = work.prices[i]
        for j in range(n):
            work.reduced[j] -= price * columns[i, j]
        if i > 0:
            work.reduced[n + i - 1] = -price
    for i in range(m):
        if basis[i] < n + m - 1:
            work.reduced[basis[i]] = 0.0


@kernel
def _choose_entering(n_variables: int, threshold: float, bland: bool, work: LpWork) -> int:
    """Return the variable of largest (Bland: first positive) reduced cost above the threshold, or -1."""
    chosen = -1
    largest = threshold
    for j in range(n_variables):
        if work.reduced[j] > largest:
            chosen = j
            if bland:
                break
            largest = work.reduced[j]
    return chosen


@kernel
def _longest_step(work: LpWork) -> float:
    """How far the entering variable may rise before a basic one falls below -TIE (Harris).

    A tolerance on the ratios themselves would let a variable that falls at rate 1e5 end at -1e-5.
    """
    longest = np.inf
    for i in range(work.entering.size):
        if work.entering[i] > PIVOT:
            longest = min(longest, (max(work.inverse[i, 0], 0.0) + TIE) / work.entering[i])
    return longest


@kernel
def _choose_leaving(bland: bool, basis: IntArray, work: LpWork) -> int:
    """Ratio test: of the rows that reach zero within the longest step, the largest pivot (Bland: lowest variable)."""
    longest = _longest_step(work)
    chosen = -1
    for i in range(basis.size):
        step = work.entering[i]
        if step > PIVOT and max(work.inverse[i, 0], 0.0) <= longest * step:
            better = chosen < 0
            if not better and bland:
                better = basis[i] < basis[chosen]
            elif not better:
                better = step > work.entering[chosen]
            if better:
                chosen = i
    return chosen


@kernel
def _restore_feasibility(columns: FloatArray, basis: IntArray, work: LpWork) -> int:
    """Phase one from any basis: one artificial variable absorbs all negative basics, then is driven out."""
    m, n = columns.shape
    artificial = n + m - 1
    home = 0
    for i in range(1, m):
        if work.inverse[i, 0] < work.inverse[home, 0]:
            home = i
    for i in range(m):
        work.entering[i] = -1.0 if work.inverse[i, 0] < 0.0 else 0.0
    _pivot(home, artificial, basis, work)
    for iteration in range(50 * (n + m)):
        bland = iteration >= _GREEDY_PIVOTS
        # Raising j lowers the artificial variable at the rate of j's entry in the artificial's row.
        for j in range(n):
            work.reduced[j] = 0.0
        for i in range(m):
            work.prices[i] = -work.inverse[home, i]
        _reduce_costs(columns, basis, work)
        entering = _choose_entering(n + m - 1, PIVOT, bland, work)
        if entering < 0:
            if work.inverse[home, 0] > INFEASIBLE:
                return EMPTY
            # The artificial is basic at zero: any non-zero entry of its row takes its place.
            entering = 0
            for j in range(n + m - 1):
                if abs(work.reduced[j]) > abs(work.reduced[entering]):
                    entering = j
            _compute_entering(columns, entering, work)
            _pivot(home, entering, basis, work)
            return OPTIMAL
        _compute_entering(columns, entering, work)
        leaving = _choose_leaving(bland, basis, work)
        # The artificial leaves as soon as it may, ties included: its row is never worse than the others.
        if leaving < 0 or work.inverse[home, 0] <= _longest_step(work) * work.entering[home]:
            leaving = home
        _pivot(leaving, entering, basis, work)
        if leaving == home:
            return OPTIMAL
    return ITERATION_LIMIT


@kernel
def _improve(objective: FloatArray, columns: FloatArray, basis: IntArray, work: LpWork) -> tuple[int, int]:
    """Phase two: primal simplex from a feasible basis; returns the status and the number of pivots."""
    m, n = columns.shape
    scale = 0.0
    for j in range(n):
        scale = max(scale, abs(objective[j]))
    iteration = 0
    for iteration in range(50 * (n + m)):
        bland = iteration >= _GREEDY_PIVOTS
        for k in range(m):
            total = 0.0
            for i in range(m):
                if basis[i] < n:
                    total += objective[basis[i]] * work.inverse[i, k]
            work.prices[k] = total
        for j in range(n):
            work.reduced[j] = objective[j]
        _reduce_costs(columns, basis, work)
        entering = _choose_entering(n + m - 1, DUAL * scale, bland, work)
        if entering < 0:
            return OPTIMAL, iteration
        _compute_entering(columns, entering, work)
        leaving = _choose_leaving(bland, basis, work)
        if leaving < 0:
            return OPTIMAL, iteration  # only round-off: the set is bounded, so every true ray is blocked
        _pivot(leaving, entering, basis, work)
    return ITERATION_LIMIT, iteration


@kernel
def _set_cold_basis(objective: FloatArray, columns: FloatArray, basis: IntArray) -> None:
    """Start from the best column of the equality row and all slacks: never singular."""
    best = -1
    for j in range(columns.shape[1]):
        if columns[0, j] != 0.0 and (best < 0 or objective[j] > objective[best]):
            best = j
    basis[0] = best
    for i in range(1, basis.size):
        basis[i] = columns.shape[1] + i - 1


@kernel
def _lowest(work: LpWork) -> float:
    """Return the lowest basic variable, or zero."""
    lowest = 0.0
    for i in range(work.inverse.shape[0]):
        lowest = min(lowest, work.inverse[i, 0])
    return lowest


@kernel
def _solve_from(objective: FloatArray, columns: FloatArray, basis: IntArray, work: LpWork) -> int:
    """Both phases from an inverted basis; OPTIMAL only if the final basis, freshly inverted, is feasible."""
    moved = _lowest(work) < -PRIMAL
    if moved:
        status = _restore_feasibility(columns, basis, work)
        if status != OPTIMAL:
            return status
    status, pivots = _improve(objective, columns, basis, work)
    if status == OPTIMAL and (moved or pivots > 0):
        feasible = invert_basis(columns, basis, work) and _lowest(work) >= -INFEASIBLE
        status = OPTIMAL if feasible else ITERATION_LIMIT
    return status


@kernel
def solve_lp(objective: FloatArray, columns: FloatArray, basis: IntArray, work: LpWork) -> int:
    r"""Maximise a linear objective over a polytope, starting from (and leaving) a basis.

    .. math:: \max_x c^\top x \quad\text{s.t.}\quad \text{columns}_0 x = 1,\ \text{columns}_{i} x \le 0,\ x \ge 0

    `columns` has shape (1 + d, n), `basis` (1 + d,); `basis[0] < 0` means no warm start. Returns OPTIMAL,
    EMPTY (no feasible point; the basis is forgotten) or ITERATION_LIMIT. On OPTIMAL, `work.inverse` is
    the inverse of the final basis, freshly computed, so that it depends on the basis and not on the path.
    Degenerate programs: Bland's rule after a number of greedy pivots.
    """
    warm = basis[0] >= 0 and invert_basis(columns, basis, work)
    status = _solve_from(objective, columns, basis, work) if warm else ITERATION_LIMIT
    if status != OPTIMAL:
        # No basis to start from, or an almost singular one, which spoils every update: start from one that is safe.
        _set_cold_basis(objective, columns, basis)
        status = ITERATION_LIMIT  # entries of 1e11 and more: even this basis has no usable inverse
        if invert_basis(columns, basis, work):
            status = _solve_from(objective, columns, basis, work)
    if status != OPTIMAL:
        basis[0] = -1
    return status


@kernel
def write_vertex(n_columns: int, basis: IntArray, inverse: FloatArray, vertex_out: FloatArray) -> None:
    """Write the vertex of a basis as a dense vector."""
    for a in range(n_columns):
        vertex_out[a] = 0.0
    for i in range(basis.size):
        if basis[i] < n_columns:
            vertex_out[basis[i]] = max(inverse[i, 0], 0.0)
