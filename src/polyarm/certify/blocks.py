r"""The averaged certificate: thresholds that do not grow with the number of arms.

Pulls come in blocks. Before the first pull of block k its answer p_k and the counts n_ka >= 1 of all arms are fixed;
m^k and G^k are the means of the block alone and n_k its number of pulls. From a *start* on (a time chosen on past data)

.. math:: C = \sum_k n_k,\quad v_a = \sum_k \frac{n_k^2}{n_{ka}},\quad u_a = \sum_k \frac{n_k^2 p_{ka}}{n_{ka}},\quad
          z_a = \sum_k \frac{n_k^2 p_{ka}^2}{n_{ka}}

are accumulated, and **the answer is the average** :math:`\bar p = \sum_k n_k p_k / C`. The true optimum q* does not
move and p_k is fixed before its data, so every statistic is a sum of one-dimensional martingale differences: no union
over arms, and no price per arm. docs/guarantee.md has the proof.

*Cost of row i*: with :math:`D_i = -\sum_k n_k G_i^k p_k`, :math:`V_i = \sum_a s_{ia}^2 z_a` and a value of V predicted
at the start, the mean of :math:`\exp(x D_i - x^2 V_i/2)` over three values of x must reach :math:`d_u/\delta_c`.

*Reward*: for every witness q, g(q) of `certify.evidence` must exceed b_0, with the evidence that `write_evidence` lays
out; lam_a and p_s are fixed at the start.
"""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray
from polyarm.certify.evidence import Evidence
from polyarm.model import Model

#: The reward test gets this share of delta, the cost tests the rest.
REWARD_SHARE = 0.6
#: The j-th start gets this share of delta; they sum to one.
START_WEIGHTS = (0.75, 0.16, 0.05, 0.025, 0.01, 0.005)
MAX_STARTS = len(START_WEIGHTS)
#: lam_a is this many times the v_a that a start expects at the stop.
PRECISION = 0.15
#: Share of p_s^2 in the precision of the reward term: keeps it positive at q = p_s.
ANCHOR = 0.3
#: How much of each mixture is the half-normal; the rest sits on "no deviation".
REWARD_SLAB = 0.75
COST_SLAB = 0.4
#: The three values of x in a cost test are th / SPACING, th and th * SPACING, with these weights.
SPACING = 1.7
_SIDE, _MIDDLE = 0.25, 0.5
#: Roughly what this mixture costs beyond its logarithm.
COST_PRICE = 0.6
#: Candidates for eps in the bound on the ratio of variance to precision: FIRST * GROWTH^k.
_FIRST, _GROWTH, _TRIALS = 0.02, 1.15, 60


class StartTerms(Scalars):
    """Numbers of a start.

    `begun`: the pulls made by then; `first`: the block on record that follows. `weight`: C. `earned`: the sum of
    n_k m^k.p_k. Fixed by its share of delta: `reward_log`, c log(1/delta_0), and `cost_log`, log(d_u/delta_c).
    `reward_threshold`, b_0, `row_floor`, kappa, and `ratio`, the least statistic over its threshold, are those of the
    last test. `expected` and `forecast` are pulls from the start to the stop, as expected then and now.
    """

    begun: float
    first: int
    weight: float
    earned: float
    reward_log: float
    cost_log: float
    n_unknown: int
    reward_threshold: float
    row_floor: float
    ratio: float
    expected: float
    forecast: float


@struct
class Start:
    """What has been accumulated since a start.

    `v`, `u`, `z` (K,) as above; `rewards` (K,) and `rows` (d, K) sum n_k times the means of the blocks; `slack` (d,)
    sums -n_k G^k p_k and `answer` (K,) n_k p_k. Fixed at the start: `lam`, `anchor` (K,), p_s, and `predicted` (d,),
    the V_i expected.
    """

    terms: StartTerms
    lam: FloatArray
    anchor: FloatArray
    predicted: FloatArray
    v: FloatArray
    u: FloatArray
    z: FloatArray
    rewards: FloatArray
    rows: FloatArray
    slack: FloatArray
    answer: FloatArray


