r"""Thresholds over all outcomes at once, which hold at all times: the price of watching while the data come in.

For each arm the Gaussian mixture, of precision lam, of :math:`\exp(\theta S - \theta^2 N / 2)` is a supermartingale, so
with probability at least 1 - delta', for every t, :math:`\sum_a e_a (\text{deviation}_a)^2 / 2 \le \log(1/\delta') +
\sum_a L_a`, where :math:`e_a = N_a^2/(N_a + \lambda)` are the *effective pulls* and
:math:`L_a = \tfrac12 \log(1 + N_a/\lambda)` the price of each arm. So for the rewards, and for each row. At the true
optimum, a vertex, rows count only its arms: the dearest that many.
"""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray
from polyarm.certify.constants import ANSWER_SHARE, REWARD_SHARE, ROWS_SHARE
from polyarm.certify.evidence import FIXED, TOGETHER, Evidence
from polyarm.model import Model
from polyarm.tolerances import KNOWN_ROW

# Kinds of thresholds.
PROVED = 0  # the mixture of precision `lam`; coordinates are averaged
STYLISED = 1  # what papers use: every pull counts, coordinates add up, all thresholds are log((1 + log t)/delta)
GIVEN = 2  # every pull counts, coordinates add up, all thresholds are one


class Pricing(Scalars):
    """How thresholds are computed.

    `kind` is one of those above. `answer_log`, `reward_log` and `row_log` are the parts that do not grow with the data:
    for rows at the answer, and for reward and rows at the true optimum. `support` is how many arms that can mix.
    """

    kind: int
    lam: float
    answer_log: float
    reward_log: float
    row_log: float
    support: int
    delta: float


def make_pricing(proved: bool, lam: float, delta: float, n_arms: int, n_known: int, n_unknown: int) -> Pricing:
    """Split delta between rows at the answer, the reward and the rows at the true optimum."""
    answer_log, reward_log, row_log = 0.0, math.log(1.0 / delta), 0.0
    if n_unknown > 0:
        answer_log = math.log(n_unknown / (ANSWER_SHARE * delta))
        reward_log = math.log(1.0 / (REWARD_SHARE * delta))
        row_log = math.log(n_unknown / (ROWS_SHARE * delta))
    return Pricing(
        kind=PROVED if proved else STYLISED,
        lam=lam,
        answer_log=answer_log,
        reward_log=reward_log,
        row_log=row_log,
        support=min(n_arms, n_known + n_unknown + 1),
        delta=delta,
    )


def given_pricing() -> Pricing:
    """Thresholds of one: the statistics themselves."""
    return Pricing(kind=GIVEN, lam=1.0)


class Thresholds(Scalars):
    """What statistics must exceed: rows at the answer (`cost`), the `reward` or a `row` that refutes by itself.

    `witness` is what a witness's value must exceed: one where its coordinates are averaged, `reward` where they are
    added up.
    """

    cost: float
    reward: float
    row: float
    witness: float


@struct
class Worth:
    """What pulls are worth: effective pulls (K,), and the thresholds."""

    effective: FloatArray
    thresholds: Thresholds


def make_worth(n_arms: int) -> Worth:
    """Allocate what `weigh_pulls` fills."""
    return Worth(np.zeros(n_arms), Thresholds())


@kernel
def weigh_pulls(pricing: Pricing, pulls: FloatArray, worth_out: Worth) -> None:
    r"""Write effective pulls and thresholds; see the top of this file.

    .. math:: \beta_c = \log(d_u/\delta_c) + \sum_a L_a, \qquad \beta_0 = \log(1/\delta_0) + \sum_a L_a, \qquad
              \beta_w = \log(d_u/\delta_w) + \sum_{a \in \text{dearest}} L_a
    """
    effective, thresholds = worth_out.effective, worth_out.thresholds
    n_arms, steps = pulls.size, 0.0
    for a in range(n_arms):
        steps += pulls[a]
    if pricing.kind != PROVED:
        for a in range(n_arms):
            effective[a] = pulls[a]
        level = 1.0 if pricing.kind == GIVEN else math.log((1.0 + math.log(max(steps, 1.0))) / pricing.delta)
        thresholds.cost, thresholds.reward, thresholds.row, thresholds.witness = level, level, level, level
        return
    price, dear, last, taken = 0.0, 0.0, np.inf, 0
    for a in range(n_arms):
        effective[a] = pulls[a] * pulls[a] / (pulls[a] + pricing.lam)
        price += 0.5 * math.log1p(pulls[a] / pricing.lam)
    while taken < pricing.support:  # the dearest arms: from the largest number of pulls down, equals together
        most, equals = -1.0, 0
        for a in range(n_arms):
            if pulls[a] < last and pulls[a] >= most:
                equals = equals + 1 if pulls[a] == most else 1
                most = pulls[a]
        if equals == 0:
            break
        count = min(equals, pricing.support - taken)
        dear += count * 0.5 * math.log1p(most / pricing.lam)
        taken, last = taken + count, most
    thresholds.cost = pricing.answer_log + price
    thresholds.reward = pricing.reward_log + price
    thresholds.row = pricing.row_log + dear
    thresholds.witness = 1.0


