"""Intervals of the estimates, the mixes that they leave feasible, and what each constraint costs."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from polyarm._types import FloatArray
from polyarm.engine.session import Session
from polyarm.families.family import make_family
from polyarm.polytope.vertices import count_candidates, enumerate_vertices
from polyarm.problem import Problem


@dataclass(frozen=True)
class Intervals:
    """Estimates and how far each may be off, in the user's units: rewards (K,), costs (d, K).

    nan where nothing was observed; `reward_widths` is nan for rewards without a sub-Gaussian scale.
    """

    rewards: FloatArray
    reward_widths: FloatArray
    costs: FloatArray
    cost_widths: FloatArray


def find_intervals(session: Session) -> Intervals:
    """Return estimates with intervals that all hold at once, at all times, with confidence 1 - delta."""
    problem, estimates, model = session.problem, session.round.estimates, session.plan.model
    pulls = np.where(estimates.pulls > 0.0, estimates.pulls, math.nan)
    level = math.log(problem.n_arms * (1 + len(problem.unknown)) / problem.delta)
    relative = np.sqrt(2.0 * (level + 0.5 * np.log1p(pulls)) * (pulls + 1.0)) / pulls
    scale = make_family(problem.family, problem.n_arms, problem.reward_std, problem.reward_range).scale
    costs = np.zeros((problem.n_constraints, problem.n_arms))
    widths = np.zeros_like(costs)
    for i, constraint in enumerate(problem.constraints):
        if constraint.row is not None:
            costs[i] = constraint.row
        else:
            costs[i] = estimates.cost_sums[i] / pulls / model.factors[i]
            widths[i] = np.asarray(constraint.std) * relative
    return Intervals(estimates.reward_sums / pulls, scale * relative, costs, widths)


#: Sets with more candidate vertices are not listed: nobody could look at them.
_MOST_CANDIDATES = 20_000


@dataclass(frozen=True)
class Regions:
    """Vertices (n, K) of three sets of mixes; none where a set is empty.

    `estimated` is feasible if the estimates are true. While the intervals hold, the true set lies between `pessimistic`
    (feasible with every cost as bad as its interval allows) and `optimistic` (as good as it allows).
    """

    estimated: FloatArray
    optimistic: FloatArray
    pessimistic: FloatArray


def find_regions(problem: Problem, intervals: Intervals) -> Regions | None:
    """Return the three sets; None before every arm was pulled, or when there are too many vertices to list."""
    too_many = count_candidates(problem.n_arms, problem.n_constraints) > _MOST_CANDIDATES
    if too_many or np.isnan(intervals.rewards).any():
        return None
    rows, widths = _rows(problem, intervals.costs), intervals.cost_widths
    return Regions(*(_vertices(problem, rows + sign * widths) for sign in (0.0, -1.0, 1.0)))


def find_prices(problem: Problem, intervals: Intervals) -> FloatArray | None:
    """Return how much reward a unit of each bound (d,) would buy if the estimates were true.

    None before every arm was pulled, and when the estimates leave no mix.
    """
    if np.isnan(intervals.rewards).any():
        return None
    bounds = np.array([c.sign * c.bound for c in problem.constraints])
    costs = np.array([c.sign for c in problem.constraints])[:, None] * intervals.costs
    solved = linprog(
        -intervals.rewards,
        A_ub=costs if bounds.size else None,
        b_ub=bounds if bounds.size else None,
        A_eq=np.ones((1, problem.n_arms)),
        b_eq=[1.0],
    )
    if solved.x is None:
        return None
    return np.maximum(-np.asarray(solved.ineqlin.marginals), 0.0) if bounds.size else np.zeros(0)


def _rows(problem: Problem, costs: FloatArray) -> FloatArray:
    """Every constraint as a row that must not be positive."""
    signs = np.array([c.sign for c in problem.constraints])
    return np.asarray(signs[:, None] * (costs - np.array([c.bound for c in problem.constraints])[:, None]))


def _vertices(problem: Problem, rows: FloatArray) -> FloatArray:
    scale = np.abs(rows).max(axis=1, initial=0.0)
    return enumerate_vertices(np.vstack([np.ones(problem.n_arms), rows / np.where(scale > 0.0, scale, 1.0)[:, None]]))
