"""Intervals of the estimates, the mixes that they leave feasible, and what each constraint costs."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from polyarm._types import FloatArray
from polyarm.accounts import Account
from polyarm.certify.constants import INTERVALS_SHARE
from polyarm.certify.intervals import half_widths
from polyarm.claims import Kind
from polyarm.engine.session import Session
from polyarm.polytope.vertices import count_candidates, enumerate_vertices
from polyarm.problem import Problem


@dataclass(frozen=True)
class Intervals:
    """Estimates and how far each may be off, in the user's units: rewards (K,), costs (d, K).

    nan where nothing was observed; widths are infinite where nothing bounds a mean: an estimated outcome that has never
    varied. The ends (2, K) and (2, d, K), least and largest, are those of the estimates, but within a declared range.
    `kind` is how far all of them may be trusted.
    """

    rewards: FloatArray
    reward_widths: FloatArray
    reward_ends: FloatArray
    costs: FloatArray
    cost_widths: FloatArray
    cost_ends: FloatArray
    kind: Kind


def find_intervals(session: Session) -> Intervals:
    """Return estimates with intervals that all hold at once, at all times, with confidence 1 - delta."""
    problem, estimates, model = session.problem, session.round.estimates, session.plan.model
    pulls = np.where(estimates.pulls > 0.0, estimates.pulls, math.nan)
    # A certificate leaves this share for them; an explorer without one has nothing else to spend.
    share = INTERVALS_SHARE if session.certified else 1.0
    half = np.where(estimates.pulls > 0.0, half_widths(estimates, model, share * model.delta), math.nan)
    costs, widths = np.zeros((problem.n_constraints, problem.n_arms)), half[1:]
    for i, constraint in enumerate(problem.constraints):
        if constraint.row is not None:
            costs[i], widths[i] = constraint.row, 0.0
        else:
            costs[i] = estimates.cost_sums[i] / pulls / model.factors[i]
            widths[i] /= abs(model.factors[i])
    rewards, accounts = estimates.reward_sums / pulls, [c.account for c in problem.constraints]
    reward_ends = _find_ends(problem.reward_account, rewards, half[0])
    cost_ends = [_find_ends(account, costs[i], widths[i]) for i, account in enumerate(accounts)]
    measured = [problem.reward_account, *(accounts[i] for i in problem.unknown)]
    return Intervals(
        rewards=rewards,
        reward_widths=half[0],
        reward_ends=reward_ends,
        costs=costs,
        cost_widths=widths,
        cost_ends=np.array(cost_ends).reshape(problem.n_constraints, 2, problem.n_arms).transpose(1, 0, 2),
        kind="asymptotic" if any(account.kind == "estimated" for account in measured) else "proved",
    )


def _find_ends(account: Account, means: FloatArray, widths: FloatArray) -> FloatArray:
    """The least and the largest that means (K,) may be; a mean is within the range that its outcomes have."""
    low, high = account.ends(means.size)
    return np.array([np.maximum(means - widths, low), np.minimum(means + widths, high)])


#: Sets with more candidate vertices are not listed: nobody could look at them.
_MOST_CANDIDATES = 20_000
#: Stands for an infinite cost, in terms of the largest that is finite.
_UNKNOWN = 1e4


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
    least, largest = (_rows(problem, costs) for costs in intervals.cost_ends)
    best, worst = np.minimum(least, largest), np.maximum(least, largest)  # of a floor, the largest costs are the best
    return Regions(*(_vertices(problem, rows) for rows in (_rows(problem, intervals.costs), best, worst)))


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
    # Of an estimated cost that has never varied nothing is known: so large, or so small, that a little of the arm is
    # enough to break the row, or to keep it.
    largest = np.abs(np.where(np.isfinite(rows), rows, 0.0)).max(axis=1, initial=0.0)
    limit = (_UNKNOWN * np.where(largest > 0.0, largest, 1.0))[:, None]
    rows = np.clip(rows, -limit, limit)
    scale = np.abs(rows).max(axis=1, initial=0.0)
    return enumerate_vertices(np.vstack([np.ones(problem.n_arms), rows / np.where(scale > 0.0, scale, 1.0)[:, None]]))
