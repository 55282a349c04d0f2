"""Projections against their variational inequality (by HiGHS) and against enumeration of active sets.

w is the projection of y exactly when grad . (v - w) >= 0 for every v of the set, grad = h (w - y).
"""

import itertools

import numpy as np
import pytest

from oracle import reference
from oracle.reference import FAMILIES, FloatArray, Generator
from polyarm.polytope.projection import PROJECTED, make_projection_work, project_polytope, project_simplex

WEIGHTS = ["equal", "spread"]
SETS = [*FAMILIES, "pinned"]
#: How far away the point is, and its weights.
CONDITIONS = [(1.0, "equal"), (1.0, "spread"), (1e3, "equal"), (1e3, "spread")]


def draw_weights(rng: Generator, kind: str, K: int) -> FloatArray:
    return np.ones(K) if kind == "equal" else 10.0 ** rng.uniform(-2.0, 3.0, size=K)


def draw_point(rng: Generator, distance: float, K: int) -> FloatArray:
    """Gaussian, with many ties, or already a mix."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(-2, 3, size=K) / 2 * distance
    if kind == 1:
        return rng.dirichlet(np.ones(K))
    return rng.normal(size=K) * distance


def draw_nonempty(rng: Generator, family: str, K: int, d: int) -> FloatArray:
    while True:
        G = reference.draw_pinned(rng, K, d) if family == "pinned" else FAMILIES[family](rng, K, d)
        if reference.solve_with_highs(np.zeros(K), G)[0] == reference.SOLVED:
            return G


def check_projection(point: FloatArray, weights: FloatArray, G: FloatArray, projection: FloatArray) -> None:
    assert projection.min() >= 0.0
    assert projection.sum() == pytest.approx(1.0, abs=1e-11)
    assert (G @ projection).max(initial=0.0) <= 2e-12 * max(1.0, float(np.abs(G).max(initial=0.0)))
    gradient = weights * (projection - point)
    gradient /= max(1.0, float(np.abs(gradient).max()))
    if len(G):
        status, value, _ = reference.solve_with_highs(-gradient, G)
        assert status == reference.SOLVED
    else:
        value = -gradient.min()
    assert -value - gradient @ projection >= -1e-9


def project(point: FloatArray, weights: FloatArray, G: FloatArray, multipliers: FloatArray | None = None) -> FloatArray:
    """Project (cold unless given multipliers, which are updated) and check complementarity of the multipliers."""
    d, K = G.shape
    nu = np.zeros(d) if multipliers is None else multipliers
    projection = np.full(K, np.nan)
    status = project_polytope(point, weights, reference.make_columns(G), nu, make_projection_work(K, d), projection)
    assert status == PROJECTED
    assert nu.min(initial=0.0) >= 0.0
    tight = np.abs((G @ projection)[nu > 0.0])
    assert tight.max(initial=0.0) <= 2e-12 * max(1.0, float(np.abs(G).max(initial=0.0)))
    return projection


# -- Simplex ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("distance", [1e-3, 1.0, 1e3])
def test_simplex(kind: str, distance: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(1500):
        K = int(rng.integers(1, 51))
        point, weights, projection = draw_point(rng, distance, K), draw_weights(rng, kind, K), np.full(K, np.nan)
        project_simplex(point, weights, projection)
        check_projection(point, weights, np.zeros((0, K)), projection)


def test_simplex_with_ties_at_the_edge_of_the_support() -> None:
    """One arm gets everything and the others are exactly at the threshold, up to round-off."""
    for K in range(1, 9):
        for numerator, denominator in itertools.product(range(-30, 31), (1, 3, 7, 10, 100)):
            tie = numerator / denominator
            point, projection = np.full(K, tie), np.full(K, np.nan)
            point[0] += 1.0
            project_simplex(point, np.ones(K), projection)
            assert projection == pytest.approx(np.eye(K)[0], abs=1e-14 * (1.0 + abs(tie)))


def test_simplex_in_place() -> None:
    point, expected = np.array([0.3, 2.0, -1.0, 0.9]), np.full(4, np.nan)
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    project_simplex(point, weights, expected)
    project_simplex(point, weights, point)
    assert point.tolist() == expected.tolist()


def test_simplex_keeps_mixes() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        K = int(rng.integers(1, 51))
        mix, projection = rng.dirichlet(np.full(K, 0.3)), np.full(K, np.nan)
        project_simplex(mix, draw_weights(rng, "spread", K), projection)
        assert projection == pytest.approx(mix, abs=1e-13)


# -- Polytopes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("distance", "kind"), CONDITIONS)
@pytest.mark.parametrize("family", SETS)
def test_variational_inequality(family: str, distance: float, kind: str) -> None:
    """Cold, warm from a point close by, and warm from multipliers that mean nothing."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        K, d = int(rng.integers(1, 51 if rng.random() < 0.5 else 8)), int(rng.integers(0, 11))
        G = draw_nonempty(rng, family, K, d)
        point, weights, multipliers = draw_point(rng, distance, K), draw_weights(rng, kind, K), np.zeros(d)
        check_projection(point, weights, G, project(point, weights, G, multipliers))
        point = point + 0.01 * rng.normal(size=K)
        warm = project(point, weights, G, multipliers)
        check_projection(point, weights, G, warm)
        multipliers = rng.exponential(size=d) * (rng.random(d) < 0.5)
        astray = project(point, weights, G, multipliers)
        check_projection(point, weights, G, astray)
        if distance == 1.0:
            assert astray == pytest.approx(warm, abs=1e-7)


