"""A certified answer satisfies the known rows: they are no matter of confidence.

The first candidate, the uniform mix, need not; it was kept, and certified, while no other answer was better off.
"""

import numpy as np
import pytest

from contract.suitable import make_instance
from polyarm import make_explorer
from polyarm.tolerances import TRUTH

COSTS = np.array([-1.0, 0.2, 0.2])


@pytest.mark.parametrize("std", [0.1, 1.0], ids=["uniform-mix-kept", "cautious-mix-over-the-edge"])
@pytest.mark.parametrize("explorer", ["certex"])
def test_known_rows_hold(explorer: str, std: float) -> None:
    constraints = [
        {"name": "share", "bound": 0.2, "row": (1.0, 0.0, 0.0)},
        {"name": "cost", "bound": 0.0, "std": std},
    ]
    truth = [[1.0, 0.0, 0.0], COSTS.tolist()]
    problem = make_instance([0.0, 0.0, 0.0], truth, constraints, reward_std=std, r=0.5).problem
    for seed in range(8):
        session = make_explorer(explorer, problem, seed=seed, thresholds="proved" if std < 1.0 else "stylised")
        rng = np.random.default_rng(seed)
        while not session.stopped and session.steps < 50_000:
            arm = session.ask()
            session.tell(arm, std * rng.standard_normal(), [COSTS[arm] + std * rng.standard_normal()])
        assert session.stopped
        assert session.round.answer[0] <= 0.2 + TRUTH
