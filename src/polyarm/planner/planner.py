"""Planning allocation and answer together, again and again as estimates move, against the witnesses met so far."""

from abc import ABC, abstractmethod

import numpy as np

from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray
from polyarm.certify.evidence import Evidence, make_evidence
from polyarm.certify.pooled import make_worth, weigh_pulls, write_pooled_evidence
from polyarm.certify.search import SearchWork, Task, search_witness
from polyarm.certify.verdicts import CertifiedRule, least_ratio
from polyarm.certify.witnesses import add_witness, least_witness, refresh_uses
from polyarm.planner.improve import Effort, Steps, climb, fresh_steps, refresh_steps
from polyarm.planner.objective import PlanWork, Scene, forget
from polyarm.planner.remaining import foresee
from polyarm.round import schedule_next

#: How a plan is climbed; no arm's planned share falls (much) below the second number.
_SHARPNESS, _LEAST_ALLOCATION = 25.0, 1e-4
_ITERATIONS, _CHALLENGER_ITERATIONS = 60, 40
_LEAST_ALLOCATION_STEP, _LEAST_ANSWER_STEP = 0.05, 0.02
#: Pulls grow by this share between plans made afresh.
_CHALLENGER_GROWTH = 0.1
#: A plan's own best response is searched to this accuracy, in this many cells at most.
_RESPONSE_ACCURACY, _RESPONSE_CELLS = 0.1, 40
#: Values below this are not told apart.
_WORTHLESS = 1e-9
#: Plans are made for a stop after at most this many times the pulls so far.
_FARTHEST = 1e6


class PlanNow(Scalars):
    """Pulls at which a plan is made afresh, and at which the stop is expected."""

    next_challenger: float
    expected_stop: float


@struct
class PlanState:
    """A plan: allocation (K,), answer (K,), and the sizes of the next steps from it."""

    now: PlanNow
    allocation: FloatArray
    answer: FloatArray
    steps: Steps


def make_plan_state(allocation: FloatArray) -> PlanState:
    """Allocate a plan with this allocation (not a copy) and the uniform answer."""
    n_arms = allocation.size
    now = PlanNow(next_challenger=4.0 * n_arms, expected_stop=4.0 * n_arms)
    return PlanState(now, allocation, np.full(n_arms, 1.0 / n_arms), fresh_steps())


class Planner(ABC):
    """Keeps a plan, and improves it.

    Args:
        rule: Settings of the test that is planned for.
        scene: What stays fixed while planning.
        plan: Scratch of climbing.
        search: Scratch of the search for a plan's best response.
        allocation: The plan's allocation (K,), not a copy.
    """

    def __init__(
        self, rule: CertifiedRule, scene: Scene, plan: PlanWork, search: SearchWork, allocation: FloatArray
    ) -> None:
        self.scene = scene
        self.state = make_plan_state(allocation)
        self._penalty = rule.penalty
        self._work = plan
        self._search = search
        self._other = make_plan_state(allocation.copy())
        self._evidence = make_evidence(allocation.size, scene.model.known.size)
        self._witness = np.zeros(allocation.size)

    @abstractmethod
    def value(self, plan: PlanState) -> float:
        """What a plan is worth: its least ratio of statistic to threshold, or the rate at which that grows."""

    @abstractmethod
    def improve(self, plan: PlanState, iterations: int) -> float:
        """Climb from a plan, in place; returns its value."""

    @abstractmethod
    def respond(self) -> float:
        """Add the plan's best response to the witnesses; returns the plan's value."""

    def replan(self, steps: int, cautious: FloatArray | None) -> float:
        """Improve the plan after so many pulls, if need be from a cautious answer; returns its value."""
        plan = self.state
        if cautious is not None:
            self._answer_cautiously(cautious)
            if steps >= plan.now.next_challenger:
                plan.now.next_challenger = schedule_next(steps, _CHALLENGER_GROWTH)
                self._challenge(cautious)
        plan.steps.allocation = max(plan.steps.allocation, _LEAST_ALLOCATION_STEP)
        plan.steps.answer = max(plan.steps.answer, _LEAST_ANSWER_STEP)
        self.improve(plan, _ITERATIONS)
        return self.respond()

    def _answer_cautiously(self, cautious: FloatArray) -> None:
        """Plan for the cautious answer if its value is higher."""
        plan, other = self.state, self._other
        other.allocation[:] = plan.allocation
        other.answer[:] = cautious
        held = self.value(plan)
        if not held >= _WORTHLESS or self.value(other) > held:
            plan.answer[:] = other.answer
            refresh_steps(plan.steps, answer_only=True)

    def _challenge(self, cautious: FloatArray) -> None:
        """Plan afresh and keep the better plan: a share lost by both allocation and answer never comes back."""
        plan, other = self.state, self._other
        other.allocation[:] = 0.5 * cautious + 0.5 / cautious.size
        other.answer[:] = cautious
        refresh_steps(other.steps)
        found = self.improve(other, _CHALLENGER_ITERATIONS)
        if found > self.value(plan):
            self.take(other)
            plan.steps.allocation, plan.steps.answer = other.steps.allocation, other.steps.answer

    def take(self, other: PlanState) -> None:
        """Copy another plan's allocation and answer."""
        self.state.allocation[:] = other.allocation
        self.state.answer[:] = other.answer

    def _climb(self, plan: PlanState, total: float, iterations: int) -> float:
        effort = Effort(total, _LEAST_ALLOCATION, _SHARPNESS, iterations)
        return float(climb(self.scene, effort, plan.steps, plan.allocation, plan.answer, self._work))

    def _add_response(self, evidence: Evidence) -> None:
        """Look for the witness that hurts most a plan that leads to this evidence; add it to the pool."""
        pool, witness = self.scene.pool, self._witness
        value, nearest = least_witness(evidence, pool)
        if value > 1e-12 and nearest >= 0:
            witness[:] = pool.mixes[nearest]
            task = Task(value, _RESPONSE_ACCURACY, 0.0, self._penalty, _RESPONSE_CELLS)
            search_witness(evidence, task, self._search, witness)
            add_witness(pool, witness)


