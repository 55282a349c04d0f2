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

*Reward*: for every witness q, g(q) of `statistics.joint` must exceed b_0, with the evidence that `write_evidence` lays
out; lam_a and p_s are fixed at the start.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.problem import Model
from polyarm.statistics.joint import FLOOR, SPREAD, Evidence

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
#: What this mixture costs beyond its logarithm, about.
COST_PRICE = 0.6
#: Candidates for eps in the bound on the ratio of variance to precision: FIRST * GROWTH^k.
_FIRST, _GROWTH, _TRIALS = 0.02, 1.15, 60

# Entries of the thresholds.
REWARD_THRESHOLD = 0  # b_0
ROW_FLOOR = 1  # kappa
N_THRESHOLDS = 2


class Starts(NamedTuple):
    """What has been accumulated since each start, J of them at most.

    `weight` (J,) is C; `v`, `u`, `z` (J, K) as above; `rewards` (J, K) and `rows` (J, d, K) sum n_k times the means of
    the blocks; `earned` (J,) and `slack` (J, d) are sums of n_k m^k.p_k and -n_k G^k p_k; `answer` (J, K) of n_k p_k.
    Fixed at the start: `lam`, `anchor` (J, K), p_s, `predicted` (J, d), V_i, and `begun` (J,), the pulls made by then.
    """

    weight: FloatArray
    v: FloatArray
    u: FloatArray
    z: FloatArray
    rewards: FloatArray
    rows: FloatArray
    earned: FloatArray
    slack: FloatArray
    answer: FloatArray
    lam: FloatArray
    anchor: FloatArray
    predicted: FloatArray
    begun: FloatArray


def make_starts(n_arms: int, n_constraints: int) -> Starts:
    """Allocate starts with nothing accumulated."""
    j, k, d = MAX_STARTS, n_arms, n_constraints
    return Starts(
        weight=np.zeros(j),
        v=np.zeros((j, k)),
        u=np.zeros((j, k)),
        z=np.zeros((j, k)),
        rewards=np.zeros((j, k)),
        rows=np.zeros((j, d, k)),
        earned=np.zeros(j),
        slack=np.zeros((j, d)),
        answer=np.zeros((j, k)),
        lam=np.zeros((j, k)),
        anchor=np.zeros((j, k)),
        predicted=np.zeros((j, d)),
        begun=np.zeros(j),
    )


class Levels(NamedTuple):
    """How delta is spent: `reward_log` (J,) is c log(1/delta_0) of each start, `cost_log` (J,) is log(d_u/delta_c)."""

    reward_log: FloatArray
    cost_log: FloatArray
    n_unknown: int


def make_levels(delta: float, n_unknown: int, independent: bool) -> Levels:
    """Split delta between the starts, and between the reward test and the cost tests of each.

    `independent`: the reward and all costs of one pull are. Otherwise the 1 + d_u supermartingales are averaged
    geometrically, which multiplies the logarithm by 1 + d_u.
    """
    spent = delta * np.array(START_WEIGHTS)
    if n_unknown == 0:
        return Levels(np.log(1.0 / spent), np.zeros(MAX_STARTS), 0)
    copies = 1 if independent else 1 + n_unknown
    reward_log = copies * np.log(1.0 / (REWARD_SHARE * spent))
    return Levels(reward_log, np.log(n_unknown / ((1.0 - REWARD_SHARE) * spent)), n_unknown)


def expect_thresholds(levels: Levels) -> tuple[float, float]:
    """Return about what both thresholds of the first start come to, in units of the statistics without its precision.

    Were all as planned at the start, V would be 1 / PRECISION times the precision, which lowers every statistic.
    """
    length = 0.5 * math.log1p(1.0 / PRECISION)
    reward = levels.reward_log[0] + (1 + levels.n_unknown) * length
    return float(levels.cost_log[0]) + COST_PRICE, (1.0 + PRECISION) * float(reward)


@kernel
def begin(
    j: int, steps: float, expected: float, allocation: FloatArray, answer: FloatArray, model: Model, starts: Starts
) -> None:
    """Fix what start j needs: an expected number of pulls until the stop, and how they and the answer are planned."""
    starts.begun[j] = steps
    for a in range(answer.size):
        starts.lam[j, a] = PRECISION * expected / allocation[a]
        starts.anchor[j, a] = answer[a]
    predict_variances(j, model, starts)


@kernel
def predict_variances(j: int, model: Model, starts: Starts) -> None:
    """Write the variances V_i that start j expects at the stop: they follow from its precisions and its anchor."""
    for i in range(model.known.size):
        starts.predicted[j, i] = 0.0
        for a in range(model.reward_noise.size):
            expected = starts.lam[j, a] / PRECISION
            starts.predicted[j, i] += expected * model.row_noise[i, a] * starts.anchor[j, a] * starts.anchor[j, a]


