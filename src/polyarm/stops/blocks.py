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
    count_variants,
    least_answer_evidence,
    make_record,
    make_start,
    make_sums,
    write_block_evidence,
)
from polyarm.certify.evidence import Evidence, witness_value
from polyarm.certify.search import CERTIFIED, UNRESOLVED, Task, descend, search_witness
from polyarm.certify.verdicts import CertifiedRule, keeps_known_rows, refute_all_by_rows
from polyarm.certify.witnesses import add_witness, least_witness, refresh_uses
from polyarm.errors import InvalidInput
from polyarm.estimates import Estimates, expect_spread, mark, settle
from polyarm.model import Model
from polyarm.polytope.linear import is_mix
from polyarm.round import INFEASIBLE, NEVER, NO_ARM, STOPPED, Round
from polyarm.stops.certified import MARGIN_GROWTH, StopState, Watch
from polyarm.tolerances import CERTIFIED_MARGIN

#: The first search may examine this many cells; one that remains unresolved makes the next budget twice as large, up
#: to the rule's. Another block usually makes the proof easier, and is cheaper than a long search.
_FIRST_CELLS, _MOST_DOUBLINGS = 3_000, 20
#: After unresolved searches the least statistic must pass by more, but never by more than this.
_LARGEST_MARGIN = 0.4

