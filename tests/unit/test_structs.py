"""Structs and scalars: one memory for Python and kernels, freed by neither early, and never two kinds of one class."""

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray


class Counts(Scalars):
    """Numbers that kernels change."""

    steps: int
    level: float


@struct
class Inner:
    """A struct in a struct."""

    numbers: FloatArray
    counts: Counts


@struct
class Outer:
    """Arrays of two dimensions, another struct, constants, and a field that may be missing."""

    inner: Inner
    table: FloatArray
    marks: IntArray
    scale: float
    switched: bool
    nothing: None


@kernel
def double_in_place(outer: Outer) -> float:
    """Double every number of a struct, change its table and scalars, and return the sum of the table."""
    inner = outer.inner
    for i in range(inner.numbers.size):
        inner.numbers[i] *= outer.scale
    row = outer.table[1]
    row[0] = 7.0
    outer.marks[-1] = 3
    inner.counts.steps += 1
    inner.counts.level = 0.5 if outer.switched else -0.5
    total = 0.0
    for value in outer.table.ravel():
        total += value
    return total


@kernel
def pass_on(outer: Outer, times: int) -> float:
    """Hand a struct on again and again."""
    total = 0.0
    for _ in range(times):
        total += double_in_place(outer)
    return total


def make_outer(scale: float = 2.0) -> Outer:
    inner = Inner(np.arange(4.0), Counts(level=2.0))
    return Outer(inner, np.ones((2, 3)), np.zeros(2, dtype=np.int64), scale=scale, switched=True, nothing=None)


# -- One memory ------------------------------------------------------------------------------------------------


def test_what_a_kernel_writes_is_what_python_reads() -> None:
    outer = make_outer()
    assert double_in_place(outer) == 12.0
    assert outer.inner.numbers.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert outer.table.tolist() == [[1.0, 1.0, 1.0], [7.0, 1.0, 1.0]]
    assert outer.marks.tolist() == [0, 3]
    assert (outer.inner.counts.steps, outer.inner.counts.level) == (1, 0.5)


def test_what_python_writes_is_what_a_kernel_reads() -> None:
    outer = make_outer()
    outer.inner.numbers[:] = 10.0
    outer.table[:] = 0.0
    outer.inner.counts.steps = 41
    assert double_in_place(outer) == 7.0
    assert outer.inner.numbers.tolist() == [20.0] * 4
    assert outer.inner.counts.steps == 42


def test_a_struct_holds_the_arrays_that_it_was_given() -> None:
    numbers, counts = np.arange(4.0), Counts()
    inner = Inner(numbers, counts)
    assert inner.numbers is numbers
    assert inner.counts is counts


# -- Nothing freed early, nothing kept -------------------------------------------------------------------------


def test_memory_lives_as_long_as_the_struct() -> None:
    """The arrays have no other owner; what is allocated afterwards would overwrite them if they were freed."""
    outer = make_outer()
    gc.collect()
    others = [np.full(n, np.nan) for n in (2, 4, 6) for _ in range(1000)]
    assert pass_on(outer, 3) == 36.0
    assert outer.inner.numbers.tolist() == [0.0, 8.0, 16.0, 24.0]
    assert len(others) == 3000


def test_arrays_outlive_the_struct_that_held_them() -> None:
    numbers, counts = np.arange(4.0), Counts()
    pass_on(Outer(Inner(numbers, counts), np.ones((2, 3)), np.zeros(2, dtype=np.int64), 2.0, False, None), 2)
    gc.collect()
    assert numbers.tolist() == [0.0, 4.0, 8.0, 12.0]
    assert (counts.steps, counts.level) == (2, -0.5)


def test_a_struct_that_nobody_holds_is_freed_with_its_arrays() -> None:
    numbers = np.arange(4.0)
    gone = weakref.ref(numbers)
    outer = Outer(Inner(numbers, Counts()), np.ones((2, 3)), np.zeros(2, dtype=np.int64), 2.0, True, None)
    pass_on(outer, 5)
    del numbers
    assert gone() is not None
    del outer
    gc.collect()
    assert gone() is None


def test_passing_a_struct_leaves_the_counts_of_references_alone() -> None:
    outer = make_outer()
    held = (outer, outer.inner, outer.inner.numbers, outer.table, outer.inner.counts)
    pass_on(outer, 1)
    before = [sys.getrefcount(each) for each in held]
    for _ in range(50):
        pass_on(outer, 20)
    assert [sys.getrefcount(each) for each in held] == before


# -- One kind --------------------------------------------------------------------------------------------------


def test_kernels_are_compiled_once_for_all_structs_of_a_class() -> None:
    """Whole numbers for floats, other sizes and slices of larger arrays make no other type."""
    compiled: Any = double_in_place
    on: Any = np.bool_(True)
    for outer in (
        make_outer(),
        make_outer(scale=3),
        Outer(
            Inner(np.arange(40.0)[10:20], Counts(steps=3)),
            np.ones((5, 2))[1:4],
            np.zeros(1, dtype=np.int64),
            np.float64(2.0),
            on,
            None,
        ),
    ):
        double_in_place(outer)
    assert len(compiled.signatures) == 1


def test_arrays_must_be_contiguous() -> None:
    with pytest.raises(TypeError, match="contiguous"):
        Inner(np.arange(8.0)[::2], Counts())


def test_fields_are_given_once_and_all_of_them() -> None:
    numbers, counts = np.zeros(1), Counts()
    make: Any = Inner
    for args, named in (
        ((numbers,), {}),
        ((), {"counts": counts}),
        ((numbers, counts, counts), {}),
        ((numbers, counts), {"counts": counts}),
        ((numbers,), {"count": counts}),
    ):
        with pytest.raises(TypeError, match="Inner: expected"):
            make(*args, **named)


def test_fields_are_fixed() -> None:
    inner: Any = make_outer().inner
    for name in ("numbers", "counts", "colour"):
        with pytest.raises(AttributeError, match=f"Inner.{name} is fixed"):
            setattr(inner, name, np.zeros(4))
    assert inner.numbers.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_scalars_not_given_are_zero_and_names_of_records_are_refused() -> None:
    assert (Counts().steps, Counts(steps=2).level) == (0, 0.0)
    assert Counts.dtype.names == ("steps", "level")
    with pytest.raises(TypeError, match="'copy'"):
        type("Bad", (Scalars,), {"__annotations__": {"copy": int}})


def test_each_scalars_has_its_own_memory() -> None:
    one, other = Counts(), Counts()
    one.steps = 5
    assert other.steps == 0


# -- Without compilation ---------------------------------------------------------------------------------------


def compute_everything() -> list[Any]:
    """What structs hold after a kernel, and what is refused."""
    outer, refused = make_outer(), []
    value = pass_on(outer, 2)
    attempts: list[Any] = [lambda: setattr(outer, "table", None), lambda: Inner(np.arange(8.0)[::2], Counts())]
    for attempt in attempts:
        try:
            attempt()
        except (AttributeError, TypeError) as error:
            refused.append(str(error))
    counts = outer.inner.counts
    return [value, outer.inner.numbers.tolist(), outer.table.tolist(), int(counts.steps), float(counts.level), refused]


def test_without_compilation_structs_are_the_same() -> None:
    program = "import json; from unit.test_structs import compute_everything; print(json.dumps(compute_everything()))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), environment["PYTHONPATH"]])
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(compute_everything()))