def project_by_enumeration(point: FloatArray, weights: FloatArray, G: FloatArray) -> FloatArray:
    """Solve the projection on every face (some arms at zero, some rows tight) and keep the best feasible one."""
    d, K = G.shape
    best, least = np.full(K, np.nan), np.inf
    for support in itertools.chain.from_iterable(itertools.combinations(range(K), s) for s in range(1, K + 1)):
        arms = list(support)
        for tight in itertools.chain.from_iterable(itertools.combinations(range(d), s) for s in range(d + 1)):
            rows = np.vstack([np.ones((1, len(arms))), G[list(tight)][:, arms]])
            # Stationarity h (x - y) = rows' z and rows x = (1, 0, ...): eliminate x.
            spread = rows / weights[arms]
            target = np.append(1.0, np.zeros(len(tight))) - rows @ point[arms]
            prices = np.linalg.lstsq(spread @ rows.T, target, rcond=1e-12)[0]
            candidate = np.zeros(K)
            candidate[arms] = point[arms] + spread.T @ prices
            cost = float((weights * (candidate - point) ** 2).sum())
            feasible = (
                candidate.min() >= -1e-9
                and abs(candidate.sum() - 1.0) <= 1e-9
                and (G @ candidate).max(initial=0.0) <= 1e-9
            )
            if feasible and cost < least:
                best, least = candidate, cost
    return best


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("family", ["gaussian", "integer", "sparse", "repeating", "decimal"])
def test_small_sets_by_enumeration_of_faces(family: str, kind: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        K, d = int(rng.integers(1, 5)), int(rng.integers(0, 4))
        G = draw_nonempty(rng, family, K, d)
        point, weights = draw_point(rng, 1.0, K), draw_weights(rng, kind, K)
        assert project(point, weights, G) == pytest.approx(project_by_enumeration(point, weights, G), abs=1e-7)


def test_a_single_feasible_mix_is_the_projection_of_every_point() -> None:
    """The cheapest arms are all that a row without slack leaves."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        K = int(rng.integers(2, 51))
        arm = int(rng.integers(K))
        G = rng.uniform(0.1, 2.0, size=(1, K))
        G[0, arm] = 0.0
        for distance, kind in CONDITIONS:
            point, weights = draw_point(rng, distance, K), draw_weights(rng, kind, K)
            assert project(point, weights, G) == pytest.approx(np.eye(K)[arm], abs=1e-9)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_face_of_the_simplex(kind: str) -> None:
    """A row that forbids some arms leaves the simplex of the others."""
    rng = np.random.default_rng(6)
    for _ in range(100):
        K = int(rng.integers(2, 51))
        forbidden = rng.random(K) < 0.5
        forbidden[rng.integers(K)] = False
        point, weights = draw_point(rng, 1.0, K), draw_weights(rng, kind, K)
        expected = np.zeros(K)
        shares = np.zeros(int((~forbidden).sum()))
        project_simplex(point[~forbidden], weights[~forbidden], shares)
        expected[~forbidden] = shares
        assert project(point, weights, forbidden.astype(np.float64)[None, :]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_redundant_rows_change_nothing(kind: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        K, d = int(rng.integers(2, 51)), int(rng.integers(1, 6))
        G = draw_nonempty(rng, "gaussian", K, d)
        point, weights = draw_point(rng, 1.0, K), draw_weights(rng, kind, K)
        implied = rng.dirichlet(np.ones(d), size=2) @ G - 0.1
        redundant = np.vstack([G, implied, 2.0 * G[:1], G[-1:], np.zeros((1, K))])
        assert project(point, weights, redundant) == pytest.approx(project(point, weights, G), abs=1e-8)
