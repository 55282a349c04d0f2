"""Gaussian likelihood ratios against a general solver, and neighbours against all vertices."""

import itertools

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from oracle import reference
from oracle.optimum import Optimum, draw_solved, find_moves, solve
from oracle.reference import FAMILIES, FloatArray, Generator
from polyarm.families.alternatives import least_statistic, move_statistic, write_vertex_move
from polyarm.families.family import Family, alternative_cost, divergence, make_family, write_nearest_alternative
from polyarm.polytope.neighbours import Move, Moves, Rivals, make_moves
from polyarm.polytope.vertices import (
    SUPPORT,
    enumerate_vertices,
    make_candidate,
    make_vertex_work,
    next_candidate,
    solve_candidate,
)


def make_gaussian(rng: Generator, K: int) -> tuple[Family, FloatArray]:
    """Return a family and its standard deviations, one per arm."""
    std = rng.uniform(0.3, 3.0, size=K)
    return make_family("gaussian", K, tuple(std.tolist())), std


def make_single(move: FloatArray) -> Move:
    """Write one dense move sparsely, its zeros left out."""
    arms = np.flatnonzero(move)
    return Move(Moves(arms[None, :].astype(np.int64), move[None, arms], np.array([arms.size], dtype=np.int64)), 0)


def draw_move(rng: Generator, K: int) -> FloatArray:
    """Draw the difference of two mixes, zero in some arms."""
    on_arms = rng.random(K) < 0.7
    on_arms[rng.permutation(K)[:2]] = True
    move = np.zeros(K)
    n = int(on_arms.sum())
    move[on_arms] = rng.dirichlet(np.ones(n)) - rng.dirichlet(np.ones(n))
    return move


