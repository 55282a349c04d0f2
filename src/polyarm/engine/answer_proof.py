"""The proof of one answer, in the user's units: the same fields for every certificate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.certify.block_proof import StartPlan, weigh_blocks
from polyarm.certify.blocks import Record
from polyarm.certify.proof import (
    RewardTest,
    Standing,
    cost_statistics,
    find_conflict,
    refutes_all,
    reward_test,
    row_margins,
    value_margin,
)
from polyarm.certify.terms import Terms
from polyarm.model import Model
from polyarm.problem import Problem, reward_ends

#: A constraint is suspected if its weight in the estimated contradiction is above this.
_SUSPECTED = 1e-9


@dataclass(frozen=True)
class Case:
    """The problem of a certificate and the constants that it is made with, all fixed before the first pull.

    `r` is the tolerance that is certified: the problem's, or a larger one that was accepted.
    """

    problem: Problem
    model: Model
    terms: Terms
    r: float


@dataclass(frozen=True)
class AnswerProof:
    """An answer, its estimates from all outcomes, and bounds on them that hold all at once.

    Per row: slack, a lower bound on it, and the statistic that its test looks at (None: known). `costs_pass`: all cost
    tests pass; `reward` is the test still to be decided.
    """

    mix: FloatArray
    thresholds: dict[str, Any]
    value: float
    value_interval: tuple[float, float]
    slack: FloatArray
    slack_low: FloatArray
    cost_statistics: list[float | None]
    costs_pass: bool
    reward: RewardTest


def pooled_proof(case: Case, standing: Standing, mix: FloatArray) -> AnswerProof:
    """Return what the pooled certificate says of an answer."""
    units = np.abs(case.model.factors)
    value, spread = float(standing.estimated.mu @ mix), value_margin(standing, mix)
    slack = -(standing.estimated.rows @ mix) / units
    costs = cost_statistics(standing, mix)
    return AnswerProof(
        mix=mix,
        thresholds=pooled_thresholds(case, standing),
        value=value,
        value_interval=_within_range(case, value - spread, value + spread),
        slack=slack,
        slack_low=slack - row_margins(standing, mix) / units,
        cost_statistics=costs,
        costs_pass=all(z is None or z > standing.cost_threshold for z in costs),
        reward=reward_test(standing, mix),
    )


def pooled_thresholds(case: Case, standing: Standing) -> dict[str, Any]:
    """Return the thresholds of the pooled certificate, and what they are made of."""
    measured = bool(case.problem.unknown)
    return {
        "kind": case.terms.thresholds,
        "lam": standing.rule.pricing.lam,
        "answer": standing.cost_threshold if measured else None,
        "reward": standing.reward_threshold,
        "row": float(standing.worth.thresholds.row) if measured else None,
    }


def suspect_conflict(problem: Problem, standing: Standing) -> dict[str, float]:
    """Return the constraints that seem to contradict each other where no mix satisfies all, with their weights.

    An explanation, and no proof: the estimates choose them.
    """
    weights = find_conflict(standing)
    return {c.name: float(w) for c, w in zip(problem.constraints, weights, strict=True) if w > _SUSPECTED}


def blocks_levels(case: Case, start: StartPlan, table: Record) -> dict[str, Any]:
    """Return what the logarithm of the evidence of each claim must reach."""
    levels: dict[str, Any] = weigh_blocks(case.model, case.terms.blocks_delta, start, table).levels
    if not case.problem.unknown:
        levels |= {"answer": None, "row": None}
    return {"kind": case.terms.thresholds, **levels}


def refutes_by_blocks(case: Case, start: StartPlan, table: Record) -> bool:
    """Tell whether the blocks of a start refute every mix by its rows alone."""
    return refutes_all(weigh_blocks(case.model, case.terms.blocks_delta, start, table).evidence())


def blocks_proof(case: Case, standing: Standing, start: StartPlan, table: Record) -> AnswerProof:
    """Return what the certificate by blocks says of its answer, and what all outcomes say of its value and slack.

    Each has its own part of delta, so all holds at once: a slack is at least the larger of the bounds.
    """
    blocks = weigh_blocks(case.model, case.terms.blocks_delta, start, table)
    mix, unknown = blocks.mix, case.problem.unknown
    units = np.abs(case.model.factors)
    value, spread = float(standing.estimated.mu @ mix), value_margin(standing, mix)
    slack = -(standing.estimated.rows @ mix) / units
    slack_low = slack - row_margins(standing, mix) / units
    evidence: list[float | None] = [None] * case.problem.n_constraints
    for i in unknown:
        slack_low[i] = max(slack_low[i], blocks.slack_low(i) / units[i])
        evidence[i] = blocks.answer_evidence(i)
    levels = blocks.levels
    return AnswerProof(
        mix=mix,
        thresholds=blocks_levels(case, start, table),
        value=value,
        value_interval=_within_range(case, value - spread, value + spread),
        slack=slack,
        slack_low=slack_low,
        cost_statistics=evidence,
        costs_pass=all(x is None or x >= levels["answer"] for x in evidence),
        reward=RewardTest(blocks.evidence(case.r), 1.0, standing.rule.penalty),
    )


def _within_range(case: Case, low: float, high: float) -> tuple[float, float]:
    """Cut an interval of a mean reward to the range that the reward has."""
    ends = reward_ends(case.problem)
    return (low, high) if ends is None else (max(low, ends[0]), min(high, ends[1]))
