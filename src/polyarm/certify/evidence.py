r"""Reward and cost evidence together: how far the data are from every instance in which an answer would be wrong.

An answer p is wrong if some row is broken, :math:`G_i p > 0`, or if some mix q, a *witness*, satisfies every row and
beats it by more than r. With variances v of the estimated entries and :math:`\|x\|_v^2 = \sum_a v_a x_a^2`:

.. math:: Z_i(p) = \frac{(-\hat G_i p)_+^2}{2 \|p\|_{v_i}^2}, \qquad
          g(q) = \frac{(r - \hat\mu^\top (q - p))_+^2}{2 (\|q - p\|_{v_0}^2 + e)}
                 + \sum_i \max\Big\{\frac{(\hat G_i q)_+^2}{2 \|q\|_{v_i}^2}, \kappa\Big\}

With e = kappa = 0 these are the statistics of the pooled certificate. The averaged one (`certify.blocks`) has the
same form about a centre p that need not be a mix, with a spread e that no q can avoid and a least value kappa of every
unknown row's part.
"""

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import BoolArray, FloatArray
from polyarm.tolerances import KNOWN_ROW


class Terms(Scalars):
    """Numbers of the evidence.

    `tolerance` is r about the centre, `spread` e, the variance of the reward term that no q can avoid, and `floor`
    kappa, the least that an unknown row adds to g.
    """

    tolerance: float
    spread: float
    floor: float


@struct
class Evidence:
    """What is known about every witness: estimates, their variances, and the answer to be beaten.

    `mu` (K,) and `rows` (d, K), G in units of each row's noise; `mu_var` (K,) and `row_var` (d, K), zero for rows that
    are `known` (d,); `centre` (K,) is the answer, or what stands for it.
    """

    mu: FloatArray
    rows: FloatArray
    mu_var: FloatArray
    row_var: FloatArray
    known: BoolArray
    centre: FloatArray
    terms: Terms


def make_evidence(n_arms: int, n_constraints: int) -> Evidence:
    """Allocate evidence with nothing in it."""
    d = n_constraints
    return Evidence(
        np.zeros(n_arms),
        np.zeros((d, n_arms)),
        np.zeros(n_arms),
        np.zeros((d, n_arms)),
        np.zeros(d, dtype=np.bool_),
        np.zeros(n_arms),
        Terms(),
    )


@kernel
def witness_value(evidence: Evidence, q: FloatArray) -> float:
    """g(q): half the squared distance to the instances where q is feasible and beats the centre by the tolerance.

    Infinite when q breaks a known row, or when q is the centre itself.
    """
    mu, mu_var, centre, terms = evidence.mu, evidence.mu_var, evidence.centre, evidence.terms
    rows, row_var, known = evidence.rows, evidence.row_var, evidence.known
    n_arms = q.size
    gap = terms.tolerance
    spread = terms.spread
    for a in range(n_arms):
        x = q[a] - centre[a]
        gap -= mu[a] * x
        spread += x * x * mu_var[a]
    total = 0.0
    if gap > 0.0:
        if spread < 1e-300:
            return np.inf
        total = gap * gap / spread
    for i in range(known.size):
        excess = 0.0
        spread = 0.0
        for a in range(n_arms):
            excess += rows[i, a] * q[a]
            spread += q[a] * q[a] * row_var[i, a]
        if known[i]:
            if excess > KNOWN_ROW:
                return np.inf
        else:
            part = excess * excess / spread if excess > 0.0 else 0.0
            total += max(part, 2.0 * terms.floor)
    return 0.5 * total


@kernel
def cost_statistic(evidence: Evidence, answer: FloatArray) -> float:
    """min_i Z_i over the unknown rows: half the squared distance to the instances where the answer breaks one.

    Zero when the answer breaks a known row: no data can save it.
    """
    rows, row_var, known = evidence.rows, evidence.row_var, evidence.known
    least = np.inf
    for i in range(known.size):
        slack = 0.0
        spread = 0.0
        for a in range(answer.size):
            slack -= rows[i, a] * answer[a]
            spread += answer[a] * answer[a] * row_var[i, a]
        if known[i]:
            value = np.inf if slack >= -KNOWN_ROW else 0.0
        else:
            value = max(slack, 0.0) ** 2 / (2.0 * spread)
        if not value >= least:  # NaN must not be passed over
            least = value
    return least
