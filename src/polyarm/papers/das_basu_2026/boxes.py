"""Figures 5 to 12: boxes of stopping times, and of violations, of every explorer on one instance."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyarm.engine.run import HORIZON
from polyarm.environments.instances import Instance
from polyarm.experiments.results import Cell, describe_run, quantile
from polyarm.figures import new_figure, tidy
from polyarm.papers.das_basu_2026.published import STOP, VIOLATIONS, find_lower_lines, published_bound, published_median
from polyarm.papers.das_basu_2026.report import show_span
from polyarm.papers.das_basu_2026.scope import Key
from polyarm.rules.registry import get_explorer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Columns of a figure's table that come from the runs.
_KEPT = ("seed", "status", "steps", "policy_violations", "allocation_violations", "feasible", "correct")
_COLOURS = {"paper": "#E69F00", "corrected": "#56B4E9"}
_HATCHES = {"paper": "///", "corrected": ""}
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
#: The places of the presets' boxes, if there is one and if there are two.
_OFFSETS = {1: (0.0,), 2: (-0.2, 0.2)}
_TITLES = {STOP: "pulls until the explorer stopped", VIOLATIONS: "steps at which the current mix broke a constraint"}


def collect(cells: Mapping[Key, Cell], instance: Instance, measure: str) -> list[dict[str, Any]]:
    """Return one row per run on an instance, with the bounds and the published median beside it.

    Violations are of explorers that estimate the constraints; those that know them have none.
    """
    bounds = {
        **find_lower_lines(instance),
        "known_published": published_bound(instance.name, "known"),
        "bai_published": published_bound(instance.name, "bai"),
    }
    rows = []
    for key, cell in cells.items():
        if key[0] != "preset" or key[2] != instance.name:
            continue
        _, preset, _, explorer = key
        if measure == VIOLATIONS and get_explorer(explorer).needs_known_rows:
            continue
        beside = {
            "instance": instance.name,
            "delta": instance.problem.delta,
            "r": instance.problem.r,
            "preset": preset,
            "explorer": explorer,
            "published": published_median(measure, instance.name, explorer),
            **bounds,
        }
        for run in cell.runs:
            described = describe_run(run)
            rows.append({**beside, **{name: described[name] for name in _KEPT}})
    return rows


def values_of(rows: Sequence[Mapping[str, Any]], measure: str) -> list[float]:
    """Return the number that a figure is about for each run; a run that did not stop is infinite."""
    if measure == VIOLATIONS:
        return [float(row["policy_violations"]) for row in rows]
    return [np.inf if row["status"] == HORIZON else float(row["steps"]) for row in rows]


def summarise(rows: Sequence[Mapping[str, Any]], measure: str) -> list[dict[str, Any]]:
    """Return one row per explorer and preset: median, ratio to the published one, feasible and correct rates."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["explorer"], row["preset"]), []).append(row)
    summary = []
    for (explorer, preset), runs in groups.items():
        published = runs[0]["published"]
        median = quantile(values_of(runs, measure), 0.5)
        summary.append(
            {
                "explorer": explorer,
                "preset": preset,
                "seeds": len(runs),
                "published": published,
                "median": median,
                "ratio": None if median is None or not published else median / published,
                "horizon_hit": sum(row["status"] == HORIZON for row in runs),
                "median_allocation_violations": float(np.median([row["allocation_violations"] for row in runs])),
                "feasible_rate": float(np.mean([row["feasible"] for row in runs])),
                "correct_rate": float(np.mean([row["correct"] for row in runs])),
            }
        )
    return summary


def draw(rows: Sequence[Mapping[str, Any]], measure: str) -> "Figure":
    """Draw a box per explorer and preset, the published medians, and for stops the lower bounds."""
    explorers = list(dict.fromkeys(row["explorer"] for row in rows))
    presets = list(dict.fromkeys(row["preset"] for row in rows))
    figure = new_figure(8.4, 1.9 + 0.5 * len(explorers))
    axes = figure.subplots()
    axes.set_title("{instance}, delta = {delta:g}, r = {r:g}".format(**rows[0]), fontsize=11, parse_math=False)
    for preset, offset in zip(presets, _OFFSETS[len(presets)], strict=True):
        for place, explorer in enumerate(explorers):
            runs = [row for row in rows if row["explorer"] == explorer and row["preset"] == preset]
            _draw_box(axes, values_of(runs, measure), place + offset, preset)
            _note_horizon(axes, runs, place + offset)
        axes.barh(
            [np.nan],
            [np.nan],
            edgecolor="black",
            facecolor=_COLOURS[preset],
            hatch=_HATCHES[preset],
            label=f"preset {preset}",
        )
    _draw_published(axes, rows, explorers)
    if measure == STOP:
        _draw_bounds(axes, rows[0])
    axes.set_yticks(range(len(explorers)), explorers)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"{_TITLES[measure]} (box: quartiles; whiskers: 5 % to 95 % of runs)")
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    tidy(axes)
    axes.grid(visible=False, axis="y")
    return figure


