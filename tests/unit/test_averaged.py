"""The averaged certificate: its formulas against a plain re-statement, and the inequality behind its floors."""

import math

import numpy as np
import pytest
from scipy.special import erfcx

from contract.suitable import make_instance
from oracle.joint import draw_mixes
from oracle.records import spoil
from oracle.reference import FloatArray, Generator
from polyarm.certify.blocks import (
    COST_SLAB,
    MAX_STARTS,
    REWARD_SLAB,
    START_WEIGHTS,
    Start,
    add_block,
    begin,
    cost_evidence,
    find_thresholds,
    make_start,
    row_variance,
    write_block_evidence,
)
from polyarm.certify.evidence import make_evidence, witness_value
from polyarm.model import Model, build_model

R = 0.2
Block = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # counts, answer, mean rewards, mean rows


def draw_model(rng: Generator, n_arms: int, d: int) -> Model:
    noise = tuple(rng.uniform(0.5, 2.0, size=n_arms).tolist())
    rows = [
        {"name": f"c{i}", "bound": 0.0, "std": tuple(rng.uniform(0.5, 2.0, size=n_arms).tolist())} for i in range(d)
    ]
    return build_model(make_instance([0.0] * n_arms, [[0.0] * n_arms] * d, rows, reward_std=noise, r=R).problem)


def make_free_start(model: Model) -> Start:
    """A start whose thresholds do not pay for delta."""
    start = make_start(1, model.delta, model.independent, model)
    start.terms.reward_log = start.terms.cost_log = 0.0
    return start


def draw_start(rng: Generator, model: Model) -> tuple[Start, list[Block]]:
    """A start with a few blocks."""
    d, n_arms = model.known_rows.shape
    start = make_free_start(model)
    begin(start, 100.0, 400.0, rng.dirichlet(np.full(n_arms, 5.0)), rng.dirichlet(np.ones(n_arms)), model)
    blocks = []
    for _ in range(int(rng.integers(1, 6))):
        block: Block = (
            rng.integers(1, 30, size=n_arms).astype(float),
            rng.dirichlet(np.ones(n_arms)),
            np.asarray(rng.normal(size=n_arms)),
            rng.normal(size=(d, n_arms)),
        )
        add_block(start, *block)
        blocks.append(block)
    return start, blocks


def statistic(model: Model, start: Start, blocks: list[Block], q: FloatArray, kap: float) -> float:
    """What the reward test compares with b_0, straight from its definition."""
    sizes = [float(counts.sum()) for counts, *_ in blocks]
    lam, anchor, noise = start.lam, start.anchor, model.reward_noise
    D_0 = sum(n * (R - m @ (q - p)) for n, (_, p, m, _) in zip(sizes, blocks, strict=True))
    V_0 = sum(n**2 * (noise * (q - p) ** 2 / counts).sum() for n, (counts, p, _, _) in zip(sizes, blocks, strict=True))
    Lam_0 = (noise * lam * ((q - anchor) ** 2 + 0.3 * anchor**2)).sum()
    total = max(D_0, 0.0) ** 2 / (2.0 * (V_0 + Lam_0))
    v = sum(n**2 / counts for n, (counts, *_) in zip(sizes, blocks, strict=True))
    for i in range(model.known.size):
        D_i = sum(n * (G[i] @ q) for n, (*_, G) in zip(sizes, blocks, strict=True))
        V_c, Lam_c = (model.row_noise[i] * v * q**2).sum(), (model.row_noise[i] * lam * q**2).sum()
        total += max(max(D_i, 0.0) ** 2 / (2.0 * (V_c + Lam_c)), kap)
    return float(total)


def test_the_reward_statistic_is_what_its_definition_says() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        n_arms, d = int(rng.integers(2, 7)), int(rng.integers(0, 4))
        model = draw_model(rng, n_arms, d)
        start, blocks = draw_start(rng, model)
        evidence, kap = make_evidence(n_arms, d), float(rng.uniform(0.0, 1.0))
        spoil(evidence)
        write_block_evidence(start, kap, model, evidence)
        for q in draw_mixes(rng, 5, n_arms):
            expected = statistic(model, start, blocks, q, kap)
            assert witness_value(evidence, q) == pytest.approx(expected, rel=1e-8)


def test_the_cost_evidence_is_the_mean_of_three_exponentials() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        model = draw_model(rng, 3, 1)
        start, blocks = draw_start(rng, model)
        D = -sum(float(c.sum()) * float(G[0] @ p) for c, p, _, G in blocks)
        V = sum(float(c.sum()) ** 2 * float((model.row_noise[0] * p**2 / c).sum()) for c, p, _, _ in blocks)
        assert start.slack[0] == pytest.approx(D)
        assert row_variance(start, 0, model) == pytest.approx(V)
        th = math.sqrt(2.0 * 3.0 / start.predicted[0])
        mean = sum(w * math.exp(x * D - x * x * V / 2) for w, x in ((0.25, th / 1.7), (0.5, th), (0.25, 1.7 * th)))
        assert cost_evidence(D, V, start.predicted[0], 3.0) == pytest.approx(math.log(mean), rel=1e-9)


