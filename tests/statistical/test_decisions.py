"""Whole runs of certex: wrong conclusions in at most delta of them, by an exact binomial test over fixed seeds.

Wrong is an answer that breaks a row or is more than r below the best mix, any answer where no mix is feasible, and
INFEASIBLE where one is. Declared variances and ranges: proved, for every law and correlation. Estimated variances:
measured. A run that is not decided by its horizon concludes nothing. `nightly/test_many_decisions.py` has thousands.
"""

from typing import Any

import pytest
from scipy.stats import binomtest

from oracle.decisions import TOGETHER, Tally, make_cell, tally
from polyarm.certify import blocks

#: If the promise holds, one comparison fails by chance with at most this probability.
LEVEL = 1e-5

#: Law, truth, whether variances are known (a range, or a std), delta, how costs go with rewards, and the horizon.
CELLS = [
    ("gaussian", "tight", True, 0.3, "same", 3_000),
    ("gaussian", "barely", True, 0.3, "opposed", 3_000),
    ("gaussian", "infeasible", True, 0.05, "apart", 3_000),
    ("gaussian", "two rows", False, 0.3, "opposed", 5_000),
    ("two-point", "tight", True, 0.3, "opposed", 12_000),
    ("two-point", "infeasible", False, 0.3, "same", 8_000),
    ("rare", "barely", False, 0.3, "apart", 20_000),
    ("rare", "infeasible", True, 0.3, "opposed", 30_000),
    ("beta", "two rows", True, 0.3, "same", 5_000),
    ("beta", "barely", True, 0.3, "same", 5_000),
    ("beta", "tight", False, 0.05, "opposed", 5_000),
    ("lognormal", "infeasible", True, 0.3, "apart", 5_000),
    ("lognormal", "tight", False, 0.3, "same", 8_000),
]


def assert_few_wrong(found: Tally, delta: float) -> None:
    p_value = binomtest(found.wrong, found.runs, delta, alternative="greater").pvalue
    assert p_value >= LEVEL, f"{found.wrong} of {found.runs} runs were wrong at delta = {delta}"


@pytest.mark.parametrize(("law", "truth", "known", "delta", "together", "horizon"), CELLS)
def test_few_runs_conclude_what_is_false(
    law: str, truth: str, known: bool, delta: float, together: str, horizon: int, record_property: Any
) -> None:
    runs = 10
    found = tally(make_cell(law, truth, known, delta), runs, horizon, TOGETHER[together])
    record_property("wrong", found.wrong / runs)
    record_property("decided", (found.stopped + found.infeasible) / runs)
    assert_few_wrong(found, delta)
    # Runs that decide nothing would show nothing.
    if law != "rare":
        assert found.stopped + found.infeasible >= 0.5 * runs
    assert (found.infeasible if truth == "infeasible" else found.stopped) >= found.wrong


@pytest.mark.parametrize("truth", ["barely", "infeasible"])
def test_runs_that_ask_for_little_evidence_are_often_wrong(truth: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truths on the edge, with levels of log(1/0.8) for every claim, judged in the same way: errors would show."""
    monkeypatch.setattr(blocks, "share_delta", lambda number, delta, n_unknown: (0.8, 0.8, 0.8))
    found = tally(make_cell("gaussian", truth, True, 0.05, edge=0.001), 60, 2_000, TOGETHER["apart"])
    assert binomtest(found.wrong, found.runs, 0.05, alternative="greater").pvalue < LEVEL
