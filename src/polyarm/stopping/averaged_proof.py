"""What a table of blocks proves: the averaged stop once more, outside the loop, with every number laid open.

Used for certificates and their verification. Everything is in kernel units (see `Model`).
"""

from dataclasses import dataclass

import numpy as np

from polyarm._types import FloatArray
from polyarm.problem import Model
from polyarm.statistics.averaged import (
    N_THRESHOLDS,
    REWARD_THRESHOLD,
    ROW_FLOOR,
    Levels,
    Starts,
    add_block,
    cost_evidence,
    make_starts,
    predict_variances,
    row_variance,
    write_evidence,
    write_thresholds,
)
from polyarm.statistics.joint import make_evidence
from polyarm.stopping.averaged import N_BLOCKS, WINNER, BlockState, Record
from polyarm.stopping.proof import RewardTest


@dataclass(frozen=True)
class Start:
    """What was fixed when a start began: its number (which delta it may spend), the pulls made by then, and its plan.

    `lam` and `anchor` (K,) as in `statistics.averaged.Starts`.
    """

    number: int
    begun: float
    lam: FloatArray
    anchor: FloatArray


def winning_start(block: BlockState) -> tuple[Start, Record]:
    """Return the start that proved the answer, with the record of its blocks."""
    j = int(block.tallies[WINNER])
    starts, since = block.starts, slice(int(block.first[j]), int(block.tallies[N_BLOCKS]))
    start = Start(j, float(starts.begun[j]), starts.lam[j].copy(), starts.anchor[j].copy())
    return start, Record(*(array[since] for array in block.record))


@dataclass(frozen=True)
class AveragedStanding:
    """Where a start stands after its blocks: what was accumulated, and the thresholds to exceed."""

    model: Model
    levels: Levels
    number: int
    starts: Starts
    reward_threshold: float
    row_floor: float

    @property
    def mix(self) -> FloatArray:
        """The answer: the average over the blocks."""
        return np.asarray(self.starts.answer[self.number] / self.starts.weight[self.number])

    @property
    def slack(self) -> FloatArray:
        """The estimated slack of every row, from the blocks alone."""
        return np.asarray(self.starts.slack[self.number] / self.starts.weight[self.number])

    @property
    def cost_threshold(self) -> float:
        """What the evidence of every unknown row must reach."""
        return float(self.levels.cost_log[self.number])

    def cost_evidence(self, row: int, assumed_slack: float = 0.0) -> float:
        """Return the evidence that an unknown row leaves more than this slack."""
        j, starts = self.number, self.starts
        return float(
            cost_evidence(
                starts.slack[j, row] - starts.weight[j] * assumed_slack,
                row_variance(j, row, self.model, starts),
                starts.predicted[j, row],
                self.cost_threshold,
            )
        )

    def slack_low(self, row: int) -> float:
        """Return the largest slack for which the cost test of an unknown row passes: valid on the same event.

        Evidence that the slack is at least x holds for all x at once, and falls with x.
        """
        low = high = float(self.slack[row])
        step = max(abs(low), 1e-12)
        while self.cost_evidence(row, low) < self.cost_threshold:
            low, step = low - step, 2.0 * step
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            passes = self.cost_evidence(row, middle) >= self.cost_threshold
            low, high = (middle, high) if passes else (low, middle)
        return low

    def reward_test(self, penalty: float) -> RewardTest:
        """Return the reward test of the answer."""
        evidence = make_evidence(self.model.reward_noise.size, self.model.known.size)
        centre = np.zeros(self.model.reward_noise.size)
        r = write_evidence(self.number, self.model.r, self.row_floor, self.model, self.starts, evidence, centre)
        return RewardTest(evidence, centre, float(r), self.reward_threshold, penalty)


def weigh_blocks(model: Model, levels: Levels, start: Start, table: Record) -> AveragedStanding:
    """Accumulate the blocks of a start (at least one) and work out its thresholds."""
    j, starts = start.number, make_starts(model.reward_noise.size, model.known.size)
    starts.begun[j], starts.lam[j], starts.anchor[j] = start.begun, start.lam, start.anchor
    predict_variances(j, model, starts)
    for k in range(len(table.counts)):
        add_block(j, table.counts[k], table.answers[k], table.means[k], table.rows[k], starts)
    thresholds = np.zeros(N_THRESHOLDS)
    write_thresholds(j, levels, model, starts, thresholds)
    return AveragedStanding(model, levels, j, starts, float(thresholds[REWARD_THRESHOLD]), float(thresholds[ROW_FLOOR]))
