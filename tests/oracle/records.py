"""Structs, scalars and tuples of them, walked and overwritten by name."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def leaves(record: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every array and number in a record, and in the records in it, by its path."""
    for name, value in _parts(record):
        if isinstance(value, tuple | np.record) or hasattr(value, "_fields"):
            yield from leaves(value, f"{path}{name}.")
        elif value is not None:
            yield f"{path}{name}", value


def spoil(record: Any, number: float = np.nan, whole: int = -7) -> None:
    """Overwrite every array and scalar in a record with nonsense: what a kernel finds in its scratch must not matter.

    Numbers that a struct was made with stay: they are constants.
    """

    def nonsense(kind: np.dtype[Any]) -> float:
        return number if kind.kind == "f" else whole

    if isinstance(record, np.ndarray):
        record[...] = nonsense(record.dtype)
    elif isinstance(record, np.record):
        for name in record.dtype.names or ():
            record[name] = nonsense(record.dtype[name])
    elif isinstance(record, tuple) or hasattr(record, "_fields"):
        for _, part in _parts(record):
            spoil(part, number, whole)


def _parts(record: Any) -> list[tuple[str, Any]]:
    """The fields of a record by name, or the entries of a tuple by place."""
    names = record.dtype.names if isinstance(record, np.record) else getattr(record, "_fields", None)
    if names is None:
        return [(str(place), part) for place, part in enumerate(record)]
    return [(name, getattr(record, name)) for name in names]
