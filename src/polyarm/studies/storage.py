"""Where studies live: SQLite or PostgreSQL behind one address. Knows rows and locks, nothing of exploring.

Every change of a study happens in one transaction that holds the study's lock: SQLite has one writer at a time,
PostgreSQL locks the study's row. A transaction that does not end leaves no trace.
"""

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from polyarm.errors import Conflict, InvalidInput, StorageError, UnknownStudy
from polyarm.studies import migrations
from polyarm.studies.address import parse_address, show_address
from polyarm.studies.events import GENESIS, Event, StoredEvent, seal, write_payload
from polyarm.studies.schema import REVISION, VERSION_TABLE, events, replies, snapshots, studies, trials

DEFAULT_STORAGE = "sqlite:///polyarm.db"
#: Names the storage where none is given.
STORAGE_VARIABLE = "POLYARM_STORAGE"

RUNNING = "running"

#: A writer waits this many seconds for the others.
_PATIENCE = 60.0
#: Rows fetched at a time when a log is read.
_CHUNK = 5_000
#: Trials looked up in one statement.
_LOOKUP = 500
#: What migrations of PostgreSQL hold: any number that nobody else uses.
_MIGRATION_LOCK = 0x706F6C79
_KEPT_SNAPSHOTS = 2


class StudyRow(NamedTuple):
    """A study as stored."""

    id: int
    name: str
    created_at: str
    statement: str
    lifecycle: str
    last_seq: int
    last_digest: str
    last_trial: int


class TrialRow(NamedTuple):
    """A trial as stored: `costs` by name as far as they are known."""

    id: int
    arm: int
    state: str
    reward: float | None
    costs: Mapping[str, float]
    asked_at: str | None
    told_at: str | None


