r"""Planning: the allocation w and the answer p that make every way of being wrong as hard to believe as possible.

.. math:: \max_{w, p \in \Delta} \min_k \frac{f_k(w, p)}{\beta_k(w)}

over the cuts k: one cost statistic per unknown row, and g(q) for every witness q of a pool; the thresholds are those
that the test itself will use once T pulls have been made in proportions w. The minimum is softened (log-softmin) and
climbed by turns: w multiplicatively, :math:`w_a \leftarrow w_a (\text{elasticity}_a / w_a)^\gamma`, and p by
exponentiated gradient. A step that does not raise the soft minimum is not taken and the next one is shorter.

A plan may be for what remains of an exploration whose first part is fixed (`Memory`): statistics are then those of both
parts together. Without one, the whole is planned.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._arena import Arena, Size, rest_of
from polyarm._compile import inlined_kernel, kernel
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.geometry.projection import PROJECTED, ProjectionWork, carve_projection, project_polytope, size_projection
from polyarm.problem import Model
from polyarm.statistics.mixture import COST, PROVED, REWARD, Pricing, write_thresholds
from polyarm.statistics.witnesses import Pool

# Entries of the step sizes.
ALLOCATION_STEP = 0
ANSWER_STEP = 1
N_STEPS = 2

#: Shares of an answer are floored by this: a share of zero could never grow again.
LEAST_SHARE = 1e-5
#: Less than any statistic over its threshold; squares and small shares of it still are numbers.
_TINY = 1e-100
#: Cuts beyond this multiple of the least one are left out at first, and looked at again every few steps.
_ACTIVE = 8.0
_RECHECK = 8
#: Differences smaller than this share of what is subtracted are worked out in another way.
_CANCELLED = 1e-6


class Score(NamedTuple):
    """The cuts at one point (w, p): the d rows, then the active witnesses.

    `values` are f_k / beta_k; `slacks`, `lengths` and `row_lengths` their parts; `weights` those of the soft minimum.
    """

    values: FloatArray
    slacks: FloatArray
    lengths: FloatArray
    row_lengths: FloatArray
    weights: FloatArray
    effective: FloatArray
    thresholds: FloatArray
    dearest: IntArray


class AscentWork(NamedTuple):
    """Scratch of the planner.

    Witnesses mix few arms: `supports` (capacity, K) lists those of each active one, `n_supports` how many they are.
    `rates` (K,) are the variances that the planned pulls leave, of the score that was evaluated last.
    """

    score: Score
    trial: Score
    active: IntArray
    is_active: IntArray
    supports: IntArray
    n_supports: IntArray
    rates: FloatArray
    means: FloatArray
    excess: FloatArray
    pulls: FloatArray
    direction: FloatArray
    moved: FloatArray
    projected: FloatArray
    multipliers: FloatArray
    safe_allocation: FloatArray
    safe_answer: FloatArray
    projection: ProjectionWork


def size_ascent(capacity: int, n_arms: int, n_constraints: int, n_known: int) -> Size:
    """How much of an arena planning against a pool of this capacity takes."""
    c, k, d, h = capacity, n_arms, n_constraints, n_known
    score = (d + c) * (4 + d) + k + 2
    projection = size_projection(k, h)
    return Size(2 * score + c + c * d + 7 * k + h + projection.floats, 2 * k + (3 + k) * c + projection.ints)


@inlined_kernel
def _carve_score(n_cuts: int, n_arms: int, n_constraints: int, arena: Arena) -> Score:
    n, d, f = n_cuts, n_constraints, arena.floats
    at = n * (4 + d)
    return Score(
        values=f[0:n],
        slacks=f[n : 2 * n],
        lengths=f[2 * n : 3 * n],
        row_lengths=f[4 * n : at].reshape((n, d)),
        weights=f[3 * n : 4 * n],
        effective=f[at : at + n_arms],
        thresholds=f[at + n_arms : at + n_arms + 2],
        dearest=arena.ints[0:n_arms],
    )


@inlined_kernel
def _carve(capacity: int, n_arms: int, n_constraints: int, n_known: int, arena: Arena) -> AscentWork:
    c, k, d, h = capacity, n_arms, n_constraints, n_known
    score = (d + c) * (4 + d) + k + 2
    f = arena.floats
    at = 2 * score
    vectors = f[at : at + 7 * k].reshape((7, k))
    at += 7 * k
    means = f[at : at + c]
    excess = f[at + c : at + c + c * d].reshape((c, d))
    at += c + c * d
    return AscentWork(
        score=_carve_score(d + c, k, d, arena),
        trial=_carve_score(d + c, k, d, rest_of(arena, score, k)),
        active=arena.ints[2 * k : 2 * k + c],
        is_active=arena.ints[2 * k + c : 2 * k + 2 * c],
        supports=arena.ints[2 * k + 3 * c : 2 * k + (3 + k) * c].reshape((c, k)),
        n_supports=arena.ints[2 * k + 2 * c : 2 * k + 3 * c],
        rates=vectors[6],
        means=means,
        excess=excess,
        pulls=vectors[0],
        direction=vectors[1],
        moved=vectors[2],
        projected=vectors[3],
        multipliers=f[at : at + h],
        safe_allocation=vectors[4],
        safe_answer=vectors[5],
        projection=carve_projection(k, h, rest_of(arena, at + h, 2 * k + (3 + k) * c)),
    )


# Entries of `Memory.scalars`.
SHARE = 0  # of all pulls, how many are still to be planned
EARNED = 1  # mean reward of the answers given so far
BASE = 2  # spread of the reward term that is there already
FLOOR = 3  # kappa: the least part of an unknown row in a witness's value
N_SCALARS = 4
# Rows of `Memory.arms`.
SPREADS = 0
CROSS = 1
MEANS = 2
N_ARM_ROWS = 3
# Rows of `Memory.constraints`.
SLACKS = 0
BASES = 1
N_CONSTRAINT_ROWS = 2


class Memory(NamedTuple):
    r"""What the first part of an exploration has fixed; every entry is already times its share of all pulls.

    With the planned part's share s, a witness q has the spread
    :math:`e + \sum_a \sigma_a^2 (v_a q_a^2 - 2 u_a q_a + s (q_a - p_a)^2 / w_a)` and the answer the mean reward
    :math:`m + s \mu^\top p`; likewise for rows. `arms` (3, K): v, u and the mean rewards by which witnesses are judged;
    `constraints` (2, d): slack and spread of each row; `rows` (d, K): the costs by which witnesses are judged.
    """

    scalars: FloatArray
    arms: FloatArray
    constraints: FloatArray
    rows: FloatArray


def make_memory(n_arms: int, n_constraints: int) -> Memory:
    """Allocate a memory; see `forget`."""
    d = n_constraints
    return Memory(
        np.zeros(N_SCALARS), np.zeros((N_ARM_ROWS, n_arms)), np.zeros((N_CONSTRAINT_ROWS, d)), np.zeros((d, n_arms))
    )


@kernel
def forget(mu: FloatArray, rows: FloatArray, memory_out: Memory) -> None:
    """Write a memory of nothing: the whole exploration is to be planned, by these estimates."""
    memory_out.scalars[:] = 0.0
    memory_out.scalars[SHARE] = 1.0
    memory_out.arms[:] = 0.0
    memory_out.constraints[:] = 0.0
    for a in range(mu.size):
        memory_out.arms[MEANS, a] = mu[a]
        for i in range(rows.shape[0]):
            memory_out.rows[i, a] = rows[i, a]


class Scene(NamedTuple):
    """What stays fixed while planning: estimates, noise of one pull, tolerance, thresholds, witnesses, memory."""

    mu: FloatArray
    rows: FloatArray
    known: BoolArray
    reward_noise: FloatArray
    row_noise: FloatArray
    known_set: FloatArray
    ones: FloatArray
    pool: Pool
    pricing: Pricing
    r: float
    memory: Memory


@inlined_kernel
def make_scene(mu: FloatArray, rows: FloatArray, model: Model, pool: Pool, pricing: Pricing, memory: Memory) -> Scene:
    """Collect what stays fixed while planning."""
    return Scene(
        mu,
        rows,
        model.known,
        model.reward_noise,
        model.row_noise,
        model.known_set,
        model.simplex[0],
        pool,
        pricing,
        model.r,
        memory,
    )


@inlined_kernel
def _below_zero(distance: float) -> float:
    """A value, smaller than any honest one, for a cut that is on the wrong side by this distance: less if farther.

    The statistics are flat at zero there, and an ascent needs to see which way is out.
    """
    return _TINY * math.exp(max(distance, -100.0))


@kernel
def _score_rows(scene: Scene, answer: FloatArray, score: Score) -> None:
    """Fill in the cost statistics; known rows cost nothing and are infinitely far."""
    memory = scene.memory
    share = memory.scalars[SHARE]
    for i in range(scene.known.size):
        score.values[i] = np.inf
        if not scene.known[i]:
            slack, length = 0.0, 0.0
            for a in range(answer.size):
                slack -= scene.rows[i, a] * answer[a]
                length += answer[a] * answer[a] * scene.row_noise[i, a] / score.effective[a]
            slack = memory.constraints[SLACKS, i] + share * slack
            length = memory.constraints[BASES, i] + share * length
            score.slacks[i] = slack
            score.lengths[i] = length
            if slack > 0.0:
                score.values[i] = max(0.5 * slack * slack / (length * score.thresholds[COST]), _TINY)
            else:
                score.values[i] = _below_zero(slack / math.sqrt(length))


@inlined_kernel
def _write_rates(scene: Scene, answer: FloatArray, score: Score, rates_out: FloatArray) -> float:
    """Write the variance that the planned pulls leave of a unit of noise; returns the answer's squared norm."""
    share, norm = scene.memory.scalars[SHARE], 0.0
    for a in range(answer.size):
        rates_out[a] = share / score.effective[a]
        norm += scene.reward_noise[a] * answer[a] * answer[a] * rates_out[a]
    return norm


