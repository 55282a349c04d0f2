r"""Certified lower bound on the reward statistic Z_0 = min_q g(q), which is not convex in q.

The mixes are cut into boxes, :math:`l \le q \le u`. What is not convex in g are the squared norms that it divides by,
and they are separable: within a box every square lies below its chord, :math:`q_a^2 \le (l_a + u_a) q_a - l_a u_a`.
Put chords for squares and each part of g becomes a square over a linear function, which is convex, and smaller. A
convex function lies above its tangents: for any prices y >= 0 and any shares theta in [0, 1], with x the reward gap or
the cost of a row, n the chord of its squared norm, and kappa the least value of a row's part (see `joint`),

.. math:: \max\Big\{\frac{x_+^2}{2 n}, \kappa\Big\} \ge \theta \big(y x - \tfrac12 y^2 n\big) + (1 - \theta) \kappa .

The right side is linear in q, and its least value over the mixes of a box is found exactly, by giving to the arms with
the lowest slopes as much as they may have. So the bound of a box holds *for any* y and theta: inexact inner solves can
only make the search longer, never wrong. (A known row has no noise, n = 0: any price will do.)

The best prices are those of the tangent where the convex function is smallest; that point is looked for by moving
shares from one arm to another. It is also where the box is divided, in the arm whose chord is farthest above its
square: there the chords of both parts touch the square.
"""

from typing import NamedTuple

import numpy as np

from polyarm._arena import Arena, Size, rest_of
from polyarm._compile import inlined_kernel, kernel
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.geometry.penalised import forget_basis
from polyarm.statistics.joint import FLOOR, SPREAD, Evidence, witness_value
from polyarm.statistics.witnesses import DescentWork, carve_descent, improve_witness, size_descent
from polyarm.tolerances import CERTIFIED_MARGIN, KNOWN_ROW

# Outcomes of a search.
CERTIFIED = 1  # the statistic exceeds what was asked, for certain
WITNESS = 0  # a mix with a smaller value was found
UNRESOLVED = -1  # the node budget ran out

#: The most boxes that wait to be examined.
_MAX_OPEN = 600
#: How often the bound of a box is worked out, and how many shares move in between.
_ROUNDS = 20
_MOVES = 20
#: A box is divided once its bound is surely too low by this share, and not far from the best there is.
_TOO_LOW = 0.02
_NEARLY_BEST = 0.25
#: Prices are good enough when the bound is within this share of the best there is.
_GOOD_PRICES = 1e-4
_LEAST_SLOPE = 1e-5
#: Neither part of a divided interval is shorter than this share of it.
_LEAST_PART = 0.1
_NEWTON_STEPS = 5
_FLAT = 1e-2
#: The least squared length of a normal, as a share of the smallest one possible or of the smallest variance.
_LEAST_LENGTH = 1e-6
#: Where a row's part and its floor are this close, as a share of the floor, both count.
_BLUR = 0.02
#: Breaking a known row by this share of its largest entry costs half of what is to be exceeded, at first.
_SOFTNESS = 0.05
#: ... and after every look from a mix that breaks it this many times more.
_STIFFEN = 0.25
#: Breaking a known row by this share of its largest entry is as good as keeping it.
_BROKEN = 1e-7
#: The price of a known row is at most this many times what is to be exceeded, per largest entry: more is round-off.
_LARGEST_PRICE = 1e5
#: Bounds are lowered by this share of the largest numbers that they are made of.
_ROUND_OFF = 1e-13
#: A search that only decides looks for better witnesses in its first boxes, then in one of this many.
_EAGER = 12
#: Mixes this many times worse than the incumbent are not worth improving.
_WORTH_IMPROVING = 1.5
#: Shares closer than this to the ends of their interval are at the end.
_AT_END = 1e-12
#: Larger statistics are not told apart: bounds must be able to exceed them.
_BEYOND_DOUBT = 1e12


class Cuts(NamedTuple):
    """The parts of g, by chords: the reward first, then the rows; all that does not depend on where one looks.

    Part k has x = `bases` + `slopes` q and n = `fixed` + `chords` q, of at least `least`, from the variances `noise`;
    `sizes` (2, d + 1) are the largest numbers that x and n are made of; `floors` the least values; `softness` is zero
    unless the row is known.
    """

    bases: FloatArray
    slopes: FloatArray
    fixed: FloatArray
    chords: FloatArray
    noise: FloatArray
    least: FloatArray
    sizes: FloatArray
    floors: FloatArray
    softness: FloatArray


