"""`certex` with the pooled certificate: samples so that it comes as early as possible, and stops only with one.

Plans allocation and answer together (`bounds.ascent`) against the witnesses met so far, for the thresholds that the
test will face at the time the plan expects to stop; tracks the allocation; stops by the certified rule.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray, IntArray
from polyarm.bounds.ascent import N_STEPS, Scene, climb, forget, make_scene
from polyarm.explorers.planning import (
    CHALLENGER_GROWTH,
    EXPECTED_STOP,
    LEAST_ALLOCATION,
    NEXT_CHALLENGER,
    SHARPNESS,
    add_response,
)
from polyarm.explorers.round import (
    SET_IS_EMPTY,
    STEPS,
    STOP,
    RoundState,
    conclude,
    make_round_state,
)
from polyarm.problem import Model
from polyarm.statistics.joint import Evidence, make_evidence
from polyarm.statistics.mixture import write_thresholds
from polyarm.stopping.certified import (
    HAS_CAUTIOUS,
    KEEP_SAMPLING,
    LOOKS_EMPTY,
    NEXT_REVIEW,
    NEXT_TEST,
    REVIEW_GROWTH,
    CertifiedRule,
    CertifiedWork,
    adopt,
    least_ratio,
    make_certified_work,
    review,
    schedule_next,
    schedule_test,
    try_to_stop,
    weigh,
    write_readings,
)

#: Plans are made for a stop at most this many times later than now.
_FARTHEST = 1e6


class PooledRule(NamedTuple):
    """Settings as the kernel sees them.

    `least_pulls` times sqrt(t) pulls of every arm come before the plan's; the rest is how much work a plan is worth.
    """

    certified: CertifiedRule
    least_pulls: float
    iterations: int
    challenger_iterations: int
    response_cells: int


class PooledState(NamedTuple):
    """The plan: an allocation (in `round`), the answer it is made for, step sizes and times."""

    round: RoundState
    planned: FloatArray
    steps: FloatArray
    challenger_steps: FloatArray
    clock: FloatArray


class PooledRound(NamedTuple):
    """What `certex` needs of a round's scratch."""

    costs: FloatArray
    certified: CertifiedWork


class Forecast(NamedTuple):
    """What a plan would have in hand after a number of pulls, were the estimates true."""

    evidence: Evidence
    pulls: FloatArray
    effective: FloatArray
    thresholds: FloatArray
    marks: IntArray


class PooledWork(NamedTuple):
    """Scratch: a forecast, and a second plan that challenges the first."""

    round: PooledRound
    forecast: Forecast
    allocation: FloatArray
    answer: FloatArray


def build_pooled(certified: CertifiedRule, model: Model) -> tuple[PooledRule, PooledState, PooledWork]:
    """Make the rule, a fresh state and scratch."""
    n_arms = model.reward_noise.size
    rule = PooledRule(
        certified=certified,
        least_pulls=min(0.75, 2.0 / math.sqrt(n_arms)),
        iterations=60,
        challenger_iterations=40,
        response_cells=40,
    )
    state = PooledState(
        round=make_round_state(model, certified=True),
        planned=np.full(n_arms, 1.0 / n_arms),
        steps=np.full(N_STEPS, 0.3),
        challenger_steps=np.full(N_STEPS, 0.3),
        clock=np.array([4.0 * n_arms, 4.0 * n_arms]),
    )
    work = PooledWork(
        round=PooledRound(np.zeros(model.known.size), make_certified_work(model)),
        forecast=Forecast(
            evidence=make_evidence(n_arms, model.known.size),
            pulls=np.zeros(n_arms),
            effective=np.zeros(n_arms),
            thresholds=np.zeros(2),
            marks=np.zeros(n_arms, dtype=np.int64),
        ),
        allocation=np.zeros(n_arms),
        answer=np.zeros(n_arms),
    )
    return rule, state, work


@kernel
def _foresee(scene: Scene, total: float, allocation: FloatArray, answer: FloatArray, forecast: Forecast) -> float:
    """Forecast the evidence after `total` pulls in these proportions; returns the least statistic over threshold."""
    for a in range(allocation.size):
        forecast.pulls[a] = total * allocation[a]
    write_thresholds(scene.pricing, forecast.pulls, forecast.effective, forecast.thresholds, forecast.marks)
    evidence = forecast.evidence
    evidence.extras[:] = 0.0
    for i in range(scene.known.size):
        evidence.known[i] = scene.known[i]
    for a in range(allocation.size):
        evidence.mu[a] = scene.mu[a]
        evidence.mu_var[a] = scene.reward_noise[a] / forecast.effective[a]
        for i in range(scene.known.size):
            evidence.rows[i, a] = scene.rows[i, a]
            evidence.row_var[i, a] = scene.row_noise[i, a] / forecast.effective[a]
    return least_ratio(evidence, forecast.thresholds, scene.pool, scene.r, answer)


