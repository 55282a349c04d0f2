"""Replay of logged outcomes: the file, the driver, the command."""

import csv
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyarm
from polyarm import Constraint, InvalidInput, Problem, Session, load_instance, read_log, replay
from polyarm.cli.main import main
from polyarm.engine.randomness import WORLD, make_stream
from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.synthetic import sample
from unit.pages import DOCS, blocks

Row = Sequence[Any]

PROBLEM = Problem(
    arms=("small", "large"),
    reward_std=0.2,
    delta=0.1,
    r=0.1,
    constraints=(
        Constraint(name="price", bound=1.0, std=0.3),
        Constraint(name="size", bound=5.0, row=(1.0, 9.0)),
    ),
)
HEADER = ["arm", "reward", "price"]
ROWS = [["small", 0.6, 0.2], ["large", 0.9, 2.0], ["small", 0.5, 0.3], ["large", 0.8, 1.9], ["small", 0.7, 0.1]]


def write_csv(path: Path, header: Row, rows: Sequence[Row]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_parquet(path: Path, header: Sequence[str], rows: Sequence[Row]) -> Path:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    parquet.write_table(pa.table(columns), path)
    return path


def draw_rows(instance: polyarm.Instance, per_arm: int) -> list[list[Any]]:
    """Return outcomes of an instance, each arm from a stream of its own, the arms in turn."""
    world, problem = instance.world(), instance.problem
    streams = [make_stream(7, purpose) for purpose in range(10, 10 + problem.n_arms)]
    costs = np.zeros(problem.n_constraints)
    rows = []
    for _ in range(per_arm):
        for arm, stream in enumerate(streams):
            reward = sample(world, arm, stream, costs)
            rows.append([problem.arms[arm], reward, *costs.tolist()])
    return rows


def column_names(problem: Problem) -> list[str]:
    return [*HEADER[:2], *(c.name for c in problem.constraints)]


@pytest.mark.parametrize("explorer", ["lagex", "uniform"])
def test_a_replay_is_a_session_fed_with_the_rows(tmp_path: Path, explorer: str) -> None:
    instance, plan = plan_run(load_instance("setup1-easy"), explorer, {"r": 0.1, "delta": 0.1})
    rows = draw_rows(instance, per_arm=400)
    path = write_csv(tmp_path / "log.csv", column_names(plan.problem), rows)
    result = replay(load_instance("setup1-easy").problem, path, explorer, seed=3, settings={"r": 0.1, "delta": 0.1})

    session = Session(plan, seed=3)
    left = {arm: [row for row in rows if row[0] == arm] for arm in plan.problem.arms}
    while not session.stopped:
        _, reward, *costs = left[plan.problem.arms[session.ask()]].pop(0)
        session.tell(session.ask(), reward, costs)

    assert result.status == "STOPPED"
    assert result.exhausted_arm is None
    assert result.session.state_dict() == session.state_dict()
    assert result.recommendation is not None
    assert result.recommendation.policy.tolist() == session.recommend().policy.tolist()
    assert result.rows_left == {arm: len(rest) for arm, rest in left.items()}
    assert result.rows_used == {arm: 400 - len(rest) for arm, rest in left.items()}
    assert result.steps == session.steps == sum(result.rows_used.values())
    assert result.settings == {**session.settings, "r": 0.1, "delta": 0.1}


@pytest.mark.parametrize("horizon", [50, 100_000])
def test_a_replay_of_a_simulation_is_the_simulation(tmp_path: Path, horizon: int) -> None:
    instance, plan = plan_run(load_instance("setup1-easy"), "lagex", {"r": 0.1, "delta": 0.1})
    exploration = Exploration(instance, plan, seed=5)
    exploration.advance_to(horizon)
    record = exploration.record()

    # The same pulls again, by hand, with the simulation's own noise: these are the log.
    session, noise, costs, rows = Session(plan, seed=5), make_stream(5, WORLD), np.zeros(2), []
    for _ in range(record.steps):
        reward = sample(instance.world(), session.ask(), noise, costs)
        rows.append([session.ask(), reward, *costs.tolist()])
        session.tell(session.ask(), reward, costs.tolist())

    path = write_csv(tmp_path / "log.csv", column_names(plan.problem), rows)
    result = replay(plan.problem, path, seed=5, horizon=horizon)
    assert result.status == record.status == ("HORIZON" if horizon == 50 else "STOPPED")
    assert result.session.state_dict() == exploration.session.state_dict()
    assert set(result.rows_left.values()) == {0}


def test_csv_and_parquet_are_the_same_log(tmp_path: Path) -> None:
    rows = draw_rows(load_instance("router"), per_arm=20)
    problem = load_instance("router").problem
    header = column_names(problem)
    by_name = read_log(write_csv(tmp_path / "log.csv", header, rows), problem)
    indexed = [[problem.arms.index(arm), *values] for arm, *values in rows]
    logs = [
        by_name,
        read_log(write_csv(tmp_path / "indexed.csv", header, indexed), problem),
        read_log(write_parquet(tmp_path / "log.parquet", header, rows), problem),
        read_log(write_parquet(tmp_path / "indexed.parquet", header, indexed), problem),
    ]
    expected = [[row[1:] for row in rows if row[0] == arm] for arm in problem.arms]
    for log in logs:
        assert [outcomes.tolist() for outcomes in log.outcomes] == expected
    results = [replay(problem, log) for log in logs]
    assert all(r.session.state_dict() == results[0].session.state_dict() for r in results)


def test_extra_columns_order_blank_lines_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    plain = read_log(write_csv(tmp_path / "plain.csv", HEADER, ROWS), PROBLEM)
    path = tmp_path / "dressed.CSV"
    lines = ["when, price, arm, size, reward", *(f'"a, b", {c}, {a}, x, {r}' for a, r, c in ROWS)]
    path.write_text("\n\n".join(lines), encoding="utf-8-sig")
    dressed = read_log(path, PROBLEM)
    assert [o.tolist() for o in dressed.outcomes] == [o.tolist() for o in plain.outcomes]
    assert plain.outcomes[0].tolist() == [[0.6, 0.2], [0.5, 0.3], [0.7, 0.1]]


def test_numbers_that_are_names_are_never_taken_for_indices(tmp_path: Path) -> None:
    problem = PROBLEM.replace(arms=("2", "1"))
    log = read_log(write_csv(tmp_path / "log.csv", HEADER, [[1, 0.5, 0.5]]), problem)
    assert [len(outcomes) for outcomes in log.outcomes] == [0, 1]
    path = write_csv(tmp_path / "log.csv", HEADER, [[0, 0.5, 0.5]])
    with pytest.raises(InvalidInput, match="unknown arm '0'; known: 1, 2"):
        read_log(path, problem)


def test_an_arm_without_rows_ends_the_replay(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", HEADER, ROWS)
    result = replay(PROBLEM, path, "uniform", settings={"r": 0.0})
    assert result.status == "EXHAUSTED"
    assert result.exhausted_arm is not None
    assert result.rows_left[result.exhausted_arm] == 0
    assert PROBLEM.arms[result.session.ask()] == result.exhausted_arm
    assert result.recommendation is not None
    assert not result.recommendation.stopped
    for arm, logged in (("small", 3), ("large", 2)):
        assert result.rows_used[arm] + result.rows_left[arm] == logged
    # The replay ends, the session does not: a live outcome takes it on.
    result.session.tell(result.exhausted_arm, 0.5, [1.0])
    assert result.session.steps == result.steps + 1


def test_without_an_outcome_of_every_arm_there_is_no_mix(tmp_path: Path) -> None:
    result = replay(PROBLEM, write_csv(tmp_path / "log.csv", HEADER, ROWS[:1]))
    assert (result.status, result.exhausted_arm, result.steps) == ("EXHAUSTED", "large", 1)
    assert result.recommendation is None
    empty = replay(PROBLEM, write_csv(tmp_path / "log.csv", HEADER, []))
    assert (empty.status, empty.exhausted_arm, empty.steps) == ("EXHAUSTED", "small", 0)


def test_claims_say_what_a_log_cannot_show(tmp_path: Path) -> None:
    problem = PROBLEM.with_known_rows(np.array([[0.2, 2.0], [1.0, 9.0]]))
    rows = [[arm, 0.1 * arm, 0.0] for arm in (0, 1)] * 5_000
    result = replay(problem, write_csv(tmp_path / "log.csv", HEADER, rows), settings={"beta": "theory"})
    assert result.status == "STOPPED"
    assert result.recommendation is not None
    claims = result.recommendation.claims
    assert any("confidence" in sentence for sentence in claims.proved)
    assert all(sentence.startswith("if the logged outcomes are independent") for sentence in claims.proved)
    assert "logged outcomes are independent" in claims.not_proved[-1]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("arm", "medium", "unknown arm 'medium'; known: large, small"),
        ("arm", "2", "unknown arm '2'"),
        ("arm", "-1", "unknown arm '-1'"),
        ("arm", None, "unknown arm"),
        ("reward", "high", "expected a finite number, got 'high'"),
        ("reward", None, "expected a finite number, got"),
        ("price", "nan", "expected a finite number, got 'nan'"),
        ("price", "-inf", "expected a finite number, got '-inf'"),
    ],
)
def test_a_wrong_value_is_named_by_file_row_and_column(
    tmp_path: Path, kind: str, column: str, value: str | None, message: str
) -> None:
    rows: list[list[str | None]] = [[str(cell) for cell in row] for row in ROWS[:3]]
    rows[2][HEADER.index(column)] = value
    path = (write_csv if kind == "csv" else write_parquet)(tmp_path / f"log.{kind}", HEADER, rows)
    with pytest.raises(InvalidInput, match=re.escape(f"{path}, row 3, column {column!r}: {message}")):
        read_log(path, PROBLEM)


