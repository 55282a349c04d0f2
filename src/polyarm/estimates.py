"""Tallies of what was observed, and how far the estimated constraint matrix may be off."""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.accounts import DECLARED, ESTIMATED, KNOWN, RANGE, guess_mean
from polyarm.model import Model

SCALAR = 0
ARM = 1

#: Names of the two radii, as settings.
RADIUS_CODES = {"scalar": SCALAR, "arm": ARM}


@struct
class Estimates:
    """Sums, and the sample means they imply. `columns` is the empirical polytope (see `polytope.lp`).

    Outcome 0 is the reward, outcome 1 + i the cost of row i, in units of kernels. `powers` (4, 1 + d, K) sums the first
    four powers of how far outcomes lay from `guesses` (1 + d, K), since these were made (see `mark`); `totals` those
    from `pivots`, since the beginning. `wander` (1 + d, K) sums squares of how far each outcome in a range lay from a
    guess made before it. If pulls come `by_blocks` that is the one made before the block, so that nothing depends on
    the order in which its outcomes are told; otherwise all outcomes before it are guessed from.
    """

    pulls: FloatArray
    reward_sums: FloatArray
    cost_sums: FloatArray
    log_pulls: FloatArray
    mu_hat: FloatArray
    columns: FloatArray
    guesses: FloatArray
    powers: FloatArray
    pivots: FloatArray
    totals: FloatArray
    wander: FloatArray
    by_blocks: bool


def make_estimates(model: Model, by_blocks: bool = False) -> Estimates:
    """Allocate tallies with nothing observed; known rows are in place from the start.

    Args:
        model: The problem.
        by_blocks: Whether pulls come in blocks, with a `mark` at the end of each.
    """
    d, n_arms = model.known_rows.shape
    middle = np.zeros(model.low.shape)
    bounded = np.isfinite(model.low)
    middle[bounded] = 0.5 * (model.low[bounded] + model.high[bounded])
    return Estimates(
        pulls=np.zeros(n_arms),
        reward_sums=np.zeros(n_arms),
        cost_sums=np.zeros((d, n_arms)),
        log_pulls=np.zeros(n_arms),
        mu_hat=np.zeros(n_arms),
        columns=np.vstack([np.ones(n_arms), model.known_rows]),
        guesses=middle,
        powers=np.zeros((4, 1 + d, n_arms)),
        pivots=middle.copy(),
        totals=np.zeros((4, 1 + d, n_arms)),
        wander=np.zeros((1 + d, n_arms)),
        by_blocks=by_blocks,
    )


@kernel
def guess(estimates: Estimates, model: Model, k: int, arm: int) -> float:
    """What outcome k of an arm is expected to be, from all outcomes so far; a guess made earlier if there are none."""
    pulls = estimates.pulls[arm]
    total = estimates.reward_sums[arm] if k == 0 else estimates.cost_sums[k - 1, arm]
    if model.accounts[k] == RANGE:
        return float(guess_mean(total, pulls, model.low[k, arm], model.high[k, arm]))
    return float(total / pulls if pulls > 0.0 else estimates.guesses[k, arm])


@kernel
def mark(estimates: Estimates, model: Model) -> None:
    """Guess every outcome from those so far, and sum powers afresh: about these guesses, from now on."""
    for k in range(model.accounts.size):
        for a in range(estimates.pulls.size):
            estimates.guesses[k, a] = guess(estimates, model, k, a)
            for n in range(4):
                estimates.powers[n, k, a] = 0.0


