"""The log of a study: what happened, in order, each entry sealed to the one before it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from polyarm.errors import InvalidInput

# Kinds of events, with what their payload holds.
CREATED = "created"  # what the study was stated to be
ASKED = "asked"  # trial, arm, lease_until, route
TOLD = "told"  # trial, arm, reward and costs as known by now, complete
OBSERVED = "observed"  # trial, arm, reward, costs: nobody had asked
EXPIRED = "expired"  # trial, by: "lease", which ran out, or "hand"
TRIPPED = "tripped"  # excess: by how much the allocation surely breaks each constraint
STOPPED = "stopped"  # reason
RESUMED = "resumed"  # acknowledged: the constraints whose alarm was taken note of
ARCHIVED = "archived"

#: What the first entry is sealed to.
GENESIS = "0" * 64


class Event(NamedTuple):
    """One entry: its number in the study, from 1, when it was made (UTC), and its seal."""

    seq: int
    at: str
    kind: str
    payload: Mapping[str, Any]
    digest: str


class StoredEvent(NamedTuple):
    """An entry as it is stored, its payload unread."""

    seq: int
    at: str
    kind: str
    payload: str
    digest: str

    def read(self) -> Event:
        """Return the entry, or raise when it is damaged."""
        try:
            payload = json.loads(self.payload)
        except ValueError as error:
            raise InvalidInput(f"event {self.seq} is damaged: its payload is not JSON: {error}") from None
        return Event(self.seq, self.at, self.kind, payload, self.digest)


def make_event(before: str, seq: int, at: str, kind: str, payload: Mapping[str, Any]) -> StoredEvent:
    """Return an entry sealed to the one with the digest `before`."""
    text = write_payload(payload)
    return StoredEvent(seq, at, kind, text, seal(before, seq, at, kind, text))


def write_payload(payload: Mapping[str, Any]) -> str:
    """Return a payload as text, the same for equal payloads; floats come back bit for bit."""
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), allow_nan=False)


def seal(before: str, seq: int, at: str, kind: str, payload: str) -> str:
    """Return the digest of an entry, which covers all entries before it."""
    return hashlib.sha256("\n".join((before, str(seq), at, kind, payload)).encode()).hexdigest()
