"""Run pieces of a sweep on a Dask cluster. Needs distributed: pip install 'polyarm[cluster]'."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from polyarm.errors import InvalidInput, PolyarmError
from polyarm.experiments.grid import Entry, PieceResult, run_piece
from polyarm.experiments.store import code_version
from polyarm.rules.registry import load_explorer_source

if TYPE_CHECKING:
    from distributed import Client

#: The name of a cluster that the sweep starts on this machine, one process per core.
LOCAL = "local"
#: Seconds to wait for a scheduler to answer.
_PATIENCE = 15


class ClusterRunner:
    """Runs pieces on the workers of a scheduler (`tcp://host:port`), or of one started on this machine (`local`).

    A piece whose worker dies is run again elsewhere; the scheduler gives up on a piece that kills worker after worker.
    """

    def __init__(self, address: str) -> None:
        if address != LOCAL and "://" not in address:
            raise InvalidInput(f"cluster {address!r}: expected {LOCAL!r}, or an address such as tcp://scheduler:8786")
        try:
            import distributed  # noqa: F401, PLC0415  (an optional dependency)
        except ImportError:
            raise InvalidInput("a cluster needs distributed: pip install 'polyarm[cluster]'") from None
        self.address = address

    def run(
        self, pieces: Iterable[tuple[Entry, range]], on_runs: Callable[[int], None]
    ) -> Iterator[tuple[Entry, range, PieceResult]]:
        """Yield each piece as it ends; `on_runs(n)` is called when n more runs have ended."""
        from distributed import KilledWorker, as_completed  # noqa: PLC0415

        with self._connect() as client:
            waiting = {}
            for entry, seeds in pieces:
                future = client.submit(_run_there, _Parcel.of(entry), seeds, code_version(), pure=False)
                waiting[future] = (entry, seeds)
            for future in as_completed(list(waiting)):
                entry, seeds = waiting.pop(future)
                try:
                    result = future.result()
                except (KilledWorker, CancelledError) as error:
                    raise PolyarmError(
                        f"the cluster gave up on a piece of {entry.explorer}: {error}; finished pieces are kept"
                    ) from None
                yield entry, seeds, result
                on_runs(len(seeds))

    @contextmanager
    def _connect(self) -> Iterator["Client"]:
        from distributed import Client, LocalCluster  # noqa: PLC0415

        if self.address == LOCAL:
            with (
                LocalCluster(threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
                Client(cluster) as client,
            ):
                yield client
            return
        try:
            client = Client(self.address, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"cannot reach the cluster at {self.address}: {error}") from None
        with client:
            yield client


class _Parcel(NamedTuple):
    """An entry as it travels: without what was prepared here, with the text of the user's own explorer."""

    entry: Entry
    source: str | None

    @classmethod
    def of(cls, entry: Entry) -> "_Parcel":
        explorer = entry.prepared[1].explorer
        return cls(replace(entry, explorer=explorer.name), explorer.source)


def _run_there(parcel: _Parcel, seeds: range, wanted: str) -> PieceResult:
    """Run a piece on a worker; raises if it would compute something else than the sender."""
    if code_version() != wanted:
        raise InvalidInput(
            f"a worker of the cluster runs {code_version()}, but this machine {wanted}: install the same"
        )
    if parcel.source is not None:
        load_explorer_source(parcel.source, f"{parcel.entry.explorer}.py")
    if parcel.entry.prepared[1].explorer.source != parcel.source:
        # Another sweep has just loaded another file for the same name into this worker.
        raise PolyarmError(f"two sweeps on this cluster have different explorers named {parcel.entry.explorer!r}")
    return run_piece(parcel.entry, seeds)
