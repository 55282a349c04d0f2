r"""The certificate by blocks: what a start has accumulated, and what that says of every claim.

Pulls come in blocks. Before the first pull of block k its answer p_k, the counts n_ka >= 1 of all arms and a guess of
every mean are fixed; m^k and G^k are the means of the block alone, n_k its number of pulls, f = n_k / n_ka. From a
*start* on, with C = sum n_k, **the answer is the average** :math:`\bar p = \sum_k n_k p_k / C`. The true optimum q*
does not move and p_k is fixed before its data, so three kinds of one-dimensional martingales decide:

================  ===========================  ==============================================
claim             coefficient of a pull        statistic D
================  ===========================  ==============================================
row i, at answer  :math:`-f p_{ka}`            :math:`-\sum_k n_k G_i^k p_k`
reward at q       :math:`-f (q_a - p_{ka})`    :math:`\sum_k n_k (r - m^k (q - p_k))`
row i at q        :math:`f q_a`                :math:`\sum_k n_k G_i^k q`
================  ===========================  ==============================================

If row i fails at the answer, its D is below the martingale; if the answer is more than r below the best, every D at
q = q* is. `certify.lemma` says how unlikely that is. The answer is proved when every D of the first kind exceeds its
threshold, and every q is refuted by the average of the E-processes of its coordinates (`certify.evidence`).
docs/guarantee.md has the proof.
"""

import math

import numpy as np

from polyarm._compile import inlined_kernel, kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray
from polyarm.accounts import DECLARED, ESTIMATED, KNOWN, LEARNABLE, RANGE, guard, learning_price
from polyarm.certify.constants import (
    ANCHOR,
    ANSWER_SHARE,
    POINTS,
    POINTS_BETWEEN,
    PRECISION,
    REACHES,
    REWARD_SHARE,
    ROWS_SHARE,
    START_WEIGHTS,
)
from polyarm.certify.evidence import MIXED, Evidence
from polyarm.certify.lemma import log_mixture
from polyarm.model import Model

MAX_STARTS = len(START_WEIGHTS)
_REACHES = np.array(REACHES)
#: Stands for the variance of an arm whose outcome has never varied: nothing is known of it.
_UNKNOWN_VARIANCE = 1e200


class StartTerms(Scalars):
    """Numbers of a start.

    `begun`: the pulls made by then; `first`: the block on record that follows; `blocks`: how many were added.
    `weight`: C. `earned`: the sum of n_k m^k.p_k. `reward_level`, `row_level` and `answer_level`: log(1/delta') of each
    claim. `ratio`: the least statistic over its threshold at the last test. `expected` and `forecast`: pulls from the
    start to the stop, as expected then and now.
    """

    begun: float
    first: int
    blocks: int
    weight: float
    earned: float
    reward_level: float
    row_level: float
    answer_level: float
    ratio: float
    expected: float
    forecast: float


@struct
class Start:
    r"""What was fixed at a start, and what has been accumulated since. Outcome 0 is the reward, 1 + i row i.

    Fixed: `anchor` (K,), p_s; `precision` (1 + d, K), lam_a tau_a; `priors` (d,), the precision at the answer; `points`
    (d, POINTS), of the mixture there; `pivots` (1 + d, K), about which powers are summed; `coarse` (1 + d, K), 1 where
    Hoeffding's account was chosen.

    Sums over blocks: `rewards` (K,) and `rows` (d, K) of n_k times the block's means; `slack` (d,) of -n_k G^k p_k;
    `answer` (K,) of n_k p_k; `spread`, `spread_p`, `spread_pp` (K,) of f^2 per pull, times 1, p, p^2; `squares`
    (1 + d, K), `squares_p`, `squares_pp` (K,) the same times xi^2 (the reward's); `own` (d, K) of f^2 p^2 xi^2 per row;
    `charges` (d, POINTS) the account of each point; `twos` (3, 1 + d, K) and `fours` (5, 1 + d, K) power sums with f^2
    and f^4. `highest` (K,) is the largest share that any p_k had.
    """

    terms: StartTerms
    anchor: FloatArray
    precision: FloatArray
    priors: FloatArray
    points: FloatArray
    pivots: FloatArray
    coarse: IntArray
    rewards: FloatArray
    rows: FloatArray
    slack: FloatArray
    answer: FloatArray
    spread: FloatArray
    spread_p: FloatArray
    spread_pp: FloatArray
    squares: FloatArray
    squares_p: FloatArray
    squares_pp: FloatArray
    own: FloatArray
    charges: FloatArray
    twos: FloatArray
    fours: FloatArray
    highest: FloatArray