def make_start(number: int, delta: float, independent: bool, model: Model) -> Start:
    """Allocate the start of this number, from 0, with nothing accumulated.

    Args:
        number: Which start it is: that decides its share of delta.
        delta: What all starts may spend together.
        independent: Whether the reward and all costs of one pull are. Otherwise the 1 + d_u supermartingales are
            averaged geometrically, which multiplies the logarithm by 1 + d_u.
        model: The problem.
    """
    d, k = model.row_noise.shape
    n_unknown = int((~model.known).sum())
    spent = delta * START_WEIGHTS[number]
    terms = StartTerms(reward_log=np.log(1.0 / spent))
    if n_unknown > 0:
        copies = 1 if independent else 1 + n_unknown
        terms.n_unknown = n_unknown
        terms.reward_log = copies * np.log(1.0 / (REWARD_SHARE * spent))
        terms.cost_log = np.log(n_unknown / ((1.0 - REWARD_SHARE) * spent))
    vectors = (np.zeros(k) for _ in range(7))
    return Start(
        terms=terms,
        lam=next(vectors),
        anchor=next(vectors),
        predicted=np.zeros(d),
        v=next(vectors),
        u=next(vectors),
        z=next(vectors),
        rewards=next(vectors),
        rows=np.zeros((d, k)),
        slack=np.zeros(d),
        answer=next(vectors),
    )


def expect_thresholds(first: Start) -> tuple[float, float]:
    """Return roughly what both thresholds of the first start will be, in units of the statistics without its precision.

    If all went as planned at the start, V would be 1 / PRECISION times the precision, which lowers every statistic.
    """
    length = 0.5 * math.log1p(1.0 / PRECISION)
    reward = first.terms.reward_log + (1 + first.terms.n_unknown) * length
    return float(first.terms.cost_log) + COST_PRICE, float((1.0 + PRECISION) * reward)


@kernel
def begin(
    start: Start, steps: float, expected: float, allocation: FloatArray, answer: FloatArray, model: Model
) -> None:
    """Fix what a start needs: an expected number of pulls until the stop, and how they and the answer are planned."""
    start.terms.begun = steps
    for a in range(answer.size):
        start.lam[a] = PRECISION * expected / allocation[a]
        start.anchor[a] = answer[a]
    predict_variances(start, model)


@kernel
def predict_variances(start: Start, model: Model) -> None:
    """Write the variances V_i that a start expects at the stop: they follow from its precisions and anchor."""
    for i in range(model.known.size):
        start.predicted[i] = 0.0
        for a in range(model.reward_noise.size):
            expected = start.lam[a] / PRECISION
            start.predicted[i] += expected * model.row_noise[i, a] * start.anchor[a] * start.anchor[a]


@kernel
def add_block(start: Start, counts: FloatArray, answer: FloatArray, means: FloatArray, rows: FloatArray) -> None:
    """Add a complete block: its counts (K,), answer (K,), mean rewards (K,) and mean rows (d, K)."""
    n_arms = counts.size
    size = 0.0
    for a in range(n_arms):
        size += counts[a]
    start.terms.weight += size
    for a in range(n_arms):
        spread = size * size / counts[a]
        start.v[a] += spread
        start.u[a] += spread * answer[a]
        start.z[a] += spread * answer[a] * answer[a]
        start.rewards[a] += size * means[a]
        start.terms.earned += size * means[a] * answer[a]
        start.answer[a] += size * answer[a]
        for i in range(rows.shape[0]):
            start.rows[i, a] += size * rows[i, a]
            start.slack[i] -= size * rows[i, a] * answer[a]


@kernel
def row_variance(start: Start, i: int, model: Model) -> float:
    """V_i: the variance of the answer's cost, summed over the blocks."""
    total = 0.0
    for a in range(model.reward_noise.size):
        total += model.row_noise[i, a] * start.z[a]
    return total


@kernel
def cost_evidence(slack: float, variance: float, predicted: float, cost_log: float) -> float:
    """Logarithm of the mixture of exp(x D - x^2 V / 2) over three x; the test passes when it reaches `cost_log`."""
    middle = math.sqrt(2.0 * cost_log / predicted)
    largest = -np.inf
    for k in range(3):
        x = middle * SPACING ** (k - 1)
        largest = max(largest, x * slack - 0.5 * x * x * variance)
    total = 0.0
    for k in range(3):
        x = middle * SPACING ** (k - 1)
        total += (_MIDDLE if k == 1 else _SIDE) * math.exp(x * slack - 0.5 * x * x * variance - largest)
    return largest + math.log(total)


@kernel
def least_cost_evidence(start: Start, model: Model) -> float:
    """The least evidence over what it must reach, over the unknown rows: at least one when all cost tests pass."""
    least = np.inf
    for i in range(model.known.size):
        if not model.known[i]:
            variance = row_variance(start, i, model)
            found = cost_evidence(start.slack[i], variance, start.predicted[i], start.terms.cost_log)
            if not found / start.terms.cost_log >= least:  # NaN fails
                least = found / start.terms.cost_log
    return least