@inlined_kernel
def _score_witness(
    scene: Scene, answer: FloatArray, mean: float, norm: float, j: int, work: AscentWork, score: Score
) -> None:
    """Fill in the cut of the j-th active witness; `mean` is the answers' mean reward, `norm` from `_write_rates`.

    Sums run over the arms that the witness mixes. The row length of a row whose part is at its floor is infinite: it
    does not change with the plan.
    """
    memory, rates, mixes = scene.memory, work.rates, scene.pool.mixes
    place, k = work.active[j], scene.known.size + j
    gap, floor = scene.r + mean - work.means[j], 2.0 * memory.scalars[FLOOR]
    length = memory.scalars[BASE] + norm
    for s in range(work.n_supports[j]):
        a = work.supports[j, s]
        q = mixes[place, a]
        fixed = memory.arms[SPREADS, a] * q - 2.0 * memory.arms[CROSS, a]
        length += scene.reward_noise[a] * q * (fixed + (q - 2.0 * answer[a]) * rates[a])
    if length < _CANCELLED * norm:  # the witness is nearly the answer, and only a sum of squares tells how nearly
        length = memory.scalars[BASE]
        for a in range(answer.size):
            q = mixes[place, a]
            fixed = q * (memory.arms[SPREADS, a] * q - 2.0 * memory.arms[CROSS, a])
            length += scene.reward_noise[a] * (fixed + (q - answer[a]) ** 2 * rates[a])
    score.lengths[k] = max(length, 1e-30)
    score.slacks[k] = max(gap, 0.0)
    value = score.slacks[k] * score.slacks[k] / score.lengths[k]
    for i in range(scene.known.size):
        part, excess = 0.0, work.excess[j, i]
        if excess > 0.0:
            length = 0.0
            for s in range(work.n_supports[j]):
                a = work.supports[j, s]
                length += mixes[place, a] ** 2 * scene.row_noise[i, a] * (memory.arms[SPREADS, a] + rates[a])
            score.row_lengths[k, i] = length
            part = excess * excess / length
        if part < floor and not scene.known[i]:
            score.row_lengths[k, i] = np.inf
            part = floor
        value += part
    if value > 0.0:
        score.values[k] = max(0.5 * value / score.thresholds[REWARD], _TINY)
    else:
        score.values[k] = _below_zero(gap / math.sqrt(score.lengths[k]))


