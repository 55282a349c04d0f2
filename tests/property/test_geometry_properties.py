"""What must hold for every polytope: symmetries of linear programs, and of projections."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polyarm._types import FloatArray
from polyarm.polytope.lp import EMPTY, OPTIMAL, make_basis, make_lp_work, solve_lp, write_vertex
from polyarm.polytope.projection import PROJECTED, make_projection_work, project_polytope, project_simplex

#: Quarters: ties and degenerate vertices are common, and sums are exact.
quarters = st.integers(-8, 8).map(lambda n: n / 4)
every_example = settings(max_examples=200, deadline=None, derandomize=True)


@st.composite
def matrices(draw: st.DrawFn, max_arms: int = 7, max_rows: int = 4) -> FloatArray:
    K, d = draw(st.integers(1, max_arms)), draw(st.integers(0, max_rows))
    return draw(arrays(np.float64, (d, K), elements=quarters))


def make_vectors(K: int) -> st.SearchStrategy[FloatArray]:
    return arrays(np.float64, K, elements=quarters)


def make_columns(G: FloatArray) -> FloatArray:
    return np.vstack([np.ones((1, G.shape[1])), G])


def solve(objective: FloatArray, G: FloatArray) -> tuple[float, FloatArray] | None:
    """Return the optimal value and vertex, or None for an empty set."""
    d, K = G.shape
    basis, work, vertex = make_basis(d), make_lp_work(K, d), np.zeros(K)
    status = solve_lp(objective, make_columns(G), basis, work)
    assert status in (OPTIMAL, EMPTY)
    if status == EMPTY:
        return None
    write_vertex(K, basis, work.inverse, vertex)
    return float(objective @ vertex), vertex


def project(point: FloatArray, weights: FloatArray, G: FloatArray) -> FloatArray:
    d, K = G.shape
    projection = np.zeros(K)
    work = make_projection_work(K, d)
    assert project_polytope(point, weights, make_columns(G), np.zeros(d), work, projection) == PROJECTED
    return projection


def require_same_value(first: tuple[float, FloatArray] | None, second: tuple[float, FloatArray] | None) -> None:
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert first[0] == pytest.approx(second[0], abs=1e-9)


# -- Linear programs -------------------------------------------------------------------------------------------


@every_example
@given(st.data(), matrices())
def test_the_order_of_arms_and_rows_does_not_matter(data: st.DataObject, G: FloatArray) -> None:
    d, K = G.shape
    objective = data.draw(make_vectors(K))
    arms, rows = data.draw(st.permutations(range(K))), data.draw(st.permutations(range(d)))
    require_same_value(solve(objective, G), solve(objective[arms], G[rows][:, arms]))


@every_example
@given(st.data(), matrices())
def test_the_scale_of_rows_does_not_matter(data: st.DataObject, G: FloatArray) -> None:
    d, K = G.shape
    objective = data.draw(make_vectors(K))
    scales = data.draw(arrays(np.float64, (d, 1), elements=st.floats(0.01, 100.0)))
    require_same_value(solve(objective, G), solve(objective, scales * G))


@every_example
@given(st.data(), matrices())
def test_the_objective_may_be_shifted_and_scaled(data: st.DataObject, G: FloatArray) -> None:
    """On the simplex, a constant for every arm adds to the value of every mix."""
    objective = data.draw(make_vectors(G.shape[1]))
    shift, scale = data.draw(st.floats(-10.0, 10.0)), data.draw(st.floats(0.01, 100.0))
    plain, changed = solve(objective, G), solve(scale * objective + shift, G)
    assert (plain is None) == (changed is None)
    if plain is not None and changed is not None:
        assert changed[0] == pytest.approx(scale * plain[0] + shift, abs=1e-9 * (1.0 + scale))


@every_example
@given(st.data(), matrices())
def test_one_more_row_never_helps(data: st.DataObject, G: FloatArray) -> None:
    K = G.shape[1]
    objective, row = data.draw(make_vectors(K)), data.draw(make_vectors(K))
    free, bound = solve(objective, G), solve(objective, np.vstack([G, row]))
    if bound is not None:
        assert free is not None
        assert bound[0] <= free[0] + 1e-9


@every_example
@given(st.data(), matrices())
def test_a_copy_of_an_arm_changes_nothing(data: st.DataObject, G: FloatArray) -> None:
    K = G.shape[1]
    objective, arm = data.draw(make_vectors(K)), data.draw(st.integers(0, K - 1))
    twin = solve(np.append(objective, objective[arm]), np.hstack([G, G[:, [arm]]]))
    require_same_value(solve(objective, G), twin)


# -- Projections -----------------------------------------------------------------------------------------------


@every_example
@given(st.data(), matrices())
def test_projections_are_mixes_that_project_on_themselves(data: st.DataObject, G: FloatArray) -> None:
    K = G.shape[1]
    assume(solve(np.zeros(K), G) is not None)
    weights = data.draw(arrays(np.float64, K, elements=st.floats(0.1, 10.0)))
    once = project(data.draw(make_vectors(K)), weights, G)
    assert once.min() >= 0.0
    assert once.sum() == pytest.approx(1.0, abs=1e-11)
    assert (G @ once).max(initial=0.0) <= 1e-11
    assert project(once, weights, G) == pytest.approx(once, abs=1e-9)


@every_example
@given(st.data(), matrices())
def test_euclidean_projections_do_not_expand(data: st.DataObject, G: FloatArray) -> None:
    """Firmly so: |Px - Py|^2 <= (Px - Py) . (x - y)."""
    K = G.shape[1]
    assume(solve(np.zeros(K), G) is not None)
    x, y = data.draw(make_vectors(K)), data.draw(make_vectors(K))
    step = project(x, np.ones(K), G) - project(y, np.ones(K), G)
    assert step @ step <= step @ (x - y) + 1e-9
    assert np.linalg.norm(step) <= np.linalg.norm(x - y) + 1e-9


@every_example
@given(st.data(), matrices())
def test_no_vertex_is_closer_than_the_projection(data: st.DataObject, G: FloatArray) -> None:
    K = G.shape[1]
    point = data.draw(make_vectors(K))
    best = solve(data.draw(make_vectors(K)), G)
    assume(best is not None)
    assert best is not None
    projection = project(point, np.ones(K), G)
    assert np.linalg.norm(projection - point) <= np.linalg.norm(best[1] - point) + 1e-9


@every_example
@given(st.data(), matrices())
def test_the_order_of_arms_does_not_matter_to_projections(data: st.DataObject, G: FloatArray) -> None:
    d, K = G.shape
    assume(solve(np.zeros(K), G) is not None)
    point, weights = data.draw(make_vectors(K)), data.draw(arrays(np.float64, K, elements=st.floats(0.1, 10.0)))
    arms, rows = data.draw(st.permutations(range(K))), data.draw(st.permutations(range(d)))
    moved = project(point[arms], weights[arms], G[rows][:, arms])
    assert moved == pytest.approx(project(point, weights, G)[arms], abs=1e-8)


@every_example
@given(st.data(), st.integers(1, 12))
def test_simplex_projections(data: st.DataObject, K: int) -> None:
    """Idempotent, not expanding, and the same for points that differ by a constant."""
    x, y, shift = data.draw(make_vectors(K)), data.draw(make_vectors(K)), data.draw(st.floats(-100.0, 100.0))
    near_x, near_y, again, shifted = np.zeros((4, K))
    project_simplex(x, np.ones(K), near_x)
    project_simplex(y, np.ones(K), near_y)
    project_simplex(near_x, np.ones(K), again)
    project_simplex(x + shift, np.ones(K), shifted)
    assert near_x.sum() == pytest.approx(1.0, abs=1e-12)
    assert again == pytest.approx(near_x, abs=1e-12)
    assert shifted == pytest.approx(near_x, abs=1e-11)
    assert np.linalg.norm(near_x - near_y) <= np.linalg.norm(x - y) + 1e-12
