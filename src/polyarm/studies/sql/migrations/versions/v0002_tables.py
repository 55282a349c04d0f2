"""The first tables: 0001, of studies alone, was never released.

They stand once, in `tables`. Whoever changes them after a release writes out here what they were: a migration never
changes. Until that is done every new storage fails, for the next migration finds its change already made.
"""

from alembic import op

from polyarm.studies.sql.tables import metadata

revision = "0002"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    metadata.create_all(op.get_bind())
