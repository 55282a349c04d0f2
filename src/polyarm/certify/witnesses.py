"""Witnesses: mixes that would beat the answer. Improving one, and the pool that remembers the dangerous ones."""

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.certify.evidence import Evidence, witness_value
from polyarm.polytope.lp import OPTIMAL
from polyarm.polytope.penalised import PenalisedWork, Program, make_penalised_work, solve_penalised_lp

#: Witnesses closer than this (sum of absolute differences) are one.
_SAME_WITNESS = 0.01
#: A witness within this factor of the most dangerous one counts as in use.
_IN_USE = 1.5
_HALVINGS = 6


@struct
class DescentWork:
    """Scratch of `improve_witness`: the nearest instance where the witness wins, and its optimum."""

    means: FloatArray
    rows: FloatArray
    mix: FloatArray
    prices: FloatArray
    lp: PenalisedWork


def make_descent_work(n_arms: int, n_constraints: int) -> DescentWork:
    """Allocate the scratch."""
    k, d = n_arms, n_constraints
    return DescentWork(np.zeros(k), np.zeros((d, k)), np.zeros(k), np.zeros(d), make_penalised_work(k, d))


@kernel
def _write_nearest_instance(evidence: Evidence, q: FloatArray, work: DescentWork) -> None:
    """Write means and rows of the nearest instance in which q wins."""
    mu, mu_var, centre, terms = evidence.mu, evidence.mu_var, evidence.centre, evidence.terms
    rows, row_var, known = evidence.rows, evidence.row_var, evidence.known
    gap, spread = terms.tolerance, terms.spread
    for a in range(q.size):
        x = q[a] - centre[a]
        gap -= mu[a] * x
        spread += x * x * mu_var[a]
    push = gap / spread if gap > 0.0 and spread > 1e-300 else 0.0
    for a in range(q.size):
        work.means[a] = mu[a] + push * (q[a] - centre[a]) * mu_var[a]
    for i in range(known.size):
        excess, spread = 0.0, 0.0
        for a in range(q.size):
            excess += rows[i, a] * q[a]
            spread += q[a] * q[a] * row_var[i, a]
        push = excess / spread if excess > 0.0 and not known[i] else 0.0
        for a in range(q.size):
            work.rows[i, a] = rows[i, a] - push * q[a] * row_var[i, a]


@kernel
def improve_witness(evidence: Evidence, penalty: float, iterations: int, work: DescentWork, q: FloatArray) -> float:
    """Lower g(q) in place by a few monotone steps; returns its value.

    One step: the nearest instance in which q wins has an optimum of its own, which is at least as good a witness; if g
    does not fall there, it may at points between the two.
    """
    mix, nearest = work.mix, Program(work.means, work.rows, evidence.known)
    value = witness_value(evidence, q)
    for _ in range(iterations):
        _write_nearest_instance(evidence, q, work)
        status = solve_penalised_lp(nearest, penalty, work.lp, mix, work.prices)
        if status != OPTIMAL:
            break
        found = witness_value(evidence, mix)
        for _halving in range(_HALVINGS):
            if found < value:
                break
            for a in range(q.size):
                mix[a] = 0.5 * (q[a] + mix[a])
            found = witness_value(evidence, mix)
        if not found < value * (1.0 - 1e-7):
            break
        value = found
        for a in range(q.size):
            q[a] = mix[a]
    return value


@struct
class Pool:
    """Witnesses (capacity, K) met so far; `last_use` tells which to forget, `size` (1,) how many there are."""

    mixes: FloatArray
    last_use: IntArray
    size: IntArray


def make_pool(n_arms: int, n_constraints: int) -> Pool:
    """Allocate an empty pool with room for every single arm and some forty mixes."""
    capacity = 40 + n_arms + 4 * n_constraints
    return Pool(np.zeros((capacity, n_arms)), np.zeros(capacity, dtype=np.int64), np.zeros(1, dtype=np.int64))


@kernel
def add_witness(pool: Pool, q: FloatArray) -> None:
    """Remember a witness, in place of a near duplicate, or of the one unused for longest if the pool is full."""
    place = pool.size[0]
    latest = 0
    for k in range(pool.size[0]):
        latest = max(latest, pool.last_use[k])
        distance = 0.0
        for a in range(q.size):
            distance += abs(pool.mixes[k, a] - q[a])
        if place == pool.size[0] and distance < _SAME_WITNESS:
            place = k
    if place == pool.last_use.size:
        place = 0
        for k in range(pool.size[0]):
            if pool.last_use[k] < pool.last_use[place]:
                place = k
    elif place == pool.size[0]:
        pool.size[0] += 1
    pool.last_use[place] = latest + 1
    for a in range(q.size):
        pool.mixes[place, a] = q[a]


@kernel
def refresh_uses(evidence: Evidence, pool: Pool) -> None:
    """Mark the witnesses that are near the most dangerous one as used now."""
    least, _ = least_witness(evidence, pool)
    latest = 0
    for k in range(pool.size[0]):
        latest = max(latest, pool.last_use[k])
    for k in range(pool.size[0]):
        if witness_value(evidence, pool.mixes[k]) < _IN_USE * least:
            pool.last_use[k] = latest + 1


@kernel
def least_witness(evidence: Evidence, pool: Pool) -> tuple[float, int]:
    """Return the smallest g over the pool, an upper bound on Z_0, and which witness attains it (-1: none)."""
    least, best = np.inf, -1
    for k in range(pool.size[0]):
        value = witness_value(evidence, pool.mixes[k])
        if not value >= least:
            least, best = value, k
    return least, best
