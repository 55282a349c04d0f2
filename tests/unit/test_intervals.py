"""Intervals, sets of mixes and prices: what a study's page shows of what is known."""

import numpy as np
import pytest
from scipy.stats import binom

from polyarm import Constraint, Problem, Session, make_explorer
from polyarm._types import FloatArray
from polyarm.engine.region import find_intervals, find_prices, find_regions
from polyarm.problem import find_optimum

MU = np.array([0.6, 0.7, 0.9])
COSTS = np.array([[0.2, 0.8, 2.0], [0.5, 0.1, 0.3]])
BOUNDS = np.array([1.0, 0.2])
SIGNS = np.array([1.0, -1.0])


def make_problem() -> Problem:
    return Problem(
        arms=("small", "medium", "large"),
        reward_std=0.2,
        delta=0.2,
        r=0.001,  # never within reach
        constraints=(
            Constraint(name="price", bound=1.0, std=0.3),
            Constraint(name="quality", bound=0.2, sense=">=", std=(0.1, 0.2, 0.3)),
        ),
    )


def explore(problem: Problem, steps: int, seed: int) -> Session:
    session, rng = make_explorer("certex", problem, seed=seed), np.random.default_rng(seed)
    stds = np.array([[0.3, 0.3, 0.3], [0.1, 0.2, 0.3]])
    for _ in range(steps):
        arm = session.ask()
        costs = COSTS[:, arm] + stds[:, arm] * rng.standard_normal(2)
        session.tell(arm, MU[arm] + 0.2 * rng.standard_normal(), costs.tolist())
    return session


def test_estimates_are_in_the_users_units() -> None:
    session = explore(make_problem(), 20_000, 1)
    found = find_intervals(session)
    assert np.abs(found.rewards - MU).max() < 0.02
    assert np.abs(found.costs - COSTS).max() < 0.02
    assert found.reward_widths.max() < 0.03


def test_an_arm_without_outcomes_has_no_interval() -> None:
    session = make_explorer("certex", make_problem(), seed=1)
    arm = session.ask()
    session.tell(arm, 0.5, [0.1, 0.2])
    found = find_intervals(session)
    assert np.isnan(found.rewards).tolist() == [a != arm for a in range(3)]
    assert find_regions(session.problem, found) is None
    assert find_prices(session.problem, found) is None


def test_known_rows_have_no_width_and_odd_families_no_interval() -> None:
    problem = Problem(
        arms=("a", "b"),
        family="poisson",
        delta=0.1,
        r=0.1,
        constraints=(Constraint(name="c", bound=1.0, row=(0.5, 2.0)),),
    )
    session = make_explorer("uniform", problem, seed=1)
    for _ in range(20):
        session.tell(session.ask(), 1.0)
    found = find_intervals(session)
    assert found.costs.tolist() == [[0.5, 2.0]]
    assert found.cost_widths.tolist() == [[0.0, 0.0]]
    assert np.isnan(found.reward_widths).all()
    assert not np.isnan(found.rewards).any()


def test_all_intervals_hold_at_all_times_together() -> None:
    """Paths of all means at once, looked at after every pull: a miss anywhere is a failure of the whole path."""
    problem, paths, pulls, failures = make_problem(), 400, 300, 0
    rng = np.random.default_rng(7)
    n = np.arange(1, pulls + 1)
    level = np.log(problem.n_arms * 3 / problem.delta)
    widths = np.sqrt(2.0 * (level + 0.5 * np.log1p(n)) * (n + 1.0)) / n
    session = explore(problem, 600, 3)
    found = find_intervals(session)  # the formula that is tested is the one that is used
    at = session.round.estimates.pulls.astype(int) - 1
    assert found.reward_widths == pytest.approx(0.2 * widths[at])
    for _ in range(paths):
        means = np.cumsum(rng.standard_normal((problem.n_arms * 3, pulls)), axis=1) / n
        failures += bool(np.any(np.abs(means) > widths))
    assert binom.cdf(failures, paths, problem.delta) < 0.999, f"{failures} of {paths} paths left their intervals"
    assert failures > 0, "intervals that are never left would be needlessly wide"


def rows_of(costs: FloatArray) -> FloatArray:
    """Every constraint as a row that must not be positive."""
    return np.asarray(SIGNS[:, None] * (costs - BOUNDS[:, None]))


def test_the_true_set_lies_between_the_pessimistic_and_the_optimistic_one() -> None:
    problem, rng = make_problem(), np.random.default_rng(2)
    found = find_intervals(explore(problem, 3_000, 5))
    regions = find_regions(problem, found)
    assert regions is not None
    widths = found.cost_widths
    sets = {
        "estimated": rows_of(found.costs),
        "optimistic": rows_of(found.costs) - widths,
        "pessimistic": rows_of(found.costs) + widths,
    }
    for name, vertices in vars(regions).items():
        assert (sets[name] @ vertices.T).max() < 1e-8
        for objective in rng.standard_normal((20, 3)):  # the vertices are all of them: no direction leads further
            best = find_optimum(objective, sets[name])
            assert best is not None
            assert (vertices @ objective).max() == pytest.approx(best.value, abs=1e-8)
    mixes = rng.dirichlet(np.ones(3), 2_000).T
    truly = (rows_of(COSTS) @ mixes).max(axis=0) <= 0.0
    assert 100 < truly.sum() < 1_900
    assert ((sets["optimistic"] @ mixes).max(axis=0) <= 0.0)[truly].all()
    assert truly[(sets["pessimistic"] @ mixes).max(axis=0) <= 0.0].all()


def test_prices_are_what_a_little_more_of_a_bound_would_bring() -> None:
    problem = make_problem()
    found = find_intervals(explore(problem, 3_000, 5))
    prices = find_prices(problem, found)
    assert prices is not None
    step = 1e-4
    base = find_optimum(found.rewards, rows_of(found.costs))
    assert base is not None
    for i in range(2):
        looser = BOUNDS + step * SIGNS * (np.arange(2) == i)
        more = find_optimum(found.rewards, SIGNS[:, None] * (found.costs - looser[:, None]))
        assert more is not None
        assert prices[i] == pytest.approx((more.value - base.value) / step, abs=1e-6)
    assert prices.max() > 0.01


def test_too_many_vertices_are_not_listed_and_no_constraint_costs_nothing() -> None:
    many = Problem(
        arms=tuple(f"arm {a}" for a in range(60)),
        reward_std=1.0,
        delta=0.1,
        r=0.1,
        constraints=tuple(Constraint(name=f"c{i}", bound=1.0, std=1.0) for i in range(4)),
    )
    session = make_explorer("uniform", many, seed=1)
    while (session.round.estimates.pulls == 0.0).any():
        session.tell(session.ask(), 0.0, [0.0] * 4)
    assert find_regions(many, find_intervals(session)) is None
    free = Problem(arms=("a", "b"), reward_std=1.0, delta=0.1, r=0.1)
    session = make_explorer("uniform", free, seed=1)
    for _ in range(20):
        session.tell(session.ask(), 0.0)
    found = find_intervals(session)
    regions, prices = find_regions(free, found), find_prices(free, found)
    assert regions is not None
    assert sorted(regions.estimated.tolist()) == [[0.0, 1.0], [1.0, 0.0]]
    assert prices is not None
    assert prices.size == 0
