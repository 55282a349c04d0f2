"""`uniform` draws its arms independently and evenly: chi-square at a fixed seed."""

import numpy as np
import pytest
from scipy import stats

from polyarm import load_instance, make_explorer

K = 7
LEVEL = 1e-3


@pytest.fixture(scope="module")
def arms() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The arms asked for after each was pulled once."""
    problem = load_instance("setup1-hard").problem.replace(r=0.0)
    session = make_explorer("uniform", problem, seed=2024)
    asked = []
    for _ in range(K + 9800):
        asked.append(session.ask())
        session.tell(asked[-1], 0.0, [0.0, 0.0])  # equal outcomes: it never stops
    return np.array(asked[K:])


def test_arms_are_even(arms: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    counts = np.bincount(arms, minlength=K)
    assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("lag", [1, 2, 7])
def test_arms_are_independent_of_earlier_ones(arms: np.ndarray[tuple[int], np.dtype[np.int64]], lag: int) -> None:
    pairs = np.zeros((K, K))
    np.add.at(pairs, (arms[:-lag], arms[lag:]), 1.0)
    assert stats.chi2_contingency(pairs).pvalue > LEVEL
    assert stats.chi2_contingency(pairs).pvalue < 1 - LEVEL, "too even to be random"


def test_seeds_give_different_arms() -> None:
    problem = load_instance("setup1-hard").problem
    first = []
    for seed in range(200):
        session = make_explorer("uniform", problem, seed=seed)
        for _ in range(K):
            session.tell(session.ask(), 0.0, [0.0, 0.0])
        first.append(session.ask())
    assert stats.chisquare(np.bincount(first, minlength=K)).pvalue > LEVEL
