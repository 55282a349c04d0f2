"""Tokens of the service and those signed in with them, in a SQL database."""

from typing import Any

import sqlalchemy as sa

from polyarm.errors import Conflict, InvalidInput, unknown_name
from polyarm.studies.sql.database import Database
from polyarm.studies.sql.tables import logins, tokens
from polyarm.studies.storage import Token

_COLUMNS = [tokens.c[name] for name in Token._fields]


class SqlTokens:
    """Who may use the service; see `Tokens`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, hashed: str, scopes: str, at: str) -> None:
        """Add a token; raises `Conflict` if the name is taken."""
        row = {"name": name, "hash": hashed, "scopes": scopes, "created_at": at}
        with self._database.transaction(writes=True) as connection:
            try:
                connection.execute(sa.insert(tokens), row)
            except sa.exc.IntegrityError:
                raise Conflict(f"token {name!r} exists already; choose another name") from None

    def list(self) -> list[Token]:
        """Return every token that was ever added, the oldest first."""
        with self._database.transaction() as connection:
            return [Token(*row) for row in connection.execute(sa.select(*_COLUMNS).order_by(tokens.c.id))]

    def revoke(self, name: str, at: str) -> None:
        """Revoke a token at once, and sign out whoever used it."""
        with self._database.transaction(writes=True) as connection:
            row = connection.execute(sa.select(tokens).where(tokens.c.name == name)).one_or_none()
            if row is None:
                raise unknown_name("token", name, connection.scalars(sa.select(tokens.c.name)))
            if row.revoked_at is not None:
                raise InvalidInput(f"token {name!r} was revoked already, at {row.revoked_at}")
            connection.execute(sa.update(tokens).where(tokens.c.id == row.id).values(revoked_at=at))
            connection.execute(sa.delete(logins).where(logins.c.token_id == row.id))

    def find(self, hashed: str) -> Token | None:
        """Return a token that was not revoked."""
        return self._find(sa.select(*_COLUMNS).where(tokens.c.hash == hashed))

    def sign_in(self, token: int, hashed: str, now: str, until: str, most: int) -> None:
        """Add a log-in with a token; at most so many last, the newest."""
        mine = sa.select(logins.c.hash).where(logins.c.token_id == token).order_by(logins.c.expires_at.desc())
        with self._database.transaction(writes=True) as connection:
            oldest = list(connection.scalars(mine.offset(most - 1)))
            over = sa.or_(logins.c.expires_at < now, logins.c.hash.in_(oldest))
            connection.execute(sa.delete(logins).where(over))
            connection.execute(sa.insert(logins), {"hash": hashed, "token_id": token, "expires_at": until})

    def find_signed_in(self, hashed: str, now: str) -> Token | None:
        """Return the token of a log-in that lasts."""
        joined = sa.select(*_COLUMNS).join(logins, logins.c.token_id == tokens.c.id)
        return self._find(joined.where(logins.c.hash == hashed, logins.c.expires_at >= now))

    def sign_out(self, hashed: str) -> None:
        """End a log-in."""
        with self._database.transaction(writes=True) as connection:
            connection.execute(sa.delete(logins).where(logins.c.hash == hashed))

    def _find(self, chosen: sa.Select[Any]) -> Token | None:
        with self._database.transaction() as connection:
            row = connection.execute(chosen.where(tokens.c.revoked_at.is_(None))).one_or_none()
        return None if row is None else Token(*row)