class Look(NamedTuple):
    """The parts as seen from one mix: x, n, and the tangent there (`prices` y theta, `tolls` y^2 theta / 2).

    `held` are prices of known rows to start from; `x_steps` and `n_steps` how x and n change along a move.
    """

    x: FloatArray
    n: FloatArray
    prices: FloatArray
    tolls: FloatArray
    held: FloatArray
    x_steps: FloatArray
    n_steps: FloatArray


class Box(NamedTuple):
    """The box being examined: its ends, the mix looked from, slopes of the tangent there, arms worth moving."""

    low: FloatArray
    high: FloatArray
    mix: FloatArray
    slopes: FloatArray
    marks: IntArray
    movers: IntArray


class Stack(NamedTuple):
    """Open boxes (600, K): their ends, a mix to look from, and the bound."""

    low: FloatArray
    high: FloatArray
    mixes: FloatArray
    bounds: FloatArray


class BranchWork(NamedTuple):
    """Scratch of the search."""

    cuts: Cuts
    look: Look
    box: Box
    stack: Stack
    candidate: FloatArray
    descent: DescentWork


def size_branch(n_arms: int, n_constraints: int) -> Size:
    """How much of an arena a search takes, of however many nodes: those that are done with are not kept."""
    k, n = n_arms, n_constraints + 1
    descent = size_descent(k, n_constraints)
    own = 3 * n * k + 14 * n + 5 * k + _MAX_OPEN * (3 * k + 1)
    return Size(own + descent.floats, 2 * k + descent.ints)


@inlined_kernel
def _carve_cuts(n: int, k: int, f: FloatArray) -> Cuts:
    at = 3 * n * k
    return Cuts(
        slopes=f[0 : n * k].reshape((n, k)),
        chords=f[n * k : 2 * n * k].reshape((n, k)),
        noise=f[2 * n * k : at].reshape((n, k)),
        bases=f[at : at + n],
        fixed=f[at + n : at + 2 * n],
        least=f[at + 2 * n : at + 3 * n],
        sizes=f[at + 3 * n : at + 5 * n].reshape((2, n)),
        floors=f[at + 5 * n : at + 6 * n],
        softness=f[at + 6 * n : at + 7 * n],
    )


@inlined_kernel
def _carve(n_arms: int, n_constraints: int, arena: Arena) -> BranchWork:
    """Carve the scratch of a search from an arena."""
    k, n, m = n_arms, n_constraints + 1, _MAX_OPEN
    f = arena.floats
    parts = f[3 * n * k + 7 * n : 3 * n * k + 14 * n].reshape((7, n))
    at = 3 * n * k + 14 * n
    vectors = f[at : at + 5 * k].reshape((5, k))
    at += 5 * k
    boxes = f[at : at + 3 * m * k].reshape((3, m, k))
    at += 3 * m * k
    return BranchWork(
        cuts=_carve_cuts(n, k, f),
        look=Look(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]),
        box=Box(vectors[0], vectors[1], vectors[2], vectors[3], arena.ints[0:k], arena.ints[k : 2 * k]),
        stack=Stack(boxes[0], boxes[1], boxes[2], f[at : at + m]),
        candidate=vectors[4],
        descent=carve_descent(k, n_constraints, rest_of(arena, at + m, 2 * k)),
    )


@kernel
def _write_cuts(evidence: Evidence, answer: FloatArray, r: float, cuts: Cuts) -> None:
    """Fill in what is the same in every box."""
    d, n_arms = evidence.rows.shape
    for k in range(d + 1):
        known = k > 0 and evidence.known[k - 1]
        base = r if k == 0 else (-KNOWN_ROW if known else 0.0)  # witnesses may break a known row by its tolerance
        largest, dearest, total, precision, smallest = 0.0, 0.0, 0.0, 0.0, np.inf
        for a in range(n_arms):
            cuts.slopes[k, a] = -evidence.mu[a] if k == 0 else evidence.rows[k - 1, a]
            cuts.noise[k, a] = evidence.mu_var[a] if k == 0 else evidence.row_var[k - 1, a]
            if k == 0:
                base += evidence.mu[a] * answer[a]
                total += cuts.noise[k, a] * answer[a] * answer[a]
            largest = max(largest, abs(cuts.slopes[k, a]))
            dearest = max(dearest, cuts.noise[k, a] * (2.0 + (2.0 * abs(answer[a]) if k == 0 else 0.0)))
            smallest = min(smallest, cuts.noise[k, a])
            precision += 1.0 / max(cuts.noise[k, a], 1e-300)
        cuts.bases[k] = base
        # No mix has a shorter one than 1 / precision; but the answer has none, and would swamp all the others.
        cuts.least[k] = _LEAST_LENGTH * (smallest if k == 0 else 1.0 / precision)
        cuts.sizes[0, k] = abs(base) + largest
        cuts.sizes[1, k] = (evidence.extras[SPREAD] if k == 0 else 0.0) + total + dearest
        cuts.floors[k] = 0.0 if k == 0 or known else evidence.extras[FLOOR]
        cuts.softness[k] = max(largest, 1e-300) if known else 0.0  # in units of the row, until the cut is known


