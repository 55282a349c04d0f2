"""A feasible set of one point has nothing to tell apart: its bounds were a bare ValueError."""

import numpy as np

from polyarm import load_instance, lower_bounds
from polyarm.environments.instances import Instance


def test_a_single_feasible_mix_takes_no_samples() -> None:
    base = load_instance("figure1")
    # pi_2 + pi_3 <= 0 leaves the first arm alone.
    only = Instance("only", "", base.problem, base.mu, np.array([[0.0, 1.0, 1.0], [-0.2, 0.1, 0.1]]))
    found = lower_bounds(only, r=0.0)
    assert found["optimal_policy"] == [1.0, 0.0, 0.0]
    assert found["bounds"]["known"]["T"] == 0.0
    assert found["bounds"]["known"]["samples"] == 0.0
    assert found["bounds"]["bai"]["T"] > 0.0
