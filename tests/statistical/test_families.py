"""Rewards are drawn with the right mean and variance, and easy problems of every family end with a right answer."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from contract.suitable import ALL_EXPLORERS, make_instance, tell_rows
from polyarm import InvalidInput, simulate
from polyarm._compile import kernel
from polyarm.families.bounded import CONCENTRATION
from polyarm.families.family import Family, is_sub_gaussian, make_family, sample_reward

DRAWS = 200_000
#: Chance that one check of a sample fails though nothing is wrong: some 20 of them then fail with less than 1e-6.
FALSE_ALARM = 1e-8
RANGE = (-1.0, 3.0)

# -- Samples ---------------------------------------------------------------------------------------------------


@kernel
def _draw(family: Family, mean: float, rng: np.random.Generator, rewards_out: NDArray[np.float64]) -> None:
    for i in range(rewards_out.size):
        rewards_out[i] = sample_reward(family, 0, mean, rng)


def draw(name: str, mean: float, seed: int = 77) -> NDArray[np.float64]:
    family = make_family(name, 1, 0.8, RANGE if name == "bounded" else None)
    rewards = np.zeros(DRAWS)
    _draw(family, mean, np.random.default_rng(seed), rewards)
    return rewards


def expected_law(name: str, mean: float) -> Any:
    """The distribution that rewards should have."""
    if name == "gaussian":
        return stats.norm(mean, 0.8)
    if name == "bernoulli":
        return stats.bernoulli(mean)
    if name == "poisson":
        return stats.poisson(mean)
    if name == "exponential":
        return stats.expon(scale=mean)
    place, width = (mean - RANGE[0]) / (RANGE[1] - RANGE[0]), RANGE[1] - RANGE[0]
    return stats.beta(CONCENTRATION * place, CONCENTRATION * (1.0 - place), loc=RANGE[0], scale=width)


CASES = [
    *[("gaussian", mean) for mean in (-2.0, 0.5)],
    *[("bounded", mean) for mean in (-0.6, 0.3, 1.0, 2.6)],
    *[("bernoulli", mean) for mean in (0.01, 0.3, 0.9)],
    *[("poisson", mean) for mean in (0.05, 2.0, 30.0)],
    *[("exponential", mean) for mean in (0.02, 1.0, 50.0)],
]


@pytest.mark.parametrize(("name", "mean"), CASES)
def test_rewards_have_the_mean_and_variance_of_their_law(name: str, mean: float) -> None:
    """Central limit theorem, with the exact second and fourth moments."""
    rewards, law = draw(name, mean), expected_law(name, mean)
    variance, excess_kurtosis = law.var(), float(law.stats(moments="k"))
    z = float(stats.norm.isf(FALSE_ALARM / 2.0))
    assert law.mean() == pytest.approx(mean, abs=1e-12)
    assert abs(rewards.mean() - mean) <= z * math.sqrt(variance / DRAWS)
    spread_of_squares = variance * math.sqrt((excess_kurtosis + 2.0) / DRAWS)
    assert abs(np.mean((rewards - mean) ** 2) - variance) <= z * spread_of_squares


@pytest.mark.parametrize(("name", "mean"), [case for case in CASES if case[0] not in ("bernoulli", "poisson")])
def test_continuous_rewards_follow_their_law(name: str, mean: float) -> None:
    assert stats.kstest(draw(name, mean)[:20_000], expected_law(name, mean).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("name", "mean"), [case for case in CASES if case[0] in ("bernoulli", "poisson")])
def test_discrete_rewards_follow_their_law(name: str, mean: float) -> None:
    """Exact binomial tests of single outcomes."""
    rewards, law = draw(name, mean), expected_law(name, mean)
    assert set(np.unique(rewards)) <= set(np.arange(200.0) if name == "poisson" else (0.0, 1.0))
    for outcome in {0, 1, math.floor(mean)}:
        hits = int(np.sum(rewards == outcome))
        assert stats.binomtest(hits, DRAWS, float(law.pmf(outcome))).pvalue > FALSE_ALARM


def test_rewards_on_the_edge_of_the_domain_are_certain() -> None:
    assert set(draw("bernoulli", 0.0)) == {0.0}
    assert set(draw("bernoulli", 1.0)) == {1.0}
    assert set(draw("bounded", RANGE[0])) == {RANGE[0]}
    assert set(draw("bounded", RANGE[1])) == {RANGE[1]}


def test_bounded_rewards_stay_in_their_range() -> None:
    for mean in (-0.999, 0.0, 2.999):
        rewards = draw("bounded", mean)
        assert RANGE[0] <= rewards.min()
        assert rewards.max() <= RANGE[1]


# -- Errors ----------------------------------------------------------------------------------------------------

SEEDS = 60
DELTA = 0.1
LEVEL = 1e-3
EASY: dict[str, dict[str, Any]] = {
    "gaussian": {"mu": [0.9, 0.5, 0.1], "reward_std": 0.5},
    "bounded": {"mu": [0.9, 0.5, 0.1], "reward_range": (0.0, 1.0)},
    "bernoulli": {"mu": [0.9, 0.5, 0.1]},
    "poisson": {"mu": [2.0, 1.0, 0.3]},
    "exponential": {"mu": [3.0, 1.0, 0.3]},
}


@pytest.mark.parametrize("family", EASY)
@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_easy_problems_with_known_rows_end_with_a_right_answer(explorer: str, family: str) -> None:
    stated = {"reward_std": None, "family": family, "delta": DELTA, "r": 0.05, **EASY[family]}
    mu = stated.pop("mu")
    told = tell_rows(make_instance(mu, [[1.0, 0.2, 0.1]], [{"name": "price", "bound": 0.6, "std": 0.3}], **stated))
    try:
        runs = simulate(told, explorer, seeds=SEEDS, workers=1, horizon=20_000).cells[0].runs
    except InvalidInput as error:
        if is_sub_gaussian(family) or family not in str(error):
            raise
        pytest.skip(f"{explorer} refuses {family} rewards")
    assert all(run.feasible for run in runs)
    errors = sum(run.status != "STOPPED" or not run.correct for run in runs)
    assert stats.binomtest(errors, SEEDS, DELTA, alternative="greater").pvalue > LEVEL
