r"""The max-min allocation problem: the proportions that make the hardest alternative as easy as possible.

.. math:: \max_{w \in \Delta,\ G w \le 0} \min_v f_v(w), \qquad f_v(w) = \frac{c_v}{\sum_a D_{va} / w_a}

As a convex program: minimise :math:`\sum_a x_a` subject to :math:`\sum_a D_{va}/x_a \le c_v` and
:math:`G x \le 0`; then :math:`T = \sum_a x_a` and w = x / T. With weights q on the alternatives and multipliers nu
on the rows, :math:`x_a = \sqrt{s_a/e_a}`, :math:`s = \sum_v q_v D_v`, :math:`e = 1 + G^\top \nu`, and every q, nu
bounds the optimum: :math:`1/T \le \sum_v q_v c_v / (\sum_a \sqrt{s_a e_a})^2`. The weights move multiplicatively,
:math:`q_v \propto q_v T_v` with :math:`T_v = 1/f_v`, so that the hardest alternatives gain weight.

Alternatives are sparse `Moves`; `Spread` holds D on the same entries.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.families.family import Family, linearise_move
from polyarm.polytope.linear import NewtonWork, find_newton_direction, make_newton_work
from polyarm.polytope.neighbours import Move, Rivals

#: Floor for s, as a share of its largest entry: arms that no alternative needs may still need mass to satisfy the rows,
#: and x_a = sqrt(s_a / e_a) gives them some only if s_a > 0. Good enough for one step.
STEP_FLOOR = 1e-6
#: Alternatives weaker than this share of their spread (both have the reward's unit squared) count as this strong: that
#: keeps the optimum finite.
LEAST_STRENGTH = 1e-12
_LEAST_WEIGHT = 1e-14
_NEWTON_STEPS = 30
_SHRINKINGS = 60


class Effort(NamedTuple):
    """When a solve ends: after so many iterations, or once value and bound agree to the relative accuracy.

    `floor` is a share of the largest need that every arm is taken to have; see `STEP_FLOOR`.
    """

    floor: float
    iterations: int
    accuracy: float


@struct
class Weights:
    """Weights q on the alternatives (capacity,) and multipliers nu of the rows (d,): where the next solve starts."""

    q: FloatArray
    nu: FloatArray


@struct
class MaxMinWork:
    """Scratch: the linearised alternatives, per-arm sums, and the Newton system of the rows."""

    spread: FloatArray
    strength: FloatArray
    times: FloatArray
    raw_needs: FloatArray
    needs: FloatArray
    prices: FloatArray
    trial: FloatArray
    newton: NewtonWork


def make_maxmin_work(capacity: int, n_arms: int, n_constraints: int, width: int = 0) -> MaxMinWork:
    """Allocate the scratch for up to `capacity` alternatives that touch at most `width` (2 + 2 d) arms each."""
    d = n_constraints
    return MaxMinWork(
        spread=np.zeros((capacity, width or 2 * (d + 1))),
        strength=np.zeros(capacity),
        times=np.zeros(capacity),
        raw_needs=np.zeros(n_arms),
        needs=np.zeros(n_arms),
        prices=np.zeros(n_arms),
        trial=np.zeros(d),
        newton=make_newton_work(d),
    )


@kernel
def linearise(
    family: Family, means: FloatArray, weights: FloatArray, rivals: Rivals, target: float, work: MaxMinWork
) -> None:
    """Write D and c of every alternative: exact for Gaussians, right to first order at `weights` otherwise."""
    for row in range(rivals.size):
        strength = linearise_move(family, means, weights, Move(rivals.moves, row), target, work.spread)
        total = 0.0
        for k in range(rivals.moves.sizes[row]):
            total += work.spread[row, k]
        work.strength[row] = max(strength, LEAST_STRENGTH * total)


@kernel
def _sum_needs(rivals: Rivals, floor: float, q: FloatArray, work: MaxMinWork) -> float:
    """Write s = sum_v q_v D_v, as it is and floored; return sum_v q_v c_v."""
    raw, moves = work.raw_needs, rivals.moves
    for a in range(raw.size):
        raw[a] = 0.0
    total = 0.0
    for row in range(rivals.size):
        if work.strength[row] < np.inf:
            total += q[row] * work.strength[row]
            for k in range(moves.sizes[row]):
                raw[moves.arms[row, k]] += q[row] * work.spread[row, k]
    largest = 0.0
    for a in range(raw.size):
        largest = max(largest, raw[a])
    for a in range(raw.size):
        work.needs[a] = raw[a] + floor * largest
    return total


@kernel
def _dual_value(columns: FloatArray, nu: FloatArray, work: MaxMinWork) -> float:
    """Write e = 1 + G^T nu to `work.prices`; return sum_a sqrt(s_a e_a), or -inf outside the domain."""
    total = 0.0
    for a in range(work.needs.size):
        price = 1.0
        for i in range(nu.size):
            price += columns[i + 1, a] * nu[i]
        work.prices[a] = price
        if price <= 0.0:
            return -np.inf
        total += math.sqrt(work.needs[a] * price)
    return total


@kernel
def _fit_rows(columns: FloatArray, nu: FloatArray, work: MaxMinWork) -> float:
    """Maximise the concave dual over nu >= 0 by damped Newton steps; return its value."""
    d = nu.size
    value = _dual_value(columns, nu, work)
    for attempt in range(_SHRINKINGS):
        if value > -np.inf:
            break
        # A warm start from another set, outside the domain: shrink it (nu = 0 is inside).
        for i in range(d):
            nu[i] *= 0.5 if attempt < _SHRINKINGS - 1 else 0.0
        value = _dual_value(columns, nu, work)
    gradient, hessian = work.newton.gradient, work.newton.hessian
    for _ in range(_NEWTON_STEPS):
        total = 0.0
        for i in range(d):
            gradient[i] = 0.0
            for k in range(i + 1):
                hessian[i, k] = 0.0
        for a in range(work.needs.size):
            x = math.sqrt(work.needs[a] / work.prices[a])
            total += x
            bend = 0.5 * x / work.prices[a]
            for i in range(d):
                gradient[i] += columns[i + 1, a] * x
                for k in range(i + 1):
                    hessian[i, k] += columns[i + 1, a] * columns[k + 1, a] * bend
        residual = 0.0
        curvature = 0.0
        for i in range(d):
            curvature = max(curvature, hessian[i, i])
            if nu[i] > 0.0 or gradient[i] > 0.0:
                residual = max(residual, abs(gradient[i]))
        if residual <= 1e-10 * total:
            break
        find_newton_direction(nu, 1e-12 * curvature + 1e-300, work.newton)
        step = 1.0
        improved = False
        for _attempt in range(40):
            for i in range(d):
                work.trial[i] = max(0.0, nu[i] + step * work.newton.direction[i])
            trial_value = _dual_value(columns, work.trial, work)
            # Near the optimum the gain is lost in round-off while the step still improves the gradient.
            if value - 1e-14 * abs(value) <= trial_value < np.inf:
                improved = True
                break
            step *= 0.5
        if not improved:
            break
        value = trial_value
        for i in range(d):
            nu[i] = work.trial[i]
    return _dual_value(columns, nu, work)


@kernel
def _score(rivals: Rivals, w: FloatArray, work: MaxMinWork) -> float:
    """Write T_v = 1 / f_v(w) of every alternative; return the smallest f_v."""
    moves = rivals.moves
    longest = 0.0
    for row in range(rivals.size):
        total = 0.0
        for k in range(moves.sizes[row]):
            if work.spread[row, k] > 0.0:
                total += work.spread[row, k] / max(w[moves.arms[row, k]], 1e-300)
        work.times[row] = total / work.strength[row]
        longest = max(longest, work.times[row])
    return 1.0 / longest if longest > 0.0 else np.inf


@kernel
def _reweigh(count: int, q: FloatArray, work: MaxMinWork) -> None:
    """Multiply each weight by its alternative's time and normalise their sum to one."""
    total = 0.0
    for row in range(count):
        if work.strength[row] < np.inf:
            total += q[row] * work.times[row]
    if total <= 0.0:
        return  # no alternative can be reached: nothing to weigh
    for row in range(count):
        q[row] = max(q[row] * work.times[row] / total, _LEAST_WEIGHT) if work.times[row] > 0.0 else _LEAST_WEIGHT


