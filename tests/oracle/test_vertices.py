"""`enumerate_vertices` against every basis solved on its own, exactly for integer data."""

import math

import numpy as np
import pytest

from oracle import reference
from oracle.reference import FAMILIES, FloatArray
from polyarm.polytope.lp import OPTIMAL, make_basis, make_lp_work, solve_lp
from polyarm.polytope.vertices import (
    MAX_CANDIDATES,
    count_candidates,
    enumerate_vertices,
    make_candidate,
    make_vertex_work,
    next_candidate,
    write_vertices,
)


def sort_rows(points: FloatArray) -> FloatArray:
    """Sort points by their coordinates, the first counting most; equal up to round-off counts as equal."""
    return points[np.lexsort(points.round(7).T[::-1])]


@pytest.mark.parametrize("unit", [1.0, 10.0, 3.0], ids=["integers", "tenths", "thirds"])
@pytest.mark.parametrize("family", ["integer", "sparse", "repeating"])
def test_integer_polytopes(family: str, unit: float) -> None:
    """Each vertex once, however degenerate; in tenths and thirds degenerate only up to round-off."""
    rng = np.random.default_rng(1)
    empty = degenerate = 0
    for case in range(510):
        K, d = (int(rng.integers(1, 8)), int(rng.integers(0, 4))) if case < 500 else (12, 4)
        G = FAMILIES[family](rng, K, d)
        expected = reference.find_integer_vertices(G)
        found = enumerate_vertices(reference.make_columns(G / unit))
        assert found.shape == expected.shape
        assert sort_rows(found) == pytest.approx(sort_rows(expected / expected.sum(axis=1, keepdims=True)), abs=1e-12)
        empty += len(expected) == 0
        degenerate += bool(((expected == 0).sum(axis=1) + (expected @ G.T == 0).sum(axis=1) >= K).any())
    assert empty >= 4
    assert degenerate >= 100


def find_gaussian_vertices(G: FloatArray) -> FloatArray | None:
    """Return the vertices, or None when one is too close to degenerate to tell."""
    bases, values = reference.solve_bases(G, reference.list_bases(G))
    if np.any(np.abs(values.min(axis=1)) < 1e-8):
        return None
    return reference.spread_positive(G, bases, values)[:, : G.shape[1]]


def test_gaussian_polytopes() -> None:
    rng = np.random.default_rng(2)
    skipped = nonempty = 0
    for case in range(200):
        K, d = (int(rng.integers(1, 9)), int(rng.integers(0, 5))) if case < 185 else (12, 4)
        G = reference.draw_gaussian(rng, K, d)
        expected = find_gaussian_vertices(G)
        if expected is None:
            skipped += 1
            continue
        found = enumerate_vertices(reference.make_columns(G))
        assert found.shape == expected.shape
        assert sort_rows(found) == pytest.approx(sort_rows(expected), abs=1e-9)
        nonempty += len(expected) > 0
    assert skipped <= 4
    assert nonempty >= 100


@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_vertex_is_the_optimum(family: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        K, d = int(rng.integers(1, 13)), int(rng.integers(0, 5))
        columns, objective = reference.make_columns(FAMILIES[family](rng, K, d)), rng.normal(size=K)
        vertices = enumerate_vertices(columns)
        basis, work = make_basis(d), make_lp_work(K, d)
        if solve_lp(objective, columns, basis, work) != OPTIMAL:
            assert len(vertices) == 0
            continue
        arms = basis < K
        best = objective[basis[arms]] @ work.inverse[arms, 0]
        assert (vertices @ objective).max() == pytest.approx(best, abs=1e-9)


def test_candidates_are_walked_once_each() -> None:
    for K in range(1, 8):
        for d in range(5):
            candidate, seen = make_candidate(d), set()
            while next_candidate(K, d, candidate):
                size = int(candidate[0, 0])
                support, tight = candidate[0, 1 : size + 1].tolist(), candidate[1, 1:size].tolist()
                assert support == sorted(set(support))
                assert tight == sorted(set(tight))
                assert set(support) <= set(range(K))
                assert set(tight) <= set(range(d))
                seen.add((tuple(support), tuple(tight)))
            expected = sum(math.comb(K, size) * math.comb(d, size - 1) for size in range(1, min(K, d + 1) + 1))
            assert len(seen) == count_candidates(K, d) == expected


def test_writing_stops_when_full() -> None:
    columns = reference.make_columns(np.zeros((0, 5)))
    vertices = np.full((3, 5), np.nan)
    assert write_vertices(columns, make_candidate(0), make_vertex_work(0), vertices) == 3
    assert vertices.tolist() == np.eye(5)[:3].tolist()


def test_too_many_candidates_are_refused() -> None:
    assert count_candidates(50, 4) > MAX_CANDIDATES
    with pytest.raises(ValueError, match="candidate vertices for K=50, d=4"):
        enumerate_vertices(reference.make_columns(np.zeros((4, 50))))
