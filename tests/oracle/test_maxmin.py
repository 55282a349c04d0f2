"""The max-min allocation solver and the characteristic times against CVXPY."""

import itertools
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from polyarm._types import FloatArray
from polyarm.bounds.characteristic import (
    Alternatives,
    arm_alternatives,
    characteristic_time,
    list_alternatives,
    moves_to,
)
from polyarm.bounds.lower import compute_bounds, find_gammas, make_truth, relaxed_time
from polyarm.bounds.maxmin import (
    STEP_FLOOR,
    Effort,
    Weights,
    linearise,
    make_maxmin_work,
    solve_maxmin,
    solve_penalised,
)
from polyarm.environments.instances import load_instance
from polyarm.families.family import Family
from polyarm.model import build_model
from polyarm.polytope.lp import OPTIMAL, make_basis, make_lp_work, solve_lp
from polyarm.polytope.neighbours import Rivals
from polyarm.problem import Constraint, Problem


def gaussian(scale: FloatArray) -> Family:
    n_arms = scale.size
    problem = Problem(arms=tuple(map(str, range(n_arms))), reward_std=tuple(scale.tolist()), delta=0.1, r=0.0)
    return build_model(problem).family


def rivals_of(alternatives: Alternatives) -> Rivals:
    return Rivals(alternatives.moves, alternatives.count)


def dense_changes(alternatives: Alternatives) -> FloatArray:
    return np.array([alternatives.point(row) - alternatives.policy for row in range(alternatives.count)])


