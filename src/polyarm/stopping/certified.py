"""The certified stop: an answer is given once it is proved feasible and r-optimal, whatever rule chose the arms.

A test looks at one candidate answer p: every cost statistic must exceed the cost threshold, and the certified lower
bound on the reward statistic the reward threshold (see `statistics`). Between tests the candidate is improved for the
pulls that were made; witnesses that defeated it are remembered and must be beaten first.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._arena import Arena, make_arena
from polyarm._compile import kernel
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.bounds.ascent import N_STEPS, Memory, climb, forget, make_memory, make_scene, size_ascent
from polyarm.bounds.cautious import size_cautious, write_cautious
from polyarm.estimates import Estimates
from polyarm.geometry.lp import EMPTY, solve_lp
from polyarm.geometry.penalised import carve_penalised, forget_basis, lp_floats
from polyarm.problem import Model
from polyarm.statistics.branch import CERTIFIED, UNRESOLVED, search_witness, size_branch
from polyarm.statistics.joint import Evidence, cost_statistic, make_evidence
from polyarm.statistics.mixture import COST, REWARD, Pricing, write_thresholds
from polyarm.statistics.witnesses import Pool, add_witness, least_witness, make_pool, refresh_uses
from polyarm.tolerances import CERTIFIED_MARGIN, INFEASIBLE

# What a test concludes.
KEEP_SAMPLING = 0
ANSWER_PROVED = 1
INFEASIBLE_PROVED = 2

# Entries of `CertifiedState.schedule`: pulls at which something is due.
NEXT_TEST = 0
NEXT_REVIEW = 1
# Entries of `CertifiedState.tallies`.
REVIEWS = 0
SEARCHES = 1
CELLS = 2
UNRESOLVED_SEARCHES = 3
HAS_CAUTIOUS = 4  # 1 when the last review found a cautious answer
LOOKS_EMPTY = 5  # 1 when the last review found no mix that satisfies the estimated rows
N_TALLIES = 6

#: Pulls grow by this share between tests that came close, at least, and by this at most while the proof is far away.
_LEAST_TEST_GROWTH = 0.002
_MOST_TEST_GROWTH = 0.02
#: How much of the way to the expected stop may pass without a test.
_SHARE_OF_WAY = 0.25
#: ... and by this if all known witnesses are beaten and yet the proof failed: the next try may be as dear as the last.
_COSTLY_TEST_GROWTH = 0.01
#: Pulls grow by this share between reviews of the candidate answers.
REVIEW_GROWTH = 0.04
#: How many times a candidate is improved within one test.
_ATTEMPTS = 4
_SHARPNESS = 40.0
#: Below this share of the threshold no test is worth its price.
_WORTH_TESTING = 0.6
_LEAST_STEP = 0.02
_FRESH_STEP = 0.3
#: After an unresolved search the pool must pass by this much more before the next one.
MARGIN_GROWTH = 0.02
#: Shares below this are left out of an answer if the proof allows it: nobody wants to serve one request in a thousand.
_SMALL_SHARE = 2e-3
#: An unresolved search costs pulls: at K = 100, proved, runs with 2,400 cells took nearly twice as many.
MAX_CELLS = 60_000


class CertifiedRule(NamedTuple):
    """Settings: the thresholds, the price of breaking an estimated row, and how much work a test is worth."""

    pricing: Pricing
    penalty: float
    max_cells: int
    iterations: int


class CertifiedState(NamedTuple):
    """What is remembered between tests.

    `answer` is the candidate; `cautious` the last cautious one; `optimum` the last estimated optimum; `margin` (1,) how
    much the pool must pass by.
    """

    answer: FloatArray
    cautious: FloatArray
    optimum: FloatArray
    pool: Pool
    steps: FloatArray
    schedule: FloatArray
    margin: FloatArray
    tallies: IntArray


class CertifiedWork(NamedTuple):
    """Scratch of a test: the evidence, the thresholds, a witness, a planner's memory, an arena for everything else."""

    evidence: Evidence
    effective: FloatArray
    thresholds: FloatArray
    witness: FloatArray
    memory: Memory
    arena: Arena


