"""`certex` with the averaged certificate: samples in blocks whose answers and counts are fixed beforehand.

Before each block allocation and answer are planned together (`bounds.ascent`) for what remains until the stop, given
what the blocks since a start have earned. Planning is free: only that a block's plan precedes its data matters to the
proof.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._arena import Arena
from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray
from polyarm.bounds.ascent import (
    BASE,
    BASES,
    CROSS,
    EARNED,
    MEANS,
    N_STEPS,
    SHARE,
    SLACKS,
    SPREADS,
    Memory,
    Scene,
    climb,
    forget,
    make_scene,
)
from polyarm.bounds.ascent import FLOOR as PLANNED_FLOOR
from polyarm.explorers.planning import (
    CHALLENGER_GROWTH,
    EXPECTED_STOP,
    LEAST_ALLOCATION,
    NEXT_CHALLENGER,
    SHARPNESS,
    add_response,
)
from polyarm.explorers.round import (
    FIRST_PULLS,
    SET_IS_EMPTY,
    STATISTIC,
    STEPS,
    STOP,
    THRESHOLD,
    RoundState,
    conclude,
    make_round_state,
)
from polyarm.geometry.linear import is_mix
from polyarm.problem import Model
from polyarm.statistics.averaged import (
    ANCHOR,
    COST_PRICE,
    MAX_STARTS,
    REWARD_THRESHOLD,
    ROW_FLOOR,
    Levels,
    Starts,
    begin,
    expect_thresholds,
    row_variance,
)
from polyarm.statistics.joint import FLOOR, SPREAD, Evidence
from polyarm.statistics.mixture import Pricing, fixed_pricing
from polyarm.statistics.witnesses import Pool, refresh_uses
from polyarm.stopping.averaged import (
    MAX_BLOCKS,
    N_BLOCKS,
    N_STARTS,
    WINNER,
    BlockState,
    BlockWork,
    close_block,
    keeps_known_rows,
    make_block_state,
    make_block_work,
    open_block,
    take_next,
    try_starts,
)
from polyarm.stopping.certified import (
    ANSWER_PROVED,
    HAS_CAUTIOUS,
    KEEP_SAMPLING,
    LOOKS_EMPTY,
    CertifiedRule,
    CertifiedState,
    CertifiedWork,
    make_certified_work,
    review,
    schedule_next,
    weigh,
)

_FRESH_STEP = 0.3
#: Pulls grow by this share with each block; by less when the least statistic is near its threshold, since a proof is
#: noticed only at the end of a block, and by more when the record of blocks is nearly full.
_BLOCK_GROWTH = 0.04
_NEAR, _LAST_GROWTH = 0.85, 0.015
_NEARLY_FULL, _FAST_GROWTH = 0.8, 0.4
#: Pulls of each arm in the first block, and in the smallest of the others on average.
_FIRST_COUNT = 2.0
_SMALLEST_BLOCK = 2.0
#: What is sampled follows the plan slowly, and this much of it is spread evenly: variances are harmonic in the counts.
_INERTIA = 0.85
_EVEN = 0.1
#: The first start comes when the plan has this share of the pulls that it expects to need.
START_AT = 0.2
#: A later start comes when there are this many times as many pulls as at the last.
_RESTART_AT = 4.0
#: At least and at most this many times the pulls since a start are planned to come.
_LEAST_REST, _MOST_REST = 0.3, 4.0
#: Shares below this are left out of a block's answer if that costs next to nothing.
_SMALL_SHARE = 2e-3
_NEXT_TO_NOTHING = 0.005


class BlocksRule(NamedTuple):
    """Settings as the kernel sees them.

    `certified` is the pooled rule, for infeasibility; `levels` are the averaged certificate's; `pricing` its thresholds
    before there is a start; `least_pulls` times sqrt(t) pulls of every arm come before the plan's; `no_iterations` is
    zero (written as a number, everything that it is passed to would be compiled once more).
    """

    certified: CertifiedRule
    levels: Levels
    pricing: Pricing
    least_pulls: float
    iterations: int
    challenger_iterations: int
    no_iterations: int
    response_cells: int


class BlocksState(NamedTuple):
    """The plan, the allocation that follows it (`round.allocation`), and the blocks.

    `planned` (2, K) are allocation and answer of the plan; `carried` (K,) is what rounding took from or gave to each
    arm; `expected` (J,) and `forecasts` (J,) are pulls after each start until the stop, as expected then and now.
    """

    round: RoundState
    planned: FloatArray
    steps: FloatArray
    challenger_steps: FloatArray
    clock: FloatArray
    carried: FloatArray
    expected: FloatArray
    forecasts: FloatArray
    block: BlockState


class BlocksRound(NamedTuple):
    """What every explorer has of a round's scratch."""

    costs: FloatArray
    certified: CertifiedWork


