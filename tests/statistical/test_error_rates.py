"""Errors at most delta, where that is proved: exact binomial tests over fixed seeds.

A run that hits the horizon counts as an error.
"""

from typing import Any

import pytest
from scipy import stats

from contract.suitable import ALL_EXPLORERS, CERTIFYING, tell_rows
from polyarm import load_instance, simulate
from polyarm.engine.run import RunRecord

SEEDS = 200
DELTA = 0.1
LEVEL = 1e-3


def run(explorer: str, instance: str, r: float) -> tuple[RunRecord, ...]:
    told = tell_rows(load_instance(instance))
    settings: dict[str, Any] = {"r": r, "delta": DELTA}
    if explorer not in CERTIFYING:
        settings["beta"] = "theory"
    return simulate(told, explorer, seeds=SEEDS, workers=2, horizon=50_000, settings=settings).cells[0].runs


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
@pytest.mark.parametrize(("instance", "r"), [("setup1-easy", 0.1), ("figure2", 0.0)])
def test_with_known_constraints_every_mix_is_feasible_and_few_are_wrong(explorer: str, instance: str, r: float) -> None:
    if explorer in CERTIFYING and r == 0.0:
        pytest.skip("nothing can be certified without a tolerance")
    runs = run(explorer, instance, r)
    assert all(run.feasible for run in runs)
    errors = sum(run.status != "STOPPED" or not run.correct for run in runs)
    assert stats.binomtest(errors, SEEDS, DELTA, alternative="greater").pvalue > LEVEL


def test_the_binomial_test_would_notice() -> None:
    """Twice the errors that delta allows would not pass with this many seeds."""
    assert stats.binomtest(int(2 * DELTA * SEEDS), SEEDS, DELTA, alternative="greater").pvalue < LEVEL