@pytest.mark.parametrize("value", [float("nan"), True])
def test_typed_values_of_parquet_must_be_finite_numbers(tmp_path: Path, value: Any) -> None:
    path = write_parquet(tmp_path / "log.parquet", HEADER, [["small", value, 0.5]])
    with pytest.raises(InvalidInput, match="row 1, column 'reward': expected a finite number"):
        read_log(path, PROBLEM)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_missing_column_is_named(tmp_path: Path, kind: str) -> None:
    rows = [row[:2] for row in ROWS]
    path = (write_csv if kind == "csv" else write_parquet)(tmp_path / f"log.{kind}", HEADER[:2], rows)
    with pytest.raises(InvalidInput, match=rf"log\.{kind}: no column 'price'; needed: .*found: \['arm', 'reward'\]"):
        read_log(path, PROBLEM)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 'arm'"),
        ("arm,reward,price,reward\nsmall,1,1,2\n", "more than one column 'reward'"),
        ("arm,reward,price\nsmall,1,1\nsmall,1\n", "row 2: expected 3 values, as in the header, got 2"),
        ("arm,reward,price\nsmall,1,000,1\n", "row 1: expected 3 values, as in the header, got 4"),
        ('arm,reward,price\nsmall,1,1\n"small,1,1\n', "cannot read"),
    ],
)
def test_a_broken_csv_file_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_log(path, PROBLEM)


