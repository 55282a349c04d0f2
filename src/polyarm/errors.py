"""What polyarm raises, and how a validation failure is put into words."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class PolyarmError(Exception):
    """Base of every error that polyarm raises on purpose."""


class InvalidInput(PolyarmError, ValueError):  # noqa: N818  (reads as what it is)
    """The caller's input is wrong; the message says what, what was expected and what to do."""


class UnknownStudy(InvalidInput):
    """There is no such study, or no longer."""


class Conflict(InvalidInput):
    """The input contradicts what is stored: a name that is taken, another outcome for the same trial."""


class NotYet(InvalidInput):
    """What was asked for does not exist yet: it needs more data."""


class ExplorationOver(PolyarmError):  # noqa: N818
    """The explorer has stopped: there is nothing left to ask."""


class NoFeasibleMix(PolyarmError):  # noqa: N818
    """No mix satisfies every constraint, so there is nothing to recommend."""


class CertificateError(PolyarmError):
    """Verification does not confirm a certificate that polyarm has just made: a fault of polyarm's."""


class StudyHalted(PolyarmError):  # noqa: N818
    """The study takes no asks, or nothing at all, until it is resumed."""


class StorageError(PolyarmError):
    """The storage failed, not the caller. The call was recorded whole or not at all; nobody knows which.

    A tell, or a call with a key, may be repeated: it never counts twice.
    """


class ServiceError(PolyarmError):
    """A server of studies refused a request, or did not answer it."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InvalidInput:
    """Build the error for a name that is not in a list, with the list and the nearest match."""
    known = sorted(known)
    close = get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InvalidInput(f"unknown {kind} {name!r}; known: {', '.join(known)}.{hint}")


def describe(error: ValidationError) -> str:
    """Turn pydantic's report into one line per mistake: field, value, expectation."""
    lines = []
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"]) or "input"
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "missing":
            lines.append(f"{where}: required, but not given")
        elif item["type"] == "extra_forbidden":
            lines.append(f"{where}: unknown field")
        elif item["type"] == "value_error":
            lines.append(f"{where}: {message}" if item["loc"] else message)
        else:
            lines.append(f"{where}: {message}; got {item['input']!r}")
    return "\n".join(lines)


class Checked(BaseModel):
    """A frozen record whose constructor raises `InvalidInput` in plain words."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidInput(describe(error)) from None
