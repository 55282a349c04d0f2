"""Whole runs of certex by the thousand, with every core (`make verify`): wrong conclusions in at most delta of them.

Error rates are printed (`-s`). Those of estimated variances are measured, and nothing proves them.
"""

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from scipy.stats import binomtest

from oracle.decisions import TOGETHER, Tally, make_cell, tally

pytestmark = pytest.mark.nightly

RUNS, PIECE = 2000, 50
LEVEL = 1e-4

#: Law, truth, and the pulls after which a run that has concluded nothing is given up.
SHORT = [
    ("gaussian", "tight", 3_000),
    ("gaussian", "barely", 3_000),
    ("gaussian", "infeasible", 3_000),
    ("gaussian", "two rows", 3_000),
    ("two-point", "tight", 12_000),
    ("two-point", "infeasible", 6_000),
    ("beta", "tight", 3_000),
    ("beta", "barely", 3_000),
    ("beta", "infeasible", 3_000),
    ("lognormal", "tight", 12_000),
    ("lognormal", "infeasible", 6_000),
    ("rare", "barely", 40_000),
    ("rare", "infeasible", 30_000),
]
#: How costs go with rewards, and delta: taken in turn.
MANNERS = [("apart", 0.3), ("same", 0.3), ("opposed", 0.3), ("same", 0.05)]


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as made:
        yield made


def _tally_piece(law: str, truth: str, known: bool, delta: float, together: str, horizon: int, piece: int) -> Tally:
    return tally(make_cell(law, truth, known, delta), PIECE, horizon, TOGETHER[together], first_seed=piece * PIECE)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("number", "law", "truth", "horizon"), [(n, *cell) for n, cell in enumerate(SHORT)])
def test_few_of_many_runs_conclude_what_is_false(
    pool: Executor, number: int, law: str, truth: str, horizon: int, known: bool
) -> None:
    together, delta = MANNERS[(number + 2 * known) % len(MANNERS)]
    jobs = [
        pool.submit(_tally_piece, law, truth, known, delta, together, horizon, piece) for piece in range(RUNS // PIECE)
    ]
    pieces = [job.result() for job in jobs]
    wrong, decided = sum(x.wrong for x in pieces), sum(x.stopped + x.infeasible for x in pieces)
    steps = sum(x.mean_steps for x in pieces) / len(pieces)
    account = "known" if known else "estimated"
    print(f"{law}, {truth}, {account}, costs {together}, delta {delta}: wrong {wrong / RUNS:.4f}", end=", ")
    print(f"decided {decided / RUNS:.3f}, {steps:.0f} pulls")
    assert binomtest(wrong, RUNS, delta, alternative="greater").pvalue >= LEVEL
