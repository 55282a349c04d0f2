"""Pictures of runs. Needs matplotlib: pip install 'polyarm[plot]'."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.figures import check_target, new_figure, save_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIX, _PULLS, _THRESHOLD = "#1b6ca8", "#b8c4ce", "#c0392b"
_SHADES = ("#8fbbdc", "#1b6ca8", "#0c3453", "#6b7f8c")


@dataclass
class Trace:
    """Readings along a run, one entry each; rounds without a feasible mix leave none."""

    steps: list[int] = field(default_factory=list)
    statistic: list[float] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    policy: list[FloatArray] = field(default_factory=list)
    slack: list[dict[str, float]] = field(default_factory=list)


def plot_run(title: str, arms: Sequence[str], pulls: FloatArray, trace: Trace, path: Path) -> None:
    """Draw the last mix of a run, the statistic against its threshold, and the slack of each constraint.

    Args:
        title: The title.
        arms: Names of the arms.
        pulls: Pulls of each arm (K,) at the end.
        trace: Readings along the run.
        path: The file to write.
    """
    check_target(path)
    figure = new_figure(13, 4.2)
    mix, test, slack = figure.subplots(1, 3)
    figure.suptitle(title, fontsize=13)
    _draw_mix(mix, arms, pulls, trace)
    _draw_test(test, trace)
    _draw_slack(slack, trace)
    save_figure(figure, path)


def _draw_mix(axes: "Axes", arms: Sequence[str], pulls: FloatArray, trace: Trace) -> None:
    places = np.arange(len(arms))
    if trace.policy and trace.steps[-1] == pulls.sum():
        axes.barh(places - 0.2, 100 * trace.policy[-1], height=0.38, color=_MIX, label="recommended mix")
    axes.barh(places + 0.2, 100 * pulls / max(pulls.sum(), 1.0), height=0.38, color=_PULLS, label="share of pulls")
    axes.set_yticks(places, [name if len(name) < 24 else name[:22] + "…" for name in arms])
    axes.invert_yaxis()
    axes.set_xlabel("percent")
    axes.set_title("mix")
    axes.legend(frameon=False)
    tidy(axes)


def _draw_test(axes: "Axes", trace: Trace) -> None:
    axes.plot(trace.steps, trace.statistic, color=_MIX, label="statistic")
    axes.plot(trace.steps, trace.threshold, color=_THRESHOLD, linestyle="--", label="threshold")
    axes.set_xscale("log")
    if len(trace.steps) > 1:
        axes.set_xlim(trace.steps[0], 1.2 * trace.steps[-1])  # there may be no test, and nothing to draw, at first
    axes.set_xlabel("pulls")
    axes.set_title("statistic against threshold")
    axes.legend(frameon=False)
    tidy(axes)


def _draw_slack(axes: "Axes", trace: Trace) -> None:
    names = list(trace.slack[-1]) if trace.slack else []
    for name in names:
        axes.plot(trace.steps, [slack[name] for slack in trace.slack], label=name)
    axes.axhline(0.0, color=_THRESHOLD, linestyle="--", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("pulls")
    axes.set_title("estimated slack of the current mix")
    if names:
        axes.legend(frameon=False)
    tidy(axes)


def plot_plan(plan: dict[str, Any], path: Path) -> None:
    """Draw the pulls that a plan forecasts against the tolerance r, one colour per delta, and a band for ranges."""
    check_target(path)
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    figure = new_figure(7.5, 4.8)
    axes = figure.subplots()
    figure.suptitle(f"{plan['instance']}: pulls until the answer is certified", fontsize=13)
    deltas = sorted({row["delta"] for row in plan["forecasts"]}, reverse=True)
    for place, delta in enumerate(deltas):
        rows = sorted((row for row in plan["forecasts"] if row["delta"] == delta), key=lambda row: row["r"])
        tolerances = [row["r"] for row in rows]
        shade = _SHADES[place % len(_SHADES)]
        for name, style in (("proved", "-"), ("stylised", ":")):
            pulls = [np.nan if row[name] is None else row[name] for row in rows]
            label = f"delta = {delta:g}" if name == "proved" else None
            axes.plot(tolerances, pulls, style, color=shade, marker="o", markersize=4, label=label)
    axes.plot([], [], ":", color="#555555", label="stylised thresholds")
    if plan["ranges"] is not None:
        _draw_ranges(axes, plan)
    runs = plan["simulated"]
    if runs is not None and runs["median_stop"] is not None:
        low = runs["median_stop"] - (runs["q25_stop"] or runs["median_stop"])
        high = (runs["q75_stop"] or runs["median_stop"]) - runs["median_stop"]
        label = f"simulated, quartiles (delta = {plan['delta']:g})"
        axes.errorbar(
            [plan["r"]], [runs["median_stop"]], [[low], [high]], fmt="D", color=_THRESHOLD, capsize=4, label=label
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    tolerances = sorted({row["r"] for row in plan["forecasts"]})
    axes.set_xticks(tolerances, [f"{r:g}" for r in tolerances])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("tolerance r")
    axes.set_ylabel("pulls")
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    tidy(axes)
    save_figure(figure, path)


def _draw_ranges(axes: "Axes", plan: dict[str, Any]) -> None:
    """Draw the pulls with proved thresholds over truths drawn from the ranges of a guess: a band between quantiles."""
    ranges = plan["ranges"]
    rows = sorted(ranges["forecasts"], key=lambda row: row["r"])
    tolerances = [row["r"] for row in rows]
    pulls = np.array([row["proved"] for row in rows], dtype=np.float64)  # an infinite quantile (None) is not drawn
    low, high = ranges["quantiles"][0], ranges["quantiles"][-1]
    label = f"truths from the ranges, {100 * low:g} to {100 * high:g} % (delta = {plan['delta']:g})"
    axes.fill_between(tolerances, pulls[:, 0], pulls[:, -1], color=_PULLS, alpha=0.35, linewidth=0, label=label)
    axes.vlines(tolerances, pulls[:, 0], pulls[:, -1], color=_PULLS, linewidth=4, zorder=0)  # a single r has no area
