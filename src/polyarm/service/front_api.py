"""The dashboard's own requests: signing in and out, and what a form needs to know."""

from typing import Annotated

from fastapi import APIRouter, Cookie, Request, Response

from polyarm import __version__
from polyarm.rules.registry import EXPLORERS
from polyarm.service import bodies
from polyarm.service.access import ANYBODY, LOGIN_LASTS, Caller, find_caller, find_signed_in, sign_in, sign_out
from polyarm.service.guard import COOKIE, Guard, Reader, require_own_origin
from polyarm.service.problems import FOR_EVERYBODY, document_problems

router = APIRouter(tags=["dashboard"], responses=document_problems(401, 403, 422, 429, 503))


def _guard(request: Request) -> Guard:
    guard: Guard = request.app.state.guard
    return guard


def _describe(request: Request, caller: Caller | None) -> bodies.SessionBody:
    return bodies.SessionBody(
        open=caller is ANYBODY,
        signed_in=caller is not None and caller is not ANYBODY,
        name=None if caller is None else caller.name,
        scopes=[] if caller is None else list(caller.scopes),
        csrf=None if caller is None else caller.csrf,
        version=__version__,
        storage=None if caller is None else request.app.state.shelf.storage.address,
    )


@router.get("/session", openapi_extra=FOR_EVERYBODY)
def read_session(request: Request) -> bodies.SessionBody:
    """Say who is looking, and what they may do."""
    _guard(request).count(request)
    return _describe(request, _guard(request).identify(request))


@router.post("/session", responses=document_problems(400, 413), openapi_extra=FOR_EVERYBODY)
def begin_session(request: Request, response: Response, given: bodies.SignIn) -> bodies.SessionBody:
    """Sign in to the dashboard with a token: the browser gets a cookie that lasts for twelve hours."""
    _guard(request).count(request)
    require_own_origin(request)
    storage = request.app.state.shelf.storage
    caller = find_caller(storage, given.token.strip())
    if caller is None:
        raise _guard(request).wrong_token(request)
    login = sign_in(storage, caller)
    response.set_cookie(
        COOKIE,
        login,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        max_age=int(LOGIN_LASTS.total_seconds()),
    )
    return _describe(request, find_signed_in(storage, login))


@router.delete("/session", status_code=204)
def end_session(
    request: Request, response: Response, caller: Reader, polyarm_login: Annotated[str | None, Cookie()] = None
) -> None:
    """Sign out."""
    if polyarm_login is not None:
        sign_out(request.app.state.shelf.storage, polyarm_login)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


@router.get("/explorers")
def list_explorers(caller: Reader) -> bodies.ExplorerList:
    """List the explorers that a study may use."""
    return bodies.ExplorerList(
        explorers=[
            bodies.ExplorerBody(name=name, certified=explorer.settings().stops_certified())
            for name, explorer in EXPLORERS.items()
        ]
    )