class BlocksWork(NamedTuple):
    """Scratch: a second plan that challenges the first, and that of the blocks."""

    round: BlocksRound
    challenger: FloatArray
    block: BlockWork


def expected_pricing(levels: Levels) -> Pricing:
    """Return the thresholds that an exploration plans for before its first start."""
    return fixed_pricing(*expect_thresholds(levels))


def build_blocks(certified: CertifiedRule, levels: Levels, model: Model) -> tuple[BlocksRule, BlocksState, BlocksWork]:
    """Make the rule, a fresh state and scratch; `levels` is how the averaged certificate spends its part of delta."""
    n_arms, d = model.reward_noise.size, model.known.size
    rule = BlocksRule(
        certified=certified,
        levels=levels,
        pricing=expected_pricing(levels),
        least_pulls=min(0.5, 2.0 / math.sqrt(n_arms)),
        iterations=60,
        challenger_iterations=40,
        no_iterations=0,
        response_cells=40,
    )
    state = BlocksState(
        round=make_round_state(model, certified=True),
        planned=np.full((2, n_arms), 1.0 / n_arms),
        steps=np.full(N_STEPS, _FRESH_STEP),
        challenger_steps=np.full(N_STEPS, _FRESH_STEP),
        clock=np.array([4.0 * n_arms, 4.0 * n_arms]),
        carried=np.zeros(n_arms),
        expected=np.zeros(MAX_STARTS),
        forecasts=np.zeros(MAX_STARTS),
        block=make_block_state(model),
    )
    state.round.counters[FIRST_PULLS] = 0  # the first block has every arm
    work = BlocksWork(
        round=BlocksRound(np.zeros(d), make_certified_work(model)),
        challenger=np.zeros((2, n_arms)),
        block=make_block_work(model),
    )
    return rule, state, work


@kernel
def _recall(
    j: int,
    forecast: float,
    floor: float,
    mu: FloatArray,
    rows: FloatArray,
    model: Model,
    starts: Starts,
    memory: Memory,
) -> None:
    """Write what start j has earned, for a plan of the pulls that remain until `forecast`; all per pull."""
    n_arms, d = mu.size, model.known.size
    weight = starts.weight[j]
    rest = min(max(forecast - weight, _LEAST_REST * weight), _MOST_REST * weight)
    share = rest / (weight + rest)
    per = 1.0 / (weight + rest)
    base = 0.0
    for a in range(n_arms):
        lam, anchor = starts.lam[j, a], starts.anchor[j, a]
        memory.arms[SPREADS, a] = per * (starts.v[j, a] + lam)
        memory.arms[CROSS, a] = per * (starts.u[j, a] + lam * anchor)
        memory.arms[MEANS, a] = per * starts.rewards[j, a] + share * mu[a]
        base += model.reward_noise[a] * (starts.z[j, a] + (1.0 + ANCHOR) * lam * anchor * anchor)
        for i in range(d):
            measured = per * starts.rows[j, i, a] + share * rows[i, a]
            memory.rows[i, a] = rows[i, a] if model.known[i] else measured
    memory.scalars[SHARE] = share
    memory.scalars[EARNED] = per * starts.earned[j]
    memory.scalars[BASE] = per * base
    memory.scalars[PLANNED_FLOOR] = floor / max(forecast, 1.0)
    for i in range(d):
        memory.constraints[SLACKS, i] = per * starts.slack[j, i]
        memory.constraints[BASES, i] = per * row_variance(j, i, model, starts)


