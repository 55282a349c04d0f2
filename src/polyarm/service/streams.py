"""Server-sent events: what happens in a study, as it happens, whichever server or program made it happen."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from polyarm.errors import StorageError
from polyarm.service.problems import Refusal
from polyarm.studies.schema import studies
from polyarm.studies.storage import Storage

#: Seconds between two looks at the storage.
_PACE = 0.25
#: Seconds between two signs of life: what keeps proxies from hanging up, and notices readers who have gone.
_HEARTBEAT = 15.0
#: A display is told of changes at most this often, in seconds.
_CALM = 1.0
#: Stands for the last event of a study that is no more.
_DELETED = -1
#: Events sent before looking at the storage again.
_CHUNK = 500


class Streams:
    """All open streams of a server, fed by one look at the storage for all."""

    def __init__(self, storage: Storage, most: int, stopping: Callable[[], bool]) -> None:
        self._storage, self._most, self._stopping = storage, most, stopping
        self._readers: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._watcher: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many streams are open."""
        return sum(self._readers.values())

    def changes(self, study_id: int) -> StreamingResponse:
        """Tell a display, at once and then at most once a second, that there is something new."""
        return self._respond(study_id, self._tell_changes(study_id))

    def events(self, study_id: int, after: int) -> StreamingResponse:
        """Send every event of the log beyond a number."""
        return self._respond(study_id, self._tell_events(study_id, after))

    def _respond(self, study_id: int, messages: AsyncIterator[str]) -> StreamingResponse:
        if self.count >= self._most:
            raise Refusal(503, f"{self._most} streams are open already; close some", {"Retry-After": "10"})
        return StreamingResponse(
            self._counted(study_id, messages),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _counted(self, study_id: int, messages: AsyncIterator[str]) -> AsyncIterator[str]:
        self._readers[study_id] = self._readers.get(study_id, 0) + 1
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch())
        try:
            async for message in messages:
                yield message
        finally:
            self._readers[study_id] -= 1
            if not self._readers[study_id]:
                del self._readers[study_id]
                self._last.pop(study_id, None)

    async def _watch(self) -> None:
        """Look at the studies that somebody reads, until nobody does."""
        while self._readers and not self._stopping():
            try:
                self._last.update(await run_in_threadpool(self._look, list(self._readers)))
            except StorageError:
                await asyncio.sleep(1.0)  # readers hear nothing new until it is back
            await asyncio.sleep(_PACE)

    def _look(self, ids: list[int]) -> dict[int, int]:
        wanted = sa.select(studies.c.id, studies.c.last_seq).where(studies.c.id.in_(ids))
        with self._storage.transaction() as connection:
            found = {row.id: row.last_seq for row in connection.execute(wanted)}
        return {number: found.get(number, _DELETED) for number in ids}

    async def _beyond(self, study_id: int, seq: int) -> AsyncIterator[int]:
        """Yield the number of the last event whenever it is beyond the last one yielded; 0 as a sign of life."""
        silent = 0.0
        while not self._stopping():
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

    async def _tell_changes(self, study_id: int) -> AsyncIterator[str]:
        async for seq in self._beyond(study_id, 0):
            yield _message("changed", {"seq": seq}, seq) if seq else _ALIVE
            await asyncio.sleep(_CALM - _PACE)

    async def _tell_events(self, study_id: int, after: int) -> AsyncIterator[str]:
        yield _ALIVE
        async for last in self._beyond(study_id, after):
            if not last:
                yield _ALIVE
            while after < last and not self._stopping():
                chunk = await run_in_threadpool(self._storage.read_events, study_id, after, min(last, after + _CHUNK))
                for event in chunk:
                    data = {"seq": event.seq, "at": event.at, "kind": event.kind, "payload": event.payload}
                    yield _message(event.kind, data, event.seq)
                if not chunk:
                    return  # deleted meanwhile
                after = chunk[-1].seq


_ALIVE = ": alive\n\n"


def _message(kind: str, data: dict[str, Any], number: int) -> str:
    return f"event: {kind}\nid: {number}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
