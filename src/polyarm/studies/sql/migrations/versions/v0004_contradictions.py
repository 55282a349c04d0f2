"""Outcomes that contradict what is declared of them; sessions count what they cut, so their snapshots go."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns, and drop the snapshots: the log is all that is needed."""
    op.add_column("polyarm_study", sa.Column("contradicted", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("polyarm_study", sa.Column("capped", sa.Text, nullable=False, server_default="{}"))
    op.add_column("polyarm_trial", sa.Column("refused", sa.Text))
    op.execute("DELETE FROM polyarm_snapshot")
