"""Simulated worlds: what they draw is what the instance states, and what they drew before they still draw."""

import copy
import math
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from contract.suitable import ALL_EXPLORERS, CERTIFYING, make_instance, suit, tell_rows
from polyarm import Instance, InvalidInput, instance_names, load_instance
from polyarm._types import FloatArray
from polyarm.engine.randomness import WORLD, make_stream
from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.draws import CELLS, Draw
from polyarm.environments.instances import load_guess
from polyarm.environments.synthetic import sample

DRAWN = [name for name in instance_names() if load_instance(name).draw is not None]
#: At which a test of what is drawn fails by chance.
LEVEL = 1e-4


def draw_many(instance: Instance, arm: int, pulls: int, seed: int = 1) -> FloatArray:
    """Outcomes (pulls, 1 + d) of one arm."""
    world, rng, costs = instance.world(), make_stream(seed, WORLD), np.zeros(instance.problem.n_constraints)
    return np.array([[sample(world, arm, rng, costs), *costs] for _ in range(pulls)])


def shop(draw: Draw | None, mu: Any = (0.3, 0.6), costs: Any = (2.0, 0.5), **declared: Any) -> Instance:
    """Two arms and one measured row."""
    stated = {"reward_std": None, "reward_range": (0.0, 1.0), **declared}
    cost_range = stated.pop("cost_range", None)
    row = {"name": "price", "bound": 1.0, "range": cost_range, "std": stated.pop("cost_std", None)}
    made = make_instance(list(mu), [list(costs)], [row], **stated)
    return Instance(made.name, made.source, made.problem, made.mu, made.A, draw)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "exponential", "bounded"])
def test_without_draw_the_streams_are_those_of_old(family: str) -> None:
    """As the library drew before instances could say how: the reward by its family, then Gaussian costs."""
    declared: dict[str, Any] = {"reward_std": None}
    if family == "gaussian":
        declared = {"reward_std": (0.5, 2.0)}
    if family == "bounded":
        declared = {"reward_std": None, "reward_range": (-1.0, 3.0)}
    rows = [{"name": "price", "bound": 1.0, "std": (0.3, 0.7)}, {"name": "k", "bound": 9.0, "row": (1.0, 2.0)}]
    instance = make_instance([0.3, 0.6], [[2.0, 0.5], [1.0, 2.0]], rows, family=family, **declared)
    drawn, rng = draw_many(instance, 1, 50), make_stream(1, WORLD)
    for reward, cost, unmeasured in drawn:
        expected = {
            "gaussian": lambda: 0.6 + 2.0 * rng.standard_normal(),
            "bernoulli": lambda: float(rng.random() < 0.6),
            "poisson": lambda: float(rng.poisson(0.6)),
            "exponential": lambda: rng.exponential(0.6),
            "bounded": lambda: -1.0 + 4.0 * rng.beta(4.0 * 0.4, 4.0 * (1.0 - 0.4)),
        }[family]()
        assert reward == expected
        assert cost == 0.5 + 0.7 * rng.standard_normal()
        assert unmeasured == 0.0


@pytest.mark.parametrize("name", DRAWN)
def test_the_means_of_a_world_are_the_stated_ones(name: str) -> None:
    instance = load_instance(name)
    world = instance.world()
    means = np.vstack([instance.mu, instance.A])
    assert np.array_equal(world.means, means)
    for outcome in range(1 + instance.problem.n_constraints):
        if world.tables.size:
            tabled = world.tables[world.table_of[outcome]].mean(axis=1)
            assert tabled == pytest.approx(means[outcome], rel=1e-9, abs=1e-9)
    assert world.tables.shape[2] == (CELLS if world.tables.size else 1)


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("arm", [0, 3])
def test_what_is_drawn_has_the_stated_means_and_standard_deviations(name: str, arm: int) -> None:
    instance = load_instance(name)
    drawn, truth = draw_many(instance, arm, 40_000), instance.world()
    error = drawn.std(axis=0) / 200.0
    assert np.all(np.abs(drawn.mean(axis=0) - truth.means[:, arm]) < 4.5 * error)
    assert drawn.std(axis=0) == pytest.approx(instance.true_stds()[:, arm], rel=0.08)
    for outcome, account in enumerate(
        [instance.problem.reward_account] + [c.account for c in instance.problem.constraints]
    ):
        low, high = account.ends(instance.problem.n_arms)
        assert drawn[:, outcome].min() >= low[arm]
        assert drawn[:, outcome].max() <= high[arm]


