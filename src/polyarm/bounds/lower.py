"""All bounds of one instance whose truth is known, as `polyarm bound` prints them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from polyarm._json import finite
from polyarm._types import FloatArray
from polyarm.bounds.answers import search_answers
from polyarm.bounds.characteristic import (
    Alternatives,
    CharacteristicTime,
    arm_alternatives,
    characteristic_time,
    list_alternatives,
    optimal_vertex,
)
from polyarm.bounds.joint import joint_time, why_no_joint_time
from polyarm.model import Model, build_model
from polyarm.polytope.lp import make_basis, make_lp_work, solve_lp
from polyarm.polytope.vertices import MAX_CANDIDATES, count_candidates, enumerate_vertices
from polyarm.problem import Problem
from polyarm.tolerances import PRIMAL

#: How far a budget is relaxed, in units of its noise, to measure how T reacts.
_NUDGE = 1e-3


@dataclass(frozen=True)
class Truth:
    """An instance with every row known, in kernel units."""

    problem: Problem
    model: Model
    means: FloatArray
    columns: FloatArray

    @property
    def simplex(self) -> FloatArray:
        """The set without constraints."""
        return self.columns[:1]


def make_truth(problem: Problem, means: FloatArray, costs: FloatArray) -> Truth:
    """Compile an instance for bounds."""
    known = problem.with_known_rows(costs)
    model = build_model(known)
    return Truth(known, model, means, np.vstack([np.ones(problem.n_arms), model.known_rows]))


def expected_samples(time: float, delta: float) -> float:
    """Return T log(1/(2.4 delta)), the least expected samples of explorers that err with probability delta."""
    return time * max(math.log(1.0 / (2.4 * delta)), 0.0)


def describe_time(found: CharacteristicTime, delta: float, **extra: Any) -> dict[str, Any]:
    """Return one entry of the `bounds` table; what is infinite is None."""
    return {
        "T": finite(found.time),
        "allocation": found.allocation.tolist(),
        "samples": expected_samples(found.time, delta) if math.isfinite(found.time) else None,
        "closest": found.closest.tolist(),
        "accuracy": found.accuracy,
        **extra,
    }


def reward_bounds(truth: Truth, delta: float, r: float) -> dict[str, dict[str, Any]]:
    """Return the characteristic times without constraints (`bai`) and with known ones (`known`: allocation free on the
    simplex; `known_restricted`: allocation feasible), by name.

    With r > 0 `T_at_optimum` is the value at the optimal policy alone, and T the smallest found over r-optimal answers:
    attained, perhaps not the smallest.
    """
    alternatives = list_alternatives(truth.means, truth.columns, r)
    vertices = _list_vertices(truth.columns) if r > 0.0 else None
    return {
        "bai": _describe(truth, arm_alternatives(truth.means), truth.simplex, np.eye(truth.means.size), delta, r),
        "known": _describe(truth, alternatives, truth.simplex, vertices, delta, r),
        "known_restricted": _describe(truth, alternatives, truth.columns, vertices, delta, r),
    }


def compute_bounds(truth: Truth, delta: float, r: float) -> dict[str, dict[str, Any]]:
    """Return `reward_bounds`, and the paper's relaxation for each gamma as `lagrangian_*`."""
    table = reward_bounds(truth, delta, r)
    alternatives = list_alternatives(truth.means, truth.columns, r)
    for name, gamma in find_gammas(truth).items():
        found = relaxed_time(truth, alternatives, gamma, r)
        table[f"lagrangian_{name}"] = describe_time(found, delta, gamma=gamma, note="T at pi*" if r > 0.0 else "")
    return table


def describe_joint(problem: Problem, means: FloatArray, costs: FloatArray) -> dict[str, Any]:
    """Return the `joint` entry of the `bounds` table, for rewards and unknown costs together; or why there is none.

    T is that of the plan returned (allocation and answer); `lower_T` <= T* <= `certified_T` are proved.
    """
    model = build_model(problem)
    reason = why_no_joint_time(model)
    found = None
    if reason is None:
        found = joint_time(model, means, costs * model.factors[:, None] - model.bounds[:, None])
        if found is None:
            reason = "infinite: no mix within r of the optimum has slack in every unknown constraint"
    if found is None:
        missing = dict.fromkeys(
            ("T", "certified_T", "lower_T", "T_uniform", "allocation", "samples", "answer", "closest", "accuracy")
        )
        return {**missing, "note": "", "reason": reason}
    return {
        "T": found.time,
        "certified_T": finite(found.certified),
        "lower_T": found.lower,
        "T_uniform": finite(found.uniform_time),
        "allocation": found.allocation.tolist(),
        "samples": expected_samples(found.time, problem.delta),
        "answer": found.answer.tolist(),
        "closest": found.closest.tolist(),
        "accuracy": 1.0 - found.time / found.certified,
        "note": "T is attained by this allocation and answer; lower_T <= T* <= certified_T are proved",
        "reason": None,
    }


