"""Borrowed arrays are the caller's own memory, and their owner's count is never touched."""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

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


@intrinsic
def _owner(typing_context: Any, array: Any) -> Any:
    """Read the address of what counts the references to an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        header = make_array(signature.args[0])(context, builder, value=arguments[0])  # type: ignore[no-untyped-call]
        return builder.ptrtoint(header.meminfo, context.get_value_type(types.intp))

    return types.intp(array), generate


read_owner: Any = _owner  # the compiler passes the context


@kernel
def list_owners(outer: Outer) -> tuple[int, int, int, int]:
    """Return the owners of two arrays, and of the same two once borrowed."""
    mine = borrow(outer)
    before = read_owner(outer.inner.numbers), read_owner(outer.table)
    return *before, read_owner(mine.inner.numbers), read_owner(mine.table)


def test_what_is_borrowed_has_no_owner_whose_count_could_change() -> None:
    first, second, *borrowed = list_owners(make_outer())
    assert first != 0
    assert second != 0
    assert borrowed == [0, 0]


def test_uncompiled_it_is_the_value_itself() -> None:
    outer = make_outer()
    assert borrow(outer) is outer