@kernel
def _set_chords(evidence: Evidence, answer: FloatArray, low: FloatArray, high: FloatArray, cuts: Cuts) -> None:
    """Put chords over this box for the squares."""
    for k in range(cuts.bases.size):
        fixed = evidence.extras[SPREAD] if k == 0 else 0.0
        for a in range(low.size):
            noise = cuts.noise[k, a]
            cuts.chords[k, a] = noise * (low[a] + high[a])
            fixed -= noise * low[a] * high[a]
        if k == 0:
            for a in range(low.size):
                cuts.chords[k, a] -= 2.0 * cuts.noise[k, a] * answer[a]
                fixed += cuts.noise[k, a] * answer[a] * answer[a]
        cuts.fixed[k] = fixed


@kernel
def _touch(x: float, n: float, floor: float, softness: float, held: float, most: float) -> tuple[float, float, float]:
    """The tangent to one part of g at (x, n): y, theta, and how fast theta grows with the part.

    A known row's price rises with what breaks it; where a part is near its floor, the two are blurred.
    """
    if softness > 0.0:
        return min(max(held + x / softness, 0.0), most), 1.0, 0.0
    if x <= 0.0:
        return 0.0, 0.0 if floor > 0.0 else 1.0, 0.0
    y = x / n
    if floor == 0.0:
        return y, 1.0, 0.0
    blur = _BLUR * floor
    share = (0.5 * y * x - floor + blur) / (2.0 * blur)
    if share <= 0.0:
        return y, 0.0, 0.0
    if share >= 1.0:
        return y, 1.0, 0.0
    return y, share, 0.5 / blur


@kernel
def _write_tangent(scale: float, cuts: Cuts, look: Look) -> float:
    """Write prices and tolls of the tangent at `look.x` and `look.n`; returns what the floors add."""
    free = 0.0
    for k in range(look.x.size):
        most = _LARGEST_PRICE * scale / cuts.sizes[0, k]
        y, share, _ = _touch(look.x[k], look.n[k], cuts.floors[k], cuts.softness[k], look.held[k], most)
        look.prices[k] = share * y
        look.tolls[k] = 0.5 * share * y * y if cuts.softness[k] == 0.0 else 0.0
        free += (1.0 - share) * cuts.floors[k]
    return free


@kernel
def _look_from(mix: FloatArray, cuts: Cuts, look: Look) -> None:
    """Work out x and n of every part at a mix."""
    for k in range(look.x.size):
        x, n = cuts.bases[k], cuts.fixed[k]
        for a in range(mix.size):
            x += cuts.slopes[k, a] * mix[a]
            n += cuts.chords[k, a] * mix[a]
        look.x[k] = x
        look.n[k] = max(n, cuts.least[k])


@kernel
def _bound(free: float, cuts: Cuts, look: Look, box: Box) -> float:
    """The least value of the tangent over the mixes of the box; marks the arms that it or the present mix uses."""
    bound, size = free, free
    for a in range(box.low.size):
        box.slopes[a] = 0.0
    for k in range(look.x.size):
        price, toll = look.prices[k], look.tolls[k]
        if price > 0.0:
            bound += price * cuts.bases[k] - toll * cuts.fixed[k]
            size += price * cuts.sizes[0, k] + toll * cuts.sizes[1, k]
            for a in range(box.low.size):
                box.slopes[a] += price * cuts.slopes[k, a] - toll * cuts.chords[k, a]
    left = 1.0
    for a in range(box.low.size):
        bound += box.slopes[a] * box.low[a]
        left -= box.low[a]
        box.marks[a] = 1 if box.mix[a] > box.low[a] + _AT_END else 0
    while left > 0.0:
        lowest = -1
        for a in range(box.low.size):
            if box.marks[a] < 2 and (lowest < 0 or box.slopes[a] < box.slopes[lowest]):
                lowest = a
        if lowest < 0:
            break
        share = min(left, box.high[lowest] - box.low[lowest])
        bound += share * box.slopes[lowest]
        left -= share
        box.marks[lowest] = 2
    bound -= _ROUND_OFF * size
    return bound if bound >= 0.0 else 0.0  # what is no number bounds nothing


