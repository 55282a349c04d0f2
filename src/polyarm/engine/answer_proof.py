"""What proves one answer, in the user's units: the same numbers whichever certificate they come from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.engine.session import Plan
from polyarm.explorers.certified_settings import build_levels
from polyarm.stopping.averaged_proof import BlockTable, Start, weigh_blocks
from polyarm.stopping.proof import RewardTest, Standing, cost_statistics, reward_test, row_margins


@dataclass(frozen=True)
class AnswerProof:
    """An answer with its thresholds, estimated value, and per row: slack, its lower bound, and what the test looks at.

    `costs_pass`: every cost test passes; `reward` is the test that remains to be decided.
    """

    mix: FloatArray
    thresholds: dict[str, Any]
    value: float
    slack: FloatArray
    slack_low: FloatArray
    cost_statistics: list[float | None]
    costs_pass: bool
    reward: RewardTest


def pooled_proof(plan: Plan, standing: Standing, mix: FloatArray) -> AnswerProof:
    """Return what the pooled certificate says of an answer."""
    units = np.abs(plan.model.factors)
    slack = -(standing.evidence.rows @ mix) / units
    costs = cost_statistics(standing, mix)
    return AnswerProof(
        mix=mix,
        thresholds=pooled_thresholds(plan, standing),
        value=float(standing.evidence.mu @ mix),
        slack=slack,
        slack_low=slack - row_margins(standing, mix) / units,
        cost_statistics=costs,
        costs_pass=all(z is None or z > standing.cost_threshold for z in costs),
        reward=reward_test(standing, mix),
    )


def pooled_thresholds(plan: Plan, standing: Standing) -> dict[str, Any]:
    """Return the thresholds of the pooled certificate, and how they came about."""
    return {
        "kind": plan.settings.thresholds,
        "lam": standing.rule.pricing.lam,
        "noise": plan.problem.noise,
        "cost": standing.cost_threshold if plan.problem.unknown else None,
        "reward": standing.reward_threshold,
    }


def averaged_proof(plan: Plan, standing: Standing, start: Start, table: BlockTable) -> AnswerProof:
    """Return what the averaged certificate says of the average answer; `standing` is the pooled one beside it."""
    units, unknown = np.abs(plan.model.factors), plan.problem.unknown
    average = weigh_blocks(plan.model, build_levels(plan.settings, plan.model), start, table)
    evidence = [average.cost_evidence(i) if i in unknown else None for i in range(units.size)]
    low = [average.slack_low(i) if i in unknown else float(average.slack[i]) for i in range(units.size)]
    return AnswerProof(
        mix=average.mix,
        thresholds={
            "kind": plan.settings.thresholds,
            "noise": plan.problem.noise,
            "cost": average.cost_threshold if unknown else None,
            "reward": average.reward_threshold,
            "row_floor": average.row_floor,
        },
        value=average.value,
        slack=average.slack / units,
        slack_low=np.array(low) / units,
        cost_statistics=evidence,
        costs_pass=all(x is None or x >= average.cost_threshold for x in evidence),
        reward=average.reward_test(standing.rule.penalty),
    )