@kernel
def _foresee(
    scene: Scene, allocation: FloatArray, answer: FloatArray, evidence_out: Evidence, centre_out: FloatArray
) -> float:
    """Write the evidence per pull that a plan leads to, as the reward test will see it; returns the tolerance."""
    memory = scene.memory
    share = memory.scalars[SHARE]
    spread = memory.scalars[BASE]
    gap = scene.r + memory.scalars[EARNED]
    for a in range(answer.size):
        planned = share / allocation[a]
        total = memory.arms[SPREADS, a] + planned
        centre_out[a] = (memory.arms[CROSS, a] + planned * answer[a]) / total
        evidence_out.mu[a] = memory.arms[MEANS, a]
        evidence_out.mu_var[a] = scene.reward_noise[a] * total
        gap += share * scene.mu[a] * answer[a] - evidence_out.mu[a] * centre_out[a]
        around = planned * answer[a] * answer[a] - total * centre_out[a] * centre_out[a]
        spread += scene.reward_noise[a] * around
        for i in range(scene.known.size):
            evidence_out.rows[i, a] = memory.rows[i, a]
            evidence_out.row_var[i, a] = scene.row_noise[i, a] * total
    for i in range(scene.known.size):
        evidence_out.known[i] = scene.known[i]
    evidence_out.extras[SPREAD] = max(spread, 0.0)
    evidence_out.extras[FLOOR] = memory.scalars[PLANNED_FLOOR]
    return gap


@kernel
def _improve(scene: Scene, plan: FloatArray, steps: FloatArray, iterations: int, arena: Arena) -> float:
    """Climb from a plan, in place; returns its rate: the least statistic over threshold that it earns a pull."""
    return climb(scene, 1.0, LEAST_ALLOCATION, SHARPNESS, iterations, steps, plan[0], plan[1], arena)


@inlined_kernel
def _rate(rule: BlocksRule, scene: Scene, plan: FloatArray, steps: FloatArray, arena: Arena) -> float:
    """The rate of a plan as it is."""
    return _improve(scene, plan, steps, rule.no_iterations, arena)


@inlined_kernel
def _copy_plan(source: FloatArray, target: FloatArray) -> None:
    for k in range(2):
        for a in range(source.shape[1]):
            target[k, a] = source[k, a]


@inlined_kernel
def _plan(
    rule: BlocksRule, scene: Scene, steps: int, state: BlocksState, certified: CertifiedState, work: BlocksWork
) -> float:
    """Improve the plan, and add its best response to the witnesses; returns what it earns with each pull."""
    scratch, other = work.round.certified, work.challenger
    n_arms = certified.cautious.size
    if certified.tallies[HAS_CAUTIOUS] == 1:
        _copy_plan(state.planned, other)
        for a in range(n_arms):
            other[1, a] = certified.cautious[a]
        held = _rate(rule, scene, state.planned, state.steps, scratch.arena)
        if not held >= 1e-9 or _rate(rule, scene, other, state.steps, scratch.arena) > held:
            _copy_plan(other, state.planned)
            state.steps[1] = _FRESH_STEP
        if steps >= state.clock[NEXT_CHALLENGER]:
            # Plan afresh and keep the better plan: shares that allocation and answer lose together stay lost.
            state.clock[NEXT_CHALLENGER] = schedule_next(steps, CHALLENGER_GROWTH)
            for a in range(n_arms):
                other[0, a] = 0.5 * certified.cautious[a] + 0.5 / n_arms
                other[1, a] = certified.cautious[a]
            for k in range(N_STEPS):
                state.challenger_steps[k] = _FRESH_STEP
            found = _improve(scene, other, state.challenger_steps, rule.challenger_iterations, scratch.arena)
            if found > _rate(rule, scene, state.planned, state.steps, scratch.arena):
                _copy_plan(other, state.planned)
                for k in range(N_STEPS):
                    state.steps[k] = state.challenger_steps[k]
    state.steps[0] = max(state.steps[0], 0.05)
    state.steps[1] = max(state.steps[1], 0.02)
    _improve(scene, state.planned, state.steps, rule.iterations, scratch.arena)
    centre, evidence = work.block.centre, scratch.evidence
    r = _foresee(scene, state.planned[0], state.planned[1], evidence, centre)
    refresh_uses(evidence, centre, r, scene.pool)
    add_response(
        evidence,
        centre,
        r,
        rule.certified.penalty,
        rule.response_cells,
        scene.pool,
        scratch.arena,
        scratch.witness,
    )
    return _rate(rule, scene, state.planned, state.steps, scratch.arena)


