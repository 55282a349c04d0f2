"""When a certificate by blocks is due: whole explorations, rehearsed on a guessed truth, block by block.

The explorer, its plan and its test are the real ones. Only the outcomes are not drawn one by one: a block's power sums
are drawn at once, as sums of many outcomes are distributed. So a rehearsal of a million pulls takes as long as one of a
thousand, and a forecast needs no factor that was fitted.
"""

import math

import numpy as np

from polyarm._types import FloatArray
from polyarm.accounts import KNOWN, RANGE
from polyarm.engine.plan import Plan, make_plan
from polyarm.engine.session import Session
from polyarm.environments.instances import Instance
from polyarm.round import NO_ARM, RUNNING

#: A rehearsal ends here: no certificate is due in finite time.
_LONGEST = 1e12
#: From this share of the largest variance that a range allows on, outcomes count as being at its ends.
_AT_THE_ENDS = 0.97


def rehearse(instance: Instance, seeds: int) -> list[float]:
    """Return the pulls at which `certex` stops in so many rehearsals; infinite where it does not.

    Args:
        instance: The guessed truth.
        seeds: How many rehearsals; always the same ones.
    """
    plan = make_plan("certex", instance.problem, {})
    return [_rehearse_once(instance, plan, seed) for seed in range(seeds)]


def forecast_pulls(instance: Instance, seeds: int) -> float | None:
    """Return the median of so many rehearsals, None if most of them end without a certificate.

    Args:
        instance: The guessed truth.
        seeds: How many rehearsals, an odd number.
    """
    middle = sorted(rehearse(instance, seeds))[seeds // 2]
    return middle if math.isfinite(middle) else None


def _rehearse_once(instance: Instance, plan: Plan, seed: int) -> float:
    session, rng = Session(plan, seed), np.random.default_rng([seed, 20])
    model = plan.model
    means = np.vstack([instance.mu, instance.A * model.factors[:, None]])
    deviations = np.nan_to_num(instance.true_stds())
    deviations[1:] *= np.abs(model.factors)[:, None]
    now, stop = session.round.now, session.stop
    assert stop is not None  # certex has one
    while now.status == RUNNING:
        if now.steps > _LONGEST:
            return math.inf
        stop.look()
        if now.status == RUNNING:
            _tell_block(session, means, deviations, rng)
    return float(now.steps)


def _tell_block(session: Session, means: FloatArray, deviations: FloatArray, rng: np.random.Generator) -> None:
    """Tell a whole block: what its outcomes add up to is drawn at once."""
    estimates, model, block = session.round.estimates, session.plan.model, session.stop.block  # type: ignore[union-attr]
    counts = block.counts
    for k in np.flatnonzero(model.accounts != KNOWN).tolist():
        for a in range(counts.size):
            n, m, s = float(counts[a]), float(means[k, a]), float(deviations[k, a])
            mean, spread = _draw_sums(n, m, s, float(model.low[k, a]), float(model.high[k, a]), rng)
            _add_outcomes(session, k, a, n, mean, spread)
    estimates.pulls[:] += counts
    estimates.log_pulls[:] = np.log1p(estimates.pulls)
    estimates.mu_hat[:] = estimates.reward_sums / estimates.pulls
    for i in np.flatnonzero(~model.known):
        estimates.columns[1 + i] = estimates.cost_sums[i] / estimates.pulls - model.bounds[i]
    block.left[:] = 0.0
    session.round.now.steps += int(counts.sum())
    session.round.now.pending = NO_ARM


def _draw_sums(n: float, m: float, s: float, low: float, high: float, rng: np.random.Generator) -> tuple[float, float]:
    """Draw the mean of n outcomes of mean m and standard deviation s, and the sum of squares about it.

    Outcomes that spread as far as their range allows lie at its ends. All others are drawn as if they were Gaussian.
    """
    if math.isfinite(high - low) and s * s > _AT_THE_ENDS * (m - low) * (high - m):
        share = rng.binomial(int(n), (m - low) / (high - low)) / n
        return low + share * (high - low), n * share * (1.0 - share) * (high - low) ** 2
    mean = min(max(m + s / math.sqrt(n) * rng.standard_normal(), low), high)
    # About their own mean, n outcomes spread like chi-squared with n - 1 degrees.
    return mean, s * s * (rng.chisquare(n - 1.0) if n > 1.0 else 0.0)


def _add_outcomes(session: Session, k: int, a: int, n: float, mean: float, spread: float) -> None:
    """Add n outcomes of this mean and sum of squares about it to every sum, as Gaussian ones."""
    estimates, model = session.round.estimates, session.plan.model
    if estimates.pulls[a] == 0.0 and not np.isfinite(model.low[k, a]):
        estimates.guesses[k, a] = estimates.pivots[k, a] = mean
    if model.accounts[k] == RANGE:
        estimates.wander[k, a] += spread + n * (mean - estimates.guesses[k, a]) ** 2
    for sums, centre in ((estimates.powers, estimates.guesses[k, a]), (estimates.totals, estimates.pivots[k, a])):
        away = mean - centre
        sums[0, k, a] += n * away
        sums[1, k, a] += spread + n * away**2
        sums[2, k, a] += 3.0 * away * spread + n * away**3
        sums[3, k, a] += 3.0 * spread**2 / n + 6.0 * away**2 * spread + n * away**4
    if k == 0:
        estimates.reward_sums[a] += n * mean
    else:
        estimates.cost_sums[k - 1, a] += n * mean
