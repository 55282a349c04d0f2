"""The penalised linear program: estimated constraints may be broken at a price, so that it always has an answer."""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.polytope.lp import OPTIMAL, LpWork, make_basis, make_lp_work, solve_lp, write_vertex


class Program(NamedTuple):
    """Maximise the mean reward, `means` (K,), over the mixes that satisfy `rows` (d, K), of which some are `known`."""

    means: FloatArray
    rows: FloatArray
    known: BoolArray


@struct
class PenalisedWork:
    """Scratch of `solve_penalised_lp`; `basis` is the warm start, to be forgotten at the start of every step."""

    objective: FloatArray
    columns: FloatArray
    basis: IntArray
    vertex: FloatArray
    lp: LpWork


def make_penalised_work(n_arms: int, n_constraints: int) -> PenalisedWork:
    """Allocate the scratch; every constraint gets a column, used if the row is unknown."""
    n, m = n_arms + n_constraints, n_constraints + 1
    return PenalisedWork(
        objective=np.zeros(n),
        columns=np.zeros((m, n)),
        basis=make_basis(n_constraints),
        vertex=np.zeros(n),
        lp=make_lp_work(n, n_constraints),
    )


@kernel
def forget_basis(work: PenalisedWork) -> None:
    """Start the next solve cold: a step's decision must not depend on what was solved before it."""
    work.basis[0] = -1


@kernel
def solve_penalised_lp(
    program: Program, penalty: float, work: PenalisedWork, mix_out: FloatArray, prices_out: FloatArray
) -> int:
    r"""Maximise the reward less a penalty on what the rows exceed.

    .. math:: \max_{q \in \Delta,\ \xi \ge 0} \mu^\top q - Y \sum_i \xi_i \quad\text{s.t.}\quad
              G_i q \le \xi_i \text{ (unknown)},\ G_i q \le 0 \text{ (known)}

    Known rows hold exactly. `prices_out` (d,) are the multipliers of the rows, all >= 0, at most their penalty.
    Returns the status of `solve_lp`; anything but OPTIMAL leaves the outputs untouched. EMPTY: the known rows
    contradict each other.
    """
    means, rows, known = program.means, program.rows, program.known
    d, n_arms = rows.shape
    columns, objective = work.columns, work.objective
    for a in range(n_arms):
        objective[a] = means[a]
        columns[0, a] = 1.0
        for i in range(d):
            columns[i + 1, a] = rows[i, a]
    for i in range(d):
        objective[n_arms + i] = -penalty
        columns[0, n_arms + i] = 0.0
        for k in range(d):
            columns[k + 1, n_arms + i] = 0.0
        if not known[i]:
            columns[i + 1, n_arms + i] = -1.0
    status = solve_lp(objective, columns, work.basis, work.lp)
    if status == OPTIMAL:
        write_vertex(n_arms + d, work.basis, work.lp.inverse, work.vertex)
        for a in range(n_arms):
            mix_out[a] = work.vertex[a]
        for i in range(d):
            prices_out[i] = max(work.lp.prices[i + 1], 0.0)
    return status