@kernel
def add_block(
    j: int,
    counts: FloatArray,
    answer: FloatArray,
    means: FloatArray,
    rows: FloatArray,
    starts: Starts,
) -> None:
    """Add a complete block: its counts (K,), answer (K,), mean rewards (K,) and mean rows (d, K)."""
    n_arms = counts.size
    size = 0.0
    for a in range(n_arms):
        size += counts[a]
    starts.weight[j] += size
    for a in range(n_arms):
        spread = size * size / counts[a]
        starts.v[j, a] += spread
        starts.u[j, a] += spread * answer[a]
        starts.z[j, a] += spread * answer[a] * answer[a]
        starts.rewards[j, a] += size * means[a]
        starts.earned[j] += size * means[a] * answer[a]
        starts.answer[j, a] += size * answer[a]
        for i in range(rows.shape[0]):
            starts.rows[j, i, a] += size * rows[i, a]
            starts.slack[j, i] -= size * rows[i, a] * answer[a]


@kernel
def row_variance(j: int, i: int, model: Model, starts: Starts) -> float:
    """V_i: the variance of the answer's cost, summed over the blocks."""
    total = 0.0
    for a in range(model.reward_noise.size):
        total += model.row_noise[i, a] * starts.z[j, a]
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
def least_cost_evidence(j: int, levels: Levels, model: Model, starts: Starts) -> float:
    """The least evidence over what it must reach, over the unknown rows: at least one when all cost tests pass."""
    least = np.inf
    for i in range(model.known.size):
        if not model.known[i]:
            variance = row_variance(j, i, model, starts)
            found = cost_evidence(starts.slack[j, i], variance, starts.predicted[j, i], levels.cost_log[j])
            if not found / levels.cost_log[j] >= least:  # so that what is no number is not passed over
                least = found / levels.cost_log[j]
    return least


@kernel
def write_thresholds(j: int, levels: Levels, model: Model, starts: Starts, thresholds_out: FloatArray) -> None:
    r"""Write b_0 and kappa for start j.

    .. math:: R_c = \max_a v_a/\lambda_a, \qquad L_0 = \max\{\tfrac12 \log(1 + R_0), \log \tfrac{2\rho_0}{1 - \rho_0}\},
              \qquad L_c = \max\{\tfrac12 \log(1 + R_c), \log \tfrac{2\rho_c}{1 - \rho_c}\}

    R_0 bounds V_0/Lambda_0 for every q: the best of a few eps in (x + y)^2 <= (1 + eps) x^2 + (1 + 1/eps) y^2.
    """
    ratio, moved, rest, anchored = 0.0, 0.0, 0.0, 0.0
    for a in range(model.reward_noise.size):
        noise, v, lam, anchor = model.reward_noise[a], starts.v[j, a], starts.lam[j, a], starts.anchor[j, a]
        if not v / lam <= ratio:  # so that what is no number is not passed over
            ratio = v / lam
        centre = starts.u[j, a] / v
        moved += noise * v * (centre - anchor) ** 2
        rest += noise * max(starts.z[j, a] - starts.u[j, a] * centre, 0.0)
        anchored += ANCHOR * noise * lam * anchor * anchor
    reward_ratio = np.inf
    eps = _FIRST
    for _ in range(_TRIALS):
        eps *= _GROWTH
        reward_ratio = min(reward_ratio, max((1.0 + eps) * ratio, ((1.0 + 1.0 / eps) * moved + rest) / anchored))
    reward_price = max(0.5 * math.log1p(reward_ratio), math.log(2.0 * REWARD_SLAB / (1.0 - REWARD_SLAB)))
    cost_price = max(0.5 * math.log1p(ratio), math.log(2.0 * COST_SLAB / (1.0 - COST_SLAB)))
    row_price = cost_price - math.log(2.0 * COST_SLAB)
    reward = levels.reward_log[j] + reward_price - math.log(2.0 * REWARD_SLAB)
    thresholds_out[REWARD_THRESHOLD] = reward + levels.n_unknown * row_price
    thresholds_out[ROW_FLOOR] = max(row_price + math.log(1.0 - COST_SLAB), 0.0)


@kernel
def write_evidence(
    j: int, r: float, floor: float, model: Model, starts: Starts, evidence_out: Evidence, centre_out: FloatArray
) -> float:
    """Write what the reward test of start j looks at, per pull; returns the tolerance about the centre.

    g(q) of `statistics.joint` with this evidence, centre and tolerance is the statistic of the witness q.
    """
    n_arms, d = model.reward_noise.size, model.known.size
    weight = starts.weight[j]
    spread, mean = 0.0, 0.0
    for a in range(n_arms):
        noise, lam, anchor = model.reward_noise[a], starts.lam[j, a], starts.anchor[j, a]
        total = starts.v[j, a] + lam
        centre_out[a] = (starts.u[j, a] + lam * anchor) / total
        evidence_out.mu[a] = starts.rewards[j, a] / weight
        evidence_out.mu_var[a] = noise * total / (weight * weight)
        mean += evidence_out.mu[a] * centre_out[a]
        around = starts.z[j, a] + (1.0 + ANCHOR) * lam * anchor * anchor - total * centre_out[a] * centre_out[a]
        spread += noise * max(around, 0.0) / (weight * weight)
        for i in range(d):
            known = model.known[i]
            evidence_out.rows[i, a] = model.known_rows[i, a] if known else starts.rows[j, i, a] / weight
            evidence_out.row_var[i, a] = model.row_noise[i, a] * total / (weight * weight)
    for i in range(d):
        evidence_out.known[i] = model.known[i]
    evidence_out.extras[SPREAD] = spread
    evidence_out.extras[FLOOR] = floor
    return float(r + starts.earned[j] / weight - mean)
