"""Alembic's entry point: migrates over the connection that `database` opened and locked."""

from alembic import context

from polyarm.studies.sql.tables import VERSION_TABLE, metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, version_table=VERSION_TABLE)
context.run_migrations()
