"""The certified stop: looks at the data when a look is due, and ends the exploration only with a proof.

It stands outside the compiled step: the loop plays until `round.now.due` and Python calls `look`. The time goes into
the kernels that it calls: the planner for a candidate, the search for witnesses, a few linear programs.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray
from polyarm.certify.block_proof import StartPlan
from polyarm.certify.blocks import Record
from polyarm.certify.evidence import Evidence, cost_statistic, make_evidence
from polyarm.certify.pooled import Pricing, Worth, make_worth, weigh_pulls, write_pooled_evidence
from polyarm.certify.search import CERTIFIED, UNRESOLVED, SearchWork, Task, make_search_work, search_witness
from polyarm.certify.verdicts import CertifiedRule, least_ratio, prove_infeasible
from polyarm.certify.witnesses import Pool, add_witness, least_witness, make_pool, refresh_uses
from polyarm.estimates import Estimates
from polyarm.model import Model
from polyarm.planner.cautious import Caution, write_cautious
from polyarm.planner.improve import FRESH_STEP, Effort, Steps, climb, fresh_steps
from polyarm.planner.objective import PlanWork, Scene, forget, make_memory, make_plan_work
from polyarm.polytope.linear import drop_small_shares
from polyarm.polytope.penalised import Program
from polyarm.round import INFEASIBLE, STOPPED, Round, schedule_next
from polyarm.tolerances import CERTIFIED_MARGIN
from polyarm.tolerances import INFEASIBLE as BROKEN

#: How far a test may be put off: pulls grow by these shares, at least and at most, while the proof is far away.
_LEAST_TEST_GROWTH = 0.002
_MOST_TEST_GROWTH = 0.02
#: How much of the way to the expected stop may pass without a test.
_SHARE_OF_WAY = 0.25
#: Pulls grow by this share if all known witnesses are beaten but the proof failed: the next try may cost as much.
_COSTLY_TEST_GROWTH = 0.01
#: Pulls grow by this share between reviews of the candidate answers.
REVIEW_GROWTH = 0.04
#: How many times a candidate is improved within one test, and how.
_ATTEMPTS = 4
_SHARPNESS = 40.0
_ITERATIONS = 60
#: Below this share of the threshold no test is worth its cost.
_WORTH_TESTING = 0.6
_LEAST_STEP = 0.02
#: After an unresolved search the pool must pass by this much more before the next one.
MARGIN_GROWTH = 0.02
#: Shares below this are left out of an answer if the proof allows it: nobody wants to serve one request in a thousand.
SMALL_SHARE = 2e-3
#: What a cautious answer may lose, and what it may cost in total, as shares of r.
_LOSS, _ROOM = 0.5, 0.75


class StopNow(Scalars):
    """Where the stop stands.

    `next_test` and `next_review`: pulls at which these are due. `margin`: how much the pool must pass by. `reviews`,
    `searches`, `cells` and `unresolved` (searches) are counted. `has_cautious`: 1 when the last review found a cautious
    answer; `looks_empty`: 1 when it found no mix that satisfies the estimated rows.
    """

    next_test: float
    next_review: float
    margin: float
    reviews: int
    searches: int
    cells: int
    unresolved: int
    has_cautious: int
    looks_empty: int


@struct
class StopState:
    """What is remembered between looks: the candidate `answer` (the round's own array), the last `cautious` answer and
    the last estimated `optimum`, the witnesses, and the planner's step sizes."""

    now: StopNow
    answer: FloatArray
    cautious: FloatArray
    optimum: FloatArray
    pool: Pool
    steps: Steps


@struct
class StopWork:
    """Scratch of a look: what the pulls are worth, the evidence, a witness, and what planning and searching need."""

    worth: Worth
    evidence: Evidence
    witness: FloatArray
    scene: Scene
    plan: PlanWork
    search: SearchWork


def make_stop_state(model: Model, answer: FloatArray) -> StopState:
    """Allocate a state with no test made; single arms that satisfy the known rows are the first witnesses."""
    d, n_arms = model.known_rows.shape
    pool = make_pool(n_arms, d)
    for a in range(n_arms):
        arm = np.eye(n_arms)[a]
        if np.all(model.known_rows[model.known] @ arm <= 0.0):
            add_witness(pool, arm)
    return StopState(
        now=StopNow(next_test=2.0 * n_arms, next_review=2.0 * n_arms),
        answer=answer,
        cautious=np.full(n_arms, 1.0 / n_arms),
        optimum=np.full(n_arms, 1.0 / n_arms),
        pool=pool,
        steps=fresh_steps(),
    )


def make_stop_work(pricing: Pricing, estimates: Estimates, model: Model, pool: Pool) -> StopWork:
    """Allocate the scratch; its scene always shows the current estimates."""
    d, n_arms = model.known_rows.shape
    scene = Scene(estimates.mu_hat, estimates.columns[1:], model, pool, pricing, make_memory(n_arms, d))
    return StopWork(
        worth=make_worth(n_arms),
        evidence=make_evidence(n_arms, d),
        witness=np.zeros(n_arms),
        scene=scene,
        plan=make_plan_work(pool, model),
        search=make_search_work(n_arms, d),
    )


@kernel
def adopt(evidence: Evidence, worth: Worth, pool: Pool, other: FloatArray, answer: FloatArray, steps: Steps) -> None:
    """Replace the candidate by another answer if that is closer to a proof."""
    held = least_ratio(evidence, worth, pool, answer)
    offered = least_ratio(evidence, worth, pool, other)
    if offered > held or held < 1e-9:
        steps.answer = FRESH_STEP
        for a in range(answer.size):
            answer[a] = other[a]


@kernel
def _breaks_rows(evidence: Evidence, mix: FloatArray) -> bool:
    for i in range(evidence.known.size):
        excess, scale = 0.0, 1e-300
        for a in range(mix.size):
            excess += evidence.rows[i, a] * mix[a]
            scale = max(scale, abs(evidence.rows[i, a]))
        if excess > BROKEN * scale:
            return True
    return False


def schedule_test(steps: int, statistic: float, threshold: float) -> float:
    """The number of pulls at which the next test is due: soon if the last one, with these readings, was close.

    Statistics grow in proportion to the pulls, so the proof is about (threshold / statistic - 1) t pulls away.
    """
    way = threshold / max(statistic, 1e-9 * threshold) - 1.0
    if way <= 0.0:
        return schedule_next(steps, _COSTLY_TEST_GROWTH)
    return schedule_next(steps, min(max(_SHARE_OF_WAY * way, _LEAST_TEST_GROWTH), _MOST_TEST_GROWTH))


class Stop(Protocol):
    """The stop of an exploration that ends with a proof."""

    #: What a saved session keeps of it: structs, in a NamedTuple.
    saved: Any
    #: The blocks, for a stop that proves its answer by blocks.
    block: Any
    state: "StopState"

    def look(self) -> None:
        """Look at the data: conclude in `round.now.status`, or say in `round.now.due` when to look again."""

    def expected_stop(self) -> float | None:
        """The pulls at which a proof is expected; None if nothing plans for one."""

    def winning_blocks(self) -> tuple[StartPlan, Record] | None:
        """The start that proved the answer, with its blocks; None before that, or if all outcomes prove it."""


class Saved(NamedTuple):
    """What a saved session keeps of a `CertifiedStop`."""

    stop: StopState


class CertifiedStop:
    """The pooled certificate's stop, for any sampling rule.

    Args:
        rule: Its settings.
        round: The round of the exploration that it ends.
        model: The problem.
    """

    #: Whether reviews improve candidates that are far from passing; a rule that plans proposes better ones.
    _improves_far_candidates = True

    def __init__(self, rule: CertifiedRule, round: Round, model: Model) -> None:
        self.rule = rule
        self.round = round
        self.model = model
        self.state = make_stop_state(model, round.answer)
        self.saved: Any = Saved(self.state)
        self.block: Any = None
        self.work = make_stop_work(rule.pricing, round.estimates, model, self.state.pool)
        round.now.due = int(self.state.now.next_test)

    def expected_stop(self) -> float | None:
        """Nothing plans for the stop."""
        return None

    def winning_blocks(self) -> tuple[StartPlan, Record] | None:
        """All outcomes prove the answer."""
        return None

    def look(self) -> None:
        """Review if due, plan if the rule plans, test, and say when to look again."""
        round, stop = self.round, self.state
        steps = int(round.now.steps)
        self.weigh()
        infeasible = proved = False
        reviewing = steps >= stop.now.next_review
        if reviewing:
            stop.now.next_review = schedule_next(steps, REVIEW_GROWTH)
            infeasible = self.review()
            round.now.no_policy = stop.now.looks_empty
        if not infeasible:
            self.plan(reviewing)
            proved = self._try_to_stop(reviewing)
        self.write_reading(self._ratio(stop.answer), self.work.worth.thresholds.reward, proved)
        stop.now.next_test = schedule_test(steps, float(round.now.statistic), float(round.now.threshold))
        round.now.due = int(stop.now.next_test)
        if infeasible or proved:
            round.now.status = INFEASIBLE if infeasible else STOPPED

    def write_reading(self, ratio: float, threshold: float, proved: bool) -> None:
        """Write the statistic and the threshold of the test: the one pair of numbers that every display shows.

        `ratio` looks at known witnesses only. Until the answer is proved, an unknown witness may be below the
        threshold, so the statistic shown is at most the threshold. It is never negative: no evidence is zero.
        """
        now = self.round.now
        now.threshold = threshold
        now.statistic = max(0.0, ratio if proved else min(ratio, 1.0)) * threshold

    def plan(self, reviewing: bool) -> None:
        """Plan what to sample: nothing, as the sampling rule does not need it."""

    def weigh(self) -> None:
        """Compute thresholds and evidence for the pulls made so far."""
        scene, work = self.work.scene, self.work
        weigh_pulls(self.rule.pricing, self.round.estimates.pulls, work.worth)
        write_pooled_evidence(scene.mu, scene.rows, self.model, work.worth, self.state.answer, work.evidence)

    def _ratio(self, answer: FloatArray) -> float:
        return float(least_ratio(self.work.evidence, self.work.worth, self.state.pool, answer))

    def adopt(self, other: FloatArray) -> None:
        """Take another answer as the candidate if it is closer to a proof."""
        adopt(self.work.evidence, self.work.worth, self.state.pool, other, self.state.answer, self.state.steps)

    def review(self) -> bool:
        """Look for a cautious answer and refresh the pool; True on a proof that there is no answer at all."""
        stop, work, model = self.state, self.work, self.model
        evidence = work.evidence
        stop.now.reviews += 1
        found = write_cautious(
            Program(evidence.mu, evidence.rows, model.known),
            Caution(_LOSS * model.r, _ROOM * model.r, self.rule.penalty),
            work.search.descent,
            stop.optimum,
            stop.cautious,
        )
        empty = _breaks_rows(evidence, stop.optimum)
        stop.now.has_cautious, stop.now.looks_empty = int(found), int(empty)
        if empty:
            proved = prove_infeasible(self.rule, work.worth, evidence, work.search)
            self.weigh()
            if proved:
                return True
        add_witness(stop.pool, stop.optimum)
        if found:
            self.adopt(stop.cautious)
        evidence.centre[:] = stop.answer
        refresh_uses(evidence, stop.pool)
        return False

    def _try_to_stop(self, reviewing: bool) -> bool:
        """Improve the candidate for the pulls made and test it; True when it is proved.

        A candidate that is far from passing is improved only at a review: a rule that plans offers better ones.
        """
        stop, work = self.state, self.work
        evidence, worth = work.evidence, work.worth
        thresholds = worth.thresholds
        if self._ratio(stop.answer) < _WORTH_TESTING and not (reviewing and self._improves_far_candidates):
            return False
        forget(work.scene)
        for _ in range(_ATTEMPTS):
            stop.steps.answer = max(stop.steps.answer, _LEAST_STEP)
            climb(
                work.scene,
                Effort(0.0, 0.0, _SHARPNESS, _ITERATIONS),
                stop.steps,
                self.round.estimates.pulls,
                stop.answer,
                work.plan,
            )
            if cost_statistic(evidence, stop.answer) <= thresholds.cost * (1.0 + CERTIFIED_MARGIN):
                break
            evidence.centre[:] = stop.answer
            value, _ = least_witness(evidence, stop.pool)
            if value <= thresholds.reward * (1.0 + stop.now.margin):
                break
            outcome = self.search(self.rule.decide(thresholds.reward))
            if outcome == CERTIFIED:
                self._drop_small_shares()
                return True
            if outcome == UNRESOLVED:
                stop.now.margin += MARGIN_GROWTH
                break
            if stop.now.has_cautious == 1:
                self.adopt(stop.cautious)
        return False

    def search(self, task: Task) -> int:
        """Search for a witness against the evidence, keep count, and remember one that was found."""
        stop, work = self.state, self.work
        stop.now.searches += 1
        outcome, cells, _ = search_witness(work.evidence, task, work.search, work.witness)
        stop.now.cells += cells
        if outcome == CERTIFIED:
            return CERTIFIED
        if outcome == UNRESOLVED:
            stop.now.unresolved += 1
            return UNRESOLVED
        add_witness(stop.pool, work.witness)
        return int(outcome)

    def _drop_small_shares(self) -> None:
        """Drop arms of negligible share from a proved answer, if the rest is proved as well."""
        work, answer = self.work, self.state.answer
        candidate = np.zeros_like(answer)
        drop_small_shares(answer, SMALL_SHARE, candidate)
        thresholds = work.worth.thresholds
        if cost_statistic(work.evidence, candidate) <= thresholds.cost * (1.0 + CERTIFIED_MARGIN):
            return
        work.evidence.centre[:] = candidate
        outcome, _, _ = search_witness(work.evidence, self.rule.decide(thresholds.reward), work.search, work.witness)
        if outcome == CERTIFIED:
            answer[:] = candidate