@kernel
def _set_scene(
    rule: BlocksRule,
    j: int,
    mu: FloatArray,
    rows: FloatArray,
    model: Model,
    pool: Pool,
    state: BlocksState,
    memory: Memory,
) -> Scene:
    """What is planned for: what remains of start j, or everything if j is negative."""
    block, pricing = state.block, rule.pricing
    cost, reward = pricing.cost_log, pricing.reward_log
    if j < 0 or block.starts.weight[j] == 0.0:
        forget(mu, rows, memory)
    else:
        floor = block.thresholds[j, ROW_FLOOR]
        _recall(j, state.forecasts[j], floor, mu, rows, model, block.starts, memory)
        cost, reward = rule.levels.cost_log[j] + COST_PRICE, block.thresholds[j, REWARD_THRESHOLD]
    fixed = Pricing(pricing.kind, pricing.lam, cost, reward, pricing.n_unknown, pricing.support, pricing.delta)
    return make_scene(mu, rows, model, pool, fixed, memory)


@inlined_kernel
def _bound_forecast(state: BlocksState, j: int, rate: float) -> float:
    """Pulls from start j until the stop, if each earns `rate`: kept within reason."""
    most = 10.0 * max(state.expected[j], state.block.starts.weight[j])
    return min(max(1.0 / max(rate, 1e-15), 0.5 * state.expected[j]), most)


@inlined_kernel
def _choose_start(
    rule: BlocksRule, mu: FloatArray, rows: FloatArray, model: Model, pool: Pool, state: BlocksState, work: BlocksWork
) -> int:
    """Return the start that is expected to prove its answer first, or -1 before there is one."""
    best, nearest = -1, np.inf
    scratch = work.round.certified
    for j in range(state.block.tallies[N_STARTS]):
        if state.block.tallies[N_STARTS] > 1:
            scene = _set_scene(rule, j, mu, rows, model, pool, state, scratch.memory)
            rate = _rate(rule, scene, state.planned, state.steps, scratch.arena)
            state.forecasts[j] = _bound_forecast(state, j, rate)
        left = state.forecasts[j] - state.block.starts.weight[j]
        if left < nearest:
            best, nearest = j, left
    return best


@inlined_kernel
def _consider_start(rule: BlocksRule, rate: float, state: BlocksState, model: Model) -> None:
    """Begin a start when the plan is worth one: the first when enough is known, later ones when much more is."""
    block = state.block
    steps = float(state.round.counters[STEPS])
    j = block.tallies[N_STARTS]
    if j == block.starts.begun.size or not steps * rate >= START_AT:
        return
    if j > 0 and steps < _RESTART_AT * block.starts.begun[j - 1]:
        return
    most = steps / START_AT if j == 0 else _RESTART_AT * steps
    expected = min(max(1.0 / rate, steps), most)
    allocation = state.round.allocation
    begin(j, steps, expected, allocation, state.planned[1], model, block.starts)
    block.first[j] = block.tallies[N_BLOCKS]
    block.tallies[N_STARTS] = j + 1
    state.expected[j] = expected
    state.forecasts[j] = expected


@inlined_kernel
def _follow(state: BlocksState, floor: float) -> None:
    """Let the allocation that is sampled follow the plan."""
    allocation = state.round.allocation
    n_arms = allocation.size
    total = 0.0
    for a in range(n_arms):
        aim = (1.0 - _EVEN) * state.planned[0, a] + _EVEN / n_arms
        allocation[a] = max(_INERTIA * allocation[a] + (1.0 - _INERTIA) * aim, floor)
        total += allocation[a]
    for a in range(n_arms):
        allocation[a] /= total


@inlined_kernel
def _fill_block(rule: BlocksRule, scene: Scene, rate: float, state: BlocksState, work: BlocksWork) -> None:
    """Fix answer and counts of the next block."""
    core, block = state.round, state.block
    n_arms = core.allocation.size
    steps = float(core.counters[STEPS])
    growth = _BLOCK_GROWTH
    for j in range(block.tallies[N_STARTS]):
        if block.ratios[j] > _NEAR:
            growth = _LAST_GROWTH
    if block.tallies[N_BLOCKS] > _NEARLY_FULL * MAX_BLOCKS:
        growth = _FAST_GROWTH
    size = max(_SMALLEST_BLOCK * n_arms, math.floor(growth * steps))
    floor = rule.least_pulls * math.sqrt(steps)
    for a in range(n_arms):
        least = 1.0
        if core.estimates.pulls[a] < floor:
            least = max(1.0, min(math.ceil(floor - core.estimates.pulls[a]), math.floor(size / n_arms)))
        wanted = core.allocation[a] * size + state.carried[a]
        block.counts[a] = max(least, math.floor(wanted + 0.5))
        state.carried[a] = min(max(wanted - block.counts[a], -1.0), 1.0)
    _write_block_answer(rule, scene, rate, state, work)


