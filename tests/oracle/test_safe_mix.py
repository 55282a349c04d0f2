"""The best mix that is certainly feasible, against a general solver and against random mixes.

Rows may be declared, or bounded arm by arm (in a range, or estimated).
"""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from polyarm import Constraint, Problem
from polyarm._types import FloatArray
from polyarm.accounts import KNOWN
from polyarm.certify.proof import Standing, find_safe_mix, row_margins, weigh_statistics
from polyarm.model import build_model
from polyarm.rules.certex import CertexSettings


def make_standing(rng: np.random.Generator, n_known: int, tight: float, declared: bool) -> Standing:
    n_arms, n_unknown = int(rng.integers(2, 10)), int(rng.integers(0 if n_known else 1, 4))
    known = [
        Constraint(name=f"known {i}", bound=0.6, row=(0.1, *rng.uniform(0.0, 1.0, n_arms - 1).tolist()))
        for i in range(n_known)
    ]
    kinds: list[dict[str, Any]] = [{"std": 1.0}] if declared else [{"std": 1.0}, {"range": (0.0, 1.0)}, {}]
    unknown = [Constraint(name=f"row {i}", bound=0.5, **kinds[i % len(kinds)]) for i in range(n_unknown)]
    arms = tuple(f"arm {a}" for a in range(n_arms))
    problem = Problem(arms=arms, constraints=(*known, *unknown), reward_std=1.0, delta=0.1, r=0.1)
    model = build_model(problem)
    rows = np.array(model.known_rows)
    rows[~model.known] = rng.uniform(-tight, 1.0 - tight, (n_unknown, n_arms))
    pulls = np.floor(10.0 ** rng.uniform(1.0, 4.0, n_arms))
    rule = CertexSettings().make_terms(model).make_rule(model)
    widths = np.where(model.accounts == KNOWN, 0.0, 3.0)[:, None] / np.sqrt(pulls)
    if not declared and n_unknown > 1:
        widths[-1, int(rng.integers(n_arms))] = np.inf  # an arm of which nothing is known
    return weigh_statistics(model, rule, pulls, rng.uniform(0.0, 1.0, n_arms), rows, widths)


def upper_rows(standing: Standing, mix: FloatArray) -> FloatArray:
    return np.asarray(standing.estimated.rows @ mix + row_margins(standing, mix))


def usable_arms(standing: Standing) -> FloatArray:
    """The unit mixes of arms of which something is known: no mix of others is safe."""
    return np.asarray(np.eye(standing.estimated.mu.size)[np.isfinite(standing.widths).all(axis=0)])


def solve_slowly(standing: Standing, start: FloatArray) -> float:
    arms = usable_arms(standing)
    mu = arms @ standing.estimated.mu
    solve: Any = minimize  # its stubs refuse constraint dictionaries
    solved = solve(
        lambda p: -float(mu @ p),
        0.999 * arms @ start + 0.001 / len(arms),
        bounds=[(0.0, 1.0)] * len(arms),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1.0},
            {"type": "ineq", "fun": lambda p: -upper_rows(standing, p @ arms)},
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    feasible = solved.success and upper_rows(standing, solved.x @ arms).max() <= 1e-7
    return -float(solved.fun) if feasible else -np.inf


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("n_known", [0, 1])
@pytest.mark.parametrize("tight", [0.3, 0.5, 0.7])
def test_it_is_safe_and_none_is_better(n_known: int, tight: float, declared: bool) -> None:
    rng = np.random.default_rng([n_known, int(10 * tight)])
    found = 0
    for _ in range(60):
        standing = make_standing(rng, n_known, tight, declared)
        mix = find_safe_mix(standing)
        arms = usable_arms(standing)
        some = rng.dirichlet(np.full(len(arms), 0.3), 2000) @ arms
        safe = some[[upper_rows(standing, p).max() <= 0.0 for p in some]]
        if mix is None:
            assert not len(safe)
            continue
        found += 1
        assert mix.min() >= 0.0
        assert mix.sum() == pytest.approx(1.0, abs=1e-12)
        assert upper_rows(standing, mix).max() <= 1e-9, "arms of which nothing is known are infinitely dear"
        value = float(standing.estimated.mu @ mix)
        assert value >= (safe @ standing.estimated.mu).max(initial=-np.inf) - 1e-7
        assert value >= solve_slowly(standing, mix) - 1e-6
    assert found > 5
