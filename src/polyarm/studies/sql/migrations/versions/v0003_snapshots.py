"""Drop the snapshots: sessions are saved in another format now, and the log is all that is needed."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Drop them."""
    op.execute("DELETE FROM polyarm_snapshot")