def _list_vertices(columns: FloatArray) -> FloatArray | None:
    m, n_arms = columns.shape
    return enumerate_vertices(columns) if count_candidates(n_arms, m - 1) <= MAX_CANDIDATES else None


def _describe(
    truth: Truth,
    alternatives: Alternatives,
    columns: FloatArray,
    vertices: FloatArray | None,
    delta: float,
    r: float,
) -> dict[str, Any]:
    found = characteristic_time(truth.model.family, truth.means, alternatives, columns, r)
    if r == 0.0:
        return describe_time(found, delta, note="")
    if vertices is None or truth.problem.family != "gaussian":
        return describe_time(found, delta, note="T at pi*")
    answer, best = search_answers(truth.model.family, truth.means, vertices, columns, found, r)
    return describe_time(
        best,
        delta,
        answer=answer.tolist(),
        T_at_optimum=found.time,
        note="smallest T found over r-optimal answers; T_at_optimum is T at pi*",
    )


def find_gammas(truth: Truth) -> dict[str, float]:
    """Return the slack that bounds the multiplier, in the three readings of docs/errata.md."""
    d = truth.columns.shape[0] - 1
    if d == 0:
        return {}
    policy, _, neighbours = optimal_vertex(truth.means, truth.columns)
    points = [policy] + [neighbours.point(row) for row in range(neighbours.count)]
    return {
        "slack": _least_slack(truth.columns, policy),
        "slater": slater_slack(truth.columns),
        "centroid": _least_slack(truth.columns, np.mean(points, axis=0)),
    }


def _least_slack(columns: FloatArray, policy: FloatArray) -> float:
    return max(0.0, float(np.min(-columns[1:] @ policy)))


def slater_slack(columns: FloatArray) -> float:
    """Return the largest slack that one policy has in every row at once."""
    m, n_arms = columns.shape
    lifted = np.hstack([columns, np.vstack([[0.0], np.ones((m - 1, 1))])])
    objective = np.zeros(n_arms + 1)
    objective[-1] = 1.0
    basis, work = make_basis(m - 1), make_lp_work(n_arms + 1, m - 1)
    solve_lp(objective, lifted, basis, work)
    values = work.inverse[basis == n_arms, 0]
    return float(values[0]) if values.size else 0.0


def relaxed_time(truth: Truth, alternatives: Alternatives, gamma: float, r: float) -> CharacteristicTime:
    r"""Solve the Lagrangian relaxation :math:`\max_w D(w)\,(1 - \max_i (G w)_i^+ / \gamma)`.

    Allowing every row an excess e, the best D is concave in e, so its product with (1 - e/gamma) has one peak. With
    gamma = 0 (a row is tight at the policy, as at every mixed vertex) it is the restricted problem.
    """

    def solve(excess: float) -> CharacteristicTime:
        shifted = truth.columns.copy()
        shifted[1:] -= excess
        return characteristic_time(truth.model.family, truth.means, alternatives, shifted, r)

    if gamma <= PRIMAL:
        return solve(0.0)
    peak = minimize_scalar(
        lambda e: solve(e).time / (1.0 - e / gamma), bounds=(0.0, gamma * (1.0 - 1e-6)), method="bounded"
    )
    candidates = [(solve(e).time / (1.0 - e / gamma), e) for e in (0.0, float(peak.x))]
    time, excess = min(candidates)
    found = solve(excess)
    return CharacteristicTime(time, found.allocation, found.closest, found.accuracy)


def shadow_price(truth: Truth) -> float | None:
    """Return the paper's shadow price, max slack / min slack at the optimum; None when a row is tight."""
    policy, _, _ = optimal_vertex(truth.means, truth.columns)
    slack = _user_slack(truth, policy)
    if slack.size == 0 or slack.min() <= PRIMAL:
        return None
    return float(slack.max() / slack.min())


def _user_slack(truth: Truth, policy: FloatArray) -> FloatArray:
    slack: FloatArray = -(truth.columns[1:] @ policy) / np.abs(truth.model.factors)
    return slack


