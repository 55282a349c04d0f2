r"""The values of all witnesses in a box, bounded from below by one linear function.

What is not convex in a witness' value are the variances S that it divides by, and they are separable: within a box
:math:`l \le q \le u` every square lies below its chord, :math:`q_a^2 \le (l_a + u_a) q_a - l_a u_a`. Put chords for
squares and each coordinate's part of the value, with x = D in units of its threshold and n the chord of S, becomes
:math:`x_+^2/(2 n)`: convex, and smaller. It lies above its tangents: for any price y >= 0

.. math:: \frac{x_+^2}{2 n} \ge y x - \tfrac12 y^2 n ,

Parts w_k may be added up. Where they are averaged, a witness' value exceeds c once

.. math:: \phi = c + \frac{c}{\alpha} \Bigl( \log \sum_k e^{a_k (w_k/c - 1)} - \log(1 + \sum_k e^{-a_k}) \Bigr) > c ,

which is convex in the parts, so it lies above its tangents, too; alpha is the least a_k. (Where phi is below c, the
value is at least c + (phi - c) alpha / (alpha - log m), with m parts.) All in all the right side is linear in q, and
its least value over the mixes of a box is found exactly, by giving to the arms with the lowest slopes as much as they
may have. So the bound of a box holds *for any* tangent: inexact inner solves can only make a search longer, never
wrong. (A known row has n = 0: any price will do.)

The best tangent is that where the convex function is smallest; that point is looked for by moving shares from one arm
to another.
"""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray
from polyarm.certify.evidence import (
    MIXED,
    TOGETHER,
    Evidence,
    choose_variant,
    statistic_at,
    steepness_of,
    threshold_of,
)
from polyarm.tolerances import KNOWN_ROW

#: How often the bound of a box is computed, and how many shares move in between.
_ROUNDS = 30
_MOVES = 16
#: A box is divided once its bound is certainly too low by this share and close to the best possible one.
_TOO_LOW = 0.02
_NEARLY_BEST = 0.25
#: Prices are good enough when the bound is within this share of the best possible one, or rises by no more.
_GOOD_PRICES = 1e-4
_LEAST_SLOPE = 1e-5
#: A step is good enough where the slope is this share of what it was; kinks take the most looks.
_FLAT = 1e-2
_NEWTON_STEPS = 40
#: The least variance, as a share of the smallest one possible, or of the smallest variance of an arm.
_LEAST_LENGTH = 1e-6
#: The least alpha - log m from which a bound below the cut follows, and what stands for more than the cut.
_LEAST_RISE, _JUST_ABOVE = 0.1, 1.0 + 1e-12
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
#: Shares closer than this to the ends of their interval are at the end.
_AT_END = 1e-12
#: Rounds of the search for the largest S / Lambda in a box, and how much is added to be on the safe side.
_RATIO_ROUNDS = 6
_RATIO_SLACK, _RATIO_STEP, _RATIO_STEPS = 1.0 + 1e-9, 1.02, 200


class CutTerms(Scalars):
    """`cut` is the c, `spare` the second logarithm and `alpha` the alpha of parts that are averaged; `cut` is 0 where
    they are added up. `dilution` is alpha / (alpha - log m); `offset` the part of a tangent that does not depend on
    prices."""

    cut: float
    spare: float
    alpha: float
    dilution: float
    offset: float


@struct
class Cuts:
    """The parts by chords: the reward first, then the rows; everything that does not depend on the mix looked from.

    Part k has x = `bases` + `slopes` q and n = `fixed` + `chords` q, of at least `least`; `curves` are what the chords
    are of; `x_sizes` and `n_sizes` the largest numbers that x and n are made of. `softness` is zero unless the row is
    known; `used` (m,) is zero for a part that refutes nothing. `steeps` are the a_k of parts that are averaged.
    """

    terms: CutTerms
    used: IntArray
    bases: FloatArray
    slopes: FloatArray
    fixed: FloatArray
    chords: FloatArray
    curves: FloatArray
    least: FloatArray
    x_sizes: FloatArray
    n_sizes: FloatArray
    softness: FloatArray
    steeps: FloatArray


@struct
class Look:
    """The parts as seen from one mix: x, n, and the tangent there (`prices` y theta, `tolls` y^2 theta / 2).

    `held` are prices of known rows to start from; `x_steps` and `n_steps` how x and n change along a move; `parts` and
    `shares` scratch for values and thetas, by how much what is bounded rises with each part.
    """

    x: FloatArray
    n: FloatArray
    prices: FloatArray
    tolls: FloatArray
    held: FloatArray
    x_steps: FloatArray
    n_steps: FloatArray
    parts: FloatArray
    shares: FloatArray


