"""What a table of blocks proves: the averaged stop again, outside the loop, with every number shown.

Used for certificates and their verification. Everything is in kernel units (see `Model`).
"""

from dataclasses import dataclass

import numpy as np

from polyarm._types import FloatArray
from polyarm.certify.blocks import (
    Record,
    Start,
    add_recorded,
    cost_evidence,
    find_thresholds,
    make_start,
    predict_variances,
    row_variance,
    write_block_evidence,
)
from polyarm.certify.evidence import make_evidence
from polyarm.certify.proof import RewardTest
from polyarm.model import Model


@dataclass(frozen=True)
class StartPlan:
    """What was fixed when a start began: its number, which decides its share of delta, the pulls made, and its plan.

    `lam` and `anchor` (K,) as in `certify.blocks.Start`.
    """

    number: int
    begun: float
    lam: FloatArray
    anchor: FloatArray


@dataclass(frozen=True)
class AveragedStanding:
    """A start after its blocks: what it has accumulated, and the thresholds to exceed."""

    model: Model
    start: Start
    reward_threshold: float
    row_floor: float

    @property
    def mix(self) -> FloatArray:
        """The answer: the average over the blocks."""
        return np.asarray(self.start.answer / self.start.terms.weight)

    @property
    def slack(self) -> FloatArray:
        """The estimated slack of every row, from the blocks alone."""
        return np.asarray(self.start.slack / self.start.terms.weight)

    @property
    def cost_threshold(self) -> float:
        """The value that the evidence of every unknown row must reach."""
        return float(self.start.terms.cost_log)

    def cost_evidence(self, row: int, assumed_slack: float = 0.0) -> float:
        """Return the evidence that an unknown row leaves more than this slack."""
        start = self.start
        return float(
            cost_evidence(
                float(start.slack[row] - start.terms.weight * assumed_slack),
                row_variance(start, row, self.model),
                float(start.predicted[row]),
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
        write_block_evidence(self.start, self.row_floor, self.model, evidence)
        return RewardTest(evidence, self.reward_threshold, penalty)


def weigh_blocks(model: Model, share: float, plan: StartPlan, table: Record) -> AveragedStanding:
    """Accumulate the blocks of a start (at least one) and compute its thresholds.

    Args:
        model: The problem.
        share: The share of delta that all starts may spend together.
        plan: What was fixed when the start began.
        table: Its blocks.
    """
    start = make_start(plan.number, share, model.independent, model)
    start.terms.begun = plan.begun
    start.lam[:], start.anchor[:] = plan.lam, plan.anchor
    predict_variances(start, model)
    for k in range(len(table.counts)):
        add_recorded(start, table, k)
    threshold, floor = find_thresholds(start, model)
    return AveragedStanding(model, start, float(threshold), float(floor))