@struct
class Record:
    """Complete blocks, M of them at most: answers and counts (M, K), guesses and expected variances (M, 1 + d, K),
    power sums (M, 4, 1 + d, K).

    `told` (M,) is the number of outcomes known when the block was fixed.
    """

    told: FloatArray
    answers: FloatArray
    counts: FloatArray
    guesses: FloatArray
    variances: FloatArray
    powers: FloatArray


def make_record(n_blocks: int, n_arms: int, n_constraints: int) -> Record:
    """Allocate a record of so many blocks."""
    n, m, k = n_blocks, 1 + n_constraints, n_arms
    return Record(
        told=np.zeros(n),
        answers=np.zeros((n, k)),
        counts=np.zeros((n, k)),
        guesses=np.zeros((n, m, k)),
        variances=np.zeros((n, m, k)),
        powers=np.zeros((n, 4, m, k)),
    )


@kernel
def _size(record: Record, b: int) -> float:
    """The pulls of a block."""
    total = 0.0
    for a in range(record.counts.shape[1]):
        total += record.counts[b, a]
    return total


def share_delta(number: int, delta: float, n_unknown: int) -> tuple[float, float, float]:
    """Return what the start of this number may spend on the reward at q, each row at q, and each row at the answer."""
    spent = delta * START_WEIGHTS[number]
    if n_unknown == 0:
        return spent, 1.0, 1.0
    return REWARD_SHARE * spent, ROWS_SHARE * spent / n_unknown, ANSWER_SHARE * spent / n_unknown


def make_start(number: int, delta: float, model: Model) -> Start:
    """Allocate the start of this number, from 0, with nothing accumulated.

    Args:
        number: Which start it is: that decides its share of delta.
        delta: What all starts may spend together.
        model: The problem.
    """
    d, k = model.row_noise.shape
    reward, row, answer = share_delta(number, delta, int((~model.known).sum()))
    terms = StartTerms(reward_level=-math.log(reward), row_level=-math.log(row), answer_level=-math.log(answer))
    return Start(
        terms=terms,
        anchor=np.zeros(k),
        precision=np.zeros((1 + d, k)),
        priors=np.zeros(d),
        points=np.zeros((d, POINTS)),
        pivots=np.zeros((1 + d, k)),
        coarse=np.zeros((1 + d, k), dtype=np.int64),
        rewards=np.zeros(k),
        rows=np.zeros((d, k)),
        slack=np.zeros(d),
        answer=np.zeros(k),
        spread=np.zeros(k),
        spread_p=np.zeros(k),
        spread_pp=np.zeros(k),
        squares=np.zeros((1 + d, k)),
        squares_p=np.zeros(k),
        squares_pp=np.zeros(k),
        own=np.zeros((d, k)),
        charges=np.zeros((d, POINTS)),
        twos=np.zeros((3, 1 + d, k)),
        fours=np.zeros((5, 1 + d, k)),
        highest=np.zeros(k),
    )


@kernel
def side(model: Model, k: int, arm: int, guessed: float) -> float:
    """How far outcome k of an arm can lie from its guess on the side that matters at q: below, for a row; either, for
    the reward. Infinite without a range."""
    below = guessed - model.low[k, arm]
    return below if k > 0 else max(below, model.high[k, arm] - guessed)


@kernel
def begin(
    start: Start,
    model: Model,
    expected: float,
    allocation: FloatArray,
    answer: FloatArray,
    variances: FloatArray,
    guesses: FloatArray,
) -> None:
    """Fix what a start needs from the data so far.

    `expected` pulls until the stop, how they (`allocation`) and the `answer` are planned, and the variances and guesses
    (1 + d, K) of one pull of each arm.
    """
    for a in range(answer.size):
        start.anchor[a] = answer[a]
    for k in range(model.accounts.size):
        for a in range(answer.size):
            start.pivots[k, a] = guesses[k, a]
            start.coarse[k, a] = 0
            tau = variances[k, a]
            if model.accounts[k] == RANGE:
                hoeffding = 0.25 * (model.high[k, a] - model.low[k, a]) ** 2
                per = (1.0 + PRECISION) * expected * variances[k, a] * allocation[a]
                u = 2.5 * side(model, k, a, guesses[k, a]) / math.sqrt(per) if per > 0.0 else 1.0
                tau = learning_price(min(u, LEARNABLE)) * variances[k, a]
                if u > LEARNABLE or tau > hoeffding:
                    start.coarse[k, a] = 1
                    tau = hoeffding
            start.precision[k, a] = PRECISION * expected / allocation[a] * tau
    settle_priors(start, model)


