"""The command line: exit codes, messages, and what programs read."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from polyarm import instance_names
from polyarm.cli.main import main
from polyarm.engine.run import Exploration
from polyarm.files import replaced
from polyarm.rules.registry import EXPLORERS

SIMULATE_KEYS = [
    "instance",
    "explorer",
    "settings",
    "seeds",
    "stopped",
    "horizon_hit",
    "median_stop",
    "mean_stop",
    "q25_stop",
    "q75_stop",
    "feasible_rate",
    "correct_rate",
    "median_violations",
    "us_per_step",
]
PNG = b"\x89PNG\r\n\x1a\n"

FLAT = """
mu = [1.0, 2.0, 3.0]
A = [[1, 0, 2]]
b = [0.5]
reward_std = 1.0
cost_std = 1.0
delta = 0.1
r = 0.1
"""
INFEASIBLE = FLAT.replace("[[1, 0, 2]]", "[[1, 1, 2]]")


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Shell:
    """Runs the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Done:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        return Done(exit_.value.code, out, err)

    def json(self, *arguments: object) -> Any:
        done = self(*arguments, "--json")
        assert done.code == 0, done.err
        return strict_json(done.out)

    def refusal(self, *arguments: object) -> str:
        done = self(*arguments)
        assert done.code == 2
        assert done.out == ""
        assert "Traceback" not in done.err
        return done.err