@kernel
def _choose_step(most: float, slope: float, scale: float, cuts: Cuts, look: Look) -> float:
    """How far to move along `look.x_steps`, at most `most`: to where the function is flat (Newton, bracketed)."""
    step, low, high = 0.0, 0.0, most
    for _ in range(_NEWTON_STEPS):
        rise, bend = 0.0, 0.0
        for k in range(look.x.size):
            x, n = look.x[k] + step * look.x_steps[k], max(look.n[k] + step * look.n_steps[k], cuts.least[k])
            limit = _LARGEST_PRICE * scale / cuts.sizes[0, k]
            y, share, growth = _touch(x, n, cuts.floors[k], cuts.softness[k], look.held[k], limit)
            if y > 0.0 and cuts.softness[k] > 0.0:
                rise += y * look.x_steps[k]
                bend += look.x_steps[k] ** 2 / cuts.softness[k]
            elif y > 0.0:
                turn = y * (look.x_steps[k] - 0.5 * y * look.n_steps[k])
                rise += share * turn
                bend += share * (look.x_steps[k] - y * look.n_steps[k]) ** 2 / n + growth * turn * turn
        if rise < 0.0:
            low = step
        else:
            high = step
        if abs(rise) <= _FLAT * slope or low == most:
            break
        target = step - rise / bend if bend > 0.0 else (most if rise < 0.0 else 0.0)
        if not target < high:
            target = most if high == most else 0.5 * (step + high)
        if target <= low:
            target = 0.5 * (step + low)
        step = target
    return step


@kernel
def _move_shares(scale: float, cuts: Cuts, look: Look, box: Box) -> None:
    """Lower the convex function: time and again from the arm with the highest slope to the one with the lowest."""
    movers = 0
    for a in range(box.mix.size):
        if box.marks[a] > 0:
            box.movers[movers] = a
            movers += 1
    for _ in range(_MOVES):
        to, fro, lowest, highest = -1, -1, np.inf, -np.inf
        for j in range(movers):
            a = box.movers[j]
            slope = 0.0
            for k in range(look.x.size):
                slope += look.prices[k] * cuts.slopes[k, a] - look.tolls[k] * cuts.chords[k, a]
            if slope < lowest and box.mix[a] < box.high[a] - _AT_END:
                to, lowest = a, slope
            if slope > highest and box.mix[a] > box.low[a] + _AT_END:
                fro, highest = a, slope
        if to < 0 or fro < 0 or not highest - lowest > _LEAST_SLOPE * scale:
            break
        for k in range(look.x.size):
            look.x_steps[k] = cuts.slopes[k, to] - cuts.slopes[k, fro]
            look.n_steps[k] = cuts.chords[k, to] - cuts.chords[k, fro]
        most = min(box.high[to] - box.mix[to], box.mix[fro] - box.low[fro])
        step = _choose_step(most, highest - lowest, scale, cuts, look)
        box.mix[to] += step
        box.mix[fro] -= step
        for k in range(look.x.size):
            look.x[k] += step * look.x_steps[k]
            look.n[k] = max(look.n[k] + step * look.n_steps[k], cuts.least[k])
        _write_tangent(scale, cuts, look)


@inlined_kernel
def _stiffen(cuts: Cuts, look: Look) -> None:
    """Keep the prices of known rows, and let them rise faster where the mix still breaks the row."""
    for k in range(look.held.size):
        if cuts.softness[k] > 0.0:
            look.held[k] = look.prices[k]
            if look.x[k] > 0.0:
                cuts.softness[k] *= _STIFFEN