def corollary_bounds(truth: Truth) -> dict[str, float | None]:
    r"""Return the repaired Corollary 1, :math:`2 \sigma^2/C \le T \le 2 K \sigma^2/C`, and the condition-number bound.

    C is the least squared distance of the means from a hyperplane on which a neighbour equals the optimum. With unequal
    noise the smallest and largest variances bound T. Differs from paper: its lower bound exceeds its upper one.
    """
    if truth.problem.family != "gaussian":
        return {"lower": None, "upper": None, "condition_number": None, "condition_bound": None}
    policy, _, neighbours = optimal_vertex(truth.means, truth.columns)
    gaps = [policy - neighbours.point(row) for row in range(neighbours.count)]
    closest = min((float(truth.means @ gap) ** 2 / float(gap @ gap) for gap in gaps), default=0.0)
    variance = truth.model.family.scale**2
    condition = _condition_number(truth.columns, policy)
    spread = float(((truth.means.max() - truth.means) ** 2).sum())
    return {
        "lower": 2.0 * float(variance.min()) / closest if closest > 0.0 else None,
        "upper": 2.0 * truth.means.size * float(variance.max()) / closest if closest > 0.0 else None,
        "condition_number": condition,
        "condition_bound": 2.0 * float(variance.min()) / spread / condition**2 if spread > 0.0 else None,
    }


def _condition_number(columns: FloatArray, policy: FloatArray) -> float:
    """Condition number of K independent active constraints at a vertex, chosen greedily."""
    n_arms = policy.size
    active = [columns[0]]
    active += [row for row in columns[1:] if abs(row @ policy) <= PRIMAL]
    active += [-np.eye(n_arms)[a] for a in range(n_arms) if policy[a] <= PRIMAL]
    chosen: list[FloatArray] = []
    for row in active:
        if np.linalg.matrix_rank(np.array([*chosen, row])) > len(chosen):
            chosen.append(row)
    return float(np.linalg.cond(np.array(chosen)))


def upper_bounds(truth: Truth, known: dict[str, Any], price: float | None, delta: float) -> dict[str, float | None]:
    """Return the paper's asymptotic upper bounds on the expected samples, and its bound on the mean violation.

    LATS: T (1 + shadow price) log(1/delta); LAGEX: T log(1/delta). The violation bound is per step, at the expected
    number of samples. None where the shadow price is undefined (a row is tight at the optimum).
    """
    time = known["T"]
    if time is None:
        return {"lats": None, "lagex": None, "violation_per_step": None}
    log = math.log(1.0 / delta)
    d, n_arms = truth.columns.shape[0] - 1, truth.means.size
    pulls = 1.0 + known["samples"] * np.array(known["allocation"])
    radius = 1.0 + math.sqrt(0.5 * math.log(n_arms / delta) + 0.25 * float(np.log(pulls).sum()))
    policy, _, _ = optimal_vertex(truth.means, truth.columns)
    slack = _user_slack(truth, policy)
    violation = None
    if d > 0:
        growth = math.log(1.0 + (1.0 + known["samples"]) / d)
        violation = math.sqrt(2.0 * d * radius**2 * growth) - float(slack.min())
    return {
        "lats": None if price is None else time * (1.0 + price) * log,
        "lagex": time * log,
        "violation_per_step": violation,
    }


def price_constraints(truth: Truth, r: float) -> list[dict[str, Any]]:
    """Return what each constraint costs: reward, and T, per unit of its budget.

    `reward_per_unit` is the LP multiplier: the gain in optimal value per unit of relaxation. `T_per_unit` is the
    slope of the `known` time at the optimal policy as the budget is relaxed; None where T jumps, as it does at a
    degenerate optimum, which the smallest change of a budget splits into several vertices.
    """
    if truth.columns.shape[0] == 1:
        return []
    policy, prices, _ = optimal_vertex(truth.means, truth.columns)
    slack = _user_slack(truth, policy)
    here = _time_when_relaxed(truth, 0, 0.0, r)
    rows = []
    for i, constraint in enumerate(truth.problem.constraints):
        unit = abs(float(truth.model.factors[i]))
        slopes = []
        for step in (_NUDGE / unit, 0.1 * _NUDGE / unit):
            slopes.append((_time_when_relaxed(truth, i, step * unit, r) - here) / step)
        smooth = math.isfinite(slopes[1]) and abs(slopes[1] - slopes[0]) <= 0.5 * abs(slopes[0]) + 1e-3 * here * unit
        rows.append(
            {
                "name": constraint.name,
                "slack": max(float(slack[i]), 0.0) + 0.0,  # no minus zero
                "reward_per_unit": max(float(prices[i]), 0.0) * unit,
                "T_per_unit": slopes[1] if smooth else None,
            }
        )
    return rows


def _time_when_relaxed(truth: Truth, row: int, amount: float, r: float) -> float:
    columns = truth.columns.copy()
    columns[row + 1] -= amount
    alternatives = list_alternatives(truth.means, columns, r)
    return characteristic_time(truth.model.family, truth.means, alternatives, columns[:1], r).time
