"""The tables of a storage; `migrations` creates and changes them."""

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _of_study(name: str, *parts: sa.schema.SchemaItem, **options: Any) -> sa.Table:
    """A table of rows that belong to a study."""
    study = sa.Column("study_id", sa.Integer, primary_key=True, autoincrement=False)
    return sa.Table(name, metadata, study, *parts, **options)


#: The version of the tables that this code reads and writes: the newest of `migrations/versions`.
REVISION = "0003"
VERSION_TABLE = "polyarm_version"

#: One row per study. `last_*` let a writer go on without reading the log; the row is also what writers lock.
studies = sa.Table(
    "polyarm_study",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    *_texts("created_at", "statement", "lifecycle"),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
    sa.Column("last_digest", sa.Text, nullable=False),
    sa.Column("last_trial", sa.BigInteger, nullable=False),
    sqlite_autoincrement=True,  # a deleted study's number is never given again
)

#: The truth: rows are added, never changed.
events = _of_study(
    "polyarm_event",
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    *_texts("at", "kind", "payload", "digest"),
    sqlite_with_rowid=False,
)

#: What the log says of each trial, for look-ups: follows from the events, and `verify` checks that it does.
trials = _of_study(
    "polyarm_trial",
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("arm", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reward", sa.Double),
    sa.Column("costs", sa.Text, nullable=False),
    sa.Column("asked_at", sa.Text),
    sa.Column("told_at", sa.Text),
    sqlite_with_rowid=False,
)

#: States of a study as of some event, so that opening it need not replay its whole log.
snapshots = _of_study(
    "polyarm_snapshot",
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("state", sa.Text, nullable=False),
)

#: What a request with an idempotency key was answered, so that a repetition gets the same answer and changes nothing.
replies = _of_study(
    "polyarm_reply",
    sa.Column("key", sa.Text, primary_key=True),
    *_texts("request", "reply", "at"),
    sa.Column("lasting", sa.Boolean, nullable=False),  # never forgotten
    sa.Index("polyarm_reply_by_time", "study_id", "at"),
)

#: Who may use the service: of a token only its hash is kept.
tokens = sa.Table(
    "polyarm_token",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    *_texts("scopes", "created_at"),
    sa.Column("revoked_at", sa.Text),
)

#: People signed in to the dashboard with a token; they go with it.
logins = sa.Table(
    "polyarm_login",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("token_id", sa.Integer, nullable=False),
    sa.Column("expires_at", sa.Text, nullable=False),
)
