"""What a certified answer costs: mean pulls of `certex` beside what was aimed at, as a Markdown table.

Part of docs/comparison.md (`make table`). Numbers typed here are goals and what came before; everything else is run.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from polyarm import simulate
from polyarm.cli.report import progress_bar
from polyarm.environments.instances import Instance, load_instance
from polyarm.problem import Constraint, Problem

_HORIZON = 3_000_000


class Goal(NamedTuple):
    """One row: an instance at a tolerance, whether its variances are declared, what it took before, and the goal."""

    name: str
    r: float
    account: str
    before: str
    goal: int
    seeds: int = 200


#: `before`: with half-range scales where a range was given, and with the noise of reward and costs independent.
GOALS = (
    Goal("router-gaussian", 0.05, "declared", "4,350", 2_100),
    Goal("router-gaussian", 0.02, "declared", "16,900", 11_500),
    Goal("router-gaussian", 0.05, "estimated", "-", 3_100),
    Goal("ab-guardrail", 0.005, "range", "4.1 million (forecast)", 370_000, 20),
    Goal("ab-guardrail", 0.005, "estimated", "4.1 million (forecast)", 370_000, 20),
    Goal("router-bounded", 0.02, "range", "65,000", 10_000),
    Goal("router-bounded", 0.02, "estimated", "65,000", 7_000),
    Goal("router", 0.05, "range", "-", 6_500),
    Goal("router", 0.03, "range", "-", 15_000),
    Goal("router", 0.05, "estimated", "-", 4_000),
    Goal("router", 0.03, "estimated", "-", 7_500),
    Goal("setup1-hard", 0.1, "declared", "23,506", 25_857),
    Goal("setup1-easy", 0.1, "declared", "18,485", 20_334),
    Goal("setup2-easy", 0.1, "declared", "2,019", 2_221),
    Goal("setup2-hard", 0.1, "declared", "5,744", 6_318),
    Goal("imdb", 0.3, "declared", "2,229", 2_452),
)
#: The mean over random instances of 100 arms that the version before took, measured with its own defaults.
_LARGE_BEFORE = 13_870
_LARGE_INSTANCES = 20


def undeclared(instance: Instance) -> Instance:
    """Return an instance of which nothing is declared: every variance is estimated."""
    constraints = tuple(replace_account(c) for c in instance.problem.constraints)
    return instance.with_problem(reward_std=None, reward_range=None, family=None, constraints=constraints)


def replace_account(constraint: Constraint) -> Constraint:
    """Return a constraint without std and range."""
    return constraint if constraint.known else replace(constraint, std=None, range=None, cap=False)


def large_instance(seed: int) -> Instance:
    """Return a random instance of 100 arms and 5 constraints that the better arms break."""
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.0, 1.0, 100)
    costs = 0.5 * rng.uniform(0.0, 1.0, (5, 100)) + 0.5 * mu
    problem = Problem(
        arms=tuple(f"arm {a}" for a in range(mu.size)),
        constraints=tuple(
            Constraint(name=f"row {i}", bound=0.9 * float(row.mean()), std=0.3) for i, row in enumerate(costs)
        ),
        reward_std=0.3,
        delta=0.1,
        r=0.2,
    )
    return Instance(f"random-100-5-{seed}", "benchmark", problem, mu, costs)


def _run(instance: Instance, seeds: int, label: str) -> Any:
    with progress_bar(label, quiet=False) as progress:
        return simulate(instance, "certex", seeds=seeds, horizon=_HORIZON, progress=progress).cells[0]


def _row(label: str, r: float, account: str, before: str, goal: int, runs: list[Any]) -> str:
    stops = np.array([run.steps for run in runs], dtype=float)
    right = sum(run.correct and run.status == "STOPPED" for run in runs)
    error = stops.std() / math.sqrt(stops.size)
    reached = "yes" if stops.mean() <= goal else "**no**"
    return (
        f"| {label} | {r:g} | {account} | {before} | {goal:,} | {stops.mean():,.0f} ± {error:,.0f} | {reached} "
        f"| {right} of {stops.size} |"
    )


def tabulate_goals(share: float = 1.0) -> list[str]:
    """Return the table; `share` of the seeds are run."""
    lines = [
        "| instance | r | variances | before | goal | mean pulls ± standard error | reached | right answers |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for goal in GOALS:
        instance = load_instance(goal.name).with_problem(r=goal.r)
        if goal.account == "estimated":
            instance = undeclared(instance)
        label = f"{goal.name}, r = {goal.r:g}, {goal.account}"
        cell = _run(instance, max(int(goal.seeds * share), 2), label)
        lines.append(_row(goal.name, goal.r, goal.account, goal.before, goal.goal, list(cell.runs)))
    large = [_run(large_instance(s), 1, f"100 arms, {s}").runs[0] for s in range(max(int(_LARGE_INSTANCES * share), 2))]
    label = "100 arms, 5 rows, random"
    lines.append(_row(label, 0.2, "declared", f"{_LARGE_BEFORE:,}", int(0.7 * _LARGE_BEFORE), large))
    return lines