class RestPlanner(Planner):
    """Plans what remains of an exploration by blocks: a value is the part of the proof that each pull earns."""

    def value(self, plan: PlanState) -> float:
        """The rate at which a plan earns its proof."""
        return self._climb(plan, 1.0, 0)

    def improve(self, plan: PlanState, iterations: int) -> float:
        """Climb, for a plan of one pull: nothing here depends on how many there will be."""
        return self._climb(plan, 1.0, iterations)

    def respond(self) -> float:
        """Search the evidence that the plan leads to, as the reward test will see it."""
        plan, evidence = self.state, self._evidence
        foresee(self.scene, plan.allocation, plan.answer, evidence)
        refresh_uses(evidence, self.scene.pool)
        self._add_response(evidence)
        return self.value(plan)


class WholePlanner(Planner):
    """Plans a whole exploration for the thresholds that the pooled test faces when it is expected to stop."""

    def __init__(
        self, rule: CertifiedRule, scene: Scene, plan: PlanWork, search: SearchWork, allocation: FloatArray
    ) -> None:
        super().__init__(rule, scene, plan, search, allocation)
        self._worth = make_worth(allocation.size)
        self._pulls = np.zeros(allocation.size)
        self._total = 0.0

    def value(self, plan: PlanState) -> float:
        """Forecast the evidence after the expected pulls; returns the least statistic over threshold."""
        scene, evidence = self.scene, self._evidence
        self._pulls[:] = self._total * plan.allocation
        weigh_pulls(scene.pricing, self._pulls, self._worth)
        write_pooled_evidence(scene.mu, scene.rows, scene.model, self._worth, plan.answer, evidence)
        return float(least_ratio(evidence, self._worth, scene.pool, plan.answer))

    def improve(self, plan: PlanState, iterations: int) -> float:
        """Climb for the expected pulls."""
        self._climb(plan, self._total, iterations)
        return self.value(plan)

    def respond(self) -> float:
        """Search the evidence that the plan leads to."""
        ratio = self.value(self.state)
        self._add_response(self._evidence)
        return ratio

    def plan(self, steps: int, cautious: FloatArray | None) -> None:
        """Plan after so many pulls for the expected stop, and forecast that anew."""
        now = self.state.now
        self._total = max(float(now.expected_stop), float(steps))
        forget(self.scene)
        ratio = self.replan(steps, cautious)
        # Statistics grow in proportion to the pulls and thresholds hardly at all: this is when the plan would stop.
        expected = self._total / max(ratio, _WORTHLESS)
        now.expected_stop = min(max(expected, float(steps)), _FARTHEST * steps)
