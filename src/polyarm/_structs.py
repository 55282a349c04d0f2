"""Records that kernels are given as one pointer, and that Python reads and writes like any object.

A NamedTuple of arrays is handed to a kernel array by array: a function that only passes it on takes seconds to compile
and counts references on every array at every call. A `struct` is one pointer. `Scalars` are its numbers that change:
one small block of memory with a name for each, so that nobody indexes an array by position.

Numba calls the feature experimental, so this module is the only one that touches it. Without compilation
(`NUMBA_DISABLE_JIT=1`) structs are plain objects.
"""

import sys
from types import ModuleType
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np
from numba import config, types
from numba.experimental import structref
from numba.experimental.structref import StructRefProxy

from polyarm._compile import kernel

T = TypeVar("T")

_INTERPRETED: bool = config.DISABLE_JIT  # type: ignore[attr-defined]
_NUMBERS: dict[Any, type] = {float: float, int: int, bool: bool}


class Scalars:
    """Base of named numbers that kernels change in place; annotate each as `int` or `float`.

    An instance is a `numpy.record`: attributes in Python and in kernels share the memory. Fields not given are zero.
    """

    dtype: ClassVar[np.dtype[Any]]

    def __init_subclass__(cls) -> None:
        taken = [name for name in cls.__annotations__ if hasattr(np.record, name)]
        if taken:
            raise TypeError(f"{cls.__name__}: a numpy record has attributes of the names {taken}; choose others")
        codes = {float: "f8", int: "i8"}
        cls.dtype = np.dtype([(name, codes[kind]) for name, kind in cls.__annotations__.items()], align=True)

    def __new__(cls, **values: float) -> Self:
        """Allocate the numbers."""
        record = np.zeros(1, dtype=cls.dtype).view(np.recarray)[0]
        for name, value in values.items():
            record[name] = value
        return record  # type: ignore[no-any-return]


@dataclass_transform()
def struct(cls: type[T]) -> type[T]:
    """Make a class of annotated fields (arrays, `Scalars`, structs, constant numbers) a struct.

    Fields are set once, by position or by name; what changes are the arrays and scalars behind them. Every instance of
    a class must have arrays of the same kinds and dimensions, or kernels compile once more.
    """
    fields = tuple(cls.__annotations__)
    convert = {name: _NUMBERS[kind] for name, kind in cls.__annotations__.items() if kind in _NUMBERS}
    module = sys.modules[cls.__module__]
    base: type = object if _INTERPRETED else StructRefProxy
    body = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__annotations__": cls.__annotations__,
        "__new__": _new,
        "__setattr__": _refuse_assignment,
        "_fields": fields,
        "_convert": convert,
    }
    made = type(cls.__name__, (base,), body)
    if not _INTERPRETED:
        made._construct = staticmethod(_make_constructor(made, fields, module))  # type: ignore[attr-defined]
    return made


def _new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    if len(args) > len(cls._fields):
        raise TypeError(f"{cls.__name__}: expected {len(cls._fields)} fields, got {len(args)}")
    values = dict(zip(cls._fields, args, strict=False)) | kwargs
    if set(values) != set(cls._fields) or len(args) + len(kwargs) != len(cls._fields):
        raise TypeError(f"{cls.__name__}: expected the fields {cls._fields}, got {tuple(values)}")
    for name, number in cls._convert.items():
        values[name] = number(values[name])
    ordered = [_contiguous(values[name]) for name in cls._fields]
    made = object.__new__(cls) if _INTERPRETED else cls._construct(*ordered)
    made.__dict__.update(zip(cls._fields, ordered, strict=True))
    return made


def _contiguous(value: Any) -> Any:
    """Return an array whose type depends on its dimensions only, never on how it was sliced."""
    if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
        raise TypeError("a struct's arrays must be contiguous")
    return value


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    if name in StructRefProxy.__slots__:  # Numba's own two, set as the struct is made
        object.__setattr__(self, name, value)
        return
    raise AttributeError(f"{type(self).__name__}.{name} is fixed; change the array or the scalars behind it")


def _make_constructor(made: type, fields: tuple[str, ...], module: ModuleType) -> Any:
    """Teach Numba the struct; returns the kernel that makes one, kept on disk like every other."""
    name = f"{made.__name__}Type"
    body = {"preprocess_fields": _widen_literals, "__module__": module.__name__}
    kind = structref.register(type(name, (types.StructRef,), body))
    setattr(module, name, kind)  # the cache on disk finds it by this name
    structref.define_constructor(made, kind, list(fields))
    structref.define_boxing(kind, made)
    arguments = ", ".join(fields)
    source = f"def _make_{made.__name__}({arguments}):\n    return {made.__name__}({arguments})\n"
    scope = {made.__name__: made, "__name__": module.__name__}
    exec(compile(source, module.__file__ or "<struct>", "exec"), scope)
    return kernel(cast(Any, scope[f"_make_{made.__name__}"]))


def _widen_literals(_: Any, fields: Any) -> Any:
    return tuple((name, types.unliteral(kind)) for name, kind in fields)
