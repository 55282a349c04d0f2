"""Cost of one step of each explorer beside one `scipy.optimize.linprog` call on the same program."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.instances import Instance, load_instance
from polyarm.experiments.simulate import simulate
from polyarm.polytope.lp import OPTIMAL, make_basis, make_lp_work, solve_lp
from polyarm.problem import Constraint, Problem
from polyarm.rules.registry import EXPLORERS

_STEPS = 4000
#: Shapes where each arm's first pull alone takes a while: only the explorers and the kernel that must scale.
_LARGE_STEPS = 1500
_LONGEST_RUN = 1_000_000


def random_instance(n_arms: int, n_constraints: int) -> Instance:
    """A random instance whose uniform policy breaks every row slightly."""
    rng = np.random.default_rng(n_arms)
    costs = rng.uniform(0.0, 1.0, (n_constraints, n_arms))
    problem = Problem(
        arms=tuple(f"arm {a}" for a in range(n_arms)),
        constraints=tuple(
            Constraint(name=f"row {i}", bound=float(costs[i].mean()) - 0.05, std=0.3) for i in range(n_constraints)
        ),
        reward_std=0.3,
        delta=0.01,
        r=0.0,
    )
    return Instance(f"random-{n_arms}-{n_constraints}", "benchmark", problem, rng.uniform(0.0, 1.0, n_arms), costs)


SHAPES = {
    "K=7 d=2": load_instance("setup1-hard"),
    "K=12 d=3": load_instance("imdb"),
    "K=50 d=5 r=0": random_instance(50, 5),
}
LARGE_SHAPES = {
    "K=200 d=10 r=0": random_instance(200, 10),
    "K=1000 d=20 r=0": random_instance(1000, 20),
}


def certifiable_instance(n_arms: int, n_constraints: int) -> Instance:
    """A random instance for whole runs with a proof; a budget of 0.4 in every row, tolerance 0.2."""
    rng = np.random.default_rng(n_arms)
    mu, costs = rng.uniform(0.0, 1.0, n_arms), rng.uniform(0.0, 1.0, (n_constraints, n_arms))
    problem = Problem(
        arms=tuple(f"arm {a}" for a in range(n_arms)),
        constraints=tuple(Constraint(name=f"row {i}", bound=0.4, std=0.3) for i in range(n_constraints)),
        reward_std=0.3,
        delta=0.1,
        r=0.2,
        noise="independent",
    )
    return Instance(f"certifiable-{n_arms}-{n_constraints}", "benchmark", problem, mu, costs)


#: Whole runs of `certex`: what a plan or a proof costs depends on how far the run is.
WHOLE_RUNS = {
    "K=7 d=2": load_instance("setup1-hard").with_problem(r=0.2),
    "K=12 d=3": load_instance("imdb").with_problem(r=0.3),
    "K=100 d=5": certifiable_instance(100, 5),
}


@pytest.mark.parametrize("shape", [*SHAPES, *LARGE_SHAPES, "K=100 d=5"])
def test_linprog(shape: str, benchmark: Any) -> None:
    instance = {**WHOLE_RUNS, **SHAPES, **LARGE_SHAPES}[shape]
    rows, n_arms = instance.true_rows, instance.problem.n_arms
    benchmark.extra_info.update(what="linprog", shape=shape, steps=1)
    answer = benchmark(
        linprog, -instance.mu, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, n_arms)), b_eq=[1.0]
    )
    best = instance.optimum()
    assert best is not None
    assert -answer.fun == pytest.approx(best.value, abs=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("explorer", sorted(EXPLORERS))
def test_step(explorer: str, shape: str, benchmark: Any) -> None:
    # A tiny delta keeps the run from stopping, so that every round has the same number of steps. It also keeps the
    # walk over all vertices out of the picture; `test_simulate` has whole runs, and that walk, in it.
    instance, plan = plan_run(SHAPES[shape], explorer, {"delta": 1e-100})
    benchmark.extra_info.update(what=explorer, shape=shape, steps=_STEPS)

    def setup() -> tuple[tuple[Exploration, int], dict[str, Any]]:
        return (Exploration(instance, plan, 0), _STEPS), {}

    Exploration(instance, plan, 0).advance_to(instance.problem.n_arms + 1)  # compiles
    benchmark.pedantic(Exploration.advance_to, setup=setup, rounds=15)


@pytest.mark.parametrize("thresholds", ["proved", "stylised"])
@pytest.mark.parametrize("shape", WHOLE_RUNS)
def test_whole_certified_run(shape: str, thresholds: str, benchmark: Any) -> None:
    instance, plan = plan_run(WHOLE_RUNS[shape], "certex", {"thresholds": thresholds})
    first = Exploration(instance, plan, 0)
    first.advance_to(_LONGEST_RUN)  # compiles, and tells how many steps the same seed takes again
    assert first.session.stopped
    benchmark.extra_info.update(what=f"certex, {thresholds}", shape=shape, steps=first.session.steps)

    def setup() -> tuple[tuple[Exploration, int], dict[str, Any]]:
        return (Exploration(instance, plan, 0), _LONGEST_RUN), {}

    benchmark.pedantic(Exploration.advance_to, setup=setup, rounds=3)


@pytest.mark.parametrize("shape", LARGE_SHAPES)
@pytest.mark.parametrize("explorer", ["lagex", "uniform"])
def test_large_step(explorer: str, shape: str, benchmark: Any) -> None:
    instance, plan = plan_run(LARGE_SHAPES[shape], explorer, {"delta": 1e-100})
    benchmark.extra_info.update(what=explorer, shape=shape, steps=_LARGE_STEPS)

    def setup() -> tuple[tuple[Exploration, int], dict[str, Any]]:
        exploration = Exploration(instance, plan, 0)
        exploration.advance_to(instance.problem.n_arms + 10)
        return (exploration, exploration.session.steps + _LARGE_STEPS), {}

    benchmark.pedantic(Exploration.advance_to, setup=setup, rounds=3)


@pytest.mark.parametrize("shape", [*SHAPES, *LARGE_SHAPES])
def test_warm_lp(shape: str, benchmark: Any) -> None:
    """The LP kernel alone, from the optimal basis of a slightly different program."""
    instance = {**SHAPES, **LARGE_SHAPES}[shape]
    rows, n_arms = instance.true_rows, instance.problem.n_arms
    columns = np.vstack([np.ones(n_arms), rows])
    nudged = columns + 1e-3 * np.random.default_rng(0).normal(size=columns.shape)
    nudged[0] = 1.0
    basis, work = make_basis(len(rows)), make_lp_work(n_arms, len(rows))
    benchmark.extra_info.update(what="warm LP", shape=shape, steps=1)
    programs = itertools.cycle([columns, nudged])
    assert benchmark(lambda: solve_lp(instance.mu, next(programs), basis, work)) == OPTIMAL


@pytest.mark.parametrize("workers", [1, 2])
def test_simulate(workers: int, benchmark: Any) -> None:
    shape = f"{workers} worker{'s' * (workers > 1)}"
    benchmark.extra_info.update(what="simulate", shape=shape, steps=1)
    simulate("setup1-hard", "lagex", seeds=1)
    benchmark.pedantic(simulate, ("setup1-hard", "lagex"), {"seeds": 200, "workers": workers}, rounds=3)
