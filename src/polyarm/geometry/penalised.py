"""The penalised linear program: constraints that are estimated may be broken, at a price, so that it has an answer."""

from typing import NamedTuple

import numpy as np

from polyarm._arena import Arena, Size
from polyarm._compile import inlined_kernel, kernel
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.geometry.lp import OPTIMAL, LpWork, solve_lp, write_vertex


class PenalisedWork(NamedTuple):
    """Scratch of `solve_penalised_lp`; `basis` is the warm start, to be forgotten at the start of every step."""

    objective: FloatArray
    columns: FloatArray
    basis: IntArray
    vertex: FloatArray
    lp: LpWork


def size_penalised(n_arms: int, n_constraints: int) -> Size:
    """How much of an arena `carve_penalised` takes."""
    return Size(floats=lp_floats(n_arms, n_constraints), ints=n_constraints + 1)


@inlined_kernel
def lp_floats(n_arms: int, n_constraints: int) -> int:
    """How many floats `carve_penalised` takes; for kernels that carve what lies behind them."""
    n, m = n_arms + n_constraints, n_constraints + 1
    return (2 + m) * n + (n + m - 1) + m * (3 * m + 2)


@inlined_kernel
def carve_penalised(n_arms: int, n_constraints: int, arena: Arena) -> PenalisedWork:
    """Carve the scratch from the start of an arena; every constraint gets a column, used if the row is unknown."""
    n, m = n_arms + n_constraints, n_constraints + 1
    f = arena.floats
    at = (2 + m) * n  # where the scratch of the LP begins
    lp = LpWork(
        inverse=f[at : at + m * m].reshape((m, m)),
        elimination=f[at + m * m : at + 3 * m * m].reshape((m, 2 * m)),
        prices=f[at + 3 * m * m : at + 3 * m * m + m],
        reduced=f[at + 3 * m * m + 2 * m : at + 3 * m * m + 2 * m + n + m - 1],
        entering=f[at + 3 * m * m + m : at + 3 * m * m + 2 * m],
    )
    return PenalisedWork(
        objective=f[0:n],
        columns=f[2 * n : (2 + m) * n].reshape((m, n)),
        basis=arena.ints[0:m],
        vertex=f[n : 2 * n],
        lp=lp,
    )


@kernel
def forget_basis(work: PenalisedWork) -> None:
    """Start the next solve cold: what a step decides may not depend on what was solved before it."""
    work.basis[0] = -1


@kernel
def solve_penalised_lp(
    means: FloatArray,
    rows: FloatArray,
    known: BoolArray,
    penalty: float,
    known_penalty: float,
    work: PenalisedWork,
    mix_out: FloatArray,
    prices_out: FloatArray,
) -> int:
    r"""Maximise the reward less a penalty on what the rows exceed.

    .. math:: \max_{q \in \Delta,\ \xi \ge 0} \mu^\top q - Y \sum_i \xi_i \quad\text{s.t.}\quad
              G_i q \le \xi_i \text{ (unknown)},\ G_i q \le 0 \text{ (known)}

    Known rows hold exactly if `known_penalty` is infinite; otherwise they are penalised, too, at that price.
    `prices_out` (d,) are the multipliers of the rows, all >= 0, at most their penalty. Returns the status of
    `solve_lp`; anything but OPTIMAL leaves the outputs untouched. EMPTY: the known rows contradict each other.
    """
    d, n_arms = rows.shape
    columns, objective = work.columns, work.objective
    for a in range(n_arms):
        objective[a] = means[a]
        columns[0, a] = 1.0
        for i in range(d):
            columns[i + 1, a] = rows[i, a]
    for i in range(d):
        objective[n_arms + i] = -known_penalty if known[i] and known_penalty < np.inf else -penalty
        columns[0, n_arms + i] = 0.0
        for k in range(d):
            columns[k + 1, n_arms + i] = 0.0
        if not known[i] or known_penalty < np.inf:
            columns[i + 1, n_arms + i] = -1.0
    status = solve_lp(objective, columns, work.basis, work.lp)
    if status == OPTIMAL:
        write_vertex(n_arms + d, work.basis, work.lp.inverse, work.vertex)
        for a in range(n_arms):
            mix_out[a] = work.vertex[a]
        for i in range(d):
            prices_out[i] = max(work.lp.prices[i + 1], 0.0)
    return status