@inlined_kernel
def _mean_reward(scene: Scene, answer: FloatArray) -> float:
    """Mean reward of the answers given so far and of the planned one together."""
    mean = 0.0
    for a in range(answer.size):
        mean += scene.mu[a] * answer[a]
    return float(scene.memory.scalars[EARNED] + scene.memory.scalars[SHARE] * mean)


@kernel
def _evaluate(
    scene: Scene, answer: FloatArray, sharpness: float, n_active: int, work: AscentWork, score: Score
) -> float:
    """Fill in a score whose effective pulls and thresholds are set; returns its log-softmin."""
    d = scene.known.size
    _score_rows(scene, answer, score)
    mean, norm = _mean_reward(scene, answer), _write_rates(scene, answer, score, work.rates)
    for j in range(n_active):
        _score_witness(scene, answer, mean, norm, j, work, score)
    least = _least_value(score, d + n_active)
    total = 0.0
    for k in range(d + n_active):
        share = least / score.values[k]
        score.weights[k] = math.pow(share, sharpness) if share >= 0.2 else 0.0
        total += score.weights[k]
    for k in range(d + n_active):
        score.weights[k] /= total
    return math.log(least) - math.log(total) / sharpness


@kernel
def _least_value(score: Score, n_cuts: int) -> float:
    least = np.inf
    for k in range(n_cuts):
        if not score.values[k] >= least:  # so that what is no number is not passed over
            least = score.values[k]
    return least


