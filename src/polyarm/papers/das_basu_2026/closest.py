"""Which reading of the text comes closest to each published median."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from polyarm.experiments.results import Cell
from polyarm.papers.das_basu_2026.published import STOP, VIOLATIONS, published_median
from polyarm.papers.das_basu_2026.scope import Key

#: The factor of a median that has no ratio to the published one.
_WORST_FACTOR = 10.0
_MEDIANS = {STOP: "median_stop", VIOLATIONS: "median_violations"}


def collect(cells: Mapping[Key, Cell]) -> list[dict[str, Any]]:
    """Return one row per reading and published median: ours, and its ratio to the published one.

    `applied` are the changes of the reading that concern the explorer.
    The two presets count as readings too.
    """
    rows = []
    for key, cell in cells.items():
        if key[0] == "reading":
            name = key[1].name
            applied = ", ".join(f"{k}={v}" for k, v in cell.given.items() if k != "preset") or name
        elif key[0] == "preset":
            name = applied = f"preset {key[1]}"
        else:
            continue
        summary = cell.summary()
        for measure, column in _MEDIANS.items():
            published = published_median(measure, cell.instance, cell.explorer)
            if published is not None:
                median = summary[column]
                rows.append(
                    {
                        "measure": measure,
                        "instance": cell.instance,
                        "explorer": cell.explorer,
                        "reading": name,
                        "applied": applied,
                        "seeds": summary["seeds"],
                        "published": published,
                        "median": median,
                        "ratio": median / published if median else None,
                    }
                )
    return rows


def _distance(row: Mapping[str, Any]) -> float:
    return math.inf if row["ratio"] is None else abs(math.log(row["ratio"]))


def find_closest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return, for each published median that any reading has a ratio to, the row whose ratio is nearest to one."""
    best: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for row in (row for row in rows if row["ratio"] is not None):
        place = (row["measure"], row["instance"], row["explorer"])
        if place not in best or _distance(row) < _distance(best[place]):
            best[place] = row
    return list(best.values())


def rank_readings(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the readings by how close they come on the whole.

    `factor`: the typical ratio either way, exp of the mean |log ratio|, none counted beyond `_WORST_FACTOR`.
    `within` counts the medians that are off by at most a quarter.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["reading"], []).append(row)
    ranked = [
        {
            "reading": name,
            "medians": len(group),
            "factor": math.exp(sum(min(_distance(row), math.log(_WORST_FACTOR)) for row in group) / len(group)),
            "within": sum(_distance(row) <= math.log(1.25) for row in group),
        }
        for name, group in groups.items()
    ]
    return sorted(ranked, key=lambda row: float(row["factor"]))


def describe(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which reading is closest on the whole, and whether one explains the published numbers."""
    ranked = rank_readings(rows)
    best = ranked[0]
    seeds = max(row["seeds"] for row in rows if row["reading"] == best["reading"])
    wins: dict[str, int] = {}
    for row in find_closest(rows):
        wins[row["reading"]] = wins.get(row["reading"], 0) + 1
    sentences = [
        f"{len(ranked)} readings were tried. On the whole, {best['reading']!r} comes closest ({seeds} seeds): its "
        f"medians are off by a factor of {best['factor']:.2f}, typically, and {best['within']} of {best['medians']} "
        f"are within a quarter of the published ones. A median of zero, or beyond the horizon, counts as a factor of "
        f"{_WORST_FACTOR:g}."
    ]
    if len(wins) > 1:
        sentences.append(
            f"No single reading is the closest everywhere: {len(wins)} different ones are, to some median. The closest "
            "of many is close partly by chance; the table is a search for what was run, not a reproduction."
        )
    return sentences
