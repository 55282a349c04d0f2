"""The stops that plan: they choose the next pulls so that the proof comes as early as possible.

Allocation and answer are planned together against the witnesses met so far. `PlannedBlocks` plans the pulls that remain
since a start (`planner.block_planner`); a block's answer and counts are fixed beforehand. `PooledStop` plans for the
thresholds that the test will face at the time of the stop (`planner.planner`).
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._types import FloatArray
from polyarm.certify.blocks import begin
from polyarm.certify.constants import BLOCK_GROWTH, START_AT
from polyarm.certify.evidence import make_evidence
from polyarm.certify.verdicts import CertifiedRule, keeps_known_rows
from polyarm.certify.witnesses import least_witness
from polyarm.model import Model
from polyarm.planner.block_planner import BlockPlanner
from polyarm.planner.planner import PlanState, PooledPlanner
from polyarm.polytope.linear import drop_small_shares, is_mix
from polyarm.round import Round, schedule_next
from polyarm.stops.blocks import MAX_BLOCKS, Block, BlocksSaved, BlocksStop
from polyarm.stops.certified import CertifiedStop, StopState

#: Pulls grow by this share between plans.
_PLAN_GROWTH = 0.06
#: Blocks are smaller when the least statistic is near its threshold, since a proof is noticed only at the end of a
#: block, and larger when the record of blocks is nearly full.
_NEAR, _LAST_GROWTH = 0.85, 0.015
_NEARLY_FULL, _FAST_GROWTH = 0.8, 0.4
#: Pulls of each arm in the first block, and in the smallest of the others on average.
_FIRST_COUNT = 4.0
_SMALLEST_BLOCK = 2.0
#: The first start needs this many pulls per arm; a later one this many times the pulls at the last.
_LEAST_START = 4.0
_RESTART_AT = 4.0
#: While no mix seems to satisfy the constraints, the first start waits for this many pulls per arm.
_EMPTY_START = 12.0
#: What is sampled, and what is answered, keep this much of what they were, once so many pulls per arm were made; this
#: much of what is sampled is spread evenly. Variances are harmonic in the counts, so jumps are dear.
_KEPT_ALLOCATION, _KEPT_ANSWER, _SETTLING = 0.85, 0.5, 14.0
_EVEN = 0.1
#: Smaller shares of a block's answer are left out.
_DUST = 2e-4


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
        self._planner = PooledPlanner(rule.penalty, self.scene, self.climbing, self.searching, round.allocation)
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
    """The stop of the certificate by blocks, which plans the blocks."""

    def __init__(self, rule: CertifiedRule, round: Round, model: Model, block: Block, share: float) -> None:
        super().__init__(rule, round, model, block, share)
        self._planner = BlockPlanner(model, round.estimates, self.state.pool, share, self.starts, block.record)
        self._foreseen = make_evidence(model.reward_noise.size, model.known.size, self.evidence.bases.shape[1])
        self._carried = np.zeros(model.reward_noise.size)
        self.saved = BlocksSaved(self.state, self.starts, self._planner.state, self._carried)

    def expected_stop(self) -> float | None:
        """The pulls at which the nearest start is expected to prove its answer."""
        return float(self._planner.state.now.expected_stop)

    def fill_block(self) -> None:
        """Plan, begin a start when it is worth one, and fix the next block."""
        steps = float(self.round.now.steps)
        block = self.block
        if steps == 0.0:
            block.counts[:], block.answer[:] = _FIRST_COUNT, 1.0 / block.answer.size
            return
        plan = self._planner.state
        if self.state.now.looks_empty:
            # Nothing to plan for: sample evenly until some mix fits, or it is proved that none does.
            plan.allocation[:] = 1.0 / plan.allocation.size
            plan.answer[:] = self.state.optimum
            plan.now.next_plan = 0.0
        elif steps >= plan.now.next_plan:
            plan.now.next_plan = schedule_next(int(steps), _PLAN_GROWTH)
            self._planner.look(self.round.estimates.guesses)
            cautious = self.state.cautious if self.state.now.has_cautious else None
            self._planner.replan(int(steps), cautious, len(self.begun))
            self._respond(int(plan.now.nearest))
        if not self.state.now.looks_empty and plan.now.nearest >= 0:
            self.show(self.starts[int(plan.now.nearest)])
        self._follow(steps)
        self._fix_answer()
        self._consider_start(steps)
        self._fix_counts(steps)

    def _follow(self, steps: float) -> None:
        """Let what is sampled and answered follow the plan slowly."""
        plan, allocation, settled = (
            self._planner.state,
            self.round.allocation,
            steps >= _SETTLING * self.block.answer.size,
        )
        kept, answered = (_KEPT_ALLOCATION, _KEPT_ANSWER) if settled else (0.0, 0.0)
        aim = (1.0 - _EVEN) * plan.allocation + _EVEN / allocation.size
        allocation[:] = kept * allocation + (1.0 - kept) * aim
        plan.answer[:] = answered * self.block.answer + (1.0 - answered) * plan.answer

    def _respond(self, nearest: int) -> None:
        """Look for the witness that would hurt the plan most, and remember it."""
        self._planner.foresee(nearest, self._foreseen)
        value, _ = least_witness(self._foreseen, self.state.pool)
        if value > 1e-12:
            self.look_for_witness(self._foreseen, value)

    def _consider_start(self, steps: float) -> None:
        """Begin a start if the plan is worth one: first when enough is known, again when much more is."""
        block, j, n_arms = self.block, len(self.begun), self.block.answer.size
        empty = bool(self.state.now.looks_empty)
        fresh = steps * (1.0 / START_AT - 1.0) if empty else float(self._planner.state.now.fresh)
        if j == len(self.starts) or steps < START_AT * (steps + fresh):
            return
        if j == 0 and steps < (_EMPTY_START if empty else _LEAST_START) * n_arms:
            return
        if j > 0 and steps < _RESTART_AT * self.starts[j - 1].terms.begun:
            return
        start, allocation = self.starts[j], self.round.allocation
        guesses = self.round.estimates.guesses
        begin(start, self.model, fresh, allocation, block.answer, block.variances, guesses)
        start.terms.begun, start.terms.first = steps, block.now.recorded
        start.terms.expected = start.terms.forecast = fresh
        block.now.n_starts = j + 1

    def _fix_counts(self, steps: float) -> None:
        """Write the counts of the next block."""
        block, carried, n_arms = self.block, self._carried, self.block.counts.size
        growth = BLOCK_GROWTH
        if any(start.terms.ratio > _NEAR for start in self.begun):
            growth = _LAST_GROWTH
        if block.now.recorded > _NEARLY_FULL * MAX_BLOCKS:
            growth = _FAST_GROWTH
        size = max(_SMALLEST_BLOCK * n_arms, math.floor(growth * steps))
        wanted = self.round.allocation * size + carried
        block.counts[:] = np.maximum(1.0, np.floor(wanted + 0.5))
        carried[:] = np.clip(wanted - block.counts, -1.0, 1.0)

    def _fix_answer(self) -> None:
        """Write the next block's answer: the planned one, without dust if that keeps the known rows."""
        planned = self._planner.state.answer
        dusted: FloatArray = np.zeros_like(planned)
        drop_small_shares(planned, _DUST, dusted)
        for answer in (dusted, planned):
            if is_mix(answer) and keeps_known_rows(self.model, answer):
                self.block.answer[:] = answer
                return  # otherwise the last block's answer stands
