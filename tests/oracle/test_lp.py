"""`solve_lp` against HiGHS, and against a simplex method in rational arithmetic where HiGHS is not exact enough."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracle import reference
from oracle.reference import FAMILIES, FloatArray, Generator, IntArray
from polyarm.polytope.lp import EMPTY, OPTIMAL, LpWork, make_basis, make_lp_work, solve_lp, write_vertex

CASES = 250

#: Sets that are empty by less than this are neither required to be found empty nor to be solved.
BORDERLINE = Fraction(1, 10**8)


def solve(objective: FloatArray, G: FloatArray, basis: IntArray) -> tuple[int, LpWork]:
    d, K = G.shape
    work = make_lp_work(K, d)
    return solve_lp(objective, reference.make_columns(G), basis, work), work


def check_point(objective: FloatArray, G: FloatArray, basis: IntArray, work: LpWork) -> float:
    """Check that basis, inverse and vertex belong together and are feasible and optimal; return the value.

    Optimality is by weak duality: no price is negative and no arm is worth more than its price.
    """
    d, K = G.shape
    matrix = reference.make_equations(G)[:, basis]
    condition = float(np.linalg.cond(matrix))
    assert np.abs(work.inverse @ matrix - np.eye(d + 1)).max() <= 1e-12 * condition
    vertex = np.full(K, np.nan)
    write_vertex(K, basis, work.inverse, vertex)
    assert vertex.min() >= 0.0
    assert vertex.sum() == pytest.approx(1.0, abs=1e-9)
    scale = max(1.0, float(np.abs(G).max(initial=0.0)))
    assert (G @ vertex).max(initial=0.0) <= 1e-9 * scale
    costs = np.append(objective, np.zeros(d))
    prices = np.linalg.solve(matrix.T, costs[basis])
    worth = costs - prices @ reference.make_equations(G)
    assert worth.max() <= 1e-10 * max(float(np.abs(objective).max()), 1e-300) * max(1.0, condition * 1e-6)
    return float(objective @ vertex)


def check_against_highs(objective: FloatArray, G: FloatArray, basis: IntArray, work: LpWork, status: int) -> bool:
    """Compare status and value; False when the set is so close to empty that either status is right."""
    assert status in (OPTIMAL, EMPTY)
    highs, highs_value, _ = reference.solve_with_highs(objective, G)
    if highs != (reference.SOLVED if status == OPTIMAL else reference.INFEASIBLE):
        violation, value = reference.solve_exactly(objective, G)
        if 0 < violation <= BORDERLINE:
            return False
        assert status == (EMPTY if violation > 0 else OPTIMAL)
        highs_value = float(value)
    if status == OPTIMAL:
        scale = float(np.abs(objective).max())
        assert check_point(objective, G, basis, work) == pytest.approx(highs_value, abs=1e-8 * scale, rel=0.0)
    else:
        assert basis[0] < 0
    return True


def draw_shape(rng: Generator) -> tuple[int, int]:
    """Half of the shapes are small, where degeneracy is common."""
    K = int(rng.integers(1, 51 if rng.random() < 0.5 else 8))
    return K, int(rng.integers(0, 11))


@pytest.mark.parametrize("family", FAMILIES)
def test_cold_start_agrees_with_highs(family: str) -> None:
    rng = np.random.default_rng(1)
    statuses = []
    borderline = 0
    for _ in range(CASES):
        K, d = draw_shape(rng)
        G, objective, basis = FAMILIES[family](rng, K, d), reference.draw_objective(rng, K), make_basis(d)
        status, work = solve(objective, G, basis)
        borderline += not check_against_highs(objective, G, basis, work, status)
        statuses.append(status)
    assert borderline <= 0.01 * CASES
    assert statuses.count(OPTIMAL) >= 0.5 * CASES
    assert statuses.count(EMPTY) >= 5 or family == "thin"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("matrix_noise", "objective_noise"), [(0.0, 2.0), (1e-3, 1e-3), (0.3, 1.0)])
def test_warm_start_agrees_with_highs(family: str, matrix_noise: float, objective_noise: float) -> None:
    rng = np.random.default_rng(2)
    borderline = 0
    for _ in range(CASES // 4):
        K, d = draw_shape(rng)
        G, objective, basis = FAMILIES[family](rng, K, d), reference.draw_objective(rng, K), make_basis(d)
        solve(objective, G, basis)
        for _ in range(2):
            G = G + matrix_noise * rng.normal(size=G.shape)
            objective = objective + objective_noise * rng.normal(size=K)
            status, work = solve(objective, G, basis)
            borderline += not check_against_highs(objective, G, basis, work, status)
    assert borderline <= 0.01 * CASES


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("distinct", [True, False], ids=["any-basis", "repeated-variables"])
def test_any_warm_basis_will_do(family: str, distinct: bool) -> None:
    rng = np.random.default_rng(3)
    borderline = 0
    for _ in range(CASES // 3):
        K, d = draw_shape(rng)
        G, objective = FAMILIES[family](rng, K, d), reference.draw_objective(rng, K)
        basis = rng.choice(K + d, size=d + 1, replace=not distinct).astype(np.int64)
        status, work = solve(objective, G, basis)
        borderline += not check_against_highs(objective, G, basis, work, status)
    assert borderline <= 0.01 * CASES


def test_sets_that_are_empty_or_not_by_a_known_margin() -> None:
    rng = np.random.default_rng(5)
    for _ in range(4 * CASES):
        K, d = int(rng.integers(2, 51)), int(rng.integers(1, 11))
        margin = 10.0 ** rng.uniform(-7.0, -1.0)
        prices = rng.dirichlet(np.ones(d))
        G = rng.normal(size=(d, K))
        # prices @ G is the same for every arm, so max_i (G x)_i >= prices @ G: the sign decides.
        G += margin - prices @ G
        assert solve(rng.normal(size=K), G, make_basis(d))[0] == EMPTY
        inside = rng.dirichlet(np.ones(K))
        G -= (G @ inside)[:, None] + margin
        basis = make_basis(d)
        objective = rng.normal(size=K)
        status, work = solve(objective, G, basis)
        assert status == OPTIMAL
        check_point(objective, G, basis, work)


@pytest.mark.parametrize("family", ["integer", "sparse", "repeating"])
def test_small_integer_programs_agree_with_rational_arithmetic(family: str) -> None:
    rng = np.random.default_rng(6)
    for _ in range(CASES):
        K, d = int(rng.integers(1, 8)), int(rng.integers(0, 5))
        G, objective = FAMILIES[family](rng, K, d), rng.integers(-2, 3, size=K).astype(np.float64)
        violation, value = reference.solve_exactly(objective, G)
        basis = make_basis(d)
        status, work = solve(objective, G, basis)
        assert status == (EMPTY if violation > 0 else OPTIMAL)
        if status == OPTIMAL:
            assert check_point(objective, G, basis, work) == pytest.approx(float(value), abs=1e-12)


@pytest.mark.parametrize("family", ["gaussian", "integer", "repeating"])
def test_programs_too_large_for_greedy_pivots_alone(family: str) -> None:
    """Some of these take hundreds of pivots: Bland's rule has to finish them."""
    rng = np.random.default_rng(8)
    for _ in range(12):
        K, d = int(rng.integers(100, 400)), int(rng.integers(20, 50))
        G, objective, basis = FAMILIES[family](rng, K, d), rng.normal(size=K), make_basis(d)
        status, work = solve(objective, G, basis)
        assert check_against_highs(objective, G, basis, work, status)


