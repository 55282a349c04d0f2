"""One block of scratch that kernels carve their arrays from.

Every array that a compiled function is given costs it reference counts and, when there are a hundred of them, minutes
to compile. Kernels that are called rarely and need much scratch take an `Arena` instead and carve it up at their start;
two such kernels may share one arena as long as neither calls the other.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import inlined_kernel
from polyarm._types import FloatArray, IntArray


class Arena(NamedTuple):
    """Floats and integers that nobody owns."""

    floats: FloatArray
    ints: IntArray


class Size(NamedTuple):
    """How much of an arena something takes."""

    floats: int
    ints: int


def make_arena(*sizes: Size) -> Arena:
    """Allocate an arena that has room for the largest of these, one at a time."""
    return Arena(
        np.zeros(max(size.floats for size in sizes)), np.zeros(max(size.ints for size in sizes), dtype=np.int64)
    )


@inlined_kernel
def rest_of(arena: Arena, floats: int, ints: int) -> Arena:
    """What is left of an arena after its first `floats` and `ints` entries."""
    return Arena(arena.floats[floats:], arena.ints[ints:])
