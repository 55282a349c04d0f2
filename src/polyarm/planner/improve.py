r"""Improving a plan: the allocation w and the answer p that maximise the least statistic/threshold ratio.

The minimum of `planner.objective` is softened (log-softmin) and climbed by turns: w multiplicatively,
:math:`w_a \leftarrow w_a (\text{elasticity}_a / w_a)^\gamma`, and p by exponentiated gradient. A step that does not
raise the soft minimum is not taken, and the next one is shorter.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._compile import inlined_kernel, kernel
from polyarm._structs import Scalars
from polyarm._types import FloatArray
from polyarm.certify.pooled import PROVED, weigh_pulls
from polyarm.planner.objective import (
    TINY,
    PlanWork,
    Scene,
    Score,
    activate,
    evaluate,
    least_value,
    look_from,
    value_of,
)
from polyarm.polytope.projection import PROJECTED, project_polytope

#: Shares of an answer are floored by this: a share of zero could never grow again.
LEAST_SHARE = 1e-5
#: Cuts beyond this multiple of the least one are left out at first, and looked at again every few steps.
_ACTIVE = 8.0
_RECHECK = 8
#: A step that starts afresh.
FRESH_STEP = 0.3


class Steps(Scalars):
    """Sizes of the next steps; remembered from one climb to the next."""

    allocation: float
    answer: float


def fresh_steps() -> Steps:
    """Return the sizes that a climb starts with."""
    return Steps(allocation=FRESH_STEP, answer=FRESH_STEP)


def refresh_steps(steps: Steps, answer_only: bool = False) -> None:
    """Start afresh: with both steps, or the answer's only."""
    steps.answer = FRESH_STEP
    if not answer_only:
        steps.allocation = FRESH_STEP


class Effort(NamedTuple):
    """How to climb.

    `total` pulls are planned for; 0: the allocation holds the pulls that were made, and only the answer moves. No share
    of the allocation falls (much) below `floor`. `sharpness` is that of the soft minimum; `iterations` the number of
    steps tried, half of them of the allocation if that moves.
    """

    total: float
    floor: float
    sharpness: float
    iterations: int


@kernel
def _copy_score(source: Score, n_cuts: int, target: Score) -> None:
    for k in range(n_cuts):
        target.values[k] = source.values[k]
        target.slacks[k] = source.slacks[k]
        target.lengths[k] = source.lengths[k]
        target.weights[k] = source.weights[k]
        for i in range(source.row_lengths.shape[1]):
            target.row_lengths[k, i] = source.row_lengths[k, i]
    _copy_worth(source, target)


@kernel
def _copy_worth(source: Score, target: Score) -> None:
    """Copy effective pulls and thresholds: what depends on the allocation alone."""
    mine, other = source.worth, target.worth
    for a in range(mine.effective.size):
        other.effective[a] = mine.effective[a]
        other.dearest[a] = mine.dearest[a]
    other.thresholds.cost = mine.thresholds.cost
    other.thresholds.reward = mine.thresholds.reward


@kernel
def _price_allocation(scene: Scene, allocation: FloatArray, total: float, pulls_out: FloatArray, score: Score) -> None:
    """Set effective pulls and thresholds of a score to what `total` pulls in these proportions give."""
    for a in range(allocation.size):
        pulls_out[a] = allocation[a] * total
    weigh_pulls(scene.pricing, pulls_out, score.worth)


