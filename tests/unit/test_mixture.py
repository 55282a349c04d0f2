"""Thresholds of the certified stop against their formulas, and the deviation inequality they rest on against chance."""

import math

import numpy as np
import pytest
from scipy import stats

from oracle.records import spoil
from polyarm._types import FloatArray
from polyarm.certify.pooled import Pricing, Worth, make_pricing, make_worth, weigh_pulls

LEVEL = 1e-3


def compute(pricing: Pricing, pulls: FloatArray) -> Worth:
    """Effective pulls, thresholds and marks; whatever the outputs held before must not matter."""
    worth = make_worth(pulls.size)
    spoil(worth)
    weigh_pulls(pricing, pulls, worth)
    return worth


def expected_thresholds(
    pulls: FloatArray, lam: float, delta: float, n_known: int, n_unknown: int, independent: bool
) -> tuple[float, float]:
    """METHOD, Section 7, written out."""
    price = np.log(1.0 + pulls / lam) / 2.0
    if n_unknown == 0:
        return float(price.sum()), math.log(1.0 / delta) + float(price.sum())
    support = min(pulls.size, n_unknown + n_known + 1)
    copies = 1 if independent else 1 + n_unknown
    cost = math.log(2.0 * n_unknown / delta) + float(price.sum())
    dearest = float(np.sort(price)[::-1][:support].sum())
    return cost, copies * math.log(2.0 / delta) + float(price.sum()) + n_unknown * dearest


