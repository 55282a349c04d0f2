"""Turn a state (nested NamedTuples of arrays) into plain JSON types and back, bit for bit."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyarm.errors import InvalidInput


def pack_state(state: Any) -> dict[str, Any]:
    """Return the arrays of a state as nested lists, by field name."""
    return {
        name: pack_state(value) if hasattr(value, "_fields") else _pack(value.tolist())
        for name, value in zip(state._fields, state, strict=True)
        if value is not None
    }


def unpack_state(packed: Any, state: Any, where: str = "state") -> None:
    """Write packed arrays into a state of the same shape."""
    fields = {name: value for name, value in zip(state._fields, state, strict=True) if value is not None}
    if not isinstance(packed, dict) or set(packed) != set(fields):
        found = sorted(packed) if isinstance(packed, dict) else packed
        raise InvalidInput(f"{where}: expected the fields {sorted(fields)}, got {found!r}")
    for name, value in fields.items():
        if hasattr(value, "_fields"):
            unpack_state(packed[name], value, f"{where}.{name}")
        else:
            _fill(packed[name], value, f"{where}.{name}")


def _pack(value: Any) -> Any:
    """Replace what JSON cannot hold (nan, inf) by its name; floats round-trip through repr exactly."""
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