def make_certified_state(model: Model) -> CertifiedState:
    """Allocate a state with no test made; single arms that satisfy the known rows are the first witnesses."""
    d, n_arms = model.known_rows.shape
    pool = make_pool(n_arms, d)
    for a in range(n_arms):
        arm = np.eye(n_arms)[a]
        if np.all(model.known_rows[model.known] @ arm <= 0.0):
            add_witness(pool, arm)
    uniform = np.full(n_arms, 1.0 / n_arms)
    return CertifiedState(
        answer=uniform.copy(),
        cautious=uniform.copy(),
        optimum=uniform.copy(),
        pool=pool,
        steps=np.full(N_STEPS, _FRESH_STEP),
        schedule=np.array([2.0 * n_arms, 2.0 * n_arms]),
        margin=np.zeros(1),
        tallies=np.zeros(N_TALLIES, dtype=np.int64),
    )


def make_certified_work(model: Model) -> CertifiedWork:
    """Allocate the scratch."""
    d, n_arms = model.known_rows.shape
    capacity = make_pool(n_arms, d).last_use.size
    return CertifiedWork(
        evidence=make_evidence(n_arms, d),
        effective=np.zeros(n_arms),
        thresholds=np.zeros(2),
        witness=np.zeros(n_arms),
        memory=make_memory(n_arms, d),
        arena=make_arena(
            size_branch(n_arms, d),
            size_cautious(n_arms, d),
            size_ascent(capacity, n_arms, d, int(model.known.sum())),
        ),
    )


@kernel
def write_evidence(
    estimates_mu: FloatArray,
    columns: FloatArray,
    effective: FloatArray,
    reward_noise: FloatArray,
    row_noise: FloatArray,
    known: BoolArray,
    evidence_out: Evidence,
) -> None:
    """Write the estimates with the variances that the effective pulls leave them."""
    d, n_arms = row_noise.shape
    evidence_out.extras[:] = 0.0  # a pooled certificate has neither spread nor floors
    for i in range(d):
        evidence_out.known[i] = known[i]
    for a in range(n_arms):
        evidence_out.mu[a] = estimates_mu[a]
        evidence_out.mu_var[a] = reward_noise[a] / effective[a]
        for i in range(d):
            evidence_out.rows[i, a] = columns[i + 1, a]
            evidence_out.row_var[i, a] = row_noise[i, a] / effective[a]


@kernel
def weigh(rule: CertifiedRule, estimates: Estimates, model: Model, work: CertifiedWork) -> None:
    """Work out thresholds and evidence for the pulls made so far."""
    write_thresholds(rule.pricing, estimates.pulls, work.effective, work.thresholds, work.arena.ints)
    write_evidence(
        estimates.mu_hat,
        estimates.columns,
        work.effective,
        model.reward_noise,
        model.row_noise,
        model.known,
        work.evidence,
    )


@kernel
def least_ratio(evidence: Evidence, thresholds: FloatArray, pool: Pool, r: float, answer: FloatArray) -> float:
    """The least statistic over its threshold, for an answer and the witnesses known: above one, a test may pass."""
    value, _ = least_witness(evidence, answer, r, pool)
    return float(min(cost_statistic(evidence, answer) / thresholds[COST], value / thresholds[REWARD]))


@kernel
def adopt(
    evidence: Evidence,
    thresholds: FloatArray,
    pool: Pool,
    r: float,
    other: FloatArray,
    answer: FloatArray,
    steps: FloatArray,
) -> None:
    """Replace the candidate by another answer if that is better off."""
    held = least_ratio(evidence, thresholds, pool, r, answer)
    offered = least_ratio(evidence, thresholds, pool, r, other)
    if offered > held or held < 1e-9:
        steps[1] = _FRESH_STEP
        for a in range(answer.size):
            answer[a] = other[a]


