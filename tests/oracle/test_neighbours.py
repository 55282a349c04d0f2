"""`find_neighbours` and `find_outer_directions` against brute force, exact for integer data."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import nnls

from oracle import reference
from oracle.optimum import Optimum, draw_solved, find_moves, solve
from oracle.reference import FAMILIES, FloatArray, Generator, IntArray
from polyarm.polytope.neighbours import (
    TOO_MANY,
    Moves,
    find_outer_directions,
    make_moves,
    make_neighbour_work,
    neighbour_capacity,
)

#: Families of integer matrices: their vertices are degenerate more often than not.
INTEGER = ["integer", "sparse", "repeating"]


def make_dense(moves: Moves, count: int, K: int) -> FloatArray:
    dense = np.zeros((count, K))
    for row in range(count):
        arms = moves.arms[row, : moves.sizes[row]]
        assert len(set(arms.tolist())) == arms.size, "an arm is listed twice"
        dense[row, arms] = moves.changes[row, : moves.sizes[row]]
    return dense


def list_moves(optimum: Optimum, capacity: int | None = None) -> FloatArray | None:
    """Return the dense moves to the neighbours, or None for TOO_MANY."""
    moves, count = find_moves(optimum, capacity)
    return None if count == TOO_MANY else make_dense(moves, count, optimum.policy.size)


def list_directions(optimum: Optimum) -> FloatArray:
    d, K = optimum.G.shape
    moves, work = make_moves(neighbour_capacity(K, d), d), make_neighbour_work(K, d)
    columns = reference.make_columns(optimum.G)
    count = find_outer_directions(columns, optimum.basis, optimum.work.inverse, work, moves)
    return make_dense(moves, count, K)


def identify(points: FloatArray, vertices: IntArray) -> list[int]:
    """Return which exact vertex each point is."""
    exact = vertices / vertices.sum(axis=1, keepdims=True)
    distances = np.abs(points[:, None, :] - exact[None, :, :]).max(axis=2)
    assert (distances.min(axis=1) <= 1e-9).all(), "not a vertex"
    return [int(k) for k in distances.argmin(axis=1)]


def draw_nonempty(rng: Generator, family: str, K: int, d: int) -> FloatArray:
    """Shift integer rows down until the set is not empty (exactly so: one arm satisfies every row)."""
    G = FAMILIES[family](rng, K, d)
    arm = rng.integers(K)
    G -= np.maximum(G[:, [arm]], 0.0) * rng.integers(0, 2)
    return G


def draw_integer_optima(rng: Generator, family: str, n_arms: range, n_rows: range) -> Iterator[Optimum]:
    """Yield the optima of integer objectives on integer sets, those that are empty left out, without end."""
    while True:
        K, d = int(rng.integers(n_arms.start, n_arms.stop)), int(rng.integers(n_rows.start, n_rows.stop))
        G = draw_nonempty(rng, family, K, d)
        optimum = solve(rng.integers(-2, 3, size=K).astype(np.float64), G)
        if optimum is not None:
            yield optimum


def draw_degenerate_optima(rng: Generator, family: str, n_arms: range, n_rows: range) -> Iterator[Optimum]:
    for optimum in draw_integer_optima(rng, family, n_arms, n_rows):
        if optimum.work.inverse[:, 0].min() <= 1e-9:
            yield optimum


@pytest.mark.parametrize("unit", [1.0, 10.0, 3.0], ids=["integers", "tenths", "thirds"])
@pytest.mark.parametrize("family", INTEGER)
def test_neighbours_are_the_vertices_on_an_edge(family: str, unit: float) -> None:
    """In tenths and thirds, what is degenerate is so only up to round-off."""
    rng = np.random.default_rng(1)
    solved = degenerate = alone = 0
    for _ in range(600):
        K, d = int(rng.integers(1, 7)), int(rng.integers(0, 4))
        G = draw_nonempty(rng, family, K, d)
        found = solve(rng.integers(-2, 3, size=K).astype(np.float64), G / unit)
        vertices = reference.find_integer_vertices(G)
        assert (found is None) == (len(vertices) == 0)
        if found is None:
            continue
        policy = found.policy
        here = identify(policy[None, :], vertices)[0]
        moves = list_moves(found)
        assert moves is not None
        neighbours = identify(policy + moves, vertices)
        adjacent = [
            k for k in range(len(vertices)) if k != here and reference.are_adjacent(G, vertices[here], vertices[k])
        ]
        assert sorted(neighbours) == adjacent
        solved += 1
        degenerate += int((vertices[here] == 0).sum() + (G @ vertices[here] == 0).sum()) >= K
        alone += not adjacent
    assert solved >= 300
    assert degenerate >= 150
    assert alone >= 15


@pytest.mark.parametrize("family", INTEGER)
def test_every_feasible_direction_is_within_the_outer_cone(family: str) -> None:
    rng = np.random.default_rng(2)
    for found in itertools.islice(draw_integer_optima(rng, family, range(2, 7), range(1, 4)), 250):
        directions = list_directions(found)
        assert len(directions) == found.policy.size - 1
        assert directions.sum(axis=1) == pytest.approx(0.0, abs=1e-9)
        vertices = reference.find_integer_vertices(found.G)
        for vertex in vertices / vertices.sum(axis=1, keepdims=True):
            assert nnls(directions.T, vertex - found.policy)[1] <= 1e-9


def test_gaussian_neighbours_are_one_pivot_away() -> None:
    """At a simple vertex the neighbours are the feasible bases that share all but one variable."""
    rng = np.random.default_rng(3)
    skipped = 0
    for found in itertools.islice(draw_solved(rng, range(2, 13), range(5)), 250):
        G, policy, basis = found.G, found.policy, found.basis
        d, K = G.shape
        outside = [j for j in range(K + d) if j not in basis]
        near = np.array([np.append(np.delete(basis, i), j) for i in range(d + 1) for j in outside])
        bases, values = reference.solve_bases(G, near)
        if np.abs(values).min() < 1e-7 or len(bases) < len(near):
            skipped += 1
            continue
        expected = reference.spread_positive(G, bases, values)
        moves = list_moves(found)
        assert moves is not None
        assert len(moves) == len(expected) == K - 1
        reached = policy + moves
        distances = np.abs(reached[:, None, :] - expected[None, :, :K]).max(axis=2)
        assert distances.min(axis=0) == pytest.approx(0.0, abs=1e-8)
        assert distances.min(axis=1) == pytest.approx(0.0, abs=1e-8)
    assert skipped <= 10


def test_gaussian_neighbours_among_all_vertices() -> None:
    """The same set by enumeration of every basis, with adjacency as the rank of common tight constraints."""
    rng = np.random.default_rng(4)
    skipped = 0
    for found in itertools.islice(draw_solved(rng, range(2, 9), range(1, 5)), 60):
        G, policy, K = found.G, found.policy, found.policy.size
        bases, values = reference.solve_bases(G, reference.list_bases(G))
        if np.abs(values).min() < 1e-7:
            skipped += 1
            continue
        vertices = reference.spread_positive(G, bases, values)
        arms, slack = vertices[:, :K], vertices[:, K:]
        here = int(np.abs(arms - policy).max(axis=1).argmin())
        adjacent = [
            arms[k]
            for k in range(len(arms))
            if reference.rank_of_tight(G, (arms[k] > 0) | (policy > 0), (slack[k] == 0) & (slack[here] == 0)) == K - 1
        ]
        moves = list_moves(found)
        assert moves is not None
        reached = policy + moves
        assert np.sort(reached.round(7), axis=0) == pytest.approx(
            np.sort(np.array(adjacent).round(7), axis=0), abs=1e-6
        )
    assert skipped <= 10


def check_edges(G: FloatArray, policy: FloatArray, moves: FloatArray, tolerance: float) -> None:
    """Each move ends at a feasible vertex, along an edge, and no two end at the same one."""
    K = G.shape[1]
    on_arms, tight = policy > tolerance, G @ policy >= -tolerance
    for move in moves:
        vertex = policy + move
        assert vertex.min() >= -1e-9
        assert vertex.sum() == pytest.approx(1.0, abs=1e-9)
        assert (G @ vertex).max(initial=0.0) <= 1e-9
        arms_there, tight_there = vertex > tolerance, G @ vertex >= -tolerance
        assert reference.rank_of_tight(G, arms_there, tight_there) == K
        assert reference.rank_of_tight(G, on_arms | arms_there, tight & tight_there) == K - 1
    if len(moves) > 1:
        distances = np.abs(moves[:, None, :] - moves[None, :, :]).max(axis=2)
        np.fill_diagonal(distances, np.inf)
        assert distances.min() > tolerance


def check_no_neighbour_is_missing(
    rng: Generator, objective: FloatArray, G: FloatArray, policy: FloatArray, moves: FloatArray
) -> int:
    """Other objectives lead to vertices that must be reachable by non-negative steps along the moves.

    Objectives close to the first lead to vertices close by, often to a neighbour: one that were missing would not
    be reachable along the others. Returns how many other vertices were seen.
    """
    seen = 0
    for noise in (0.01, 0.1, 0.3, 1.0, 3.0):
        status, value, best = reference.solve_with_highs(tilted := objective + noise * rng.normal(size=policy.size), G)
        assert status == reference.SOLVED
        if value > tilted @ policy + 1e-7:
            assert (moves @ tilted).max(initial=0.0) > 0.0
            assert nnls(moves.T, best - policy)[1] <= 1e-7
            seen += 1
    return seen


def test_large_simple_vertices() -> None:
    rng = np.random.default_rng(5)
    seen = solved = 0
    while solved < 40:
        K, d = 50, int(rng.integers(1, 11))
        G, objective = rng.normal(size=(d, K)) - 0.3, rng.normal(size=K)
        found = solve(objective, G)
        if found is None or found.work.inverse[:, 0].min() < 1e-6:
            continue
        policy = found.policy
        moves = list_moves(found)
        assert moves is not None
        assert len(moves) == (K + d) - (d + 1)
        check_edges(G, policy, moves, tolerance=1e-9)
        seen += check_no_neighbour_is_missing(rng, objective, G, policy, moves)
        directions = list_directions(found)
        lengths = np.linalg.norm(moves, axis=1) / np.linalg.norm(directions, axis=1)
        assert moves == pytest.approx(directions * lengths[:, None], abs=1e-9)
        solved += 1
    assert seen >= 100


def count_edges(G: FloatArray, basis: IntArray) -> list[int]:
    """Count the edges at a vertex of an integer polytope, after none, one, ... and all of its zero basic variables.

    With y the non-basic variables, the edges are the extreme rays of {y >= 0, T y <= 0}, T the rows of the tableau
    of the basic variables that are zero: the vertices of {y on the simplex, T y <= 0}, a polytope like any other.
    """
    equations = reference.make_equations(G)
    matrix = equations[:, basis]
    determinant = np.rint(np.linalg.det(matrix))
    tableau = np.rint(np.linalg.solve(matrix, equations) * abs(determinant))
    zero = np.abs(np.linalg.inv(matrix)[:, 0]) < 1e-9
    T = np.delete(tableau[zero], basis, axis=1)
    return [len(reference.find_integer_vertices(T[:level])) for level in range(len(T) + 1)]


@pytest.mark.parametrize("family", INTEGER)
def test_every_edge_of_larger_degenerate_vertices_is_found(family: str) -> None:
    """TOO_MANY only if there are more edges, or more rays on the way to them, than there is room for."""
    rng = np.random.default_rng(6)
    too_many = 0
    for found in itertools.islice(draw_degenerate_optima(rng, family, range(8, 31), range(1, 4)), 80):
        d, K = found.G.shape
        counts = count_edges(found.G, found.basis)
        capacity = neighbour_capacity(K, d)
        moves = list_moves(found)
        if moves is None:
            most = max(before + after for before, after in itertools.pairwise(counts))
            assert counts[-1] > capacity or most > 2 * capacity
            too_many += 1
        else:
            assert len(moves) == counts[-1]
            check_edges(found.G, found.policy, moves, tolerance=1e-9)
    assert too_many <= 40


@pytest.mark.parametrize("family", INTEGER)
def test_large_degenerate_vertices(family: str) -> None:
    rng = np.random.default_rng(7)
    seen = solved = 0
    for found in draw_degenerate_optima(rng, family, range(10, 51), range(1, 11)):
        G, objective, policy = found.G, found.objective, found.policy
        directions = list_directions(found)
        check_no_neighbour_is_missing(rng, objective, G, policy, directions)
        moves = list_moves(found)
        if moves is not None:
            check_edges(G, policy, moves, tolerance=1e-9)
            seen += check_no_neighbour_is_missing(rng, objective, G, policy, moves)
            solved += 1
        if solved == 25:
            break
    assert seen >= 60


def make_fan(ups: int, downs: int) -> tuple[FloatArray, FloatArray]:
    """Arm 0 is best and on the edge of one row that `ups` arms violate and `downs` arms relax.

    Its neighbours: every arm that relaxes, and half of every pair.
    """
    return np.append(1.0, np.zeros(ups + downs)), np.hstack([[0.0], np.ones(ups), -np.ones(downs)])[None, :]


def test_room_is_used_to_the_last_place() -> None:
    for ups, downs in [(1, 1), (3, 5), (10, 11)]:
        objective, G = make_fan(ups, downs)
        edges = downs + ups * downs
        found = solve(objective, G)
        assert found is not None
        policy = found.policy
        moves = list_moves(found, capacity=edges)
        assert moves is not None
        assert len(moves) == edges
        check_edges(G, policy, moves, tolerance=1e-9)
        assert list_moves(found, capacity=edges - 1) is None


def test_more_edges_than_the_default_room() -> None:
    objective, G = make_fan(11, 11)
    found = solve(objective, G)
    assert found is not None
    policy = found.policy
    assert list_moves(found) is None
    directions = list_directions(found)
    assert len(directions) == 22
    for up in range(1, 12):
        for down in range(12, 23):
            half = np.zeros(23)
            half[[up, down]] = 0.5
            assert nnls(directions.T, half - policy)[1] <= 1e-9
