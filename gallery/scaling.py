"""How the cost of a step grows

What a decision costs as arms (left) and constraints (right) are added. Wall-clock times say more about a machine than
about a program, so everything is in units of one call of `scipy.optimize.linprog` on the smallest program of the
picture, timed in the same run; the black line is the same call on a program of each size. `lagex` and `uniform`: one
step, decision and simulated outcome, with r = 0, which cannot be certified. `certex`: a whole certified run with r >
0, its plans and proof included, divided by its pulls; on another random instance, where that has a feasible mix. It
is not timed with many constraints: the proof is a search that becomes long as they are added.

What to learn: how many decisions are made in the time of one linear program solved from scratch, and how that changes
as a problem grows. Timings differ a little from run to run; this is the only picture of the gallery that does not
come out the same every time.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from picture import EXPLORER_COLOURS, ROOT, main, plain_numbers, save_small
from scipy.optimize import linprog

from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.instances import Instance
from polyarm.figures import new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

sys.path.append(str(ROOT))  # for the benchmarks, which are not installed

from benchmarks.plot_scaling import ARMS, ROWS, us_per_step
from benchmarks.test_steps import certifiable_instance, random_instance

NAMES = ("scaling.png",)
#: Left: so many constraints; right: so many arms. As in benchmarks/plot_scaling.py.
FIXED_ROWS, FIXED_ARMS = 5, 200
QUICK_ARMS, QUICK_ROWS = (12, 50, 200), (1, 5, 10)
#: Of this many timings the fastest counts: whatever else the machine does only makes them slower.
REPEATS, QUICK_REPEATS = 3, 1
LINPROG_CALLS = 20
HORIZON = 1_000_000
#: With ten, a certified run on 200 arms was not done after a minute.
MOST_CERTIFIED_ROWS = 5

LABELS = {
    "linprog": "one linprog call",
    "certex": "certex, certified run, per pull",
    "lagex": "lagex, one step",
    "uniform": "uniform, one step",
}
LOOKS: dict[str, dict[str, Any]] = {
    "linprog": {"color": "black", "marker": "s", "linestyle": "--"},
    "certex": {"color": EXPLORER_COLOURS["certex"], "marker": "o"},
    "lagex": {"color": EXPLORER_COLOURS["lagex"], "marker": "^"},
    "uniform": {"color": EXPLORER_COLOURS["uniform"], "marker": "D"},
}


def us_per_linprog(instance: Instance) -> float:
    """Return the time of one call that finds the best mix of an instance, the fastest of some."""
    rows, n_arms = instance.true_rows, instance.problem.n_arms
    times = []
    for _ in range(LINPROG_CALLS):
        start = time.perf_counter()
        linprog(-instance.mu, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, n_arms)), b_eq=[1.0])
        times.append(time.perf_counter() - start)
    return 1e6 * min(times)


def us_per_certified_pull(n_arms: int, n_constraints: int) -> float:
    """Return the time of a whole certified run divided by its pulls; nan where there is none to time."""
    instance = certifiable_instance(n_arms, n_constraints)
    if n_constraints > MOST_CERTIFIED_ROWS or instance.optimum() is None:
        return np.nan
    exploration = Exploration(*plan_run(instance, "certex", {}), 0)
    start = time.perf_counter()
    exploration.advance_to(HORIZON)
    seconds = time.perf_counter() - start
    assert exploration.session.stopped
    return 1e6 * seconds / exploration.session.steps


def measure(n_arms: int, n_constraints: int, repeats: int) -> dict[str, float]:
    """Return the microseconds of everything at one size: the fastest of some timings."""
    timers: dict[str, Callable[[], float]] = {
        "linprog": lambda: us_per_linprog(random_instance(n_arms, n_constraints)),
        "certex": lambda: us_per_certified_pull(n_arms, n_constraints),
        "lagex": lambda: us_per_step("lagex", n_arms, n_constraints),
        "uniform": lambda: us_per_step("uniform", n_arms, n_constraints),
    }
    return {name: min(timer() for _ in range(repeats)) for name, timer in timers.items()}


def draw_growth(axes: "Axes", sizes: tuple[int, ...], found: list[dict[str, float]], unit: float) -> None:
    """Draw every cost against the size, in units of the smallest program."""
    for name, look in LOOKS.items():
        axes.plot(sizes, [row[name] / unit for row in found], **look, label=LABELS[name], linewidth=2, markersize=6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylabel("cost, in linprog calls on the smallest program")
    tidy(axes)
    plain_numbers(axes.yaxis)


def draw(quick: bool, out: Path) -> list[str]:
    """Write the picture."""
    arms, rows = (QUICK_ARMS, QUICK_ROWS) if quick else (ARMS, ROWS)
    repeats = QUICK_REPEATS if quick else REPEATS
    measure(arms[0], rows[0], 1)  # loads what the first call of each would load
    by_arms = [measure(n, FIXED_ROWS, repeats) for n in arms]
    by_rows = [measure(FIXED_ARMS, d, repeats) for d in rows]
    unit = by_arms[0]["linprog"]

    figure = new_figure(12, 5.4)
    left, right = figure.subplots(1, 2, sharey=True)
    draw_growth(left, arms, by_arms, unit)
    draw_growth(right, rows, by_rows, unit)
    left.set_xlabel(f"arms K, with d = {FIXED_ROWS} constraints")
    right.set_xlabel(f"constraints d, with K = {FIXED_ARMS} arms")
    right.set_ylabel("")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(f"Cost of a decision beside one linprog call (K = {arms[0]}, d = {FIXED_ROWS}: 1)", fontsize=13)
    save_small(figure, out / NAMES[0])
    return describe(arms, by_arms)


def describe(arms: tuple[int, ...], by_arms: list[dict[str, float]]) -> list[str]:
    """Say how many decisions fit into one call on a program of the same size, and how costs grow."""
    first, last = by_arms[0], by_arms[-1]
    sentences = []
    for name in ("lagex", "uniform", "certex"):
        ratios = [row["linprog"] / row[name] for row in by_arms if np.isfinite(row[name])]
        what = "pulls of a certified run" if name == "certex" else "steps"
        sentences.append(
            f"One linprog call takes as long as {min(ratios):,.0f} to {max(ratios):,.0f} {what} of {name} at the same "
            f"K (d = {FIXED_ROWS})."
        )
    growth = ", ".join(f"{name} {last[name] / first[name]:,.1f}" for name in ("linprog", "lagex", "uniform"))
    sentences.append(f"From K = {arms[0]} to K = {arms[-1]:,} the cost grows by these factors: {growth}.")
    return sentences


if __name__ == "__main__":
    main(draw)
