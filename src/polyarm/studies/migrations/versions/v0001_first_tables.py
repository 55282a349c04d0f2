"""The first tables: studies, events, trials, snapshots.

Written out rather than taken from `schema`, which will move on: a migration never changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "polyarm_study",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("statement", sa.Text, nullable=False),
        sa.Column("lifecycle", sa.Text, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("last_digest", sa.Text, nullable=False),
        sa.Column("last_trial", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,  # a deleted study's number is never given again
    )
    op.create_table(
        "polyarm_event",
        sa.Column("study_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "polyarm_trial",
        sa.Column("study_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("arm", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reward", sa.Double),
        sa.Column("costs", sa.Text, nullable=False),
        sa.Column("asked_at", sa.Text),
        sa.Column("told_at", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "polyarm_snapshot",
        sa.Column("study_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("state", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Remove the tables, and with them every study."""
    for table in ("polyarm_snapshot", "polyarm_trial", "polyarm_event", "polyarm_study"):
        op.drop_table(table)
