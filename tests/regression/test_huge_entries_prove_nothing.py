"""Rows in units of a tiny noise have entries of 1e11 and more, whose bases no inverse is worth anything.

The LP once went on with the inverse that an earlier program had left in the scratch, and found feasible problems
infeasible; answers that are no mixes reached the blocks.
"""

from typing import Any

import numpy as np
import pytest

from contract.suitable import make_instance
from polyarm import Instance
from polyarm.engine.run import Exploration, plan_run
from polyarm.polytope.lp import ITERATION_LIMIT, make_basis, make_lp_work, solve_lp


@pytest.fixture
def instance() -> Instance:
    rows: list[dict[str, Any]] = [
        {"name": "x", "bound": 100.0, "std": 1e-10},
        {"name": "y", "bound": 3.0, "std": 1.0},
    ]
    costs = [[20.0, 80.0, 200.0, 10.0], [3.0, 1.0, 2.0, 5.0]]
    return make_instance([1.0, 2.0, 3.0, 0.5], costs, rows, r=0.3, noise="independent")


@pytest.mark.parametrize("certificate", ["averaged", "pooled"])
def test_a_feasible_problem_is_not_proved_infeasible(instance: Instance, certificate: str) -> None:
    for seed in range(3):
        run = Exploration(*plan_run(instance, "certex", {"certificate": certificate}), seed=seed)
        run.advance_to(300)
        record = run.record()
        assert record.status != "INFEASIBLE"
        if record.policy is not None:
            assert np.all(np.isfinite(record.policy))
            assert record.policy.sum() == pytest.approx(1.0)


def test_a_program_without_a_basis_is_not_called_empty() -> None:
    columns = np.array([[1.0, 1.0, 1.0], [-8e11, 1e12, 2e11], [0.5, -0.2, -1.0]])
    work = make_lp_work(3, 2)
    work.inverse[:] = np.random.default_rng(1).normal(size=work.inverse.shape)  # what an earlier program left
    assert solve_lp(np.array([1.0, 2.0, 3.0]), columns, make_basis(2), work) == ITERATION_LIMIT


def test_one_absurd_outcome_does_not_poison_the_session() -> None:
    rows = [{"name": "x", "bound": 0.6, "std": 1.0}]
    instance = make_instance([1.0, 0.5, 0.2], [[1.0, 0.5, 0.1]], rows, r=0.3, noise="independent")
    for seed in range(4):
        session = Exploration(*plan_run(instance, "certex", {}), seed=seed).session
        rng = np.random.default_rng(seed)
        for k in range(400):
            arm = session.ask()
            cost = 1e12 if k == 20 else instance.A[0, arm] + rng.standard_normal()
            session.tell(arm, instance.mu[arm] + rng.standard_normal(), [cost])
            answer = session.state.block.answer
            assert np.all(answer >= 0.0)
            assert answer.sum() == pytest.approx(1.0)
