"""Random streams: one per seed and purpose."""

import numpy as np
import pytest

from polyarm.engine.randomness import EXPLORER, WORLD, make_stream


def draws(seed: int, purpose: int) -> list[float]:
    drawn: list[float] = make_stream(seed, purpose).standard_normal(1000).tolist()
    return drawn


@pytest.mark.parametrize("seed", [0, 7, 2**70])
def test_a_seed_gives_the_same_stream_every_time(seed: int) -> None:
    assert draws(seed, WORLD) == draws(seed, WORLD)


def test_the_world_and_the_explorer_never_share_a_stream() -> None:
    for seed in range(20):
        assert not set(draws(seed, WORLD)) & set(draws(seed, EXPLORER))


def test_seeds_never_share_a_stream() -> None:
    everything = [draw for seed in range(50) for purpose in (WORLD, EXPLORER) for draw in draws(seed, purpose)]
    assert len(set(everything)) == len(everything)


def test_streams_of_neighbouring_seeds_are_unrelated() -> None:
    worlds = np.array([draws(seed, WORLD) for seed in range(20)])
    correlations = np.corrcoef(worlds)[np.triu_indices(20, k=1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(1000)
