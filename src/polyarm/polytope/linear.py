"""Small dense linear algebra shared by the kernels."""

import numpy as np

from polyarm._compile import inlined_kernel, kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.tolerances import SIMPLEX, SINGULAR


@struct
class NewtonWork:
    """Scratch of `find_newton_direction`; the caller fills `hessian` and `gradient`."""

    hessian: FloatArray
    gradient: FloatArray
    direction: FloatArray
    system: FloatArray
    fixed: IntArray


def make_newton_work(n: int) -> NewtonWork:
    """Allocate the scratch for n variables."""
    return NewtonWork(np.zeros((n, n)), np.zeros(n), np.zeros(n), np.zeros((n, n + 1)), np.zeros(n, dtype=np.int64))


@inlined_kernel
def swap_pivot(table: FloatArray, c: int, n_rows: int, n_columns: int) -> bool:
    """Swap the largest entry of column c, from row c on, into row c; False when all of them are about zero."""
    best = c
    for i in range(c + 1, n_rows):
        if abs(table[i, c]) > abs(table[best, c]):
            best = i
    if abs(table[best, c]) < SINGULAR:
        return False
    if best != c:
        for k in range(c, n_columns):
            held = table[c, k]
            table[c, k] = table[best, k]
            table[best, k] = held
    return True


@inlined_kernel
def eliminate_below(system: FloatArray, c: int, n: int) -> None:
    """Subtract row c from the rows below it, so that their entries in column c vanish; n equations."""
    for i in range(c + 1, n):
        factor = system[i, c] / system[c, c]
        if factor != 0.0:
            for k in range(c, n + 1):
                system[i, k] -= factor * system[c, k]


@kernel
def solve_definite(system: FloatArray, solution_out: FloatArray) -> None:
    """Solve a symmetric positive definite system in place.

    `system` has shape (n, n + 1): the matrix and, as last column, the right-hand side. Elimination without
    pivoting is stable for such matrices.
    """
    n = system.shape[0]
    for c in range(n):
        eliminate_below(system, c, n)
    for c in range(n - 1, -1, -1):
        total = system[c, n]
        for k in range(c + 1, n):
            total -= system[c, k] * solution_out[k]
        solution_out[c] = total / system[c, c]


@kernel
def find_newton_direction(position: FloatArray, ridge: float, work: NewtonWork) -> None:
    """Write an ascent direction for a concave function on {position >= 0} to `work.direction`.

    `work.hessian` is minus the Hessian (lower triangle), `work.gradient` the gradient. Variables at zero that the
    gradient, or the Newton step of the others, would push below stay fixed. `ridge` > 0 is added to the diagonal and
    keeps singular systems solvable.
    """
    n = position.size
    for i in range(n):
        work.fixed[i] = 1 if position[i] <= 0.0 and work.gradient[i] <= 0.0 else 0
    while True:
        for i in range(n):
            for k in range(n):
                if work.fixed[i] == 1 or work.fixed[k] == 1:
                    work.system[i, k] = 1.0 if i == k else 0.0
                else:
                    work.system[i, k] = work.hessian[max(i, k), min(i, k)] + (ridge if i == k else 0.0)
            work.system[i, n] = 0.0 if work.fixed[i] == 1 else work.gradient[i]
        solve_definite(work.system, work.direction)
        settled = True
        for i in range(n):
            if work.fixed[i] == 0 and position[i] <= 0.0 and work.direction[i] < 0.0:
                work.fixed[i] = 1
                settled = False
        if settled:
            return


@kernel
def is_mix(shares: FloatArray) -> bool:
    """Whether these are non-negative numbers that sum to one."""
    total = 0.0
    for a in range(shares.size):
        if not shares[a] >= 0.0:
            return False
        total += shares[a]
    return abs(total - 1.0) <= SIMPLEX


@kernel
def normalise(shares: FloatArray) -> None:
    """Divide shares by their sum, in place."""
    total = 0.0
    for a in range(shares.size):
        total += shares[a]
    for a in range(shares.size):
        shares[a] /= max(total, 1e-300)


@kernel
def drop_small_shares(shares: FloatArray, least: float, mix_out: FloatArray) -> None:
    """Write the mix without its shares below `least`."""
    for a in range(shares.size):
        mix_out[a] = shares[a] if shares[a] >= least else 0.0
    normalise(mix_out)