class Writer:
    """A transaction on one study, under its lock: what it adds becomes visible all at once, or not at all."""

    def __init__(self, connection: Connection, study: StudyRow, at: str) -> None:
        self._connection = connection
        self.study = study
        self.at = at
        self.lifecycle = study.lifecycle
        self.last_trial = study.last_trial
        self.last_seq = study.last_seq
        self._digest = study.last_digest
        self._events: list[dict[str, Any]] = []
        self._new_trials: dict[int, dict[str, Any]] = {}
        self._changed_trials: dict[int, dict[str, Any]] = {}

    def append(self, kind: str, payload: Mapping[str, Any]) -> Event:
        """Add an event to the log."""
        text = write_payload(payload)
        self.last_seq += 1
        self._digest = seal(self._digest, self.last_seq, self.at, kind, text)
        self._events.append(
            {
                "study_id": self.study.id,
                "seq": self.last_seq,
                "at": self.at,
                "kind": kind,
                "payload": text,
                "digest": self._digest,
            }
        )
        return Event(self.last_seq, self.at, kind, json.loads(text), self._digest)

    def add_trial(self, arm: int, state: str, **fields: Any) -> int:
        """Add a trial and return its number."""
        self.last_trial += 1
        row = TrialRow(self.last_trial, arm, state, None, {}, None, None)._replace(**fields)
        self._new_trials[row.id] = trial_columns(self.study.id, row)
        return row.id

    def add_trials(self, rows: Iterable[TrialRow]) -> None:
        """Add trials that have their numbers already: an imported study's."""
        for row in rows:
            self._new_trials[row.id] = trial_columns(self.study.id, row)
            self.last_trial = max(self.last_trial, row.id)

    def change_trial(self, row: TrialRow) -> None:
        """Replace what is stored of a trial."""
        columns = trial_columns(self.study.id, row)
        self._changed_trials[row.id] = {f"new_{name}": value for name, value in columns.items()}

    def events_after(self, seq: int) -> Iterator[Event]:
        """Yield the events that others have added since `seq`; this transaction's own are not among them."""
        return (event.read() for event in self.stored_events_after(seq))

    def stored_events_after(self, seq: int) -> Iterator[StoredEvent]:
        """Yield the same as they are stored."""
        return _select_events(self._connection, self.study.id, seq)

    def trials(self, ids: Sequence[int]) -> dict[int, TrialRow]:
        """Return these trials by number; those that do not exist are left out."""
        found: dict[int, TrialRow] = {}
        for k in range(0, len(ids), _LOOKUP):
            some = sa.and_(trials.c.study_id == self.study.id, trials.c.id.in_(ids[k : k + _LOOKUP]))
            found |= {row.id: row for row in map(_trial, self._connection.execute(sa.select(trials).where(some)))}
        return found

    def stored_trials(self) -> Iterator[Mapping[str, Any]]:
        """Yield every trial in order, as it is stored: see `trial_columns`."""
        mine = sa.select(trials).where(trials.c.study_id == self.study.id).order_by(trials.c.id)
        return (row._asdict() for row in self._connection.execute(mine))

    def recall(self, key: str, request: str) -> Any:
        """Return what was answered under a key, None if nothing was; raises if that was another request."""
        mine = sa.and_(replies.c.study_id == self.study.id, replies.c.key == key)
        row = self._connection.execute(sa.select(replies.c.request, replies.c.reply).where(mine)).one_or_none()
        if row is None:
            return None
        if row.request != request:
            raise Conflict(
                f"key {key!r} was used for another request before; nothing changed. Repeat a request with its own key, "
                "and give every new one a new key"
            )
        return json.loads(row.reply)

    def remember(self, key: str, request: str, reply: Any, forget_before: str, lasting: bool = False) -> None:
        """Keep an answer under a key; answers from before some time are forgotten, unless they are to last."""
        outdated = sa.and_(replies.c.study_id == self.study.id, replies.c.at < forget_before, ~replies.c.lasting)
        self._connection.execute(sa.delete(replies).where(outdated))
        row = {
            "study_id": self.study.id,
            "key": key,
            "request": request,
            "reply": write_payload(reply),
            "at": self.at,
            "lasting": lasting,
        }
        self._connection.execute(sa.insert(replies), row)

    def add_snapshot(self, seq: int, state: str) -> None:
        """Keep a snapshot in place of the oldest."""
        mine = snapshots.c.study_id == self.study.id
        newest = sa.select(snapshots.c.seq).where(mine).order_by(snapshots.c.seq.desc())
        kept = list(self._connection.scalars(newest))
        if kept and kept[0] >= seq:
            return  # somebody else was quicker
        self._connection.execute(sa.delete(snapshots).where(mine, snapshots.c.seq.in_(kept[_KEPT_SNAPSHOTS - 1 :])))
        self._connection.execute(sa.insert(snapshots), {"study_id": self.study.id, "seq": seq, "state": state})

    def save(self) -> None:
        """Send everything that was added."""
        if self._events:
            self._connection.execute(sa.insert(events), self._events)
        if self._new_trials:
            self._connection.execute(sa.insert(trials), list(self._new_trials.values()))
        if self._changed_trials:
            self._connection.execute(_CHANGE_TRIAL, list(self._changed_trials.values()))
        if self._events:
            self._connection.execute(
                sa.update(studies).where(studies.c.id == self.study.id),
                {
                    "last_seq": self.last_seq,
                    "last_digest": self._digest,
                    "last_trial": self.last_trial,
                    "lifecycle": self.lifecycle,
                },
            )


_CHANGE_TRIAL = (
    sa.update(trials)
    .where(trials.c.study_id == sa.bindparam("new_study_id"), trials.c.id == sa.bindparam("new_id"))
    .values({c.name: sa.bindparam(f"new_{c.name}") for c in trials.c if c.name not in {"study_id", "id"}})
)


