"""Tallies of what was observed, and how far the estimated constraint matrix may be off."""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.model import Model

SCALAR = 0
ARM = 1

#: Names of the two radii, as settings.
RADIUS_CODES = {"scalar": SCALAR, "arm": ARM}


@struct
class Estimates:
    """Sums, and the sample means they imply. `columns` is the empirical polytope (see `polytope.lp`)."""

    pulls: FloatArray
    reward_sums: FloatArray
    cost_sums: FloatArray
    log_pulls: FloatArray
    mu_hat: FloatArray
    columns: FloatArray


def make_estimates(model: Model) -> Estimates:
    """Allocate tallies with nothing observed; known rows are in place from the start."""
    d, n_arms = model.known_rows.shape
    return Estimates(
        pulls=np.zeros(n_arms),
        reward_sums=np.zeros(n_arms),
        cost_sums=np.zeros((d, n_arms)),
        log_pulls=np.zeros(n_arms),
        mu_hat=np.zeros(n_arms),
        columns=np.vstack([np.ones(n_arms), model.known_rows]),
    )


@kernel
def record(estimates: Estimates, model: Model, arm: int, reward: float, costs: FloatArray) -> None:
    """Add one observation; `costs` (d,) is in the user's units, entries of known rows are ignored.

    Differs from paper: sample means, not the ridge estimate that divides by N + 1.
    """
    estimates.pulls[arm] += 1.0
    pulls = estimates.pulls[arm]
    estimates.log_pulls[arm] = math.log(1.0 + pulls)
    estimates.reward_sums[arm] += reward
    estimates.mu_hat[arm] = estimates.reward_sums[arm] / pulls
    for i in range(model.known.size):
        if not model.known[i]:
            estimates.cost_sums[i, arm] += costs[i] * model.factors[i]
            estimates.columns[i + 1, arm] = estimates.cost_sums[i, arm] / pulls - model.bounds[i]


@kernel
def paper_radius(estimates: Estimates, model: Model) -> float:
    r"""The paper's ellipsoid radius.

    .. math:: f(t, \delta) = 1 + \sqrt{\tfrac12 \log(K/\delta) + \tfrac14 \sum_a \log(1 + N_a)}

    Differs from paper: valid only for noise of standard deviation 1/2; see docs/errata.md.
    """
    total = 0.0
    for a in range(estimates.pulls.size):
        total += estimates.log_pulls[a]
    return 1.0 + math.sqrt(0.5 * math.log(estimates.pulls.size / model.delta) + 0.25 * total)


@kernel
def write_widths(kind: int, estimates: Estimates, model: Model, reference: FloatArray, widths_out: FloatArray) -> None:
    r"""Write how far each entry of the estimated matrix may be off, shape (d, K); zero for known rows.

    `SCALAR` (paper): one number per row, :math:`s_i f(t, \delta) \|w\|_{\Sigma^{-1}}` with
    :math:`\Sigma = I + \mathrm{diag}(N)` and w the reference policy. Not a superset of the true set.

    `ARM` (valid for all t at once): :math:`s_{ia} \sqrt{2 (\log(d_u K/\delta) + L_a) / e_a}` with
    :math:`e_a = N_a^2/(N_a + 1)`, :math:`L_a = \tfrac12 \log(1 + N_a)`.
    """
    d, n_arms = widths_out.shape
    if kind == SCALAR:
        norm = 0.0
        for a in range(n_arms):
            norm += reference[a] * reference[a] / (1.0 + estimates.pulls[a])
        width = paper_radius(estimates, model) * math.sqrt(norm)
        for i in range(d):
            largest = 0.0
            for a in range(n_arms):
                largest = max(largest, model.cost_std[i, a])
            for a in range(n_arms):
                widths_out[i, a] = largest * width
    else:
        n_unknown = 0
        for i in range(d):
            if not model.known[i]:
                n_unknown += 1
        base = math.log(max(n_unknown, 1) * n_arms / model.delta)
        for a in range(n_arms):
            pulls = estimates.pulls[a]
            effective = pulls * pulls / (pulls + 1.0)
            width = math.sqrt(2.0 * (base + 0.5 * estimates.log_pulls[a]) / effective)
            for i in range(d):
                widths_out[i, a] = model.cost_std[i, a] * width


@kernel
def write_shifted(columns: FloatArray, widths: FloatArray, sign: float, columns_out: FloatArray) -> None:
    """Write the polytope whose matrix is the estimate plus sign * widths (-1 optimistic, +1 pessimistic)."""
    d, n_arms = widths.shape
    for a in range(n_arms):
        columns_out[0, a] = 1.0
    for i in range(d):
        for a in range(n_arms):
            columns_out[i + 1, a] = columns[i + 1, a] + sign * widths[i, a]
