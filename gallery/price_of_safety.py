"""The price of safety

Left: pulls until `certex` has proved its answer, against the tolerance r (dots: medians, bars: quartiles of the
runs), beside what was forecast before the first pull (`polyarm plan`) and two lower bounds: one for explorers that
must measure the budgets as well as the rewards, one for explorers that are told the budgets. (Both are computed from
the smallest characteristic time that was found.) `lagex` by its own rule is drawn beside them; it proves nothing
about the budgets, and the bounds are for explorers that err with probability delta at most. Right: the reward that
the certified mix really gives up against the best one, and what it may give up at most.

What to learn: a proof costs pulls, and a finer tolerance costs more of them. Above the lower bound the certificate
pays for holding at all times, for any noise within its assumptions, and for planning without knowing the truth. The
reward given up is the other part of the price: a certified mix keeps a distance from the edges of the set.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from picture import EXPLORER_COLOURS, GREY, main, plain_numbers, save_small

from polyarm import load_instance, lower_bounds, plan, simulate
from polyarm._types import FloatArray
from polyarm.figures import COLOURS, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ("price-of-safety.png",)
INSTANCE = "setup2-easy"
TOLERANCES, QUICK_TOLERANCES = (0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4), (0.1, 0.2, 0.4)
SEEDS, QUICK_SEEDS = 100, 6
QUARTILES = (25, 50, 75)


def run_certex(r: float, seeds: int) -> tuple[FloatArray, FloatArray]:
    """Return quartiles of the pulls, and of the reward that the mixes give up."""
    instance = load_instance(INSTANCE)
    best = instance.optimum()
    assert best is not None, "the instance is feasible"
    cell = simulate(INSTANCE, "certex", seeds=seeds, settings={"r": r}).cells[0]
    given_up = [best.value - instance.mu @ run.policy for run in cell.runs if run.policy is not None]
    assert len(given_up) == seeds, "a certified run that ended has a mix"
    return np.percentile(cell.stops(), QUARTILES), np.percentile(given_up, QUARTILES)


def bound_samples(r: float) -> tuple[float, float]:
    """Return the lower bounds with measured, and with known budgets."""
    bounds = lower_bounds(INSTANCE, r=r)["bounds"]
    return bounds["joint"]["samples"], bounds["known"]["samples"]


def draw_quartiles(axes: "Axes", tolerances: FloatArray, found: FloatArray, label: str) -> None:
    """Draw medians with bars from quartile to quartile."""
    low, middle, high = found.T
    axes.errorbar(
        tolerances,
        middle,
        yerr=[middle - low, high - middle],
        fmt="o-",
        color=EXPLORER_COLOURS["certex"],
        linewidth=2,
        capsize=3,
        label=label,
        zorder=5,
    )


def draw(quick: bool, out: Path) -> list[str]:
    """Write the picture."""
    seeds = QUICK_SEEDS if quick else SEEDS
    tolerances = np.array(QUICK_TOLERANCES if quick else TOLERANCES)
    delta = load_instance(INSTANCE).problem.delta
    measured = [run_certex(r, seeds) for r in tolerances]
    pulls, given_up = (np.array(part) for part in zip(*measured, strict=True))
    joint, known = np.array([bound_samples(r) for r in tolerances]).T
    forecast = np.array([f["proved"] for f in plan(INSTANCE, r=tolerances, delta=delta)["forecasts"]])
    lagex = [simulate(INSTANCE, "lagex", seeds=seeds, settings={"r": r}).table()[0]["median_stop"] for r in tolerances]

    figure = new_figure(12, 5.6)
    samples, reward = figure.subplots(1, 2)
    draw_quartiles(samples, tolerances, pulls, "certex: proved")
    samples.plot(tolerances, forecast, "s--", color=COLOURS[4], label="forecast for certex (polyarm plan)")
    samples.plot(tolerances, lagex, "^:", color=EXPLORER_COLOURS["lagex"], label="lagex, own rule: nothing proved")
    samples.plot(tolerances, joint, color="black", linewidth=2, label="lower bound, budgets measured")
    samples.plot(tolerances, known, color=GREY, linewidth=1.5, linestyle="-.", label="lower bound, budgets known")
    samples.set_yscale("log")
    samples.set_ylabel("pulls")
    samples.set_title("what a proof costs in pulls", fontsize=11)
    draw_quartiles(reward, tolerances, given_up, "certex")
    reward.plot(tolerances, tolerances, color="black", linestyle=":", label="allowed: r")
    reward.set_yscale("log")
    reward.set_ylabel("reward below the best mix")
    reward.set_title("what it costs in reward", fontsize=11)
    for axes in (samples, reward):
        axes.set_xscale("log")
        axes.set_xticks(tolerances, [f"{r:g}" for r in tolerances])
        axes.minorticks_off()
        axes.set_xlabel("tolerance r")
        tidy(axes)
        plain_numbers(axes.yaxis)
        handles, labels = axes.get_legend_handles_labels()
        shown = sorted(zip(handles, labels, strict=True), key=lambda pair: not pair[1].startswith("certex"))
        axes.legend(*zip(*shown, strict=True), frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    figure.suptitle(f"{INSTANCE}, delta = {delta:g}: {seeds} runs at each r", fontsize=13)
    save_small(figure, out / NAMES[0])

    ratios = pulls[:, 1] / joint
    planned = pulls[:, 1] / forecast
    return [
        f"From r = {tolerances[-1]:g} to r = {tolerances[0]:g} the median pulls of certex grow from "
        f"{pulls[-1, 1]:,.0f} to {pulls[0, 1]:,.0f}; those of lagex, which proves nothing, from {lagex[-1]:,.0f} to "
        f"{lagex[0]:,.0f}.",
        f"The median run takes {ratios.min():.1f} to {ratios.max():.1f} times the lower bound with measured budgets, "
        f"and {planned.min():.2f} to {planned.max():.2f} times the forecast.",
        f"The median mix gives up {(given_up[:, 1] / tolerances).min():.0%} to "
        f"{(given_up[:, 1] / tolerances).max():.0%} of the reward that r allows.",
    ]


if __name__ == "__main__":
    main(draw)