@inlined_kernel
def _activate(scene: Scene, k: int, n_active: int, work: AscentWork) -> int:
    """List witness k among the active cuts; returns how many there are."""
    mixes, mean, size = scene.pool.mixes, 0.0, 0
    for a in range(mixes.shape[1]):
        if mixes[k, a] != 0.0:
            work.supports[n_active, size] = a
            size += 1
            mean += scene.memory.arms[MEANS, a] * mixes[k, a]
    work.n_supports[n_active] = size
    work.means[n_active] = mean
    for i in range(scene.known.size):
        excess = 0.0
        if not scene.known[i]:
            for s in range(size):
                a = work.supports[n_active, s]
                excess += scene.memory.rows[i, a] * mixes[k, a]
        work.excess[n_active, i] = max(excess, 0.0)
    work.active[n_active] = k
    work.is_active[k] = 1
    return n_active + 1


@inlined_kernel
def _value_of(
    scene: Scene, answer: FloatArray, mean: float, norm: float, k: int, spare: int, work: AscentWork
) -> float:
    """Value of a witness that is not active, worked out in a spare place of the trial score."""
    _activate(scene, k, spare, work)
    work.is_active[k] = 0
    _score_witness(scene, answer, mean, norm, spare, work, work.trial)
    return float(work.trial.values[scene.known.size + spare])


@inlined_kernel
def _copy_score(source: Score, n_cuts: int, target: Score) -> None:
    for k in range(n_cuts):
        target.values[k] = source.values[k]
        target.slacks[k] = source.slacks[k]
        target.lengths[k] = source.lengths[k]
        target.weights[k] = source.weights[k]
        for i in range(source.row_lengths.shape[1]):
            target.row_lengths[k, i] = source.row_lengths[k, i]
    _copy_pulls(source, target)


@inlined_kernel
def _copy_pulls(source: Score, target: Score) -> None:
    """Copy effective pulls and thresholds: what depends on the allocation alone."""
    for a in range(source.effective.size):
        target.effective[a] = source.effective[a]
        target.dearest[a] = source.dearest[a]
    target.thresholds[COST] = source.thresholds[COST]
    target.thresholds[REWARD] = source.thresholds[REWARD]


