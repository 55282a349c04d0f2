"""Studies in a SQL database: rows in and out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from polyarm.errors import Conflict, UnknownStudy
from polyarm.studies.events import GENESIS, StoredEvent, write_payload
from polyarm.studies.projection import RUNNING, StoredTrial, StudyRow, TrialRow
from polyarm.studies.sql.database import Database
from polyarm.studies.sql.tables import events, replies, snapshots, studies, trials
from polyarm.studies.sql.tokens import SqlTokens
from polyarm.studies.storage import Reply, Writer

#: Rows fetched at a time when a log is read.
_CHUNK = 5_000
#: Trials looked up in one statement.
_LOOKUP = 500
_KEPT_SNAPSHOTS = 2
#: Names that a message lists.
_MOST_NAMES = 20

_TRIAL_COLUMNS = [trials.c[name] for name in StoredTrial._fields]
_CHANGE_TRIAL = (
    sa.update(trials)
    .where(trials.c.study_id == sa.bindparam("new_study_id"), trials.c.id == sa.bindparam("new_id"))
    .values({c.name: sa.bindparam(f"new_{c.name}") for c in trials.c if c.name not in {"study_id", "id"}})
)


class SqlTransaction:
    """A transaction on one study, under its lock; see `Transaction`."""

    def __init__(self, connection: Connection, study: int) -> None:
        self._connection, self._study = connection, study

    def events_after(self, seq: int) -> Iterator[StoredEvent]:
        """Yield the stored events with a number above `seq`, in order."""
        return _select_events(self._connection, self._study, seq)

    def trials(self, numbers: Sequence[int]) -> list[TrialRow]:
        """Return those of these trials that exist."""
        found: list[TrialRow] = []
        for k in range(0, len(numbers), _LOOKUP):
            some = sa.and_(trials.c.study_id == self._study, trials.c.id.in_(numbers[k : k + _LOOKUP]))
            found += map(_read_trial, self._connection.execute(sa.select(*_TRIAL_COLUMNS).where(some)))
        return found

    def stored_trials(self) -> Iterator[StoredTrial]:
        """Yield every trial in order, unread."""
        mine = sa.select(*_TRIAL_COLUMNS).where(trials.c.study_id == self._study).order_by(trials.c.id)
        return (StoredTrial(*row) for row in self._connection.execute(mine))

    def find_reply(self, key: str) -> Reply | None:
        """Return what is kept under a key."""
        wanted = sa.select(*(replies.c[name] for name in Reply._fields)).where(
            replies.c.study_id == self._study, replies.c.key == key
        )
        row = self._connection.execute(wanted).one_or_none()
        return None if row is None else Reply(*row)

    def add_reply(self, key: str, reply: Reply, forget_before: str) -> None:
        """Keep a reply; forget those from before some time, unless they are lasting."""
        outdated = sa.and_(replies.c.study_id == self._study, replies.c.at < forget_before, ~replies.c.lasting)
        self._connection.execute(sa.delete(replies).where(outdated))
        self._connection.execute(sa.insert(replies), {"study_id": self._study, "key": key, **reply._asdict()})

    def add_snapshot(self, seq: int, state: str) -> None:
        """Keep a snapshot in place of the oldest, unless there is one that is as new."""
        mine = snapshots.c.study_id == self._study
        newest = sa.select(snapshots.c.seq).where(mine).order_by(snapshots.c.seq.desc())
        kept = list(self._connection.scalars(newest))
        if kept and kept[0] >= seq:
            return
        self._connection.execute(sa.delete(snapshots).where(mine, snapshots.c.seq.in_(kept[_KEPT_SNAPSHOTS - 1 :])))
        self._connection.execute(sa.insert(snapshots), {"study_id": self._study, "seq": seq, "state": state})

    def save(
        self,
        study: StudyRow,
        added: Sequence[StoredEvent],
        new_trials: Sequence[StoredTrial],
        changed_trials: Sequence[StoredTrial],
    ) -> None:
        """Store what a writer has added."""
        mine = {"study_id": self._study}
        self._connection.execute(sa.insert(events), [{**mine, **event._asdict()} for event in added])
        if new_trials:
            self._connection.execute(sa.insert(trials), [{**mine, **row._asdict()} for row in new_trials])
        if changed_trials:
            rows = ({**mine, **row._asdict()} for row in changed_trials)
            changes = [{f"new_{name}": value for name, value in row.items()} for row in rows]
            self._connection.execute(_CHANGE_TRIAL, changes)
        ends = {name: getattr(study, name) for name in ("lifecycle", "last_seq", "last_digest", "last_trial")}
        self._connection.execute(sa.update(studies).where(studies.c.id == self._study), ends)


class SqlStorage:
    """One SQLite file or PostgreSQL database of studies; see `Storage`."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self.tokens = SqlTokens(self._database)

    @property
    def address(self) -> str:
        """The address for people: without a password."""
        return self._database.address

    @property
    def engine(self) -> Engine:
        """The engine of this process."""
        return self._database.engine

    @property
    def is_gone(self) -> bool:
        """Whether the file that was opened has been removed or replaced."""
        return self._database.is_gone

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._database.close()

    def check(self) -> None:
        """Raise if the database does not answer."""
        with self._database.transaction() as connection:
            connection.exec_driver_sql("SELECT 1")

    # -- studies --------------------------------------------------------------------------------------------------

    @contextmanager
    def create(self, name: str, at: str, statement: Mapping[str, Any]) -> Iterator[Writer]:
        """Add a study and its first events if the block ends well; raises `Conflict` if the name is taken."""
        row = {
            "name": name,
            "created_at": at,
            "statement": write_payload(statement),
            "lifecycle": RUNNING,
            "last_seq": 0,
            "last_digest": GENESIS,
            "last_trial": 0,
        }
        with self._database.transaction(writes=True) as connection:
            try:
                added = connection.execute(sa.insert(studies).returning(studies), row).one()
            except sa.exc.IntegrityError:
                raise Conflict(
                    f"study {name!r} exists already in {self.address}: continue it with load_study({name!r}), choose "
                    "another name, or delete it"
                ) from None
            writer = Writer(SqlTransaction(connection, added.id), StudyRow(*added), at)
            yield writer
            writer.save()

    @contextmanager
    def write(self, study: int, at: str) -> Iterator[Writer]:
        """Change a study if the block ends well; raises `UnknownStudy`."""
        with self._database.transaction(writes=True) as connection:
            row = _lock(connection, study)
            if row is None:
                raise self._no_such_study()
            writer = Writer(SqlTransaction(connection, study), row, at)
            yield writer
            writer.save()

    def delete_study(self, study: int) -> None:
        """Remove a study with everything that belongs to it."""
        with self._database.transaction(writes=True) as connection:
            _lock(connection, study)
            for table in (events, trials, snapshots, replies):
                connection.execute(sa.delete(table).where(table.c.study_id == study))
            connection.execute(sa.delete(studies).where(studies.c.id == study))

    def find_study(self, name: str) -> StudyRow:
        """Return a study by name; raises `UnknownStudy`."""
        with self._database.transaction() as connection:
            row = _select_study(connection, studies.c.name == name)
            if row is None:
                names = sa.select(studies.c.name).order_by(studies.c.name).limit(_MOST_NAMES)
                known = ", ".join(connection.scalars(names))
        if row is None:
            there = f"there are: {known}" if known else "there is none at all"
            raise UnknownStudy(f"no study {name!r} in {self.address}; {there}")
        return row

    def read_study(self, study: int) -> StudyRow:
        """Return a study by number; raises `UnknownStudy`."""
        with self._database.transaction() as connection:
            row = _select_study(connection, studies.c.id == study)
        if row is None:
            raise self._no_such_study()
        return row

    def list_studies(self) -> list[StudyRow]:
        """Return all studies by name."""
        with self._database.transaction() as connection:
            return [StudyRow(*row) for row in connection.execute(sa.select(studies).order_by(studies.c.name))]

    def last_events(self, wanted: Sequence[int]) -> dict[int, int]:
        """Return the number of the last event of each of these studies that exists."""
        chosen = sa.select(studies.c.id, studies.c.last_seq).where(studies.c.id.in_(wanted))
        with self._database.transaction() as connection:
            return {row.id: row.last_seq for row in connection.execute(chosen)}

    def _no_such_study(self) -> UnknownStudy:
        return UnknownStudy(f"no such study in {self.address}; it may have been deleted")

    # -- what belongs to a study ----------------------------------------------------------------------------------

    def events(self, study: int, after: int = 0, last: int | None = None) -> Iterator[StoredEvent]:
        """Yield the events with a number above `after`, up to `last`; holds no lock between chunks."""
        while True:
            with self._database.transaction() as connection:
                chunk = list(_select_events(connection, study, after, last, _CHUNK))
            yield from chunk
            if len(chunk) < _CHUNK:
                return
            after = chunk[-1].seq

    def trials(self, study: int) -> Iterator[TrialRow]:
        """Yield the trials of a study in order; holds no lock between chunks."""
        last = 0
        while True:
            chosen = sa.select(*_TRIAL_COLUMNS).where(trials.c.study_id == study, trials.c.id > last)
            with self._database.transaction() as connection:
                rows = connection.execute(chosen.order_by(trials.c.id).limit(_CHUNK)).all()
            yield from map(_read_trial, rows)
            if len(rows) < _CHUNK:
                return
            last = rows[-1].id

    def snapshots(self, study: int) -> Iterator[tuple[int, str]]:
        """Yield the snapshots of a study, each with the number of its event, the newest first."""
        chosen = sa.select(snapshots.c.seq, snapshots.c.state).where(snapshots.c.study_id == study)
        with self._database.transaction() as connection:
            rows = connection.execute(chosen.order_by(snapshots.c.seq.desc())).all()
        return ((row.seq, row.state) for row in rows)

    def add_snapshot(self, study: int, seq: int, state: str) -> None:
        """Keep a snapshot in place of the oldest, unless the study was deleted meanwhile."""
        with self._database.transaction(writes=True) as connection:
            if _lock(connection, study) is not None:
                SqlTransaction(connection, study).add_snapshot(seq, state)


def _select_study(connection: Connection, condition: sa.ColumnElement[bool], lock: bool = False) -> StudyRow | None:
    chosen = sa.select(studies).where(condition)
    row = connection.execute(chosen.with_for_update() if lock else chosen).one_or_none()
    return None if row is None else StudyRow(*row)


def _lock(connection: Connection, study: int) -> StudyRow | None:
    return _select_study(connection, studies.c.id == study, lock=True)


def _select_events(
    connection: Connection, study: int, after: int, last: int | None = None, most: int | None = None
) -> Iterator[StoredEvent]:
    columns = (events.c[name] for name in StoredEvent._fields)
    chosen = sa.select(*columns).where(events.c.study_id == study, events.c.seq > after)
    if last is not None:
        chosen = chosen.where(events.c.seq <= last)
    for row in connection.execute(chosen.order_by(events.c.seq).limit(most)):
        yield StoredEvent(*row)


def _read_trial(row: Any) -> TrialRow:
    return TrialRow(row.id, row.arm, row.state, row.reward, json.loads(row.costs), row.asked_at, row.told_at)
