"""Bulk simulation: summaries with censored runs, records, and files."""

import json
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyarm import Instance, InvalidInput, Simulation, load_instance, simulate
from polyarm.engine.run import Exploration, RunRecord, plan_run
from polyarm.experiments.results import Cell, quantile

INF = np.inf


# Quantiles: a run that hit the horizon is infinite.


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([5], 0.5, 5),
        ([1, 2, 3], 0.5, 2),
        ([3, 1, 2], 0.5, 2),
        ([1, 2, 3, 4], 0.5, 2.5),
        ([1, 2, 3, 4, 5], 0.25, 2),
        ([1, 2, 3, INF], 0.5, 2.5),
        ([1, 2, INF, INF], 0.25, 1.75),
        ([1, 2, INF, INF], 0.5, None),
        ([1, 2, INF, INF], 0.75, None),
        ([1, 2, INF], 0.5, 2),
        ([1, INF, INF], 0.5, None),
        ([1, INF], 0.25, None),
        ([INF], 0.5, None),
        ([INF, INF, INF], 0.25, None),
        ([1, 2, 3, 4, INF], 0.75, 4),
    ],
)
def test_quantiles_with_censored_runs(values: list[float], q: float, expected: float | None) -> None:
    result = quantile(np.array(values, dtype=float), q)
    assert result == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40), st.sampled_from([0.25, 0.5, 0.75]))
def test_quantiles_of_finished_runs_are_the_usual_ones(values: list[int], q: float) -> None:
    assert quantile(np.array(values, dtype=float), q) == pytest.approx(np.quantile(values, q), rel=1e-12)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20), st.integers(0, 20))
def test_more_censored_runs_never_lower_aquantile(values: list[int], censored: int) -> None:
    finished = np.array(values, dtype=float)
    cut = np.concatenate([finished, np.full(censored, INF)])
    for q in (0.25, 0.5, 0.75):
        low, high = quantile(finished, q), quantile(cut, q)
        assert low is not None
        assert high is None or high >= low


# Summaries.


def record(seed: int, steps: int, status: str = "STOPPED", **changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "policy": np.array([0.5, 0.5]),
        "feasible": True,
        "correct": True,
        "policy_violations": 0,
        "allocation_violations": 0,
        "excess": 0.0,
        "pulls": np.array([steps / 2, steps / 2]),
    }
    return RunRecord(seed=seed, status=status, steps=steps, **{**fields, **changes})


def summary(*runs: RunRecord) -> dict[str, Any]:
    return Cell("here", "someone", {"delta": 0.1}, 1000, runs, us_per_step=2.5).summary()


def test_the_mean_leaves_out_runs_that_hit_the_horizon() -> None:
    row = summary(record(0, 100), record(1, 1000, "HORIZON"), record(2, 300))
    assert row["mean_stop"] == 200.0
    assert row["seeds"] == 3
    assert row["stopped"] == 2
    assert row["horizon_hit"] == 1
    assert row["median_stop"] == 300.0
    assert row["q25_stop"] == 200.0
    assert row["q75_stop"] is None


def test_nothing_stopped_nothing_to_average() -> None:
    row = summary(record(0, 1000, "HORIZON"), record(1, 1000, "HORIZON"))
    assert [row[key] for key in ("mean_stop", "median_stop", "q25_stop", "q75_stop")] == [None] * 4
    json.dumps(row, allow_nan=False)


def test_a_run_that_stops_at_the_cap_has_stopped() -> None:
    assert summary(record(0, 1000))["median_stop"] == 1000.0


def test_rates_are_over_all_runs_whatever_their_status() -> None:
    row = summary(
        record(0, 100),
        record(1, 100, correct=False, policy_violations=7),
        record(2, 1000, "HORIZON", feasible=False, correct=False, policy_violations=9),
        record(3, 1000, "HORIZON", policy=None, feasible=False, correct=False, policy_violations=0),
    )
    assert row["feasible_rate"] == 0.5
    assert row["correct_rate"] == 0.25
    assert row["median_violations"] == 3.5


def test_the_horizon_is_a_status_not_a_stopping_time() -> None:
    cell = simulate("setup1-hard", "uniform", seeds=3, workers=1, horizon=50).cells[0]
    assert {(run.status, run.steps) for run in cell.runs} == {("HORIZON", 50)}
    assert cell.summary()["median_stop"] is None


def test_a_run_before_every_arm_was_pulled_has_no_policy() -> None:
    (run,) = simulate("setup1-hard", "uniform", seeds=1, workers=1, horizon=3).cells[0].runs
    assert run.policy is None
    assert (run.feasible, run.correct) == (False, False)


def test_violations_are_counted_against_the_truth() -> None:
    """Every mix of this instance costs too much in truth, so each step after the first K breaks the constraint."""
    instance = load_instance("figure2")
    lie = Instance("lie", "", instance.problem, instance.mu, 0.0 * instance.A)
    (run,) = (
        simulate(lie, "uniform", seeds=1, workers=1, horizon=203, settings={"r": 0.0}, allow_infeasible=True)
        .cells[0]
        .runs
    )
    assert run.allocation_violations == 200
    assert run.excess == pytest.approx(200 * 2.0)
    assert not run.feasible


# Arguments.


@pytest.mark.parametrize(
    ("field", "value"),
    [("seeds", 0), ("seeds", 2.0), ("seeds", True), ("workers", 0), ("workers", -1), ("horizon", 0), ("horizon", 1.5)],
)
def test_a_bad_count_is_named_with_its_value(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"{field}: expected a whole number, 1 or more") as caught:
        simulate("figure2", "uniform", **{field: value})
    assert repr(value) in str(caught.value)