@kernel
def _price_allocation(
    pricing: Pricing, allocation: FloatArray, total: float, pulls_out: FloatArray, score: Score
) -> None:
    """Set effective pulls and thresholds of a score to what `total` pulls in these proportions give."""
    for a in range(allocation.size):
        pulls_out[a] = allocation[a] * total
    write_thresholds(pricing, pulls_out, score.effective, score.thresholds, score.dearest)


@kernel
def _write_elasticities(
    scene: Scene, answer: FloatArray, n_active: int, work: AscentWork, elasticity_out: FloatArray
) -> None:
    """Write d log-softmin / d log N_a: what one per cent more pulls of each arm would bring, thresholds included."""
    d, n_arms = scene.rows.shape
    score, pricing = work.score, scene.pricing
    on_rows, on_witnesses = 0.0, 0.0
    for a in range(n_arms):
        elasticity_out[a] = 0.0
    for i in range(d):
        if score.weights[i] > 1e-6:
            on_rows += score.weights[i]
            for a in range(n_arms):
                part = answer[a] * answer[a] * scene.row_noise[i, a] / (score.effective[a] * score.lengths[i])
                elasticity_out[a] += score.weights[i] * part
    for j in range(n_active):
        k = d + j
        if score.weights[k] > 1e-6:
            on_witnesses += score.weights[k]
            q = scene.pool.mixes[work.active[j]]
            whole = 2.0 * score.values[k] * score.thresholds[REWARD]
            share = score.weights[k] * (score.slacks[k] / score.lengths[k]) ** 2 / whole
            for a in range(n_arms):
                x = q[a] - answer[a]
                elasticity_out[a] += share * x * x * scene.reward_noise[a] / score.effective[a]
            for i in range(d):
                if work.excess[j, i] > 0.0 and score.row_lengths[k, i] < np.inf:
                    share = score.weights[k] * (work.excess[j, i] / score.row_lengths[k, i]) ** 2 / whole
                    for s in range(work.n_supports[j]):
                        a = work.supports[j, s]
                        elasticity_out[a] += share * q[a] * q[a] * scene.row_noise[i, a] / score.effective[a]
    for a in range(n_arms):
        elasticity_out[a] *= scene.memory.scalars[SHARE]
    if pricing.kind == PROVED:
        for a in range(n_arms):
            pulls = work.pulls[a]
            growth = 0.5 * pulls / (pulls + pricing.lam)  # d L_a / d log N_a
            copies = 1.0 + pricing.n_unknown if score.dearest[a] == 1 else 1.0
            price = (
                on_rows * growth / score.thresholds[COST] + on_witnesses * copies * growth / score.thresholds[REWARD]
            )
            elasticity_out[a] *= (pulls + 2.0 * pricing.lam) / (pulls + pricing.lam)
            elasticity_out[a] = max(elasticity_out[a] - price, 0.0)


@inlined_kernel
def _move_allocation(
    allocation: FloatArray, elasticity: FloatArray, step: float, floor: float, moved_out: FloatArray
) -> None:
    """Write the next allocation: each share times (elasticity / share)^step, floored, summing to one."""
    total = 0.0
    for a in range(allocation.size):
        moved_out[a] = allocation[a] * math.pow(elasticity[a] / allocation[a] + 1e-12, step)
        total += moved_out[a]
    floored = 0.0
    for a in range(allocation.size):
        moved_out[a] = max(moved_out[a] / total, floor)
        floored += moved_out[a]
    for a in range(allocation.size):
        moved_out[a] /= floored