@kernel
def _write_elasticities(scene: Scene, answer: FloatArray, work: PlanWork, elasticity_out: FloatArray) -> None:
    """Write d log-softmin / d log N_a: what one per cent more pulls of each arm would gain, thresholds included."""
    d, n_arms = scene.rows.shape
    score, worth, model, mixes = work.score, work.score.worth, scene.model, scene.pool.mixes
    effective, noise, row_noise = worth.effective, model.reward_noise, model.row_noise
    on_rows, on_witnesses = 0.0, 0.0
    for a in range(n_arms):
        elasticity_out[a] = 0.0
    for i in range(d):
        if score.weights[i] > 1e-6:
            on_rows += score.weights[i]
            for a in range(n_arms):
                part = answer[a] * answer[a] * row_noise[i, a] / (effective[a] * score.lengths[i])
                elasticity_out[a] += score.weights[i] * part
    for j in range(work.vantage.n_active):
        k = d + j
        if score.weights[k] > 1e-6:
            on_witnesses += score.weights[k]
            q = mixes[work.active[j]]
            whole = 2.0 * score.values[k] * worth.thresholds.reward
            share = score.weights[k] * (score.slacks[k] / score.lengths[k]) ** 2 / whole
            for a in range(n_arms):
                x = q[a] - answer[a]
                elasticity_out[a] += share * x * x * noise[a] / effective[a]
            for i in range(d):
                if work.excess[j, i] > 0.0 and score.row_lengths[k, i] < np.inf:
                    share = score.weights[k] * (work.excess[j, i] / score.row_lengths[k, i]) ** 2 / whole
                    for s in range(work.n_supports[j]):
                        a = work.supports[j, s]
                        elasticity_out[a] += share * q[a] * q[a] * row_noise[i, a] / effective[a]
    for a in range(n_arms):
        elasticity_out[a] *= scene.memory.terms.share
    if scene.pricing.kind == PROVED:
        _charge_prices(scene, on_rows, on_witnesses, work, elasticity_out)


@kernel
def _charge_prices(
    scene: Scene, on_rows: float, on_witnesses: float, work: PlanWork, elasticity_out: FloatArray
) -> None:
    """Subtract what more pulls add to the thresholds: d L_a / d log N_a."""
    pricing, worth = scene.pricing, work.score.worth
    cost, reward = worth.thresholds.cost, worth.thresholds.reward
    for a in range(elasticity_out.size):
        pulls = work.pulls[a]
        growth = 0.5 * pulls / (pulls + pricing.lam)
        copies = 1.0 + pricing.n_unknown if worth.dearest[a] == 1 else 1.0
        price = on_rows * growth / cost + on_witnesses * copies * growth / reward
        elasticity_out[a] *= (pulls + 2.0 * pricing.lam) / (pulls + pricing.lam)
        elasticity_out[a] = max(elasticity_out[a] - price, 0.0)


@inlined_kernel
def _floor_shares(shares: FloatArray, total: float, floor: float) -> None:
    """Divide shares by their total, raise those below the floor, and divide by the new total, in place."""
    floored = 0.0
    for a in range(shares.size):
        shares[a] = max(shares[a] / total, floor)
        floored += shares[a]
    for a in range(shares.size):
        shares[a] /= floored


@kernel
def _move_allocation(
    allocation: FloatArray, elasticity: FloatArray, step: float, floor: float, moved_out: FloatArray
) -> None:
    """Write the next allocation: each share times (elasticity / share)^step, floored, summing to one."""
    total = 0.0
    for a in range(allocation.size):
        moved_out[a] = allocation[a] * math.pow(elasticity[a] / allocation[a] + 1e-12, step)
        total += moved_out[a]
    _floor_shares(moved_out, total, floor)


@kernel
def _write_gradient(scene: Scene, answer: FloatArray, work: PlanWork, gradient_out: FloatArray) -> None:
    """Write d log-softmin / d p."""
    d, n_arms = scene.rows.shape
    score, model, mu, rows = work.score, scene.model, scene.mu, scene.rows
    effective, threshold = score.worth.effective, score.worth.thresholds.reward
    share = scene.memory.terms.share
    for a in range(n_arms):
        gradient_out[a] = 0.0
    for i in range(d):
        weight = score.weights[i]
        if weight > 1e-6 and score.slacks[i] <= 0.0:
            for a in range(n_arms):  # infeasible: the statistic is flat at zero, so climb the slack itself
                gradient_out[a] -= weight * rows[i, a]
        elif weight > 1e-6:
            for a in range(n_arms):
                spread = answer[a] * model.row_noise[i, a] / effective[a]
                step = rows[i, a] / score.slacks[i] + spread / score.lengths[i]
                gradient_out[a] -= 2.0 * weight * share * step
    for j in range(work.vantage.n_active):
        k = d + j
        weight = score.weights[k]
        if weight > 1e-6 and score.slacks[k] <= 0.0:
            for a in range(n_arms):
                gradient_out[a] += weight * mu[a]
        elif weight > 1e-6:
            q = scene.pool.mixes[work.active[j]]
            push = score.slacks[k] / score.lengths[k]
            weight /= score.values[k] * threshold
            for a in range(n_arms):
                spread = (q[a] - answer[a]) * model.reward_noise[a] / effective[a]
                gradient_out[a] += weight * share * push * (mu[a] + push * spread)


