"""What studies need of a storage, whatever database is behind it.

Every change of a study happens in one transaction under the study's lock: all of it is stored, or nothing.
"""

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from polyarm.errors import Conflict
from polyarm.studies.events import Event, StoredEvent, make_event, write_payload
from polyarm.studies.projection import StoredTrial, StudyRow, TrialRow, project, trial_of

if TYPE_CHECKING:
    from polyarm.studies.sql.storage import SqlStorage

DEFAULT_STORAGE = "sqlite:///polyarm.db"
#: Names the storage where none is given.
STORAGE_VARIABLE = "POLYARM_STORAGE"


class Reply(NamedTuple):
    """What a request with a key was answered, both as text; a `lasting` one is never forgotten."""

    request: str
    reply: str
    at: str
    lasting: bool


class Token(NamedTuple):
    """A token of the service, without its secret; `scopes` are separated by commas."""

    id: int
    name: str
    scopes: str
    created_at: str
    revoked_at: str | None


class Transaction(Protocol):
    """A transaction on one study, under its lock: it reads and writes rows, and derives nothing."""

    def events_after(self, seq: int) -> Iterator[StoredEvent]:
        """Yield the stored events with a number above `seq`, in order."""

    def trials(self, numbers: Sequence[int]) -> list[TrialRow]:
        """Return those of these trials that exist."""

    def stored_trials(self) -> Iterator[StoredTrial]:
        """Yield every trial in order, unread: it may be damaged."""

    def find_reply(self, key: str) -> Reply | None:
        """Return what is kept under a key."""

    def add_reply(self, key: str, reply: Reply, forget_before: str) -> None:
        """Keep a reply; forget those from before some time, unless they are lasting."""

    def add_snapshot(self, seq: int, state: str) -> None:
        """Keep a snapshot in place of the oldest, unless there is one that is as new."""

    def save(
        self,
        study: StudyRow,
        added: Sequence[StoredEvent],
        new_trials: Sequence[StoredTrial],
        changed_trials: Sequence[StoredTrial],
    ) -> None:
        """Store what a writer has added."""


class Tokens(Protocol):
    """Who may use the service. Secrets come as hashes."""

    def add(self, name: str, hashed: str, scopes: str, at: str) -> None:
        """Add a token; raises `Conflict` if the name is taken."""

    def list(self) -> list[Token]:
        """Return every token that was ever added, the oldest first."""

    def revoke(self, name: str, at: str) -> None:
        """Revoke a token at once, and sign out whoever used it."""

    def find(self, hashed: str) -> Token | None:
        """Return a token that was not revoked."""

    def sign_in(self, token: int, hashed: str, now: str, until: str, most: int) -> None:
        """Add a log-in with a token; at most so many last, the newest."""

    def find_signed_in(self, hashed: str, now: str) -> Token | None:
        """Return the token of a log-in that lasts."""

    def sign_out(self, hashed: str) -> None:
        """End a log-in."""


class Storage(Protocol):
    """A database of studies. Failures of the database are raised as `StorageError`."""

    @property
    def address(self) -> str:
        """The address for people: without a password."""

    @property
    def tokens(self) -> Tokens:
        """Who may use the service."""

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""

    def check(self) -> None:
        """Raise if the database does not answer."""

    def create(self, name: str, at: str, statement: Mapping[str, Any]) -> AbstractContextManager["Writer"]:
        """Add a study and its first events if the block ends well; raises `Conflict` if the name is taken."""

    def write(self, study: int, at: str) -> AbstractContextManager["Writer"]:
        """Change a study if the block ends well; raises `UnknownStudy`."""

    def delete_study(self, study: int) -> None:
        """Remove a study with everything that belongs to it."""

    def find_study(self, name: str) -> StudyRow:
        """Return a study by name; raises `UnknownStudy`."""

    def read_study(self, study: int) -> StudyRow:
        """Return a study by number; raises `UnknownStudy`."""

    def list_studies(self) -> list[StudyRow]:
        """Return all studies by name."""

    def last_events(self, wanted: Sequence[int]) -> dict[int, int]:
        """Return the number of the last event of each of these studies that exists."""

    def events(self, study: int, after: int = 0, last: int | None = None) -> Iterator[StoredEvent]:
        """Yield the events with a number above `after`, up to `last`; holds no lock between chunks."""

    def trials(self, study: int) -> Iterator[TrialRow]:
        """Yield the trials of a study in order; holds no lock between chunks."""

    def snapshots(self, study: int) -> Iterator[tuple[int, str]]:
        """Yield the snapshots of a study, each with the number of its event, the newest first."""

    def add_snapshot(self, study: int, seq: int, state: str) -> None:
        """Keep a snapshot in place of the oldest, unless the study was deleted meanwhile."""


