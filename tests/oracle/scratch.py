"""Scratch full of rubbish: what a kernel finds in it must not matter."""

from typing import Any

import numpy as np


def spoil(work: Any) -> None:
    """Overwrite every number of a struct, and of the structs and scalars in it, with NaN or -7."""
    if isinstance(work, np.record):
        for name in work.dtype.names or ():
            work[name] = rubbish(work.dtype[name])
    elif isinstance(work, np.ndarray):
        work[...] = rubbish(work.dtype)
    else:
        for name in work._fields:
            spoil(getattr(work, name))


def rubbish(kind: np.dtype[Any]) -> float:
    """What no computation can use without showing it."""
    return np.nan if kind.kind == "f" else -7