def test_true_standard_deviations() -> None:
    bounded = load_instance("router-bounded").true_stds()
    assert bounded == pytest.approx(np.repeat([[0.2], [0.1], [0.15]], 7, axis=1), rel=1e-4)
    coins = load_instance("ab-guardrail")
    assert coins.true_stds() == pytest.approx(
        np.sqrt(np.vstack([coins.mu, coins.A]) * (1 - np.vstack([coins.mu, coins.A])))
    )
    router = load_instance("router")
    price = router.true_stds()[1] / router.A[0]
    assert price[:5] == pytest.approx(0.8, rel=1e-3)
    assert 0.75 < price[6] < price[5] < 0.8, "what is above 20 is cut"
    gaussian = load_instance("router-gaussian").true_stds()
    assert gaussian.tolist() == [[0.25] * 7, [0.4] * 7, [0.5] * 7]
    known = tell_rows(router)
    assert np.isnan(known.true_stds()[1:]).all()
    assert not np.isnan(known.true_stds()[0]).any()


@pytest.mark.parametrize(
    ("law", "low", "high", "truth"),
    [
        ("beta", 0.0, 1.0, stats.beta(0.3 * 1.1, 0.7 * 1.1)),
        ("beta", -1.0, 3.0, stats.beta(0.325 * 20.9375, 0.675 * 20.9375, loc=-1.0, scale=4.0)),
        ("gamma", None, None, stats.gamma(2.25, scale=0.3 / 2.25)),
        ("gaussian", None, None, stats.norm(0.3, 0.2)),
    ],
)
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_outcomes_follow_their_law(law: str, low: float, high: float, truth: Any, correlation: float) -> None:
    spread = {"gamma": 0.2, "gaussian": 0.2}.get(law, float(truth.std()))
    declared = {"reward_std": 1.0, "reward_range": None} if low is None else {"reward_range": (low, high)}
    draw = Draw((law, "bernoulli"), (spread, 0.0), (0.0, 0.0), correlation)
    instance = shop(draw, costs=(0.2, 0.3), cost_range=(0.0, 1.0), **declared)
    assert truth.mean() == pytest.approx(0.3)
    drawn = draw_many(instance, 0, 20_000)
    # A table has steps; none is longer than one point of the law in 8,192.
    rounded = truth.ppf((np.minimum(np.floor(truth.cdf(drawn[:, 0]) * CELLS), CELLS - 1) + 0.5) / CELLS)
    assert stats.kstest(rounded, truth.cdf).pvalue > LEVEL
    assert stats.binomtest(int(drawn[:, 1].sum()), 20_000, 0.2).pvalue > LEVEL


@pytest.mark.parametrize(
    ("law", "spread", "mean"), [("gamma", 4.0, 2.0), ("gaussian", 1.5, 2.5), ("gaussian", 9.0, 0.2)]
)
def test_a_cut_moves_no_mean(law: str, spread: float, mean: float) -> None:
    draw = Draw(("bernoulli", law), (0.0, spread), (0.0, 0.0))
    instance = shop(draw, costs=(mean, 1.0), cost_range=(0.0, 3.0))
    costs = draw_many(instance, 0, 40_000)[:, 1]
    assert np.count_nonzero(costs == 3.0) > 400, "the cut is felt"
    assert costs.mean() == pytest.approx(mean, abs=4.5 * costs.std() / 200.0)
    assert costs.std() == pytest.approx(instance.true_stds()[1, 0], rel=0.02)


