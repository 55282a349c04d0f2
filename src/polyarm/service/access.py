"""Who may use the service: tokens for programs, and people who signed in to the dashboard with one.

Of tokens and log-ins only hashes are kept. A token is 32 random bytes, so one round of SHA-256 is as good as many.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from polyarm.errors import unknown_name
from polyarm.studies.manage import check_name
from polyarm.studies.storage import Storage, Token
from polyarm.studies.trial import write_time

#: What a token may be allowed; each includes those before it. read: look; write: ask, tell and observe as well;
#: admin: create, stop, resume and archive studies as well.
READ, WRITE, ADMIN = "read", "write", "admin"
SCOPES = (READ, WRITE, ADMIN)

_PREFIX = "pa_"
#: How long a person stays signed in.
LOGIN_LASTS = timedelta(hours=12)
#: People who are signed in with one token at once; one more signs out who came first.
_MOST_LOGINS = 50


@dataclass(frozen=True)
class Caller:
    """Somebody who may come in: the token's number and name (None: an open server), scopes, and for a person who has
    signed in the text that must come with every change."""

    token_id: int | None
    name: str | None
    scopes: tuple[str, ...]
    csrf: str | None = None


#: Anybody, on a server that has no tokens.
ANYBODY = Caller(None, None, SCOPES)


def create_token(storage: Storage, name: str, scope: str) -> str:
    """Add a token and return it: it cannot be shown again."""
    if scope not in SCOPES:
        raise unknown_name("scope", scope, SCOPES)
    secret = _PREFIX + secrets.token_urlsafe(32)
    scopes = ",".join(SCOPES[: SCOPES.index(scope) + 1])
    storage.tokens.add(check_name(name), _hash(secret), scopes, _now())
    return secret


def list_tokens(storage: Storage) -> list[dict[str, Any]]:
    """Return every token that was ever created, without its secret."""
    rows = (row._asdict() for row in storage.tokens.list())
    return [{**row, "scopes": row["scopes"].split(",")} for row in rows]


def revoke_token(storage: Storage, name: str) -> None:
    """Make a token useless at once, and sign out who came with it."""
    storage.tokens.revoke(name, _now())


def has_tokens(storage: Storage) -> bool:
    """Whether a token was ever created: revoking the last one does not open the doors."""
    return bool(storage.tokens.list())


def has_usable_tokens(storage: Storage) -> bool:
    """Whether anybody could come in with a token."""
    return any(token.revoked_at is None for token in storage.tokens.list())


def find_caller(storage: Storage, secret: str) -> Caller | None:
    """Return whose token this is, None if it is nobody's or was revoked."""
    return _caller(storage.tokens.find(_hash(secret)))


def sign_in(storage: Storage, caller: Caller) -> str:
    """Sign a person in for some hours; returns what their browser will show."""
    assert caller.token_id is not None, "nobody signs in to an open server"
    secret, now = secrets.token_urlsafe(32), datetime.now(UTC)
    until = write_time(now + LOGIN_LASTS)
    storage.tokens.sign_in(caller.token_id, _hash(secret), write_time(now), until, _MOST_LOGINS)
    return secret


def find_signed_in(storage: Storage, secret: str) -> Caller | None:
    """Return who signed in with this, None if that is over."""
    return _caller(storage.tokens.find_signed_in(_hash(secret), _now()), csrf_text(secret))


def sign_out(storage: Storage, secret: str) -> None:
    """End a log-in."""
    storage.tokens.sign_out(_hash(secret))


def csrf_text(secret: str) -> str:
    """What must come with a change made by a browser: other pages' scripts can neither read nor guess it."""
    return _hash("csrf " + secret)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _caller(token: Token | None, csrf: str | None = None) -> Caller | None:
    return None if token is None else Caller(token.id, token.name, tuple(token.scopes.split(",")), csrf)


def _now() -> str:
    return write_time(datetime.now(UTC))
