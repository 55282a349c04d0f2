"""Bulk simulation over seeds, in threads; the result of a seed never depends on what runs beside it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from polyarm.engine.run import DEFAULT_HORIZON
from polyarm.environments.instances import Instance
from polyarm.experiments.grid import make_grid
from polyarm.experiments.results import Simulation
from polyarm.experiments.sweep import Progress, run_sweep
from polyarm.experiments.threads import ThreadRunner


def simulate(
    instances: str | Path | Instance | Iterable[str | Path | Instance],
    explorers: str | Path | Iterable[str | Path],
    *,
    seeds: int = 100,
    first_seed: int = 0,
    workers: int | None = None,
    horizon: int = DEFAULT_HORIZON,
    settings: Mapping[str, Any] | None = None,
    allow_infeasible: bool = False,
    progress: Progress | None = None,
) -> Simulation:
    """Run every explorer on every instance for `seeds` seeds, in `workers` threads (default: one per core).

    An explorer is a name, or the file of one's own; see docs/bring-your-own.md.
    `settings` are applied to every explorer, `delta` and `r` to the problems. `progress(done, total)` is called
    from this thread as runs end.
    """
    entries = make_grid(
        instances,
        explorers,
        [settings or {}],
        seeds=seeds,
        first_seed=first_seed,
        horizon=horizon,
        allow_infeasible=allow_infeasible,
        piece_size=1,  # nothing is stored: the threads may share the seeds evenly
    )
    return run_sweep(entries, runner=ThreadRunner(workers), progress=progress).simulation
