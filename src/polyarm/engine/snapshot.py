"""Turn a state (nested structs of arrays and scalars) into plain JSON types and back, bit for bit; undo changes."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyarm.errors import InvalidInput


def pack_state(state: Any) -> Any:
    """Return the arrays and scalars of a state as nested lists and numbers, by field name."""
    if isinstance(state, np.ndarray):
        return _pack(state.tolist())
    if isinstance(state, np.record):
        return {name: _pack(state[name].item()) for name in state.dtype.names or ()}
    if hasattr(state, "_fields"):
        return {name: pack_state(getattr(state, name)) for name in state._fields if _is_kept(getattr(state, name))}
    return [pack_state(part) for part in state]


def unpack_state(packed: Any, state: Any, where: str = "state") -> None:
    """Write what was packed into a state of the same shape."""
    if isinstance(state, np.ndarray):
        _fill(packed, state, where)
    elif isinstance(state, np.record):
        _check_fields(packed, state.dtype.names or (), where)
        for name in state.dtype.names or ():
            number = np.zeros((), dtype=state.dtype[name])
            _fill(packed[name], number, f"{where}.{name}")
            state[name] = number
    elif hasattr(state, "_fields"):
        fields = [name for name in state._fields if _is_kept(getattr(state, name))]
        _check_fields(packed, fields, where)
        for name in fields:
            unpack_state(packed[name], getattr(state, name), f"{where}.{name}")
    else:
        if not isinstance(packed, list) or len(packed) != len(state):
            raise InvalidInput(f"{where}: expected {len(state)} entries, got {packed!r}")
        for place, (mine, part) in enumerate(zip(packed, state, strict=True)):
            unpack_state(mine, part, f"{where}.{place}")


@contextmanager
def all_or_nothing(*states: Any) -> Iterator[None]:
    """Put states back as they were if the block raises, or is interrupted."""
    before = [(part, part.copy()) for state in states for part in _parts(state)]
    try:
        yield
    except BaseException:
        for part, old in before:
            if isinstance(part, np.record):
                for name in part.dtype.names or ():
                    part[name] = old[name]
            else:
                part[...] = old
        raise


def _parts(state: Any) -> Iterator[Any]:
    """Yield the arrays and the named numbers of a state."""
    if isinstance(state, np.ndarray | np.record):
        yield state
        return
    if hasattr(state, "_fields"):
        state = [getattr(state, name) for name in state._fields]
    for part in state if isinstance(state, list | tuple) else ():
        yield from _parts(part)


def _is_kept(value: Any) -> bool:
    """Constant numbers of a struct are not part of its state."""
    return not isinstance(value, bool | int | float)


def _check_fields(packed: Any, fields: Any, where: str) -> None:
    if not isinstance(packed, dict) or set(packed) != set(fields):
        found = sorted(packed) if isinstance(packed, dict) else packed
        raise InvalidInput(f"{where}: expected the fields {sorted(fields)}, got {found!r}")


def _pack(value: Any) -> Any:
    """Replace numbers that JSON cannot hold (nan, inf) by their names; floats round-trip through repr exactly."""
    if isinstance(value, list):
        return [_pack(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _fill(packed: Any, array_out: NDArray[Any], where: str) -> None:
    try:
        values = np.array(packed, dtype=array_out.dtype).reshape(array_out.shape)
    except (ValueError, TypeError):
        raise InvalidInput(
            f"{where}: expected {array_out.dtype} numbers of shape {array_out.shape}, got {packed!r}"
        ) from None
    array_out[...] = values