@kernel
def _write_gradient(
    scene: Scene, answer: FloatArray, n_active: int, work: AscentWork, gradient_out: FloatArray
) -> None:
    """Write d log-softmin / d p."""
    d, n_arms = scene.rows.shape
    score = work.score
    share = scene.memory.scalars[SHARE]
    for a in range(n_arms):
        gradient_out[a] = 0.0
    for i in range(d):
        weight = score.weights[i]
        if weight > 1e-6 and score.slacks[i] <= 0.0:
            for a in range(n_arms):  # infeasible: the statistic is flat at zero, so climb the slack itself
                gradient_out[a] -= weight * scene.rows[i, a]
        elif weight > 1e-6:
            for a in range(n_arms):
                spread = answer[a] * scene.row_noise[i, a] / score.effective[a]
                step = scene.rows[i, a] / score.slacks[i] + spread / score.lengths[i]
                gradient_out[a] -= 2.0 * weight * share * step
    for j in range(n_active):
        k = d + j
        weight = score.weights[k]
        if weight > 1e-6 and score.slacks[k] <= 0.0:
            for a in range(n_arms):
                gradient_out[a] += weight * scene.mu[a]
        elif weight > 1e-6:
            q = scene.pool.mixes[work.active[j]]
            push = score.slacks[k] / score.lengths[k]
            weight /= score.values[k] * score.thresholds[REWARD]
            for a in range(n_arms):
                spread = (q[a] - answer[a]) * scene.reward_noise[a] / score.effective[a]
                gradient_out[a] += weight * share * push * (scene.mu[a] + push * spread)


@inlined_kernel
def _move_answer(answer: FloatArray, gradient: FloatArray, step: float, moved_out: FloatArray) -> bool:
    """Write the next answer by exponentiated gradient; False when there is nowhere to go."""
    mean = 0.0
    for a in range(answer.size):
        mean += answer[a] * gradient[a]
    largest = 0.0
    for a in range(answer.size):
        largest = max(largest, abs(gradient[a] - mean))
    if largest < _TINY:
        return False
    total = 0.0
    for a in range(answer.size):
        moved_out[a] = max(answer[a], LEAST_SHARE) * math.exp(step / largest * (gradient[a] - mean))
        total += moved_out[a]
    floored = 0.0
    for a in range(answer.size):
        moved_out[a] = max(moved_out[a] / total, LEAST_SHARE)
        floored += moved_out[a]
    for a in range(answer.size):
        moved_out[a] /= floored
    return True


@inlined_kernel
def _keep_known_rows(scene: Scene, work: AscentWork, mix: FloatArray) -> bool:
    """Move a mix, in place, to the nearest one that satisfies the known rows; False when that did not work."""
    for i in range(work.multipliers.size):
        work.multipliers[i] = 0.0
    status = project_polytope(mix, scene.ones, scene.known_set, work.multipliers, work.projection, work.projected)
    if status == PROJECTED:
        for a in range(mix.size):
            mix[a] = work.projected[a]
    return status == PROJECTED