def test_a_bad_first_seed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="first_seed: expected a whole number, 0 or more, got -1"):
        simulate("figure2", "uniform", seeds=2, first_seed=-1)


def test_an_infeasible_truth_is_refused_unless_allowed() -> None:
    instance = load_instance("figure2")
    never = Instance("never", "", instance.problem, instance.mu, 0.0 * instance.A)
    with pytest.raises(InvalidInput, match="instance 'never': no mix satisfies its true constraints"):
        simulate(never, "uniform", seeds=1)
    simulate(never, "uniform", seeds=1, horizon=20, allow_infeasible=True)


def test_delta_and_r_change_the_problem_and_are_recorded() -> None:
    loose = simulate("setup1-easy", "uniform", seeds=4, workers=1, settings={"r": 1.0, "delta": 0.3}).cells[0]
    tight = simulate("setup1-easy", "uniform", seeds=4, workers=1, settings={"r": 0.1}).cells[0]
    assert (loose.settings["delta"], loose.settings["r"]) == (0.3, 1.0)
    assert (tight.settings["delta"], tight.settings["r"]) == (0.01, 0.1)
    assert loose.summary()["mean_stop"] < tight.summary()["mean_stop"]


def test_progress_counts_every_run() -> None:
    calls: list[tuple[int, int]] = []
    simulate("figure2", ["uniform", "lagex"], seeds=3, workers=2, horizon=20, progress=lambda *a: calls.append(a))
    done = [count for count, _ in calls]
    assert done == sorted(done)
    assert calls[-1] == (6, 6)
    assert {total for _, total in calls} == {6}


def test_one_name_or_many() -> None:
    one = simulate("figure2", "uniform", seeds=1, horizon=20)
    many = simulate(["figure2", load_instance("figure1")], ["uniform"], seeds=1, horizon=20)
    assert [cell.instance for cell in one.cells] == ["figure2"]
    assert [cell.instance for cell in many.cells] == ["figure2", "figure1"]


@pytest.mark.parametrize("several", [False, True])
def test_instances_may_be_paths(tmp_path: Path, several: bool) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("mu = [1.0, 2.0]\nreward_std = 1.0\ndelta = 0.1\nr = 0.1\n")
    given: Any = [path] if several else path
    assert simulate(given, "uniform", seeds=1, horizon=20).cells[0].instance == "mine"


def test_instances_can_be_compared() -> None:
    assert load_instance("figure2") != load_instance("figure1")
    assert load_instance("figure2") == load_instance("figure2")


# Files.


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return simulate(["figure2", "setup1-hard"], ["uniform", "lagex"], seeds=3, workers=1, horizon=60)


def test_parquet_holds_every_run_as_it_was(simulation: Simulation, tmp_path: Path) -> None:
    simulation.to_parquet(tmp_path / "runs.parquet")
    stored = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    assert stored == list(simulation.runs())
    assert len(stored) == 12
    assert [p.name for p in tmp_path.iterdir()] == ["runs.parquet"]


def test_rows_hold_no_timings(simulation: Simulation) -> None:
    again = simulate(["figure2", "setup1-hard"], ["uniform", "lagex"], seeds=3, workers=2, horizon=60)
    assert list(again.runs()) == list(simulation.runs())


def test_runs_without_a_policy_can_be_stored(tmp_path: Path) -> None:
    simulate("setup1-hard", "uniform", seeds=2, workers=1, horizon=3).to_parquet(tmp_path / "runs.parquet")
    assert pq.read_table(tmp_path / "runs.parquet")["policy"].to_pylist() == [None, None]


def test_a_parquet_file_is_replaced_whole(simulation: Simulation, tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    path.write_text("something older")
    simulation.to_parquet(str(path))
    assert pq.read_table(path).num_rows == 12


def test_a_missing_folder_is_refused(simulation: Simulation, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist") as caught:
        simulation.to_parquet(tmp_path / "nowhere" / "runs.parquet")
    assert str(tmp_path / "nowhere") in str(caught.value)


def test_a_folder_in_the_way_is_refused_and_leaves_nothing_behind(simulation: Simulation, tmp_path: Path) -> None:
    (tmp_path / "runs.parquet").mkdir()
    with pytest.raises(InvalidInput) as caught:
        simulation.to_parquet(tmp_path / "runs.parquet")
    assert str(tmp_path / "runs.parquet") in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["runs.parquet"]


def test_a_full_disk_is_refused_and_leaves_the_old_file_alone(simulation: Simulation, tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    path.write_text("something older")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # no file may grow beyond 1000 bytes
    try:
        with pytest.raises(InvalidInput, match="cannot write") as caught:
            simulation.to_parquet(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(path) in str(caught.value)
    assert path.read_text() == "something older"
    assert [p.name for p in tmp_path.iterdir()] == ["runs.parquet"]


# One exploration at a time.


def test_a_record_judges_the_mix_held_at_the_end() -> None:
    instance, plan = plan_run(load_instance("figure2"), "uniform", {"r": 0.5})
    exploration = Exploration(instance, plan, seed=0)
    exploration.advance_to(100_000)
    run = exploration.record()
    assert run.status == "STOPPED"
    assert run.policy is not None
    assert run.feasible == (instance.excess(run.policy) <= 1e-9)
    assert run.pulls.sum() == run.steps == exploration.session.steps