def test_files_that_are_no_logs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no such log file: .*missing\.csv"):
        read_log(tmp_path / "missing.csv", PROBLEM)
    for name, message in (
        ("log.txt", r"ends in \.csv or \.parquet"),
        ("log.csv", "cannot"),
        ("log.parquet", "cannot"),
    ):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00")
        with pytest.raises(InvalidInput, match=message):
            read_log(tmp_path / name, PROBLEM)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(tmp_path / "log.parquet", HEADER, ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInput, match=r"pip install 'polyarm\[parquet\]'"):
        read_log(path, PROBLEM)


def test_a_log_must_fit_the_problem(tmp_path: Path) -> None:
    log = read_log(write_csv(tmp_path / "log.csv", HEADER, ROWS), PROBLEM)
    with pytest.raises(InvalidInput, match="read for other arms or constraints"):
        replay(PROBLEM.replace(arms=("large", "small")), log)
    named = PROBLEM.replace(constraints=(Constraint(name="reward", bound=1.0, std=0.3),))
    with pytest.raises(InvalidInput, match="'reward': a log has another column"):
        read_log(tmp_path / "log.csv", named)


@pytest.mark.parametrize(
    "wrong",
    [{"explorer": "lagexx"}, {"seed": -1}, {"horizon": 0}, {"settings": {"x": 1}}, {"settings": {"delta": 2}}],
)
def test_wrong_arguments_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = write_csv(tmp_path / "log.csv", HEADER, ROWS)
    with pytest.raises(InvalidInput):
        replay(PROBLEM, path, **wrong)


