r"""Nearest alternatives of the families whose variance V depends on the mean: Bernoulli, Poisson, exponential.

The cheapest means that give a move m the value c,

.. math:: \min_\lambda \sum_a w_a d(\mu_a, \lambda_a)\ \text{s.t.}\ \lambda^\top m = c,
          \qquad \lambda_a - \mu_a = k_a V(\lambda_a),\quad k_a = \theta m_a / w_a,

follow a curve in the multiplier theta, on which :math:`\lambda^\top m` rises: a root in one variable. Poisson means
run to infinity, and exponential ones leave the convex part of d, at a finite theta; near it theta loses its digits. So
the variable is y, the relative shift of the `pivot`, the first arm to get there; `ratio` is how hard an arm is pulled
relative to the pivot. Where no arm has such a limit, k is ratio times y itself; `bend` is 1 with a limit, else 0.

Everything is oriented by `sign` so that the move's value has to rise.
"""

import math
from typing import NamedTuple

from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray
from polyarm.families.bernoulli import (
    BERNOULLI,
    bernoulli_confidence_ends,
    bernoulli_divergence,
    bernoulli_shift,
)
from polyarm.families.exponential import (
    EXPONENTIAL,
    exponential_confidence_ends,
    exponential_divergence,
    exponential_far_start,
    exponential_shift,
)
from polyarm.families.poisson import POISSON, poisson_confidence_ends, poisson_divergence, poisson_shift
from polyarm.families.roots import MAX_STEPS, SAME_POINT, newton_step
from polyarm.polytope.neighbours import Moves
from polyarm.tolerances import ALLOCATION_FLOOR

#: The move's value meets its target within this, relative to the gap that was between them.
_CLOSED = 1e-14
#: Brackets are widened by this, so that rounding does not leave the root outside.
_MARGIN = 1e-12
#: Points at which the far branch of an exponential arm is searched for sign changes.
_FAR_POINTS = 8
#: Alternatives stay where d(mean, alternative) is at most this: ten standard deviations, for a Gaussian.
_FURTHEST = 50.0


class Tilt(NamedTuple):
    """A point on the curve of cheapest means.

    `pivot` is an entry of the move, or -1 where no arm has a limit (then `bend` is 0); `unit` is how hard the arm is
    pulled whose ratio is one.
    """

    cost: float
    sign: float
    pivot: int
    unit: float
    bend: float
    y: float


@kernel
def curved_divergence(kind: int, x: float, y: float) -> float:
    """Kullback-Leibler divergence between members of means x and y."""
    if kind == BERNOULLI:
        return bernoulli_divergence(x, y)
    if kind == POISSON:
        return poisson_divergence(x, y)
    return exponential_divergence(x, y)


@kernel
def curved_confidence_ends(kind: int, mean: float, level: float) -> tuple[float, float]:
    """Ends of {y : d(mean, y) <= level}."""
    if kind == BERNOULLI:
        return bernoulli_confidence_ends(mean, level)
    if kind == POISSON:
        return poisson_confidence_ends(mean, level)
    return exponential_confidence_ends(mean, level)


@kernel
def curved_variance(kind: int, mean: float) -> float:
    """Variance V of a reward, as a function of its mean."""
    if kind == BERNOULLI:
        return mean * (1.0 - mean)
    if kind == POISSON:
        return mean
    return mean * mean


@inlined_kernel
def _pull(kind: int, mean: float, change: float, weight: float) -> float:
    """How hard the multiplier pulls at an arm: k per unit of theta, made free of units."""
    return change * mean / weight if kind == EXPONENTIAL else change / weight


@inlined_kernel
def _shift(kind: int, mean: float, ratio: float, y: float, bend: float) -> tuple[float, float]:
    """How far a mean moves at y, and the derivative."""
    if kind == BERNOULLI:
        return bernoulli_shift(mean, ratio, y)
    if kind == POISSON:
        return poisson_shift(mean, ratio, y, bend)
    return exponential_shift(mean, ratio, y, bend)


@inlined_kernel
def _mean(low: float, high: float, means: FloatArray, moves: Moves, row: int, k: int) -> float:
    """Mean of the k-th arm of a move, kept inside the domain."""
    return min(max(means[moves.arms[row, k]], low), high)


@inlined_kernel
def _weight(weights: FloatArray, moves: Moves, row: int, k: int) -> float:
    """Weight of the k-th arm of a move, kept from zero."""
    return max(weights[moves.arms[row, k]], ALLOCATION_FLOOR)


