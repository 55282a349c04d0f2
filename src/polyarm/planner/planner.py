"""Planning for the pooled certificate: allocation and answer together, again and again, against the witnesses met."""

import numpy as np

from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray
from polyarm.certify.evidence import make_evidence
from polyarm.certify.pooled import make_worth, weigh_pulls, write_pooled_evidence
from polyarm.certify.search import SearchWork, Task, search_witness
from polyarm.certify.verdicts import least_ratio
from polyarm.certify.witnesses import add_witness, least_witness
from polyarm.planner.improve import Effort, Steps, climb, fresh_steps, refresh_steps
from polyarm.planner.objective import PlanWork, Scene
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


class PooledPlanner:
    """Plans a whole exploration for the thresholds that the pooled test faces when it is expected to stop.

    Args:
        penalty: The price of breaking an estimated row.
        scene: What stays fixed while planning.
        plan: Scratch of climbing.
        search: Scratch of the search for a plan's best response.
        allocation: The plan's allocation (K,), not a copy.
    """

    def __init__(
        self, penalty: float, scene: Scene, plan: PlanWork, search: SearchWork, allocation: FloatArray
    ) -> None:
        self.scene = scene
        self.state = make_plan_state(allocation)
        self._penalty = penalty
        self._work = plan
        self._search = search
        self._other = make_plan_state(allocation.copy())
        self._evidence = make_evidence(allocation.size, scene.model.known.size)
        self._witness = np.zeros(allocation.size)
        self._worth = make_worth(allocation.size)
        self._pulls = np.zeros(allocation.size)
        self._total = 0.0

    def plan(self, steps: int, cautious: FloatArray | None) -> None:
        """Plan after so many pulls for the expected stop, if need be from a cautious answer, and forecast it anew."""
        plan, now = self.state, self.state.now
        self._total = max(float(now.expected_stop), float(steps))
        if cautious is not None:
            self._answer_cautiously(cautious)
            if steps >= now.next_challenger:
                now.next_challenger = schedule_next(steps, _CHALLENGER_GROWTH)
                self._challenge(cautious)
        plan.steps.allocation = max(plan.steps.allocation, _LEAST_ALLOCATION_STEP)
        plan.steps.answer = max(plan.steps.answer, _LEAST_ANSWER_STEP)
        self._improve(plan, _ITERATIONS)
        ratio = self._value(plan)
        self._add_response()
        # Statistics grow in proportion to the pulls and thresholds hardly at all: this is when the plan would stop.
        expected = self._total / max(ratio, _WORTHLESS)
        now.expected_stop = min(max(expected, float(steps)), _FARTHEST * steps)

    def _value(self, plan: PlanState) -> float:
        """Forecast the evidence after the expected pulls; returns the least statistic over threshold."""
        scene, evidence = self.scene, self._evidence
        self._pulls[:] = self._total * plan.allocation
        weigh_pulls(scene.pricing, self._pulls, self._worth)
        write_pooled_evidence(scene.estimated, scene.model, scene.pricing, self._worth, plan.answer, evidence)
        return float(least_ratio(scene.estimated, scene.model, evidence, self._worth, scene.pool, plan.answer))

    def _improve(self, plan: PlanState, iterations: int) -> float:
        """Climb from a plan, in place, for the expected pulls; returns its value."""
        effort = Effort(self._total, _LEAST_ALLOCATION, _SHARPNESS, iterations)
        climb(self.scene, effort, plan.steps, plan.allocation, plan.answer, self._work)
        return self._value(plan)

    def _answer_cautiously(self, cautious: FloatArray) -> None:
        """Plan for the cautious answer if its value is higher."""
        plan, other = self.state, self._other
        other.allocation[:] = plan.allocation
        other.answer[:] = cautious
        held = self._value(plan)
        if not held >= _WORTHLESS or self._value(other) > held:
            plan.answer[:] = other.answer
            refresh_steps(plan.steps, answer_only=True)

    def _challenge(self, cautious: FloatArray) -> None:
        """Plan afresh and keep the better plan: a share lost by both allocation and answer never comes back."""
        plan, other = self.state, self._other
        other.allocation[:] = 0.5 * cautious + 0.5 / cautious.size
        other.answer[:] = cautious
        refresh_steps(other.steps)
        found = self._improve(other, _CHALLENGER_ITERATIONS)
        if found > self._value(plan):
            plan.allocation[:], plan.answer[:] = other.allocation, other.answer
            plan.steps.allocation, plan.steps.answer = other.steps.allocation, other.steps.answer

    def _add_response(self) -> None:
        """Look for the witness that hurts most the plan that was valued last; add it to the pool."""
        pool, witness, evidence = self.scene.pool, self._witness, self._evidence
        value, nearest = least_witness(evidence, pool)
        if value > 1e-12 and nearest >= 0:
            witness[:] = pool.mixes[nearest]
            task = Task(value, _RESPONSE_ACCURACY, 0.0, self._penalty, _RESPONSE_CELLS)
            search_witness(evidence, task, self._search, witness)
            add_witness(pool, witness)