@kernel
def find_thresholds(start: Start, model: Model) -> tuple[float, float]:
    r"""Return b_0, what every witness must exceed, and kappa, the least part of an unknown row.

    .. math:: R_c = \max_a v_a/\lambda_a, \qquad L_0 = \max\{\tfrac12 \log(1 + R_0), \log \tfrac{2\rho_0}{1 - \rho_0}\},
              \qquad L_c = \max\{\tfrac12 \log(1 + R_c), \log \tfrac{2\rho_c}{1 - \rho_c}\}

    R_0 bounds V_0/Lambda_0 for every q: the best of a few eps in (x + y)^2 <= (1 + eps) x^2 + (1 + 1/eps) y^2.
    """
    ratio, moved, rest, anchored = 0.0, 0.0, 0.0, 0.0
    for a in range(model.reward_noise.size):
        noise, v, lam, anchor = model.reward_noise[a], start.v[a], start.lam[a], start.anchor[a]
        if not v / lam <= ratio:  # NaN fails
            ratio = v / lam
        centre = start.u[a] / v
        moved += noise * v * (centre - anchor) ** 2
        rest += noise * max(start.z[a] - start.u[a] * centre, 0.0)
        anchored += ANCHOR * noise * lam * anchor * anchor
    reward_ratio = np.inf
    eps = _FIRST
    for _ in range(_TRIALS):
        eps *= _GROWTH
        reward_ratio = min(reward_ratio, max((1.0 + eps) * ratio, ((1.0 + 1.0 / eps) * moved + rest) / anchored))
    reward_price = max(0.5 * math.log1p(reward_ratio), math.log(2.0 * REWARD_SLAB / (1.0 - REWARD_SLAB)))
    cost_price = max(0.5 * math.log1p(ratio), math.log(2.0 * COST_SLAB / (1.0 - COST_SLAB)))
    row_price = cost_price - math.log(2.0 * COST_SLAB)
    reward = start.terms.reward_log + reward_price - math.log(2.0 * REWARD_SLAB)
    return reward + start.terms.n_unknown * row_price, max(row_price + math.log(1.0 - COST_SLAB), 0.0)


@kernel
def write_block_evidence(start: Start, floor: float, model: Model, evidence_out: Evidence) -> None:
    """Write what the reward test of a start looks at, per pull: g(q) of it is the statistic of the witness q."""
    n_arms, d = model.reward_noise.size, model.known.size
    weight, centre_out = start.terms.weight, evidence_out.centre
    spread, mean = 0.0, 0.0
    for a in range(n_arms):
        noise, lam, anchor = model.reward_noise[a], start.lam[a], start.anchor[a]
        total = start.v[a] + lam
        centre_out[a] = (start.u[a] + lam * anchor) / total
        evidence_out.mu[a] = start.rewards[a] / weight
        evidence_out.mu_var[a] = noise * total / (weight * weight)
        mean += evidence_out.mu[a] * centre_out[a]
        around = start.z[a] + (1.0 + ANCHOR) * lam * anchor * anchor - total * centre_out[a] * centre_out[a]
        spread += noise * max(around, 0.0) / (weight * weight)
        for i in range(d):
            known = model.known[i]
            evidence_out.rows[i, a] = model.known_rows[i, a] if known else start.rows[i, a] / weight
            evidence_out.row_var[i, a] = model.row_noise[i, a] * total / (weight * weight)
    for i in range(d):
        evidence_out.known[i] = model.known[i]
    terms = evidence_out.terms
    terms.spread, terms.floor = spread, floor
    terms.tolerance = model.r + start.terms.earned / weight - mean


@struct
class Record:
    """Complete blocks, M of them at most: answers, counts, mean rewards (M, K) and mean rows (M, d, K).

    `told` (M,) is the number of outcomes known when the block was fixed.
    """

    told: FloatArray
    answers: FloatArray
    counts: FloatArray
    means: FloatArray
    rows: FloatArray


def make_record(n_blocks: int, n_arms: int, n_constraints: int) -> Record:
    """Allocate a record of so many blocks."""
    m, k = n_blocks, n_arms
    return Record(np.zeros(m), np.zeros((m, k)), np.zeros((m, k)), np.zeros((m, k)), np.zeros((m, n_constraints, k)))


@kernel
def add_recorded(start: Start, record: Record, k: int) -> None:
    """Add a block on record to a start."""
    add_block(start, record.counts[k], record.answers[k], record.means[k], record.rows[k])
