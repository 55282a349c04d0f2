"""Run a declared grid; what is finished is kept, so that a killed sweep goes on where it was."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from polyarm.engine.run import RunRecord
from polyarm.errors import InvalidInput
from polyarm.experiments.cluster import ClusterRunner
from polyarm.experiments.grid import Entry, PieceResult
from polyarm.experiments.results import Cell, Simulation
from polyarm.experiments.store import PieceStore
from polyarm.experiments.threads import ThreadRunner

#: Called with (runs done, runs in all).
Progress = Callable[[int, int], None]


class Runner(Protocol):
    """Where pieces are run: threads, or a cluster."""

    def run(
        self, pieces: Iterable[tuple[Entry, range]], on_runs: Callable[[int], None]
    ) -> Iterator[tuple[Entry, range, PieceResult]]:
        """Yield each piece as it ends, in any order; `on_runs(n)` tells that n more runs have ended."""
        ...


@dataclass(frozen=True)
class SweepOutcome:
    """The runs of a grid, and what it took this time: `steps` computed now in `seconds`, and `reused` runs found."""

    simulation: Simulation
    steps: int
    seconds: float
    reused: int


def choose_runner(workers: int | None, cluster: str | None) -> Runner:
    """Return threads of this process, or the workers of a cluster if one is given."""
    if cluster is None:
        return ThreadRunner(workers)
    if workers is not None:
        raise InvalidInput("workers are threads of this machine; a cluster has its own: give one or the other")
    return ClusterRunner(cluster)


def run_sweep(
    entries: Sequence[Entry],
    folder: str | Path | None = None,
    *,
    runner: Runner | None = None,
    progress: Progress | None = None,
) -> SweepOutcome:
    """Run every entry, or read what an earlier run of the same grid left in `folder`.

    The runs do not depend on the runner, on how often the sweep was interrupted, or on the order in which pieces end.
    """
    for entry in entries:
        _ = entry.prepared  # raises for what cannot run, before anything does
    if folder is None:
        return _Collection(entries, None, progress).fill(runner or ThreadRunner())
    store = PieceStore(Path(folder))
    with store.hold():
        return _Collection(entries, store, progress).fill(runner or ThreadRunner())


class _Collection:
    """The runs of a grid as they come in."""

    def __init__(self, entries: Sequence[Entry], store: PieceStore | None, progress: Progress | None) -> None:
        self._entries = entries
        self._store = store
        self._progress = progress
        self._total = sum(entry.seeds for entry in entries)
        self._done = 0
        self._found: dict[tuple[int, range], list[RunRecord]] = {}
        self._seconds = dict.fromkeys(map(id, entries), 0.0)

    def fill(self, runner: Runner) -> SweepOutcome:
        missing = list(self._read_finished())
        reused = self._done
        self._advance(0)
        start = time.perf_counter()
        steps = 0
        for entry, seeds, result in runner.run(missing, self._advance):
            if self._store is not None:
                self._store.write(entry, seeds, result.runs)
            self._found[id(entry), seeds] = result.runs
            self._seconds[id(entry)] += result.seconds
            steps += sum(run.steps for run in result.runs)
        seconds = time.perf_counter() - start
        return SweepOutcome(Simulation(tuple(map(self._cell, self._entries))), steps, seconds, reused)

    def _read_finished(self) -> Iterator[tuple[Entry, range]]:
        """Take what is on disk; yield the pieces that are not."""
        for entry in self._entries:
            for seeds in entry.pieces():
                runs = None if self._store is None else self._store.read(entry, seeds)
                if runs is None:
                    yield entry, seeds
                else:
                    self._found[id(entry), seeds] = runs
                    self._done += len(runs)

    def _advance(self, runs: int) -> None:
        self._done += runs
        if self._progress is not None:
            self._progress(self._done, self._total)

    def _cell(self, entry: Entry) -> Cell:
        instance, plan = entry.prepared
        runs = tuple(run for seeds in entry.pieces() for run in self._found[id(entry), seeds])
        steps = sum(run.steps for run in runs)
        return Cell(
            instance.name,
            plan.explorer.name,
            plan.recorded_settings(),
            entry.horizon,
            runs,
            1e6 * self._seconds[id(entry)] / steps if self._store is None else None,
            entry.settings,
        )