def test_the_correlation_is_that_of_the_normal_scores() -> None:
    instance, free = load_instance("router"), load_instance("router-bounded")
    ranks = np.asarray(stats.spearmanr(draw_many(instance, 2, 40_000)).statistic)
    expected = 6.0 / math.pi * math.asin(0.5 / 2.0)
    assert ranks[np.triu_indices(3, 1)] == pytest.approx(expected, abs=0.02)
    apart = np.asarray(stats.spearmanr(draw_many(free, 2, 40_000)).statistic)
    assert apart[np.triu_indices(3, 1)] == pytest.approx(0.0, abs=0.02)


def test_correlated_coins() -> None:
    draw = Draw(("bernoulli", "bernoulli"), (0.0, 0.0), (0.0, 0.0), 0.5)
    coins = draw_many(shop(draw, mu=(0.5, 0.5), costs=(0.5, 0.5), cost_range=(0.0, 1.0)), 0, 40_000)
    assert np.isin(coins, (0.0, 1.0)).all()
    both = 0.25 + math.asin(0.5) / (2.0 * math.pi)  # of two normal scores of correlation one half
    assert stats.binomtest(int((coins.sum(axis=1) == 2.0).sum()), 40_000, both).pvalue > LEVEL


def test_coins_that_never_or_always_fall_on_one_side() -> None:
    for correlation in (0.0, 0.5):
        draw = Draw(("bernoulli", "bernoulli"), (0.0, 0.0), (0.0, 0.0), correlation)
        instance = shop(draw, mu=(0.0, 1.0), costs=(1.0, 0.0), cost_range=(0.0, 1.0))
        assert set(map(tuple, draw_many(instance, 0, 200))) == {(0.0, 1.0)}
        assert set(map(tuple, draw_many(instance, 1, 200))) == {(1.0, 0.0)}


def test_an_arm_that_costs_nothing() -> None:
    draw = Draw(("bernoulli", "gamma"), (0.0, 0.0), (0.0, 0.8))
    instance = shop(draw, costs=(0.0, 0.5))
    assert set(draw_many(instance, 0, 50)[:, 1]) == {0.0}
    assert instance.true_stds()[1, 0] == 0.0


def test_a_cost_with_a_range_and_no_draw_is_drawn_within_it() -> None:
    costs = draw_many(shop(None, costs=(2.0, 0.5), cost_range=(-1.0, 4.0)), 0, 20_000)[:, 1]
    assert stats.kstest(costs, stats.beta(4.0 * 0.6, 4.0 * 0.4, loc=-1.0, scale=5.0).cdf).pvalue > LEVEL


def test_what_nobody_declares_needs_a_draw() -> None:
    with pytest.raises(InvalidInput, match=r"constraint 'price' has neither a std nor a range.*draw"):
        shop(None).world()
    with pytest.raises(InvalidInput, match=r"the reward has neither a std nor a range.*draw"):
        shop(None, reward_range=None, cost_std=1.0).world()
    assert shop(None).optimum() is not None, "only drawing needs it"


def test_an_estimated_outcome_is_drawn_as_the_instance_says() -> None:
    instance = shop(Draw(("gaussian", "gamma"), (0.5, 0.0), (0.0, 0.5)), reward_range=None)
    assert instance.problem.reward_family is None
    assert instance.problem.constraints[0].account.kind == "estimated"
    assert instance.true_stds() == pytest.approx(np.array([[0.5, 0.5], [1.0, 0.25]]), rel=1e-3)


def test_a_gaussian_draw_may_contradict_what_is_declared() -> None:
    told = shop(Draw(("gaussian", "gaussian"), (0.0, 3.0), (0.0, 0.0)), reward_std=0.2, reward_range=None, cost_std=0.1)
    assert told.true_stds().tolist() == [[0.2, 0.2], [3.0, 3.0]]


