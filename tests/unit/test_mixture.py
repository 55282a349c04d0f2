"""The pooled certificate against its formulas, and the deviation inequality it rests on against chance."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from contract.suitable import make_instance
from oracle.joint import draw_mixes
from oracle.records import leaves, spoil
from polyarm._types import FloatArray
from polyarm.certify.evidence import make_evidence, witness_value
from polyarm.certify.pooled import (
    Estimated,
    Pricing,
    Worth,
    cost_statistic,
    declared_noise,
    given_pricing,
    make_pricing,
    make_worth,
    weigh_pulls,
    write_pooled_evidence,
)
from polyarm.model import Model, build_model

LEVEL = 1e-3


def read_scalars(record: Any) -> list[float]:
    """The numbers of a record, in order."""
    return [float(value) for _, value in leaves(record)]


def compute(pricing: Pricing, pulls: FloatArray) -> Worth:
    """Effective pulls and thresholds; whatever the outputs held before must not matter."""
    worth = make_worth(pulls.size)
    spoil(worth)
    weigh_pulls(pricing, pulls, worth)
    return worth


def expected_thresholds(
    pulls: FloatArray, lam: float, delta: float, n_known: int, n_unknown: int
) -> tuple[float, float, float]:
    """METHOD, Section 7, written out: rows at the answer, the reward, rows at a witness."""
    price = np.log(1.0 + pulls / lam) / 2.0
    if n_unknown == 0:
        return float(price.sum()), math.log(1.0 / delta) + float(price.sum()), math.nan
    support = min(pulls.size, n_unknown + n_known + 1)
    dearest = float(np.sort(price)[::-1][:support].sum())
    return (
        math.log(n_unknown / (0.4 * delta)) + float(price.sum()),
        math.log(1.0 / (0.3 * delta)) + float(price.sum()),
        math.log(n_unknown / (0.3 * delta)) + dearest,
    )


def test_thresholds_agree_with_the_method() -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        n_arms = int(rng.integers(2, 15))
        n_known, n_unknown = int(rng.integers(0, 4)), int(rng.integers(0, 5))
        lam, delta = 10.0 ** rng.uniform(-1.0, 4.0), 10.0 ** rng.uniform(-6.0, -0.2)
        pulls = np.floor(10.0 ** rng.uniform(0.0, 6.0, size=n_arms))
        pulls[rng.random(n_arms) < 0.3] = pulls[0]  # ties
        worth = compute(make_pricing(True, lam, delta, n_arms, n_known, n_unknown), pulls)
        cost, reward, row = expected_thresholds(pulls, lam, delta, n_known, n_unknown)
        if n_unknown > 0:
            assert worth.thresholds.cost == pytest.approx(cost, rel=1e-12)
            assert worth.thresholds.row == pytest.approx(row, rel=1e-12)
        assert worth.thresholds.reward == pytest.approx(reward, rel=1e-12)
        assert worth.thresholds.witness == 1.0, "every coordinate has its own threshold"
        assert worth.effective == pytest.approx(pulls**2 / (pulls + lam), rel=1e-14)


@pytest.mark.parametrize("n_unknown", [1, 2, 5])
def test_delta_is_spent_once(n_unknown: int) -> None:
    """Rows at the answer, the reward, rows at the true optimum: without the price of watching they spend delta."""
    never = compute(make_pricing(True, 1.0, 0.05, 4, 1, n_unknown), np.zeros(4)).thresholds
    spent = n_unknown * math.exp(-never.cost) + math.exp(-never.reward) + n_unknown * math.exp(-never.row)
    assert spent == pytest.approx(0.05, rel=1e-12)


def test_one_confidence_is_not_split_when_nothing_is_unknown() -> None:
    pulls = np.array([5.0, 7.0])
    worth = compute(make_pricing(True, 2.0, 0.1, 2, 3, 0), pulls)
    price = 0.5 * (math.log1p(2.5) + math.log1p(3.5))
    assert worth.thresholds.reward == pytest.approx(math.log(10.0) + price, rel=1e-14)


def test_more_known_rows_make_larger_supports_dearer() -> None:
    """Every known inequality can put one more arm into an optimal vertex, up to all of them."""
    pulls = np.array([10.0, 20.0, 30.0, 40.0])
    rows = [compute(make_pricing(True, 5.0, 0.1, 4, n, 1), pulls).thresholds.row for n in range(5)]
    assert rows[0] < rows[1] < rows[2] == rows[3] == rows[4]


def test_an_arm_without_pulls_has_no_effective_pulls_and_costs_nothing() -> None:
    worth = compute(make_pricing(True, 4.0, 0.1, 3, 0, 1), np.array([0.0, 8.0, 2.0]))
    cost, reward, row = expected_thresholds(np.array([8.0, 2.0]), 4.0, 0.1, 0, 1)
    assert worth.effective[0] == 0.0
    found = (worth.thresholds.cost, worth.thresholds.reward, worth.thresholds.row)
    assert found == pytest.approx((cost, reward, row), rel=1e-14)


def test_effective_pulls_rise_to_the_pulls() -> None:
    pulls = np.array([1.0, 10.0, 100.0, 1e3, 1e6])
    effective = compute(make_pricing(True, 10.0, 0.1, 5, 0, 0), pulls).effective
    assert (effective < pulls).all()
    assert effective[1] == 5.0
    assert effective[-1] == pytest.approx(pulls[-1] - 10.0, rel=1e-9)


@pytest.mark.parametrize("n_unknown", [0, 3])
def test_stylised_thresholds(n_unknown: int) -> None:
    pulls = np.array([3.0, 0.0, 17.0])
    worth = compute(make_pricing(False, 9.0, 0.02, 3, 1, n_unknown), pulls)
    beta = math.log((1.0 + math.log(20.0)) / 0.02)
    assert read_scalars(worth.thresholds) == pytest.approx([beta] * 4, rel=1e-14)
    assert worth.effective.tolist() == pulls.tolist()


def test_given_thresholds_are_one_and_every_pull_counts() -> None:
    pulls = np.array([0.3, 0.5, 0.2])
    worth = compute(given_pricing(), pulls)
    assert read_scalars(worth.thresholds) == [1.0] * 4
    assert worth.effective.tolist() == pulls.tolist()


# -- The evidence of all outcomes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A problem with estimates from pulls that were never made."""

    model: Model
    estimated: Estimated
    pulls: FloatArray
    answer: FloatArray


