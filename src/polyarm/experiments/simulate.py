"""Bulk simulation over seeds, in threads; the result of a seed never depends on what runs beside it."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyarm.engine.plan import Plan
from polyarm.engine.run import DEFAULT_HORIZON, HORIZON, Exploration, RunRecord, check_horizon, plan_run
from polyarm.environments.instances import Instance, load_instance
from polyarm.errors import InvalidInput

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Cell:
    """All runs of one explorer on one instance, in the order of their seeds."""

    instance: str
    explorer: str
    settings: dict[str, Any]
    horizon: int
    runs: tuple[RunRecord, ...]
    us_per_step: float

    def summary(self) -> dict[str, Any]:
        """Return one row of the table; a quantile or mean that is infinite or undefined is None.

        Runs that hit the horizon count as infinity in quantiles and are left out of the mean.
        """
        stops = np.array([run.steps if run.status != HORIZON else np.inf for run in self.runs])
        finished = stops[np.isfinite(stops)]
        return {
            "instance": self.instance,
            "explorer": self.explorer,
            "settings": self.settings,
            "seeds": len(self.runs),
            "stopped": int(finished.size),
            "horizon_hit": len(self.runs) - int(finished.size),
            "median_stop": _quantile(stops, 0.5),
            "mean_stop": float(finished.mean()) if finished.size else None,
            "q25_stop": _quantile(stops, 0.25),
            "q75_stop": _quantile(stops, 0.75),
            "feasible_rate": float(np.mean([run.feasible for run in self.runs])),
            "correct_rate": float(np.mean([run.correct for run in self.runs])),
            "median_violations": float(np.median([run.policy_violations for run in self.runs])),
            "median_allocation_violations": float(np.median([run.allocation_violations for run in self.runs])),
            "median_excess": float(np.median([run.excess for run in self.runs])),
            "us_per_step": self.us_per_step,
        }


@dataclass(frozen=True)
class Simulation:
    """The outcome of `simulate`."""

    cells: tuple[Cell, ...]

    def table(self) -> list[dict[str, Any]]:
        """Return one row per (instance, explorer)."""
        return [cell.summary() for cell in self.cells]

    def runs(self) -> Iterator[dict[str, Any]]:
        """Yield one flat row per seed; no timings, so that equal seeds give equal rows."""
        for cell in self.cells:
            for run in cell.runs:
                yield {
                    "instance": cell.instance,
                    "explorer": cell.explorer,
                    "settings": json.dumps(cell.settings, sort_keys=True),
                    "horizon": cell.horizon,
                    **{
                        name: value.tolist() if isinstance(value, np.ndarray) else value
                        for name, value in vars(run).items()
                    },
                }

    def to_parquet(self, path: str | Path) -> None:
        """Write one row per seed; the file appears whole or not at all."""
        target = Path(path)
        check_parquet_target(target)
        import pyarrow as pa  # noqa: PLC0415  (an optional dependency)
        from pyarrow import parquet  # noqa: PLC0415

        partial = target.with_name(target.name + ".partial")
        try:
            parquet.write_table(pa.Table.from_pylist(list(self.runs())), partial)
            os.replace(partial, target)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise InvalidInput(f"cannot write {target}: {error}") from None


def check_parquet_target(path: Path) -> None:
    """Raise, before any work is done, when a Parquet file cannot be written there."""
    if path.is_dir():
        raise InvalidInput(f"{path}: expected a file name, but this is a folder")
    if not path.resolve().parent.is_dir():
        raise InvalidInput(f"{path}: the folder {path.resolve().parent} does not exist")
    try:
        import pyarrow.parquet  # noqa: F401, PLC0415
    except ImportError:
        raise InvalidInput("writing Parquet needs pyarrow: pip install 'polyarm[parquet]'") from None


def _quantile(values: Any, q: float) -> float | None:
    """Linear-interpolation quantile of numbers that may be infinite; None when it is infinite."""
    ordered = np.sort(values)
    position = q * (ordered.size - 1)
    below = int(np.floor(position))
    weight = position - below
    result = ordered[below]
    if weight > 0.0:
        result += weight * (ordered[below + 1] - ordered[below]) if np.isfinite(ordered[below + 1]) else np.inf
    return float(result) if np.isfinite(result) else None


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
    from this thread after each run.
    """
    horizon = check_horizon(horizon)
    workers = _check_count("workers", workers if workers is not None else (os.cpu_count() or 1))
    seeds = _check_count("seeds", seeds)
    plans = [
        plan_run(i if isinstance(i, Instance) else load_instance(i), explorer, settings or {}, allow_infeasible)
        for i in _as_list(instances)
        for explorer in _as_list(explorers)
    ]
    _require_own_names([plan for _, plan in plans])
    total = len(plans) * seeds
    cells = []
    with ThreadPoolExecutor(workers) as pool:
        for index, (instance, plan) in enumerate(plans):
            # The first call compiles or loads the kernels: outside the clock and outside the threads.
            Exploration(instance, plan, first_seed).advance_to(plan.problem.n_arms + 1)

            def run(seed: int, instance: Instance = instance, plan: Plan = plan) -> tuple[RunRecord, float]:
                exploration = Exploration(instance, plan, seed)
                start = time.perf_counter()
                exploration.advance_to(horizon)
                return exploration.record(), time.perf_counter() - start

            records, seconds = [], 0.0
            for record, elapsed in pool.map(run, range(first_seed, first_seed + seeds)):
                records.append(record)
                seconds += elapsed
                if progress is not None:
                    progress(index * seeds + len(records), total)
            steps = sum(record.steps for record in records)
            recorded = plan.recorded_settings()
            cells.append(
                Cell(
                    instance.name,
                    plan.explorer.name,
                    recorded,
                    horizon,
                    tuple(records),
                    1e6 * seconds / steps,
                )
            )
    return Simulation(tuple(cells))


def _require_own_names(plans: Sequence[Plan]) -> None:
    """Raise when two explorers have one name: nobody could tell their rows apart."""
    sources: dict[str, str | None] = {}
    for explorer in (plan.explorer for plan in plans):
        if sources.setdefault(explorer.name, explorer.source) != explorer.source:
            raise InvalidInput(f"explorers: two different files name their explorer {explorer.name!r}; rename one")


def _as_list(value: Any) -> Sequence[Any]:
    return [value] if isinstance(value, str | Path | Instance) else list(value)


def _check_count(field: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{field}: expected a whole number, 1 or more, got {value!r}")
    return int(value)
