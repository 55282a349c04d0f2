"""Crossing rates of the lemma over thousands of runs, for all claims, accounts and adversaries (`make verify`).

Rates are printed (`-s`): proved ones beside the delta that bounds them, and estimated ones, which nothing bounds.
"""

import numpy as np
import pytest

from oracle import laws
from oracle.crossing import (
    APART,
    BOLD,
    BOLD_COUNTS,
    EVEN,
    LUCKY,
    ONE_ARM,
    OPPOSED,
    RANDOM,
    RARE,
    SAME,
    SINGLE,
    STILL,
    WILD,
)
from statistical.test_crossing import (
    CLAIMS,
    DELTAS,
    assert_at_most_delta,
    crossing_counts,
    make_game,
    make_memory,
    make_tables,
)

pytestmark = pytest.mark.nightly

RUNS = 4000
#: One of a few hundred comparisons fails by chance with at most one in a thousand.
LEVEL = 2e-6

ADVERSARIES = {
    "still": (STILL, EVEN, APART),
    "lucky": (LUCKY, RANDOM, SAME),
    "bold": (BOLD, BOLD_COUNTS, OPPOSED),
    "wild": (WILD, SINGLE, APART),
    "bold, one arm": (BOLD, ONE_ARM, SAME),
}
PROVED = [
    (account, law, n_arms)
    for n_arms in (2, 4)
    for account, law in [
        ("declared", "normal"),
        ("declared", "sign"),
        ("range", "bernoulli 0.05"),
        ("range", "bernoulli 0.3"),
        ("range", "two-point"),
        ("range", "beta"),
    ]
]


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize(("account", "law", "n_arms"), PROVED)
def test_proved_claims(account: str, law: str, n_arms: int, claim: str, adversary: str) -> None:
    tables = make_tables(law, n_arms)
    game = make_game(tables, CLAIMS[claim], ADVERSARIES[adversary], before=20, n_blocks=24, size=30.0)
    found = crossing_counts(game, make_memory(account, tables), RUNS, 101, DELTAS)
    print(account, law, n_arms, claim, adversary, [f"{x / RUNS:.4f}" for x in found])
    assert_at_most_delta(found, RUNS, DELTAS, LEVEL)


ESTIMATED = (
    "normal",
    "exponential",
    "lognormal 1",
    "lognormal 1.5",
    "lognormal 2",
    "bernoulli 0.3",
    "bernoulli 0.05",
    "bernoulli 0.02",
    "bernoulli 0.005",
    "pareto 2.1",
    "pareto 1.5",
)
#: Adversaries of estimated claims, with the pulls of each arm before the start as a share of those that are expected.
ARRANGEMENTS = {
    "still": ((STILL, EVEN, APART), 0.1),
    "lucky": ((LUCKY, RANDOM, SAME), 0.1),
    "bold": ((BOLD, BOLD_COUNTS, OPPOSED), 0.1),
    "an arm with 2 % of the pulls": ((STILL, RARE, APART), 0.004),
}


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
@pytest.mark.parametrize("expected", [300, 1500, 6000])
@pytest.mark.parametrize("law", ESTIMATED)
def test_estimated_claims(law: str, expected: int, arrangement: str) -> None:
    """Rates at delta .3, .1, .05, .02 and .005: measured, at most delta for these laws so far."""
    adversary, share = ARRANGEMENTS[arrangement]
    # Both arms have the same rare outcomes, so that no common one hides them.
    rare = law.startswith("bernoulli")
    tables = np.array([[laws.bernoulli(float(law.split()[1]))] * 2] * 2) if rare else make_tables(law, 2)
    memory, deltas = make_memory("estimated", tables), (0.3, 0.1, 0.05, 0.02, 0.005)
    before = max(30, int(share * expected))
    for claim, against in CLAIMS.items():
        size = 0.04 * max(0.2 * expected, 2.0 * before)
        game = make_game(tables, against, adversary, before, n_blocks=60, size=size, growth=1.04)
        found = crossing_counts(game, memory, RUNS // 2, 11, deltas)
        print("estimated", law, expected, arrangement, claim, [f"{2 * x / RUNS:.4f}" for x in found])
        assert_at_most_delta(found, RUNS // 2, deltas, LEVEL)
