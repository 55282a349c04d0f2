r"""Thresholds that hold for all times at once: the price of watching while the data come in.

For each arm the Gaussian mixture, of precision lam, of :math:`\exp(\theta S - \theta^2 N / 2)` is a supermartingale, so
with probability at least 1 - delta', for every t, :math:`\sum_a e_a (\text{deviation}_a)^2 / 2 \le \log(1/\delta') +
\sum_a L_a`, where :math:`e_a = N_a^2/(N_a + \lambda)` are the *effective pulls* and
:math:`L_a = \tfrac12 \log(1 + N_a/\lambda)` the price of each arm.
"""

import math
from typing import NamedTuple

from polyarm._compile import kernel
from polyarm._types import FloatArray, IntArray

# Entries of the thresholds.
COST = 0
REWARD = 1

# Kinds of thresholds.
PROVED = 0  # the mixture of precision `lam`
STYLISED = 1  # what papers use: every pull counts, and both thresholds are log((1 + log t)/delta)
FIXED = 2  # every pull counts, and the thresholds are `cost_log` and `reward_log`


class Pricing(NamedTuple):
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
    return Pricing(PROVED if proved else STYLISED, lam, cost_log, reward_log, n_unknown, support, delta)


def fixed_pricing(cost: float, reward: float) -> Pricing:
    """Thresholds that do not change with the pulls."""
    return Pricing(FIXED, 1.0, cost, reward, 0, 0, 0.0)


@kernel
def write_thresholds(
    pricing: Pricing, pulls: FloatArray, effective_out: FloatArray, thresholds_out: FloatArray, dearest_out: IntArray
) -> None:
    r"""Write effective pulls and both thresholds; mark the arms whose costs the reward threshold pays for.

    .. math:: \beta_c = \log(2 d_u/\delta) + \sum_a L_a, \qquad
              \beta_0 = c \log(2/\delta) + \sum_a L_a + d_u \sum_{a \in \text{dearest}} L_a

    The true optimum, a vertex, mixes at most `support` arms, so only the dearest that many can be among them.
    """
    n_arms = pulls.size
    steps = 0.0
    for a in range(n_arms):
        steps += pulls[a]
        dearest_out[a] = 0
    if pricing.kind != PROVED:
        for a in range(n_arms):
            effective_out[a] = pulls[a]
        if pricing.kind == STYLISED:
            thresholds_out[COST] = thresholds_out[REWARD] = math.log((1.0 + math.log(max(steps, 1.0))) / pricing.delta)
        else:
            thresholds_out[COST], thresholds_out[REWARD] = pricing.cost_log, pricing.reward_log
    else:
        price = 0.0
        for a in range(n_arms):
            effective_out[a] = pulls[a] * pulls[a] / (pulls[a] + pricing.lam)
            price += 0.5 * math.log1p(pulls[a] / pricing.lam)
        dear = 0.0
        if pricing.n_unknown > 0:
            for _ in range(pricing.support):
                arm = -1
                for a in range(n_arms):
                    if dearest_out[a] == 0 and (arm < 0 or pulls[a] > pulls[arm]):
                        arm = a
                dearest_out[arm] = 1
                dear += 0.5 * math.log1p(pulls[arm] / pricing.lam)
        thresholds_out[COST] = pricing.cost_log + price
        thresholds_out[REWARD] = pricing.reward_log + price + pricing.n_unknown * dear
