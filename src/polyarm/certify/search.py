r"""Certified lower bound on the reward statistic Z_0 = min_q g(q), which is not convex in q.

The mixes are cut into boxes, :math:`l \le q \le u`. What is not convex in g are the squared norms that it divides by,
and they are separable: within a box every square lies below its chord, :math:`q_a^2 \le (l_a + u_a) q_a - l_a u_a`.
Put chords for squares and each part of g becomes a square over a linear function, which is convex, and smaller. A
convex function lies above its tangents: for any prices y >= 0 and any shares theta in [0, 1], with x the reward gap or
the cost of a row, n the chord of its squared norm, and kappa the least value of a row's part (see `certify.evidence`),

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

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.certify.evidence import Evidence, witness_value
from polyarm.certify.witnesses import DescentWork, improve_witness, make_descent_work
from polyarm.polytope.penalised import forget_basis
from polyarm.tolerances import CERTIFIED_MARGIN, KNOWN_ROW

# Outcomes of a search.
CERTIFIED = 1  # the statistic exceeds what was asked, for certain
WITNESS = 0  # a mix with a smaller value was found
UNRESOLVED = -1  # the node budget ran out

#: The most boxes that wait to be examined.
_MAX_OPEN = 600
#: How often the bound of a box is computed, and how many shares move in between.
_ROUNDS = 20
_MOVES = 20
#: A box is divided once its bound is certainly too low by this share and close to the best possible one.
_TOO_LOW = 0.02
_NEARLY_BEST = 0.25
#: Prices are good enough when the bound is within this share of the best possible one.
_GOOD_PRICES = 1e-4
_LEAST_SLOPE = 1e-5
#: Neither part of a divided interval is shorter than this share of it.
_LEAST_PART = 0.1
#: A step is good enough where the slope is this share of what it was; kinks take the most looks.
_FLAT = 1e-2
_NEWTON_STEPS = 40
#: A chord error this small, as a share of the largest that the box allows, does not explain a low bound.
_NEGLIGIBLE = 1e-3
#: The least squared length of a normal, as a share of the smallest one possible or of the smallest variance.
_LEAST_LENGTH = 1e-6
#: Where a row's part and its floor are this close, as a share of the floor, both count.
_BLUR = 0.02
#: Breaking a known row by this share of its largest entry costs half of what is to be exceeded, at first.
_SOFTNESS = 0.05
#: ... and after every look from a mix that breaks it this many times more.
_STIFFEN = 0.25
#: Breaking a known row by this share of its largest entry counts as keeping it.
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


@struct
class Cuts:
    """The parts of g, by chords: the reward first, then the rows; everything that does not depend on the mix looked
    from.

    Part k has x = `bases` + `slopes` q and n = `fixed` + `chords` q, of at least `least`, from the variances `noise`;
    `x_sizes` and `n_sizes` are the largest numbers that x and n are made of; `floors` the least values; `softness` is
    zero unless the row is known.
    """

    bases: FloatArray
    slopes: FloatArray
    fixed: FloatArray
    chords: FloatArray
    noise: FloatArray
    least: FloatArray
    x_sizes: FloatArray
    n_sizes: FloatArray
    floors: FloatArray
    softness: FloatArray


@struct
class Look:
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


@struct
class Box:
    """The box being examined: its ends, the mix looked from, slopes of the tangent there, arms worth moving."""

    low: FloatArray
    high: FloatArray
    mix: FloatArray
    slopes: FloatArray
    marks: IntArray
    movers: IntArray


@struct
class Stack:
    """Open boxes (600, K): their ends, a mix to look from, and the bound."""

    low: FloatArray
    high: FloatArray
    mixes: FloatArray
    bounds: FloatArray


@struct
class SearchWork:
    """Scratch of the search; `columns` is for linear programs beside it."""

    cuts: Cuts
    look: Look
    box: Box
    stack: Stack
    candidate: FloatArray
    columns: FloatArray
    descent: DescentWork


class Task(NamedTuple):
    """The task of a search.

    `incumbent` is the smallest witness value known, or a threshold to be exceeded: boxes are divided until their bounds
    exceed (1 - `accuracy`) times that. The search ends early once it finds a value of at most `enough` (0: never,
    unless nothing smaller is possible). `penalty` steers the search for better witnesses; `max_cells` boxes may be
    examined.
    """

    incumbent: float
    accuracy: float
    enough: float
    penalty: float
    max_cells: int


def make_search_work(n_arms: int, n_constraints: int) -> SearchWork:
    """Allocate the scratch of searches of one shape."""
    k, n, m = n_arms, n_constraints + 1, _MAX_OPEN
    return SearchWork(
        cuts=Cuts(
            bases=np.zeros(n),
            slopes=np.zeros((n, k)),
            fixed=np.zeros(n),
            chords=np.zeros((n, k)),
            noise=np.zeros((n, k)),
            least=np.zeros(n),
            x_sizes=np.zeros(n),
            n_sizes=np.zeros(n),
            floors=np.zeros(n),
            softness=np.zeros(n),
        ),
        look=Look(*(np.zeros(n) for _ in range(7))),
        box=Box(
            low=np.zeros(k),
            high=np.zeros(k),
            mix=np.zeros(k),
            slopes=np.zeros(k),
            marks=np.zeros(k, dtype=np.int64),
            movers=np.zeros(k, dtype=np.int64),
        ),
        stack=Stack(np.zeros((m, k)), np.zeros((m, k)), np.zeros((m, k)), np.zeros(m)),
        candidate=np.zeros(k),
        columns=np.zeros((n, k)),
        descent=make_descent_work(n_arms, n_constraints),
    )


@kernel
def _write_cuts(evidence: Evidence, cuts: Cuts) -> None:
    """Fill in what is the same in every box."""
    answer, terms = evidence.centre, evidence.terms
    d, n_arms = evidence.rows.shape
    for k in range(d + 1):
        known = k > 0 and evidence.known[k - 1]
        # Witnesses may break a known row by its tolerance.
        base = terms.tolerance if k == 0 else (-KNOWN_ROW if known else 0.0)
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
        cuts.x_sizes[k] = abs(base) + largest
        cuts.n_sizes[k] = (evidence.terms.spread if k == 0 else 0.0) + total + dearest
        cuts.floors[k] = 0.0 if k == 0 or known else evidence.terms.floor
        cuts.softness[k] = max(largest, 1e-300) if known else 0.0  # in units of the row, until the cut is known


@kernel
def _set_chords(evidence: Evidence, low: FloatArray, high: FloatArray, cuts: Cuts) -> None:
    """Put chords over this box for the squares."""
    answer, noises, chords = evidence.centre, cuts.noise, cuts.chords
    for k in range(cuts.bases.size):
        fixed = evidence.terms.spread if k == 0 else 0.0
        for a in range(low.size):
            noise = noises[k, a]
            chords[k, a] = noise * (low[a] + high[a])
            fixed -= noise * low[a] * high[a]
        if k == 0:
            for a in range(low.size):
                chords[k, a] -= 2.0 * noises[k, a] * answer[a]
                fixed += noises[k, a] * answer[a] * answer[a]
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
        most = _LARGEST_PRICE * scale / cuts.x_sizes[k]
        y, share, _ = _touch(look.x[k], look.n[k], cuts.floors[k], cuts.softness[k], look.held[k], most)
        look.prices[k] = share * y
        look.tolls[k] = 0.5 * share * y * y if cuts.softness[k] == 0.0 else 0.0
        free += (1.0 - share) * cuts.floors[k]
    return free


@kernel
def _look_from(mix: FloatArray, cuts: Cuts, look: Look) -> None:
    """Compute x and n of every part at a mix."""
    bases, slopes, fixed, chords = cuts.bases, cuts.slopes, cuts.fixed, cuts.chords
    for k in range(bases.size):
        x, n = bases[k], fixed[k]
        for a in range(mix.size):
            x += slopes[k, a] * mix[a]
            n += chords[k, a] * mix[a]
        look.x[k] = x
        look.n[k] = max(n, cuts.least[k])


@kernel
def _bound(free: float, cuts: Cuts, look: Look, box: Box) -> float:
    """The least value of the tangent over the mixes of the box; marks the arms that it or the present mix uses."""
    low, high, mix, slopes, marks = box.low, box.high, box.mix, box.slopes, box.marks
    gains, chords, prices, tolls = cuts.slopes, cuts.chords, look.prices, look.tolls
    bound, size = free, free
    for a in range(low.size):
        slopes[a] = 0.0
    for k in range(prices.size):
        price, toll = prices[k], tolls[k]
        if price > 0.0:
            bound += price * cuts.bases[k] - toll * cuts.fixed[k]
            size += price * cuts.x_sizes[k] + toll * cuts.n_sizes[k]
            for a in range(low.size):
                slopes[a] += price * gains[k, a] - toll * chords[k, a]
    left = 1.0
    for a in range(low.size):
        bound += slopes[a] * low[a]
        left -= low[a]
        marks[a] = 1 if mix[a] > low[a] + _AT_END else 0
    while left > 0.0:
        lowest = -1
        for a in range(low.size):
            if marks[a] < 2 and (lowest < 0 or slopes[a] < slopes[lowest]):
                lowest = a
        if lowest < 0:
            break
        share = min(left, high[lowest] - low[lowest])
        bound += share * slopes[lowest]
        left -= share
        marks[lowest] = 2
    bound -= _ROUND_OFF * size
    return bound if bound >= 0.0 else 0.0  # NaN bounds nothing


@kernel
def _choose_step(most: float, slope: float, scale: float, cuts: Cuts, look: Look) -> float:
    """How far to move along `look.x_steps`, at most `most`: to where the function is flat (Newton, bracketed)."""
    step, low, high = 0.0, 0.0, most
    for _ in range(_NEWTON_STEPS):
        rise, bend = 0.0, 0.0
        for k in range(look.x.size):
            x, n = look.x[k] + step * look.x_steps[k], max(look.n[k] + step * look.n_steps[k], cuts.least[k])
            limit = _LARGEST_PRICE * scale / cuts.x_sizes[k]
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
def _steepest(cuts: Cuts, look: Look, box: Box, n_movers: int) -> tuple[int, int, float]:
    """The arm to move shares to, the arm to take them from (-1: none), and how much their slopes differ."""
    gains, chords, prices, tolls = cuts.slopes, cuts.chords, look.prices, look.tolls
    low, high, mix, movers = box.low, box.high, box.mix, box.movers
    to, fro, lowest, highest = -1, -1, np.inf, -np.inf
    for j in range(n_movers):
        a = movers[j]
        slope = 0.0
        for k in range(prices.size):
            slope += prices[k] * gains[k, a] - tolls[k] * chords[k, a]
        if slope < lowest and mix[a] < high[a] - _AT_END:
            to, lowest = a, slope
        if slope > highest and mix[a] > low[a] + _AT_END:
            fro, highest = a, slope
    return to, fro, highest - lowest


@kernel
def _move_shares(scale: float, cuts: Cuts, look: Look, box: Box) -> None:
    """Lower the convex function by moving shares from the arm with the highest slope to that with the lowest."""
    low, high, mix, x, n = box.low, box.high, box.mix, look.x, look.n
    movers = 0
    for a in range(mix.size):
        if box.marks[a] > 0:
            box.movers[movers] = a
            movers += 1
    for _ in range(_MOVES):
        to, fro, difference = _steepest(cuts, look, box, movers)
        if to < 0 or fro < 0 or not difference > _LEAST_SLOPE * scale:
            break
        for k in range(x.size):
            look.x_steps[k] = cuts.slopes[k, to] - cuts.slopes[k, fro]
            look.n_steps[k] = cuts.chords[k, to] - cuts.chords[k, fro]
        most = min(high[to] - mix[to], mix[fro] - low[fro])
        step = _choose_step(most, difference, scale, cuts, look)
        mix[to] += step
        mix[fro] -= step
        for k in range(x.size):
            x[k] += step * look.x_steps[k]
            n[k] = max(n[k] + step * look.n_steps[k], cuts.least[k])
        _write_tangent(scale, cuts, look)


@kernel
def _stiffen(cuts: Cuts, look: Look) -> None:
    """Keep the prices of known rows, and let them rise faster where the mix still breaks the row."""
    for k in range(look.held.size):
        if cuts.softness[k] > 0.0:
            look.held[k] = look.prices[k]
            if look.x[k] > 0.0:
                cuts.softness[k] *= _STIFFEN


@kernel
def _bound_box(lower: float, cut: float, scale: float, work: SearchWork) -> float:
    """Raise a lower bound on g over the box by better prices, until it exceeds the cut or can rise no more."""
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
            # While the mix breaks a known row and its price may still rise, there are better prices.
            broken = broken or (cuts.softness[k] > 0.0 and look.x[k] > _BROKEN * cuts.x_sizes[k])
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
    """The arm whose chord is farthest above its square, as the tangent weighs it.

    If the mix touches nearly every square, it is the arm whose chord could be farthest above; without any weight, the
    one with the widest range. An arm that is nearly fixed is never divided again.
    """
    chosen, largest, roomiest, room, widest = 0, 0.0, -1, 0.0, 0
    for a in range(box.mix.size):
        weight = 0.0
        for k in range(look.tolls.size):
            weight += look.tolls[k] * cuts.noise[k, a]
        width = box.high[a] - box.low[a]
        error = weight * (box.mix[a] - box.low[a]) * (box.high[a] - box.mix[a])
        if error > largest:
            chosen, largest = a, error
        if 0.25 * weight * width * width > room:
            roomiest, room = a, 0.25 * weight * width * width
        if width > box.high[widest] - box.low[widest]:
            widest = a
    if largest > _NEGLIGIBLE * room:
        return chosen
    return roomiest if roomiest >= 0 else widest


@kernel
def _push(place: int, bound: float, box: Box, stack: Stack) -> None:
    for a in range(box.mix.size):
        stack.low[place, a] = box.low[a]
        stack.high[place, a] = box.high[a]
        stack.mixes[place, a] = box.mix[a]
    stack.bounds[place] = bound


@kernel
def _divide(top: int, lower: float, work: SearchWork) -> int:
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


@kernel
def _load(place: int, work: SearchWork) -> None:
    """Take a box from the stack, less the part that is out of reach because shares sum to one."""
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
    """The lowest bound of an open box: what is certain if the search is given up now."""
    least = np.inf
    for k in range(top):
        least = min(least, bounds[k])
    return least


@kernel
def _set_softness(scale: float, known: BoolArray, cuts: Cuts) -> None:
    """Let breaking a known row by a small share of its largest entry cost as much as is to be exceeded."""
    for i in range(known.size):
        if known[i]:
            entry = cuts.x_sizes[i + 1] * _SOFTNESS
            cuts.softness[i + 1] = entry * entry / scale


@kernel
def _begin(work: SearchWork) -> float:
    """Put all mixes on the stack as one box, to be looked at from the arm that is the best witness, known rows aside.

    Returns the size of witness values, for a search that knows none yet. The chords over the whole simplex must be set.
    """
    mix, box, cuts, look = work.candidate, work.box, work.cuts, work.look
    best, least, scale = 0, np.inf, 0.0
    for a in range(mix.size):
        mix[a] = 0.0
    for a in range(mix.size):
        mix[a] = 1.0
        _look_from(mix, cuts, look)
        mix[a] = 0.0
        value, rough = 0.0, 0.0
        for k in range(look.x.size):
            if cuts.softness[k] == 0.0 and look.x[k] > 0.0:
                value += look.x[k] ** 2 / look.n[k]
                rough += look.x[k] ** 2 / cuts.n_sizes[k]  # the answer itself has no length
        scale = max(scale, rough)
        if value < least:
            best, least = a, value
    for a in range(mix.size):
        box.mix[a] = 1.0 if a == best else 0.0
    _push(0, 0.0, box, work.stack)
    return scale if scale > 0.0 else _BEYOND_DOUBT


@kernel
def _examine(evidence: Evidence, lower: float, cut: float, scale: float, work: SearchWork) -> float:
    """Bound the box that was loaded; leaves its best mix as the candidate."""
    box, mix = work.box, work.candidate
    _set_softness(scale, evidence.known, work.cuts)
    _set_chords(evidence, box.low, box.high, work.cuts)
    lower = _bound_box(lower, cut, scale, work)
    for a in range(mix.size):
        mix[a] = box.mix[a]
    return lower


@kernel
def search_witness(evidence: Evidence, task: Task, work: SearchWork, witness_out: FloatArray) -> tuple[int, int, float]:
    """Bound Z_0 from below by dividing boxes, as a `Task` asks; `witness_out` is replaced by better witnesses.

    Returns the outcome, the number of boxes examined, and a lower bound on Z_0 (for WITNESS: the witness's value).
    """
    if task.incumbent <= 0.0:
        return WITNESS, 0, task.incumbent
    stack, mix, box = work.stack, work.candidate, work.box
    incumbent = min(task.incumbent, _BEYOND_DOUBT)
    cut = (1.0 - task.accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
    _write_cuts(evidence, work.cuts)
    for a in range(mix.size):
        box.low[a], box.high[a] = 0.0, 1.0
    _set_chords(evidence, box.low, box.high, work.cuts)
    largest = _begin(work)
    forget_basis(work.descent.lp)
    steps = 3 if task.enough > 0.0 else 20
    top, cells, smallest = 1, 0, np.inf
    while top > 0:
        top -= 1
        lower = stack.bounds[top]
        if lower > cut:
            continue
        if cells >= task.max_cells or top >= _MAX_OPEN - 2:
            return UNRESOLVED, cells, _least_open(top + 1, stack.bounds)
        cells += 1
        _load(top, work)
        lower = _examine(evidence, lower, cut, min(cut, largest), work)
        if lower > cut:
            continue
        found = witness_value(evidence, mix)
        eager = task.enough == 0.0 or cells <= _EAGER or cells % _EAGER == 0 or found < smallest
        # An infinite value breaks a known row: the next best mix does not.
        if eager and (found < _WORTH_IMPROVING * incumbent or found == np.inf):
            smallest = min(smallest, found)
            found = improve_witness(evidence, task.penalty, steps, work.descent, mix)
        if found < incumbent or found <= task.enough:
            for a in range(mix.size):
                witness_out[a] = mix[a]
            incumbent = found
            cut = (1.0 - task.accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
        if found <= task.enough:
            return WITNESS, cells, found
        top = _divide(top, lower, work)
    return CERTIFIED, cells, (1.0 - task.accuracy) * incumbent
