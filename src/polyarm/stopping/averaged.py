"""The averaged stop: an answer is given at the end of a block, once the blocks since some start prove it.

Keeps the record of blocks and the running starts, and tests them; `statistics.averaged` has the mathematics. What it
needs from its explorer: before each block an answer and counts, fixed; and every outcome of the block.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.estimates import Estimates
from polyarm.geometry.linear import is_mix
from polyarm.problem import Model
from polyarm.statistics.averaged import (
    MAX_STARTS,
    N_THRESHOLDS,
    REWARD_THRESHOLD,
    ROW_FLOOR,
    Levels,
    Starts,
    add_block,
    least_cost_evidence,
    make_starts,
    write_evidence,
    write_thresholds,
)
from polyarm.statistics.branch import CERTIFIED, WITNESS, search_witness
from polyarm.statistics.witnesses import add_witness, least_witness
from polyarm.stopping.certified import (
    CELLS,
    MARGIN_GROWTH,
    SEARCHES,
    UNRESOLVED_SEARCHES,
    CertifiedRule,
    CertifiedState,
    CertifiedWork,
)
from polyarm.tolerances import CERTIFIED_MARGIN, KNOWN_ROW

#: Blocks that the record holds, from the first start on; each is 4 % of all pulls at least, more when it fills up.
MAX_BLOCKS = 200

#: The first search may examine this many cells; one that remains unresolved makes the next budget twice as large, up
#: to the rule's. Another block usually makes the proof easier, and is cheaper than a long search.
_FIRST_CELLS, _MOST_DOUBLINGS = 600, 20

#: After unresolved searches the least statistic must pass by more, but never by more than this.
_LARGEST_MARGIN = 0.1

# Entries of `BlockState.tallies`.
N_STARTS = 0
N_BLOCKS = 1  # complete blocks on record
WINNER = 2  # the start that proved the answer, or -1
N_TALLIES = 3


class Record(NamedTuple):
    """Complete blocks, M of them at most: answers, counts, mean rewards (M, K) and mean rows (M, d, K).

    `told` (M,) is the number of outcomes that were in when the block was fixed.
    """

    told: FloatArray
    answers: FloatArray
    counts: FloatArray
    means: FloatArray
    rows: FloatArray


class BlockState(NamedTuple):
    """The block under way, those on record, and the starts.

    `answer` and `counts` (K,) were fixed before its first pull, when `told` (1,) outcomes were in; `left` (K,) has not
    been handed out, `waiting` (K,) was handed out in a batch and not told; `reward_sums` and `cost_sums` are the
    explorer's sums as the block began. `first` (J,) is the first block on record that counts for each start;
    `thresholds` (J, 2) and `ratios` (J,), the least statistic over its threshold, are those of the last test.
    """

    answer: FloatArray
    counts: FloatArray
    told: FloatArray
    left: FloatArray
    waiting: FloatArray
    reward_sums: FloatArray
    cost_sums: FloatArray
    record: Record
    starts: Starts
    first: IntArray
    thresholds: FloatArray
    ratios: FloatArray
    tallies: IntArray


class BlockWork(NamedTuple):
    """Scratch: the means of the block that has just ended, and the centre of a reward test."""

    means: FloatArray
    rows: FloatArray
    centre: FloatArray


def make_block_state(model: Model) -> BlockState:
    """Allocate a state before the first block."""
    d, n_arms = model.known_rows.shape
    tallies = np.zeros(N_TALLIES, dtype=np.int64)
    tallies[WINNER] = -1
    return BlockState(
        answer=np.zeros(n_arms),
        counts=np.zeros(n_arms),
        told=np.zeros(1),
        left=np.zeros(n_arms),
        waiting=np.zeros(n_arms),
        reward_sums=np.zeros(n_arms),
        cost_sums=np.zeros((d, n_arms)),
        record=Record(
            np.zeros(MAX_BLOCKS),
            np.zeros((MAX_BLOCKS, n_arms)),
            np.zeros((MAX_BLOCKS, n_arms)),
            np.zeros((MAX_BLOCKS, n_arms)),
            np.zeros((MAX_BLOCKS, d, n_arms)),
        ),
        starts=make_starts(n_arms, d),
        first=np.zeros(MAX_STARTS, dtype=np.int64),
        thresholds=np.zeros((MAX_STARTS, N_THRESHOLDS)),
        ratios=np.zeros(MAX_STARTS),
        tallies=tallies,
    )


def make_block_work(model: Model) -> BlockWork:
    """Allocate the scratch."""
    d, n_arms = model.known_rows.shape
    return BlockWork(np.zeros(n_arms), np.zeros((d, n_arms)), np.zeros(n_arms))


@kernel
def take_next(block: BlockState) -> int:
    """Hand out the arm of which the largest part of its count is left; -1 when all have been."""
    arm = -1
    for a in range(block.left.size):
        if block.left[a] > 0.0 and (arm < 0 or block.left[a] * block.counts[arm] > block.left[arm] * block.counts[a]):
            arm = a
    if arm >= 0:
        block.left[arm] -= 1.0
    return arm


@kernel
def open_block(estimates: Estimates, block: BlockState) -> None:
    """Begin the block whose answer and counts have been written."""
    block.told[0] = 0.0
    for a in range(block.counts.size):
        block.told[0] += estimates.pulls[a]
        block.left[a] = block.counts[a]
        block.reward_sums[a] = estimates.reward_sums[a]
        for i in range(block.cost_sums.shape[0]):
            block.cost_sums[i, a] = estimates.cost_sums[i, a]


@kernel
def close_block(estimates: Estimates, model: Model, block: BlockState, work: BlockWork) -> None:
    """Record the block that has just been completed and add it to every start."""
    if block.tallies[N_STARTS] == 0 or block.tallies[N_BLOCKS] == MAX_BLOCKS:
        return  # nothing to add to, or (after more pulls than anyone makes) no room to prove anything more
    d = model.known.size
    for a in range(block.counts.size):
        work.means[a] = (estimates.reward_sums[a] - block.reward_sums[a]) / block.counts[a]
        for i in range(d):
            mean = (estimates.cost_sums[i, a] - block.cost_sums[i, a]) / block.counts[a] - model.bounds[i]
            work.rows[i, a] = model.known_rows[i, a] if model.known[i] else mean
    k = block.tallies[N_BLOCKS]
    block.record.told[k] = block.told[0]
    block.record.answers[k] = block.answer
    block.record.counts[k] = block.counts
    block.record.means[k] = work.means
    block.record.rows[k] = work.rows
    block.tallies[N_BLOCKS] = k + 1
    for j in range(block.tallies[N_STARTS]):
        add_block(j, block.counts, block.answer, work.means, work.rows, block.starts)


@kernel
def keeps_known_rows(known: BoolArray, rows: FloatArray, mix: FloatArray) -> bool:
    """Whether a mix satisfies the constraints that are known exactly."""
    for i in range(known.size):
        if known[i]:
            excess = 0.0
            for a in range(mix.size):
                excess += rows[i, a] * mix[a]
            if not excess <= KNOWN_ROW:
                return False
    return True


@kernel
def try_starts(
    rule: CertifiedRule,
    levels: Levels,
    model: Model,
    block: BlockState,
    certified: CertifiedState,
    work: CertifiedWork,
    block_work: BlockWork,
) -> bool:
    """Test every start with blocks on record; True when one proves its average, which becomes the answer."""
    evidence, centre = work.evidence, block_work.centre
    if block.tallies[N_BLOCKS] == MAX_BLOCKS:
        return False  # blocks that are not on record could not be shown to anyone
    for j in range(block.tallies[N_STARTS]):
        starts = block.starts
        if starts.weight[j] == 0.0:
            continue
        write_thresholds(j, levels, model, starts, block.thresholds[j])
        threshold = block.thresholds[j, REWARD_THRESHOLD]
        r = write_evidence(j, model.r, block.thresholds[j, ROW_FLOOR], model, starts, evidence, centre)
        value, _ = least_witness(evidence, centre, r, certified.pool)
        costs, rewards = least_cost_evidence(j, levels, model, starts), value / threshold
        block.ratios[j] = min(costs, rewards)
        least = 1.0 + CERTIFIED_MARGIN + certified.margin[0]
        for a in range(centre.size):
            work.witness[a] = starts.answer[j, a] / starts.weight[j]
        if not (costs > least and rewards > least and is_mix(work.witness)):  # nothing that is no number passes
            continue
        if not keeps_known_rows(model.known, model.known_rows, work.witness):
            continue
        certified.tallies[SEARCHES] += 1
        budget = min(rule.max_cells, _FIRST_CELLS << min(certified.tallies[UNRESOLVED_SEARCHES], _MOST_DOUBLINGS))
        outcome, cells, _ = search_witness(
            evidence, centre, r, threshold, 0.0, threshold, rule.penalty, budget, work.arena, work.witness
        )
        certified.tallies[CELLS] += cells
        if outcome == CERTIFIED:
            for a in range(centre.size):
                certified.answer[a] = starts.answer[j, a] / starts.weight[j]
            block.tallies[WINNER] = j
            return True
        if outcome == WITNESS:
            add_witness(certified.pool, work.witness)
        else:
            certified.tallies[UNRESOLVED_SEARCHES] += 1
            certified.margin[0] = min(certified.margin[0] + MARGIN_GROWTH, _LARGEST_MARGIN)
    return False