@kernel
def settle_priors(start: Start, model: Model) -> None:
    """Write the precision of each row at the answer, and the points of its mixture: they follow from the rest."""
    for i in range(model.known.size):
        total = 0.0
        for a in range(start.anchor.size):
            total += start.precision[1 + i, a] * start.anchor[a] * start.anchor[a]
        start.priors[i] = total
        if model.known[i] or not total > 0.0:
            continue
        first = math.log(POINTS_BETWEEN[0] / math.sqrt(total))
        last = math.log(POINTS_BETWEEN[1] / math.sqrt(total))
        for n in range(POINTS):
            start.points[i, n] = math.exp(first + n * (last - first) / (POINTS - 1))


@struct
class Told:
    """A complete block: its `answer` and `counts` (K,), the guesses (1 + d, K), and power sums (4, 1 + d, K) about
    them; costs as rows of the model, before their bounds."""

    answer: FloatArray
    counts: FloatArray
    guesses: FloatArray
    powers: FloatArray


@kernel
def add_block(start: Start, model: Model, told: Told, variances: FloatArray) -> None:
    """Add a complete block; `variances` (1 + d, K) are those expected before it."""
    n_arms, size = told.counts.size, 0.0
    for a in range(n_arms):
        size += told.counts[a]
    start.terms.weight += size
    start.terms.blocks += 1
    for a in range(n_arms):
        n, p = told.counts[a], told.answer[a]
        f = size / n
        start.answer[a] += size * p
        start.highest[a] = max(start.highest[a], p)
        start.spread[a] += f * f * n
        start.spread_p[a] += f * f * n * p
        start.spread_pp[a] += f * f * n * p * p
        for k in range(model.accounts.size):
            if model.accounts[k] == KNOWN:
                continue
            total = f * (told.powers[0, k, a] + n * told.guesses[k, a])
            squares = f * f * told.powers[1, k, a]
            start.squares[k, a] += squares
            if k == 0:
                start.rewards[a] += total
                start.terms.earned += p * total
                start.squares_p[a] += p * squares
                start.squares_pp[a] += p * p * squares
            else:
                total -= size * model.bounds[k - 1]
                start.rows[k - 1, a] += total
                start.slack[k - 1] -= p * total
                start.own[k - 1, a] += p * p * squares
                if model.accounts[k] == RANGE:
                    _charge(start, model, told, k, a, f * p, variances[k, a])
            if model.accounts[k] == ESTIMATED:
                _add_powers(start, told, k, a, f)
    for i in range(model.known.size):
        if model.known[i]:
            for a in range(n_arms):
                start.rows[i, a] += size * model.known_rows[i, a]
                start.slack[i] -= size * model.known_rows[i, a] * told.answer[a]


@kernel
def _charge(start: Start, model: Model, told: Told, k: int, a: int, c: float, variance: float) -> None:
    """Add the account of a block's pulls of one arm to every point of the mixture of a row at the answer."""
    i, width = k - 1, model.high[k, a] - model.low[k, a]
    above = model.high[k, a] - told.guesses[k, a]
    for n in range(POINTS):
        x = start.points[i, n] * c
        price = learning_price(min(x * above, LEARNABLE))
        # Chosen by what is expected, not by what came: so the account is fixed before the block.
        if x * above <= LEARNABLE and price * variance < 0.25 * width * width:
            start.charges[i, n] += 0.5 * x * x * price * told.powers[1, k, a]
        else:
            start.charges[i, n] += 0.125 * x * x * width * width * told.counts[a]