@inlined_kernel
def _bound_box(lower: float, cut: float, scale: float, work: BranchWork) -> float:
    """Raise a lower bound on g over the box by looking for good prices, until it exceeds the cut or cannot."""
    cuts, look, box = work.cuts, work.look, work.box
    for k in range(look.held.size):
        look.held[k] = 0.0
    for turn in range(_ROUNDS):
        _look_from(box.mix, cuts, look)
        free = _write_tangent(scale, cuts, look)
        lower = max(lower, _bound(free, cuts, look, box))
        here, broken = free, False
        for k in range(look.x.size):
            here += look.prices[k] * look.x[k] - look.tolls[k] * look.n[k]
            # As long as the mix breaks a known row, and the price may still rise, better ones are to be had.
            broken = broken or (cuts.softness[k] > 0.0 and look.x[k] > _BROKEN * cuts.sizes[0, k])
        hopeless = here <= (1.0 - _TOO_LOW) * cut and here - lower < _NEARLY_BEST * (cut - lower)
        settled = hopeless or here - lower < _GOOD_PRICES * scale
        if lower > cut or (settled and not broken) or turn == _ROUNDS - 1:
            break
        if turn > 0:
            _stiffen(cuts, look)
            _write_tangent(scale, cuts, look)
        _move_shares(scale, cuts, look, box)
    return lower


@kernel
def _fit_mix(low: FloatArray, high: FloatArray, mix: FloatArray) -> None:
    """Move a mix, in place, into a box that contains mixes."""
    missing = 1.0
    for a in range(mix.size):
        mix[a] = min(max(mix[a], low[a]), high[a])
        missing -= mix[a]
    for a in range(mix.size):
        share = min(max(mix[a] + missing, low[a]), high[a])
        missing -= share - mix[a]
        mix[a] = share


@kernel
def _choose_arm(cuts: Cuts, look: Look, box: Box) -> int:
    """The arm whose chord is farthest above its square, as the tangent weighs it; else the one of the widest range."""
    chosen, largest = -1, 0.0
    for a in range(box.mix.size):
        weight = 0.0
        for k in range(look.tolls.size):
            weight += look.tolls[k] * cuts.noise[k, a]
        error = weight * (box.mix[a] - box.low[a]) * (box.high[a] - box.mix[a])
        if error > largest:
            chosen, largest = a, error
    if chosen < 0:
        chosen = 0
        for a in range(box.mix.size):
            if box.high[a] - box.low[a] > box.high[chosen] - box.low[chosen]:
                chosen = a
    return chosen


@inlined_kernel
def _push(place: int, bound: float, box: Box, stack: Stack) -> None:
    for a in range(box.mix.size):
        stack.low[place, a] = box.low[a]
        stack.high[place, a] = box.high[a]
        stack.mixes[place, a] = box.mix[a]
    stack.bounds[place] = bound


@inlined_kernel
def _divide(top: int, lower: float, work: BranchWork) -> int:
    """Push the two parts of the box, the one that is shorter in the divided arm last; returns the stack's height."""
    box, stack = work.box, work.stack
    arm = _choose_arm(work.cuts, work.look, box)
    width = box.high[arm] - box.low[arm]
    middle = max(box.low[arm] + _LEAST_PART * width, min(box.mix[arm], box.high[arm] - _LEAST_PART * width))
    above = top if box.high[arm] - middle > middle - box.low[arm] else top + 1
    _push(top, lower, box, stack)
    _push(top + 1, lower, box, stack)
    stack.low[above, arm] = middle
    stack.high[2 * top + 1 - above, arm] = middle
    return top + 2


@inlined_kernel
def _load(place: int, work: BranchWork) -> None:
    """Take a box from the stack, without what is out of reach because shares sum to one."""
    box, stack = work.box, work.stack
    least, most = 0.0, 0.0
    for a in range(box.mix.size):
        least += stack.low[place, a]
        most += stack.high[place, a]
    for a in range(box.mix.size):
        box.low[a] = max(stack.low[place, a], stack.high[place, a] - max(most - 1.0, 0.0))
        box.high[a] = min(stack.high[place, a], stack.low[place, a] + max(1.0 - least, 0.0))
        box.mix[a] = stack.mixes[place, a]
    _fit_mix(box.low, box.high, box.mix)


@kernel
def _least_open(top: int, bounds: FloatArray) -> float:
    """The lowest bound of an open node: what is certain when a search is given up."""
    least = np.inf
    for k in range(top):
        least = min(least, bounds[k])
    return least


