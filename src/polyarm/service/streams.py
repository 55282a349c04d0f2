"""Server-sent events: what happens in a study, as it happens, whichever server or program made it happen."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from polyarm.errors import StorageError
from polyarm.service.access import Caller
from polyarm.service.problems import Refusal
from polyarm.studies.events import Event
from polyarm.studies.storage import Storage

#: Seconds between two looks at the storage.
_PACE = 0.25
#: Seconds between two signs of life, which keep proxies from hanging up and notice readers who have gone.
_HEARTBEAT = 15.0
#: Seconds between two looks at whether a reader may still read.
_DOUBT = 2.0
#: A display is told of changes at most this often, in seconds.
_CALM = 1.0
#: Stands for the last event of a deleted study.
_DELETED = -1
#: Events sent before looking at the storage again.
_CHUNK = 500


#: Tells whether a reader may still read: a token may have been revoked meanwhile.
Admitted = Callable[[], bool]


class _Stream(StreamingResponse):
    """Messages, and what to do once nobody reads them any more."""

    def __init__(self, messages: AsyncIterator[str], release: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(messages, media_type="text/event-stream", headers=headers)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages until they end or the reader has gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


class Streams:
    """All open streams of a server; one task watches the storage for them all."""

    def __init__(self, storage: Storage, most: int, stopping: Callable[[], bool]) -> None:
        self._storage, self._most, self._stopping = storage, most, stopping
        self._readers: Counter[int] = Counter()
        self._callers: Counter[int | None] = Counter()
        self._last: dict[int, int] = {}
        self._watcher: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many streams are open."""
        return sum(self._readers.values())

    def changes(self, study_id: int, caller: Caller, admitted: Admitted) -> StreamingResponse:
        """Tell a display, at once and then at most once a second, that something has changed."""
        return self._respond(study_id, caller, self._tell_changes(study_id, admitted))

    def events(self, study_id: int, after: int, caller: Caller, admitted: Admitted) -> StreamingResponse:
        """Send every event of the log beyond a number, as long as the reader is admitted."""
        return self._respond(study_id, caller, self._tell_events(study_id, after, admitted))

    def _respond(self, study_id: int, caller: Caller, messages: AsyncIterator[str]) -> StreamingResponse:
        mine = self._callers[caller.token_id]
        # One token must leave some streams for others; without tokens nobody else is there.
        if self.count >= self._most or (caller.token_id is not None and mine >= max(1, self._most // 4)):
            raise Refusal(
                503, f"too many streams are open already ({mine} of yours); close some", {"Retry-After": "10"}
            )
        self._readers[study_id] += 1
        self._callers[caller.token_id] += 1
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch())

        def release() -> None:
            self._callers[caller.token_id] -= 1
            self._readers[study_id] -= 1
            if not self._readers[study_id]:
                del self._readers[study_id]
                self._last.pop(study_id, None)

        return _Stream(messages, release)

    async def _watch(self) -> None:
        """Watch the studies that have readers, until there are none."""
        while self._readers and not self._stopping():
            try:
                self._last.update(await run_in_threadpool(self._look, list(self._readers)))
            except StorageError:
                await asyncio.sleep(1.0)  # nothing new until it answers again
            await asyncio.sleep(_PACE)

    def _look(self, ids: list[int]) -> dict[int, int]:
        found = self._storage.last_events(ids)
        return {number: found.get(number, _DELETED) for number in ids}

    def _read(self, study_id: int, after: int, last: int) -> list[Event]:
        return [event.read() for event in self._storage.events(study_id, after, last)]

    async def _beyond(self, study_id: int, seq: int, admitted: Admitted) -> AsyncIterator[int]:
        """Yield the number of the last event whenever it is beyond the last one yielded; 0 as a sign of life."""
        silent, looked = 0.0, time.monotonic()
        while not self._stopping():
            if time.monotonic() - looked > _DOUBT:
                looked = time.monotonic()
                if not await run_in_threadpool(admitted):
                    return
            last = self._last.get(study_id, seq)
            if last == _DELETED:
                return
            if last > seq:
                seq, silent = last, 0.0
                yield seq
            elif silent >= _HEARTBEAT:
                silent = 0.0
                yield 0
            await asyncio.sleep(_PACE)
            silent += _PACE

    async def _tell_changes(self, study_id: int, admitted: Admitted) -> AsyncIterator[str]:
        async for seq in self._beyond(study_id, 0, admitted):
            yield _message("changed", {"seq": seq}, seq) if seq else _ALIVE
            await asyncio.sleep(_CALM - _PACE)

    async def _tell_events(self, study_id: int, after: int, admitted: Admitted) -> AsyncIterator[str]:
        yield _ALIVE
        async for last in self._beyond(study_id, after, admitted):
            if not last:
                yield _ALIVE
            while after < last and not self._stopping():
                chunk = await run_in_threadpool(self._read, study_id, after, min(last, after + _CHUNK))
                for event in chunk:
                    data = {"seq": event.seq, "at": event.at, "kind": event.kind, "payload": event.payload}
                    yield _message(event.kind, data, event.seq)
                if not chunk:
                    return  # deleted meanwhile
                after = chunk[-1].seq


_ALIVE = ": alive\n\n"


def _message(kind: str, data: dict[str, Any], number: int) -> str:
    return f"event: {kind}\nid: {number}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
