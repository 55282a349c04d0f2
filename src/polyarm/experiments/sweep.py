"""Run a declared grid; finished pieces are kept, so that a killed sweep goes on where it was."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from polyarm.engine.run import RunRecord
from polyarm.errors import InvalidInput
from polyarm.experiments.cluster import ClusterRunner
from polyarm.experiments.grid import Entry, PieceResult, cut_pieces
from polyarm.experiments.results import Cell, Simulation
from polyarm.experiments.store import PieceStore, entry_key, hold_folder
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
    """The runs of a grid: `steps` were computed now in `seconds`, and `reused` runs were found on disk."""

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
    _check_explorers(entries)
    if folder is None:
        return _Collection(entries, None, progress).fill(runner or ThreadRunner())
    with hold_folder(Path(folder)):
        return _Collection(entries, PieceStore(Path(folder)), progress).fill(runner or ThreadRunner())


def _check_explorers(entries: Iterable[Entry]) -> None:
    """Raise, before anything runs, for what cannot run and for two explorers of the same name."""
    sources: dict[str, str | None] = {}
    for entry in entries:
        explorer = entry.prepared[1].explorer
        if sources.setdefault(explorer.name, explorer.source) != explorer.source:
            raise InvalidInput(f"explorers: two different files name their explorer {explorer.name!r}; rename one")


class _Collection:
    """The runs of a grid as they come in, by key and seed. Entries that declare the same runs share them."""

    def __init__(self, entries: Sequence[Entry], store: PieceStore | None, progress: Progress | None) -> None:
        self._keys = {id(entry): entry_key(entry) for entry in entries}
        self._entries = entries
        self._store = store
        self._progress = progress
        self._done = 0
        self._found: dict[str, dict[int, RunRecord]] = {}
        self._seconds = dict.fromkeys(self._keys.values(), 0.0)
        self._total = len({(self._keys[id(entry)], seed) for entry in entries for seed in entry.wanted})

    def fill(self, runner: Runner) -> SweepOutcome:
        missing = self._find_missing()
        self._done = reused = self._total - sum(len(seeds) for _, seeds in missing)
        self._tell_progress()
        start = time.perf_counter()
        steps = 0
        for entry, seeds, result in runner.run(missing, self._advance):
            key = self._keys[id(entry)]
            if self._store is not None:
                self._store.write(key, seeds, result.runs)
            self._found[key] |= {run.seed: run for run in result.runs}
            self._seconds[key] += result.seconds
            steps += sum(run.steps for run in result.runs)
        seconds = time.perf_counter() - start
        return SweepOutcome(Simulation(tuple(map(self._cell, self._entries))), steps, seconds, reused)

    def _find_missing(self) -> list[tuple[Entry, range]]:
        """Take the runs that are on disk, and list the others in pieces."""
        missing: list[tuple[Entry, range]] = []
        claimed: dict[str, set[int]] = {}
        for entry in self._entries:
            key = self._keys[id(entry)]
            if key not in self._found:
                self._found[key] = {} if self._store is None else self._store.read(key)
                claimed[key] = set(self._found[key])
            missing += [(entry, seeds) for seeds in cut_pieces(set(entry.wanted) - claimed[key], entry.piece_size)]
            claimed[key] |= set(entry.wanted)
        return missing

    def _advance(self, runs: int) -> None:
        if runs > 0:
            self._done += runs
            self._tell_progress()

    def _tell_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._total)

    def _cell(self, entry: Entry) -> Cell:
        instance, plan = entry.prepared
        key = self._keys[id(entry)]
        runs = tuple(self._found[key][seed] for seed in entry.wanted)
        steps = sum(run.steps for run in runs)
        return Cell(
            instance.name,
            plan.explorer.name,
            plan.recorded_settings(),
            entry.horizon,
            runs,
            1e6 * self._seconds[key] / steps if self._store is None else None,
            entry.settings,
        )