class Writer:
    """Changes one study: what it adds becomes visible all at once when its transaction ends, or not at all."""

    def __init__(self, transaction: Transaction, study: StudyRow, at: str) -> None:
        self._transaction = transaction
        self._trials: dict[int, TrialRow] = {}  # as far as they were looked at
        self._new: set[int] = set()
        self._changed: set[int] = set()
        self._events: list[StoredEvent] = []
        self.study = study  # as the events added so far leave it
        self.at = at

    @property
    def n_added(self) -> int:
        """How many events were added."""
        return len(self._events)

    def append(self, kind: str, payload: Mapping[str, Any]) -> Event:
        """Add an event to the log."""
        return self.add(make_event(self.study.last_digest, self.study.last_seq + 1, self.at, kind, payload))

    def add(self, stored: StoredEvent) -> Event:
        """Add an event that has its number and its seal, and change the rows that follow from it."""
        event = stored.read()
        number = trial_of(event)
        before = None if number is None or number > self.study.last_trial else self.trial(number)
        self.study, trial = project(event, self.study, before)
        self._events.append(stored)
        if trial is not None:
            self._trials[trial.id] = trial
            (self._new if before is None or trial.id in self._new else self._changed).add(trial.id)
        return event

    def trial(self, number: int) -> TrialRow | None:
        """Return a trial as the events added so far leave it, None if there is none."""
        if number not in self._trials:
            self.load_trials([number])
        return self._trials.get(number)

    def load_trials(self, numbers: Iterable[int]) -> None:
        """Look up many trials at once, before they are needed one by one."""
        found = self._transaction.trials([number for number in numbers if number not in self._trials])
        self._trials |= {row.id: row for row in found}

    def events_after(self, seq: int) -> Iterator[StoredEvent]:
        """Yield the events that others have added since `seq`; this transaction's own are not among them."""
        return self._transaction.events_after(seq)

    def stored_trials(self) -> Iterator[StoredTrial]:
        """Yield every stored trial in order."""
        return self._transaction.stored_trials()

    def recall(self, key: str, request: str) -> Any:
        """Return what was answered under a key, None if nothing was; raises if that was another request."""
        known = self._transaction.find_reply(key)
        if known is None:
            return None
        if known.request != request:
            raise Conflict(
                f"key {key!r} was used for another request before; nothing changed. Repeat a request with its own key, "
                "and give every new one a new key"
            )
        return json.loads(known.reply)

    def remember(self, key: str, request: str, reply: Any, forget_before: str, lasting: bool = False) -> None:
        """Keep an answer under a key; forget those from before some time, unless they are lasting."""
        self._transaction.add_reply(key, Reply(request, write_payload(reply), self.at, lasting), forget_before)

    def add_snapshot(self, state: str) -> None:
        """Keep a snapshot of the state after the events added so far."""
        self._transaction.add_snapshot(self.study.last_seq, state)

    def save(self) -> None:
        """Store everything that was added."""
        if self._events:
            new, changed = ([self._trials[number].store() for number in some] for some in (self._new, self._changed))
            self._transaction.save(self.study, self._events, new, changed)


_OPEN: dict[str, "SqlStorage"] = {}
_OPENING = threading.Lock()


def open_storage(url: str) -> Storage:
    """Return the storage at an address, one per process; its tables are created when there are none."""
    from polyarm.studies.sql.database import parse_address  # noqa: PLC0415  (it builds on this module)
    from polyarm.studies.sql.storage import SqlStorage  # noqa: PLC0415

    whole = parse_address(url).render_as_string(hide_password=False)
    with _OPENING:
        if whole in _OPEN and _OPEN[whole].is_gone:
            _OPEN.pop(whole).close()
        if whole not in _OPEN:
            _OPEN[whole] = SqlStorage(whole)
        return _OPEN[whole]


def storage_url(url: str | None) -> str:
    """Return an address, or the one that the environment names, or a file in this folder."""
    return url or os.environ.get(STORAGE_VARIABLE) or DEFAULT_STORAGE
