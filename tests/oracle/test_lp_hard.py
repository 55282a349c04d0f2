"""Linear programs whose bases are almost singular or almost degenerate: each once gave a wrong answer."""

import numpy as np
import pytest

from oracle import reference
from oracle.test_lp import CASES, check_against_highs, check_point, solve
from polyarm.polytope.lp import EMPTY, OPTIMAL, make_basis


def test_almost_singular_warm_basis() -> None:
    rng = np.random.default_rng(4)
    for _ in range(CASES):
        K, d = int(rng.integers(2, 20)), int(rng.integers(1, 6))
        G, objective = reference.draw_gaussian(rng, K, d), rng.normal(size=K)
        G[:, 1] = G[:, 0] + 10.0 ** rng.uniform(-13.0, -5.0) * rng.normal(size=d)
        others = 2 + rng.permutation(K + d - 2)[: d - 1]
        basis = np.append([0, 1], others).astype(np.int64)
        status, work = solve(objective, G, basis)
        assert check_against_highs(objective, G, basis, work, status)


@pytest.mark.parametrize("noise", [1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_almost_degenerate_programs(noise: float, warm: bool) -> None:
    """Sparse integer data plus noise: basic variables and pivots of every size down to the noise."""
    rng = np.random.default_rng(7)
    for case in range(8000):
        K, d = int(rng.integers(2, 9)), int(rng.integers(1, 6))
        clean = rng.integers(-2, 3, size=(d, K)).astype(np.float64) * (rng.random((d, K)) < 0.5)
        G, objective = clean + noise * rng.normal(size=(d, K)), rng.integers(-2, 3, size=K) + noise * rng.normal(size=K)
        basis = make_basis(d)
        if warm:
            solve(objective, clean, basis)
        status, work = solve(objective, G, basis)
        assert status in (OPTIMAL, EMPTY)
        if status == OPTIMAL:
            check_point(objective, G, basis, work)
        elif case % 50 == 0:
            assert reference.solve_exactly(objective, G)[0] > 0


@pytest.mark.parametrize(
    ("objective", "G"),
    [
        ([2.0, 1.0], [[2.000002, 0.0], [2.0, 1e-6]]),
        (
            [-1.0, 0.0, -1.0, 1.0],
            [
                [2.0, -1e-7, 1e-7, 0.0],
                [1.9999999, 1.0, -3e-7, 0.9999997],
                [2.0, -1.0, 1.0000001, -3e-7],
                [1.0, -2e-7, 0.0, -2.0],
            ],
        ),
    ],
    ids=["by 1e-6", "by a third"],
)
def test_empty_sets_that_were_solved(objective: list[float], G: list[list[float]]) -> None:
    rows = np.array(G)
    assert reference.solve_exactly(np.array(objective), rows)[0] > 9e-7
    assert solve(np.array(objective), rows, make_basis(len(rows)))[0] == EMPTY


def test_a_vertex_that_was_not_feasible() -> None:
    objective, G = np.array([2.0, 1.0, -1.0]), np.array([[1e-5, 3e-5, 0.0], [1.00003, 2e-5, -1e-5]])
    basis = make_basis(2)
    status, work = solve(objective, G, basis)
    assert status == OPTIMAL
    check_point(objective, G, basis, work)