@pytest.fixture
def polyarm(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail when an exploration is started: the command should have been refused before."""

    def refuse(*_: Any) -> None:
        pytest.fail("the exploration was started")

    monkeypatch.setattr(Exploration, "advance_to", refuse)


def strict_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def in_a_process(*arguments: str, code: str = "from polyarm.cli.main import main; main()", **env: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )
    return Done(done.returncode, done.stdout, done.stderr)


# Outside this process.


def test_the_installed_command_is_this_one() -> None:
    (script,) = entry_points(group="console_scripts", name="polyarm")
    assert script.load() is main


def test_a_user_mistake_is_one_line_and_exit_code_2() -> None:
    done = in_a_process("run", "setup1hard")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("polyarm: unknown instance 'setup1hard'; known: ")
    assert len(done.err.splitlines()) == 1


def test_json_is_all_there_is_on_standard_output() -> None:
    done = in_a_process("run", "figure2", "--horizon", "50", "--json")
    assert done.code == 0
    assert done.err == ""
    assert strict_json(done.out)["steps"] == 50


def test_piped_tables_are_plain_text() -> None:
    done = in_a_process("simulate", "figure2", "--explorer", "uniform", "--seeds", "2", "--horizon", "50")
    assert done.code == 0
    assert done.err == "", "no progress bar where there is no terminal"
    assert "figure2" in done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["simulate", "--help"], ["plan", "--help"], ["--version"]]
)
def test_help_does_not_load_the_compiler(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from polyarm.cli.main import main\n"
        "try: main()\n"
        "finally: print('loaded:', *sorted({'numpy', 'numba', 'scipy', 'matplotlib', 'pyarrow'} & set(sys.modules)))"
    )
    done = in_a_process(*arguments, code=code)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "loaded:"


def test_a_reader_who_leaves_early_gets_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", "from polyarm.cli.main import main; main()", "instances"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert done.returncode != 0
    assert done.stderr == ""


# Help and lists.


def test_version(polyarm: Shell) -> None:
    import polyarm as package

    assert polyarm("--version") == Done(0, f"polyarm {package.__version__}\n", "")


def test_help_names_the_commands(polyarm: Shell) -> None:
    done = polyarm("--help")
    assert done.code == 0
    for command in ("instances", "run", "simulate", "plan"):
        assert command in done.out


def test_instances_lists_every_shipped_instance(polyarm: Shell) -> None:
    rows = polyarm.json("instances")
    assert [row["name"] for row in rows] == instance_names()
    (imdb,) = (row for row in rows if row["name"] == "imdb")
    assert imdb.items() >= {"arms": 12, "constraints": 3, "family": "gaussian", "delta": 0.1, "r": 0.01}.items()
    table = polyarm("instances")
    assert table.code == 0
    assert all(name in table.out for name in instance_names())


# run


def test_run_reports_everything_a_program_needs(polyarm: Shell) -> None:
    report = polyarm.json("run", "setup1-easy", "--explorer", "lagex", "--seed", 3)
    assert report.items() >= {"instance": "setup1-easy", "explorer": "lagex", "seed": 3, "status": "STOPPED"}.items()
    arms = [f"arm {i + 1}" for i in range(7)]
    assert list(report["policy"]) == list(report["pulls"]) == arms
    assert sum(report["policy"].values()) == pytest.approx(1.0)
    assert sum(report["pulls"].values()) == report["steps"]
    assert report["statistic"] > report["threshold"]
    assert list(report["slack"]) == ["constraint 1", "constraint 2"]
    assert isinstance(report["value"], float)
    assert set(report["truth"]) == {"feasible", "correct"}
    assert report["settings"].items() >= {"preset": "corrected", "delta": 0.01, "r": 0.01}.items()
    assert [(claim["about"], claim["kind"]) for claim in report["claims"]] == [
        ("feasible", "none"),
        ("near-optimal", "none"),
    ]
    assert "constraint 1" in report["claims"][0]["text"]


def test_run_prints_the_mix_and_what_was_not_proved(polyarm: Shell) -> None:
    done = polyarm("run", "router", "--horizon", 400)
    assert done.code == 0
    assert "reached the horizon after 400 pulls" in done.out
    for text in ("reasoner", "price <= 1.2", "latency <= 1.15", "estimated value", "not proved:", "in truth"):
        assert text in done.out


def test_run_is_decided_by_its_seed(polyarm: Shell) -> None:
    first, again, other = (polyarm.json("run", "router", "--horizon", 300, "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first["value"] != other["value"]


@pytest.mark.parametrize("explorer", [name for name, e in EXPLORERS.items() if not getattr(e, "needs_known_rows", 0)])
def test_run_takes_every_explorer(polyarm: Shell, explorer: str) -> None:
    report = polyarm.json("run", "figure2", "--explorer", explorer, "--horizon", 100)
    assert report["explorer"] == explorer


def test_set_changes_the_problem_and_the_explorer(polyarm: Shell) -> None:
    changes = ["--set", "delta=0.2", "--set", "r=0.5", "--set", "beta=theory", "--set", "step_size=0.25"]
    report = polyarm.json("run", "setup1-easy", "--explorer", "lagex", "--horizon", 50, *changes)
    assert report["settings"].items() >= {"delta": 0.2, "r": 0.5, "beta": "theory", "step_size": 0.25}.items()


def test_none_takes_a_setting_away(polyarm: Shell) -> None:
    base = ["run", "setup1-easy", "--explorer", "lagex", "--horizon", 50, "--set", "preset=paper"]
    assert polyarm.json(*base)["settings"]["assumed_reward_std"] == 1.0
    assert polyarm.json(*base, "--set", "assumed_reward_std=none")["settings"]["assumed_reward_std"] is None


@pytest.mark.parametrize("horizon", [1, 3, 6])
def test_too_few_pulls_give_no_mix_and_no_error(polyarm: Shell, horizon: int) -> None:
    report = polyarm.json("run", "setup1-easy", "--horizon", horizon)
    assert report.items() >= {"status": "HORIZON", "steps": horizon, "policy": None}.items()
    done = polyarm("run", "setup1-easy", "--horizon", horizon)
    assert done.code == 0
    assert "no mix after" in done.out


def test_run_takes_a_file(polyarm: Shell, tmp_path: Path) -> None:
    path = tmp_path / "shops.toml"
    path.write_text(f"[east]\n{FLAT}\n[west]\n{FLAT}")
    assert polyarm.json("run", f"{path}:west", "--horizon", 20)["instance"] == "west"
    assert "holds 2 instances (east, west)" in polyarm.refusal("run", path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument"),
        (["run", "setup1-easy", "--colour", "red"], "No such option"),
        (["run", "setup1-easy", "--seed", "x"], "--seed"),
        (["dance"], "No such command"),
        (["run", "no.toml"], "no such instance file: no.toml"),
        (["run", "setup1-easy", "--explorer", "lagx"], "unknown explorer 'lagx'"),
        (["run", "setup1-easy", "--seed", "-1"], "seed: expected a whole number, 0 or more, got -1"),
        (["run", "setup1-easy", "--horizon", "0"], "horizon: expected a whole number, 1 or more, got 0"),
        (["run", "setup1-easy", "--set", "r"], "--set 'r': expected KEY=VALUE"),
        (["run", "setup1-easy", "--set", "=1"], "--set '=1': expected KEY=VALUE"),
        (["run", "setup1-easy", "--set", "r="], "--set 'r=': expected KEY=VALUE"),
        (["run", "setup1-easy", "--set", "r=1", "--set", "r=2"], "--set r: given twice"),
        (["run", "setup1-easy", "--set", "r=-1"], "r: Input should be greater than or equal to 0"),
        (["run", "setup1-easy", "--set", "delta=1"], "delta: Input should be less than 1"),
        (["run", "setup1-easy", "--set", "delta=nan"], "delta: Input should be a finite number"),
        (
            ["run", "setup1-easy", "--set", "thresholds=x"],
            "thresholds: Input should be 'proved' or 'stylised'; got 'x'",
        ),
        (["simulate"], "Missing argument"),
        (["simulate", "setup1-easy", "nosuch"], "unknown instance 'nosuch'"),
        (["simulate", "setup1-easy", "--seeds", "0"], "seeds: expected a whole number, 1 or more, got 0"),
        (["simulate", "setup1-easy", "--workers", "0"], "workers: expected a whole number, 1 or more, got 0"),
        (["simulate", "setup1-easy", "--first-seed", "-1"], "seed: expected a whole number, 0 or more, got -1"),
        (["simulate", "setup1-easy", "--horizon", "-5"], "horizon: expected a whole number, 1 or more, got -5"),
        (["simulate", "setup1-easy", "--explorer", "uniform,lagx"], "unknown explorer 'lagx'"),
        (["simulate", "setup1-easy", "--explorer", ""], "unknown explorer ''"),
    ],
)
def test_a_mistake_is_refused_before_anything_runs(
    polyarm: Shell, no_work: None, arguments: list[str], message: str
) -> None:
    assert message in polyarm.refusal(*arguments)


@pytest.mark.parametrize("command", ["run", "simulate"])
def test_an_unknown_key_lists_the_settings(polyarm: Shell, no_work: None, command: str) -> None:
    message = polyarm.refusal(command, "setup1-easy", "--explorer", "lagex", "--set", "colour=red")
    assert "'colour'" in message
    for name in EXPLORERS["lagex"].settings.model_fields:
        assert name in message


@pytest.mark.parametrize("command", ["run", "simulate"])
def test_an_unknown_key_lists_delta_and_r(polyarm: Shell, command: str) -> None:
    message = polyarm.refusal(command, "setup1-easy", "--explorer", "lagex", "--set", "colour=red")
    known = message.partition("known: ")[2].strip().rstrip(".").split(", ")
    assert {"delta", "r"} <= set(known)


@pytest.mark.parametrize("command", ["run", "simulate"])
def test_an_infeasible_truth_must_be_allowed(polyarm: Shell, tmp_path: Path, command: str) -> None:
    path = tmp_path / "never.toml"
    path.write_text(INFEASIBLE)
    message = polyarm.refusal(command, path, "--horizon", 50)
    assert "instance 'never': no mix satisfies its true constraints" in message
    assert "--allow-infeasible" in message
    done = polyarm(command, path, "--horizon", 50, "--allow-infeasible", "--json")
    assert done.code == 0
    strict_json(done.out)


# Pictures.


def test_plot_writes_a_picture_and_says_where(polyarm: Shell, tmp_path: Path) -> None:
    done = polyarm("run", "router", "--horizon", 300, "--plot", tmp_path / "run.png")
    assert done.code == 0
    assert (tmp_path / "run.png").read_bytes().startswith(PNG)
    assert str(tmp_path / "run.png") in done.out


@pytest.mark.parametrize(("ending", "signature"), [("PNG", PNG), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_plot_writes_the_format_of_the_ending(polyarm: Shell, tmp_path: Path, ending: str, signature: bytes) -> None:
    assert polyarm("run", "figure2", "--horizon", 60, "--plot", tmp_path / f"run.{ending}").code == 0
    assert (tmp_path / f"run.{ending}").read_bytes().startswith(signature)


def test_plot_leaves_standard_output_to_json(polyarm: Shell, tmp_path: Path) -> None:
    report = polyarm.json("run", "figure2", "--horizon", 60, "--plot", tmp_path / "run.png")
    assert report["steps"] == 60
    assert (tmp_path / "run.png").exists()


@pytest.mark.parametrize("horizon", [1, 3, 4])
def test_plot_of_a_run_too_short_to_show_anything(polyarm: Shell, tmp_path: Path, horizon: int) -> None:
    assert polyarm("run", "figure2", "--horizon", horizon, "--plot", tmp_path / "run.png").code == 0
    assert (tmp_path / "run.png").read_bytes().startswith(PNG)


def test_plot_of_a_problem_without_constraints(polyarm: Shell, tmp_path: Path) -> None:
    path = tmp_path / "free.toml"
    path.write_text("mu = [1.0, 2.0, 3.0]\nreward_std = 1.0\ndelta = 0.1\nr = 0.1\n")
    done = polyarm("run", path, "--plot", tmp_path / "run.png")
    assert done.code == 0
    assert "arm 3" in done.out
    assert (tmp_path / "run.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run.jpg", "expected a file name ending in .png, .pdf, .svg"),
        ("run", "expected a file name ending in .png, .pdf, .svg"),
        ("nowhere/run.png", "does not exist"),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_running(
    polyarm: Shell, no_work: None, tmp_path: Path, name: str, message: str
) -> None:
    complaint = polyarm.refusal("run", "router", "--plot", tmp_path / name)
    assert message in complaint
    assert str(tmp_path / name) in complaint
    assert list(tmp_path.iterdir()) == []


# simulate


def test_simulate_reports_the_columns_of_the_table(polyarm: Shell) -> None:
    rows = polyarm.json(
        "simulate", "setup1-easy", "figure2", "--explorer", "lagex, uniform", "--seeds", 5, "--horizon", 2000
    )
    assert [(row["instance"], row["explorer"]) for row in rows] == [
        ("setup1-easy", "lagex"),
        ("setup1-easy", "uniform"),
        ("figure2", "lagex"),
        ("figure2", "uniform"),
    ]
    for row in rows:
        assert set(SIMULATE_KEYS) <= set(row)
        assert row["seeds"] == 5 == row["stopped"] + row["horizon_hit"]
        assert 0 <= row["correct_rate"] <= row["feasible_rate"] <= 1
        assert row["settings"].items() >= {"preset": "corrected", "delta": 0.01, "r": 0.01}.items()
        assert row["us_per_step"] > 0


def test_runs_that_hit_the_horizon_have_no_stopping_time(polyarm: Shell) -> None:
    arguments = ["simulate", "setup1-hard", "--explorer", "uniform", "--seeds", 3, "--horizon", 40]
    (row,) = polyarm.json(*arguments)
    assert row["stopped"] == 0
    assert row["horizon_hit"] == 3
    assert [row[key] for key in ("q25_stop", "median_stop", "q75_stop", "mean_stop")] == [None] * 4
    done = polyarm(*arguments)
    assert done.code == 0
    assert "inf" in done.out
    assert not re.search(r"(?<![\d.,])40(?![\d.,])", done.out), "a cap is never a stopping time"
    assert "quantiles count a run that hit the horizon as infinite" in done.out


def test_simulate_records_its_settings(polyarm: Shell) -> None:
    (row,) = polyarm.json(
        *("simulate", "figure2", "--explorer", "lagex", "--seeds", 2, "--horizon", 50),
        *("--set", "delta=0.2", "--set", "tracking=d"),
    )
    assert row["settings"].items() >= {"delta": 0.2, "r": 0.01, "tracking": "d"}.items()


def test_simulate_starts_at_the_first_seed(polyarm: Shell, tmp_path: Path) -> None:
    out = tmp_path / "runs.parquet"
    polyarm.json(
        *("simulate", "figure2", "--explorer", "uniform", "--seeds", 3, "--first-seed", 7, "--horizon", 50),
        *("--out", out),
    )
    assert pq.read_table(out)["seed"].to_pylist() == [7, 8, 9]


def test_the_parquet_file_has_one_row_per_seed(polyarm: Shell, tmp_path: Path) -> None:
    out = tmp_path / "runs.parquet"
    done = polyarm(
        *("simulate", "figure2", "setup1-hard", "--explorer", "lagex,uniform", "--seeds", 4, "--horizon", 100),
        *("--workers", 2, "--out", out),
    )
    assert done.code == 0
    assert str(out) in done.out.replace("\n", "")
    table = pq.read_table(out)
    assert table.num_rows == 2 * 2 * 4
    assert set(table.column_names) == {
        *("instance", "explorer", "settings", "horizon", "seed", "status", "steps", "policy", "feasible", "correct"),
        *("policy_violations", "allocation_violations", "excess", "pulls"),
    }
    rows = table.to_pylist()
    keys = [(row["instance"], row["explorer"], row["seed"]) for row in rows]
    assert sorted(set(keys)) == sorted(keys)
    for row in rows:
        assert sum(row["pulls"]) == row["steps"] <= row["horizon"] == 100
        assert row["status"] in {"STOPPED", "HORIZON"}
        assert json.loads(row["settings"])["delta"] == 0.01
    assert list(tmp_path.iterdir()) == [out]


def test_a_parquet_file_in_no_folder_is_refused_before_running(polyarm: Shell, no_work: None, tmp_path: Path) -> None:
    complaint = polyarm.refusal("simulate", "figure2", "--out", tmp_path / "nowhere" / "runs.parquet")
    assert f"the folder {tmp_path / 'nowhere'} does not exist" in complaint


def test_a_folder_is_no_parquet_file_and_that_is_known_before_running(
    polyarm: Shell, no_work: None, tmp_path: Path
) -> None:
    assert str(tmp_path) in polyarm.refusal("simulate", "figure2", "--out", tmp_path)


def test_a_folder_is_no_picture_and_that_is_known_before_running(polyarm: Shell, no_work: None, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    assert "folder.png" in polyarm.refusal("run", "figure2", "--plot", tmp_path / "folder.png")


@pytest.mark.parametrize("place", ["nowhere/proof.json", "."])
def test_a_certificate_that_cannot_be_written_is_refused_before_running(
    polyarm: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polyarm.cli.live.explore_live", None)
    done = polyarm("run", "setup2-easy", "--certificate", place)
    assert done.code == 2
    assert place in done.err


def test_a_file_that_is_written_can_be_read_by_all_who_may_read_others(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"x")
    with replaced(tmp_path / "whole") as file:
        file.write(b"x")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert len(list(tmp_path.iterdir())) == 2