class Storage:
    """One database of studies."""

    def __init__(self, url: str) -> None:
        self._url = parse_address(url)
        self.url = self._url.render_as_string(hide_password=False)
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
        """Let go of the connections; the next call opens new ones."""
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
            # Whoever waits for a study's lock must then see what the others did, whatever the server's default is.
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
        """Turn failures of the database into words."""
        try:
            yield
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:  # the latter: too many wait for a connection
            cause = _first_line(getattr(error, "orig", error))
            raise StorageError(
                f"storage {self.address}: {cause}; the call was recorded whole or not at all: set the storage right "
                "and make it again: a tell, or a call with a key, never counts twice; before any other, see what is in"
            ) from error

    def _identify(self) -> tuple[int, int] | None:
        """Which file the address leads to, if it is that of a file and there is one."""
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
        """SQLite would go on writing to a file that nobody can find any more."""
        if self.is_gone:
            raise StorageError(
                f"storage {self.address}: the file was removed or replaced while it was open; nothing was recorded: "
                "put it back, or load the study anew to go on with what is there now"
            )

    def _prepare(self) -> None:
        """Create or bring up to date the tables; several processes may do so at once."""
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
        """Use the database directly, for tables that are not a study's: all of the block, or nothing."""
        self._require_file()
        with self._translated(), (self._writing if writes else self.engine).begin() as connection:
            yield connection

    # -- studies --------------------------------------------------------------------------------------------------

    @contextmanager
    def create(self, name: str, at: str, statement: Mapping[str, Any]) -> Iterator[Writer]:
        """Add a study and its first events: nothing is stored unless the block ends well. The name must be free."""
        row = {
            "name": name,
            "created_at": at,
            "statement": write_payload(statement),
            "lifecycle": RUNNING,
            "last_seq": 0,
            "last_digest": GENESIS,
            "last_trial": 0,
        }
        with self.transaction(writes=True) as connection:
            try:
                added = connection.execute(sa.insert(studies).returning(studies), row).one()
            except sa.exc.IntegrityError:
                raise Conflict(
                    f"study {name!r} exists already in {self.address}: load_study({name!r}) goes on with it; or choose "
                    "another name, or delete it"
                ) from None
            writer = Writer(connection, StudyRow(*added), at)
            yield writer
            writer.save()

    def find_study(self, name: str) -> StudyRow:
        """Return a study by name, or raise."""
        with self.transaction() as connection:
            row = connection.execute(sa.select(studies).where(studies.c.name == name)).one_or_none()
            if row is None:
                known = list(connection.scalars(sa.select(studies.c.name).order_by(studies.c.name).limit(20)))
        if row is None:
            there = f"there are: {', '.join(known)}" if known else "there is none at all"
            raise UnknownStudy(f"no study {name!r} in {self.address}; {there}")
        return StudyRow(*row)

    def list_studies(self) -> list[StudyRow]:
        """Return all studies by name."""
        with self.transaction() as connection:
            return [StudyRow(*row) for row in connection.execute(sa.select(studies).order_by(studies.c.name))]

    def delete_study(self, study_id: int) -> None:
        """Remove a study with everything that belongs to it."""
        with self.transaction(writes=True) as connection:
            _lock(connection, study_id)
            for table in (events, trials, snapshots, replies):
                connection.execute(sa.delete(table).where(table.c.study_id == study_id))
            connection.execute(sa.delete(studies).where(studies.c.id == study_id))

    # -- one study ------------------------------------------------------------------------------------------------

    @contextmanager
    def write(self, study_id: int, at: str) -> Iterator[Writer]:
        """Change a study: nothing is stored unless the block ends well."""
        with self.transaction(writes=True) as connection:
            row = _lock(connection, study_id)
            if row is None:
                raise UnknownStudy(f"no such study in {self.address}, or not any more: somebody deleted it")
            writer = Writer(connection, row, at)
            yield writer
            writer.save()

    def read_study(self, study_id: int) -> StudyRow:
        """Return a study as it is stored now."""
        with self.transaction() as connection:
            row = connection.execute(sa.select(studies).where(studies.c.id == study_id)).one_or_none()
        if row is None:
            raise UnknownStudy(f"no such study in {self.address}, or not any more: somebody deleted it")
        return StudyRow(*row)

    def read_events(self, study_id: int, after: int, last: int) -> list[Event]:
        """Return the events with a number above `after`, up to `last`."""
        with self.transaction() as connection:
            return [event.read() for event in _select_events(connection, study_id, after, last)]

    def events_after(self, study_id: int, seq: int) -> Iterator[Event]:
        """Yield the events with a higher number; holds no lock between chunks."""
        return (event.read() for event in self.stored_events_after(study_id, seq))

    def stored_events_after(self, study_id: int, seq: int) -> Iterator[StoredEvent]:
        """Yield the same as they are stored."""
        while True:
            with self.transaction() as connection:
                chunk = list(_select_events(connection, study_id, seq, most=_CHUNK))
            yield from chunk
            if len(chunk) < _CHUNK:
                return
            seq = chunk[-1].seq

    def trials_of(self, study_id: int) -> Iterator[TrialRow]:
        """Yield the trials of a study in order."""
        last = 0
        while True:
            wanted = sa.and_(trials.c.study_id == study_id, trials.c.id > last)
            with self.transaction() as connection:
                rows = connection.execute(sa.select(trials).where(wanted).order_by(trials.c.id).limit(_CHUNK)).all()
            yield from map(_trial, rows)
            if len(rows) < _CHUNK:
                return
            last = rows[-1].id

    def snapshots_of(self, study_id: int) -> Iterator[tuple[int, str]]:
        """Yield the snapshots of a study, the newest first."""
        chosen = sa.select(snapshots.c.seq, snapshots.c.state).where(snapshots.c.study_id == study_id)
        with self.transaction() as connection:
            rows = connection.execute(chosen.order_by(snapshots.c.seq.desc())).all()
        return ((row.seq, row.state) for row in rows)

    def add_snapshot(self, study_id: int, seq: int, state: str) -> None:
        """Keep a snapshot in place of the oldest, unless the study was deleted meanwhile."""
        with self.transaction(writes=True) as connection:
            row = _lock(connection, study_id)
            if row is not None:
                Writer(connection, row, at="").add_snapshot(seq, state)


