"""What a table of blocks proves: the stop by blocks again, outside the loop, with every number shown.

Used for certificates and their verification. Everything is in kernel units (see `Model`).
"""

from dataclasses import dataclass

import numpy as np

from polyarm._types import FloatArray, IntArray
from polyarm.certify.blocks import (
    Record,
    Start,
    add_recorded,
    answer_evidence,
    count_variants,
    make_start,
    make_sums,
    settle_priors,
    write_block_evidence,
)
from polyarm.certify.evidence import Evidence, make_evidence
from polyarm.model import Model


@dataclass(frozen=True)
class StartPlan:
    """What was fixed when a start began: its number, which decides its share of delta, the pulls made, and its plan.

    `anchor` (K,), `precision`, `pivots` and `coarse` (1 + d, K) as in `certify.blocks.Start`.
    """

    number: int
    begun: float
    anchor: FloatArray
    precision: FloatArray
    pivots: FloatArray
    coarse: IntArray


@dataclass(frozen=True)
class BlocksStanding:
    """A start after its blocks: what it has accumulated, and the blocks."""

    model: Model
    start: Start
    table: Record

    @property
    def mix(self) -> FloatArray:
        """The answer: the average over the blocks."""
        return np.asarray(self.start.answer / self.start.terms.weight)

    @property
    def slack(self) -> FloatArray:
        """The estimated slack of every row, from the blocks alone."""
        return np.asarray(self.start.slack / self.start.terms.weight)

    @property
    def levels(self) -> dict[str, float]:
        """What the logarithm of the evidence of each claim must reach."""
        terms = self.start.terms
        return {
            "answer": float(terms.answer_level),
            "reward": float(terms.reward_level),
            "row": float(terms.row_level),
        }

    def answer_evidence(self, row: int, assumed_slack: float = 0.0) -> float:
        """Return the logarithm of the evidence that an unknown row leaves more than this slack at the answer."""
        start = self.start
        statistic = float(start.slack[row] - start.terms.weight * assumed_slack)
        return float(answer_evidence(start, self.model, row, statistic))

    def slack_low(self, row: int) -> float:
        """Return the largest slack for which the test of an unknown row passes: valid on the same event.

        Evidence that the slack is at least x holds for all x at once, and falls with x. Minus infinity where no slack
        is proved at all: nothing is known of some arm's costs.
        """
        level = self.levels["answer"]
        low = high = float(self.slack[row])
        step = max(abs(low), 1e-12)
        for _ in range(200):
            if self.answer_evidence(row, low) >= level:
                break
            low, step = low - step, 2.0 * step
        else:
            return -np.inf
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            passes = self.answer_evidence(row, middle) >= level
            low, high = (middle, high) if passes else (low, middle)
        return low

    def evidence(self, r: float | None = None) -> Evidence:
        """Return what the blocks say of every witness, by default at the problem's own r."""
        made = make_evidence(self.model.reward_noise.size, self.model.known.size, count_variants(self.model))
        tolerance = float(self.model.r if r is None else r)
        write_block_evidence(self.start, self.model, self.table, tolerance, make_sums(self.model), made)
        return made


def weigh_blocks(model: Model, share: float, plan: StartPlan, table: Record) -> BlocksStanding:
    """Accumulate the blocks of a start (at least one).

    Args:
        model: The problem.
        share: The share of delta that all starts may spend together.
        plan: What was fixed when the start began.
        table: Its blocks.
    """
    start = make_start(plan.number, share, model)
    start.terms.begun = plan.begun
    start.anchor[:], start.precision[:], start.pivots[:] = plan.anchor, plan.precision, plan.pivots
    start.coarse[:] = plan.coarse
    settle_priors(start, model)
    for k in range(len(table.counts)):
        add_recorded(start, model, table, k)
    return BlocksStanding(model, start, table)