def draw(rng: np.random.Generator) -> Drawn:
    n_arms, d = int(rng.integers(2, 7)), int(rng.integers(0, 4))
    known = rng.random(d) < 0.3
    rows: list[dict[str, Any]] = [
        {"name": f"c{i}", "bound": 1.0, "row": (0.0, *rng.uniform(0.0, 3.0, n_arms - 1).tolist())}
        if known[i]
        else {"name": f"c{i}", "bound": 0.0, "std": tuple(rng.uniform(0.5, 2.0, n_arms).tolist())}
        for i in range(d)
    ]
    noise = tuple(rng.uniform(0.5, 2.0, n_arms).tolist())
    instance = make_instance([0.0] * n_arms, [[0.0] * n_arms] * d, rows, reward_std=noise, r=0.2)
    model = build_model(instance.problem)
    costs = np.where(known[:, None], model.known_rows, rng.normal(size=(d, n_arms)))
    estimated = Estimated(rng.normal(size=n_arms), costs, declared_noise(model))
    pulls = np.floor(10.0 ** rng.uniform(0.5, 4.0, size=n_arms))
    return Drawn(model, estimated, pulls, rng.dirichlet(np.ones(n_arms)))


def square(distance: float, variance: float) -> float:
    """The square of a distance in standard deviations, halved; nothing on the wrong side."""
    return max(distance, 0.0) ** 2 / (2.0 * variance)


@pytest.mark.parametrize("kind", ["proved", "stylised", "given"])
def test_the_pooled_evidence_is_what_its_definition_says(kind: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(150):
        drawn = draw(rng)
        model, p = drawn.model, drawn.answer
        d, n_arms = model.known_rows.shape
        n_known = int(model.known.sum())
        proved = kind == "proved"
        pricing = make_pricing(proved, 7.0, 0.1, n_arms, n_known, d - n_known) if kind != "given" else given_pricing()
        worth, evidence = compute(pricing, drawn.pulls), make_evidence(n_arms, d)
        write_pooled_evidence(drawn.estimated, model, pricing, worth, p, evidence)
        mu, G, beta = drawn.estimated.mu, drawn.estimated.rows, worth.thresholds
        sigma, s = model.reward_noise / worth.effective, model.row_noise / worth.effective
        for q in draw_mixes(rng, 4, n_arms):
            Z_0 = square(model.r - mu @ (q - p), float(sigma @ (q - p) ** 2))
            Z = [square(G[i] @ q, float(s[i] @ q**2)) for i in range(d) if not model.known[i]]
            expected = Z_0 + sum(Z)
            if proved:  # the average: the root v of sum_k exp(a_k (w_k / v - 1)) = 1 + sum_k exp(-a_k)
                steeps = np.array([beta.reward, *([beta.row] * len(Z))])
                parts = np.array([Z_0, *Z]) / steeps
                excess = lambda v, w=parts, a=steeps: np.sum(np.exp(a * (w / v - 1.0)) - np.exp(-a)) - 1.0  # noqa: E731
                expected = brentq(excess, 0.5 * parts.max(), 4.0 * parts.max(), rtol=1e-13) if parts.any() else 0.0
            if np.any(G[model.known] @ q > 1e-8):
                expected = np.inf
            assert witness_value(evidence, q) == pytest.approx(expected, rel=1e-8)
        least = min([square(-G[i] @ p, float(s[i] @ p**2)) for i in range(d) if not model.known[i]], default=np.inf)
        if np.any(G[model.known] @ p > 1e-8):
            least = 0.0
        assert cost_statistic(drawn.estimated, model, worth, p) == pytest.approx(least, rel=1e-9)


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
    thresholds = compute(make_pricing(True, 20.0, 0.2, 3, 0, 0), pulls).thresholds
    assert thresholds.reward == pytest.approx(math.log(5.0) + 0.5 * np.log1p(pulls / 20.0).sum(), rel=1e-14)
