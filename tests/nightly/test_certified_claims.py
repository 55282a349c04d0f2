"""The promise of the certified stop over thousands of runs (`make verify`)."""

from typing import Any

import pytest
from scipy.stats import binomtest

from polyarm import simulate

pytestmark = pytest.mark.nightly

RUNS = 2000
LEVEL = 1e-3


@pytest.mark.parametrize("certificate", ["averaged", "pooled"])
@pytest.mark.parametrize("noise", ["independent", "correlated"])
@pytest.mark.parametrize("delta", [0.3, 0.1])
@pytest.mark.parametrize(("instance", "r"), [("setup2-easy", 0.3), ("setup2-hard", 0.3), ("imdb", 0.6)])
def test_certex_errs_in_at_most_delta_of_the_runs(
    instance: str, r: float, delta: float, noise: str, certificate: str
) -> None:
    settings: dict[str, Any] = {"r": r, "delta": delta, "noise": noise, "certificate": certificate}
    cell = simulate(instance, "certex", seeds=RUNS, settings=settings).cells[0]
    errors = sum(not run.correct for run in cell.runs)
    assert binomtest(errors, RUNS, delta, alternative="greater").pvalue >= LEVEL
    assert all(run.status == "STOPPED" for run in cell.runs)


@pytest.mark.parametrize("explorer", ["uniform", "lagex", "lats", "ctns-wlag", "cge-wlag", "ptns"])
def test_any_sampling_rule_with_the_certified_stop(explorer: str) -> None:
    settings: dict[str, Any] = {"r": 0.3, "delta": 0.1, "stopping": "certified"}
    cell = simulate("setup2-easy", explorer, seeds=RUNS, settings=settings).cells[0]
    errors = sum(not run.correct for run in cell.runs)
    assert binomtest(errors, RUNS, 0.1, alternative="greater").pvalue >= LEVEL