def _draw_box(axes: "Axes", values: Sequence[float], place: float, preset: str) -> None:
    low, first, middle, third, high = (quantile(values, q) for q in _QUANTILES)
    if middle is None or first is None:
        axes.text(
            0.99, place, "did not stop", transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=9
        )
        return
    # A quantile beyond the horizon is drawn at the largest number seen; no violation, on a logarithmic axis, at one.
    largest = max(value for value in values if np.isfinite(value))
    numbers = [max(largest if number is None else number, 1.0) for number in (low, first, middle, third, high)]
    box = {"whislo": numbers[0], "q1": numbers[1], "med": numbers[2], "q3": numbers[3], "whishi": numbers[4]}
    axes.bxp(
        [{**box, "fliers": []}],
        positions=[place],
        widths=0.34,
        orientation="horizontal",
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": _COLOURS[preset], "hatch": _HATCHES[preset], "linewidth": 0.8},
        medianprops={"color": "black", "linewidth": 1.6},
        whiskerprops={"linewidth": 0.8},
        capprops={"linewidth": 0.8},
    )


def _note_horizon(axes: "Axes", runs: Sequence[Mapping[str, Any]], place: float) -> None:
    hits = float(np.mean([row["status"] == HORIZON for row in runs]))
    if hits > 0.0:
        where = axes.get_yaxis_transform()
        axes.text(0.995, place, f"{hits:.0%} at the horizon", transform=where, ha="right", va="center", fontsize=9)


def _draw_published(axes: "Axes", rows: Sequence[Mapping[str, Any]], explorers: Sequence[str]) -> None:
    published = {row["explorer"]: row["published"] for row in rows if row["published"] is not None}
    if published:
        places = [explorers.index(name) for name in published]
        axes.plot(
            list(published.values()), places, "D", color="#CC0000", markersize=6, label="published median", zorder=5
        )


def _draw_bounds(axes: "Axes", row: Mapping[str, Any]) -> None:
    for name, style, label in (("known", "--", "constraints known"), ("bai", ":", "no constraints")):
        if row[f"{name}_bound"] is not None:
            axes.axvline(row[f"{name}_bound"], color="#444444", linestyle=style, label=f"lower bound, {label}")


def describe(rows: Sequence[Mapping[str, Any]], measure: str) -> list[str]:
    """Say how far the medians are from the published ones, and what the paper leaves out."""
    sentences = []
    for preset in dict.fromkeys(row["preset"] for row in rows):
        mine = [row for row in summarise(rows, measure) if row["preset"] == preset]
        ratios = {row["explorer"]: row["ratio"] for row in mine if row["ratio"] is not None}
        if ratios:
            low, high = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
            sentences.append(
                f"Preset {preset}: medians are between {ratios[low]:.2f} ({low}) and {ratios[high]:.2f} ({high}) times "
                "the published ones."
            )
        late = [row["explorer"] for row in mine if row["median"] is None]
        if late:
            sentences.append(f"Preset {preset}: {', '.join(late)} did not stop within the horizon in half of the runs.")
        guessing = [row for row in mine if not get_explorer(row["explorer"]).needs_known_rows]
        sentences.append(
            f"With preset {preset} the explorers that estimate the constraints recommend a truly feasible mix in "
            f"{show_span(row['feasible_rate'] for row in guessing)} of runs, and one that is also within r of the best "
            f"in {show_span(row['correct_rate'] for row in guessing)}."
        )
    if all(row["published"] is None for row in rows):
        return sentences  # an added instance: nothing to differ from
    return [*sentences, *(_explain_stops(rows) if measure == STOP else _explain_violations(rows))]


def _explain_stops(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say why the medians differ from the published ones."""
    sentences = [
        "Why they differ: the text leaves open on which polytope the mix is optimal, which alternatives are tested,"
        " the sign of r and the threshold (see Readings). As printed, the mix is optimal on an optimistic set that "
        "is at first nearly the whole simplex: the explorer then looks for the best arm rather than the best mix, "
        "is quick where one arm stands out and slow where two are close, and stops with a mix that breaks a "
        "constraint. Explorers that know the constraints differ by the sign of r, the "
        "alternatives and the threshold only."
    ]
    published = {row["explorer"]: row["published"] for row in rows}
    if published.get("lagex") and published.get("uniform"):
        sentences.append(
            f"The published median of lagex is {published['lagex'] / published['uniform']:.2f} times that of "
            "uniform; in the released code the allocation of lagex hardly leaves the uniform one (docs/errata.md)."
        )
    return sentences


def _explain_violations(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what is counted, why the counts differ, and what the text's own count would give for uniform sampling."""
    shares = {
        preset: np.mean([row["policy_violations"] / row["steps"] for row in rows if row["preset"] == preset])
        for preset in dict.fromkeys(row["preset"] for row in rows)
    }
    listed = " and ".join(f"{share:.0%} of its steps with preset {preset}" for preset, share in shares.items())
    uniform = [row for row in summarise(rows, VIOLATIONS) if row["explorer"] == "uniform"]
    by_allocation = max(row["median_allocation_violations"] for row in uniform)
    published = uniform[0]["published"]
    sentence = (
        "Counted are the steps at which the current mix breaks a true constraint. The text counts allocations that do; "
        f"by that count the median of uniform sampling is {by_allocation:,.0f}"
    )
    if published and not by_allocation:
        sentence += f", and {published:,.0f} is published: the figure must have counted mixes"
    return [
        f"{sentence}.",
        f"Why they differ: on average a run breaks a constraint at {listed}. The nearer that is to all steps, the more "
        "a count of violations says only how long the explorer ran, and those times differ as the figures of sample "
        "complexity show. A mix that is optimal on an optimistic set may break a constraint at any time, one that is "
        "optimal on the estimated set whenever an active row is underestimated.",
    ]
