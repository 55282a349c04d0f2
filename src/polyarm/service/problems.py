"""Errors as problem documents (RFC 9457)."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyarm.errors import PolyarmError, StorageError
from polyarm.service.bodies import KINDS, Fault, ProblemDocument

MEDIA_TYPE = "application/problem+json"

#: Describes an endpoint that needs no token.
FOR_EVERYBODY: dict[str, Any] = {"security": []}

#: Mistakes of one request that are listed.
_MOST_FAULTS = 20

_log = logging.getLogger("polyarm.service")

_TITLES = {
    400: "Bad request",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    413: "Too large",
    409: "Conflict",
    415: "Not JSON",
    422: "Invalid input",
    429: "Too many requests",
    500: "Something broke",
    503: "Not available right now",
}


class Refusal(HTTPException):
    """A request refused before it reaches a study."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)


def problem_response(
    status: int,
    detail: str,
    title: str | None = None,
    errors: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return an error as a problem document."""
    name = title or _TITLES.get(status, "Error")
    document = ProblemDocument(
        type="urn:polyarm:problem:" + name.lower().replace(" ", "-"),
        title=name,
        status=status,
        detail=detail,
        errors=list(errors) or None,
    )
    return JSONResponse(document.model_dump(exclude_none=True), status, dict(headers or {}), MEDIA_TYPE)


def document_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems that an endpoint may answer with, for its description."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    return {status: {"description": _TITLES[status], "content": content} for status in sorted(statuses)}


def add_handlers(app: FastAPI) -> None:
    """Answer every error with a problem document."""
    app.add_exception_handler(PolyarmError, _on_polyarm_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(AnyHTTPException, _on_http_error)


def _on_polyarm_error(_: Request, error: Exception) -> JSONResponse:
    for kind, status, title in KINDS:
        if isinstance(error, kind):
            if kind is StorageError:  # the cause is for those who run the server
                _log.error("storage", extra={"detail": str(error)})
                detail = "the storage does not answer; the request was recorded whole or not at all: repeat it"
                return problem_response(status, detail, title, headers={"Retry-After": "1"})
            return problem_response(status, str(error), title)
    return problem_response(422, str(error))


def _on_invalid_request(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    faults = [
        Fault(where=_place(item["loc"]), message=str(item["msg"]).removeprefix("Value error, "))
        for item in found[:_MOST_FAULTS]
    ]
    if len(found) > _MOST_FAULTS:
        faults.append(Fault(where="", message=f"and {len(found) - _MOST_FAULTS} more"))
    detail = "; ".join(f"{fault.where}: {fault.message}" if fault.where else fault.message for fault in faults[:5])
    return problem_response(422, detail, "Invalid input", faults)


def _place(parts: Sequence[int | str]) -> str:
    """The place in the request: `body.problem.arms` is `problem.arms` to its sender."""
    return ".".join(str(part) for part in (parts[1:] if parts[:1] == ("body",) else parts))


def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AnyHTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # One route knows its own methods only; the description knows all of its path.
        route = getattr(request.scope.get("route"), "path", "")
        methods = request.app.openapi()["paths"].get(route)
        headers |= {} if methods is None else {"Allow": ", ".join(sorted(method.upper() for method in methods))}
    return problem_response(error.status_code, str(error.detail), headers=headers)


class Surprises:
    """Answers unforeseen errors with a problem document that has the usual headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception as error:
            _log.error("unexpected error", exc_info=error)
            if begun or scope["type"] != "http":
                raise
            detail = "polyarm failed; the server's log has the details"
            await problem_response(500, detail)(scope, receive, send)
