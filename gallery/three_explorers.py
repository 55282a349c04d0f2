"""LATS against LAGEX against CERTEX

Top: how many pulls each explorer makes before it stops (boxes: quartiles; whiskers: 5 and 95 % of the runs). Bottom:
how often the mix it then recommends is truly feasible, and how often it is also within r of the best, with 95 %
confidence intervals. The first two rows are the paper's explorers by their own stopping rule, which looks at rewards
only and proves nothing about the budgets. The last three rows stop by a certified rule, which promises a right answer
with the probability of the dotted line.

What to learn: stopping early and being right are two things. Compare pulls only between rows that promise the same:
the last three differ in how they choose arms, and `certex` also in its certificate.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from picture import EXPLORER_COLOURS, GREY, list_words, main, plain_numbers, rate_interval, save_small

from polyarm import load_instance, simulate
from polyarm.experiments.results import Cell
from polyarm.figures import new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ("three-explorers.png",)
#: Tolerances that a certificate reaches in a second or so, as in docs/comparison.md.
CELLS = (("setup2-easy", 0.1), ("setup2-hard", 0.1), ("setup1-hard", 0.2))
CERTIFIED = {"stopping": "certified"}
#: Rows from the top: explorer, settings, label.
ROWS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("lats", {}, "lats\nown rule"),
    ("lagex", {}, "lagex\nown rule"),
    ("lats", CERTIFIED, "lats\ncertified"),
    ("lagex", CERTIFIED, "lagex\ncertified"),
    ("certex", {}, "certex\ncertified"),
)
#: So many of them, from the top, stop by the paper's rule.
N_OWN = 2
SEEDS, QUICK_SEEDS = 60, 4
HORIZON = 400_000


def run_all(seeds: int) -> dict[str, list[Cell]]:
    """Return the runs of every row, by instance."""
    return {
        name: [
            simulate(name, explorer, seeds=seeds, horizon=HORIZON, settings={**settings, "r": r}).cells[0]
            for explorer, settings, _ in ROWS
        ]
        for name, r in CELLS
    }


def draw_pulls(axes: "Axes", cells: list[Cell]) -> None:
    """Draw a box of stopping times for each row."""
    for place, (cell, (explorer, _, _)) in enumerate(zip(cells, ROWS, strict=True)):
        colour = EXPLORER_COLOURS[explorer]
        drawn = axes.boxplot(
            [cell.stops()],
            positions=[place],
            orientation="horizontal",
            widths=0.55,
            whis=(5, 95),
            showfliers=False,
            patch_artist=True,
            medianprops={"color": "black", "linewidth": 2},
        )
        drawn["boxes"][0].set(facecolor=colour, alpha=0.75)
    axes.set_xscale("log")
    axes.set_xlabel("pulls until it stopped")
    axes.margins(x=0.1)
    tidy(axes)
    plain_numbers(axes.xaxis)


def draw_rates(axes: "Axes", cells: list[Cell], promise: float) -> None:
    """Draw how often each row's mix was feasible (full marks), and correct (open marks)."""
    for what, shift, marker, filled in (("feasible", -0.17, "o", True), ("correct", 0.17, "D", False)):
        for place, (cell, (explorer, _, _)) in enumerate(zip(cells, ROWS, strict=True)):
            hits, runs = sum(getattr(run, what) for run in cell.runs), len(cell.runs)
            low, high = rate_interval(hits, runs)
            axes.errorbar(
                [100 * hits / runs],
                [place + shift],
                xerr=[[100 * (hits / runs - low)], [100 * (high - hits / runs)]],
                fmt=marker,
                color=EXPLORER_COLOURS[explorer],
                markerfacecolor=EXPLORER_COLOURS[explorer] if filled else "white",
                capsize=3,
                markersize=6,
            )
        words = {"feasible": "truly feasible", "correct": "feasible and within r of the best"}[what]
        axes.plot([], [], marker, color=GREY, markerfacecolor=GREY if filled else "white", label=words)
    label = "promised by a certified rule"
    axes.plot([100 * promise] * 2, [N_OWN - 0.45, len(ROWS) - 0.55], color="black", linestyle=":", label=label)
    axes.set_xlim(-4, 104)
    axes.set_xlabel("percent of runs")
    tidy(axes)


def draw(quick: bool, out: Path) -> list[str]:
    """Write the picture."""
    seeds = QUICK_SEEDS if quick else SEEDS
    runs = run_all(seeds)
    figure = new_figure(12.5, 7.2)
    panels: Any = figure.subplots(2, len(CELLS), sharey=True)
    for column, (name, r) in enumerate(CELLS):
        problem = load_instance(name).problem
        draw_pulls(panels[0, column], runs[name])
        draw_rates(panels[1, column], runs[name], 1.0 - problem.delta)
        panels[0, column].set_title(f"{name}: {problem.n_arms} arms, r = {r:g}, delta = {problem.delta:g}", fontsize=11)
    for row in panels:
        row[0].set_yticks(range(len(ROWS)), [label for _, _, label in ROWS])
        row[0].set_ylim(len(ROWS) - 0.4, -0.6)
        for axes in row:
            axes.axhline(N_OWN - 0.5, color=GREY, linewidth=0.8)  # what proves nothing above, what is proved below
    handles, labels = panels[1, -1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(f"{seeds} runs of each explorer on each instance", fontsize=13)
    save_small(figure, out / NAMES[0])
    return describe(runs)


def describe(runs: dict[str, list[Cell]]) -> list[str]:
    """Say when each explorer stopped, and how often it was right."""
    sentences = []
    for name, r in CELLS:
        own, certified = (", ".join(_tell(cell) for cell in part) for part in (runs[name][:N_OWN], runs[name][N_OWN:]))
        seeds = len(runs[name][0].runs)
        sentences.append(
            f"{name}, r = {r:g} (median pulls; correct of {seeds} runs): by their own rules {own}; "
            f"certified {certified}."
        )
    fastest = [
        ROWS[N_OWN + int(np.argmin([np.median(cell.stops()) for cell in runs[name][N_OWN:]]))][0] for name, _ in CELLS
    ]
    counted = [f"{explorer} on {fastest.count(explorer)}" for explorer in dict.fromkeys(fastest)]
    sentences.append(
        f"Of the certified rows the earliest in the median: {list_words(counted)} of the {len(CELLS)} instances."
    )
    return sentences


def _tell(cell: Cell) -> str:
    median = cell.summary()["median_stop"]
    pulls = "no stop" if median is None else f"{median:,.0f}"
    return f"{cell.explorer} {pulls} ({sum(run.correct for run in cell.runs)})"


if __name__ == "__main__":
    main(draw)
