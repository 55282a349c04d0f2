"""Identifies callers and checks what they may do."""

import hmac
import ipaddress
from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from polyarm.service.access import (
    ADMIN,
    ANYBODY,
    READ,
    WRITE,
    Caller,
    find_caller,
    find_signed_in,
    has_tokens,
)
from polyarm.service.limits import Limiter
from polyarm.service.problems import Refusal
from polyarm.studies.storage import Storage

COOKIE = "polyarm_login"
CSRF_HEADER = "X-CSRF-Token"

#: Headers that proxies add, beside X-Forwarded-...
_OF_PROXIES = {"forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"}
#: Wrong tokens a second, and at once, that one address may try.
_TRIES, _TRIES_AT_ONCE = 2.0, 20.0


class Guard:
    """Knows callers by their token or their log-in; on an open server it admits everybody."""

    def __init__(self, storage: Storage, loopback: bool, rate: float, burst: float) -> None:
        self._storage, self._loopback = storage, loopback
        self._locked = False  # a server with a token is never open again
        self._requests = Limiter(rate, burst, ", or send more tells in one request")
        self._failures = Limiter(_TRIES, _TRIES_AT_ONCE)

    def is_open(self) -> bool:
        """Whether everybody who reaches the server may do everything."""
        if not self._locked and (not self._loopback or has_tokens(self._storage)):
            self._locked = True
        return not self._locked

    def still_admits(self, request: Request) -> bool:
        """Whether an admitted caller would be admitted again."""
        try:
            return self.identify(request) is not None
        except Refusal:
            return False

    def count(self, request: Request) -> None:
        """Count a request that needs no token."""
        self._requests.take(_address(request))

    def identify(self, request: Request) -> Caller | None:
        """Return who is calling, None if nobody known; raises for a wrong token."""
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme:
            caller = find_caller(self._storage, secret.strip()) if scheme.lower() == "bearer" else None
            if caller is None:
                raise self.wrong_token(request)
            return caller
        login = request.cookies.get(COOKIE)
        caller = None if login is None else find_signed_in(self._storage, login)
        if caller is None and self.is_open():
            _require_local(request)
            return ANYBODY
        return caller

    def wrong_token(self, request: Request) -> Refusal:
        """Return the refusal of a wrong token, and count it: one address may not try many."""
        self._failures.take(_address(request))
        return Refusal(401, "the token is unknown or was revoked", {"WWW-Authenticate": "Bearer"})

    def admit(self, request: Request, scope: str) -> Caller:
        """Return who is calling, or refuse them."""
        caller = self.identify(request)
        if caller is None:
            self.count(request)
            raise Refusal(
                401,
                "send a token: `Authorization: Bearer ...`; `polyarm token create NAME` makes one",
                {"WWW-Authenticate": "Bearer"},
            )
        self._requests.take(caller.token_id)
        if scope not in caller.scopes:
            raise Refusal(403, f"token {caller.name!r} may {' and '.join(caller.scopes)}; this needs {scope}")
        request.state.caller = caller.name
        if request.method not in ("GET", "HEAD"):
            self._require_own_page(request, caller)
        return caller

    def _require_own_page(self, request: Request, caller: Caller) -> None:
        """Refuse changes that another host's page makes with the visitor's browser."""
        sent = request.headers.get(CSRF_HEADER, "")
        if caller.csrf is not None and not hmac.compare_digest(sent.encode(), caller.csrf.encode()):
            raise Refusal(403, f"send the `csrf` of GET /session as {CSRF_HEADER}")
        if caller is ANYBODY or caller.csrf is not None:
            require_own_origin(request)


def require_own_origin(request: Request) -> None:
    """Refuse what another host's page sends with the visitor's browser; such pages need a token."""
    origin = request.headers.get("Origin")
    ours = origin is None or origin.partition("://")[2] == request.headers.get("Host")
    if not ours or request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, f"a page of {origin} may make changes here only with a token; see --cors-origin")


def _require_local(request: Request) -> None:
    """On an open server, refuse what came through a proxy or under another host name."""
    forwarded = any(name in _OF_PROXIES or name.startswith("x-forwarded-") for name in request.headers)
    if forwarded or not is_loopback(_host_name(request.headers.get("Host", ""))):
        raise Refusal(
            403,
            "without tokens this server answers its own machine only, as localhost; `polyarm token create NAME` makes "
            "a token",
        )


def _host_name(host: str) -> str:
    """The name of a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether a host name reaches this machine from itself only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _address(request: Request) -> str:
    return "" if request.client is None else request.client.host


def _needs(scope: str) -> Callable[[Request], Caller]:
    def admit(request: Request) -> Caller:
        guard: Guard = request.app.state.guard
        return guard.admit(request, scope)

    return admit


Reader = Annotated[Caller, Depends(_needs(READ))]
Worker = Annotated[Caller, Depends(_needs(WRITE))]
Administrator = Annotated[Caller, Depends(_needs(ADMIN))]