@pytest.mark.parametrize("independent", [True, False])
def test_thresholds_agree_with_the_method(independent: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        n_arms = int(rng.integers(2, 15))
        n_known, n_unknown = int(rng.integers(0, 4)), int(rng.integers(0, 5))
        lam, delta = 10.0 ** rng.uniform(-1.0, 4.0), 10.0 ** rng.uniform(-6.0, -0.2)
        pulls = np.floor(10.0 ** rng.uniform(0.0, 6.0, size=n_arms))
        pulls[rng.random(n_arms) < 0.3] = pulls[0]  # ties
        pricing = make_pricing(True, lam, delta, n_arms, n_known, n_unknown, independent)
        worth = compute(pricing, pulls)
        thresholds, dearest = worth.thresholds, worth.dearest
        cost, reward = expected_thresholds(pulls, lam, delta, n_known, n_unknown, independent)
        if n_unknown > 0:
            assert thresholds.cost == pytest.approx(cost, rel=1e-12)
        assert thresholds.reward == pytest.approx(reward, rel=1e-12)
        assert worth.effective == pytest.approx(pulls**2 / (pulls + lam), rel=1e-14)
        support = min(n_arms, n_known + n_unknown + 1) if n_unknown > 0 else 0
        assert dearest.sum() == support
        assert set(dearest.tolist()) <= {0, 1}
        if 0 < support < n_arms:
            assert pulls[dearest == 1].min() >= pulls[dearest == 0].max()


def test_correlated_noise_pays_for_every_row_and_independent_noise_once() -> None:
    """The difference is n_unknown log(2/delta), whatever the pulls."""
    pulls = np.array([3.0, 10.0, 200.0])
    for n_unknown in range(1, 5):
        apart = compute(make_pricing(True, 10.0, 0.05, 3, 0, n_unknown, True), pulls).thresholds
        together = compute(make_pricing(True, 10.0, 0.05, 3, 0, n_unknown, False), pulls).thresholds
        assert together.reward - apart.reward == pytest.approx(n_unknown * math.log(2.0 / 0.05), rel=1e-12)
        assert together.cost == apart.cost


def test_one_confidence_is_not_split_when_nothing_is_unknown() -> None:
    pulls = np.array([5.0, 7.0])
    for independent in (True, False):
        worth = compute(make_pricing(True, 2.0, 0.1, 2, 3, 0, independent), pulls)
        price = 0.5 * (math.log1p(2.5) + math.log1p(3.5))
        assert worth.thresholds.reward == pytest.approx(math.log(10.0) + price, rel=1e-14)
        assert worth.dearest.tolist() == [0, 0]


def test_more_known_rows_make_larger_supports_dearer() -> None:
    """Every known inequality can put one more arm into an optimal vertex, up to all of them."""
    pulls = np.array([10.0, 20.0, 30.0, 40.0])
    rewards = [compute(make_pricing(True, 5.0, 0.1, 4, n, 1, True), pulls).thresholds.reward for n in range(5)]
    assert rewards[0] < rewards[1] < rewards[2] == rewards[3] == rewards[4]


def test_an_arm_without_pulls_has_no_effective_pulls_and_costs_nothing() -> None:
    pricing = make_pricing(True, 4.0, 0.1, 3, 0, 1, True)
    worth = compute(pricing, np.array([0.0, 8.0, 2.0]))
    cost, reward = expected_thresholds(np.array([8.0, 2.0]), 4.0, 0.1, 0, 1, True)
    assert worth.effective[0] == 0.0
    assert (worth.thresholds.cost, worth.thresholds.reward) == pytest.approx((cost, reward), rel=1e-14)


def test_effective_pulls_rise_to_the_pulls() -> None:
    pulls = np.array([1.0, 10.0, 100.0, 1e3, 1e6])
    effective = compute(make_pricing(True, 10.0, 0.1, 5, 0, 0, True), pulls).effective
    assert (effective < pulls).all()
    assert effective[1] == 5.0
    assert effective[-1] == pytest.approx(pulls[-1] - 10.0, rel=1e-9)


@pytest.mark.parametrize("n_unknown", [0, 3])
def test_stylised_thresholds(n_unknown: int) -> None:
    pulls = np.array([3.0, 0.0, 17.0])
    worth = compute(make_pricing(False, 9.0, 0.02, 3, 1, n_unknown, False), pulls)
    beta = math.log((1.0 + math.log(20.0)) / 0.02)
    assert (worth.thresholds.cost, worth.thresholds.reward) == pytest.approx((beta, beta), rel=1e-14)
    assert worth.effective.tolist() == pulls.tolist()
    assert worth.dearest.tolist() == [0, 0, 0]


# -- The deviation inequality ----------------------------------------------------------------------------------

RUNS = 4000
STEPS = 250
ARMS = 3


def sample_adversarially(rule: str, lam: float, margin: float, noise: str, rng: np.random.Generator) -> float:
    """Frequency with which sum_a e_a dev_a^2 / 2 exceeds `margin` + sum_a L_a at some time.

    An adversary chooses the arms and sees every past outcome: `stubborn` keeps pulling what has deviated most, per
    pull; `lucky` leaves an arm once it has deviated (so that it stays so); `greedy` pulls where it hopes for most.
    """
    sums, pulls = np.zeros((RUNS, ARMS)), np.zeros((RUNS, ARMS))
    crossed = np.zeros(RUNS, dtype=np.bool_)
    everyone = np.arange(RUNS)
    for step in range(STEPS):
        if step < ARMS:
            arm = np.full(RUNS, step)
        elif rule == "stubborn":
            arm = np.argmax(np.abs(sums) / pulls, axis=1)
        elif rule == "lucky":
            arm = np.argmin(np.abs(sums) / np.sqrt(pulls), axis=1)
        else:
            hope = (np.abs(sums) + 1.0) ** 2 / (pulls + 1.0 + lam) - sums**2 / (pulls + lam)
            arm = np.argmax(hope - np.log1p(1.0 / (pulls + lam)), axis=1)
        outcomes = rng.choice([-1.0, 1.0], size=RUNS) if noise == "signs" else rng.standard_normal(RUNS)
        sums[everyone, arm] += outcomes
        pulls[everyone, arm] += 1.0
        if step >= ARMS - 1:
            effective = pulls**2 / (pulls + lam)
            deviation = 0.5 * (effective * (sums / pulls) ** 2).sum(axis=1)
            crossed |= deviation > margin + 0.5 * np.log1p(pulls / lam).sum(axis=1)
    return float(crossed.mean())


@pytest.mark.parametrize("noise", ["gaussian", "signs"])
@pytest.mark.parametrize("rule", ["stubborn", "lucky", "greedy"])
@pytest.mark.parametrize("lam", [1.0, 20.0])
def test_deviations_stay_below_their_price_at_all_times(rule: str, noise: str, lam: float) -> None:
    delta = 0.2
    rng = np.random.default_rng([len(rule), len(noise), int(lam)])
    frequency = sample_adversarially(rule, lam, math.log(1.0 / delta), noise, rng)
    failures = round(frequency * RUNS)
    assert stats.binomtest(failures, RUNS, delta, alternative="greater").pvalue > LEVEL
    assert failures > 0, "an adversary that never crosses tests nothing"


def test_without_the_price_of_watching_deviations_exceed_delta() -> None:
    """The adversaries are strong enough to notice a missing sum of L_a."""
    delta = 0.2
    rng = np.random.default_rng(3)
    price = 0.5 * ARMS * math.log1p(STEPS / ARMS / 1.0)
    frequency = sample_adversarially("greedy", 1.0, math.log(1.0 / delta) - price, "gaussian", rng)
    assert stats.binomtest(round(frequency * RUNS), RUNS, delta, alternative="greater").pvalue < LEVEL


def test_the_threshold_is_the_one_of_the_inequality() -> None:
    """Rewards alone: the threshold is log(1/delta) plus the price that the simulations above grant."""
    pulls = np.array([4.0, 60.0, 11.0])
    thresholds = compute(make_pricing(True, 20.0, 0.2, 3, 0, 0, True), pulls).thresholds
    assert thresholds.reward == pytest.approx(math.log(5.0) + 0.5 * np.log1p(pulls / 20.0).sum(), rel=1e-14)
