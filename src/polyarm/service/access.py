"""Who may use the service: programs with tokens, and people who signed in to the dashboard with one.

Only hashes of tokens and log-ins are stored. A token is 32 random bytes, so one round of SHA-256 is enough.
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

#: What a token allows; each scope includes those before it. read: look; write: ask, tell and observe; admin: create,
#: stop, resume and archive studies.
READ, WRITE, ADMIN = "read", "write", "admin"
SCOPES = (READ, WRITE, ADMIN)

_PREFIX = "pa_"
#: How long a person stays signed in.
LOGIN_LASTS = timedelta(hours=12)
#: Log-ins per token; one more ends the oldest.
_MOST_LOGINS = 50


@dataclass(frozen=True)
class Caller:
    """Somebody who is known: number and name of the token (None: an open server), scopes, and, for a person who has
    signed in, the text that must accompany every change."""

    token_id: int | None
    name: str | None
    scopes: tuple[str, ...]
    csrf: str | None = None


#: Anybody, on a server without tokens.
ANYBODY = Caller(None, None, SCOPES)


def create_token(storage: Storage, name: str, scope: str) -> str:
    """Add a token and return it; it cannot be shown again."""
    if scope not in SCOPES:
        raise unknown_name("scope", scope, SCOPES)
    secret = _PREFIX + secrets.token_urlsafe(32)
    scopes = ",".join(SCOPES[: SCOPES.index(scope) + 1])
    storage.tokens.add(check_name(name), _hash(secret), scopes, _now())
    return secret


def list_tokens(storage: Storage) -> list[dict[str, Any]]:
    """Return every token ever created, without its secret."""
    rows = (row._asdict() for row in storage.tokens.list())
    return [{**row, "scopes": row["scopes"].split(",")} for row in rows]


def revoke_token(storage: Storage, name: str) -> None:
    """Revoke a token at once, and sign out whoever used it."""
    storage.tokens.revoke(name, _now())


def has_tokens(storage: Storage) -> bool:
    """Whether a token was ever created: revoking the last one does not open the server."""
    return bool(storage.tokens.list())


def has_usable_tokens(storage: Storage) -> bool:
    """Whether there is a token that was not revoked."""
    return any(token.revoked_at is None for token in storage.tokens.list())


def find_caller(storage: Storage, secret: str) -> Caller | None:
    """Return the caller with a token, None if it is unknown or revoked."""
    return _caller(storage.tokens.find(_hash(secret)))


def sign_in(storage: Storage, caller: Caller) -> str:
    """Sign a person in for some hours; returns the secret for their browser."""
    assert caller.token_id is not None, "nobody signs in to an open server"
    secret, now = secrets.token_urlsafe(32), datetime.now(UTC)
    until = write_time(now + LOGIN_LASTS)
    storage.tokens.sign_in(caller.token_id, _hash(secret), write_time(now), until, _MOST_LOGINS)
    return secret


def find_signed_in(storage: Storage, secret: str) -> Caller | None:
    """Return who signed in, None if the log-in has ended."""
    return _caller(storage.tokens.find_signed_in(_hash(secret), _now()), csrf_text(secret))


def sign_out(storage: Storage, secret: str) -> None:
    """End a log-in."""
    storage.tokens.sign_out(_hash(secret))


def csrf_text(secret: str) -> str:
    """Return the text that a browser must send with a change; scripts of other pages can neither read nor guess it."""
    return _hash("csrf " + secret)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _caller(token: Token | None, csrf: str | None = None) -> Caller | None:
    return None if token is None else Caller(token.id, token.name, tuple(token.scopes.split(",")), csrf)


def _now() -> str:
    return write_time(datetime.now(UTC))