@struct
class Box:
    """A box: its ends, the mix looked from, slopes of the tangent there, arms worth moving."""

    low: FloatArray
    high: FloatArray
    mix: FloatArray
    slopes: FloatArray
    marks: IntArray
    movers: IntArray


@struct
class CutWork:
    """Scratch of bounding one box."""

    cuts: Cuts
    look: Look
    box: Box


def make_cut_work(n_arms: int, n_constraints: int) -> CutWork:
    """Allocate the scratch."""
    k, n = n_arms, n_constraints + 1
    return CutWork(
        cuts=Cuts(
            terms=CutTerms(),
            used=np.zeros(n, dtype=np.int64),
            bases=np.zeros(n),
            slopes=np.zeros((n, k)),
            fixed=np.zeros(n),
            chords=np.zeros((n, k)),
            curves=np.zeros((n, k)),
            least=np.zeros(n),
            x_sizes=np.zeros(n),
            n_sizes=np.zeros(n),
            softness=np.zeros(n),
            steeps=np.zeros(n),
        ),
        look=Look(*(np.zeros(n) for _ in range(9))),
        box=Box(
            low=np.zeros(k),
            high=np.zeros(k),
            mix=np.zeros(k),
            slopes=np.zeros(k),
            marks=np.zeros(k, dtype=np.int64),
            movers=np.zeros(k, dtype=np.int64),
        ),
    )


@kernel
def _excess_over(evidence: Evidence, k: int, v: int, ratio: float, box: Box) -> tuple[float, float, float]:
    """The largest S - ratio Lambda over a box, arm by arm, and S and Lambda where it is."""
    variance, prior = evidence.fixed[k, v], evidence.prior_fixed[k, v]
    for a in range(box.low.size):
        curve, tilt = evidence.curves[k, v, a], evidence.tilts[k, v, a]
        prior_curve, prior_tilt = evidence.prior_curves[k, v, a], evidence.prior_tilts[k, v, a]
        bend, pull = curve - ratio * prior_curve, tilt - ratio * prior_tilt
        low, high = box.low[a], box.high[a]
        x = high if high * (bend * high - 2.0 * pull) > low * (bend * low - 2.0 * pull) else low
        if bend < 0.0:
            x = min(max(pull / bend, low), high)  # concave: the top may lie inside
        variance += x * (curve * x - 2.0 * tilt)
        prior += x * (prior_curve * x - 2.0 * prior_tilt)
    return variance - ratio * prior, variance, prior


@kernel
def _largest_ratio(evidence: Evidence, k: int, v: int, box: Box) -> float:
    """An upper bound on S / Lambda over a box: Dinkelbach's method from below, then a step above."""
    _, variance, prior = statistic_at(evidence, k, v, box.mix)
    ratio = max(variance / prior, 1.0) if prior > 0.0 else 1.0
    for _ in range(_RATIO_ROUNDS):
        excess, variance, prior = _excess_over(evidence, k, v, ratio, box)
        if not excess > 0.0 or not prior > 0.0 or not variance / prior > ratio:
            break
        ratio = variance / prior
    ratio *= _RATIO_SLACK
    for _ in range(_RATIO_STEPS):
        excess, _, _ = _excess_over(evidence, k, v, ratio, box)
        if excess <= 0.0:
            return ratio
        ratio = 1.0 + (ratio - 1.0) * _RATIO_STEP + 1e-9
    return np.inf


@kernel
def _write_part(evidence: Evidence, k: int, v: int, ratio: float, cuts: Cuts) -> None:
    """Copy one variant of a coordinate, in units of its threshold for S / Lambda of at most this ratio, with the sizes
    of its numbers."""
    scale = 1.0
    if evidence.terms.kind != TOGETHER:
        scale = math.sqrt(2.0) / threshold_of(evidence, k, v, ratio)
        cuts.steeps[k] = steepness_of(evidence, k, v, ratio)
    cuts.bases[k] = scale * evidence.bases[k, v]
    fixed = evidence.fixed[k, v]
    largest, dearest, smallest, precision, total = 0.0, 0.0, np.inf, 0.0, abs(fixed)
    for a in range(cuts.slopes.shape[1]):
        cuts.slopes[k, a] = scale * evidence.gains[k, v, a]
        curve = evidence.curves[k, v, a]
        cuts.curves[k, a] = curve
        largest = max(largest, abs(cuts.slopes[k, a]))
        dearest = max(dearest, 2.0 * (curve + abs(evidence.tilts[k, v, a])))
        smallest = min(smallest, curve)
        precision += 1.0 / max(curve, 1e-300)
    # No mix has a smaller variance than 1 / precision; but the answer may have none, and would swamp all the others.
    cuts.least[k] = _LEAST_LENGTH * (smallest if k == 0 else 1.0 / precision)
    cuts.x_sizes[k] = abs(cuts.bases[k]) + largest
    cuts.n_sizes[k] = total + dearest


