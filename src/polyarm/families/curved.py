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
from polyarm.polytope.neighbours import Move, Moves
from polyarm.tolerances import ALLOCATION_FLOOR

#: The move's value meets its target within this, relative to the gap that was between them.
_CLOSED = 1e-14
#: Brackets are widened by this, so that rounding does not leave the root outside.
_MARGIN = 1e-12
#: Points at which the far branch of an exponential arm is searched for sign changes.
_FAR_POINTS = 8
#: Alternatives are kept where d(mean, alternative) is at most this: ten standard deviations for a Gaussian.
_FURTHEST = 50.0


class Domain(NamedTuple):
    """A family by its code, and the open interval that its means are kept in."""

    kind: int
    low: float
    high: float


class Aim(NamedTuple):
    """The goal: the cheapest means that raise the value of a move, oriented by `sign`, by `gap`."""

    domain: Domain
    means: FloatArray
    weights: FloatArray
    moves: Moves
    row: int
    sign: float
    gap: float


class Tilt(NamedTuple):
    """A point on the curve of cheapest means, and what it costs.

    `pivot` is an entry of the move, or -1 where no arm has a limit (then `bend` is 0); `unit` is how hard the arm is
    pulled whose ratio is one.
    """

    cost: float
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
    """How hard the multiplier pulls at an arm: k per unit of theta, without units."""
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
def _mean(aim: Aim, k: int) -> float:
    """Mean of the k-th arm of the move, kept inside the domain."""
    return min(max(aim.means[aim.moves.arms[aim.row, k]], aim.domain.low), aim.domain.high)


@inlined_kernel
def _weight(aim: Aim, k: int) -> float:
    """Weight of the k-th arm of the move, kept from zero."""
    return max(aim.weights[aim.moves.arms[aim.row, k]], ALLOCATION_FLOOR)


@inlined_kernel
def _change(aim: Aim, k: int) -> float:
    """Change of the k-th arm of the move, oriented so that the value has to rise."""
    return aim.sign * aim.moves.changes[aim.row, k]


@kernel
def aim_at(domain: Domain, means: FloatArray, weights: FloatArray, move: Move, target: float) -> Aim:
    """Aim at the means that give a move the value `target`."""
    moves, row = move.moves, move.row
    aim = Aim(domain, means, weights, moves, row, 1.0, 0.0)
    gap = target
    for k in range(moves.sizes[row]):
        gap -= _mean(aim, k) * moves.changes[row, k]
    return Aim(domain, means, weights, moves, row, 1.0 if gap >= 0.0 else -1.0, abs(gap))


@inlined_kernel
def _move_entry(aim: Aim, k: int, tilt: Tilt) -> tuple[float, float, float]:
    """Return the k-th arm's mean, its shift at a tilt and the derivative of the shift in y."""
    mean = _mean(aim, k)
    if k == tilt.pivot:
        shift, slope = mean * tilt.y, mean
    else:
        pull = _pull(aim.domain.kind, mean, _change(aim, k), _weight(aim, k))
        shift, slope = _shift(aim.domain.kind, mean, pull / tilt.unit, tilt.y, tilt.bend)
    return mean, shift, slope


@inlined_kernel
def _shifted(aim: Aim, mean: float, shift: float) -> float:
    """A mean after its shift: rounding may carry it over the edge of the domain."""
    return min(max(mean + shift, aim.domain.low), aim.domain.high)


@kernel
def _rise(aim: Aim, tilt: Tilt) -> tuple[float, float]:
    """By how much a tilt raises the move's value, and the derivative in y."""
    total = 0.0
    steepness = 0.0
    for k in range(aim.moves.sizes[aim.row]):
        _, shift, slope = _move_entry(aim, k, tilt)
        total += _change(aim, k) * shift
        steepness += _change(aim, k) * slope
    return total, steepness


