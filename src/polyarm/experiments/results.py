"""What many explorations showed: runs by cell, their summary, and their table on disk."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyarm._html import html_table
from polyarm.engine.run import HORIZON, RunRecord
from polyarm.errors import InvalidInput
from polyarm.figures import COLOURS, finish_figure, new_figure, require_plots, tidy
from polyarm.files import check_place, replaced
from polyarm.tables import require_package

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Cell:
    """All runs of one explorer on one instance, in the order of their seeds.

    `given` are the settings as declared, `settings` all that were in force.
    `us_per_step` is None when the runs were read from disk: tables hold no timings.
    """

    instance: str
    explorer: str
    settings: dict[str, Any]
    horizon: int
    runs: tuple[RunRecord, ...]
    us_per_step: float | None
    given: Mapping[str, Any] = field(default_factory=dict)

    def stops(self) -> list[float]:
        """Return when each run stopped; infinity for one that hit the horizon."""
        return [run.steps if run.status != HORIZON else np.inf for run in self.runs]

    def summary(self) -> dict[str, Any]:
        """Return one row of the table; a quantile or mean that is infinite or undefined is None.

        Runs that hit the horizon count as infinity in quantiles and are left out of the mean.
        """
        stops = np.array(self.stops())
        finished = stops[np.isfinite(stops)]
        return {
            "instance": self.instance,
            "explorer": self.explorer,
            "given": dict(self.given),
            "settings": self.settings,
            "seeds": len(self.runs),
            "stopped": int(finished.size),
            "horizon_hit": len(self.runs) - int(finished.size),
            "median_stop": quantile(stops, 0.5),
            "mean_stop": float(finished.mean()) if finished.size else None,
            "q25_stop": quantile(stops, 0.25),
            "q75_stop": quantile(stops, 0.75),
            "feasible_rate": float(np.mean([run.feasible for run in self.runs])),
            "correct_rate": float(np.mean([run.correct for run in self.runs])),
            "median_violations": float(np.median([run.policy_violations for run in self.runs])),
            "median_allocation_violations": float(np.median([run.allocation_violations for run in self.runs])),
            "median_excess": float(np.median([run.excess for run in self.runs])),
            "us_per_step": self.us_per_step,
        }


@dataclass(frozen=True)
class Simulation:
    """The outcome of `simulate` or of a sweep."""

    cells: tuple[Cell, ...]

    def table(self) -> list[dict[str, Any]]:
        """Return one row per cell."""
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
                    **describe_run(run),
                }

    def to_pandas(self) -> Any:
        """Return one row per seed as a pandas DataFrame; needs pandas."""
        return require_package("pandas").DataFrame(list(self.runs()))

    def to_polars(self) -> Any:
        """Return one row per seed as a polars DataFrame; needs polars."""
        return require_package("polars").DataFrame(list(self.runs()), infer_schema_length=None)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw when the runs of each cell stopped, and how many answers were truly feasible and correct.

        Args:
            path: A picture file to write, too: `.png`, `.svg` or `.pdf`; by default none.
        """
        require_plots()
        figure = new_figure(10.0, 1.2 + 0.45 * len(self.cells))
        stops, rates = figure.subplots(1, 2, sharey=True)
        labels = [f"{cell.explorer}, {cell.instance}" for cell in self.cells]
        places = np.arange(len(labels))
        finished = [[stop for stop in cell.stops() if np.isfinite(stop)] or [np.nan] for cell in self.cells]
        stops.boxplot(finished, orientation="horizontal", positions=places, widths=0.6)
        stops.set_xscale("log")
        stops.set_xlabel("pulls until the stop (runs that stopped)")
        rows = self.table()
        for name, shift, colour in (("feasible", -0.18, COLOURS[0]), ("correct", 0.18, COLOURS[2])):
            rates.barh(places + shift, [100 * row[f"{name}_rate"] for row in rows], 0.34, color=colour, label=name)
        rates.set_xlabel("percent of runs")
        rates.set_xlim(0.0, 100.0)
        rates.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        stops.set_yticks(places, labels)
        stops.invert_yaxis()
        tidy(stops)
        tidy(rates)
        return finish_figure(figure, path)

    def _repr_html_(self) -> str:
        shown = ("instance", "explorer", "seeds", "horizon_hit", "median_stop", "feasible_rate", "correct_rate")
        rows = [["" if row[name] is None else row[name] for name in shown] for row in self.table()]
        return html_table("Simulation", [name.replace("_", " ") for name in shown], rows)

    def to_parquet(self, path: str | Path) -> None:
        """Write one row per seed; the file appears whole or not at all.

        Args:
            path: The file to write; one that exists is replaced.
        """
        target = Path(path)
        check_parquet_target(target)
        write_parquet(self.runs(), target, _with_cell_columns(run_schema()))


def describe_run(run: RunRecord) -> dict[str, Any]:
    """Return a run as plain types."""
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(run).items()}


def restore_run(row: dict[str, Any]) -> RunRecord:
    """Return the run that `describe_run` described."""
    arrays = {name: None if row[name] is None else np.array(row[name]) for name in ("policy", "pulls")}
    return RunRecord(**{**row, **arrays})


def run_schema() -> "pa.Schema":
    """Return the columns of `describe_run`: the same types whatever the rows happen to hold."""
    import pyarrow as pa  # noqa: PLC0415  (an optional dependency)

    return pa.schema(
        {
            "seed": pa.int64(),
            "status": pa.string(),
            "steps": pa.int64(),
            "policy": pa.list_(pa.float64()),
            "feasible": pa.bool_(),
            "correct": pa.bool_(),
            "policy_violations": pa.int64(),
            "allocation_violations": pa.int64(),
            "excess": pa.float64(),
            "pulls": pa.list_(pa.float64()),
        }
    )


def _with_cell_columns(runs: "pa.Schema") -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415

    cell = {"instance": pa.string(), "explorer": pa.string(), "settings": pa.string(), "horizon": pa.int64()}
    return pa.schema([*pa.schema(cell), *runs])


def make_parquet(rows: Iterable[dict[str, Any]], schema: "pa.Schema | None" = None) -> bytes:
    """Return a Parquet file of rows of plain types; equal rows make equal bytes."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), sink)
    return bytes(sink.getvalue())


def write_parquet(rows: Iterable[dict[str, Any]], path: Path, schema: "pa.Schema | None" = None) -> None:
    """Write rows of plain types to a file."""
    write_whole(path, make_parquet(rows, schema))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    try:
        with replaced(path) as file:
            file.write(content)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error}") from None


def check_parquet_target(path: Path) -> None:
    """Raise, before any work is done, when a Parquet file cannot be written there."""
    check_place(path)
    require_parquet()


def require_parquet() -> None:
    """Raise when Parquet cannot be written at all."""
    try:
        import pyarrow.parquet  # noqa: F401, PLC0415
    except ImportError:
        raise InvalidInput("writing Parquet needs pyarrow: pip install 'polyarm[parquet]'") from None


def quantile(values: Any, q: float) -> float | None:
    """Linear-interpolation quantile of numbers that may be infinite; None when it is infinite."""
    ordered = np.sort(values)
    position = q * (ordered.size - 1)
    below = int(np.floor(position))
    weight = position - below
    result = ordered[below]
    if weight > 0.0:
        result += weight * (ordered[below + 1] - ordered[below]) if np.isfinite(ordered[below + 1]) else np.inf
    return float(result) if np.isfinite(result) else None