def test_the_ratios_bound_variance_over_precision_for_every_witness() -> None:
    """R_0 and R_c stand in for the ratio of the one witness that matters, which nobody knows."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        model = draw_model(rng, int(rng.integers(2, 7)), 2)
        start, blocks = draw_start(rng, model)
        threshold, floor = find_thresholds(start, model)
        lam, anchor, noise = start.lam, start.anchor, model.reward_noise
        for q in draw_mixes(rng, 20, lam.size):
            V_0 = sum(c.sum() ** 2 * (noise * (q - p) ** 2 / c).sum() for c, p, _, _ in blocks)
            L_0 = 0.5 * math.log1p(V_0 / (noise * lam * ((q - anchor) ** 2 + 0.3 * anchor**2)).sum())
            L_c = 0.5 * math.log1p(float((start.v * q**2).sum() / (lam * q**2).sum()))
            needed = L_0 - math.log(2 * REWARD_SLAB) + 2 * (L_c - math.log(2 * COST_SLAB))
            assert threshold >= needed - 1e-9
            assert floor >= L_c - math.log(2 * COST_SLAB) + math.log(1 - COST_SLAB) - 1e-9


def mixture(z: FloatArray, L: float, slab: float) -> FloatArray:
    """The supermartingale of one term: a spike at no deviation and a half-normal.

    The normal distribution function times exp(z^2/2) is half of erfcx(-z/sqrt 2), which does not overflow for z < 0.
    """
    return np.asarray((1.0 - slab) + slab * erfcx(-z / math.sqrt(2.0)) * math.exp(-L))


def claimed(z: FloatArray, L: float, slab: float) -> FloatArray:
    """What the test claims of it: the statistic less its price, or the spike."""
    return np.asarray(np.maximum(1.0 - slab, 2.0 * slab * np.exp(np.maximum(z, 0.0) ** 2 / 2.0 - L)))


@pytest.mark.parametrize("slab", [REWARD_SLAB, COST_SLAB])
def test_with_its_floor_a_term_never_exceeds_its_supermartingale(slab: float) -> None:
    z = np.concatenate([-np.geomspace(1e4, 1e-3, 2000), np.linspace(0.0, 12.0, 2000)])
    floor = math.log(2.0 * slab / (1.0 - slab))
    for L in np.linspace(floor, floor + 6.0, 200):
        assert np.all(mixture(z, L, slab) >= claimed(z, L, slab) * (1.0 - 1e-12))
    # Without the floor the claim is false, where z < 0: leaving it out would break the proof.
    for L in np.linspace(0.0, 0.95 * floor, 20):
        assert np.any(mixture(z, L, slab) < claimed(z, L, slab))


def test_the_floors_are_in_the_thresholds() -> None:
    """Little data: the logarithms alone would be far below the floors."""
    model = draw_model(np.random.default_rng(4), 3, 2)
    start = make_free_start(model)
    begin(start, 10.0, 1e9, np.full(3, 1 / 3), np.full(3, 1 / 3), model)
    add_block(start, np.ones(3), np.full(3, 1 / 3), np.zeros(3), np.zeros((2, 3)))
    threshold, floor = find_thresholds(start, model)
    floors = -math.log(1 - REWARD_SLAB) - 2 * math.log(1 - COST_SLAB)  # floor - log(2 rho) of each term
    assert threshold == pytest.approx(floors)
    assert floor == 0.0


def logarithms(n_unknown: int, independent: bool) -> tuple[FloatArray, FloatArray]:
    """What both thresholds of every start pay for delta = 0.1."""
    model = draw_model(np.random.default_rng(5), 3, n_unknown)
    starts = [make_start(number, 0.1, independent, model) for number in range(MAX_STARTS)]
    assert [start.terms.n_unknown for start in starts] == [n_unknown] * MAX_STARTS
    return np.array([start.terms.reward_log for start in starts]), np.array([start.terms.cost_log for start in starts])


def test_delta_is_spent_once() -> None:
    assert sum(START_WEIGHTS) <= 1.0 + 1e-12
    for n_unknown in (1, 3):
        reward_logs, cost_logs = logarithms(n_unknown, independent=True)
        spent = np.exp(-reward_logs) + n_unknown * np.exp(-cost_logs)
        assert spent.sum() == pytest.approx(0.1)
        dependent = logarithms(n_unknown, independent=False)
        np.testing.assert_allclose(dependent[0], (1 + n_unknown) * reward_logs)
        np.testing.assert_allclose(dependent[1], cost_logs)
    assert np.exp(-logarithms(0, independent=False)[0]).sum() == pytest.approx(0.1)
    assert len(START_WEIGHTS) == MAX_STARTS