@kernel
def solve_maxmin(
    rivals: Rivals, columns: FloatArray, effort: Effort, warm: Weights, work: MaxMinWork, w_out: FloatArray
) -> tuple[float, float]:
    r"""Solve the max-min problem over {simplex, G w <= 0} from warm weights; `linearise` comes first.

    `columns` (1 + d, K) is the set (one row: the whole simplex); the warm weights are updated; set q to one for a cold
    start. Returns (value, bound): min_v f_v at `w_out`, and an upper bound on the optimum whatever the floor is; their
    difference is the accuracy reached.
    """
    q, nu = warm.q, warm.nu
    value, bound = 0.0, np.inf
    for _ in range(effort.iterations):
        strength = _sum_needs(rivals, effort.floor if nu.size > 0 else 0.0, q, work)
        _fit_rows(columns, nu, work)
        root = 0.0
        total = 0.0
        for a in range(w_out.size):
            root += math.sqrt(work.raw_needs[a] * work.prices[a])
            w_out[a] = math.sqrt(work.needs[a] / work.prices[a])
            total += w_out[a]
        bound = min(bound, strength / (root * root))
        for a in range(w_out.size):
            w_out[a] /= total
        value = _score(rivals, w_out, work)
        _reweigh(rivals.size, q, work)
        if bound - value <= effort.accuracy * bound:
            break
    return value, bound


