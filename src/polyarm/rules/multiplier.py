r"""Lagrange multiplier of the relaxed allocation problem (paper Eq. 5-7, Theorem 4).

For a fixed allocation w, minimising :math:`D(w) - \ell^\top \tilde A w` over :math:`\ell \ge 0`,
:math:`\|\ell\|_1 \le D/\gamma` puts all mass on the most violated row, and is zero when none is violated.
Differs from paper: with gamma the slack at the policy the price is infinite whenever a row is tight there,
as it is at every mixed vertex; gamma is floored, and other choices of it are offered.
"""

import numpy as np

from polyarm._compile import inlined_kernel, kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.polytope.lp import OPTIMAL, LpWork, solve_lp
from polyarm.polytope.neighbours import Moves
from polyarm.round import Round
from polyarm.rules.base import RoundWork
from polyarm.tolerances import MIN_GAMMA

SLACK = 0
SLATER = 1
CENTROID = 2

#: Names of the choices of gamma, as settings.
GAMMA_CODES = {"slack": SLACK, "slater": SLATER, "centroid": CENTROID}


@struct
class MultiplierWork:
    """Scratch: the centroid, and a program with one more column for the Slater slack."""

    centroid: FloatArray
    lifted: FloatArray
    objective: FloatArray


def make_multiplier_work(n_arms: int, n_constraints: int) -> MultiplierWork:
    """Allocate the scratch for problems of one shape."""
    return MultiplierWork(
        centroid=np.zeros(n_arms),
        lifted=np.zeros((n_constraints + 1, n_arms + 1)),
        objective=np.zeros(n_arms + 1),
    )


@inlined_kernel
def _least_slack(columns: FloatArray, point: FloatArray) -> float:
    """Smallest slack -G_i x over the rows."""
    slack = np.inf
    for i in range(1, columns.shape[0]):
        total = 0.0
        for a in range(point.size):
            total += columns[i, a] * point[a]
        slack = min(slack, -total)
    return slack


@inlined_kernel
def _centroid_slack(
    columns: FloatArray, policy: FloatArray, moves: Moves, count: int, centroid_work: FloatArray
) -> float:
    """Smallest slack at the mean of the policy and its neighbours."""
    for a in range(policy.size):
        centroid_work[a] = policy[a]
    for row in range(count):
        for k in range(moves.sizes[row]):
            centroid_work[moves.arms[row, k]] += moves.changes[row, k] / (count + 1)
    return _least_slack(columns, centroid_work)


@kernel
def _slater_slack(columns: FloatArray, basis: IntArray, lp_work: LpWork, work: MultiplierWork) -> float:
    """Largest slack s that some policy has in every row at once: max s with G x + s <= 0."""
    m, n_arms = columns.shape
    for i in range(m):
        for a in range(n_arms):
            work.lifted[i, a] = columns[i, a]
        work.lifted[i, n_arms] = 0.0 if i == 0 else 1.0
    for a in range(n_arms):
        work.objective[a] = 0.0
    work.objective[n_arms] = 1.0
    if solve_lp(work.objective, work.lifted, basis, lp_work) != OPTIMAL:
        return 0.0
    for i in range(m):
        if basis[i] == n_arms:
            return max(lp_work.inverse[i, 0], 0.0)
    return 0.0


@kernel
def find_violated_row(columns: FloatArray, allocation: FloatArray) -> int:
    """Return the row (from 0) that an allocation violates most, or -1 when it violates none."""
    row = -1
    largest = 0.0
    for i in range(1, columns.shape[0]):
        total = 0.0
        for a in range(allocation.size):
            total += columns[i, a] * allocation[a]
        if total > largest:
            largest = total
            row = i - 1
    return row


@kernel
def compute_gamma(
    kind: int, columns: FloatArray, core: Round, slater_basis: IntArray, round_work: RoundWork, work: MultiplierWork
) -> float:
    """Slack that bounds the multiplier, floored: D / gamma is the price of the violated row."""
    if kind == SLACK:
        slack = _least_slack(columns, core.policy)
    elif kind == SLATER:
        slack = _slater_slack(columns, slater_basis, round_work.lp, work)
    else:
        slack = _centroid_slack(columns, core.policy, round_work.moves, core.now.n_moves, work.centroid)
    return max(slack, MIN_GAMMA)
