"""The stops that plan: they choose the next pulls so that the proof comes as early as possible.

Allocation and answer are planned together (`planner.planner`) against the witnesses met so far. `PlannedBlocks`, of the
averaged certificate, plans the pulls that remain since a start; a block's answer and counts are fixed beforehand.
`PooledStop` plans for the thresholds that the test will face at the time of the stop.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._types import FloatArray
from polyarm.certify.blocks import COST_PRICE, Start, begin, expect_thresholds, make_start
from polyarm.certify.pooled import Pricing, fixed_pricing
from polyarm.certify.terms import Terms
from polyarm.certify.verdicts import CertifiedRule, keeps_known_rows
from polyarm.model import Model
from polyarm.planner.objective import Scene, forget, make_memory
from polyarm.planner.planner import PlanState, RestPlanner, WholePlanner, make_plan_state
from polyarm.planner.remaining import recall
from polyarm.polytope.linear import drop_small_shares, is_mix, normalise
from polyarm.round import Round
from polyarm.stops.blocks import MAX_BLOCKS, Block, BlocksSaved, BlocksStop
from polyarm.stops.certified import SMALL_SHARE, CertifiedStop, StopState

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
#: A later start comes when the pulls are this many times those at the last.
_RESTART_AT = 4.0
#: The smallest shares of a block's answer are left out if that costs next to nothing.
_NEXT_TO_NOTHING = 0.005


def expected_pricing(terms: Terms, model: Model) -> Pricing:
    """Return the thresholds that an exploration in blocks plans for before its first start."""
    first = make_start(0, terms.averaged_delta, model.independent, model)
    return fixed_pricing(*expect_thresholds(first))


def least_pulls(model: Model) -> float:
    """Return how many times sqrt(pulls) every arm is pulled, whatever the plan; fewer with more arms."""
    return 2.0 / math.sqrt(model.reward_noise.size)


class PlannedSaved(NamedTuple):
    """What a saved session keeps of a `PooledStop`."""

    stop: StopState
    plan: PlanState


class PooledStop(CertifiedStop):
    """The pooled certificate's stop, which plans what to sample."""

    _improves_far_candidates = False  # the plan offers better ones

    def __init__(self, rule: CertifiedRule, round: Round, model: Model) -> None:
        super().__init__(rule, round, model)
        work = self.work
        self._planner = WholePlanner(rule, work.scene, work.plan, work.search, round.allocation)
        self.saved = PlannedSaved(self.state, self._planner.state)

    def expected_stop(self) -> float | None:
        """The pulls at which the plan expects to stop."""
        return float(self._planner.state.now.expected_stop)

    def plan(self, reviewing: bool) -> None:
        """Plan at every review, and offer the planned answer as the candidate."""
        if reviewing:
            if self.state.now.looks_empty:
                # Nothing to plan for: sample evenly until some mix fits, or it is proved that none does.
                self.round.allocation[:] = 1.0 / self.round.allocation.size
            else:
                cautious = self.state.cautious if self.state.now.has_cautious else None
                self._planner.plan(int(self.round.now.steps), cautious)
        self.adopt(self._planner.state.answer)


