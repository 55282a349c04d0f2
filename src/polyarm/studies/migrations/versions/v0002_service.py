"""Tables of the service: answers by idempotency key, tokens, people signed in."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables, and drop the snapshots: their format is another now, and the log is all that is needed."""
    op.execute("DELETE FROM polyarm_snapshot")
    op.create_table(
        "polyarm_reply",
        sa.Column("study_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("lasting", sa.Boolean, nullable=False),
    )
    op.create_index("polyarm_reply_by_time", "polyarm_reply", ["study_id", "at"])
    op.create_table(
        "polyarm_token",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("revoked_at", sa.Text),
    )
    op.create_table(
        "polyarm_login",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("token_id", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Remove the tables: nobody is known any more, and every token must be made anew."""
    for table in ("polyarm_login", "polyarm_token", "polyarm_reply"):
        op.drop_table(table)