@kernel
def _add_powers(start: Start, told: Told, k: int, a: int, f: float) -> None:
    """Add power sums about the start's pivot, with weights f^2 and f^4."""
    shift = told.guesses[k, a] - start.pivots[k, a]
    n, one, two = told.counts[a], told.powers[0, k, a], told.powers[1, k, a]
    three, four = told.powers[2, k, a], told.powers[3, k, a]
    first = one + n * shift
    second = two + shift * (2.0 * one + n * shift)
    third = three + shift * (3.0 * two + shift * (3.0 * one + n * shift))
    fourth = four + shift * (4.0 * three + shift * (6.0 * two + shift * (4.0 * one + n * shift)))
    f2 = f * f
    start.twos[0, k, a] += f2 * n
    start.twos[1, k, a] += f2 * first
    start.twos[2, k, a] += f2 * second
    start.fours[0, k, a] += f2 * f2 * n
    start.fours[1, k, a] += f2 * f2 * first
    start.fours[2, k, a] += f2 * f2 * second
    start.fours[3, k, a] += f2 * f2 * third
    start.fours[4, k, a] += f2 * f2 * fourth


@kernel
def guard_of(start: Start, k: int, a: int) -> float:
    """By how much the guard of `estimated` multiplies the variance of outcome k of an arm."""
    weight = start.twos[0, k, a]
    if not weight > 0.0:
        return math.inf
    m = start.twos[1, k, a] / weight
    squares = start.twos[2, k, a] - m * start.twos[1, k, a]
    sums = start.fours[:, k, a]
    fourths = sums[4] - m * (4.0 * sums[3] - m * (6.0 * sums[2] - m * (4.0 * sums[1] - m * sums[0])))
    least = 1e-13 * max(start.twos[2, k, a], weight * m * m)  # less is round-off
    return guard(squares if squares > least else 0.0, fourths)


@struct
class Sums:
    """What the accounts of a start's blocks add up to, for each coordinate, reach and arm: f^2 s (1 + d, V, K), and for
    the reward times p and p^2 (V, K). Infinite where nothing is known of an arm's variance."""

    squares: FloatArray
    cross: FloatArray
    norm: FloatArray


def count_variants(model: Model) -> int:
    """Return how many variants a coordinate may have: one per reach where some variance is learned in a range."""
    return len(REACHES) if bool(np.any(model.accounts == RANGE)) else 1


def make_sums(model: Model) -> Sums:
    """Allocate sums."""
    m, v, k = model.accounts.size, count_variants(model), model.reward_noise.size
    return Sums(np.zeros((m, v, k)), np.zeros((v, k)), np.zeros((v, k)))


@kernel
def add_up(start: Start, model: Model, record: Record, sums_out: Sums) -> None:
    """Add up every account over the blocks of a start, for every reach that is tried."""
    for k in range(model.accounts.size):
        account = model.accounts[k]
        if account == RANGE and k == 0:
            _learn_reward(start, model, record, sums_out)
        elif account == RANGE:
            _learn_row(start, model, record, k, sums_out)
        elif account != KNOWN:
            for a in range(start.anchor.size):
                factor, squares = 1.0, start.squares[k, a]
                if account == DECLARED:
                    factor = model.reward_noise[a] if k == 0 else model.row_noise[k - 1, a]
                    squares = start.spread[a]
                else:
                    factor = guard_of(start, k, a)
                sums_out.squares[k, 0, a] = factor * squares if factor < np.inf else np.inf
                if k == 0:
                    declared = account == DECLARED
                    cross = start.spread_p[a] if declared else start.squares_p[a]
                    norm = start.spread_pp[a] if declared else start.squares_pp[a]
                    sums_out.cross[0, a] = factor * cross if factor < np.inf else 0.0
                    sums_out.norm[0, a] = factor * norm if factor < np.inf else 0.0


@inlined_kernel
def _stated(squares: float, hoeffding: float, u: float, coarse: bool) -> float:
    """What the account of a range states for a block's pulls of an arm, where x |c| b is at most u.

    `squares` is the sum of xi^2, `hoeffding` a quarter of the squared width for every pull.
    """
    if coarse:
        return hoeffding
    if u <= LEARNABLE:
        return learning_price(u) * squares
    return learning_price(LEARNABLE) * squares + hoeffding


@kernel
def _plain(start: Start, model: Model, k: int, a: int) -> tuple[float, float, float]:
    """The least that an arm's sums of f^2 s can be, and those times p and p^2: G is at least one."""
    if start.coarse[k, a] == 1:
        hoeffding = 0.25 * (model.high[k, a] - model.low[k, a]) ** 2
        return hoeffding * start.spread[a], hoeffding * start.spread_p[a], hoeffding * start.spread_pp[a]
    if k > 0:
        return start.squares[k, a], 0.0, 0.0
    return start.squares[0, a], start.squares_p[a], start.squares_pp[a]


