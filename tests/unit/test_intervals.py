"""Intervals, sets of mixes and prices: what a study's page shows of what is known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from oracle.joint import deviations
from polyarm import Constraint, Problem, Session, make_explorer
from polyarm._types import FloatArray
from polyarm.engine.region import find_intervals, find_prices, find_regions
from polyarm.problem import find_optimum

MU = np.array([0.6, 0.7, 0.9])
COSTS = np.array([[0.2, 0.8, 2.0], [0.5, 0.1, 0.3]])
BOUNDS = np.array([1.0, 0.2])
SIGNS = np.array([1.0, -1.0])


#: How the reward, the price and the quality are declared.
DECLARED: dict[str, tuple[dict[str, Any], ...]] = {
    "std": ({"std": 0.2}, {"std": 0.3}, {"std": (0.1, 0.2, 0.3)}),
    "range": ({"range": (0.0, 1.5)}, {"range": ((-1.0, 2.0), (-1.0, 2.0), (0.0, 4.0))}, {"range": (-1.0, 2.0)}),
    "nothing": ({}, {}, {}),
}
STDS = np.array([[0.2, 0.2, 0.2], [0.3, 0.3, 0.3], [0.1, 0.2, 0.3]])


def make_problem(how: str = "std") -> Problem:
    reward, price, quality = DECLARED[how]
    told: dict[str, Any] = {f"reward_{name}": value for name, value in reward.items()}
    return Problem(
        arms=("small", "medium", "large"),
        delta=0.2,
        r=0.001,  # never within reach
        constraints=(
            Constraint(name="price", bound=1.0, **price),
            Constraint(name="quality", bound=0.2, sense=">=", **quality),
        ),
        **told,
    )


def draw(rng: np.random.Generator, arm: int, n: int) -> FloatArray:
    """Outcomes (3, n) of an arm, skewed: inside every range that is declared."""
    means = np.r_[MU[arm], COSTS[:, arm]][:, None]
    return np.asarray(means + STDS[:, arm, None] * (2.0 * rng.beta(2.0, 2.0, size=(3, n)) - 1.0))


def explore(
    problem: Problem, steps: int, seed: int, explorer: str = "certex"
) -> tuple[Session, list[FloatArray], list[list[int]]]:
    """A session, the outcomes (3, n) that it was told of each arm, and how many were in when each was planned.

    By blocks those are the ones before the block; pull by pull, all before the outcome.
    """
    session, rng = make_explorer(explorer, problem, seed=seed), np.random.default_rng(seed)
    told: list[list[FloatArray]] = [[] for _ in MU]
    known: list[list[int]] = [[] for _ in MU]
    opened, before = -1, [0] * MU.size
    for step in range(steps):
        arm = session.ask()
        begun = int(session.state.block.now.told) if explorer == "certex" else step
        if begun != opened:
            opened, before = begun, [len(outcomes) for outcomes in told]
        outcome = draw(rng, arm, 1)[:, 0]
        session.tell(arm, float(outcome[0]), outcome[1:].tolist())
        told[arm].append(outcome)
        known[arm].append(before[arm])
    return session, [np.array(outcomes).T for outcomes in told], known


def test_estimates_are_in_the_users_units() -> None:
    session, _, _ = explore(make_problem(), 20_000, 1)
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


def test_known_rows_have_no_width_and_what_never_varied_no_end() -> None:
    problem = Problem(
        arms=("a", "b"),
        family="poisson",
        delta=0.1,
        r=0.1,
        constraints=(Constraint(name="c", bound=1.0, row=(0.5, 2.0)),),
    )
    session = make_explorer("uniform", problem, seed=1)
    for step in range(20):
        arm = session.ask()
        session.tell(arm, 1.0 + (step % 3) * arm)
    found = find_intervals(session)
    assert found.costs.tolist() == [[0.5, 2.0]]
    assert found.cost_widths.tolist() == [[0.0, 0.0]]
    assert np.isinf(found.reward_widths).tolist() == [True, False]
    assert not np.isnan(found.rewards).any()


# -- Widths ----------------------------------------------------------------------------------------------------

REACHES = (0.4, 0.7, 1.0, 1.5, 2.0, 2.5, 3.2, 4.5, np.inf)


def price_of(u: FloatArray) -> FloatArray:
    """G(u) = 2 (-log(1 - u) - u)/u^2."""
    return np.asarray(2.0 * (-np.log1p(-u) - u) / u**2)


def widths_over_time(
    how: str, outcomes: FloatArray, level: float, std: float, ends: tuple[float, float], known: Sequence[int]
) -> FloatArray:
    """Half the interval of a mean after each outcome (paths, n), from the lemma with every coefficient one.

    So many outcomes of the path are `known` when each is guessed. The precision is one pull's worth of variance:
    declared, a quarter of the width squared, or what was seen.
    """
    n = np.arange(1, outcomes.shape[1] + 1)
    if how == "std":
        z = deviations(level + 0.5 * np.log1p(n), np.inf)
        return np.broadcast_to(std * z * np.sqrt(n + 1.0) / n, outcomes.shape)
    if how == "nothing":
        means = np.cumsum(outcomes, axis=1) / n
        powers = [np.cumsum((outcomes - outcomes.mean()) ** k, axis=1) for k in range(5)]
        m = means - outcomes.mean()
        squares = powers[2] - m * powers[1]
        fourths = powers[4] - 4 * m * powers[3] + 6 * m**2 * powers[2] - 3 * m**3 * powers[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            guard = np.where(n > 1, np.maximum(1.0, 80.0 * fourths / squares**2) ** 2, np.inf)
        z = deviations(level + 0.5 * np.log1p(n), np.inf)
        spread = np.where(n > 1, np.maximum(squares, 1e-300) / n, 1.0)
        return np.asarray(z * np.sqrt(spread * guard * (n + 1.0)) / n)
    low, high = ends
    width, prior = high - low, 0.25 * (high - low) ** 2
    sums = np.cumsum(np.hstack([np.zeros((len(outcomes), 1)), outcomes]), axis=1)
    guesses = (sums[:, known] + 0.5 * (low + high)) / (np.array(known) + 1.0)
    wander = np.cumsum((outcomes - guesses) ** 2, axis=1)
    best = np.full(outcomes.shape, width)
    for reach in REACHES:
        u = reach * width / np.sqrt(wander + prior)
        learned = price_of(np.minimum(u, 0.9)) * wander
        total = np.where(u <= 0.9, learned, learned + prior * n) + prior
        z = deviations(level + 0.5 * np.log(total / prior), reach)
        best = np.minimum(best, z * np.sqrt(total) / n)
    return best


def ends_of(how: str, k: int, arm: int) -> tuple[float, float]:
    """The range of an outcome of an arm, if it has one."""
    if how != "range":
        return (np.nan, np.nan)
    low, high = np.broadcast_to(np.array(DECLARED[how][k]["range"]), (3, 2))[arm]
    return float(low), float(high)


@pytest.mark.parametrize(
    ("how", "explorer"),
    [*((how, "certex") for how in DECLARED), *((how, "uniform") for how in DECLARED if how != "nothing")],
)
def test_widths_are_those_of_the_lemma(how: str, explorer: str) -> None:
    problem = make_problem(how)
    session, told, known = explore(problem, 600, 3, explorer)
    found = find_intervals(session)
    # Two sides of nine means share a twentieth of delta; without a certificate, all of it.
    level = float(np.log(2.0 * 9.0 / ((0.05 if explorer == "certex" else 1.0) * problem.delta)))
    for arm, outcomes in enumerate(told):
        for k, widths in enumerate((found.reward_widths, *found.cost_widths)):
            ends = ends_of(how, k, arm)
            expected = widths_over_time(how, outcomes[k : k + 1], level, STDS[k, arm], ends, known[arm])
            assert widths[arm] == pytest.approx(expected[0, -1], rel=1e-7)


@pytest.mark.parametrize(("how", "growth"), [("std", 0.0), ("range", 0.0), ("range", 0.3), ("nothing", 0.0)])
def test_all_intervals_hold_at_all_times_together(how: str, growth: float) -> None:
    """Paths of all means at once, looked at after every pull: a miss anywhere is a failure of the whole path.

    Outcomes are guessed one by one, or at the beginning of blocks that grow.
    """
    paths, pulls, delta = 400, 300, 0.3
    known: list[int] = []
    while len(known) < pulls:
        known += [len(known)] * max(1, int(growth * len(known)))
    known = known[:pulls]
    rng, level = np.random.default_rng(7), float(np.log(2.0 * 9.0 / 0.3))
    n, missed, near = np.arange(1, pulls + 1), np.zeros(paths, dtype=np.bool_), 0.0
    for arm in range(3):
        for k, mean in enumerate((MU[arm], *COSTS[:, arm])):
            low, high = ends_of(how, k, arm)
            outcomes = draw(rng, arm, paths * pulls)[k].reshape(paths, pulls)
            if how == "std":
                outcomes = mean + STDS[k, arm] * rng.standard_normal((paths, pulls))
            elif how == "range" and k > 0:  # as wide as the range allows
                outcomes = np.where(rng.random((paths, pulls)) < (mean - low) / (high - low), high, low)
            widths = widths_over_time(how, outcomes, level, STDS[k, arm], (low, high), known)
            away = np.abs(np.cumsum(outcomes, axis=1) / n - mean) / widths
            missed |= np.any(away > 1.0, axis=1)
            near = max(near, float(away.max()))
    failures = int(missed.sum())
    assert binom.cdf(failures, paths, delta) < 0.999, f"{failures} of {paths} paths left their intervals"
    assert near > 0.6, "intervals that no mean comes near would be needlessly wide"


def rows_of(costs: FloatArray) -> FloatArray:
    """Every constraint as a row that must not be positive."""
    return np.asarray(SIGNS[:, None] * (costs - BOUNDS[:, None]))


def test_ends_stay_within_a_declared_range() -> None:
    """Of few outcomes the intervals are wider than the range: no mean is beyond it, and no set follows from one."""
    problem = Problem(
        arms=("a", "b"),
        reward_range=(0.0, 1.0),
        delta=0.1,
        r=0.1,
        constraints=(
            Constraint(name="price", bound=4.0, range=((0.0, 20.0), (0.0, 30.0))),
            Constraint(name="quality", bound=-1.0, sense=">=", range=(-2.0, 3.0)),
        ),
    )
    session = make_explorer("certex", problem, seed=1)
    for step in range(8):
        session.tell(session.ask(), 0.5 + 0.1 * (step % 3), [5.0 + step % 4, 1.0])
    found = find_intervals(session)
    assert (found.rewards - found.reward_widths).min() < 0.0
    assert found.reward_ends.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert found.cost_ends.tolist() == [[[0.0, 0.0], [-2.0, -2.0]], [[20.0, 30.0], [3.0, 3.0]]]
    assert found.kind == "proved"
    regions = find_regions(problem, found)
    assert regions is not None
    assert len(regions.optimistic) == 2, "at best every mix fits"
    assert len(regions.pessimistic) == 0


def test_intervals_that_rest_on_an_estimated_variance_are_asymptotic() -> None:
    problem = Problem(
        arms=("a", "b"), reward_std=0.3, delta=0.1, r=0.1, constraints=(Constraint(name="price", bound=1.0),)
    )
    session = make_explorer("certex", problem, seed=1)
    for step in range(8):
        session.tell(session.ask(), 0.5, [1.0 + step % 3])
    found = find_intervals(session)
    assert found.kind == "asymptotic"
    assert np.all(np.isfinite(found.cost_ends)), "without a range there is no end but that of the interval"


@pytest.mark.parametrize("sense", ["<=", ">="])
def test_the_sets_where_a_cost_has_never_varied(sense: str) -> None:
    """Nothing is known of it: at best every mix fits, at worst none that has that arm."""
    price = Constraint(name="price", bound=4.0, sense=sense)  # type: ignore[arg-type]
    problem = Problem(arms=("a", "b"), reward_range=(0.0, 1.0), delta=0.1, r=0.1, constraints=(price,))
    session = make_explorer("certex", problem, seed=1)
    fits, varied = (0.0, 1.0) if sense == "<=" else (8.0, 7.0)
    for step in range(400):
        arm = session.ask()
        session.tell(arm, 0.5 + 0.01 * (step % 3), [fits if arm == 0 else (fits, varied)[step % 2]])
    found = find_intervals(session)
    assert np.isinf(found.cost_widths).tolist() == [[True, False]]
    regions = find_regions(problem, found)
    assert regions is not None
    assert regions.estimated[:, 0].tolist() == regions.optimistic[:, 0].tolist() == [1.0, 0.0]
    assert regions.pessimistic[:, 0].min() == 0.0
    assert regions.pessimistic[:, 0].max() < 1e-3


def test_the_true_set_lies_between_the_pessimistic_and_the_optimistic_one() -> None:
    problem, rng = make_problem(), np.random.default_rng(2)
    found = find_intervals(explore(problem, 3_000, 5)[0])
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
    found = find_intervals(explore(problem, 3_000, 5)[0])
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
