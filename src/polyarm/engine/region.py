"""The mixes that the constraints leave, as far as they are known, and what each constraint costs."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from polyarm._types import FloatArray
from polyarm.engine.intervals import Intervals
from polyarm.polytope.vertices import count_candidates, enumerate_vertices
from polyarm.problem import Problem

#: Sets with more candidates for vertices are not listed: nobody could look at them.
_MOST_CANDIDATES = 20_000


@dataclass(frozen=True)
class Regions:
    """Vertices (n, K) of three sets of mixes; none where a set is empty.

    `estimated` is feasible if the estimates are true. While the intervals hold, the true set lies between `pessimistic`
    (feasible with every cost as bad as its interval allows) and `optimistic` (as good).
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
    """Return how much reward a unit of each bound (d,) would buy, were the estimates true.

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
