"""The certified stop keeps its promise: a wrong answer in at most delta of the runs, whatever rule chose the arms."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from contract.suitable import make_instance
from polyarm import load_instance, simulate
from polyarm.engine.plan import make_plan
from polyarm.engine.session import Session
from polyarm.environments.instances import Instance, is_correct, is_feasible

#: If the promise holds, a test fails by chance with at most this probability.
LEVEL = 1e-3


def assert_error_rate(errors: int, runs: int, delta: float) -> None:
    p_value = binomtest(errors, runs, delta, alternative="greater").pvalue
    assert p_value >= LEVEL, f"{errors} errors in {runs} runs at delta = {delta}"


@pytest.mark.parametrize(
    ("explorer", "how"),
    [
        ("certex", {"certificate": "pooled"}),
        ("uniform", {"stopping": "certified"}),
        ("lagex", {"stopping": "certified"}),
    ],
)
def test_certified_answers_are_feasible_and_r_optimal(explorer: str, how: dict[str, str]) -> None:
    settings: dict[str, Any] = {"delta": 0.1, "r": 0.3, **how}
    cell = simulate("setup2-easy", explorer, seeds=100, settings=settings).cells[0]
    assert all(run.status == "STOPPED" for run in cell.runs)
    assert_error_rate(sum(not run.correct for run in cell.runs), 100, 0.1)
    # Far fewer than delta in fact; if the thresholds were halved by mistake this would catch it.
    assert sum(not run.correct for run in cell.runs) <= 5


AVERAGED = [("setup2-easy", 0.4), ("setup2-hard", 0.4), ("imdb", 0.8), ("edge", 0.5)]


@pytest.mark.parametrize(("instance", "r"), AVERAGED)
def test_averaged_answers_err_in_at_most_delta_of_the_runs(instance: str, r: float) -> None:
    """A large delta and short runs, where an error would show first."""
    count_averaged_errors(instance, r, runs=500)


@pytest.mark.nightly
@pytest.mark.parametrize(("instance", "r"), AVERAGED)
def test_averaged_answers_err_in_at_most_delta_of_many_runs(instance: str, r: float) -> None:
    count_averaged_errors(instance, r, runs=2000)


def count_averaged_errors(instance: str, r: float, runs: int) -> None:
    delta = 0.3
    rows = [{"name": "price", "bound": 0.5, "std": 1.0}]
    # Two arms just on either side of the budget, and r hardly larger than what the safe one gives up.
    edge = make_instance([1.0, 0.6], [[0.8, 0.2]], rows, noise="independent")
    cell = simulate(
        edge if instance == "edge" else instance, "certex", seeds=runs, settings={"delta": delta, "r": r}
    ).cells[0]
    assert all(run.status == "STOPPED" for run in cell.runs)
    errors = sum(not run.correct for run in cell.runs)
    assert_error_rate(errors, runs, delta)
    assert errors <= 0.1 * runs, "far fewer than delta in fact: more would mean that a threshold has changed"


def test_noise_that_is_the_same_in_reward_and_costs_of_a_pull() -> None:
    """One draw moves reward and both costs together: what noise = correlated, the default of a problem, is for."""
    base = load_instance("setup2-easy")
    problem = base.problem.replace(noise="correlated", r=0.4, delta=0.1)
    instance = Instance("correlated", "", problem, base.mu, base.A)
    plan = make_plan("certex", problem, {})
    errors = 0
    for seed in range(40):
        session, rng = Session(plan, seed), np.random.default_rng(seed)
        while not session.stopped:
            arm = session.ask()
            shock = rng.standard_normal()
            session.tell(arm, base.mu[arm] + shock, (base.A[:, arm] - shock).tolist())
        errors += not is_correct(instance, session.recommend().policy)
    assert_error_rate(errors, 40, 0.1)


def test_no_false_alarm_on_a_tight_feasible_problem() -> None:
    """Only the first arm is feasible, and barely: INFEASIBLE would be wrong."""
    rows = [{"name": "price", "bound": 0.5, "std": 1.0}]
    instance = make_instance([1.0, 2.0], [[0.5, 1.5]], rows, noise="independent", r=0.1)
    cell = simulate(instance, "certex", seeds=100, horizon=1500).cells[0]
    assert_error_rate(sum(run.status == "INFEASIBLE" for run in cell.runs), 100, 0.1)


def test_the_best_safe_mix_is_safe() -> None:
    """At any horizon, not only when the explorer stops."""
    cell = simulate("setup2-easy", "certex", seeds=100, horizon=1500, settings={"delta": 0.1, "r": 0.05}).cells[0]
    safe = [run for run in cell.runs if run.status == "HORIZON" and run.policy is not None]
    assert len(safe) > 50
    instance = load_instance("setup2-easy")
    assert_error_rate(sum(not is_feasible(instance, run.policy) for run in safe if run.policy is not None), 100, 0.1)
