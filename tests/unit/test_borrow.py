"""Borrowed arrays are the caller's own memory, and their owner's count is never touched."""

import sys
from typing import Any, NamedTuple

import numpy as np

from polyarm._borrow import borrow
from polyarm._compile import kernel


class Inner(NamedTuple):
    numbers: Any
    nothing: Any
    scale: float


class Outer(NamedTuple):
    inner: Inner
    table: Any


@kernel
def double_in_place(outer: Outer) -> float:
    """Double every number of a tuple, change its table, and return the sum of the table."""
    for i in range(outer.inner.numbers.size):
        outer.inner.numbers[i] *= outer.inner.scale
    row = outer.table[1]  # a view of borrowed memory has no owner either
    row[0] = 7.0
    total = 0.0
    for value in outer.table.ravel():
        total += value
    return total


@kernel
def double_borrowed(outer: Outer) -> float:
    """Pass on a tuple without its owners."""
    return double_in_place(borrow(outer))


def make_outer() -> Outer:
    return Outer(Inner(np.arange(4.0), None, 2.0), np.ones((2, 3)))


def test_what_is_written_to_borrowed_arrays_is_written_to_the_owners() -> None:
    outer = make_outer()
    assert double_borrowed(outer) == 12.0
    assert outer.inner.numbers.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert outer.table.tolist() == [[1.0, 1.0, 1.0], [7.0, 1.0, 1.0]]


def test_owners_keep_their_count() -> None:
    outer = make_outer()
    double_borrowed(outer)
    before = sys.getrefcount(outer.inner.numbers), sys.getrefcount(outer.table)
    for _ in range(100):
        double_borrowed(outer)
    assert (sys.getrefcount(outer.inner.numbers), sys.getrefcount(outer.table)) == before


def test_uncompiled_it_is_the_value_itself() -> None:
    outer = make_outer()
    assert borrow(outer) is outer
