"""Witnesses: mixes that would beat the answer. Improving one, and the pool that remembers the dangerous ones."""

from typing import NamedTuple

import numpy as np

from polyarm._arena import Arena, Size, rest_of
from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray, IntArray
from polyarm.geometry.lp import OPTIMAL
from polyarm.geometry.penalised import PenalisedWork, carve_penalised, size_penalised, solve_penalised_lp
from polyarm.statistics.joint import SPREAD, Evidence, witness_value

#: Witnesses closer than this (sum of absolute differences) are one.
_SAME_WITNESS = 0.01
#: A witness within this factor of the most dangerous one counts as in use.
_IN_USE = 1.5
_HALVINGS = 6


class DescentWork(NamedTuple):
    """Scratch of `improve_witness`: the nearest instance where the witness wins, and its optimum."""

    means: FloatArray
    rows: FloatArray
    mix: FloatArray
    prices: FloatArray
    lp: PenalisedWork


def size_descent(n_arms: int, n_constraints: int) -> Size:
    """How much of an arena `carve_descent` takes."""
    lp = size_penalised(n_arms, n_constraints)
    return Size(lp.floats + 2 * n_arms + n_constraints * (n_arms + 1), lp.ints)


@inlined_kernel
def carve_descent(n_arms: int, n_constraints: int, arena: Arena) -> DescentWork:
    """Carve the scratch from the start of an arena."""
    k, d = n_arms, n_constraints
    f = arena.floats
    at = 2 * k + d * k
    return DescentWork(
        means=f[0:k],
        rows=f[2 * k : at].reshape((d, k)),
        mix=f[k : 2 * k],
        prices=f[at : at + d],
        lp=carve_penalised(k, d, rest_of(arena, at + d, 0)),
    )


@kernel
def improve_witness(
    evidence: Evidence,
    answer: FloatArray,
    r: float,
    penalty: float,
    iterations: int,
    work: DescentWork,
    q: FloatArray,
) -> float:
    """Lower g(q) in place by a few monotone steps; returns its value.

    One step: the nearest instance in which q wins has an optimum of its own, which is at least as good a witness; if it
    is not better as seen from the data, points between the two may be.
    """
    d, n_arms = evidence.rows.shape
    value = witness_value(evidence, answer, q, r)
    for _ in range(iterations):
        gap, spread = r, evidence.extras[SPREAD]
        for a in range(n_arms):
            x = q[a] - answer[a]
            gap -= evidence.mu[a] * x
            spread += x * x * evidence.mu_var[a]
        push = gap / spread if gap > 0.0 and spread > 1e-300 else 0.0
        for a in range(n_arms):
            work.means[a] = evidence.mu[a] + push * (q[a] - answer[a]) * evidence.mu_var[a]
        for i in range(d):
            excess, spread = 0.0, 0.0
            for a in range(n_arms):
                excess += evidence.rows[i, a] * q[a]
                spread += q[a] * q[a] * evidence.row_var[i, a]
            push = excess / spread if excess > 0.0 and not evidence.known[i] else 0.0
            for a in range(n_arms):
                work.rows[i, a] = evidence.rows[i, a] - push * q[a] * evidence.row_var[i, a]
        if (
            solve_penalised_lp(work.means, work.rows, evidence.known, penalty, np.inf, work.lp, work.mix, work.prices)
            != OPTIMAL
        ):
            break
        found = witness_value(evidence, answer, work.mix, r)
        for _halving in range(_HALVINGS):
            if found < value:
                break
            for a in range(n_arms):
                work.mix[a] = 0.5 * (q[a] + work.mix[a])
            found = witness_value(evidence, answer, work.mix, r)
        if not found < value * (1.0 - 1e-7):
            break
        value = found
        for a in range(n_arms):
            q[a] = work.mix[a]
    return value


class Pool(NamedTuple):
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
    """Remember a witness, in place of one nearly equal to it, or else of the one unused for longest if all is full."""
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
def refresh_uses(evidence: Evidence, answer: FloatArray, r: float, pool: Pool) -> None:
    """Mark the witnesses that are near the most dangerous one as used now."""
    least, _ = least_witness(evidence, answer, r, pool)
    latest = 0
    for k in range(pool.size[0]):
        latest = max(latest, pool.last_use[k])
    for k in range(pool.size[0]):
        if witness_value(evidence, answer, pool.mixes[k], r) < _IN_USE * least:
            pool.last_use[k] = latest + 1


@kernel
def least_witness(evidence: Evidence, answer: FloatArray, r: float, pool: Pool) -> tuple[float, int]:
    """Return the smallest g over the pool, an upper bound on Z_0, and which witness attains it (-1: none)."""
    least, best = np.inf, -1
    for k in range(pool.size[0]):
        value = witness_value(evidence, answer, pool.mixes[k], r)
        if not value >= least:
            least, best = value, k
    return least, best
