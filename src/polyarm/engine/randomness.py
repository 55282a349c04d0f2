"""Random streams: one seed gives one stream per purpose, whatever runs beside it."""

from typing import Any

import numpy as np

from polyarm.errors import InvalidInput

#: Purposes. The world's noise and the explorer's own draws never share a stream, so that a session fed by a
#: real experiment and a simulation ask for the same arms.
WORLD = 0
EXPLORER = 1


def make_stream(seed: int, purpose: int) -> np.random.Generator:
    """Return the generator of a seed for a purpose."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose,))))


def check_seed(seed: Any) -> int:
    """Return a valid seed, or raise."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInput(f"seed: expected a whole number, 0 or more, got {seed!r}")
    return int(seed)