def test_draws_allocate_nothing() -> None:
    runtime: Any = import_module("numba.core.runtime.nrt")
    world, rng, costs = load_instance("router").world(), make_stream(1, WORLD), np.zeros(2)
    for _ in range(3):
        sample(world, 0, rng, costs)
    runtime._nrt.memsys_enable_stats()

    def taken() -> int:
        counted = runtime.rtsys.get_allocation_stats()
        return int(counted.alloc + counted.mi_alloc)

    try:
        before = taken()
        empty = load_instance("figure1").world()
        sample(empty, 0, rng, costs)
        sample(empty, 0, rng, costs)
        one = taken()
        sample(empty, 0, rng, costs)
        per_call = taken() - one  # handing the arguments over
        one = taken()
        sample(world, 0, rng, costs)
        assert taken() - one == per_call
        assert before <= one
    finally:
        runtime._nrt.memsys_disable_stats()


def test_a_run_on_a_drawn_world_is_decided_by_its_seed() -> None:
    for name in DRAWN:
        runs = [Exploration(*plan_run(load_instance(name), "uniform", {}), seed) for seed in (1, 1, 2)]
        for run in runs:
            run.advance_to(200)
        first, again, other = (run.session.round.estimates.reward_sums.tolist() for run in runs)
        assert first == again
        assert first != other


@pytest.mark.parametrize("explorer", sorted(set(ALL_EXPLORERS) - CERTIFYING))
@pytest.mark.parametrize("name", DRAWN)
def test_the_explorers_of_the_paper_run_on_drawn_worlds(name: str, explorer: str) -> None:
    instance = suit(explorer, load_instance(name))
    run = Exploration(*plan_run(instance, explorer, {"delta": 1e-100}), 1)
    run.advance_to(150)
    assert run.session.steps == 150
    assert np.isfinite(run.session.round.estimates.mu_hat).all()
    assert 0.0 <= run.session.round.estimates.mu_hat.min() <= run.session.round.estimates.mu_hat.max() <= 1.0


def test_instances_with_a_draw_are_copied_pickled_and_compared() -> None:
    instance = load_instance("router")
    assert copy.copy(instance) == instance == pickle.loads(pickle.dumps(instance))
    assert instance.with_problem(r=0.1).draw == instance.draw
    assert instance != Instance(instance.name, instance.source, instance.problem, instance.mu, instance.A)


# -- what is refused --------------------------------------------------------------------------------------------------

GOOD: dict[str, str] = {
    "mu": "[0.2, 0.5]",
    "A": "[[1.0, 2.0], [0.5, 0.5]]",
    "b": "[2.0, 1.0]",
    "reward_range": "[0, 1]",
    "cost_range": "[[0, 10], []]",
    "draw": '["beta", "gamma", "gaussian"]',
    "draw_std": "[0.1, 0.0, 0.3]",
    "draw_cv": "[0.0, 0.5, 0.0]",
    "correlation": "0.25",
    "delta": "0.1",
    "r": "0.1",
}


def load(folder: Path, **changes: str | None) -> Instance:
    path = folder / "mine.toml"
    keys = {**GOOD, **changes}
    path.write_text("\n".join(f"{key} = {value}" for key, value in keys.items() if value is not None))
    return load_instance(path)


def test_every_key_is_read(tmp_path: Path) -> None:
    instance = load(tmp_path, cap="true")
    problem, (first, second) = instance.problem, instance.problem.constraints
    assert instance.draw == Draw(("beta", "gamma", "gaussian"), (0.1, 0.0, 0.3), (0.0, 0.5, 0.0), 0.25)
    assert (problem.reward_range, problem.reward_cap) == ((0.0, 1.0), True)
    assert (first.range, first.cap, first.account.kind) == ((0.0, 10.0), True, "range")
    assert (second.range, second.cap, second.account.kind) == (None, False, "estimated")