@kernel
def set_cut(evidence: Evidence, cut: float, cuts: Cuts) -> None:
    """Ask for values above this, of the parts that were written."""
    terms = cuts.terms
    terms.cut = 0.0
    if evidence.terms.kind == TOGETHER:
        return
    least, number, spare = np.inf, 0, 0.0
    for k in range(cuts.used.size):
        if cuts.used[k] == 1 and cuts.softness[k] == 0.0:
            least = min(least, cuts.steeps[k])
            spare += math.exp(-cuts.steeps[k])
            number += 1
    if number > 0:
        terms.cut, terms.spare = cut, math.log1p(spare)
        rise = least - math.log(number)
        terms.alpha, terms.dilution = least, least / rise if rise > _LEAST_RISE else np.inf


@kernel
def write_cuts(evidence: Evidence, scale: float, work: CutWork) -> None:
    """Put chords over the box for the squares, weighed by the variant that speaks most clearly at the box's mix.

    `scale` is what is to be exceeded: breaking a known row by a small share of its largest entry costs as much.
    """
    cuts, box = work.cuts, work.box
    for k in range(cuts.bases.size):
        cuts.used[k], cuts.softness[k] = 1, 0.0
        if k > 0 and evidence.known[k - 1]:
            _write_known_row(evidence, k, scale, cuts)
            continue
        v = choose_variant(evidence, k, box.mix)
        ratio = _largest_ratio(evidence, k, v, box) if v >= 0 and evidence.terms.kind == MIXED else 1.0
        if v < 0 or ratio == np.inf:
            cuts.used[k] = 0
            continue
        _write_part(evidence, k, v, ratio, cuts)
        fixed = evidence.fixed[k, v]
        for a in range(box.low.size):
            cuts.chords[k, a] = cuts.curves[k, a] * (box.low[a] + box.high[a]) - 2.0 * evidence.tilts[k, v, a]
            fixed -= cuts.curves[k, a] * box.low[a] * box.high[a]
        cuts.fixed[k] = fixed


@kernel
def _write_known_row(evidence: Evidence, k: int, scale: float, cuts: Cuts) -> None:
    """A known row has no variance; witnesses may break it by its tolerance."""
    largest = 0.0
    for a in range(cuts.slopes.shape[1]):
        cuts.slopes[k, a] = evidence.known_rows[k - 1, a]
        cuts.chords[k, a], cuts.curves[k, a] = 0.0, 0.0
        largest = max(largest, abs(cuts.slopes[k, a]))
    cuts.bases[k], cuts.fixed[k], cuts.least[k], cuts.n_sizes[k] = -KNOWN_ROW, 0.0, 0.0, 0.0
    cuts.x_sizes[k] = KNOWN_ROW + max(largest, 1e-300)
    cuts.softness[k] = (_SOFTNESS * cuts.x_sizes[k]) ** 2 / scale


@kernel
def write_tangents(evidence: Evidence, scale: float, work: CutWork) -> None:
    """Put tangents under the variances at the box's mix: the parts are then convex, and larger, and equal there."""
    cuts, box = work.cuts, work.box
    for k in range(cuts.bases.size):
        cuts.used[k], cuts.softness[k] = 1, 0.0
        if k > 0 and evidence.known[k - 1]:
            _write_known_row(evidence, k, scale, cuts)
            continue
        v = choose_variant(evidence, k, box.mix)
        if v < 0:
            cuts.used[k] = 0
            continue
        _, variance, prior = statistic_at(evidence, k, v, box.mix)
        ratio = variance / prior if evidence.terms.kind == MIXED else 1.0
        _write_part(evidence, k, v, ratio, cuts)
        fixed = evidence.fixed[k, v]
        for a in range(box.low.size):
            x = box.mix[a]
            cuts.chords[k, a] = 2.0 * (cuts.curves[k, a] * x - evidence.tilts[k, v, a])
            fixed -= cuts.curves[k, a] * x * x
        cuts.fixed[k] = fixed