def cvxpy_time(
    means: FloatArray, scale: FloatArray, changes: FloatArray, rows: FloatArray, r: float, unit: float
) -> float | None:
    """min sum x  s.t.  sum_a D_va / x_a <= c_v,  rows x <= 0; None when the conic solver itself gives up.

    `unit` is the size of T to expect: the solver loses its digits when its variables are far from one, and more of
    them when they are small (a total of 100 was measured to be a hundred times more exact than a total of one).
    """
    unit = 1e-2 * unit
    spread = changes**2 * scale**2
    strength = 0.5 * (r - changes @ means) ** 2
    x, inverse = cp.Variable(means.size, nonneg=True), cp.Variable(means.size)
    times = spread / (strength[:, None] * unit)
    bounds = [cp.inv_pos(x) <= inverse, times @ inverse <= 1.0]
    if len(rows):
        bounds.append(rows @ x <= 0)
    program = cp.Problem(cp.Minimize(cp.sum(x)), bounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": told by the status
        try:
            program.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return None
    return float(program.value) * unit if program.status == cp.OPTIMAL else None


def spread_means(rng: np.random.Generator, n_arms: int) -> FloatArray:
    """Means that are not nearly tied: a conic solver loses its digits when times differ by many orders."""
    return rng.permutation(np.linspace(0.0, 1.0, n_arms) + rng.uniform(-0.2, 0.2, n_arms) / n_arms)


def random_set(rng: np.random.Generator, n_arms: int, d: int, integer: bool) -> FloatArray:
    """A non-empty set; integer entries make degenerate vertices."""
    while True:
        if integer:
            rows = rng.integers(-1, 2, (d, n_arms)).astype(float) - rng.choice([0.0, 0.5], (d, 1))
        else:
            rows = rng.normal(size=(d, n_arms)) - 0.2
        columns = np.vstack([np.ones(n_arms), rows])
        if solve_lp(np.zeros(n_arms), columns, make_basis(d), make_lp_work(n_arms, d)) == OPTIMAL:
            return columns


CASES = [
    (seed, n_arms, d, integer)
    for seed, (n_arms, d, integer) in enumerate(
        itertools.islice(itertools.cycle(itertools.product((3, 5, 8, 12), (0, 1, 2, 3), (False, True))), 200)
    )
]


@pytest.mark.parametrize("chunk", range(8))
def test_two_hundred_random_instances(chunk: int) -> None:
    compared = gave_up = 0
    for seed, n_arms, d, integer in CASES[chunk::8]:
        rng = np.random.default_rng(seed)
        columns = random_set(rng, n_arms, d, integer)
        means, scale = spread_means(rng, n_arms), rng.uniform(0.5, 1.5, n_arms)
        alternatives = list_alternatives(means, columns, 0.0)
        if alternatives.count == 0:
            continue  # a single point: nothing to compare
        changes = dense_changes(alternatives)
        for allowed in (columns[:1], columns):
            found = characteristic_time(gaussian(scale), means, alternatives, np.ascontiguousarray(allowed), 0.0)
            if allowed.shape[0] > 1 and not _has_interior(columns, changes):
                continue  # the restricted optimum is not attained: some needed arm cannot be sampled inside the set
            expected = cvxpy_time(means, scale, changes, allowed[1:], 0.0, found.time)
            if expected is None:
                gave_up += 1
                assert found.accuracy <= 1e-5  # our own proved gap, whose validity is tested below
                continue
            assert found.time == pytest.approx(expected, rel=2e-4)
            assert np.all(allowed[1:] @ found.allocation <= 1e-7)
            assert found.allocation.sum() == pytest.approx(1.0, abs=1e-12)
            compared += 1
    assert compared >= 30
    assert gave_up <= 5


def _has_interior(columns: FloatArray, changes: FloatArray) -> bool:
    """Whether every arm that some alternative touches can get a positive share inside the set."""
    m, n_arms = columns.shape
    for arm in np.flatnonzero(np.abs(changes).max(axis=0) > 1e-9):
        objective = np.zeros(n_arms)
        objective[arm] = 1.0
        basis, work = make_basis(m - 1), make_lp_work(n_arms, m - 1)
        assert solve_lp(objective, columns, basis, work) == OPTIMAL
        share = sum(work.inverse[i, 0] for i in range(m) if basis[i] == arm)
        if share < 1e-6:
            return False
    return True


def test_fifty_arms() -> None:
    compared = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        columns = random_set(rng, 50, 3, integer=False)
        means, scale = spread_means(rng, 50), np.ones(50)
        alternatives = arm_alternatives(means)
        for allowed in (columns[:1], columns):
            found = characteristic_time(gaussian(scale), means, alternatives, np.ascontiguousarray(allowed), 0.1)
            assert found.accuracy <= 1e-5
            expected = cvxpy_time(means, scale, dense_changes(alternatives), allowed[1:], 0.1, found.time)
            if expected is not None:
                assert found.time == pytest.approx(expected, rel=2e-4)
                compared += 1
    assert compared >= 6


def test_reference_values() -> None:
    expected = {
        ("setup1-hard", "known"): 925.5,
        ("setup1-hard", "known_restricted"): 1714.2,
        ("setup1-easy", "known"): 49.3,
        ("setup1-easy", "known_restricted"): 64.0,
        ("setup1-hard", "bai"): 40.0,
        ("setup1-easy", "bai"): 214.0,
    }
    for name in ("setup1-hard", "setup1-easy"):
        instance = load_instance(name)
        bounds = compute_bounds(make_truth(instance.problem, instance.mu, instance.A), 0.01, 0.0)
        for (instance_name, bound), time in expected.items():
            if instance_name == name:
                assert bounds[bound]["T"] == pytest.approx(time, abs=0.05)


def test_bound_is_valid_after_any_number_of_iterations() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        n_arms, d = int(rng.integers(3, 9)), int(rng.integers(1, 4))
        columns = random_set(rng, n_arms, d, integer=False)
        means, scale = rng.uniform(0.0, 1.0, n_arms), np.ones(n_arms)
        alternatives = list_alternatives(means, columns, 0.0)
        if alternatives.count == 0 or not _has_interior(columns, dense_changes(alternatives)):
            continue
        best = 1.0 / characteristic_time(gaussian(scale), means, alternatives, columns, 0.0).time
        work = make_maxmin_work(alternatives.count, n_arms, d)
        allocation = np.full(n_arms, 1.0 / n_arms)
        warm, rivals = Weights(rng.uniform(0.1, 1.0, alternatives.count), np.zeros(d)), rivals_of(alternatives)
        linearise(gaussian(scale), means, allocation, rivals, 0.0, work)
        value, bound = solve_maxmin(rivals, columns, Effort(STEP_FLOOR, 2, 0.0), warm, work, allocation)
        assert bound >= best * (1.0 - 1e-5)
        assert value <= bound * (1.0 + 1e-9)


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_penalised_problem_against_cvxpy(size: float) -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        n_arms = int(rng.integers(3, 8))
        means, scale = spread_means(rng, n_arms), np.ones(n_arms)
        alternatives = arm_alternatives(means)
        free = 1.0 / characteristic_time(gaussian(scale), means, alternatives, np.ones((1, n_arms)), 0.0).time
        penalty = rng.normal(size=n_arms) * size * free
        spread = dense_changes(alternatives) ** 2
        strength = 0.5 * (dense_changes(alternatives) @ means) ** 2
        work = make_maxmin_work(alternatives.count, n_arms, 0)
        q, allocation = np.ones(alternatives.count), np.full(n_arms, 1.0 / n_arms)
        rivals = rivals_of(alternatives)
        linearise(gaussian(scale), means, allocation, rivals, 0.0, work)
        value, bound = solve_penalised(rivals, penalty, Effort(0.0, 20_000, 1e-6), q, work, allocation)
        w, z = cp.Variable(n_arms, nonneg=True), cp.Variable()
        limits: list[Any] = [cp.sum(w) == 1]
        for v in range(alternatives.count):
            # c / sum(D / w) >= z: the harmonic mean of the two arms that differ
            a, b = np.flatnonzero(spread[v])
            pair = cp.hstack([w[a], w[b]])
            limits.append(strength[v] * 0.5 * cp.harmonic_mean(pair) >= z)
        program = cp.Problem(cp.Maximize(z - penalty @ w), limits)
        program.solve(solver=cp.CLARABEL)
        best = float(program.value)
        assert value <= best + 1e-3 * free
        assert bound >= best - 1e-3 * free
        # A large penalty is answered by a single arm, and the weights then have nothing to balance.
        if size <= 0.1:
            assert value == pytest.approx(best, rel=1e-3)


def test_relaxation_lies_between_free_and_restricted() -> None:
    instance = load_instance("imdb")
    truth = make_truth(instance.problem, instance.mu, instance.A)
    alternatives = list_alternatives(truth.means, truth.columns, 0.0)
    free = characteristic_time(truth.model.family, truth.means, alternatives, truth.simplex, 0.0).time
    kept = characteristic_time(truth.model.family, truth.means, alternatives, truth.columns, 0.0).time
    gammas = find_gammas(truth)
    assert gammas["slack"] == 0.0
    assert gammas["slater"] > gammas["centroid"] > 0.0
    for gamma in gammas.values():
        assert free * (1.0 - 1e-6) <= relaxed_time(truth, alternatives, gamma, 0.0).time <= kept * (1.0 + 1e-6)


def test_r_optimal_answers_beat_the_optimum() -> None:
    instance = load_instance("setup1-hard")
    bounds = compute_bounds(make_truth(instance.problem, instance.mu, instance.A), 0.01, 0.1)
    assert bounds["known"]["T_at_optimum"] == pytest.approx(138.4, abs=0.1)
    assert bounds["known"]["T"] <= 109.5
    answer = np.array(bounds["known"]["answer"])
    best = instance.optimum()
    assert best is not None
    assert instance.excess(answer) <= 1e-9
    assert float(answer @ instance.mu) >= best.value - 0.1 - 1e-9
    # The claimed time is really attained by that answer and allocation.
    truth = make_truth(instance.problem, instance.mu, instance.A)
    from polyarm.polytope.vertices import enumerate_vertices

    alternatives = moves_to(answer, enumerate_vertices(truth.columns))
    expected = cvxpy_time(instance.mu, np.ones(7), dense_changes(alternatives), np.zeros((0, 7)), 0.1, 100.0)
    assert bounds["known"]["T"] == pytest.approx(expected, rel=1e-3)


def test_equal_rivals_have_infinite_time() -> None:
    means = np.array([1.0, 1.0, 0.5])
    found = characteristic_time(gaussian(np.ones(3)), means, arm_alternatives(means), np.ones((1, 3)), 0.0)
    assert found.time == np.inf


def test_unused_constraint_changes_nothing() -> None:
    means = np.array([0.9, 0.5, 0.1])
    loose = Constraint(name="loose", bound=10.0, std=1.0)
    problem = Problem(arms=("a", "b", "c"), constraints=(loose,), reward_std=1.0, delta=0.1, r=0.0)
    bounds = compute_bounds(make_truth(problem, means, np.ones((1, 3))), 0.1, 0.0)
    for name in ("known", "known_restricted"):
        assert bounds[name]["T"] == pytest.approx(bounds["bai"]["T"], rel=1e-5)
