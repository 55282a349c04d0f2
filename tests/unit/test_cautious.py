"""The cautious answer: slack in every unknown row, little reward lost, known rows kept."""

import numpy as np
import pytest
from scipy.optimize import linprog

from oracle.records import spoil
from oracle.reference import BoolArray, FloatArray, Generator
from polyarm.certify.witnesses import make_descent_work
from polyarm.planner.cautious import Caution, write_cautious
from polyarm.polytope.penalised import Program

PENALTY = 200.0
KNOWN_ROW = 1e-9


def solve(
    mu: FloatArray, rows: FloatArray, known: BoolArray, loss: float, room: float
) -> tuple[bool, FloatArray, FloatArray]:
    """Return whether there is one, the optimum and the cautious answer."""
    d, n_arms = rows.shape
    work = make_descent_work(n_arms, d)
    spoil(work)
    optimum, answer = np.full(n_arms, np.nan), np.full(n_arms, np.nan)
    found = write_cautious(Program(mu, rows, known), Caution(loss, room, PENALTY), work, optimum, answer)
    return bool(found), optimum, answer


def solve_tightened(mu: FloatArray, rows: FloatArray, known: BoolArray, tightening: float) -> float:
    """Optimal value with the unknown rows tightened, by HiGHS; -inf when there is no mix."""
    n_arms = mu.size
    bounds = np.where(known, 0.0, -tightening)
    solution = linprog(
        -mu, A_ub=rows if rows.size else None, b_ub=bounds if rows.size else None, A_eq=np.ones((1, n_arms)), b_eq=[1.0]
    )
    return -np.inf if solution.fun is None else -float(solution.fun)


def most_slack(mu: FloatArray, rows: FloatArray, known: BoolArray, least_value: float) -> float:
    """The largest tightening that still allows a value, by HiGHS, with the tightening as a variable."""
    d, n_arms = rows.shape
    A = np.vstack([np.hstack([rows, np.where(known, 0.0, 1.0)[:, None]]), np.append(-mu, 0.0)])
    solution = linprog(
        np.append(np.zeros(n_arms), -1.0),
        A_ub=A,
        b_ub=np.append(np.zeros(d), -least_value),
        A_eq=np.append(np.ones(n_arms), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n_arms + [(None, None)],
    )
    return -np.inf if solution.fun is None else -float(solution.fun)


def draw(rng: Generator, share_known: float) -> tuple[FloatArray, FloatArray, BoolArray]:
    """A problem in which some mix has slack in every row."""
    n_arms, d = int(rng.integers(2, 12)), int(rng.integers(0, 5))
    rows = rng.normal(size=(d, n_arms))
    if rng.random() < 0.3:
        rows = np.round(rows)
    inside = rng.dirichlet(np.ones(n_arms))
    rows -= (rows @ inside)[:, None] + 10.0 ** rng.uniform(-2.0, 0.0)
    return rng.normal(size=n_arms), rows, rng.random(d) < share_known


@pytest.mark.parametrize("share_known", [0.0, 0.4])
def test_slack_reward_and_known_rows(share_known: float) -> None:
    rng = np.random.default_rng(1)
    found_some = 0
    for _ in range(400):
        mu, rows, known = draw(rng, share_known)
        r = 10.0 ** rng.uniform(-2.0, 0.0)
        found, optimum, answer = solve(mu, rows, known, 0.5 * r, 0.75 * r)
        best = solve_tightened(mu, rows, known, 0.0)
        assert mu @ optimum == pytest.approx(best, abs=1e-7)
        assert (rows @ optimum).max(initial=0.0) <= 1e-8
        assert found, "every row can be satisfied with slack"
        found_some += 1
        assert answer.min() >= 0.0
        assert known.any() or answer.min() > 0.0, "only a known row may keep an arm out"
        assert answer.sum() == pytest.approx(1.0, abs=1e-12)
        assert mu @ answer >= best - 0.75 * r - 1e-8
        slack = -(rows @ answer)
        if (~known).any():
            largest = float(np.abs(rows[~known]).max())
            affordable = most_slack(mu, rows, known, best - 0.5 * r)
            # Fourteen halvings find the slack that the loss buys; mixing in every arm may use up half of it.
            assert slack[~known].min() >= 0.5 * (affordable - largest / 2**13) - 1e-6
            assert slack[~known].min() > 0.0
        assert slack[known].min(initial=0.0) >= -1e-8
    assert found_some == 400


def test_tight_known_rows_are_kept() -> None:
    """An arm that a known row forbids, or a known row that the optimum exhausts, gets no share at all."""
    mu, rows = np.array([1.0, 0.0, 0.0]), np.array([[0.8, -0.2, -0.2], [-1.0, -1.0, -1.0]])
    found, _, answer = solve(mu, rows, np.array([True, False]), 0.05, 0.075)
    assert found
    assert rows[0] @ answer <= KNOWN_ROW
    forbidden = np.array([[1.0, 0.0, 0.0], [-1.0, -1.0, -1.0]])
    found, _, answer = solve(mu, forbidden, np.array([True, False]), 0.05, 0.075)
    assert found
    assert forbidden[0] @ answer <= KNOWN_ROW


def test_no_answer_when_the_rows_leave_no_slack() -> None:
    """Two rows that together force equality: feasible, but nothing cautious exists."""
    rows = np.array([[1.0, -1.0], [-1.0, 1.0]])
    found, optimum, _ = solve(np.array([1.0, 0.0]), rows, np.zeros(2, dtype=np.bool_), 0.1, 0.15)
    assert not found
    assert optimum == pytest.approx([0.5, 0.5])


def test_the_optimum_is_written_even_when_no_mix_fits() -> None:
    """Then it is the optimum of the penalised program: the least violation, at this penalty."""
    rows = np.array([[1.0, 0.25]])
    found, optimum, _ = solve(np.array([1.0, 0.0]), rows, np.zeros(1, dtype=np.bool_), 0.1, 0.15)
    assert not found
    assert optimum == pytest.approx([0.0, 1.0])


def test_without_unknown_rows_the_optimum_is_only_mixed_a_little() -> None:
    mu = np.array([1.0, 0.5, 0.0])
    found, optimum, answer = solve(mu, np.zeros((0, 3)), np.zeros(0, dtype=np.bool_), 0.5, 0.75)
    assert found
    assert optimum.tolist() == [1.0, 0.0, 0.0]
    assert answer == pytest.approx([1.0 - 0.02 / 3.0, 0.01 / 3.0, 0.01 / 3.0])


def test_more_loss_buys_more_slack() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        mu, rows, known = draw(rng, 0.0)
        if rows.shape[0] == 0:
            continue
        slacks = []
        for loss in (0.01, 0.1, 1.0):
            found, _, answer = solve(mu, rows, known, loss, 1.5 * loss)
            assert found
            slacks.append(-(rows @ answer).max())
        largest = float(np.abs(rows).max())
        assert 0.5 * slacks[0] <= slacks[1] + largest / 2**13
        assert 0.5 * slacks[1] <= slacks[2] + largest / 2**13