@struct
class Estimated:
    """What is estimated of a problem: mean rewards `mu` (K,), mean `rows` (d, K) with their bounds folded in, and the
    variances of one pull, `noise` (1 + d, K): the reward's, then each row's; zero for known rows."""

    mu: FloatArray
    rows: FloatArray
    noise: FloatArray


def declared_noise(model: Model) -> FloatArray:
    """Return the variances of one pull as they are declared (1 + d, K): scales squared."""
    return np.vstack([model.reward_noise[None], model.row_noise])


@kernel
def write_pooled_evidence(
    estimated: Estimated, model: Model, pricing: Pricing, worth: Worth, answer: FloatArray, evidence_out: Evidence
) -> None:
    """Write what all outcomes say of every witness of an answer."""
    mu, rows, noise, effective = estimated.mu, estimated.rows, estimated.noise, worth.effective
    n_arms, thresholds = answer.size, worth.thresholds
    evidence_out.terms.kind = FIXED if pricing.kind == PROVED else TOGETHER
    evidence_out.variants[0] = 1
    evidence_out.levels[0, 0] = thresholds.reward
    base, fixed = model.r, 0.0
    for a in range(n_arms):
        variance = noise[0, a] / effective[a]
        evidence_out.gains[0, 0, a] = -mu[a]
        evidence_out.curves[0, 0, a] = variance
        evidence_out.tilts[0, 0, a] = variance * answer[a]
        base += mu[a] * answer[a]
        fixed += variance * answer[a] * answer[a]
    evidence_out.bases[0, 0], evidence_out.fixed[0, 0] = base, fixed
    for i in range(model.known.size):
        evidence_out.known[i] = model.known[i]
        evidence_out.variants[1 + i] = 0 if model.known[i] else 1
        evidence_out.levels[1 + i, 0] = thresholds.row
        evidence_out.bases[1 + i, 0], evidence_out.fixed[1 + i, 0] = 0.0, 0.0
        for a in range(n_arms):
            evidence_out.known_rows[i, a] = model.known_rows[i, a]
            evidence_out.gains[1 + i, 0, a] = rows[i, a]
            evidence_out.tilts[1 + i, 0, a] = 0.0
            evidence_out.curves[1 + i, 0, a] = noise[1 + i, a] / effective[a]


@kernel
def cost_statistic(estimated: Estimated, model: Model, worth: Worth, answer: FloatArray) -> float:
    r"""min_i Z_i over the unknown rows, :math:`Z_i = (-\hat G_i p)_+^2 / (2 \|p\|_v^2)`: how surely all are kept.

    Zero when the answer breaks a known row: no data can save it.
    """
    rows, noise, effective = estimated.rows, estimated.noise, worth.effective
    least = np.inf
    for i in range(model.known.size):
        slack, spread = 0.0, 0.0
        for a in range(answer.size):
            slack -= rows[i, a] * answer[a]
            spread += answer[a] * answer[a] * noise[1 + i, a] / effective[a]
        if model.known[i]:
            value = np.inf if slack >= -KNOWN_ROW else 0.0
        else:
            value = max(slack, 0.0) ** 2 / (2.0 * spread)
        if math.isnan(value):  # proves nothing, whatever the rows that follow say
            return 0.0
        least = min(least, value)
    return least