@kernel
def _challenge(
    rule: PooledRule,
    scene: Scene,
    total: float,
    cautious: FloatArray,
    state: PooledState,
    work: PooledWork,
) -> None:
    """Plan afresh from the cautious answer and keep the better plan: shares that w and p lose together stay lost."""
    n_arms = cautious.size
    allocation, answer = work.allocation, work.answer
    for a in range(n_arms):
        allocation[a] = 0.5 * cautious[a] + 0.5 / n_arms
        answer[a] = cautious[a]
    for k in range(N_STEPS):
        state.challenger_steps[k] = 0.3
    climb(
        scene,
        total,
        LEAST_ALLOCATION,
        SHARPNESS,
        rule.challenger_iterations,
        state.challenger_steps,
        allocation,
        answer,
        work.round.certified.arena,
    )
    held = _foresee(scene, total, state.round.allocation, state.planned, work.forecast)
    if _foresee(scene, total, allocation, answer, work.forecast) > held:
        for a in range(n_arms):
            state.round.allocation[a] = allocation[a]
            state.planned[a] = answer[a]
        for k in range(N_STEPS):
            state.steps[k] = state.challenger_steps[k]


@kernel
def _plan(rule: PooledRule, state: PooledState, model: Model, work: PooledWork) -> None:
    """Improve allocation and planned answer, and add the plan's own best response to the witnesses."""
    certified = state.round.certified
    steps = state.round.counters[STEPS]
    evidence, forecast = work.round.certified.evidence, work.forecast
    memory = work.round.certified.memory
    forget(evidence.mu, evidence.rows, memory)
    scene = make_scene(evidence.mu, evidence.rows, model, certified.pool, rule.certified.pricing, memory)
    total = max(state.clock[EXPECTED_STOP], float(steps))
    if certified.tallies[HAS_CAUTIOUS] == 1:
        _foresee(scene, total, state.round.allocation, state.planned, forecast)
        adopt(
            forecast.evidence, forecast.thresholds, scene.pool, model.r, certified.cautious, state.planned, state.steps
        )
        if steps >= state.clock[NEXT_CHALLENGER]:
            state.clock[NEXT_CHALLENGER] = schedule_next(steps, CHALLENGER_GROWTH)
            _challenge(rule, scene, total, certified.cautious, state, work)
    state.steps[0] = max(state.steps[0], 0.05)
    state.steps[1] = max(state.steps[1], 0.02)
    climb(
        scene,
        total,
        LEAST_ALLOCATION,
        SHARPNESS,
        rule.iterations,
        state.steps,
        state.round.allocation,
        state.planned,
        work.round.certified.arena,
    )
    ratio = _foresee(scene, total, state.round.allocation, state.planned, forecast)
    add_response(
        forecast.evidence,
        state.planned,
        model.r,
        rule.certified.penalty,
        rule.response_cells,
        certified.pool,
        work.round.certified.arena,
        work.round.certified.witness,
    )
    # Statistics grow in proportion to the pulls, thresholds hardly: that is when this plan would stop.
    expected = total / max(ratio, 1e-9)
    state.clock[EXPECTED_STOP] = min(max(expected, float(steps)), _FARTHEST * steps)


@inlined_kernel
def _track(rule: PooledRule, state: RoundState) -> int:
    """Pull the least-pulled arm while it is far behind, otherwise the arm that lags most behind the plan."""
    pulls = state.estimates.pulls
    steps = float(state.counters[STEPS])
    least = 0
    for a in range(pulls.size):
        if pulls[a] < pulls[least]:
            least = a
    if pulls[least] < rule.least_pulls * math.sqrt(steps):
        return least
    arm = 0
    for a in range(pulls.size):
        if state.allocation[a] * steps - pulls[a] > state.allocation[arm] * steps - pulls[arm]:
            arm = a
    return arm


@kernel
def step_pooled(rule: PooledRule, state: PooledState, model: Model, rng: np.random.Generator, work: PooledWork) -> int:
    """Return the next arm, or STOP once the answer is proved (or that there is none)."""
    core = state.round
    certified = core.certified
    steps = core.counters[STEPS]
    if steps >= certified.schedule[NEXT_TEST]:
        scratch = work.round.certified
        weigh(rule.certified, core.estimates, model, scratch)
        verdict = KEEP_SAMPLING
        if steps >= certified.schedule[NEXT_REVIEW]:
            certified.schedule[NEXT_REVIEW] = schedule_next(steps, REVIEW_GROWTH)
            verdict = review(rule.certified, certified, core.estimates, model, scratch)
            core.counters[SET_IS_EMPTY] = certified.tallies[LOOKS_EMPTY]
            if certified.tallies[LOOKS_EMPTY] == 1:
                # Nothing to plan for: sample evenly until some mix fits, or it is proved that none does.
                for a in range(core.allocation.size):
                    core.allocation[a] = 1.0 / core.allocation.size
            elif verdict == KEEP_SAMPLING:
                _plan(rule, state, model, work)
        if verdict == KEEP_SAMPLING:
            adopt(
                scratch.evidence,
                scratch.thresholds,
                certified.pool,
                model.r,
                state.planned,
                certified.answer,
                certified.steps,
            )
            verdict = try_to_stop(rule.certified, certified, core.estimates, model, False, scratch)
        write_readings(certified, model, scratch, core.readings)
        certified.schedule[NEXT_TEST] = schedule_test(steps, core.readings)
        if conclude(verdict, core):
            return STOP
    return _track(rule, core)