@kernel
def look_from(mix: FloatArray, cuts: Cuts, look: Look) -> None:
    """Compute x and n of every part at a mix."""
    bases, slopes, fixed, chords = cuts.bases, cuts.slopes, cuts.fixed, cuts.chords
    for k in range(bases.size):
        if cuts.used[k] == 1:
            x, n = bases[k], fixed[k]
            for a in range(mix.size):
                x += slopes[k, a] * mix[a]
                n += chords[k, a] * mix[a]
            look.x[k] = x
            look.n[k] = max(n, cuts.least[k])
            look.x_steps[k], look.n_steps[k] = 0.0, 0.0  # no move yet: what the scratch held must not matter


@kernel
def _share_out(step: float, cuts: Cuts, look: Look) -> float:
    """Write parts and thetas, a step along the move; returns the value of all parts."""
    cut, steeps = cuts.terms.cut, cuts.steeps
    value, largest = 0.0, -np.inf
    for k in range(cuts.used.size):
        look.parts[k], look.shares[k] = 0.0, 0.0
        if cuts.used[k] == 1 and cuts.softness[k] == 0.0:
            x = look.x[k] + step * look.x_steps[k]
            if x > 0.0:
                look.parts[k] = 0.5 * x * x / max(look.n[k] + step * look.n_steps[k], cuts.least[k])
            look.shares[k] = 1.0
            value += look.parts[k]
            if cut > 0.0:
                look.shares[k] = steeps[k] * (look.parts[k] / cut - 1.0)
                largest = max(largest, look.shares[k])
    if not cut > 0.0:
        return value
    total = 0.0
    for k in range(cuts.used.size):
        if cuts.used[k] == 1 and cuts.softness[k] == 0.0:
            look.shares[k] = math.exp(look.shares[k] - largest)
            total += look.shares[k]
    for k in range(cuts.used.size):
        look.shares[k] *= steeps[k] / (total * cuts.terms.alpha)
    return cut * (1.0 + (largest + math.log(total) - cuts.terms.spare) / cuts.terms.alpha)


@kernel
def write_tangent(scale: float, cuts: Cuts, look: Look) -> float:
    """Write prices and tolls of the tangent at `look.x` and `look.n`; returns the value there."""
    here = _share_out(0.0, cuts, look)
    offset = here
    for k in range(look.x.size):
        look.prices[k], look.tolls[k] = 0.0, 0.0
        if cuts.softness[k] > 0.0:
            most = _LARGEST_PRICE * scale / cuts.x_sizes[k]
            look.prices[k] = min(max(look.held[k] + look.x[k] / cuts.softness[k], 0.0), most)
            here += look.prices[k] * look.x[k]
        elif look.parts[k] > 0.0:
            y = look.x[k] / look.n[k]
            look.prices[k] = look.shares[k] * y
            look.tolls[k] = 0.5 * look.shares[k] * y * y
            offset -= look.shares[k] * look.parts[k]
    cuts.terms.offset = offset if cuts.terms.cut > 0.0 else 0.0
    return here


@kernel
def _bound(cuts: Cuts, look: Look, box: Box) -> float:
    """The least value of the tangent over the mixes of the box; marks the arms that it or the present mix uses."""
    low, high, mix, slopes, marks = box.low, box.high, box.mix, box.slopes, box.marks
    gains, chords, prices, tolls = cuts.slopes, cuts.chords, look.prices, look.tolls
    bound, size = cuts.terms.offset, abs(cuts.terms.offset) + cuts.terms.cut
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
def _slope_along(step: float, scale: float, cuts: Cuts, look: Look) -> tuple[float, float]:
    """Slope and (about) curvature of what is bounded, a step along the move."""
    _share_out(step, cuts, look)
    rise, bend, spread, mean = 0.0, 0.0, 0.0, 0.0
    for k in range(look.x.size):
        if cuts.softness[k] > 0.0:
            most = _LARGEST_PRICE * scale / cuts.x_sizes[k]
            price = min(max(look.held[k] + (look.x[k] + step * look.x_steps[k]) / cuts.softness[k], 0.0), most)
            if price > 0.0:
                rise += price * look.x_steps[k]
                bend += look.x_steps[k] ** 2 / cuts.softness[k]
        elif look.parts[k] > 0.0 and look.shares[k] > 0.0:
            n = max(look.n[k] + step * look.n_steps[k], cuts.least[k])
            y = (look.x[k] + step * look.x_steps[k]) / n
            turn = y * (look.x_steps[k] - 0.5 * y * look.n_steps[k])
            rise += look.shares[k] * turn
            bend += look.shares[k] * (look.x_steps[k] - y * look.n_steps[k]) ** 2 / n
            spread += look.shares[k] * cuts.steeps[k] * turn * turn
            mean += look.shares[k] * turn
    if cuts.terms.cut > 0.0:
        bend += max(spread - cuts.terms.alpha * mean * mean, 0.0) / cuts.terms.cut
    return rise, bend