def run_command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["replay", *arguments])
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    problem = tmp_path / "problem.toml"
    problem.write_text(
        'arms = ["small", "large"]\nreward_std = 0.2\ndelta = 0.1\nr = 0.1\n'
        '[[constraints]]\nname = "price"\nbound = 1.0\nstd = 0.3\n'
    )
    return str(problem), str(write_csv(tmp_path / "log.csv", HEADER, ROWS * 40))


def reject_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize("horizon", ["1", "3", "1000"])
def test_the_command_prints_what_replay_returns(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], horizon: str
) -> None:
    problem, log = files
    options = ["--explorer", "uniform", "--seed", "2", "--horizon", horizon, "--set", "r=0.2"]
    assert run_command(problem, log, *options, "--json") == 0
    shown = json.loads(capsys.readouterr().out, parse_constant=reject_constant)
    result = replay(polyarm.load_problem(problem), log, "uniform", 2, int(horizon), {"r": 0.2})
    for name in ("status", "steps", "exhausted_arm", "rows_used", "rows_left", "settings"):
        assert shown[name] == getattr(result, name)
    answer = result.recommendation
    assert shown["policy"] == (None if answer is None else answer.shares(result.session.problem))
    assert shown["value"] == (None if answer is None else answer.value)
    assert shown["explorer"] == "uniform"
    assert shown["seed"] == 2


def test_the_command_prints_a_table(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    problem, log = files
    assert run_command(problem, log) == 0
    text = capsys.readouterr().out
    assert "stopped after" in text
    for part in ("recommended mix", "rows left", "estimated slack", "price <= 1", "not proved:", "independent"):
        assert part in text
    write_csv(Path(log), HEADER, ROWS[:1])
    assert run_command(problem, log) == 0
    assert "asked for 'large', which has no rows left, after 1 rows: no mix" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.toml", "{log}"),
        ("{problem}", "missing.csv"),
        ("router", "{log}"),
        ("{problem}", "{log}", "--explorer", "lagexx"),
        ("{problem}", "{log}", "--set", "r"),
        ("{problem}", "{log}", "--horizon", "0"),
        ("{problem}",),
    ],
)
def test_a_mistake_on_the_command_line_is_one_message(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    problem, log = files
    assert run_command(*(a.format(problem=problem, log=log) for a in arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err
    assert "Traceback" not in captured.err


def test_the_example_in_the_docs_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    python, toml, *_ = blocks(DOCS / "replay.md")
    names: dict[str, Any] = {}
    exec(python.text, names)
    assert capsys.readouterr().out.startswith("STOPPED")
    Path(toml.file).write_text(toml.text)
    assert polyarm.load_problem(toml.file) == names["problem"], "both state the same"
