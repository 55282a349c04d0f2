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
    """Run every explorer on every instance, in threads.

    Args:
        instances: One or several: the name of a shipped instance, the TOML file of one, or an `Instance`.
        explorers: One or several: the name of an explorer, or the Python file of your own (docs/bring-your-own.md).
        seeds: How many runs of each explorer on each instance.
        first_seed: The seed of the first run, 0 or more; the others follow it.
        workers: How many threads; by default one per core.
        horizon: The most pulls of a run, by default 100,000: one that has not stopped by then is cut off.
        settings: Settings of every explorer, and `delta`, `r` and `noise` to change the problems; by default none.
        allow_infeasible: Accept instances whose true constraints no mix satisfies; by default they raise.
        progress: Called as `progress(done, total)` from this thread as runs end; by default nothing is.
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
