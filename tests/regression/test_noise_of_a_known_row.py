"""A std that is declared for a known row is no reason to break the row.

A mix keeps a known row within a share of the row's largest entry. The row was scaled by the std instead: beside a large
one every mix kept it, and a certificate said `proved` of a mix that missed the bound by 2.
"""

import numpy as np
import pytest

from polyarm import Constraint, Problem, make_certificate, make_explorer, verify_certificate


@pytest.mark.parametrize("std", [1e-12, 1.0, 1e12])
def test_the_row_is_kept(std: float) -> None:
    row = Constraint(name="quality", row=(1.0, 0.0, 3.0), bound=2.0, sense=">=", std=std)
    problem = Problem(arms=("a", "b", "c"), reward_std=0.3, delta=0.1, r=0.3, constraints=(row,))
    session = make_explorer("certex", problem, seed=1)
    rng, means = np.random.default_rng(0), [0.0, 3.0, 1.0]
    while not session.stopped and session.steps < 2_000:
        arm = session.ask()
        session.tell(arm, means[arm] + 0.3 * rng.standard_normal())
    assert session.stopped
    assert np.array([1.0, 0.0, 3.0]) @ session.recommend().policy >= 2.0 - 1e-8
    assert verify_certificate(make_certificate(session).document).proved