def draw_question(
    rng: Generator, n_arms: range, lightest: float, heaviest: float
) -> tuple[Family, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Draw a family, its standard deviations, means, weights and a move."""
    K = int(rng.integers(n_arms.start, n_arms.stop))
    family, std = make_gaussian(rng, K)
    return family, std, rng.normal(size=K), rng.uniform(lightest, heaviest, size=K), draw_move(rng, K)


def dense_statistics(
    means: FloatArray, std: FloatArray, pulls: FloatArray, policy: FloatArray, vertices: FloatArray, r: float
) -> FloatArray:
    """METHOD Section 3: (mu . (pi - v) + r)_+^2 / (2 sum_a sigma_a^2 (pi_a - v_a)^2 / N_a) for each vertex v."""
    gaps = np.maximum((policy - vertices) @ means + r, 0.0)
    return gaps**2 / (2.0 * ((policy - vertices) ** 2 @ (std**2 / pulls)))


def test_cost_and_alternative_by_lagrange_conditions() -> None:
    """The alternative is on the hyperplane, its weighted steps are parallel to the move, and the cost is its own."""
    rng = np.random.default_rng(1)
    for _ in range(1000):
        family, std, means, weights, move = draw_question(rng, range(2, 12), 1.0, 100.0)
        target = float(means @ move + 0.3 * rng.normal())
        cost, gap = alternative_cost(family, means, weights, make_single(move), target)
        assert gap == pytest.approx(target - means @ move, abs=1e-12)
        alternative = np.full_like(means, np.nan)
        write_nearest_alternative(family, means, weights, make_single(move), target, alternative)
        if np.abs((alternative - means) / std).max() >= 9.99:
            continue  # clipped, and no longer the nearest
        assert alternative @ move == pytest.approx(target, abs=1e-10)
        slopes = weights * (alternative - means) / std**2
        price = gap / float((std**2 * move**2 / weights).sum())
        assert slopes == pytest.approx(price * move, rel=1e-9, abs=1e-12)
        assert cost == pytest.approx(float((weights * (alternative - means) ** 2 / (2.0 * std**2)).sum()), rel=1e-9)
        parts = [weights[a] * divergence(family, a, means[a], alternative[a]) for a in range(means.size)]
        assert cost == pytest.approx(sum(parts), rel=1e-9)


def test_cost_by_a_general_solver() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        family, std, means, weights, move = draw_question(rng, range(2, 7), 0.5, 5.0)
        target = float(means @ move) + float(rng.uniform(0.1, 1.0))

        def cost_of(
            means_there: FloatArray, w: FloatArray = weights, m: FloatArray = means, s: FloatArray = std
        ) -> float:
            return float((w * (means_there - m) ** 2 / (2.0 * s**2)).sum())

        solution = minimize(
            cost_of,
            means,
            method="SLSQP",
            constraints=[LinearConstraint(move, target, target)],
            options={"ftol": 1e-13},
        )
        assert solution.success
        assert alternative_cost(family, means, weights, make_single(move), target)[0] == pytest.approx(
            solution.fun, rel=1e-5
        )


def test_moves_of_no_length_cost_infinity() -> None:
    family = make_family("gaussian", 3, 1.0)
    nowhere = Moves(np.zeros((1, 4), dtype=np.int64), np.zeros((1, 4)), np.zeros(1, dtype=np.int64))
    cost, gap = alternative_cost(family, np.ones(3), np.ones(3), Move(nowhere, 0), 0.5)
    assert cost == np.inf
    assert gap == 0.5


def draw_pulls(rng: Generator, K: int) -> FloatArray:
    return rng.integers(1, 1000, size=K).astype(np.float64)


def list_others(optimum: Optimum) -> FloatArray:
    """Every vertex but the optimal one."""
    vertices = enumerate_vertices(reference.make_columns(optimum.G))
    others: FloatArray = vertices[np.abs(vertices - optimum.policy).max(axis=1) > 1e-9]
    return others


@pytest.mark.parametrize("family_of_sets", ["gaussian", "integer", "sparse", "repeating", "decimal"])
def test_without_tolerance_the_neighbours_suffice(family_of_sets: str) -> None:
    """r = 0: the least statistic over the neighbours of the optimum is the least over all vertices."""
    rng = np.random.default_rng(3)
    compared = farther = 0
    for _ in range(300):
        K, d = int(rng.integers(2, 9)), int(rng.integers(0, 5))
        G, means = FAMILIES[family_of_sets](rng, K, d), rng.normal(size=K)
        found = solve(means, G)
        if found is None:
            continue
        moves, count = find_moves(found)
        assert count >= 0
        others = list_others(found)
        family, std = make_gaussian(rng, K)
        pulls = draw_pulls(rng, K)
        least, worst = least_statistic(family, means, pulls, Rivals(moves, count), 0.0, True)
        if len(others) == 0:
            assert (least, worst) == (np.inf, -1)
            continue
        statistics = dense_statistics(means, std, pulls, found.policy, others, 0.0)
        assert least == pytest.approx(statistics.min(), rel=1e-7)
        assert 0 <= worst < count
        compared += 1
        farther += len(others) > count
    assert compared >= 50
    assert farther >= 10, "in the other sets every vertex is a neighbour"


def test_with_tolerance_the_neighbours_do_not_suffice() -> None:
    """r > 0: the neighbours only bound the least statistic from above, and sometimes strictly."""
    rng = np.random.default_rng(4)
    strictly = 0
    for optimum in itertools.islice(draw_solved(rng, range(4, 9), range(1, 5)), 150):
        moves, count = find_moves(optimum)
        if count == 0:
            continue
        means = optimum.objective
        family, std = make_gaussian(rng, means.size)
        pulls = draw_pulls(rng, means.size)
        least, _ = least_statistic(family, means, pulls, Rivals(moves, count), 0.5, True)
        everywhere = dense_statistics(means, std, pulls, optimum.policy, list_others(optimum), 0.5).min()
        assert least >= everywhere * (1.0 - 1e-9)
        strictly += least > 1.01 * everywhere
    assert strictly >= 10


def test_statistics_of_all_vertices() -> None:
    """The move to each candidate's vertex, and its statistic for both signs of the margin."""
    rng = np.random.default_rng(5)
    seen = 0
    for G, means, policy, basis, _ in itertools.islice(draw_solved(rng, range(2, 8), range(4)), 50):
        d, K = G.shape
        family, std = make_gaussian(rng, K)
        pulls = draw_pulls(rng, K)
        columns, candidate, work, move = (
            reference.make_columns(G),
            make_candidate(d),
            make_vertex_work(d),
            make_moves(1, d),
        )
        while next_candidate(K, d, candidate):
            if not solve_candidate(columns, candidate, work):
                continue
            vertex = np.zeros(K)
            size = candidate[SUPPORT, 0]
            vertex[candidate[SUPPORT, 1 : 1 + size]] = work.values[:size]
            write_vertex_move(policy, basis, candidate, work.values, move)
            dense = np.zeros(K)
            np.add.at(dense, move.arms[0, : move.sizes[0]], move.changes[0, : move.sizes[0]])
            assert dense == pytest.approx(vertex - policy, abs=1e-12)
            if np.abs(dense).max() < 1e-9:
                continue
            for r in (0.0, 0.3):
                expected = dense_statistics(means, std, pulls, policy, vertex[None, :], r)[0]
                assert move_statistic(family, means, pulls, Move(move, 0), r, True) == pytest.approx(expected, rel=1e-6)
            # As printed in the paper, (r - gap)^2, for either sign.
            gap = float(means @ (policy - vertex))
            printed = (0.3 - gap) ** 2 / (2.0 * float((dense**2 * std**2 / pulls).sum()))
            assert move_statistic(family, means, pulls, Move(move, 0), -0.3, False) == pytest.approx(printed, rel=1e-6)
            seen += 1
    assert seen >= 200


def test_one_sided_statistics_of_better_moves_are_zero() -> None:
    family = make_family("gaussian", 2, 1.0)
    better = make_single(np.array([-1.0, 1.0]))
    means, pulls = np.array([0.0, 1.0]), np.array([10.0, 10.0])
    assert move_statistic(family, means, pulls, better, 0.0, True) == 0.0
    assert move_statistic(family, means, pulls, better, 0.0, False) == pytest.approx(1.0 / (2.0 * 0.2))
