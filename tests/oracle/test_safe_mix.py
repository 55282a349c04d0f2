"""The best mix that is certainly feasible, against a general solver and against random mixes."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from polyarm import Constraint, Problem
from polyarm._types import FloatArray
from polyarm.certify.proof import Standing, find_safe_mix, row_margins, weigh_statistics
from polyarm.model import build_model
from polyarm.rules.certex import CertexSettings


def make_standing(rng: np.random.Generator, n_known: int, tight: float) -> Standing:
    n_arms, n_unknown = int(rng.integers(2, 10)), int(rng.integers(0 if n_known else 1, 4))
    known = [
        Constraint(name=f"known {i}", bound=0.6, row=(0.1, *rng.uniform(0.0, 1.0, n_arms - 1).tolist()))
        for i in range(n_known)
    ]
    unknown = [Constraint(name=f"row {i}", bound=0.5, std=1.0) for i in range(n_unknown)]
    arms = tuple(f"arm {a}" for a in range(n_arms))
    problem = Problem(arms=arms, constraints=(*known, *unknown), reward_std=1.0, delta=0.1, r=0.1)
    model = build_model(problem)
    rows = np.array(model.known_rows)
    rows[~model.known] = rng.uniform(-tight, 1.0 - tight, (n_unknown, n_arms))
    pulls = np.floor(10.0 ** rng.uniform(1.0, 4.0, n_arms))
    rule = CertexSettings().make_terms(model).make_rule(model)
    return weigh_statistics(model, rule, pulls, rng.uniform(0.0, 1.0, n_arms), rows)


def upper_rows(standing: Standing, mix: FloatArray) -> FloatArray:
    return np.asarray(standing.evidence.rows @ mix + row_margins(standing, mix))


def solve_slowly(standing: Standing, start: FloatArray) -> float:
    mu = standing.evidence.mu
    solve: Any = minimize  # its stubs refuse constraint dictionaries
    solved = solve(
        lambda p: -float(mu @ p),
        0.999 * start + 0.001 / start.size,
        bounds=[(0.0, 1.0)] * start.size,
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1.0},
            {"type": "ineq", "fun": lambda p: -upper_rows(standing, p)},
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    feasible = solved.success and upper_rows(standing, solved.x).max() <= 1e-7
    return -float(solved.fun) if feasible else -np.inf


@pytest.mark.parametrize("n_known", [0, 1])
@pytest.mark.parametrize("tight", [0.3, 0.5, 0.7])
def test_it_is_safe_and_none_is_better(n_known: int, tight: float) -> None:
    rng = np.random.default_rng([n_known, int(10 * tight)])
    found = 0
    for _ in range(60):
        standing = make_standing(rng, n_known, tight)
        mix = find_safe_mix(standing)
        some = rng.dirichlet(np.full(standing.evidence.mu.size, 0.3), 2000)
        safe = some[[upper_rows(standing, p).max() <= 0.0 for p in some]]
        if mix is None:
            assert not len(safe)
            continue
        found += 1
        assert mix.min() >= 0.0
        assert mix.sum() == pytest.approx(1.0, abs=1e-12)
        assert upper_rows(standing, mix).max() <= 1e-9
        value = float(standing.evidence.mu @ mix)
        assert value >= (safe @ standing.evidence.mu).max(initial=-np.inf) - 1e-7
        assert value >= solve_slowly(standing, mix) - 1e-6
    assert found > 5
