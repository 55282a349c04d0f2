"""Run pieces of a sweep in threads of this process: kernels run without the interpreter's lock."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from polyarm.experiments.grid import Entry, PieceResult, check_count, load_kernels, run_piece

#: Seconds between reports of progress while no piece ends.
_BEAT = 0.2


class _Cancelled(Exception):  # noqa: N818
    """Raised inside a thread to leave a piece unfinished."""


class ThreadRunner:
    """Runs pieces in this many threads (default: one per core)."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = check_count("workers", workers if workers is not None else (os.cpu_count() or 1))

    def run(
        self, pieces: Iterable[tuple[Entry, range]], on_runs: Callable[[int], None]
    ) -> Iterator[tuple[Entry, range, PieceResult]]:
        """Yield each piece as it ends; `on_runs(n)` is called from this thread when n more runs have ended."""
        watch = _Watch()
        with ThreadPoolExecutor(self.workers) as pool:
            waiting: dict[Future[PieceResult], tuple[Entry, range]] = {}
            try:
                loaded: Entry | None = None
                for entry, seeds in pieces:
                    if entry is not loaded:
                        load_kernels(entry)
                        loaded = entry
                    waiting[pool.submit(run_piece, entry, seeds, watch)] = (entry, seeds)
                    yield from _collect(waiting, timeout=0.0)
                    on_runs(watch.take())
                while waiting:
                    yield from _collect(waiting, timeout=_BEAT)
                    on_runs(watch.take())
            finally:
                watch.cancelled.set()
                for future in waiting:
                    future.cancel()


def _collect(
    waiting: dict[Future[PieceResult], tuple[Entry, range]], timeout: float
) -> Iterator[tuple[Entry, range, PieceResult]]:
    done, _ = wait(waiting, timeout, FIRST_COMPLETED)
    for future in sorted(done, key=lambda ended: ended.exception() is not None):  # finished pieces are not lost
        entry, seeds = waiting.pop(future)
        yield entry, seeds, future.result()


class _Watch:
    """Counts the runs of all threads, and ends those under way if the sweep is given up."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self._lock = threading.Lock()
        self._count = 0

    def check(self) -> None:
        if self.cancelled.is_set():
            raise _Cancelled

    def count_run(self) -> None:
        with self._lock:
            self._count += 1

    def take(self) -> int:
        with self._lock:
            count, self._count = self._count, 0
            return count
