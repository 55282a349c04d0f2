"""Everything that a study's page shows, at one moment."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from polyarm._json import finite
from polyarm._types import FloatArray
from polyarm.engine.region import Intervals, find_intervals, find_prices, find_regions
from polyarm.errors import NotYet
from polyarm.problem import Problem
from polyarm.report.answer import Description, describe
from polyarm.service.bodies import Mix
from polyarm.studies.status import Moment
from polyarm.studies.study import recommend_from

#: Vertices of a set of mixes that a page can show.
_MOST_VERTICES = 300


def view_study(number: int, moment: Moment) -> dict[str, Any]:
    """Return what the page of a study, given by its number, shows at a moment, in JSON types."""
    session, problem = moment.session, moment.session.problem
    intervals = find_intervals(session)
    return {
        "study": {"id": number, "name": moment.status.name, "created_at": moment.status.created_at},
        "status": asdict(moment.status),
        "problem": {
            "arms": list(problem.arms),
            "constraints": [
                {"name": c.name, "sense": c.sense, "bound": c.bound, "known": c.known} for c in problem.constraints
            ],
            "delta": problem.delta,
            "r": problem.r,
            "family": problem.family,
        },
        "mix": describe_mix(moment).model_dump(),
        "intervals": _describe_intervals(problem, intervals),
        "prices": _describe_prices(problem, intervals),
        "trace": _describe_trace(problem, moment),
        "region": _describe_region(problem, intervals),
        "conflict": session.conflict,
    }


def describe_mix(moment: Moment) -> Mix:
    """Return the mix to choose now and what is known of it, or why there is none."""
    session = moment.session
    if session.infeasible:
        claim = session.claim_infeasible().under(*moment.assumptions)
        return Mix(**vars(Description(claims=(claim,))), why=claim.sentence)
    try:
        return Mix(**vars(describe(recommend_from(session, moment.assumptions))))
    except NotYet as error:
        return Mix(kind="none", why=str(error))


def _describe_intervals(problem: Problem, intervals: Intervals) -> dict[str, Any]:
    def by_arm(means: FloatArray, widths: FloatArray) -> dict[str, Any]:
        return {
            arm: None if math.isnan(mean) else {"mean": mean, "low": finite(mean - width), "high": finite(mean + width)}
            for arm, mean, width in zip(problem.arms, means.tolist(), widths.tolist(), strict=True)
        }

    costs = zip(problem.constraints, intervals.costs, intervals.cost_widths, strict=True)
    return {
        "reward": by_arm(intervals.rewards, intervals.reward_widths),
        "costs": {constraint.name: by_arm(means, widths) for constraint, means, widths in costs},
    }


def _describe_prices(problem: Problem, intervals: Intervals) -> dict[str, float | None]:
    prices = find_prices(problem, intervals)
    values: Sequence[float | None] = [None] * problem.n_constraints if prices is None else prices.tolist()
    return dict(zip((c.name for c in problem.constraints), values, strict=True))


def _describe_trace(problem: Problem, moment: Moment) -> dict[str, Any]:
    columns = moment.history
    slack = {
        constraint.name: [None if row is None else row[i] for row in columns["slack"]]
        for i, constraint in enumerate(problem.constraints)
    }
    return {**columns, "slack": slack}


def _describe_region(problem: Problem, intervals: Intervals) -> dict[str, Any] | None:
    regions = find_regions(problem, intervals)
    if regions is None or max(len(vertices) for vertices in vars(regions).values()) > _MOST_VERTICES:
        return None
    return {name: np.round(vertices, 9).tolist() for name, vertices in vars(regions).items()}