@kernel
def _ascend(
    scene: Scene,
    total: float,
    floor: float,
    sharpness: float,
    iterations: int,
    steps: FloatArray,
    allocation: FloatArray,
    answer: FloatArray,
    work: AscentWork,
) -> float:
    """Climb from (allocation, answer), in place; `total` = 0 keeps the effective pulls that `work.score` has."""
    d, n_arms = scene.rows.shape
    score, trial = work.score, work.trial
    pricing = scene.pricing
    joint = total > 0.0
    if joint:
        _price_allocation(pricing, allocation, total, work.pulls, score)
    _copy_pulls(score, trial)
    n_active = 0
    for k in range(scene.pool.size[0]):
        n_active = _activate(scene, k, n_active, work)
    _evaluate(scene, answer, sharpness, n_active, work, score)
    least = _least_value(score, d + n_active)
    # Keep the near ones only, and list them anew.
    kept = 0
    for k in range(scene.pool.size[0]):
        work.is_active[k] = 0
        if score.values[d + k] <= _ACTIVE * least:
            kept = _activate(scene, k, kept, work)
    n_active = kept
    current = _evaluate(scene, answer, sharpness, n_active, work, score)
    _copy_mixes(allocation, answer, work.safe_allocation, work.safe_answer)
    for iteration in range(iterations + 1):
        if iteration == iterations or (iteration > 0 and iteration % _RECHECK == 0):
            # A witness left out must not have become the least: if one has, go back and take it in.
            least = _least_value(score, d + n_active)
            _copy_pulls(score, trial)
            mean, norm = _mean_reward(scene, answer), _write_rates(scene, answer, trial, work.rates)
            missed, listed = False, n_active
            for k in range(scene.pool.size[0]):
                if work.is_active[k] == 0:
                    value = _value_of(scene, answer, mean, norm, k, listed, work)
                    if value < 1.3 * least:
                        missed = missed or value < least
                        listed = _activate(scene, k, listed, work)
            if missed:
                _copy_mixes(work.safe_allocation, work.safe_answer, allocation, answer)
                if joint:
                    _price_allocation(pricing, allocation, total, work.pulls, score)
            else:
                _copy_mixes(allocation, answer, work.safe_allocation, work.safe_answer)
            if listed > n_active:
                n_active = listed
                current = _evaluate(scene, answer, sharpness, n_active, work, score)
            if iteration == iterations:
                break
        on_allocation = joint and iteration % 2 == 0
        which = ALLOCATION_STEP if on_allocation else ANSWER_STEP
        if on_allocation:
            for a in range(n_arms):
                work.pulls[a] = allocation[a] * total
            _write_elasticities(scene, answer, n_active, work, work.direction)
            _move_allocation(allocation, work.direction, steps[which], floor, work.moved)
            _price_allocation(pricing, work.moved, total, work.pulls, trial)
            raised = _evaluate(scene, answer, sharpness, n_active, work, trial)
        else:
            _write_gradient(scene, answer, n_active, work, work.direction)
            if not _move_answer(answer, work.direction, steps[which], work.moved):
                continue
            if scene.known_set.shape[0] > 1 and not _keep_known_rows(scene, work, work.moved):
                continue
            _copy_pulls(score, trial)
            raised = _evaluate(scene, work.moved, sharpness, n_active, work, trial)
        if raised > current:
            current = raised
            for a in range(n_arms):
                if on_allocation:
                    allocation[a] = work.moved[a]
                else:
                    answer[a] = work.moved[a]
            _copy_score(trial, d + n_active, score)
            steps[which] = min(0.5, 1.25 * steps[which]) if on_allocation else min(2.0, 1.4 * steps[which])
        else:
            steps[which] = max(0.5 * steps[which], 1e-4 if on_allocation else 1e-5)
    return _least_value(score, d + n_active)


@inlined_kernel
def _copy_mixes(allocation: FloatArray, answer: FloatArray, allocation_out: FloatArray, answer_out: FloatArray) -> None:
    for a in range(allocation.size):
        allocation_out[a] = allocation[a]
        answer_out[a] = answer[a]


@kernel
def climb(
    scene: Scene,
    total: float,
    floor: float,
    sharpness: float,
    iterations: int,
    steps: FloatArray,
    allocation: FloatArray,
    answer: FloatArray,
    arena: Arena,
) -> float:
    """Improve allocation and answer in place, for a test after `total` pulls; returns the least f_k / beta_k.

    No share of the allocation falls below `floor` (about); `steps` are the sizes of the steps and are remembered. With
    `total` = 0 the allocation holds the pulls that were made, and only the answer moves.
    """
    d, n_arms = scene.rows.shape
    work = _carve(scene.pool.last_use.size, n_arms, d, scene.known_set.shape[0] - 1, arena)
    for i in range(1, scene.known_set.shape[0]):
        excess = 0.0
        for a in range(n_arms):
            excess += scene.known_set[i, a] * answer[a]
        if excess > 0.0:
            _keep_known_rows(scene, work, answer)
            break
    if total == 0.0:
        write_thresholds(scene.pricing, allocation, work.score.effective, work.score.thresholds, work.score.dearest)
    return _ascend(scene, total, floor, sharpness, iterations, steps, allocation, answer, work)
