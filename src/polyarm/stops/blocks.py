"""Blocks of pulls, whose answer and counts are fixed before their first pull, and the stop that tests their sum.

`certify.blocks` has the mathematics. The proof needs two things of the explorer: the answer and counts before each
block, and every outcome of the block.
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray
from polyarm.certify.block_proof import StartPlan
from polyarm.certify.blocks import (
    MAX_STARTS,
    Record,
    Start,
    add_recorded,
    find_thresholds,
    least_cost_evidence,
    make_record,
    make_start,
    write_block_evidence,
)
from polyarm.certify.evidence import Evidence
from polyarm.certify.search import CERTIFIED, UNRESOLVED
from polyarm.certify.verdicts import CertifiedRule, keeps_known_rows
from polyarm.certify.witnesses import Pool, least_witness
from polyarm.estimates import Estimates
from polyarm.model import Model
from polyarm.polytope.linear import is_mix
from polyarm.round import INFEASIBLE, NEVER, STOPPED, Round
from polyarm.stops.certified import MARGIN_GROWTH, CertifiedStop, StopState
from polyarm.tolerances import CERTIFIED_MARGIN

#: The first search may examine this many cells; one that remains unresolved makes the next budget twice as large, up
#: to the rule's. Another block usually makes the proof easier, and is cheaper than a long search.
_FIRST_CELLS, _MOST_DOUBLINGS = 600, 20
#: After unresolved searches the least statistic must pass by more, but never by more than this.
_LARGEST_MARGIN = 0.1

#: Blocks that the record holds, from the first start on; each is at least 4 % of all pulls, more as the record fills
#: up.
MAX_BLOCKS = 200


class BlockNow(Scalars):
    """Where the blocks stand.

    `told` outcomes were known when the block under way was fixed; `recorded` blocks are complete; `n_starts` starts
    were made; `winner` is the start that proved the answer, or -1.
    """

    told: float
    recorded: int
    n_starts: int
    winner: int


@struct
class Block:
    """The block under way, and those on record.

    `answer` and `counts` (K,) were fixed before its first pull; `left` (K,) has not been handed out; `waiting` (K,) was
    handed out in a batch and not told; `reward_sums` and `cost_sums` are the explorer's sums as the block began.
    """

    now: BlockNow
    answer: FloatArray
    counts: FloatArray
    left: FloatArray
    waiting: FloatArray
    reward_sums: FloatArray
    cost_sums: FloatArray
    record: Record


def make_block(model: Model) -> Block:
    """Allocate what stands before the first block."""
    d, n_arms = model.known_rows.shape
    return Block(
        now=BlockNow(winner=-1),
        answer=np.zeros(n_arms),
        counts=np.zeros(n_arms),
        left=np.zeros(n_arms),
        waiting=np.zeros(n_arms),
        reward_sums=np.zeros(n_arms),
        cost_sums=np.zeros((d, n_arms)),
        record=make_record(MAX_BLOCKS, n_arms, d),
    )


@kernel
def take_next(block: Block) -> int:
    """Hand out the arm with the largest part of its count left; -1 if none is left."""
    left, counts, arm = block.left, block.counts, -1
    for a in range(left.size):
        if left[a] > 0.0 and (arm < 0 or left[a] * counts[arm] > left[arm] * counts[a]):
            arm = a
    if arm >= 0:
        left[arm] -= 1.0
    return arm


@kernel
def open_block(estimates: Estimates, block: Block) -> None:
    """Begin the block whose answer and counts have been written."""
    told = 0.0
    for a in range(block.counts.size):
        told += estimates.pulls[a]
        block.left[a] = block.counts[a]
        block.reward_sums[a] = estimates.reward_sums[a]
        for i in range(block.cost_sums.shape[0]):
            block.cost_sums[i, a] = estimates.cost_sums[i, a]
    block.now.told = told


@kernel
def close_block(estimates: Estimates, model: Model, block: Block) -> None:
    """Record the block that has just been completed, if there is a start, and room."""
    record, k = block.record, block.now.recorded
    if block.now.n_starts == 0 or k == block.record.told.size:
        return  # no start to add to, or (after more pulls than anyone makes) no room
    record.told[k] = block.now.told
    for a in range(block.counts.size):
        record.answers[k, a] = block.answer[a]
        record.counts[k, a] = block.counts[a]
        record.means[k, a] = (estimates.reward_sums[a] - block.reward_sums[a]) / block.counts[a]
        for i in range(model.known.size):
            mean = (estimates.cost_sums[i, a] - block.cost_sums[i, a]) / block.counts[a] - model.bounds[i]
            record.rows[k, i, a] = model.known_rows[i, a] if model.known[i] else mean
    block.now.recorded = k + 1


@kernel
def weigh_start(
    start: Start, model: Model, pool: Pool, evidence_out: Evidence, answer_out: FloatArray
) -> tuple[float, float]:
    """Write a start's standing, evidence and average answer; returns the least ratios of costs and of rewards.

    Each is a statistic over its threshold, against the witnesses known: both must exceed one.
    """
    terms = start.terms
    threshold, floor = find_thresholds(start, model)
    write_block_evidence(start, floor, model, evidence_out)
    value, _ = least_witness(evidence_out, pool)
    costs, rewards = least_cost_evidence(start, model), value / threshold
    terms.reward_threshold, terms.row_floor, terms.ratio = threshold, floor, min(costs, rewards)
    for a in range(answer_out.size):
        answer_out[a] = start.answer[a] / terms.weight
    return costs, rewards


class BlocksSaved(NamedTuple):
    """What a saved session keeps of a `BlocksStop`."""

    stop: StopState
    starts: tuple[Start, ...]
    plan: Any
    carried: FloatArray


class BlocksStop(CertifiedStop):
    """The averaged certificate's stop: looks at the end of each block, and opens the next.

    Args:
        rule: Settings of the pooled certificate, which keeps a part of delta for infeasibility.
        round: The round of the exploration that it ends.
        model: The problem.
        block: The block under way.
        share: The share of delta that the starts may spend together.
    """

    def __init__(self, rule: CertifiedRule, round: Round, model: Model, block: Block, share: float) -> None:
        super().__init__(rule, round, model)
        self.block = block
        self.starts = tuple(make_start(j, share, model.independent, model) for j in range(MAX_STARTS))
        self._average = np.zeros(model.reward_noise.size)
        round.now.due = 0

    @property
    def begun(self) -> tuple[Start, ...]:
        """The starts that were made."""
        return self.starts[: int(self.block.now.n_starts)]

    def winning_blocks(self) -> tuple[StartPlan, Record] | None:
        """The start that proved the answer, with the record of its blocks; None while there is none."""
        j, record = int(self.block.now.winner), self.block.record
        if j < 0:
            return None
        start = self.starts[j]
        since = slice(int(start.terms.first), int(self.block.now.recorded))
        table = Record(
            record.told[since], record.answers[since], record.counts[since], record.means[since], record.rows[since]
        )
        return StartPlan(j, float(start.terms.begun), start.lam.copy(), start.anchor.copy()), table

    @abstractmethod
    def fill_block(self) -> None:
        """Write answer and counts of the next block."""

    def look(self) -> None:
        """Close the block that is complete, test, and open the next one."""
        round, block, now = self.round, self.block, self.round.now
        now.due = NEVER
        if now.steps > 0:
            self._close()
            if self._try_starts():
                self.show(self.starts[int(block.now.winner)], proved=True)
                now.status = STOPPED
                return
            self.weigh()
            if self.review():
                now.status = INFEASIBLE
                return
            now.no_policy = self.state.now.looks_empty
        self.fill_block()
        round.answer[:] = block.answer
        open_block(round.estimates, block)
        now.due = int(now.steps + block.counts.sum())

    def show(self, start: Start, proved: bool = False) -> None:
        """Show a start's test in the round's statistic and threshold."""
        if start.terms.weight > 0.0:
            self.write_reading(float(start.terms.ratio), float(start.terms.reward_threshold), proved)

    def _close(self) -> None:
        """Record the block, and add it to every start."""
        recorded = int(self.block.now.recorded)
        close_block(self.round.estimates, self.model, self.block)
        if self.block.now.recorded > recorded:
            for start in self.begun:
                add_recorded(start, self.block.record, recorded)

    def _try_starts(self) -> bool:
        """Test every start with blocks on record; True when one proves its average, which becomes the answer."""
        block, work = self.block, self.work
        if block.now.recorded == MAX_BLOCKS:
            return False  # a certificate could not show blocks that are not on record
        for j, start in enumerate(self.begun):
            if start.terms.weight == 0.0:
                continue
            costs, rewards = weigh_start(start, self.model, self.state.pool, work.evidence, self._average)
            least = 1.0 + CERTIFIED_MARGIN + self.state.now.margin
            if not (costs > least and rewards > least and is_mix(self._average)):  # NaN fails
                continue
            if keeps_known_rows(self.model, self._average) and self._decide(start):
                self.state.answer[:] = self._average
                block.now.winner = j
                return True
        return False

    def _decide(self, start: Start) -> bool:
        """Search for a witness against a start that has beaten all known ones."""
        doublings = min(int(self.state.now.unresolved), _MOST_DOUBLINGS)
        budget = min(self.rule.max_cells, _FIRST_CELLS << doublings)
        outcome = self.search(self.rule.decide(start.terms.reward_threshold, budget))
        if outcome == UNRESOLVED:
            self.state.now.margin = min(self.state.now.margin + MARGIN_GROWTH, _LARGEST_MARGIN)
        return outcome == CERTIFIED
