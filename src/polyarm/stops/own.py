"""Thresholds beta(t, delta): a setting of every explorer that stops on a likelihood ratio, recorded with its runs."""

import math

from scipy.special import lambertw, zeta

from polyarm._compile import kernel
from polyarm._types import FloatArray

PAPER = 0
LOG = 1
THEORY = 2

#: Names of the thresholds, as settings.
BETA_CODES = {"paper": PAPER, "log": LOG, "theory": THEORY}


@kernel
def compute_beta(kind: int, delta: float, theory_constant: float, pulls: FloatArray) -> float:
    r"""Threshold for the statistic after these pulls, t in total.

    `PAPER` :math:`\log((1 + \log\log \max(t, 3))/\delta)`; `LOG` :math:`\log((1 + \log t)/\delta)`;
    `THEORY` :math:`\sum_a 3 \log(1 + \log N_a) + K\,T((\min(K, d) + \log(1/\delta))/K)`, whose second term is
    `theory_constant`. Only `THEORY` has a proof, and only for rewards with the constraints known.
    Source: paper Section 5; Kaufmann and Koolen (2021), Theorem 7.
    """
    total = 0.0
    for a in range(pulls.size):
        total += pulls[a]
    if kind == PAPER:
        return math.log((1.0 + math.log(math.log(max(total, 3.0)))) / delta)
    if kind == LOG:
        return math.log((1.0 + math.log(total)) / delta)
    beta = theory_constant
    for a in range(pulls.size):
        beta += 3.0 * math.log(1.0 + math.log(pulls[a]))
    return beta


def theory_constant(n_arms: int, n_constraints: int, delta: float) -> float:
    """Return the part of the `theory` threshold that does not depend on the pulls."""
    x = (min(n_arms, n_constraints) + math.log(1.0 / delta)) / n_arms
    return n_arms * calibration(x)


def calibration(x: float) -> float:
    r"""T(x) of Kaufmann and Koolen (2021), :math:`2 \tilde h_{3/2}((h^{-1}(1 + x) + \log(2 \zeta(2)))/2)`."""
    return 2.0 * _h_tilde(1.5, 0.5 * (_h_inverse(1.0 + x) + math.log(2.0 * float(zeta(2.0)))))


def _h_inverse(x: float) -> float:
    """Inverse of h(u) = u - log u on u >= 1."""
    return float(-lambertw(-math.exp(-x), k=-1).real)


def _h_tilde(z: float, x: float) -> float:
    switch = 1.0 / math.log(z)
    if x >= switch - math.log(switch):
        inverse = _h_inverse(x)
        return math.exp(1.0 / inverse) * inverse
    return z * (x - math.log(math.log(z)))