@kernel
def _fit_level(penalty: FloatArray, strength: float, work: MaxMinWork) -> float:
    """Find z with (sum_a sqrt(s_a (z + g_a)))^2 = sum_v q_v c_v, and write z + g to `work.prices`.

    z is at least -g_a for every arm. If the sum is too large even there, the arm with the lowest penalty is worth more
    than any balance: z is that bound, and the arm's price (nearly) zero.
    """
    goal = math.sqrt(strength)
    lowest, high = -np.inf, np.inf
    total_needs, total_penalty = 0.0, 0.0
    for a in range(penalty.size):
        lowest = max(lowest, -penalty[a])
        high = min(high, strength / max(work.needs[a], 1e-300) - penalty[a])  # arm a alone reaches the goal there
        total_needs += work.needs[a]
        total_penalty += penalty[a]
    low = max(lowest, (strength / total_needs - total_penalty) / penalty.size)  # Cauchy-Schwarz
    z = lowest
    for iteration in range(100):
        root = 0.0
        slope = 0.0
        for a in range(penalty.size):
            price = z + penalty[a]
            if price > 0.0:
                part = math.sqrt(work.needs[a] * price)
                root += part
                slope += 0.5 * part / price
        if (iteration == 0 and root >= goal) or abs(root - goal) <= 1e-10 * goal:
            break
        # The sum is concave in z, so Newton from the left stays left of the solution: no bracketing needed there.
        if iteration == 0:
            z = low if low > lowest else low + 1e-3 * (high - low)
        else:
            if root < goal:
                low = z
            else:
                high = z
            z += (goal - root) / slope
            if not low < z < high:
                z = 0.5 * (low + high)
    for a in range(penalty.size):
        work.prices[a] = max(z + penalty[a], 1e-12)
    return z


@kernel
def solve_penalised(
    rivals: Rivals, penalty: FloatArray, effort: Effort, q: FloatArray, work: MaxMinWork, w_out: FloatArray
) -> tuple[float, float]:
    r"""Solve :math:`\max_{w \in \Delta} \min_v f_v(w) - g^\top w` for a fixed penalty g; see `solve_maxmin`.

    Every q bounds the optimum by the z with :math:`(\sum_a \sqrt{s_a (z + g_a)})^2 = \sum_v q_v c_v`, attained by
    :math:`w_a \propto \sqrt{s_a / (z + g_a)}`. Returns (min_v f_v - g.w at `w_out`, upper bound).
    """
    value, bound = 0.0, np.inf
    for _ in range(effort.iterations):
        strength = _sum_needs(rivals, 0.0, q, work)
        bound = min(bound, _fit_level(penalty, strength, work))
        total = 0.0
        for a in range(w_out.size):
            w_out[a] = math.sqrt(work.needs[a] / work.prices[a])
            total += w_out[a]
        lost = 0.0
        for a in range(w_out.size):
            w_out[a] /= total
            lost += penalty[a] * w_out[a]
        value = _score(rivals, w_out, work) - lost
        _reweigh(rivals.size, q, work)
        if bound - value <= effort.accuracy * abs(bound):
            break
    return value, bound