@inlined_kernel
def _move_entry(
    kind: int,
    low: float,
    high: float,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    k: int,
    tilt: Tilt,
) -> tuple[float, float, float]:
    """Return the k-th arm's mean, its shift at a tilt and the derivative of the shift in y."""
    mean = _mean(low, high, means, moves, row, k)
    if k == tilt.pivot:
        shift, slope = mean * tilt.y, mean
    else:
        pull = _pull(kind, mean, tilt.sign * moves.changes[row, k], _weight(weights, moves, row, k))
        shift, slope = _shift(kind, mean, pull / tilt.unit, tilt.y, tilt.bend)
    return mean, shift, slope


@kernel
def _rise(
    kind: int,
    low: float,
    high: float,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    tilt: Tilt,
) -> tuple[float, float]:
    """By how much a tilt raises the move's value, and the derivative in y."""
    total = 0.0
    steepness = 0.0
    for k in range(moves.sizes[row]):
        _, shift, slope = _move_entry(kind, low, high, means, weights, moves, row, k, tilt)
        total += tilt.sign * moves.changes[row, k] * shift
        steepness += tilt.sign * moves.changes[row, k] * slope
    return total, steepness


@kernel
def _close_gap(
    kind: int,
    low: float,
    high: float,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    gap: float,
    tilt: Tilt,
    least: float,
    largest: float,
) -> Tilt:
    """Find y in a bracket where the rise equals the gap, from the tilt's own y; return the tilt there with its cost."""
    sign, pivot, unit, bend, y = tilt.sign, tilt.pivot, tilt.unit, tilt.bend, tilt.y
    for step in range(MAX_STEPS):
        rise, slope = _rise(kind, low, high, means, weights, moves, row, Tilt(0.0, sign, pivot, unit, bend, y))
        if abs(rise - gap) <= _CLOSED * gap:
            break
        before = y
        y, least, largest = newton_step(y, rise - gap, slope, least, largest, step)
        if abs(y - before) <= SAME_POINT * y:
            break
    found = Tilt(0.0, sign, pivot, unit, bend, y)
    cost = 0.0
    for k in range(moves.sizes[row]):
        mean, shift, _ = _move_entry(kind, low, high, means, weights, moves, row, k, found)
        # Rounding may carry a mean over the edge of the domain.
        alternative = min(max(mean + shift, low), high)
        cost += _weight(weights, moves, row, k) * curved_divergence(kind, mean, alternative)
    return Tilt(cost, sign, pivot, unit, bend, y)


@kernel
def _search_far_branches(
    kind: int,
    low: float,
    high: float,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    gap: float,
    near: Tilt,
) -> Tilt:
    """Return the cheapest of `near` and the tilts with one exponential mean beyond twice its estimate.

    There d is concave, so at an optimum at most one arm is: each is tried as the pivot, y from 1 up. The others help,
    so the pivot need not close the gap alone, which bounds y. The rise is not monotone in y, and every upward
    crossing of the gap is a local optimum. Two crossings closer than the grid are missed together; then a third one,
    with nearly equal or less cost, is not.
    """
    best = near
    for pivot in range(moves.sizes[row]):
        change = near.sign * moves.changes[row, pivot]
        if change <= 0.0:
            continue
        mean = _mean(low, high, means, moves, row, pivot)
        weight = _weight(weights, moves, row, pivot)
        unit = _pull(kind, mean, change, weight)
        least = exponential_far_start(near.unit / unit)
        largest = gap / (change * mean) * (1.0 + _MARGIN)
        if largest <= least or weight * exponential_divergence(1.0, 1.0 + least) >= best.cost:
            continue
        factor = (largest / least) ** (1.0 / _FAR_POINTS)
        y = least
        before = math.inf
        for _ in range(_FAR_POINTS + 1):
            here = Tilt(0.0, near.sign, pivot, unit, 1.0, y)
            rise, _ = _rise(kind, low, high, means, weights, moves, row, here)
            if before < gap <= rise:
                found = _close_gap(kind, low, high, means, weights, moves, row, gap, here, y / factor, y)
                if found.cost < best.cost:
                    best = found
            before = rise
            y *= factor
    return best


