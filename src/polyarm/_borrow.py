"""Arrays without reference counts, for the length of one compiled call.

Every time a compiled loop touches an array in a NamedTuple it counts a reference up and down again, atomically: more
than half the time of a step. A loop whose caller keeps the arrays alive can do without.
"""

from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

T = TypeVar("T")


def borrow(value: T) -> T:
    """Return the same arrays, uncounted: an array, or a NamedTuple of arrays, scalars and further NamedTuples.

    For arguments of a call to another kernel, and nothing else: what is borrowed must not outlive the caller's own
    arrays, and the function that borrows must not write to it itself, because the compiler takes the result for a fresh
    array and drops what is written to it and never read again.
    """
    return value


@intrinsic
def _uncounted(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _strip_owners(context, builder, signature.args[0], arguments[0])

    return value(value), generate


def _strip_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Generate a copy of an array's header, or of a tuple of them, that names nobody as the owner of the memory."""
    if isinstance(kind, types.Array):
        header = make_array(kind)(context, builder, value=value)  # type: ignore[no-untyped-call]
        header.meminfo = ir.Constant(header.meminfo.type, None)
        header.parent = ir.Constant(header.parent.type, None)
        return header._getvalue()
    if isinstance(kind, types.BaseTuple) and len(kind) > 0:
        kinds: Any = kind
        items = [
            _strip_owners(context, builder, item, builder.extract_value(value, place))
            for place, item in enumerate(kinds)
        ]
        return context.make_tuple(builder, kind, items)
    return value


@overload(borrow, strict=False)  # strict would compare annotations too
def _overload_borrow(value: Any) -> Any:
    def uncounted(value: Any) -> Any:
        return _uncounted(value)  # type: ignore[call-arg]

    return uncounted
