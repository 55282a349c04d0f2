"""The proof of one answer, in the user's units: the same fields for every certificate."""

from dataclasses import dataclass, replace
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
    reward_test,
    row_margins,
    value_margin,
)
from polyarm.certify.terms import Terms
from polyarm.model import Model
from polyarm.problem import Problem

#: A constraint is in conflict with others if its weight in the contradiction is above this.
_IN_CONFLICT = 1e-9


@dataclass(frozen=True)
class Case:
    """The problem of a certificate and the constants that it is made with, all fixed before the first pull."""

    problem: Problem
    model: Model
    terms: Terms


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
    value, spread = float(standing.evidence.mu @ mix), value_margin(standing, mix)
    slack = -(standing.evidence.rows @ mix) / units
    costs = cost_statistics(standing, mix)
    return AnswerProof(
        mix=mix,
        thresholds=pooled_thresholds(case, standing),
        value=value,
        value_interval=(value - spread, value + spread),
        slack=slack,
        slack_low=slack - row_margins(standing, mix) / units,
        cost_statistics=costs,
        costs_pass=all(z is None or z > standing.cost_threshold for z in costs),
        reward=reward_test(standing, mix),
    )


def pooled_thresholds(case: Case, standing: Standing) -> dict[str, Any]:
    """Return the thresholds of the pooled certificate, and what they are made of."""
    return {
        "kind": case.terms.thresholds,
        "lam": standing.rule.pricing.lam,
        "noise": case.problem.noise,
        "cost": standing.cost_threshold if case.problem.unknown else None,
        "reward": standing.reward_threshold,
    }


def name_conflict(problem: Problem, standing: Standing) -> dict[str, float]:
    """Return the constraints that contradict each other where no mix satisfies all, with their weights."""
    weights = find_conflict(standing)
    return {c.name: float(w) for c, w in zip(problem.constraints, weights, strict=True) if w > _IN_CONFLICT}


def averaged_proof(case: Case, standing: Standing, start: StartPlan, table: Record) -> AnswerProof:
    """Return what the averaged certificate says of its answer, together with the pooled one.

    Each has its own part of delta, so both hold at once: a slack is at least the larger of their bounds.
    """
    average = weigh_blocks(case.model, case.terms.averaged_delta, start, table)
    pooled = pooled_proof(case, standing, average.mix)
    slack_low, evidence = pooled.slack_low.copy(), list(pooled.cost_statistics)
    for i in case.problem.unknown:
        slack_low[i] = max(slack_low[i], average.slack_low(i) / abs(case.model.factors[i]))
        evidence[i] = average.cost_evidence(i)
    return replace(
        pooled,
        thresholds={
            "kind": case.terms.thresholds,
            "noise": case.problem.noise,
            "cost": average.cost_threshold if case.problem.unknown else None,
            "reward": average.reward_threshold,
            "row_floor": average.row_floor,
        },
        slack_low=slack_low,
        cost_statistics=evidence,
        costs_pass=all(x is None or x >= average.cost_threshold for x in evidence),
        reward=average.reward_test(standing.rule.penalty),
    )