@kernel
def _close_gap(aim: Aim, tilt: Tilt, least: float, largest: float) -> Tilt:
    """Find y in a bracket where the rise equals the gap, from the tilt's own y; return the tilt there with its cost."""
    pivot, unit, bend, y = tilt.pivot, tilt.unit, tilt.bend, tilt.y
    for step in range(MAX_STEPS):
        rise, slope = _rise(aim, Tilt(0.0, pivot, unit, bend, y))
        if abs(rise - aim.gap) <= _CLOSED * aim.gap:
            break
        before = y
        y, least, largest = newton_step(y, rise - aim.gap, slope, least, largest, step)
        if abs(y - before) <= SAME_POINT * y:
            break
    found = Tilt(0.0, pivot, unit, bend, y)
    cost = 0.0
    for k in range(aim.moves.sizes[aim.row]):
        mean, shift, _ = _move_entry(aim, k, found)
        cost += _weight(aim, k) * curved_divergence(aim.domain.kind, mean, _shifted(aim, mean, shift))
    return Tilt(cost, pivot, unit, bend, y)


@kernel
def _search_far_branches(aim: Aim, near: Tilt) -> Tilt:
    """Return the cheapest of `near` and the tilts with one exponential mean beyond twice its estimate.

    There d is concave, so at an optimum at most one arm is: each is tried as the pivot, y from 1 up. The others help,
    so the pivot need not close the gap alone, which bounds y. The rise is not monotone in y, and every upward
    crossing of the gap is a local optimum. Two crossings closer than the grid are missed together; then a third one,
    with nearly equal or less cost, is not.
    """
    best = near
    for pivot in range(aim.moves.sizes[aim.row]):
        change = _change(aim, pivot)
        if change <= 0.0:
            continue
        mean = _mean(aim, pivot)
        weight = _weight(aim, pivot)
        unit = _pull(aim.domain.kind, mean, change, weight)
        least = exponential_far_start(near.unit / unit)
        largest = aim.gap / (change * mean) * (1.0 + _MARGIN)
        if largest <= least or weight * exponential_divergence(1.0, 1.0 + least) >= best.cost:
            continue
        factor = (largest / least) ** (1.0 / _FAR_POINTS)
        y = least
        before = math.inf
        for _ in range(_FAR_POINTS + 1):
            here = Tilt(0.0, pivot, unit, 1.0, y)
            rise, _ = _rise(aim, here)
            if before < aim.gap <= rise:
                found = _close_gap(aim, here, y / factor, y)
                if found.cost < best.cost:
                    best = found
            before = rise
            y *= factor
    return best


@kernel
def _bracket(aim: Aim) -> tuple[Tilt, float, float]:
    """The tilt at y = 0, and the least and the largest y that can close the gap.

    Its cost is infinite when no means close the gap, or the move has no length.
    """
    kind, gap = aim.domain.kind, aim.gap
    pivot = -1
    pivot_pull, hardest, total_pull, room, weighted_room = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(aim.moves.sizes[aim.row]):
        change = _change(aim, k)
        if change == 0.0:
            continue
        mean, weight = _mean(aim, k), _weight(aim, k)
        pull = _pull(kind, mean, change, weight)
        hardest = max(hardest, abs(pull))
        total_pull += change * pull
        own = 1.0 - mean if change > 0.0 else mean
        room += abs(change) * own
        weighted_room += weight * own
        if kind != BERNOULLI and pull > pivot_pull:
            pivot, pivot_pull = k, pull
    if hardest == 0.0 or (pivot < 0 and gap >= room):
        return Tilt(math.inf, -1, 1.0, 0.0, 0.0), 0.0, 0.0
    if pivot >= 0:
        # The pivot alone would close the gap at this y, and the others help.
        largest = gap / (abs(_change(aim, pivot)) * _mean(aim, pivot)) * (1.0 + _MARGIN)
        return Tilt(0.0, pivot, pivot_pull, 1.0, 0.0), 0.0, largest
    least, largest = 0.0, math.inf
    if kind == BERNOULLI:
        # V <= 1/4 bounds every shift by k/4, and V <= room/k what is left of its room.
        least = 4.0 * gap * hardest / total_pull * (1.0 - _MARGIN)
        largest = hardest * weighted_room / (room - gap) * (1.0 + _MARGIN)
    return Tilt(0.0, -1, hardest, 0.0, 0.0), least, largest


