"""The averaged certificate: its formulas against a plain re-statement, and the inequality behind its floors."""

import math

import numpy as np
import pytest
from scipy.special import erfcx

from contract.suitable import make_instance
from oracle.joint import draw_mixes
from oracle.reference import FloatArray, Generator
from polyarm.certify import blocks as averaged
from polyarm.certify.blocks import (
    COST_SLAB,
    REWARD_SLAB,
    REWARD_THRESHOLD,
    ROW_FLOOR,
    START_WEIGHTS,
    Levels,
    Starts,
    add_block,
    begin,
    cost_evidence,
    make_levels,
    make_starts,
    row_variance,
    write_evidence,
    write_thresholds,
)
from polyarm.certify.evidence import make_evidence, witness_value
from polyarm.model import Model, build_model

Block = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # counts, answer, mean rewards, mean rows


def draw_model(rng: Generator, n_arms: int, d: int) -> Model:
    noise = tuple(rng.uniform(0.5, 2.0, size=n_arms).tolist())
    rows = [
        {"name": f"c{i}", "bound": 0.0, "std": tuple(rng.uniform(0.5, 2.0, size=n_arms).tolist())} for i in range(d)
    ]
    return build_model(make_instance([0.0] * n_arms, [[0.0] * n_arms] * d, rows, reward_std=noise).problem)


def draw_start(rng: Generator, model: Model) -> tuple[Starts, list[Block]]:
    """A start of number 1 with a few blocks."""
    d, n_arms = model.known_rows.shape
    starts = make_starts(n_arms, d)
    begin(1, 100.0, 400.0, rng.dirichlet(np.full(n_arms, 5.0)), rng.dirichlet(np.ones(n_arms)), model, starts)
    blocks = []
    for _ in range(int(rng.integers(1, 6))):
        block: Block = (
            rng.integers(1, 30, size=n_arms).astype(float),
            rng.dirichlet(np.ones(n_arms)),
            np.asarray(rng.normal(size=n_arms)),
            rng.normal(size=(d, n_arms)),
        )
        add_block(1, *block, starts)
        blocks.append(block)
    return starts, blocks


def statistic(model: Model, starts: Starts, blocks: list[Block], q: FloatArray, r: float, kap: float) -> float:
    """What the reward test compares with b_0, straight from its definition."""
    sizes = [float(counts.sum()) for counts, *_ in blocks]
    lam, anchor, noise = starts.lam[1], starts.anchor[1], model.reward_noise
    D_0 = sum(n * (r - m @ (q - p)) for n, (_, p, m, _) in zip(sizes, blocks, strict=True))
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
        starts, blocks = draw_start(rng, model)
        evidence, centre, kap = make_evidence(n_arms, d), np.zeros(n_arms), float(rng.uniform(0.0, 1.0))
        r = write_evidence(1, 0.2, kap, model, starts, evidence, centre)
        for q in draw_mixes(rng, 5, n_arms):
            expected = statistic(model, starts, blocks, q, 0.2, kap)
            assert witness_value(evidence, centre, q, r) == pytest.approx(expected, rel=1e-8)


def test_the_cost_evidence_is_the_mean_of_three_exponentials() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        model = draw_model(rng, 3, 1)
        starts, blocks = draw_start(rng, model)
        D = -sum(float(c.sum()) * float(G[0] @ p) for c, p, _, G in blocks)
        V = sum(float(c.sum()) ** 2 * float((model.row_noise[0] * p**2 / c).sum()) for c, p, _, _ in blocks)
        assert starts.slack[1, 0] == pytest.approx(D)
        assert row_variance(1, 0, model, starts) == pytest.approx(V)
        th = math.sqrt(2.0 * 3.0 / starts.predicted[1, 0])
        mean = sum(w * math.exp(x * D - x * x * V / 2) for w, x in ((0.25, th / 1.7), (0.5, th), (0.25, 1.7 * th)))
        assert cost_evidence(D, V, starts.predicted[1, 0], 3.0) == pytest.approx(math.log(mean), rel=1e-9)


def test_the_ratios_bound_variance_over_precision_for_every_witness() -> None:
    """R_0 and R_c stand in for the ratio of the one witness that matters, which nobody knows."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        model = draw_model(rng, int(rng.integers(2, 7)), 2)
        starts, blocks = draw_start(rng, model)
        thresholds = np.zeros(2)
        levels = Levels(np.zeros(6), np.zeros(6), 2)
        write_thresholds(1, levels, model, starts, thresholds)
        lam, anchor, noise = starts.lam[1], starts.anchor[1], model.reward_noise
        for q in draw_mixes(rng, 20, lam.size):
            V_0 = sum(c.sum() ** 2 * (noise * (q - p) ** 2 / c).sum() for c, p, _, _ in blocks)
            L_0 = 0.5 * math.log1p(V_0 / (noise * lam * ((q - anchor) ** 2 + 0.3 * anchor**2)).sum())
            L_c = 0.5 * math.log1p(float((starts.v[1] * q**2).sum() / (lam * q**2).sum()))
            needed = L_0 - math.log(2 * REWARD_SLAB) + 2 * (L_c - math.log(2 * COST_SLAB))
            assert thresholds[REWARD_THRESHOLD] >= needed - 1e-9
            assert thresholds[ROW_FLOOR] >= L_c - math.log(2 * COST_SLAB) + math.log(1 - COST_SLAB) - 1e-9


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
    starts = make_starts(3, 2)
    begin(0, 10.0, 1e9, np.full(3, 1 / 3), np.full(3, 1 / 3), model, starts)
    add_block(0, np.ones(3), np.full(3, 1 / 3), np.zeros(3), np.zeros((2, 3)), starts)
    thresholds = np.zeros(2)
    write_thresholds(0, Levels(np.zeros(6), np.zeros(6), 2), model, starts, thresholds)
    floors = -math.log(1 - REWARD_SLAB) - 2 * math.log(1 - COST_SLAB)  # floor - log(2 rho) of each term
    assert thresholds[REWARD_THRESHOLD] == pytest.approx(floors)
    assert thresholds[ROW_FLOOR] == 0.0


def test_delta_is_spent_once() -> None:
    assert sum(START_WEIGHTS) <= 1.0 + 1e-12
    for n_unknown in (1, 3):
        levels = make_levels(0.1, n_unknown, independent=True)
        spent = np.exp(-levels.reward_log) + n_unknown * np.exp(-levels.cost_log)
        assert spent.sum() == pytest.approx(0.1)
        dependent = make_levels(0.1, n_unknown, independent=False)
        np.testing.assert_allclose(dependent.reward_log, (1 + n_unknown) * levels.reward_log)
        np.testing.assert_allclose(dependent.cost_log, levels.cost_log)
    assert np.exp(-make_levels(0.1, 0, independent=False).reward_log).sum() == pytest.approx(0.1)
    assert len(START_WEIGHTS) == averaged.MAX_STARTS
