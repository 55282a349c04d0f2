"""A declared grid of explorations: instances x explorers x settings, over seeds, cut into pieces that can be run."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from polyarm.engine.plan import Plan
from polyarm.engine.run import DEFAULT_HORIZON, Exploration, RunRecord, check_horizon, plan_run
from polyarm.environments.instances import Instance, load_instance
from polyarm.errors import InvalidInput

#: Tables hold seeds as 64-bit integers.
_LARGEST_SEED = 2**62
#: A run is checked every so many pulls, so that one of millions can be given up half-way.
_SLICE = 50_000


@dataclass(frozen=True)
class Entry:
    """One cell of a grid as declared: what to run, before anything has run. An explorer is a name or a file.

    `piece_size` seeds are run, stored and shipped together.
    """

    instance: Instance
    explorer: str | Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 100
    first_seed: int = 0
    horizon: int = DEFAULT_HORIZON
    allow_infeasible: bool = False
    piece_size: int = 25

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        check_count("seeds", self.seeds)
        check_count("piece_size", self.piece_size)
        first = self.first_seed
        if isinstance(first, bool) or not isinstance(first, int | np.integer) or first < 0:
            raise InvalidInput(f"first_seed: expected a whole number, 0 or more, got {first!r}")
        if first > _LARGEST_SEED:
            raise InvalidInput(f"first_seed: expected at most {_LARGEST_SEED}, got {first}")

    @cached_property
    def prepared(self) -> tuple[Instance, Plan]:
        """The instance under the settings, and the explorer prepared for it; raises if they do not fit."""
        return plan_run(self.instance, self.explorer, self.settings, self.allow_infeasible)

    @property
    def wanted(self) -> range:
        """The seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)


def cut_pieces(seeds: Iterable[int], piece_size: int) -> list[range]:
    """Return ranges that hold every seed once, none longer than `piece_size`."""
    pieces: list[range] = []
    for seed in sorted(seeds):
        if pieces and seed == pieces[-1].stop and len(pieces[-1]) < piece_size:
            pieces[-1] = range(pieces[-1].start, seed + 1)
        else:
            pieces.append(range(seed, seed + 1))
    return pieces


class PieceResult(NamedTuple):
    """The runs of a piece, and the seconds they took."""

    runs: list[RunRecord]
    seconds: float


def make_grid(
    instances: str | Path | Instance | Iterable[str | Path | Instance],
    explorers: str | Path | Iterable[str | Path],
    settings: Sequence[Mapping[str, Any]] = ({},),
    **common: Any,
) -> list[Entry]:
    """Return one entry per instance, explorer and group of settings, in that order; `common` fields are shared."""
    return [
        Entry(i if isinstance(i, Instance) else load_instance(i), explorer, group, **common)
        for i in _as_list(instances)
        for explorer in _as_list(explorers)
        for group in settings
    ]


def load_kernels(entry: Entry) -> None:
    """Compile or load what an entry needs, before the clock and the threads start: compiling in threads is slow."""
    instance, plan = entry.prepared
    Exploration(instance, plan, entry.first_seed).advance_to(plan.problem.n_arms + 1)


class Watch(Protocol):
    """Watches runs under way."""

    def check(self) -> None:
        """Raise to give a run up; called every so many pulls."""

    def count_run(self) -> None:
        """Note that a run has ended."""


def run_piece(entry: Entry, seeds: range, watch: Watch | None = None) -> PieceResult:
    """Run some seeds of an entry; a seed gives the same run whatever runs beside it."""
    instance, plan = entry.prepared
    runs, seconds = [], 0.0
    for seed in seeds:
        exploration = Exploration(instance, plan, seed)
        start = time.perf_counter()
        _play_out(exploration, entry.horizon, watch)
        seconds += time.perf_counter() - start
        runs.append(exploration.record())
        if watch is not None:
            watch.count_run()
    return PieceResult(runs, seconds)


def _play_out(exploration: Exploration, horizon: int, watch: Watch | None) -> None:
    """Play to the end in slices, which do not change the run."""
    limit = 0
    while exploration.session.steps == limit < horizon:
        limit = min(limit + _SLICE, horizon)
        exploration.advance_to(limit)
        if watch is not None:
            watch.check()


def check_count(name: str, value: Any) -> int:
    """Return a whole number, 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name}: expected a whole number, 1 or more, got {value!r}")
    return int(value)


def _as_list(value: Any) -> Sequence[Any]:
    return [value] if isinstance(value, str | Path | Instance) else list(value)