_OPEN: dict[str, Storage] = {}
_OPENING = threading.Lock()


def open_storage(url: str) -> Storage:
    """Return the storage at an address, one per process; its tables are created when there are none."""
    whole = parse_address(url).render_as_string(hide_password=False)
    with _OPENING:
        if whole in _OPEN and _OPEN[whole].is_gone:
            _OPEN.pop(whole).close()
        if whole not in _OPEN:
            _OPEN[whole] = Storage(whole)
        return _OPEN[whole]


def storage_url(url: str | None) -> str:
    """Return an address, or the one that the environment names, or a file in this folder."""
    return url or os.environ.get(STORAGE_VARIABLE) or DEFAULT_STORAGE


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
    """Let readers read while somebody writes; the file remembers it."""
    raw = engine.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode = WAL")
    finally:
        raw.close()


def _patiently(change: Callable[[], None]) -> None:
    """Try until nobody else is in the way: the change of journal does not wait by itself."""
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
            f"storage {address}: written by a newer polyarm (tables of version {found}); upgrade polyarm"
        )
    command.upgrade(config, "head")


def _lock(connection: Connection, study_id: int) -> StudyRow | None:
    row = connection.execute(sa.select(studies).where(studies.c.id == study_id).with_for_update()).one_or_none()
    return None if row is None else StudyRow(*row)


def _select_events(
    connection: Connection, study_id: int, after: int, last: int | None = None, most: int | None = None
) -> Iterator[StoredEvent]:
    columns = (events.c.seq, events.c.at, events.c.kind, events.c.payload, events.c.digest)
    chosen = sa.select(*columns).where(events.c.study_id == study_id, events.c.seq > after)
    if last is not None:
        chosen = chosen.where(events.c.seq <= last)
    for row in connection.execute(chosen.order_by(events.c.seq).limit(most)):
        yield StoredEvent(*row)


def _trial(row: Any) -> TrialRow:
    return TrialRow(row.id, row.arm, row.state, row.reward, json.loads(row.costs), row.asked_at, row.told_at)


def trial_columns(study_id: int, row: TrialRow) -> dict[str, Any]:
    """Return a trial as it is stored."""
    return {"study_id": study_id, **row._asdict(), "costs": write_payload(row.costs)}
