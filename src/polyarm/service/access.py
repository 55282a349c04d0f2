"""Who may use the service: tokens for programs, and people who signed in to the dashboard with one.

Of tokens and log-ins only hashes are kept. A token is 32 random bytes, so one round of SHA-256 is as good as many.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from polyarm.errors import Conflict, InvalidInput, unknown_name
from polyarm.studies.manage import check_name
from polyarm.studies.schema import logins, tokens
from polyarm.studies.storage import Storage
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
    row = {
        "name": check_name(name),
        "hash": _hash(secret),
        "scopes": ",".join(SCOPES[: SCOPES.index(scope) + 1]),
        "created_at": write_time(datetime.now(UTC)),
    }
    with storage.transaction(writes=True) as connection:
        try:
            connection.execute(sa.insert(tokens), row)
        except sa.exc.IntegrityError:
            raise Conflict(f"token {name!r} exists already; choose another name") from None
    return secret


def list_tokens(storage: Storage) -> list[dict[str, Any]]:
    """Return every token that was ever created, without its secret."""
    columns = (tokens.c.name, tokens.c.scopes, tokens.c.created_at, tokens.c.revoked_at)
    with storage.transaction() as connection:
        rows = connection.execute(sa.select(*columns).order_by(tokens.c.id)).all()
    return [{**row._asdict(), "scopes": row.scopes.split(",")} for row in rows]


def revoke_token(storage: Storage, name: str) -> None:
    """Make a token useless at once, and sign out who came with it."""
    with storage.transaction(writes=True) as connection:
        row = connection.execute(sa.select(tokens).where(tokens.c.name == name)).one_or_none()
        if row is None:
            raise unknown_name("token", name, connection.scalars(sa.select(tokens.c.name)))
        if row.revoked_at is not None:
            raise InvalidInput(f"token {name!r} was revoked already, at {row.revoked_at}")
        now = write_time(datetime.now(UTC))
        connection.execute(sa.update(tokens).where(tokens.c.id == row.id).values(revoked_at=now))
        connection.execute(sa.delete(logins).where(logins.c.token_id == row.id))


def has_tokens(storage: Storage) -> bool:
    """Whether a token was ever created: revoking the last one does not open the doors."""
    with storage.transaction() as connection:
        return connection.execute(sa.select(tokens.c.id).limit(1)).first() is not None


def has_usable_tokens(storage: Storage) -> bool:
    """Whether anybody could come in with a token."""
    with storage.transaction() as connection:
        usable = sa.select(tokens.c.id).where(tokens.c.revoked_at.is_(None)).limit(1)
        return connection.execute(usable).first() is not None


def find_caller(storage: Storage, secret: str) -> Caller | None:
    """Return whose token this is, None if it is nobody's or was revoked."""
    wanted = sa.select(tokens).where(tokens.c.hash == _hash(secret), tokens.c.revoked_at.is_(None))
    with storage.transaction() as connection:
        row = connection.execute(wanted).one_or_none()
    return None if row is None else Caller(row.id, row.name, tuple(row.scopes.split(",")))


def sign_in(storage: Storage, caller: Caller) -> str:
    """Let a person in for some hours; returns what their browser will show."""
    secret, now = secrets.token_urlsafe(32), datetime.now(UTC)
    row = {"hash": _hash(secret), "token_id": caller.token_id, "expires_at": write_time(now + LOGIN_LASTS)}
    with storage.transaction(writes=True) as connection:
        mine = sa.select(logins.c.hash).where(logins.c.token_id == caller.token_id).order_by(logins.c.expires_at.desc())
        old = list(connection.scalars(mine.offset(_MOST_LOGINS - 1)))
        connection.execute(
            sa.delete(logins).where(sa.or_(logins.c.expires_at < write_time(now), logins.c.hash.in_(old)))
        )
        connection.execute(sa.insert(logins), row)
    return secret


def find_signed_in(storage: Storage, secret: str) -> Caller | None:
    """Return who signed in with this, None if that is over."""
    joined = sa.select(tokens).join(logins, logins.c.token_id == tokens.c.id)
    fresh = sa.and_(logins.c.hash == _hash(secret), logins.c.expires_at >= write_time(datetime.now(UTC)))
    with storage.transaction() as connection:
        row = connection.execute(joined.where(fresh, tokens.c.revoked_at.is_(None))).one_or_none()
    return None if row is None else Caller(row.id, row.name, tuple(row.scopes.split(",")), csrf_text(secret))


def sign_out(storage: Storage, secret: str) -> None:
    """End a log-in."""
    with storage.transaction(writes=True) as connection:
        connection.execute(sa.delete(logins).where(logins.c.hash == _hash(secret)))


def csrf_text(secret: str) -> str:
    """What must come with a change made by a browser: other pages' scripts can neither read nor guess it."""
    return _hash("csrf " + secret)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
