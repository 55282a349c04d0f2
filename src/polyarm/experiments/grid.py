"""A declared grid of explorations: instances x explorers x settings, over seeds, cut into pieces that can be run."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyarm.engine.plan import Plan
from polyarm.engine.run import DEFAULT_HORIZON, Exploration, RunRecord, check_horizon, plan_run
from polyarm.environments.instances import Instance, load_instance
from polyarm.errors import InvalidInput


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

    @cached_property
    def prepared(self) -> tuple[Instance, Plan]:
        """The instance under the settings, and the explorer made ready for it; raises when they do not fit."""
        return plan_run(self.instance, self.explorer, self.settings, self.allow_infeasible)

    def pieces(self) -> list[range]:
        """Return the seeds, cut at multiples of the piece size: a longer sweep finds the pieces of a shorter one."""
        end = self.first_seed + self.seeds
        cuts = [self.first_seed]
        while cuts[-1] < end:
            cuts.append(min(end, (cuts[-1] // self.piece_size + 1) * self.piece_size))
        return [range(low, high) for low, high in pairwise(cuts)]


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
    """Compile or load what an entry needs: outside the clock and outside the threads, where compiling is slow."""
    instance, plan = entry.prepared
    Exploration(instance, plan, entry.first_seed).advance_to(plan.problem.n_arms + 1)


def run_piece(entry: Entry, seeds: range, after_run: Callable[[], None] | None = None) -> PieceResult:
    """Run some seeds of an entry; a seed gives the same run whatever runs beside it."""
    instance, plan = entry.prepared
    runs, seconds = [], 0.0
    for seed in seeds:
        exploration = Exploration(instance, plan, seed)
        start = time.perf_counter()
        exploration.advance_to(entry.horizon)
        seconds += time.perf_counter() - start
        runs.append(exploration.record())
        if after_run is not None:
            after_run()
    return PieceResult(runs, seconds)


def check_count(name: str, value: Any) -> int:
    """Return a whole number, 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name}: expected a whole number, 1 or more, got {value!r}")
    return int(value)


def _as_list(value: Any) -> Sequence[Any]:
    return [value] if isinstance(value, str | Path | Instance) else list(value)