@kernel
def settle(estimates: Estimates, model: Model) -> None:
    """Move pivots to the means so far: they were the outcomes that happened to be told first."""
    for k in range(model.accounts.size):
        for a in range(estimates.pulls.size):
            one, two = estimates.totals[0, k, a], estimates.totals[1, k, a]
            three, four = estimates.totals[2, k, a], estimates.totals[3, k, a]
            # Outcomes that never varied are their own pivot; of sums that overflowed nothing can be made.
            if model.accounts[k] == RANGE or not (two > 0.0 and math.isfinite(four)):
                continue
            n, mean = estimates.pulls[a], guess(estimates, model, k, a)
            m = mean - estimates.pivots[k, a]
            estimates.pivots[k, a] = mean
            estimates.totals[0, k, a] = one - n * m
            estimates.totals[1, k, a] = two - m * (2.0 * one - n * m)
            estimates.totals[2, k, a] = three - m * (3.0 * two - m * (3.0 * one - n * m))
            estimates.totals[3, k, a] = four - m * (4.0 * three - m * (6.0 * two - m * (4.0 * one - n * m)))


@kernel
def _observe(estimates: Estimates, model: Model, k: int, arm: int, outcome: float) -> None:
    """Add an outcome, in units of kernels, to the sums of powers; before it is added to any other sum."""
    if estimates.pulls[arm] == 0.0 and model.accounts[k] != RANGE:
        # Nothing else says where its outcomes lie.
        estimates.guesses[k, arm] = outcome
        estimates.pivots[k, arm] = outcome
    if model.accounts[k] == RANGE:
        made = estimates.guesses[k, arm] if estimates.by_blocks else guess(estimates, model, k, arm)
        estimates.wander[k, arm] += (outcome - made) ** 2
    recent, since, power, total = outcome - estimates.guesses[k, arm], outcome - estimates.pivots[k, arm], 1.0, 1.0
    for n in range(4):
        power *= recent
        total *= since
        estimates.powers[n, k, arm] += power
        estimates.totals[n, k, arm] += total


@kernel
def expect_spread(estimates: Estimates, model: Model, variances_out: FloatArray, kurtoses_out: FloatArray) -> None:
    """Write what the variance of one pull is expected to be, and its kurtosis so far, for every outcome and arm.

    Of a declared outcome the declared variance; in a range, half a width counts as one more outcome; otherwise that of
    the outcomes so far, and where none has varied yet, that of the other arms.
    """
    n_arms = estimates.pulls.size
    for k in range(model.accounts.size):
        largest = 0.0
        for a in range(n_arms):
            variances_out[k, a], kurtoses_out[k, a] = 0.0, 3.0
            if model.accounts[k] == KNOWN:
                continue
            n = max(estimates.pulls[a], 1.0)
            one, two = estimates.totals[0, k, a], estimates.totals[1, k, a]
            squares = max(two - one * one / n, 0.0)
            if model.accounts[k] == RANGE:
                width = model.high[k, a] - model.low[k, a]
                variances_out[k, a] = (squares + 0.25 * width * width) / (n + 1.0)
            elif model.accounts[k] == DECLARED:
                variances_out[k, a] = model.reward_noise[a] if k == 0 else model.row_noise[k - 1, a]
            else:
                variances_out[k, a] = squares / max(n - 1.0, 1.0)
                three, four, m = estimates.totals[2, k, a], estimates.totals[3, k, a], one / n
                fourths = four - m * (4.0 * three - m * (6.0 * two - 3.0 * m * one))
                if squares > 0.0:
                    kurtoses_out[k, a] = min(max(n * fourths / (squares * squares), 1.0), n)
            largest = max(largest, variances_out[k, a])
        if model.accounts[k] == ESTIMATED:
            for a in range(n_arms):
                if not variances_out[k, a] > 1e-12 * largest:
                    variances_out[k, a] = largest if largest > 0.0 else 1.0
                    kurtoses_out[k, a] = max(estimates.pulls[a], 3.0)


@kernel
def record(estimates: Estimates, model: Model, arm: int, reward: float, costs: FloatArray) -> None:
    """Add one observation; `costs` (d,) is in the user's units, entries of known rows are ignored.

    Differs from paper: sample means, not the ridge estimate that divides by N + 1.
    """
    _observe(estimates, model, 0, arm, reward)
    for i in range(model.known.size):
        if model.accounts[1 + i] != KNOWN:
            _observe(estimates, model, 1 + i, arm, costs[i] * model.factors[i])
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
