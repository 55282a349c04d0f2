"""Draw the cost of a step against K and d: python -m benchmarks.plot_scaling docs/scaling.png"""

import sys
import time

from matplotlib.figure import Figure

from benchmarks.test_steps import random_instance
from polyarm.engine.run import Exploration, plan_run

ARMS = (12, 25, 50, 100, 200, 400, 1000)
ROWS = (1, 2, 5, 10, 15, 20)


def us_per_step(explorer: str, n_arms: int, n_constraints: int) -> float:
    instance, plan = plan_run(random_instance(n_arms, n_constraints), explorer, {"delta": 1e-100})
    exploration = Exploration(instance, plan, 0)
    exploration.advance_to(n_arms + 10)
    steps = max(300, 60_000 // n_arms)
    start = time.perf_counter()
    exploration.advance_to(exploration.session.steps + steps)
    seconds = time.perf_counter() - start
    made = exploration.session.steps - n_arms - 10
    assert made == steps, "the run stopped, or its set was a single point: no cost of a step to show"
    return 1e6 * seconds / steps


def main(path: str) -> None:
    figure = Figure(figsize=(10, 4), layout="constrained")
    by_arms, by_rows = figure.subplots(1, 2)
    for explorer in ("lagex", "uniform"):
        by_arms.plot(ARMS, [us_per_step(explorer, n, 5) for n in ARMS], "o-", label=explorer)
        by_rows.plot(ROWS, [us_per_step(explorer, 200, d) for d in ROWS], "o-", label=explorer)
    by_arms.set_xlabel("arms K (d = 5)")
    by_rows.set_xlabel("constraints d (K = 200)")
    for axes in (by_arms, by_rows):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylabel("microseconds per step, r = 0")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1])