@kernel
def _set_softness(scale: float, known: BoolArray, cuts: Cuts) -> None:
    """Let breaking a known row by a small share of its largest entry cost as much as is to be exceeded."""
    for i in range(known.size):
        if known[i]:
            entry = cuts.sizes[0, i + 1] * _SOFTNESS
            cuts.softness[i + 1] = entry * entry / scale


@inlined_kernel
def _begin(evidence: Evidence, answer: FloatArray, r: float, work: BranchWork) -> float:
    """Put all mixes on the stack as one box, to be looked at from the arm that is the best witness, known rows aside.

    Returns the size of such values, for when no witness is known.
    """
    mix, box, cuts, look = work.candidate, work.box, work.cuts, work.look
    best, least, scale = 0, np.inf, 0.0
    for a in range(mix.size):
        box.low[a] = 0.0
        box.high[a] = 1.0
        mix[a] = 0.0
    _set_chords(evidence, answer, box.low, box.high, cuts)
    for a in range(mix.size):
        mix[a] = 1.0
        _look_from(mix, cuts, look)
        mix[a] = 0.0
        value, rough = 0.0, 0.0
        for k in range(look.x.size):
            if cuts.softness[k] == 0.0 and look.x[k] > 0.0:
                value += look.x[k] ** 2 / look.n[k]
                rough += look.x[k] ** 2 / cuts.sizes[1, k]  # the answer itself has no length
        scale = max(scale, rough)
        if value < least:
            best, least = a, value
    for a in range(mix.size):
        box.mix[a] = 1.0 if a == best else 0.0
    _push(0, 0.0, box, work.stack)
    return scale if scale > 0.0 else _BEYOND_DOUBT


@kernel
def search_witness(
    evidence: Evidence,
    answer: FloatArray,
    r: float,
    incumbent: float,
    accuracy: float,
    enough: float,
    penalty: float,
    max_nodes: int,
    arena: Arena,
    witness_out: FloatArray,
) -> tuple[int, int, float]:
    """Bound Z_0 from below: boxes are divided until their bounds exceed (1 - accuracy) times the incumbent.

    `incumbent` is the smallest witness value known (of `witness_out`, which is replaced by better ones), or a threshold
    to be exceeded. The search ends early with WITNESS once it finds a value of at most `enough` (0: it never does,
    unless nothing smaller is possible). `penalty` steers the search for better witnesses. Returns the outcome, the
    number of nodes examined, and a lower bound on Z_0 (for WITNESS: the witness's value).
    """
    if incumbent <= 0.0:
        return WITNESS, 0, incumbent
    n_arms, d = answer.size, evidence.known.size
    work = _carve(n_arms, d, arena)
    stack, mix = work.stack, work.candidate
    incumbent = min(incumbent, _BEYOND_DOUBT)
    cut = (1.0 - accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
    _write_cuts(evidence, answer, r, work.cuts)
    largest = _begin(evidence, answer, r, work)
    forget_basis(work.descent.lp)
    steps = 3 if enough > 0.0 else 20
    top, nodes, smallest = 1, 0, np.inf
    while top > 0:
        top -= 1
        lower = stack.bounds[top]
        if lower > cut:
            continue
        if nodes >= max_nodes or top >= _MAX_OPEN - 2:
            return UNRESOLVED, nodes, _least_open(top + 1, stack.bounds)
        nodes += 1
        _load(top, work)
        scale = min(cut, largest)
        _set_softness(scale, evidence.known, work.cuts)
        _set_chords(evidence, answer, work.box.low, work.box.high, work.cuts)
        lower = _bound_box(lower, cut, scale, work)
        if lower > cut:
            continue
        for a in range(n_arms):
            mix[a] = work.box.mix[a]
        found = witness_value(evidence, answer, mix, r)
        eager = enough == 0.0 or nodes <= _EAGER or nodes % _EAGER == 0 or found < smallest
        # An infinite value breaks a known row: the next best mix does not.
        if eager and (found < _WORTH_IMPROVING * incumbent or found == np.inf):
            smallest = min(smallest, found)
            found = improve_witness(evidence, answer, r, penalty, steps, work.descent, mix)
        if found < incumbent or found <= enough:
            for a in range(n_arms):
                witness_out[a] = mix[a]
            incumbent = found
            cut = (1.0 - accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
        if found <= enough:
            return WITNESS, nodes, found
        top = _divide(top, lower, work)
    return CERTIFIED, nodes, (1.0 - accuracy) * incumbent