def test_one_word_or_one_pair_serves_all(tmp_path: Path) -> None:
    instance = load(tmp_path, cost_range="[0, 10]", draw='"beta"', draw_std="0.1", draw_cv=None, correlation=None)
    assert [c.range for c in instance.problem.constraints] == [(0.0, 10.0)] * 2
    assert instance.draw == Draw(("beta",) * 3, (0.1,) * 3, (0.0,) * 3, 0.0)
    mixed = load(tmp_path, draw='["bernoulli", "beta", "beta"]', draw_std="0.1", draw_cv=None, cost_range="[0, 10]")
    assert mixed.draw is not None
    assert mixed.draw.std == (0.0, 0.1, 0.1), "a coin has no spread of its own"
    known = load(tmp_path, cost_range="[0, 10]", known="[false, true]", draw='"beta"', draw_std="0.1", draw_cv=None)
    assert [c.range for c in known.problem.constraints] == [(0.0, 10.0), None]
    capped = load(tmp_path, cap="[false, true, false]")
    assert (capped.problem.reward_cap, [c.cap for c in capped.problem.constraints]) == (False, [True, False])


def test_a_range_by_arm_and_a_std_beside_a_range(tmp_path: Path) -> None:
    instance = load(tmp_path, cost_range="[[[0, 10], [1, 5]], []]", cost_std="[[], 0.4]")
    first, second = instance.problem.constraints
    assert first.range == ((0.0, 10.0), (1.0, 5.0))
    assert (second.range, second.std) == (None, 0.4)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"draw": '"betta"'}, ["unknown draw 'betta'", "known: bernoulli, beta, gamma, gaussian", "'beta'"]),
        ({"draw": "3"}, ["unknown draw '3'"]),
        ({"draw": '["beta", "beta"]'}, ["draw: expected one law, or 3 (reward, then each row)"]),
        ({"draw": None}, ["draw_std: belongs to `draw`"]),
        ({"draw": None, "draw_std": None}, ["draw_cv: belongs to `draw`"]),
        ({"draw": None, "draw_std": None, "draw_cv": None}, ["correlation: belongs to `draw`"]),
        ({"draw_std": "[0.1, 0.3]"}, ["draw_std: expected a number, 0 or more, or 3", "[0.1, 0.3]"]),
        ({"draw_std": "[0.1, 0.0, -0.3]"}, ["draw_std: expected a number, 0 or more", "-0.3"]),
        ({"draw_std": "nan"}, ["draw_std: expected a number", "nan"]),
        ({"draw_cv": '"half"'}, ["draw_cv: expected a number", "'half'"]),
        ({"draw_cv": "true"}, ["draw_cv: expected a number", "True"]),
        ({"correlation": "1.0"}, ["correlation: expected a number from 0 to below 1, got 1.0"]),
        ({"correlation": "-0.1"}, ["correlation: expected a number from 0 to below 1, got -0.1"]),
        ({"draw_std": "[0.1, 0.2, 0.3]"}, ["constraint 'constraint 1'", "draw_std or draw_cv, not both", "0.2", "0.5"]),
        ({"draw_std": "[0.0, 0.0, 0.3]"}, ["the reward: a beta needs draw_std or draw_cv above 0"]),
        ({"draw_std": "[0.1, 0.0, 0.0]"}, ["'constraint 2'", "a gaussian needs draw_std or draw_cv above 0"]),
        ({"draw_std": "[0.5, 0.0, 0.3]"}, ["the reward, arm 'arm 1'", "needs a standard deviation below 0.4, got 0.5"]),
        ({"draw": '["bernoulli", "gamma", "gaussian"]'}, ["the reward: a bernoulli's spread follows from its mean"]),
        (
            {"draw": '["beta", "bernoulli", "gaussian"]', "draw_cv": "0.0", "A": "[[0.5, 2.0], [0.5, 0.5]]"},
            ["'constraint 1', arm 'arm 2'", "a bernoulli needs a mean from 0 to 1, got 2"],
        ),
        (
            {"draw": '["bernoulli", "gamma", "gaussian"]', "draw_std": "[0.0, 0.0, 0.3]", "reward_range": "[0, 0.9]"},
            ["the reward", "a bernoulli gives 0 or 1, but its range is [0, 0.9]"],
        ),
        (
            {"cost_range": "[[0, 2], []]"},
            ["'constraint 1', arm 'arm 2'", "a gamma needs a mean between 0 and 2", "got 2"],
        ),
        (
            {"cost_range": "[[1, 9], []]"},
            ["'constraint 1', arm 'arm 1'", "a gamma needs a mean between 1 and 9", "got 1"],
        ),
        (
            {"cost_range": "[[0, 1.5], []]"},
            ["A: expected mean costs within the range of constraint 'constraint 1'", "2.0"],
        ),
        ({"A": "[[-1.0, 2.0], [0.5, 0.5]]", "cost_range": None}, ["arm 'arm 1': a gamma needs a mean above 0, got -1"]),
        (
            {"cost_range": "[[], [0.5, 9]]"},
            ["'constraint 2', arm 'arm 1': a gaussian that is cut needs a mean between 0.5 and 9"],
        ),
        (
            {"cost_range": "[[], []]", "draw": '["beta", "beta", "gaussian"]'},
            ["a beta on [0, 1] needs a mean inside, got 1"],
        ),
        ({"family": '"poisson"', "reward_range": None}, ["rewards of family 'poisson' cannot be drawn from a beta"]),
        (
            {"family": '"bernoulli"', "reward_range": None},
            ["rewards of family 'bernoulli' cannot be drawn from a beta; use bernoulli"],
        ),
        ({"cost_range": "3"}, ["cost_range: expected a pair [low, high], or one per row ([] for none), got 3"]),
        ({"cost_range": "[[0, 10]]"}, ["cost_range: expected a list of 2, one per constraint"]),
        ({"cost_range": "[[10, 0], []]"}, ["'constraint 1'", "expected the least value, then a larger one"]),
        ({"cost_range": "[[0, 10], [0, 1]]", "known": "[false, true]"}, ["'constraint 2'", "are known"]),
        ({"cost_std": "1.0"}, ["'constraint 1': give `range` or `std`, not both"]),
        ({"reward_std": "1.0"}, ["give `reward_range` or `reward_std`, not both"]),
        ({"cap": '"yes"'}, ["cap: expected true or false, or a list of 3 (reward, then each row), got 'yes'"]),
        ({"cap": "[true, true]"}, ["cap: expected true or false, or a list of 3", "[True, True]"]),
        ({"cap": "[true, true, true]"}, ["'constraint 2': `cap` cuts values at the end of the range; give `range`"]),
        (
            {"cap": "true", "reward_range": None, "cost_range": None, "draw": '["beta", "gamma", "gaussian"]'},
            ["cap: cuts values at the end of a range; give reward_range or cost_range"],
        ),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_error(
    tmp_path: Path, changes: dict[str, str | None], fragments: list[str]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        load(tmp_path, **changes)
    message = str(caught.value)
    assert message.startswith("instance 'mine': ")
    for fragment in fragments:
        assert fragment in message


def test_a_gamma_that_no_cut_can_bring_to_its_mean(tmp_path: Path) -> None:
    instance = load(tmp_path, draw_cv="[0.0, 200.0, 0.0]", A="[[1.0, 9.9], [0.5, 0.5]]")
    with pytest.raises(InvalidInput, match=r"a gamma of mean 1 .* does not fit into a range that ends at 10"):
        instance.world()


def test_a_guess_keeps_its_draw(tmp_path: Path) -> None:
    load(tmp_path)
    path = tmp_path / "mine.toml"
    path.write_text(path.read_text().replace("[0.2, 0.5]", "[[0.2, 0.3], 0.5]"))
    assert all(instance.draw is not None for instance in [load_guess(path).middle(), *load_guess(path).draw(2, 0)])