@kernel
def _prove_empty(evidence: Evidence, threshold: float, arena: Arena) -> bool:
    """Tell whether even with every unknown entry as low as the cost threshold allows no mix satisfies all rows."""
    d, n_arms = evidence.rows.shape
    work = carve_penalised(n_arms, d, arena)
    columns = arena.floats[lp_floats(n_arms, d) :][: (d + 1) * n_arms].reshape((d + 1, n_arms))
    for a in range(n_arms):
        columns[0, a] = 1.0
        for i in range(d):
            columns[i + 1, a] = evidence.rows[i, a] - math.sqrt(2.0 * threshold * evidence.row_var[i, a])
    forget_basis(work)
    return solve_lp(evidence.mu, columns, work.basis, work.lp) == EMPTY


@kernel
def prove_infeasible(rule: CertifiedRule, work: CertifiedWork) -> bool:
    """Tell whether no mix can satisfy every row, at the level of the tests: first by one LP, then by a search.

    The search: every mix breaks the rows by more than the reward threshold, so none can be the true optimum. It is the
    search for witnesses with rewards out of play; the evidence is spoilt afterwards.
    """
    evidence = work.evidence
    if _prove_empty(evidence, work.thresholds[COST], work.arena):
        return True
    for a in range(work.witness.size):
        evidence.mu[a] = 0.0
        evidence.mu_var[a] = 0.0
        work.witness[a] = 1.0 / work.witness.size
    threshold = work.thresholds[REWARD]
    outcome, _, _ = search_witness(
        evidence, work.witness, 0.0, threshold, 0.0, threshold, rule.penalty, rule.max_cells, work.arena, work.effective
    )
    return outcome == CERTIFIED


@kernel
def review(rule: CertifiedRule, state: CertifiedState, estimates: Estimates, model: Model, work: CertifiedWork) -> int:
    """Look for a cautious answer and refresh the pool, or for a proof that there is no answer at all."""
    state.tallies[REVIEWS] += 1
    evidence = work.evidence
    found = write_cautious(
        evidence.mu,
        evidence.rows,
        model.known,
        0.5 * model.r,
        0.75 * model.r,
        rule.penalty,
        work.arena,
        state.optimum,
        state.cautious,
    )
    empty = _breaks_rows(evidence, state.optimum)
    state.tallies[HAS_CAUTIOUS] = 1 if found else 0
    state.tallies[LOOKS_EMPTY] = 1 if empty else 0
    if empty:
        if prove_infeasible(rule, work):
            return INFEASIBLE_PROVED
        weigh(rule, estimates, model, work)
    add_witness(state.pool, state.optimum)
    if found:
        adopt(evidence, work.thresholds, state.pool, model.r, state.cautious, state.answer, state.steps)
    refresh_uses(evidence, state.answer, model.r, state.pool)
    return KEEP_SAMPLING


@kernel
def _breaks_rows(evidence: Evidence, mix: FloatArray) -> bool:
    for i in range(evidence.known.size):
        excess, scale = 0.0, 1e-300
        for a in range(mix.size):
            excess += evidence.rows[i, a] * mix[a]
            scale = max(scale, abs(evidence.rows[i, a]))
        if excess > INFEASIBLE * scale:
            return True
    return False


@kernel
def _drop_small_shares(rule: CertifiedRule, r: float, answer: FloatArray, work: CertifiedWork) -> None:
    """Leave arms of negligible share out of a proved answer, if what remains is proved as well."""
    evidence, candidate = work.evidence, work.witness
    total = 0.0
    for a in range(answer.size):
        candidate[a] = answer[a] if answer[a] >= _SMALL_SHARE else 0.0
        total += candidate[a]
    for a in range(answer.size):
        candidate[a] /= total
    if cost_statistic(evidence, candidate) <= work.thresholds[COST] * (1.0 + CERTIFIED_MARGIN):
        return
    threshold = work.thresholds[REWARD]
    outcome, _, _ = search_witness(
        evidence, candidate, r, threshold, 0.0, threshold, rule.penalty, rule.max_cells, work.arena, work.effective
    )
    if outcome == CERTIFIED:
        for a in range(answer.size):
            answer[a] = candidate[a]


