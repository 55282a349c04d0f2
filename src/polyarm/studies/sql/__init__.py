"""Storages in SQLite and PostgreSQL: the only room that knows SQL."""
