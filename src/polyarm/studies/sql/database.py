"""The database behind a storage: its address, connections, transactions and tables.

SQLite has one writer at a time; PostgreSQL locks the study's row.
"""

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url

from polyarm.errors import InvalidInput, StorageError
from polyarm.studies.sql import migrations
from polyarm.studies.sql.tables import REVISION, VERSION_TABLE

#: Seconds that a writer waits for others.
_PATIENCE = 60.0
#: The lock that migrations of PostgreSQL hold: any number that nobody else uses.
_MIGRATION_LOCK = 0x706F6C79

_EXPECTED = "expected sqlite:///file.db or postgresql://user:password@host/database"


def parse_address(text: str) -> URL:
    """Return an address, of SQLite with the whole path of its file, or raise."""
    try:
        url = make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        # It is malformed: hide everything that could be a password.
        shown = re.sub(r".*@", "***@", text, flags=re.DOTALL) if isinstance(text, str) else text
        raise InvalidInput(f"storage: {_EXPECTED}, got {shown!r}") from None
    if "@" in (url.host or ""):
        raise InvalidInput(f"storage: {_EXPECTED}; an @ in a user or password is written %40")
    kind = url.get_backend_name()
    if kind not in {"sqlite", "postgresql"}:
        raise InvalidInput(f"storage: {_EXPECTED}, got {show_address(url)!r}")
    if kind == "sqlite":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise InvalidInput(
                f"storage: {_EXPECTED}, got {show_address(url)!r}: a study outlives its process; for one that need "
                "not, use make_explorer"
            )
        url = url.set(database=os.path.abspath(url.database))  # the folder that the process works in may change
    return url


def show_address(url: URL) -> str:
    """Return an address for people: without its password."""
    hidden = {key: "hidden" for key in url.query if "pass" in key.lower()}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


class Database:
    """Transactions on one database, whose tables are brought up to date when it is opened."""

    def __init__(self, url: str) -> None:
        self._url = parse_address(url)
        self.address = show_address(self._url)
        self._file = str(self._url.database) if self._url.get_backend_name() == "sqlite" else None
        self._engine = self._make_engine()
        self._process = os.getpid()
        try:
            with self._translated():
                self._prepare()
                self._identity, self._gone = self._identify(), False
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._engine.dispose()

    def _make_engine(self) -> Engine:
        if self._file is not None:
            folder = Path(self._file).parent
            if not folder.is_dir():
                raise InvalidInput(f"storage {self.address}: there is no folder {folder}; create it first")
            engine = sa.create_engine(self._url, connect_args={"timeout": _PATIENCE})
            sa.event.listen(engine, "connect", _set_up_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
            return engine
        try:
            # A writer that waited for a study's lock must see what others committed, whatever the server's default.
            return sa.create_engine(
                self._url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, isolation_level="READ COMMITTED"
            )
        except ImportError:
            raise InvalidInput(
                f"storage {self.address}: PostgreSQL needs psycopg: pip install 'polyarm[postgres]'"
            ) from None

    @property
    def _writing(self) -> Engine:
        return self.engine.execution_options(polyarm_writes=True)

    @property
    def engine(self) -> Engine:
        """The engine of this process: connections do not survive a fork."""
        if self._process != os.getpid():
            self._engine.dispose(close=False)
            self._process = os.getpid()
        return self._engine

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise failures of the database as `StorageError`."""
        try:
            yield
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:  # the latter: too many wait for a connection
            cause = _first_line(getattr(error, "orig", error))
            raise StorageError(
                f"storage {self.address}: {cause}; the call was recorded whole or not at all. Repair the storage and "
                "repeat the call: a tell, or a call with a key, never counts twice. Before repeating any other, check "
                "what was recorded"
            ) from error

    def _identify(self) -> tuple[int, int] | None:
        """The device and inode of the SQLite file, None without one."""
        try:
            found = None if self._file is None else os.stat(self._file)
        except OSError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)

    @property
    def is_gone(self) -> bool:
        """Whether the file that was opened has been removed, or another put in its place; once gone, always gone."""
        self._gone = self._gone or self._identify() != self._identity
        return self._gone

    def _require_file(self) -> None:
        """Raise if the file is gone: SQLite would keep writing to it."""
        if self.is_gone:
            raise StorageError(
                f"storage {self.address}: the file was removed or replaced while it was open; nothing was recorded: "
                "put it back, or load the study again to continue with the file that is there now"
            )

    def _prepare(self) -> None:
        """Create or migrate the tables; several processes may try at once."""
        with self.engine.connect() as connection:
            if _revision(connection) == REVISION:
                return
        if self._file is not None:
            _patiently(lambda: _use_wal(self.engine))
        with self._writing.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            found = _revision(connection)
            if found != REVISION:
                _migrate(connection, self.address, found)

    @contextmanager
    def transaction(self, writes: bool = False) -> Iterator[Connection]:
        """Do all of the block, or nothing."""
        self._require_file()
        with self._translated(), (self._writing if writes else self.engine).begin() as connection:
            yield connection


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _set_up_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by `_begin_sqlite`, not by the driver
    # FULL: what was acknowledged survives a loss of power, too, not only of the process.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("polyarm_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _use_wal(engine: Engine) -> None:
    """Turn on the write-ahead log: readers and a writer do not block each other. The file remembers it."""
    raw = engine.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode = WAL")
    finally:
        raw.close()


def _patiently(change: Callable[[], None]) -> None:
    """Retry while the file is locked: a change of the journal mode does not wait by itself."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            change()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise StorageError(f"storage: {error}") from error
            time.sleep(0.02)
        else:
            return


def _revision(connection: Connection) -> str | None:
    """The version of the tables, None without any."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()


def _migrate(connection: Connection, address: str, found: str | None) -> None:
    from alembic import command  # noqa: PLC0415  (a tenth of a second, for the few who need it)
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise InvalidInput(
            f"storage {address}: its tables are of version {found}, which this polyarm does not know; a newer polyarm "
            "wrote them, or one from before the first release: upgrade polyarm, or use another storage"
        )
    command.upgrade(config, "head")
