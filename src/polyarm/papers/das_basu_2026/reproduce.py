"""Recompute the paper's evaluation: run the grid, then draw and describe every figure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyarm.engine.run import DEFAULT_HORIZON
from polyarm.environments.instances import Instance, load_instance
from polyarm.experiments.results import Cell, check_parquet_target, write_parquet, write_whole
from polyarm.experiments.store import code_version
from polyarm.experiments.sweep import Progress, Runner, SweepOutcome, run_sweep
from polyarm.figures import require_plots, save_figure
from polyarm.papers.das_basu_2026 import boxes, closest, figure1, figure2, figure3, figure4, guarantees
from polyarm.papers.das_basu_2026.published import STOP, VIOLATIONS
from polyarm.papers.das_basu_2026.report import Section, Table, render
from polyarm.papers.das_basu_2026.scope import (
    STOPPING_FIGURES,
    VIOLATION_FIGURES,
    Key,
    Scope,
    declare,
    why_not_certifiable,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]

_TITLES = {
    1: "Figure 1: a perturbed constraint",
    2: "Figure 2: the optimistic feasible set closing in",
    3: "Figure 3: normal cones over time",
    4: "Figure 4: lower bounds along mu_3, and LAGEX",
}
_MEASURES = {STOP: "sample complexity", VIOLATIONS: "constraint violations"}
_DRAWN = {1: figure1, 2: figure2, 3: figure3}
_BOX_COLUMNS = {
    "explorer": "explorer",
    "preset": "preset",
    "published": "published median",
    "median": "our median",
    "ratio": "ratio",
    "horizon_hit": "hit the horizon",
    "feasible_rate": "truly feasible",
    "correct_rate": "feasible and within r",
    "seeds": "seeds",
}


class Evaluation(NamedTuple):
    """The cells of a scope by their purpose, and the cost of computing them."""

    cells: dict[Key, Cell]
    outcome: SweepOutcome


def evaluate(scope: Scope, out: Path, runner: Runner | None = None, progress: Progress | None = None) -> Evaluation:
    """Run the grid of a scope; finished pieces are kept in OUT/pieces, and found there the next time.

    The caller holds the folder OUT until the report is written.
    """
    require_plots()
    check_parquet_target(out / "runs.parquet")
    entries = declare(scope)
    outcome = run_sweep(list(entries.values()), out / "pieces", runner=runner, progress=progress)
    outcome.simulation.to_parquet(out / "runs.parquet")
    return Evaluation(dict(zip(entries, outcome.simulation.cells, strict=True)), outcome)


def write_report(
    scope: Scope, cells: Mapping[Key, Cell], out: Path, command: str, progress: Progress | None = None
) -> Path:
    """Draw every figure (PNG and PDF, with the Parquet behind it) and write OUT/report.html; return its path."""
    jobs = list(_list_sections(scope, cells, out))
    sections = []
    for place, job in enumerate(jobs):
        if progress is not None:
            progress(place, len(jobs))
        sections.append(job())
    target = out / "report.html"
    write_whole(target, render(_PAGE_TITLE, _introduce(scope, command), sections).encode())
    return target


_PAGE_TITLE = "Learning to Explore with Lagrangians for Bandits under Unknown Constraints: the evaluation, recomputed"


def _introduce(scope: Scope, command: str) -> list[str]:
    return [
        "Das and Basu, AISTATS 2026. Every number and picture on this page was computed by polyarm, but for those "
        "marked as published, which were read off the paper's figures.",
        f"Made by: {command}. Figures 4 to 12 have seeds 0 to {scope.seeds - 1}, at most {DEFAULT_HORIZON:,} pulls a "
        "run, with "
        f"{' and '.join(f'preset {name}' for name in scope.presets)}: paper follows the printed text, corrected "
        "repairs its mathematics (docs/errata.md). Runs that hit the horizon count as infinite in medians.",
        "What the paper leaves out stands in every table: how often the recommended mix truly satisfies the "
        "constraints, and how often it is also within r of the best. A stopping rule that looks at rewards only cannot "
        "certify that a mix on the edge of an estimated budget is feasible.",
        f"Computed with {code_version()}.",
    ]


def _list_sections(scope: Scope, cells: Mapping[Key, Cell], out: Path) -> Iterator[Callable[[], Section]]:
    """Yield the parts of the page, each still to be made."""
    for number in scope.figures:
        if number in _DRAWN:
            yield partial(_make_drawn, number, out)
        elif number == 4:
            yield partial(_make_figure4, cells, out)
        elif number in STOPPING_FIGURES:
            yield partial(_make_boxes, number, STOPPING_FIGURES[number], STOP, cells, out)
        else:
            yield partial(_make_boxes, number, VIOLATION_FIGURES[number], VIOLATIONS, cells, out)
    for instance in scope.added:
        for measure in _MEASURES:
            yield partial(_make_added, instance, measure, cells, out)
    if any(key[0] == "reading" for key in cells):
        yield partial(_make_closest, cells, out)
    if any(key[0] == "guarantee" for key in cells):
        yield partial(_make_guarantees, scope, cells, out)


def _save(rows: Rows, figure: "Figure | None", out: Path, stem: str) -> list[Path]:
    """Write the rows and their picture; return the files, the PNG first."""
    paths = []
    if figure is not None:
        paths = [out / f"{stem}.png", out / f"{stem}.pdf"]
        for path in paths:
            save_figure(figure, path)
    table = out / f"{stem}.parquet"
    write_parquet([dict(row) for row in rows], table)
    return [*paths, table]


def _make_drawn(number: int, out: Path) -> Section:
    module = _DRAWN[number]
    rows = module.compute()
    files = _save(rows, module.draw(rows), out, f"figure-{number:02d}")
    return Section(_TITLES[number], module.describe(rows), files[0], files=files)


def _make_figure4(cells: Mapping[Key, Cell], out: Path) -> Section:
    rows = figure4.collect(cells)
    files = _save(rows, figure4.draw(rows), out, "figure-04")
    columns = {
        "preset": "preset",
        "mu3": "mu_3",
        "known_bound": "known bound",
        "known_published": "published",
        "bai_bound": "BAI bound",
        "bai_published": "published",
        "median_stop": "lagex median",
        "feasible_rate": "truly feasible",
        "correct_rate": "feasible and within r",
    }
    return Section(_TITLES[4], figure4.describe(rows), files[0], [Table("Along mu_3", columns, rows)], files)


def _make_boxes(number: int, name: str, measure: str, cells: Mapping[Key, Cell], out: Path) -> Section:
    title = f"Figure {number}: {_MEASURES[measure]} on {name}"
    return _box_section(boxes.collect(cells, load_instance(name), measure), measure, title, out, f"figure-{number:02d}")


def _make_added(instance: Instance, measure: str, cells: Mapping[Key, Cell], out: Path) -> Section:
    rows = boxes.collect(cells, instance, measure)
    word = _MEASURES[measure]
    stem = re.sub(r"[^\w.]+", "-", f"added-{instance.name}-{word}")
    return _box_section(rows, measure, f"{instance.name}, {word}: an added instance", out, stem)


def _box_section(rows: Rows, measure: str, title: str, out: Path, stem: str) -> Section:
    files = _save(rows, boxes.draw(rows, measure), out, stem)
    summary = boxes.summarise(rows, measure)
    columns = dict(_BOX_COLUMNS)
    if measure == VIOLATIONS:
        columns["median_allocation_violations"] = "median by allocation"
    return Section(
        title,
        boxes.describe(rows, measure),
        files[0],
        [Table("Medians, and what the paper leaves out", columns, summary)],
        files,
    )


def _make_closest(cells: Mapping[Key, Cell], out: Path) -> Section:
    rows = closest.collect(cells)
    files = _save(rows, None, out, "readings")
    nearest = [{**row, "measure": _MEASURES[row["measure"]]} for row in closest.find_closest(rows)]
    best = {
        "measure": "measure",
        "instance": "instance",
        "explorer": "explorer",
        "published": "published",
        "median": "ours",
        "ratio": "ratio",
        "applied": "closest reading (changes to the text as printed)",
    }
    ranks = {"reading": "reading", "factor": "typical factor", "within": "within a quarter", "medians": "of medians"}
    tables = [
        Table("Closest reading of each published median", best, nearest),
        Table("Readings by how close they come on the whole", ranks, closest.rank_readings(rows)),
    ]
    return Section("Readings: what may have been run", closest.describe(rows), None, tables, files)


def _make_guarantees(scope: Scope, cells: Mapping[Key, Cell], out: Path) -> Section:
    rows, forecasts = guarantees.collect(cells), guarantees.forecast(scope)
    files = [*_save(rows, None, out, "guarantees"), *_save(forecasts, None, out, "forecasts")]
    columns = {
        "instance": "instance",
        "r": "r",
        "row": "sampling rule",
        "median_stop": "median pulls",
        "mean_stop": "mean of those that stopped",
        "horizon_hit": "hit the horizon",
        "feasible_rate": "truly feasible",
        "correct_rate": "feasible and within r",
        "seeds": "seeds",
    }
    introduction = [
        "Every explorer stops by the certified rule with proved thresholds, so that only the sampling differs; an "
        f"explorer that is told the constraints need only certify the reward. At most {scope.guarantee_horizon:,} "
        "pulls a run."
    ]
    for instance in scope.added:
        reason = why_not_certifiable(instance)
        if reason is not None:
            introduction.append(f"{instance.name} is not in the comparison: {reason}.")
    return Section(
        "Equal guarantees: certified feasible and within r",
        [*introduction, *guarantees.describe(rows, forecasts)],
        None,
        [Table("Pulls until the answer is certified", columns, rows)],
        files,
    )