def test_without_constraints_the_best_arm_is_optimal() -> None:
    objective = np.array([0.5, 2.0, -1.0])
    basis = make_basis(0)
    status, work = solve(objective, np.zeros((0, 3)), basis)
    assert status == OPTIMAL
    assert basis.tolist() == [1]
    assert work.inverse.tolist() == [[1.0]]


small_integers = st.integers(-3, 3).map(float)


@st.composite
def programs(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    K, d = draw(st.integers(1, 6)), draw(st.integers(0, 4))
    return draw(arrays(np.float64, K, elements=small_integers)), draw(
        arrays(np.float64, (d, K), elements=small_integers)
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(programs())
def test_integer_programs(program: tuple[FloatArray, FloatArray]) -> None:
    objective, G = program
    violation, value = reference.solve_exactly(objective, G)
    basis = make_basis(G.shape[0])
    status, work = solve(objective, G, basis)
    assert status == (EMPTY if violation > 0 else OPTIMAL)
    if status == OPTIMAL:
        assert check_point(objective, G, basis, work) == pytest.approx(float(value), abs=1e-12)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(programs(), st.data())
def test_integer_programs_from_any_basis(program: tuple[FloatArray, FloatArray], data: st.DataObject) -> None:
    objective, G = program
    d, K = G.shape
    variables = st.lists(st.integers(0, K + d - 1), min_size=d + 1, max_size=d + 1)
    basis = np.array(data.draw(variables), dtype=np.int64)
    cold = make_basis(d)
    status, work = solve(objective, G, basis)
    cold_status, cold_work = solve(objective, G, cold)
    assert status == cold_status
    if status == OPTIMAL:
        value = check_point(objective, G, basis, work)
        assert value == pytest.approx(check_point(objective, G, cold, cold_work), abs=1e-12)
