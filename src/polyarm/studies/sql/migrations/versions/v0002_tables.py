"""The first tables: 0001, of studies alone, was never released.

Those that were changed since are written out as they were: a migration never changes. The others stand once, in
`tables`; whoever changes them writes out here what they were.
"""

import sqlalchemy as sa
from alembic import op

from polyarm.studies.sql.tables import metadata, studies, trials

revision = "0002"
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
        sqlite_autoincrement=True,
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
    metadata.create_all(op.get_bind(), tables=[t for t in metadata.sorted_tables if t not in (studies, trials)])