@kernel
def find_tilt(aim: Aim) -> Tilt:
    """Find the cheapest means that close the gap.

    The cost is zero when there is no gap, and infinite when no means close it, or the move has no length.
    """
    start, least, largest = _bracket(aim)
    if start.cost == math.inf or aim.gap == 0.0:
        return start
    pivot, unit, bend = start.pivot, start.unit, start.bend
    _, slope = _rise(aim, start)
    if aim.domain.kind != EXPONENTIAL or pivot < 0:
        y = min(max(aim.gap / slope, least), largest)
        return _close_gap(aim, Tilt(0.0, pivot, unit, bend, y), least, largest)
    largest = min(largest, 1.0)
    edge = Tilt(math.inf, pivot, unit, 1.0, largest)
    rise, _ = _rise(aim, edge)
    if rise >= aim.gap:
        start = Tilt(0.0, pivot, unit, 1.0, min(aim.gap / slope, largest))
        edge = _close_gap(aim, start, least, largest)
    return _search_far_branches(aim, edge)


@kernel
def curved_alternative_cost(
    domain: Domain, means: FloatArray, weights: FloatArray, move: Move, target: float
) -> tuple[float, float]:
    """Cost of the nearest alternative, and the gap to the means as they are."""
    moves, row = move.moves, move.row
    gap = target
    for k in range(moves.sizes[row]):
        gap -= means[moves.arms[row, k]] * moves.changes[row, k]
    return find_tilt(aim_at(domain, means, weights, move, target)).cost, gap


@kernel
def curved_write_nearest(
    domain: Domain, means: FloatArray, weights: FloatArray, move: Move, target: float, alternative_out: FloatArray
) -> None:
    """Write the nearest alternative, inside the domain; the means themselves when there is none.

    Kept where d(mean, alternative) <= 50, which for Gaussians is the ten standard deviations that they are kept in.
    """
    for a in range(means.size):
        alternative_out[a] = min(max(means[a], domain.low), domain.high)
    aim = aim_at(domain, means, weights, move, target)
    tilt = find_tilt(aim)
    if tilt.cost < math.inf:
        for k in range(aim.moves.sizes[aim.row]):
            mean, shift, _ = _move_entry(aim, k, tilt)
            alternative = _shifted(aim, mean, shift)
            if curved_divergence(domain.kind, mean, alternative) > _FURTHEST:
                below, above = curved_confidence_ends(domain.kind, mean, _FURTHEST)
                alternative = min(max(alternative, below), above)
            alternative_out[aim.moves.arms[aim.row, k]] = alternative


@kernel
def curved_linearise(
    domain: Domain, means: FloatArray, weights: FloatArray, move: Move, target: float, spread_out: FloatArray
) -> float:
    """Write D and return c; see `family.linearise_move`."""
    aim = aim_at(domain, means, weights, move, target)
    tilt = find_tilt(aim)
    size = aim.moves.sizes[aim.row]
    for k in range(size):
        spread_out[aim.row, k] = 0.0
    if tilt.cost == math.inf:
        return math.inf
    strength = 0.5 * aim.gap * aim.gap
    for k in range(size):
        mean, shift, _ = _move_entry(aim, k, tilt)
        if tilt.cost > 0.0:
            weight = _weight(aim, k)
            share = weight * curved_divergence(domain.kind, mean, _shifted(aim, mean, shift)) / tilt.cost
            spread_out[aim.row, k] = strength / tilt.cost * weight * share
        else:
            change = aim.moves.changes[aim.row, k]
            spread_out[aim.row, k] = change * change * curved_variance(domain.kind, mean)
    return strength