@inlined_kernel
def _write_block_answer(rule: BlocksRule, scene: Scene, rate: float, state: BlocksState, work: BlocksWork) -> None:
    """The block's answer is the planned one, without its smallest shares if they hardly matter."""
    other, answer, scratch = work.challenger, state.block.answer, work.round.certified
    _copy_plan(state.planned, other)
    total = 0.0
    for a in range(answer.size):
        if other[1, a] < _SMALL_SHARE:
            other[1, a] = 0.0
        total += other[1, a]
    for a in range(answer.size):
        other[1, a] /= max(total, 1e-300)
    chosen = state.planned
    allowed = rate > 0.0 and is_mix(other[1]) and keeps_known_rows(scene.known, scene.rows, other[1])
    if allowed and _rate(rule, scene, other, state.steps, scratch.arena) >= (1.0 - _NEXT_TO_NOTHING) * rate:
        chosen = other
    if is_mix(chosen[1]):  # otherwise the last block's answer stands
        for a in range(answer.size):
            answer[a] = chosen[1, a]


@inlined_kernel
def _write_readings(j: int, state: BlocksState) -> None:
    """Write statistic and threshold for displays: those of the start that is nearest to its proof."""
    readings, block = state.round.readings, state.block
    if j >= 0 and block.starts.weight[j] > 0.0:
        readings[THRESHOLD] = block.thresholds[j, REWARD_THRESHOLD]
        readings[STATISTIC] = block.ratios[j] * readings[THRESHOLD]


@inlined_kernel
def _turn_block(rule: BlocksRule, state: BlocksState, model: Model, work: BlocksWork) -> int:
    """Close the block that is complete, test, plan, and open the next one; returns what is proved."""
    core, block, scratch = state.round, state.block, work.round.certified
    certified = core.certified
    n_arms = core.allocation.size
    if core.counters[STEPS] == 0:
        for a in range(n_arms):
            block.counts[a], block.answer[a] = _FIRST_COUNT, 1.0 / n_arms
        open_block(core.estimates, block)
        return KEEP_SAMPLING
    close_block(core.estimates, model, block, work.block)
    if try_starts(rule.certified, rule.levels, model, block, certified, scratch, work.block):
        _write_readings(block.tallies[WINNER], state)
        return ANSWER_PROVED
    weigh(rule.certified, core.estimates, model, scratch)
    verdict = review(rule.certified, certified, core.estimates, model, scratch)
    if verdict != KEEP_SAMPLING:
        return verdict
    core.counters[SET_IS_EMPTY] = certified.tallies[LOOKS_EMPTY]
    mu, rows = core.estimates.mu_hat, core.estimates.columns[1:]
    j = _choose_start(rule, mu, rows, model, certified.pool, state, work)
    scene = _set_scene(rule, j, mu, rows, model, certified.pool, state, scratch.memory)
    rate = 0.0
    if certified.tallies[LOOKS_EMPTY] == 1:
        # Nothing to plan for: sample evenly until some mix fits, or it is proved that none does.
        for a in range(n_arms):
            state.planned[0, a] = 1.0 / n_arms
    else:
        rate = _plan(rule, scene, core.counters[STEPS], state, certified, work)
        if j >= 0:
            state.forecasts[j] = _bound_forecast(state, j, rate)
    _write_readings(j, state)
    expected = max(state.expected[0], float(core.counters[STEPS]))
    _follow(state, 0.5 * rule.least_pulls / math.sqrt(expected))
    _consider_start(rule, rate, state, model)
    _fill_block(rule, scene, rate, state, work)
    for a in range(n_arms):
        core.answer[a] = block.answer[a]
    begun = block.starts.begun[j] if j >= 0 else 0.0
    pulls = state.forecasts[j] if j >= 0 else (1.0 + START_AT) / max(rate, 1e-15)
    state.clock[EXPECTED_STOP] = max(begun + pulls, float(core.counters[STEPS]))
    open_block(core.estimates, block)
    return KEEP_SAMPLING


@kernel
def step_blocks(rule: BlocksRule, state: BlocksState, model: Model, rng: np.random.Generator, work: BlocksWork) -> int:
    """Return the next arm of the block, or STOP once an answer is proved at its end (or that there is none)."""
    arm = take_next(state.block)
    if arm < 0:
        verdict = _turn_block(rule, state, model, work)
        if conclude(verdict, state.round):
            return STOP
        arm = take_next(state.block)
    return arm