class PlannedBlocks(BlocksStop):
    """The averaged certificate's stop, which plans the blocks."""

    def __init__(self, rule: CertifiedRule, round: Round, model: Model, block: Block, share: float) -> None:
        super().__init__(rule, round, model, block, share)
        n_arms, d = model.reward_noise.size, model.known.size
        work, estimates = self.work, round.estimates
        memory = make_memory(n_arms, d)
        pricing = fixed_pricing(*expect_thresholds(self.starts[0]))
        scene = Scene(estimates.mu_hat, estimates.columns[1:], model, self.state.pool, pricing, memory)
        self._planner = RestPlanner(rule, scene, work.plan, work.search, np.full(n_arms, 1.0 / n_arms))
        self._dusted = make_plan_state(np.zeros(n_arms))
        self._carried = np.zeros(n_arms)
        self._least_pulls = min(0.5, least_pulls(model))
        self.saved = BlocksSaved(self.state, self.starts, self._planner.state, self._carried)

    def expected_stop(self) -> float | None:
        """The pulls at which the nearest start is expected to prove its answer."""
        return float(self._planner.state.now.expected_stop)

    def fill_block(self) -> None:
        """Plan, follow the plan, begin a start when it is worth one, and fix the next block."""
        steps = float(self.round.now.steps)
        block, plan = self.block, self._planner.state
        if steps == 0.0:
            block.counts[:], block.answer[:] = _FIRST_COUNT, 1.0 / block.answer.size
            return
        start = self._choose_start()
        self._set_scene(start)
        rate = 0.0
        if self.state.now.looks_empty:
            # Nothing to plan for: sample evenly until some mix fits, or it is proved that none does.
            plan.allocation[:] = 1.0 / plan.allocation.size
        else:
            rate = self._planner.replan(int(steps), self.state.cautious if self.state.now.has_cautious else None)
            if start is not None:
                start.terms.forecast = _bound_forecast(start, rate)
        if start is not None:
            self.show(start)
        self._follow_plan(steps)
        self._consider_start(steps, rate)
        self._fix_counts(steps)
        self._fix_answer(rate)
        begun = 0.0 if start is None else start.terms.begun
        pulls = (1.0 + START_AT) / max(rate, 1e-15) if start is None else start.terms.forecast
        plan.now.expected_stop = max(begun + pulls, steps)

    def _choose_start(self) -> Start | None:
        """Return the start that is expected to prove its answer first, or None before there is one."""
        best, nearest = None, math.inf
        for start in self.begun:
            if len(self.begun) > 1:
                self._set_scene(start)
                start.terms.forecast = _bound_forecast(start, self._planner.value(self._planner.state))
            left = start.terms.forecast - start.terms.weight
            if left < nearest:
                best, nearest = start, left
        return best

    def _set_scene(self, start: Start | None) -> None:
        """Set what is planned for: the rest of a start, or everything if there is no start yet."""
        scene = self._planner.scene
        cost, reward = expect_thresholds(self.starts[0])
        if start is None or start.terms.weight == 0.0:
            forget(scene)
        else:
            recall(start, scene)
            cost, reward = start.terms.cost_log + COST_PRICE, start.terms.reward_threshold
        scene.pricing.cost_log, scene.pricing.reward_log = cost, reward

    def _follow_plan(self, steps: float) -> None:
        """Let the allocation that is sampled follow the plan."""
        allocation = self.round.allocation
        expected = max(float(self.starts[0].terms.expected), steps)
        aim = (1.0 - _EVEN) * self._planner.state.allocation + _EVEN / allocation.size
        floor = 0.5 * self._least_pulls / math.sqrt(expected)
        allocation[:] = np.maximum(_INERTIA * allocation + (1.0 - _INERTIA) * aim, floor)
        normalise(allocation)

    def _consider_start(self, steps: float, rate: float) -> None:
        """Begin a start if the plan is worth one: first when enough is known, again when much more is."""
        block, j = self.block, len(self.begun)
        if j == len(self.starts) or not steps * rate >= START_AT:
            return
        if j > 0 and steps < _RESTART_AT * self.starts[j - 1].terms.begun:
            return
        most = steps / START_AT if j == 0 else _RESTART_AT * steps
        expected = min(max(1.0 / rate, steps), most)
        start = self.starts[j]
        begin(start, steps, expected, self.round.allocation, self._planner.state.answer, self.model)
        start.terms.first = block.now.recorded
        start.terms.expected = start.terms.forecast = expected
        block.now.n_starts = j + 1

    def _fix_counts(self, steps: float) -> None:
        """Write the counts of the next block."""
        block, pulls, carried = self.block, self.round.estimates.pulls, self._carried
        n_arms = pulls.size
        growth = _BLOCK_GROWTH
        if any(start.terms.ratio > _NEAR for start in self.begun):
            growth = _LAST_GROWTH
        if block.now.recorded > _NEARLY_FULL * MAX_BLOCKS:
            growth = _FAST_GROWTH
        size = max(_SMALLEST_BLOCK * n_arms, math.floor(growth * steps))
        floor = self._least_pulls * math.sqrt(steps)
        behind = np.maximum(1.0, np.minimum(np.ceil(floor - pulls), math.floor(size / n_arms)))
        wanted = self.round.allocation * size + carried
        block.counts[:] = np.maximum(np.where(pulls < floor, behind, 1.0), np.floor(wanted + 0.5))
        carried[:] = np.clip(wanted - block.counts, -1.0, 1.0)

    def _fix_answer(self, rate: float) -> None:
        """Write the next block's answer: the planned one, without its smallest shares if they hardly matter."""
        plan, dusted = self._planner.state, self._dusted
        dusted.allocation[:] = plan.allocation
        drop_small_shares(plan.answer, SMALL_SHARE, dusted.answer)
        chosen: FloatArray = plan.answer
        allowed = rate > 0.0 and is_mix(dusted.answer) and keeps_known_rows(self.model, dusted.answer)
        if allowed and self._planner.value(dusted) >= (1.0 - _NEXT_TO_NOTHING) * rate:
            chosen = dusted.answer
        if is_mix(chosen):  # otherwise the last block's answer stands
            self.block.answer[:] = chosen


def _bound_forecast(start: Start, rate: float) -> float:
    """Pulls from a start until the stop, if each earns `rate`: kept within reason."""
    terms = start.terms
    most = 10.0 * max(terms.expected, terms.weight)
    return float(min(max(1.0 / max(rate, 1e-15), 0.5 * terms.expected), most))