@kernel
def _learn_row(start: Start, model: Model, record: Record, k: int, sums_out: Sums) -> None:
    r"""Add up a row at q: :math:`S \ge A_a q_a^2` with A_a the least its sums can be, so u <= Y f b / sqrt(A_a)."""
    for a in range(start.anchor.size):
        quarter = 0.25 * (model.high[k, a] - model.low[k, a]) ** 2
        least, _, _ = _plain(start, model, k, a)
        length = 1.0 / math.sqrt(least + start.precision[k, a])
        for v in range(sums_out.squares.shape[1]):
            total = 0.0
            for b in range(start.terms.first, start.terms.first + start.terms.blocks):
                n = record.counts[b, a]
                f = _size(record, b) / n
                u = _REACHES[v] * f * side(model, k, a, record.guesses[b, k, a]) * length
                squares = record.powers[b, 1, k, a]
                total += f * f * _stated(squares, quarter * n, u, start.coarse[k, a] == 1)
            sums_out.squares[k, v, a] = total


@kernel
def _learn_reward(start: Start, model: Model, record: Record, sums_out: Sums) -> None:
    r"""Add up the reward at q.

    :math:`S \ge \sum_a A_a (q_a - c_a)^2 + e` with the least that its sums can be, so in a block of the answer p,
    :math:`(q_a - p_a)^2 \le S (1/A_a + (c_a - p_a)^2/e)`.
    """
    n_arms, rest = start.anchor.size, 0.0
    for a in range(n_arms):
        prior, anchor = start.precision[0, a], start.anchor[a]
        least, cross, norm = _plain(start, model, 0, a)
        centre = (cross + prior * anchor) / (least + prior)
        rest += norm + (1.0 + ANCHOR) * prior * anchor * anchor - (least + prior) * centre * centre
    for a in range(n_arms):
        prior = start.precision[0, a]
        least, cross, _ = _plain(start, model, 0, a)
        centre = (cross + prior * start.anchor[a]) / (least + prior)
        quarter, coarse = 0.25 * (model.high[0, a] - model.low[0, a]) ** 2, start.coarse[0, a] == 1
        for v in range(sums_out.squares.shape[1]):
            total, total_p, total_pp = 0.0, 0.0, 0.0
            for b in range(start.terms.first, start.terms.first + start.terms.blocks):
                n, p = record.counts[b, a], record.answers[b, a]
                f = _size(record, b) / n
                away = (p - centre) ** 2
                length = 1.0 / (least + prior) + (away / rest if rest > 0.0 else np.inf if away > 0.0 else 0.0)
                u = _REACHES[v] * f * side(model, 0, a, record.guesses[b, 0, a]) * math.sqrt(length)
                stated = f * f * _stated(record.powers[b, 1, 0, a], quarter * n, u, coarse)
                total += stated
                total_p += p * stated
                total_pp += p * p * stated
            sums_out.squares[0, v, a] = total
            sums_out.cross[v, a] = total_p
            sums_out.norm[v, a] = total_pp


@kernel
def write_block_evidence(
    start: Start, model: Model, record: Record, r: float, sums: Sums, evidence_out: Evidence
) -> None:
    """Write what the blocks of a start say of every witness of its average, for a tolerance r; adds them up anew."""
    evidence_out.terms.kind = MIXED
    add_up(start, model, record, sums)
    for k in range(model.accounts.size):
        evidence_out.variants[k] = 0
        if k > 0:
            evidence_out.known[k - 1] = model.known[k - 1]
            for a in range(start.anchor.size):
                evidence_out.known_rows[k - 1, a] = model.known_rows[k - 1, a]
        if model.accounts[k] == KNOWN:
            continue
        n = sums.squares.shape[1] if model.accounts[k] == RANGE else 1
        evidence_out.variants[k] = n
        for v in range(n):
            evidence_out.reaches[k, v] = _REACHES[v] if model.accounts[k] == RANGE else np.inf
            evidence_out.levels[k, v] = start.terms.reward_level if k == 0 else start.terms.row_level
            _write_variant(start, k, v, r, sums, evidence_out)
        if k == 0 and model.accounts[0] == ESTIMATED and _mixes_unvaried(start, sums):
            evidence_out.variants[0] = 0