@kernel
def _move_answer(answer: FloatArray, gradient: FloatArray, step: float, moved_out: FloatArray) -> bool:
    """Write the next answer by exponentiated gradient; False when there is nowhere to go."""
    mean = 0.0
    for a in range(answer.size):
        mean += answer[a] * gradient[a]
    largest = 0.0
    for a in range(answer.size):
        largest = max(largest, abs(gradient[a] - mean))
    if largest < TINY:
        return False
    total = 0.0
    for a in range(answer.size):
        moved_out[a] = max(answer[a], LEAST_SHARE) * math.exp(step / largest * (gradient[a] - mean))
        total += moved_out[a]
    _floor_shares(moved_out, total, LEAST_SHARE)
    return True


@kernel
def _keep_known_rows(scene: Scene, work: PlanWork, mix: FloatArray) -> bool:
    """Move a mix, in place, to the nearest one that satisfies the known rows; False when that did not work."""
    model = scene.model
    for i in range(work.multipliers.size):
        work.multipliers[i] = 0.0
    status = project_polytope(mix, model.simplex[0], model.known_set, work.multipliers, work.projection, work.projected)
    if status == PROJECTED:
        for a in range(mix.size):
            mix[a] = work.projected[a]
    return status == PROJECTED


@kernel
def _copy_mixes(allocation: FloatArray, answer: FloatArray, allocation_out: FloatArray, answer_out: FloatArray) -> None:
    for a in range(allocation.size):
        allocation_out[a] = allocation[a]
        answer_out[a] = answer[a]


@kernel
def _activate_near_ones(scene: Scene, effort: Effort, answer: FloatArray, work: PlanWork) -> float:
    """Evaluate every witness, keep those near the least active, and return the log-softmin over these."""
    score, d = work.score, scene.rows.shape[0]
    work.vantage.n_active = 0
    for k in range(scene.pool.size[0]):
        activate(scene, k, work)
    evaluate(scene, answer, effort.sharpness, work, score)
    least = least_value(score, d + work.vantage.n_active)
    work.vantage.n_active = 0
    for k in range(scene.pool.size[0]):
        work.is_active[k] = 0
        if score.values[d + k] <= _ACTIVE * least:
            activate(scene, k, work)
    return float(evaluate(scene, answer, effort.sharpness, work, score))


@kernel
def _recheck(
    scene: Scene, effort: Effort, current: float, allocation: FloatArray, answer: FloatArray, work: PlanWork
) -> float:
    """Look at the witnesses left out: if one has become the least, go back, in place, and take it in.

    Returns the log-softmin, with those that came near taken in, too.
    """
    score, trial, vantage = work.score, work.trial, work.vantage
    n_active = vantage.n_active
    least = least_value(score, scene.rows.shape[0] + n_active)
    _copy_worth(score, trial)
    look_from(scene, answer, trial, work)
    missed = False
    for k in range(scene.pool.size[0]):
        if work.is_active[k] == 0:
            value = value_of(scene, answer, k, work)
            if value < 1.3 * least:
                missed = missed or value < least
                activate(scene, k, work)
    if missed:
        _copy_mixes(work.safe_allocation, work.safe_answer, allocation, answer)
        if effort.total > 0.0:
            _price_allocation(scene, allocation, effort.total, work.pulls, score)
    else:
        _copy_mixes(allocation, answer, work.safe_allocation, work.safe_answer)
    if vantage.n_active > n_active:
        current = evaluate(scene, answer, effort.sharpness, work, score)
    return current