@kernel
def _choose_step(most: float, slope: float, scale: float, cuts: Cuts, look: Look) -> float:
    """How far to move along `look.x_steps`, at most `most`: to where the function is flat (Newton, bracketed)."""
    step, low, high = 0.0, 0.0, most
    for _ in range(_NEWTON_STEPS):
        rise, bend = _slope_along(step, scale, cuts, look)
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
            if prices[k] > 0.0:
                slope += prices[k] * gains[k, a] - tolls[k] * chords[k, a]
        if slope < lowest and mix[a] < high[a] - _AT_END:
            to, lowest = a, slope
        if slope > highest and mix[a] > low[a] + _AT_END:
            fro, highest = a, slope
    return to, fro, highest - lowest


@kernel
def move_shares(scale: float, cuts: Cuts, look: Look, box: Box) -> None:
    """Lower the convex function by moving shares from the arm with the highest slope to that with the lowest.

    Only between arms that are marked; the tangent at the box's mix must have been written.
    """
    mix, x, n = box.mix, look.x, look.n
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
            if cuts.used[k] == 1:
                look.x_steps[k] = cuts.slopes[k, to] - cuts.slopes[k, fro]
                look.n_steps[k] = cuts.chords[k, to] - cuts.chords[k, fro]
        most = min(box.high[to] - mix[to], mix[fro] - box.low[fro])
        step = _choose_step(most, difference, scale, cuts, look)
        mix[to] += step
        mix[fro] -= step
        for k in range(x.size):
            if cuts.used[k] == 1:
                x[k] += step * look.x_steps[k]
                n[k] = max(n[k] + step * look.n_steps[k], cuts.least[k])
        write_tangent(scale, cuts, look)


@kernel
def _stiffen(cuts: Cuts, look: Look) -> None:
    """Keep the prices of known rows, and let them rise faster where the mix still breaks the row."""
    for k in range(look.held.size):
        if cuts.softness[k] > 0.0:
            look.held[k] = look.prices[k]
            if look.x[k] > 0.0:
                cuts.softness[k] *= _STIFFEN


@kernel
def release_prices(look: Look) -> None:
    """Start known rows from no price."""
    for k in range(look.held.size):
        look.held[k] = 0.0


@kernel
def bound_box(evidence: Evidence, lower: float, cut: float, scale: float, work: CutWork) -> float:
    """Raise a lower bound on the value over the box by better prices, until it exceeds the cut or can rise no more."""
    cuts, look, box = work.cuts, work.look, work.box
    set_cut(evidence, cut, cuts)
    release_prices(look)
    reached = 0.0
    for turn in range(_ROUNDS):
        look_from(box.mix, cuts, look)
        here = write_tangent(scale, cuts, look)
        found = _bound(cuts, look, box)
        reached, certain = max(found, reached), found
        if cuts.terms.cut > 0.0:  # beyond the cut phi bounds nothing: only that the cut is exceeded is certain
            diluted = cut - (cut - found) * cuts.terms.dilution if found < cut else 0.0
            certain = cut * _JUST_ABOVE if found > cut else max(diluted, 0.0)
        lower = max(lower, certain)
        broken = False
        for k in range(look.x.size):
            # While the mix breaks a known row and its price may still rise, there are better prices.
            broken = broken or (cuts.softness[k] > 0.0 and look.x[k] > _BROKEN * cuts.x_sizes[k])
        hopeless = here <= (1.0 - _TOO_LOW) * cut and here - reached < _NEARLY_BEST * (cut - reached)
        settled = hopeless or here - reached < _GOOD_PRICES * scale
        if lower > cut or (settled and not broken) or turn == _ROUNDS - 1:
            break
        if turn > 0:
            _stiffen(cuts, look)
        write_tangent(scale, cuts, look)
        move_shares(scale, cuts, look, box)
    return lower
