"""Rewards in a known interval: sub-Gaussian with half its width, and treated as Gaussians of that scale."""

import numpy as np

from polyarm._compile import kernel

BOUNDED = 1

#: Simulated rewards are scaled Beta(4 m, 4 (1 - m)) draws, m being the mean's place in the interval.
CONCENTRATION = 4.0


@kernel
def sample_bounded(low: float, high: float, mean: float, rng: np.random.Generator) -> float:
    """Draw one reward in [low, high]."""
    place = (mean - low) / (high - low)
    if place <= 0.0:
        return low
    if place >= 1.0:
        return high
    return low + (high - low) * rng.beta(CONCENTRATION * place, CONCENTRATION * (1.0 - place))