#: Witnesses that would hurt a start are looked for from this value of the known ones on: in so many steps downhill,
#: then by a search to this accuracy, in this many cells at most.
_WORTH_LOOKING, _DESCENT_STEPS = 0.3, 20
_RESPONSE_ACCURACY, _RESPONSE_CELLS = 0.1, 8
#: The r that is certified at any time: how often it may be doubled, how exact it is, and the cells of each try.
_R_DOUBLINGS, _R_ACCURACY, _R_CELLS = 20, 0.03, 4_000
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
    handed out in a batch and not told. `variances` (1 + d, K) were expected as it began; the guesses are the explorer's
    (see `estimates.mark`).
    """

    now: BlockNow
    answer: FloatArray
    counts: FloatArray
    left: FloatArray
    waiting: FloatArray
    variances: FloatArray
    kurtoses: FloatArray
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
        variances=np.zeros((1 + d, n_arms)),
        kurtoses=np.zeros((1 + d, n_arms)),
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
    block.now.told = told


@kernel
def close_block(estimates: Estimates, model: Model, block: Block) -> None:
    """Record the block that has just been completed, if there is a start, and room; guess afresh for the next."""
    record, k = block.record, block.now.recorded
    if block.now.n_starts > 0 and k < record.told.size:  # else no start to add to, or (after very many pulls) no room
        record.told[k] = block.now.told
        for a in range(block.counts.size):
            record.answers[k, a] = block.answer[a]
            record.counts[k, a] = block.counts[a]
            for i in range(model.accounts.size):
                record.guesses[k, i, a] = estimates.guesses[i, a]
                record.variances[k, i, a] = block.variances[i, a]
                for n in range(4):
                    record.powers[k, n, i, a] = estimates.powers[n, i, a]
        block.now.recorded = k + 1
    if block.now.told == 0.0:
        settle(estimates, model)
    mark(estimates, model)
    expect_spread(estimates, model, block.variances, block.kurtoses)


class BlocksSaved(NamedTuple):
    """What a saved session keeps of a `BlocksStop`."""

    stop: StopState
    starts: tuple[Start, ...]
    plan: Any
    carried: FloatArray


class BlocksStop(Watch):
    """The stop of the certificate by blocks: looks at the end of each block, and opens the next.

    Args:
        rule: How many cells a search may take.
        round: The round of the exploration that it ends.
        model: The problem.
        block: The block under way.
        share: The share of delta that the starts may spend together.
    """

    def __init__(self, rule: CertifiedRule, round: Round, model: Model, block: Block, share: float) -> None:
        super().__init__(rule, round, model, count_variants(model))
        self.block = block
        self.share = share
        self.starts = tuple(make_start(j, share, model) for j in range(MAX_STARTS))
        self.sums = make_sums(model)
        self._average = np.zeros(model.reward_noise.size)
        round.now.due = 0

    @property
    def begun(self) -> tuple[Start, ...]:
        """The starts that were made."""
        return self.starts[: int(self.block.now.n_starts)]

    def winning_blocks(self) -> tuple[StartPlan, Record] | None:
        """The start that proved the verdict, with the record of its blocks; None while there is none."""
        j, record = int(self.block.now.winner), self.block.record
        if j < 0:
            return None
        start = self.starts[j]
        since = slice(int(start.terms.first), int(self.block.now.recorded))
        table = Record(*(getattr(record, name)[since] for name in Record.__annotations__))
        plan = StartPlan(
            number=j,
            begun=float(start.terms.begun),
            anchor=start.anchor.copy(),
            precision=start.precision.copy(),
            pivots=start.pivots.copy(),
            coarse=start.coarse.copy(),
        )
        return plan, table

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
            self.find_cautious()
            now.no_policy = self.state.now.looks_empty
            if self.state.now.looks_empty and self._is_infeasible():
                now.status = INFEASIBLE
                return
        self.fill_block()
        round.answer[:] = block.answer
        open_block(round.estimates, block)
        now.due = int(now.steps + block.counts.sum())

    def show(self, start: Start, proved: bool = False) -> None:
        """Show a start's test in the round's statistic and threshold: its least statistic over its threshold, and 1."""
        if start.terms.weight > 0.0:
            self.write_reading(float(start.terms.ratio), 1.0, proved)

    def _close(self) -> None:
        """Record the block, and add it to every start."""
        recorded = int(self.block.now.recorded)
        close_block(self.round.estimates, self.model, self.block)
        if self.block.now.recorded > recorded:
            for start in self.begun:
                add_recorded(start, self.model, self.block.record, recorded)

    def write_evidence(self, start: Start) -> None:
        """Write what a start says of every witness."""
        write_block_evidence(start, self.model, self.block.record, float(self.model.r), self.sums, self.evidence)

    def _try_starts(self) -> bool:
        """Test every start with blocks on record; True when one proves its average, which becomes the answer."""
        block = self.block
        if block.now.recorded == MAX_BLOCKS:
            return False  # a certificate could not show blocks that are not on record
        for j, start in enumerate(self.begun):
            if start.terms.weight > 0.0 and self._passes(start):
                self.state.answer[:] = self._average
                block.now.winner = j
                return True
        return False

    def _passes(self, start: Start) -> bool:
        """Whether a start proves its average answer, which is written; notes how near it is."""
        self._average[:] = start.answer / start.terms.weight
        self.write_evidence(start)
        costs = least_answer_evidence(start, self.model)
        value, _ = least_witness(self.evidence, self.state.pool)
        refresh_uses(self.evidence, self.state.pool)
        if _WORTH_LOOKING < value < 1.0:
            value = self.look_for_witness(self.evidence, value)
        start.terms.ratio = min(costs, value)
        least = 1.0 + CERTIFIED_MARGIN
        if not (costs > least and value > least + self.state.now.margin and is_mix(self._average)):  # NaN fails
            return False
        return keeps_known_rows(self.model, self._average) and self._decide()

    def look_for_witness(self, evidence: Evidence, value: float) -> float:
        """Look for witnesses of smaller value than the least in the pool, and remember them; returns the least value.

        Downhill from the nearest one known and from the optimum of the estimates, then by a short search.
        """
        pool, penalty = self.state.pool, self.penalty()
        _, nearest = least_witness(evidence, pool)
        origins = [] if nearest < 0 else [pool.mixes[nearest].copy()]
        for origin in [*origins, self.state.optimum]:
            self.witness[:] = origin
            found = float(descend(evidence, penalty, _DESCENT_STEPS, self.searching, self.witness))
            if found < value:
                value = found
                add_witness(pool, self.witness)
        task = Task(value, _RESPONSE_ACCURACY, 0.0, penalty, _RESPONSE_CELLS)
        search_witness(evidence, task, self.searching, self.witness)
        found = float(witness_value(evidence, self.witness))
        if found < value:
            add_witness(pool, self.witness)
        return min(value, found)

    def _cells(self) -> int:
        doublings = min(int(self.state.now.unresolved), _MOST_DOUBLINGS)
        return min(self.rule.max_cells, _FIRST_CELLS << doublings)

    def _decide(self) -> bool:
        """Search for a witness against a start that has beaten all known ones."""
        outcome = self.search(self.rule.decide(1.0, self._cells(), self.penalty()))
        if outcome == UNRESOLVED:
            self.state.now.margin = min(self.state.now.margin + MARGIN_GROWTH, _LARGEST_MARGIN)
        return outcome == CERTIFIED

    def certify_now(self) -> tuple[int, float, FloatArray] | None:
        """Find the smallest tolerance at which some start proves its average now: its number, r, and that average.

        The events behind a proof do not depend on r, so this costs no delta, however often it is asked.
        """
        best: tuple[int, float, FloatArray] | None = None
        for j, start in enumerate(self.begun):
            if start.terms.weight > 0.0:
                r = self._smallest_r(start)
                if r is not None and (best is None or r < best[1]):
                    best = j, r, np.asarray(start.answer / start.terms.weight)
        return best

    def _smallest_r(self, start: Start) -> float | None:
        """The smallest r at which a start proves its average, to some per cent; None if there is none."""
        if not self._is_safe(start):
            return None
        # Never the problem's own r to the last digit, which stands for a proof that the stop has found by itself.
        low, high = 0.0, float(np.nextafter(self.model.r, np.inf))
        for _ in range(_R_DOUBLINGS):
            if self._proves_within(start, high):
                break
            low, high = high, 2.0 * high
        else:
            return None
        while high - low > _R_ACCURACY * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._proves_within(start, middle) else (middle, high)
        return high

    def _is_safe(self, start: Start) -> bool:
        """Whether a start proves that its average keeps every constraint."""
        if not start.terms.weight > 0.0:
            return False
        average = np.asarray(start.answer / start.terms.weight)
        costs = least_answer_evidence(start, self.model)
        return bool(costs > 1.0 + CERTIFIED_MARGIN and is_mix(average) and keeps_known_rows(self.model, average))

    def _proves_within(self, start: Start, r: float) -> bool:
        """Whether every witness of a start's average is refuted at this tolerance."""
        write_block_evidence(start, self.model, self.block.record, r, self.sums, self.evidence)
        value, _ = least_witness(self.evidence, self.state.pool)
        if not value > 1.0 + CERTIFIED_MARGIN:
            return False
        task = self.rule.decide(1.0, _R_CELLS, self.penalty())
        outcome, _, _ = search_witness(self.evidence, task, self.searching, np.zeros_like(self.witness))
        return bool(outcome == CERTIFIED)

    def accept(self, number: int, r: float) -> None:
        """End the exploration with the average of a start as the answer, if the data prove it within this tolerance."""
        if not (0 <= number < len(self.begun) and self._is_safe(self.starts[number])) or not self._proves_within(
            self.starts[number], r
        ):
            raise InvalidInput(f"start {number}: the outcomes told so far do not prove its mix within r = {r:g}")
        start = self.starts[number]
        self.state.answer[:] = start.answer / start.terms.weight
        self.block.now.winner = number
        self.round.now.status = STOPPED
        self.round.now.pending = NO_ARM

    def _is_infeasible(self) -> bool:
        """Whether some start refutes every mix by its rows alone: the same events as the proof of an answer."""
        task = self.rule.decide(1.0, self._cells(), 1.0)
        for j, start in enumerate(self.begun):
            if start.terms.weight > 0.0:
                self.write_evidence(start)
                if refute_all_by_rows(self.evidence, task, self.searching):
                    self.block.now.winner = j
                    return True
        return False
