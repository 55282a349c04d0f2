r"""Thresholds that hold at all times at once: the price of watching while the data come in.

For each arm the Gaussian mixture, of precision lam, of :math:`\exp(\theta S - \theta^2 N / 2)` is a supermartingale, so
with probability at least 1 - delta', for every t, :math:`\sum_a e_a (\text{deviation}_a)^2 / 2 \le \log(1/\delta') +
\sum_a L_a`, where :math:`e_a = N_a^2/(N_a + \lambda)` are the *effective pulls* and
:math:`L_a = \tfrac12 \log(1 + N_a/\lambda)` the price of each arm.
"""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray
from polyarm.certify.evidence import Evidence
from polyarm.model import Model

# Kinds of thresholds.
PROVED = 0  # the mixture of precision `lam`
STYLISED = 1  # what papers use: every pull counts, and both thresholds are log((1 + log t)/delta)
FIXED = 2  # every pull counts, and the thresholds are `cost_log` and `reward_log`


class Pricing(Scalars):
    """How thresholds are computed.

    `kind` is one of those above. `cost_log` and `reward_log` are the parts that do not grow with the data; `n_unknown`
    is the number of unknown rows and `support` how many arms an optimal vertex can mix.
    """

    kind: int
    lam: float
    cost_log: float
    reward_log: float
    n_unknown: int
    support: int
    delta: float


def make_pricing(
    proved: bool, lam: float, delta: float, n_arms: int, n_known: int, n_unknown: int, independent: bool
) -> Pricing:
    """Split delta between the cost test and the reward test; see docs/guarantee.md for the proof.

    `independent`: the reward and all costs of one pull are mutually independent. Otherwise the 1 + d_u supermartingales
    are averaged geometrically, which multiplies the logarithm by 1 + d_u.
    """
    if n_unknown == 0:
        cost_log, reward_log = 0.0, math.log(1.0 / delta)
    else:
        copies = 1 if independent else 1 + n_unknown
        cost_log, reward_log = math.log(2.0 * n_unknown / delta), copies * math.log(2.0 / delta)
    support = min(n_arms, n_known + n_unknown + 1)
    kind = PROVED if proved else STYLISED
    return Pricing(
        kind=kind, lam=lam, cost_log=cost_log, reward_log=reward_log, n_unknown=n_unknown, support=support, delta=delta
    )


def fixed_pricing(cost: float, reward: float) -> Pricing:
    """Thresholds that do not change with the pulls."""
    return Pricing(kind=FIXED, lam=1.0, cost_log=cost, reward_log=reward)


class Thresholds(Scalars):
    """What the cost statistics and the reward statistic must exceed."""

    cost: float
    reward: float


@struct
class Worth:
    """What pulls are worth: effective pulls (K,), both thresholds, and a mark on the arms whose costs are paid for."""

    effective: FloatArray
    thresholds: Thresholds
    dearest: IntArray


def make_worth(n_arms: int) -> Worth:
    """Allocate the worth of no pulls."""
    return Worth(np.zeros(n_arms), Thresholds(), np.zeros(n_arms, dtype=np.int64))


@kernel
def weigh_pulls(pricing: Pricing, pulls: FloatArray, worth_out: Worth) -> None:
    r"""Write effective pulls and both thresholds; mark the arms whose costs the reward threshold pays for.

    .. math:: \beta_c = \log(2 d_u/\delta) + \sum_a L_a, \qquad
              \beta_0 = c \log(2/\delta) + \sum_a L_a + d_u \sum_{a \in \text{dearest}} L_a

    The true optimum, a vertex, mixes at most `support` arms, so only the dearest that many can be among them.
    """
    effective, dearest, thresholds = worth_out.effective, worth_out.dearest, worth_out.thresholds
    n_arms = pulls.size
    steps = 0.0
    for a in range(n_arms):
        steps += pulls[a]
        dearest[a] = 0
    if pricing.kind != PROVED:
        for a in range(n_arms):
            effective[a] = pulls[a]
        if pricing.kind == STYLISED:
            thresholds.cost = math.log((1.0 + math.log(max(steps, 1.0))) / pricing.delta)
            thresholds.reward = thresholds.cost
        else:
            thresholds.cost, thresholds.reward = pricing.cost_log, pricing.reward_log
        return
    price = 0.0
    for a in range(n_arms):
        effective[a] = pulls[a] * pulls[a] / (pulls[a] + pricing.lam)
        price += 0.5 * math.log1p(pulls[a] / pricing.lam)
    dear = 0.0
    if pricing.n_unknown > 0:
        for _ in range(pricing.support):
            arm = -1
            for a in range(n_arms):
                if dearest[a] == 0 and (arm < 0 or pulls[a] > pulls[arm]):
                    arm = a
            dearest[arm] = 1
            dear += 0.5 * math.log1p(pulls[arm] / pricing.lam)
    thresholds.cost = pricing.cost_log + price
    thresholds.reward = pricing.reward_log + price + pricing.n_unknown * dear


@kernel
def write_pooled_evidence(
    mu: FloatArray, rows: FloatArray, model: Model, worth: Worth, answer: FloatArray, evidence_out: Evidence
) -> None:
    """Write the evidence about an answer: means (K,), rows (d, K), and their variances after the effective pulls."""
    effective = worth.effective
    d, n_arms = rows.shape
    evidence_out.terms.tolerance, evidence_out.terms.spread, evidence_out.terms.floor = model.r, 0.0, 0.0
    for i in range(d):
        evidence_out.known[i] = model.known[i]
    for a in range(n_arms):
        evidence_out.centre[a] = answer[a]
        evidence_out.mu[a] = mu[a]
        evidence_out.mu_var[a] = model.reward_noise[a] / effective[a]
        for i in range(d):
            evidence_out.rows[i, a] = rows[i, a]
            evidence_out.row_var[i, a] = model.row_noise[i, a] / effective[a]
