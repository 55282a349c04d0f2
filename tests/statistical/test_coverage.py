"""The radius `arm` covers the true matrix at all times with probability at least 1 - delta.

The radius `scalar`, the paper's, is documented as not covering, and nothing is claimed for it here.
"""

import numpy as np
import pytest
from scipy import stats

from contract.suitable import make_instance
from polyarm import Instance
from polyarm.estimates import ARM, make_estimates, record, write_shifted, write_widths
from polyarm.model import build_model

RUNS = 600
SWEEPS = 120
DELTA = 0.2
LEVEL = 1e-3

ROWS = [[1.0, 0.2, 0.4], [0.1, 0.9, 0.3]]


def instance_with(stds: list[float | list[float]], known: int | None = None) -> Instance:
    constraints = [
        {"name": f"row {i}", "bound": 0.5, "std": std, "row": ROWS[i] if i == known else None}
        for i, std in enumerate(stds)
    ]
    return make_instance([1.0, 2.0, 3.0], ROWS, constraints, delta=DELTA)


def covers_always(instance: Instance, seed: int) -> bool:
    """Pull every arm in turn and watch whether the truth is ever outside the widths, on either side.

    Entries of an arm change only when that arm is pulled, so looking once a sweep misses nothing.
    """
    model = build_model(instance.problem)
    truth = np.vstack([np.ones(3), instance.true_rows * np.abs(model.factors)[:, None]])
    estimates = make_estimates(model)
    widths, lower, upper = np.zeros((2, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    world = instance.world()
    noise = np.random.default_rng(seed).standard_normal((SWEEPS, 3, 2))
    for sweep in range(SWEEPS):
        for arm in range(3):
            costs = world.cost_means[:, arm] + world.cost_std[:, arm] * noise[sweep, arm]
            record(estimates, model, arm, 0.0, costs)
        write_widths(ARM, estimates, model, np.full(3, 1 / 3), widths)
        write_shifted(estimates.columns, widths, -1.0, lower)
        write_shifted(estimates.columns, widths, +1.0, upper)
        if (lower > truth).any() or (upper < truth).any():
            return False
    return True


@pytest.mark.parametrize("stds", [[1.0, 1.0], [0.3, [0.5, 1.0, 2.0]]])
def test_the_truth_stays_inside_for_all_time(stds: list[float | list[float]]) -> None:
    instance = instance_with(stds)
    failures = sum(not covers_always(instance, seed) for seed in range(RUNS))
    assert stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > LEVEL
    assert failures > 0, "a radius that never fails at this delta is much too wide"


def test_a_known_row_has_no_width_and_costs_no_confidence() -> None:
    measured = build_model(instance_with([1.0, 1.0]).problem)
    mixed = build_model(instance_with([1.0, 1.0], known=0).problem)
    widths = {}
    for name, model in (("measured", measured), ("mixed", mixed)):
        estimates = make_estimates(model)
        for arm in range(3):
            for _ in range(5):
                record(estimates, model, arm, 0.0, np.zeros(2))
        out = np.full((2, 3), np.nan)
        write_widths(ARM, estimates, model, np.full(3, 1 / 3), out)
        widths[name] = out
    assert widths["mixed"][0].tolist() == [0.0, 0.0, 0.0]
    assert (widths["mixed"][1] < widths["measured"][1]).all(), "delta is shared by the unknown rows only"


def test_the_binomial_test_would_notice() -> None:
    assert stats.binomtest(int(1.5 * DELTA * RUNS), RUNS, DELTA, alternative="greater").pvalue < LEVEL