@kernel
def _mixes_unvaried(start: Start, sums: Sums) -> bool:
    """Whether the answer mixes an arm whose reward has never varied: then the reward refutes nothing."""
    for a in range(start.anchor.size):
        if start.highest[a] > 0.0 and sums.squares[0, 0, a] == np.inf:
            return True
    return False


@kernel
def _write_variant(start: Start, k: int, v: int, r: float, sums: Sums, evidence_out: Evidence) -> None:
    """Write D, S and Lambda of one coordinate, as functions of q."""
    fixed, prior_fixed = 0.0, 0.0
    for a in range(start.anchor.size):
        prior, squares = start.precision[k, a], sums.squares[k, v, a]
        variance = squares if squares < np.inf else _UNKNOWN_VARIANCE
        tilt, prior_tilt = 0.0, 0.0
        if k == 0:
            anchor = start.anchor[a]
            own = (1.0 + ANCHOR) * prior * anchor * anchor
            prior_tilt = prior * anchor
            tilt = sums.cross[v, a] + prior_tilt
            fixed, prior_fixed = fixed + sums.norm[v, a] + own, prior_fixed + own
            evidence_out.gains[k, v, a] = -start.rewards[a]
        else:
            evidence_out.gains[k, v, a] = start.rows[k - 1, a]
        evidence_out.curves[k, v, a] = variance + prior
        evidence_out.tilts[k, v, a] = tilt
        evidence_out.prior_curves[k, v, a] = prior
        evidence_out.prior_tilts[k, v, a] = prior_tilt
    evidence_out.fixed[k, v] = fixed
    evidence_out.prior_fixed[k, v] = prior_fixed
    evidence_out.bases[k, v] = start.terms.weight * r + start.terms.earned if k == 0 else 0.0


@kernel
def answer_evidence(start: Start, model: Model, i: int, statistic: float) -> float:
    """log E of an unknown row at the answer, for this value of D: it must reach `answer_level`."""
    if model.accounts[1 + i] == RANGE:
        return _mixture_evidence(start, i, statistic)
    variance, prior = 0.0, start.priors[i]
    for a in range(start.anchor.size):
        if model.accounts[1 + i] == DECLARED:
            variance += model.row_noise[i, a] * start.spread_pp[a]
        elif start.highest[a] > 0.0:
            factor = guard_of(start, 1 + i, a)
            variance += factor * start.own[i, a] if factor < np.inf else np.inf
    if not (statistic > 0.0 and variance < np.inf and prior > 0.0):
        return -np.inf
    total = variance + prior
    return float(log_mixture(statistic / math.sqrt(total), np.inf) - 0.5 * math.log(total / prior))


@kernel
def _mixture_evidence(start: Start, i: int, statistic: float) -> float:
    """log of the mixture over the points of a row at the answer; their weights are those of a half-normal, and sum to
    one."""
    prior, total, weights, largest = start.priors[i], 0.0, 0.0, -np.inf
    if not prior > 0.0:
        return -np.inf
    for n in range(POINTS):
        x = start.points[i, n]
        weights += x * math.exp(-0.5 * prior * x * x)
        largest = max(largest, x * statistic - start.charges[i, n] - 0.5 * prior * x * x + math.log(x))
    for n in range(POINTS):
        x = start.points[i, n]
        total += math.exp(x * statistic - start.charges[i, n] - 0.5 * prior * x * x + math.log(x) - largest)
    return largest + math.log(total / weights)


@kernel
def least_answer_evidence(start: Start, model: Model) -> float:
    """The least evidence over what it must reach, over the unknown rows: at least one when the answer is safe."""
    least = np.inf
    for i in range(model.known.size):
        if not model.known[i]:
            found = answer_evidence(start, model, i, start.slack[i]) / start.terms.answer_level
            if math.isnan(found):  # proves nothing, whatever the rows that follow say
                return -np.inf
            least = min(least, found)
    return least


@kernel
def add_recorded(start: Start, model: Model, record: Record, k: int) -> None:
    """Add a block on record to a start."""
    told = Told(record.answers[k], record.counts[k], record.guesses[k], record.powers[k])
    add_block(start, model, told, record.variances[k])