@kernel
def find_tilt(
    kind: int,
    low: float,
    high: float,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    target: float,
) -> Tilt:
    """Find the cheapest means in (low, high) that give a move the value `target`.

    The cost is zero when the move has that value already, and infinite when no means give it, or it has no length.
    """
    gap = target
    for k in range(moves.sizes[row]):
        gap -= _mean(low, high, means, moves, row, k) * moves.changes[row, k]
    sign = 1.0 if gap >= 0.0 else -1.0
    gap = abs(gap)
    pivot = -1
    pivot_pull = 0.0
    hardest = 0.0
    total_pull = 0.0
    room = 0.0
    weighted_room = 0.0
    for k in range(moves.sizes[row]):
        change = sign * moves.changes[row, k]
        if change == 0.0:
            continue
        mean = _mean(low, high, means, moves, row, k)
        weight = _weight(weights, moves, row, k)
        pull = _pull(kind, mean, change, weight)
        hardest = max(hardest, abs(pull))
        total_pull += change * pull
        own = 1.0 - mean if change > 0.0 else mean
        room += abs(change) * own
        weighted_room += weight * own
        if kind != BERNOULLI and pull > pivot_pull:
            pivot, pivot_pull = k, pull
    if hardest == 0.0 or (pivot < 0 and gap >= room):
        return Tilt(math.inf, sign, -1, 1.0, 0.0, 0.0)
    if pivot >= 0:
        # The pivot alone would close the gap at this y, and the others help.
        pivot_mean = _mean(low, high, means, moves, row, pivot)
        least, largest = 0.0, gap / (abs(moves.changes[row, pivot]) * pivot_mean) * (1.0 + _MARGIN)
        start = Tilt(0.0, sign, pivot, pivot_pull, 1.0, 0.0)
    else:
        least, largest = 0.0, math.inf
        if kind == BERNOULLI:
            # V <= 1/4 bounds every shift by k/4, and V <= room/k what is left of its room.
            least = 4.0 * gap * hardest / total_pull * (1.0 - _MARGIN)
            largest = hardest * weighted_room / (room - gap) * (1.0 + _MARGIN)
        start = Tilt(0.0, sign, -1, hardest, 0.0, 0.0)
    if gap == 0.0:
        return start
    _, slope = _rise(kind, low, high, means, weights, moves, row, start)
    if kind != EXPONENTIAL or pivot < 0:
        y = min(max(gap / slope, least), largest)
        start = Tilt(0.0, sign, start.pivot, start.unit, start.bend, y)
        return _close_gap(kind, low, high, means, weights, moves, row, gap, start, least, largest)
    largest = min(largest, 1.0)
    edge = Tilt(math.inf, sign, pivot, pivot_pull, 1.0, largest)
    rise, _ = _rise(kind, low, high, means, weights, moves, row, edge)
    if rise >= gap:
        start = Tilt(0.0, sign, pivot, pivot_pull, 1.0, min(gap / slope, largest))
        edge = _close_gap(kind, low, high, means, weights, moves, row, gap, start, least, largest)
    return _search_far_branches(kind, low, high, means, weights, moves, row, gap, edge)


@kernel
def curved_alternative_cost(
    kind: int,
    low: float,
    high: float,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    target: float,
) -> tuple[float, float]:
    """Cost of the nearest alternative, and the gap to the means as they are."""
    gap = target
    for k in range(moves.sizes[row]):
        gap -= means[moves.arms[row, k]] * moves.changes[row, k]
    return find_tilt(kind, low, high, means, weights, moves, row, target).cost, gap


@kernel
def curved_write_nearest(
    kind: int,
    low: float,
    high: float,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    target: float,
    alternative_out: FloatArray,
) -> None:
    """Write the nearest alternative, inside (low, high); the means themselves when there is none.

    Kept where d(mean, alternative) <= 50, which for Gaussians is the ten standard deviations that they are kept in.
    """
    for a in range(means.size):
        alternative_out[a] = min(max(means[a], low), high)
    tilt = find_tilt(kind, low, high, means, weights, moves, row, target)
    if tilt.cost < math.inf:
        for k in range(moves.sizes[row]):
            mean, shift, _ = _move_entry(kind, low, high, means, weights, moves, row, k, tilt)
            alternative = min(max(mean + shift, low), high)
            if curved_divergence(kind, mean, alternative) > _FURTHEST:
                below, above = curved_confidence_ends(kind, mean, _FURTHEST)
                alternative = min(max(alternative, below), above)
            alternative_out[moves.arms[row, k]] = alternative


@kernel
def curved_linearise(
    kind: int,
    low: float,
    high: float,
    means: FloatArray,
    weights: FloatArray,
    moves: Moves,
    row: int,
    target: float,
    spread_out: FloatArray,
) -> float:
    """Write D and return c; see `family.linearise_move`."""
    tilt = find_tilt(kind, low, high, means, weights, moves, row, target)
    gap = target
    for k in range(moves.sizes[row]):
        gap -= _mean(low, high, means, moves, row, k) * moves.changes[row, k]
        spread_out[row, k] = 0.0
    if tilt.cost == math.inf:
        return math.inf
    strength = 0.5 * gap * gap
    for k in range(moves.sizes[row]):
        mean, shift, _ = _move_entry(kind, low, high, means, weights, moves, row, k, tilt)
        if tilt.cost > 0.0:
            weight = _weight(weights, moves, row, k)
            alternative = min(max(mean + shift, low), high)
            share = weight * curved_divergence(kind, mean, alternative) / tilt.cost
            spread_out[row, k] = strength / tilt.cost * weight * share
        else:
            change = moves.changes[row, k]
            spread_out[row, k] = change * change * curved_variance(kind, mean)
    return strength
