"""How wrong the uncertified answers are

Each row is one explorer: how far the mix that it recommends when it stops really exceeds its budgets, over many runs.
For each run the worst budget counts, in percent of that budget. Left of zero the mix is inside all of its budgets,
right of zero it breaks one. The outermost bars hold everything beyond them, too. The last row has a certificate; the
others stop by the paper's own rules, or (`uniform`, the baseline) by the same rule with arms drawn at random.

What to learn: the best mix under *estimated* budgets sits exactly on their edge, so whether it is truly inside is
decided by the sign of an error of estimation, however small that is. Keeping a distance helps, and how much is enough
is what a certificate computes. Explorers that are told the budgets are not shown.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from picture import FAINT, GREY, main, save_small

from polyarm import load_instance, simulate
from polyarm._types import FloatArray
from polyarm.environments.instances import Instance
from polyarm.figures import COLOURS, new_figure, tidy
from polyarm.tolerances import TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ("uncertified-answers.png",)
CELLS = (("router", 0.05), ("setup1-hard", 0.2))
#: Rows from the top; the last is certified.
EXPLORERS = ("lagex", "lats", "ctns-wlag", "cge-wlag", "ptns", "uniform", "certex")
SEEDS, QUICK_SEEDS = 200, 8
BINS = 48
#: The histograms span this much of all runs; what lies beyond is counted in the outermost bins.
SPAN = (0.5, 99.0)
INSIDE, OUTSIDE = COLOURS[0], COLOURS[1]


def worst_excess(instance: Instance, policy: FloatArray) -> float:
    """Return the largest excess of a mix over a true budget, in percent of that budget (negative: the least room)."""
    bounds = np.abs([c.bound for c in instance.problem.constraints])
    return 100.0 * float(np.max(instance.true_rows @ policy / bounds))


def run_all(seeds: int) -> dict[str, dict[str, FloatArray]]:
    """Return the worst excess of every run that ended with a mix, by instance and explorer."""
    found: dict[str, dict[str, FloatArray]] = {}
    for name, r in CELLS:
        instance = load_instance(name)
        cells = simulate(name, EXPLORERS, seeds=seeds, settings={"r": r}).cells
        found[name] = {
            cell.explorer: np.array([worst_excess(instance, run.policy) for run in cell.runs if run.policy is not None])
            for cell in cells
        }
    return found


def draw_ridges(axes: "Axes", found: dict[str, FloatArray]) -> None:
    """Draw one histogram per explorer, the part over budget in another colour and pattern."""
    low, high = np.percentile(np.concatenate(list(found.values())), SPAN)
    # Zero is an edge of a bin: no bar is half inside.
    width = (high - low) / BINS
    edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
    for place, explorer in enumerate(EXPLORERS):
        values = found[explorer]
        # What is on the edge within the tolerance by which truth is judged is inside.
        settled = np.where((values > 0.0) & (values <= 100.0 * TRUTH), -0.5 * width, values)
        counts, _ = np.histogram(np.clip(settled, edges[0], edges[-1]), edges)
        heights = 0.8 * counts / counts.max()
        for part, colour, hatch in ((edges[1:] <= 1e-9, INSIDE, ""), (edges[:-1] >= -1e-9, OUTSIDE, "///")):
            axes.bar(
                edges[:-1][part],
                -heights[part],
                width=width,
                bottom=place,
                align="edge",
                color=colour,
                edgecolor="white",
                linewidth=0.3,
                hatch=hatch,
            )
        axes.axhline(place, color=FAINT, linewidth=0.8, zorder=0)
        axes.plot([np.median(values)] * 2, [place - 0.8, place], color="black", linewidth=2)
        over = np.mean(values > 100.0 * TRUTH)
        axes.text(1.01, place - 0.35, f"{over:.0%}", transform=axes.get_yaxis_transform(), va="center", fontsize=10)
    axes.text(1.01, -1.0, "over\nbudget", transform=axes.get_yaxis_transform(), va="center", fontsize=9, color=GREY)
    axes.axvline(0.0, color="black", linewidth=1)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_xlabel("true excess over the worst budget (percent of the budget)")
    tidy(axes)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def draw(quick: bool, out: Path) -> list[str]:
    """Write the picture."""
    from matplotlib.lines import Line2D  # noqa: PLC0415  (only to make keys)
    from matplotlib.patches import Patch  # noqa: PLC0415

    seeds = QUICK_SEEDS if quick else SEEDS
    found = run_all(seeds)
    figure = new_figure(13, 6.8)
    panels: Any = figure.subplots(1, len(CELLS), sharey=True)
    for axes, (name, r) in zip(panels, CELLS, strict=True):
        draw_ridges(axes, found[name])
        problem = load_instance(name).problem
        axes.set_title(f"{name}: r = {r:g}, delta = {problem.delta:g}", fontsize=11)
    labels = [f"{explorer}\n{'certified' if explorer == 'certex' else 'own rule'}" for explorer in EXPLORERS]
    panels[0].set_yticks([place - 0.35 for place in range(len(EXPLORERS))], labels)
    panels[0].set_ylim(len(EXPLORERS) - 0.9, -1.25)
    keys: list[Any] = [
        Patch(facecolor=INSIDE, label="inside every budget"),
        Patch(facecolor=OUTSIDE, edgecolor="white", hatch="///", label="over a budget"),
        Line2D([], [], color="black", linewidth=2, label="median run"),
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"The mix recommended at the stop: {seeds} runs of each explorer", fontsize=13)
    save_small(figure, out / NAMES[0])
    return [sentence for name, _ in CELLS for sentence in describe(name, found[name], seeds)]


def describe(name: str, found: dict[str, FloatArray], seeds: int) -> list[str]:
    """Say how often budgets were broken, and by how much then."""
    over = {explorer: values[values > 100.0 * TRUTH] for explorer, values in found.items()}
    rates = {explorer: over[explorer].size / found[explorer].size for explorer in EXPLORERS}
    own = EXPLORERS[:-1]
    least, most = min(rates[e] for e in own), max(rates[e] for e in own)
    broken = np.concatenate([over[e] for e in own])
    certified = EXPLORERS[-1]
    sentences = [
        f"{name}: the uncertified explorers are over budget in {least:.0%} to {most:.0%} of their runs with a mix, "
        f"{certified} in {over[certified].size} of {found[certified].size}."
    ]
    if broken.size:
        sentences.append(
            f"{name}: when they are over budget, the uncertified mixes are so by {np.median(broken):.1f} % in the "
            f"median, by {np.percentile(broken, 95):.1f} % or more in one run out of twenty, and by "
            f"{broken.max():.1f} % at worst."
        )
    without = sum(seeds - values.size for values in found.values())
    return sentences + ([f"{name}: {without} runs ended without a mix and are left out."] if without else [])


if __name__ == "__main__":
    main(draw)