@kernel
def try_to_stop(
    rule: CertifiedRule, state: CertifiedState, estimates: Estimates, model: Model, improve: bool, work: CertifiedWork
) -> int:
    """Improve the candidate for the pulls made and test it; returns what is proved.

    `improve`: plan the candidate even while it is far from passing (a rule that plans nothing itself needs that).
    """
    evidence, thresholds, pool = work.evidence, work.thresholds, state.pool
    forget(evidence.mu, evidence.rows, work.memory)
    scene = make_scene(evidence.mu, evidence.rows, model, pool, rule.pricing, work.memory)
    ratio = least_ratio(evidence, thresholds, pool, model.r, state.answer)
    if ratio < _WORTH_TESTING and not improve:
        return KEEP_SAMPLING
    for _ in range(_ATTEMPTS):
        state.steps[1] = max(state.steps[1], _LEAST_STEP)
        climb(scene, 0.0, 0.0, _SHARPNESS, rule.iterations, state.steps, estimates.pulls, state.answer, work.arena)
        if cost_statistic(evidence, state.answer) <= thresholds[COST] * (1.0 + CERTIFIED_MARGIN):
            break
        value, _ = least_witness(evidence, state.answer, model.r, pool)
        if value <= thresholds[REWARD] * (1.0 + state.margin[0]):
            break
        state.tallies[SEARCHES] += 1
        outcome, cells, _ = search_witness(
            evidence,
            state.answer,
            model.r,
            thresholds[REWARD],
            0.0,
            thresholds[REWARD],
            rule.penalty,
            rule.max_cells,
            work.arena,
            work.witness,
        )
        state.tallies[CELLS] += cells
        if outcome == CERTIFIED:
            _drop_small_shares(rule, model.r, state.answer, work)
            return ANSWER_PROVED
        if outcome == UNRESOLVED:
            state.tallies[UNRESOLVED_SEARCHES] += 1
            state.margin[0] += MARGIN_GROWTH
            break
        add_witness(pool, work.witness)
        if state.tallies[HAS_CAUTIOUS] == 1:
            adopt(evidence, thresholds, pool, model.r, state.cautious, state.answer, state.steps)
    return KEEP_SAMPLING


@kernel
def schedule_next(steps: int, growth: float) -> float:
    """The number of pulls at which something is due again."""
    return max(steps + 1.0, math.floor(steps * (1.0 + growth)))


@kernel
def schedule_test(steps: int, readings: FloatArray) -> float:
    """The number of pulls at which the next test is due: soon when the last one, whose readings these are, was close.

    Statistics grow in proportion to the pulls, so that the proof is about (threshold / statistic - 1) t pulls away.
    """
    way = readings[1] / max(readings[0], 1e-9 * readings[1]) - 1.0
    if way <= 0.0:
        return schedule_next(steps, _COSTLY_TEST_GROWTH)
    return schedule_next(steps, min(max(_SHARE_OF_WAY * way, _LEAST_TEST_GROWTH), _MOST_TEST_GROWTH))


@kernel
def run_certified(
    rule: CertifiedRule,
    state: CertifiedState,
    estimates: Estimates,
    model: Model,
    steps: int,
    readings: FloatArray,
    work: CertifiedWork,
) -> int:
    """The whole stopping rule for explorers that only choose arms: review when due, test when due."""
    if steps < state.schedule[NEXT_TEST]:
        return KEEP_SAMPLING
    weigh(rule, estimates, model, work)
    reviewing = steps >= state.schedule[NEXT_REVIEW]
    verdict = KEEP_SAMPLING
    if reviewing:
        state.schedule[NEXT_REVIEW] = schedule_next(steps, REVIEW_GROWTH)
        verdict = review(rule, state, estimates, model, work)
    if verdict == KEEP_SAMPLING:
        verdict = try_to_stop(rule, state, estimates, model, reviewing, work)
    write_readings(state, model, work, readings)
    state.schedule[NEXT_TEST] = schedule_test(steps, readings)
    return verdict


@kernel
def write_readings(state: CertifiedState, model: Model, work: CertifiedWork, readings_out: FloatArray) -> None:
    """Write statistic and threshold for displays: the least ratio, in units of the reward threshold."""
    ratio = least_ratio(work.evidence, work.thresholds, state.pool, model.r, state.answer)
    readings_out[0] = ratio * work.thresholds[REWARD]
    readings_out[1] = work.thresholds[REWARD]