@kernel
def _try_allocation(
    scene: Scene, effort: Effort, steps: Steps, allocation: FloatArray, answer: FloatArray, work: PlanWork
) -> float:
    """Evaluate the next allocation in the trial score; returns its log-softmin."""
    for a in range(allocation.size):
        work.pulls[a] = allocation[a] * effort.total
    _write_elasticities(scene, answer, work, work.direction)
    _move_allocation(allocation, work.direction, steps.allocation, effort.floor, work.moved)
    _price_allocation(scene, work.moved, effort.total, work.pulls, work.trial)
    return float(evaluate(scene, answer, effort.sharpness, work, work.trial))


@kernel
def _try_answer(scene: Scene, effort: Effort, steps: Steps, answer: FloatArray, work: PlanWork) -> float:
    """Evaluate the next answer in the trial score; returns its log-softmin, -inf when there is none."""
    _write_gradient(scene, answer, work, work.direction)
    if not _move_answer(answer, work.direction, steps.answer, work.moved):
        return -np.inf
    if scene.model.known_set.shape[0] > 1 and not _keep_known_rows(scene, work, work.moved):
        return -np.inf
    _copy_worth(work.score, work.trial)
    return float(evaluate(scene, work.moved, effort.sharpness, work, work.trial))


@kernel
def _adapt(raised: bool, on_allocation: bool, steps: Steps) -> None:
    """Lengthen the step that was taken; shorten one that was not."""
    if on_allocation:
        steps.allocation = min(0.5, 1.25 * steps.allocation) if raised else max(0.5 * steps.allocation, 1e-4)
    else:
        steps.answer = min(2.0, 1.4 * steps.answer) if raised else max(0.5 * steps.answer, 1e-5)


@kernel
def _ascend(
    scene: Scene, effort: Effort, steps: Steps, allocation: FloatArray, answer: FloatArray, work: PlanWork
) -> float:
    """Climb from (allocation, answer), in place."""
    d, n_arms = scene.rows.shape
    score, trial = work.score, work.trial
    joint = effort.total > 0.0
    if joint:
        _price_allocation(scene, allocation, effort.total, work.pulls, score)
    _copy_worth(score, trial)
    current = _activate_near_ones(scene, effort, answer, work)
    _copy_mixes(allocation, answer, work.safe_allocation, work.safe_answer)
    for iteration in range(effort.iterations):
        if iteration > 0 and iteration % _RECHECK == 0:
            current = _recheck(scene, effort, current, allocation, answer, work)
        on_allocation = joint and iteration % 2 == 0
        if on_allocation:
            raised = _try_allocation(scene, effort, steps, allocation, answer, work)
        else:
            raised = _try_answer(scene, effort, steps, answer, work)
            if raised == -np.inf:
                continue
        _adapt(raised > current, on_allocation, steps)
        if raised > current:
            current = raised
            for a in range(n_arms):
                if on_allocation:
                    allocation[a] = work.moved[a]
                else:
                    answer[a] = work.moved[a]
            _copy_score(trial, d + work.vantage.n_active, score)
    _recheck(scene, effort, current, allocation, answer, work)
    return least_value(score, d + work.vantage.n_active)


@kernel
def climb(
    scene: Scene, effort: Effort, steps: Steps, allocation: FloatArray, answer: FloatArray, work: PlanWork
) -> float:
    """Improve allocation (K,) and answer (K,) in place; returns the least f_k / beta_k."""
    known_set, n_arms = scene.model.known_set, answer.size
    for i in range(1, known_set.shape[0]):
        excess = 0.0
        for a in range(n_arms):
            excess += known_set[i, a] * answer[a]
        if excess > 0.0:
            _keep_known_rows(scene, work, answer)
            break
    if effort.total == 0.0:
        weigh_pulls(scene.pricing, allocation, work.score.worth)
    return _ascend(scene, effort, steps, allocation, answer, work)
