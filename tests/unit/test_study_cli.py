"""`polyarm study`: what it prints, what it refuses, and that a refusal changes nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from polyarm import load_study
from polyarm.cli.main import main
from polyarm.rules.registry import EXPLORERS
from polyarm.studies.storage import storage_url
from studies.worlds import execute

PROBLEM = """
arms = ["small", "medium", "large"]
reward_std = 0.2
delta = 0.05
r = 0.15
[[constraints]]
name = "price"
bound = 1.0
std = 0.3
"""


class Shell:
    """Runs commands in a folder with one problem and one storage."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as end:
            main(["study", *arguments])
        printed = self._capsys.readouterr()
        assert end.value.code == code, printed
        if code == 2:
            assert printed.err.startswith("polyarm: ")
            assert printed.err.count("\n") == 1, "one clear line"
            return printed.err
        return printed.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


def other_arm(arm: str) -> str:
    return "small" if arm != "small" else "large"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYARM_STORAGE", f"sqlite:///{tmp_path}/here.db")
    Path("problem.toml").write_text(PROBLEM)
    shell = Shell(capsys)
    shell("create", "split", "problem.toml", "--seed", "1", "--lease", "36h")
    return shell


def test_a_study_from_beginning_to_end(shell: Shell) -> None:
    for _ in range(30):
        if shell.json("status", "split")["state"] != "exploring":
            break
        trials = shell.json("ask", "split", "-n", "60")
        assert set(trials[0]) == {"id", "arm", "lease_until", "route"}
        rows = "".join(f"{t['id']},{(t['id'] * 7919 % 100) / 1000},{(t['id'] * 104729 % 100) / 100}\n" for t in trials)
        Path("results.csv").write_text("id,reward,price\n" + rows)
        assert {told["status"] for told in shell.json("tell", "split", "--csv", "results.csv")} == {"recorded"}
    answer = shell.json("recommend", "split", "--certificate", "proof.json")
    assert answer["status"] == "STOPPED"
    assert sum(answer["policy"].values()) == pytest.approx(1.0)
    with pytest.raises(SystemExit) as end:
        main(["verify", "proof.json"])
    assert end.value.code == 0
    assert "recommended mix" in shell("recommend", "split")
    assert "nothing left to ask" in shell("ask", "split", code=2)
    assert "valid: split" in shell("verify", "split")
    assert shell.json("verify", "split")["faults"] == []


def test_the_spreadsheet_is_filled_in_bit_by_bit(shell: Shell) -> None:
    assert "to fill in" in shell("ask", "split", "-n", "3", "--csv", "todo.csv")
    form = Path("todo.csv").read_text().splitlines()
    assert form[0] == "id,arm,reward,price"
    assert form[1].endswith(",,")
    one, two, three = (line[:-2] for line in form[1:])
    Path("todo.csv").write_text(f"{form[0]}\n{one},0.5,0.2\n{two},0.7,\n{three},,\n")
    assert "1 outcomes recorded, 1 in part, 0 told before" in shell("tell", "split", "--csv", "todo.csv")
    assert "0 outcomes recorded, 0 in part, 2 told before" in shell("tell", "split", "--csv", "todo.csv")
    assert "still missing: price" not in shell("tell", "split", "2", "--cost", "price=0.8")
    assert "told before, the same" in shell("tell", "split", "2", "--cost", "price=0.8")


def test_export_has_one_object_per_trial(shell: Shell) -> None:
    assert shell.json("export", "split") == []
    shell("ask", "split", "-n", "2")
    shell("tell", "split", "1", "--reward", "0.5", "--cost", "price=0.25")
    trials = shell.json("export", "split")
    assert [list(trial) for trial in trials] == [["id", "arm", "state", "reward", "costs", "asked_at", "told_at"]] * 2
    assert (trials[0]["state"], trials[0]["reward"], trials[0]["costs"]) == ("complete", 0.5, {"price": 0.25})
    assert (trials[1]["state"], trials[1]["reward"], trials[1]["told_at"]) == ("pending", None, None)
    assert shell("export", "split").splitlines()[0] == "id,arm,state,reward,price,asked_at,told_at"
    for name in ("s.csv", "s.parquet", "s.json"):
        shell("export", "split", "--out", name)
    shell("import", "s.json", "--name", "copy")
    assert [row["name"] for row in shell.json("list")] == ["copy", "split"]
    assert shell.json("export", "copy") == trials


def test_life(shell: Shell) -> None:
    shell("stop", "split", "--reason", "holidays")
    assert "is stopped" in shell("ask", "split", code=2)
    shell("resume", "split")
    (trial,) = shell.json("ask", "split")
    shell("expire", "split", str(trial["id"]))
    Path("log.csv").write_text("arm,reward,price\nsmall,0.5,0.2\n")
    assert "says what that assumes" in shell("observe", "split", "log.csv")
    assert "nothing changed; --again counts them once more" in shell("observe", "split", "log.csv")
    assert shell.json("observe", "split", "log.csv") == {"trials": [2], "repeated": True}
    assert shell.json("status", "split")["observed"] == 1
    assert shell.json("observe", "split", "log.csv", "--again") == {"trials": [3], "repeated": False}
    assert shell.json("status", "split")["observed"] == 2
    assert "1 expired" in shell("status", "split")
    shell("archive", "split")
    assert shell.json("list") == []
    assert [row["lifecycle"] for row in shell.json("list", "--all")] == ["archived"]
    assert "add --yes" in shell("delete", "split", code=2)
    shell("delete", "split", "--yes")
    assert "no study" in shell("status", "split", code=2)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["status", "splat"], "no study 'splat'"),
        (["tell", "split", "9", "--reward", "1"], "trial 9 was never asked for"),
        (["tell", "split", "1", "--reward", "nan"], "finite number"),
        (["tell", "split", "1"], "nothing to tell"),
        (["tell", "split"], "give a trial"),
        (["tell", "split", "1", "--csv", "bad.csv"], "give a trial"),
        (["tell", "split", "1", "--cost", "weight=1"], "expected some of the unknown constraints"),
        (["tell", "split", "1", "--cost", "price"], "expected KEY=VALUE"),
        (["tell", "split", "1", "--cost", "price=low"], "expected a number"),
        (["tell", "split", "2", "--reward", "0.1"], "nothing changed"),
        (["tell", "split", "--csv", "none.csv"], "no such file of outcomes"),
        (["ask", "split", "-n", "0"], "1 to"),
        (["create", "split", "problem.toml"], "exists already"),
        (["create", "x", "nothing.toml"], "no such problem file"),
        (["create", "x", "problem.toml", "--lease", "soon"], "such as 90s"),
        (["create", "x", "problem.toml", "--control", "small=2"], "sum to 1"),
        (["create", "x", "problem.toml", "--watch", "price"], "needs --control"),
        (["create", "x", "problem.toml", "--set", "colour=red"], "no setting 'colour'"),
        (["create", "x", "problem.toml", "--storage", "oracle://x"], "expected sqlite"),
        (["import", "problem.toml"], "not a JSON document"),
        (["export", "split", "--out", "x.pdf"], "ends in .csv"),
        (["recommend", "split"], "nothing to recommend yet"),
        (["observe", "split", "bad.csv"], "no column 'arm'"),
        (["expire", "split", "7"], "not under way"),
        (["expire", "split", "0"], "expected a Trial or its number"),
        (["tell", "split", "99999999999999999999", "--reward", "1"], "expected a Trial or its number"),
        (["tell", "split", "--csv", "far.csv"], "row 1"),
        (["tell", "split", "--csv", "arms.csv"], "arms.csv, row 1: trial 1 is one of"),
        (["ask", "split", "--csv", "nowhere/todo.csv"], "cannot be written"),
        (["ask", "split", "--csv", "."], "this is a folder"),
        (["create", "x", "problem.toml", "--lease", "999999d"], "at most ten years"),
        (
            ["create", "x", "problem.toml", "--control", "small=1", "--watch", "weight"],
            "no unknown constraint 'weight'",
        ),
        (["status", "split", "--storage", "postgresql//me:secret@here/x"], "got '***@here/x'"),
        (["status", "split", "--explorer", "none.py"], "none.py"),
        (["ask"], "Missing argument 'NAME'; see"),
        (["ask", "split", "-n", "many"], "'-n'"),
        (["ask", "split", "--colour", "red"], "No such option: --colour; see"),
        (["dance"], "No such command 'dance'; see"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(shell: Shell, arguments: list[str], complaint: str) -> None:
    first, _ = shell.json("ask", "split", "-n", "2")
    shell("tell", "split", "2", "--reward", "0.7")
    Path("bad.csv").write_text("id,reward,price\n1,much,1\n")
    Path("far.csv").write_text("id,reward,price\n1e30,0.5,1\n")
    Path("arms.csv").write_text(f"id,arm,reward,price\n1,{other_arm(first['arm'])},0.5,1\n")
    before = list(load_study("split").events())
    assert complaint in shell(*arguments, code=2)
    assert list(load_study("split").events()) == before
    assert [row["name"] for row in shell.json("list")] == ["split"]


def test_a_bad_file_is_refused_whole(shell: Shell) -> None:
    shell("ask", "split", "-n", "3")
    good = "1,0.5,0.2\n"
    Path("results.csv").write_text("id,reward,price\n" + good + "2,much,0.2\n,0.1,0.1\n3,inf,1\n")
    complaint = shell("tell", "split", "--csv", "results.csv", code=2)
    for part in ("nothing was recorded", "row 2, column 'reward'", "row 3, column 'id'", "row 4"):
        assert part in complaint
    Path("results.csv").write_text("id,reward,price\n" + good + "44,0.1,0.2\n")
    assert "trial 44 was never asked for" in shell("tell", "split", "--csv", "results.csv", code=2)
    assert {trial["state"] for trial in shell.json("export", "split")} == {"pending"}


def test_trials_are_shown_even_if_their_spreadsheet_fails(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from polyarm.cli import study_report

    def full_disk(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(study_report, "write_rows", full_disk)
    assert [trial["id"] for trial in json.loads(shell("ask", "split", "--csv", "todo.csv", "--json", code=1))] == [1]


def test_a_constraint_named_like_a_column_does_without_tables(shell: Shell) -> None:
    Path("named.toml").write_text(PROBLEM.replace('"price"', '"id"'))
    shell("create", "named", "named.toml")
    for arguments in (["ask", "named", "--csv", "todo.csv"], ["export", "named"]):
        assert "constraint 'id': a table of trials has another column of that name" in shell(*arguments, code=2)
    assert shell.json("status", "named")["asked"] == 0
    shell("ask", "named")
    Path("told.csv").write_text("id,reward\n1,0.5\n")
    assert "constraint 'id'" in shell("tell", "named", "--csv", "told.csv", code=2)
    assert "recorded" in shell("tell", "named", "1", "--reward", "0.5", "--cost", "id=0.2")
    assert shell.json("export", "named")[0]["costs"] == {"id": 0.2}


def test_that_no_mix_is_feasible_is_said_with_what_it_assumes(shell: Shell) -> None:
    Path("never.toml").write_text(PROBLEM.replace("bound = 1.0", "bound = -9.0"))
    shell("create", "never", "never.toml", "--seed", "1")
    shell("ask", "never")
    shell("expire", "never", "1")
    while shell.json("status", "never")["state"] == "exploring":
        trials = shell.json("ask", "never", "-n", "60")
        Path("told.csv").write_text("id,reward,price\n" + "".join(f"{t['id']},0.5,{t['id'] % 3}\n" for t in trials))
        shell("tell", "never", "--csv", "told.csv")
    answer = shell.json("recommend", "never")
    assert answer["status"] == "INFEASIBLE"
    assert answer["conflict"] == ["price"]
    (assumption,) = answer["assumptions"]
    assert "1 given up, 0 of them told late, 1 by hand" in assumption
    (claim,) = answer["claims"]
    assert (claim["about"], claim["kind"], claim["assumptions"]) == ("infeasible", "proved", [assumption])
    assert f"if {assumption}: no mix satisfies all of: price" in shell("recommend", "never", code=2)


def test_an_explorer_of_ones_own_is_loaded_by_its_file(shell: Shell) -> None:
    Path("mine.py").write_text(
        "import numpy as np\nimport polyarm\n"
        "explorer = polyarm.python_explorer('mine', 'all alike', lambda view, rng: np.ones(3))\n"
    )
    shell("create", "own", "problem.toml", "--explorer", "mine.py", "--seed", "1")
    Path("log.csv").write_text("arm,reward,price\nsmall,0.5,0.2\n")
    Path("told.csv").write_text("id,reward,price\n1,0.5,0.2\n")
    forget("mine")
    complaint = shell("ask", "own", code=2)
    assert "created with explorer 'mine', which is not loaded" in complaint
    assert "--explorer FILE.py" in complaint
    for command in (
        ["ask", "own", "-n", "2"],
        ["tell", "own", "--csv", "told.csv"],
        ["observe", "own", "log.csv"],
        ["status", "own"],
        ["expire", "own", "2"],
        ["stop", "own"],
        ["resume", "own"],
        ["export", "own", "--out", "own.json"],
        ["import", "own.json", "--name", "copy"],
        ["verify", "own"],
        ["archive", "own"],
    ):
        shell(*command, "--explorer", "mine.py")
        forget("mine")
    assert "nothing to recommend yet" in shell("recommend", "own", "--explorer", "mine.py", code=2)
    forget("mine")
    shell("delete", "own", "--yes")


def forget(explorer: str) -> None:
    """Stand for a new process, which has loaded nothing."""
    EXPLORERS.pop(explorer, None)


def test_damage_is_exit_code_1(shell: Shell) -> None:
    shell("ask", "split", "-n", "3")
    execute(storage_url(None), "UPDATE polyarm_event SET payload = '{' WHERE seq = 3")
    assert "event 3 cannot be replayed" in shell("verify", "split", code=1)
    assert "event 3 is damaged" in shell("status", "split", code=2)


def test_a_storage_that_fails_is_not_the_users_mistake(shell: Shell) -> None:
    Path("broken.db").write_text("this is no database " * 500)
    shell("list", "--storage", "sqlite:///broken.db", code=1)


def test_help_loads_neither_the_compiler_nor_the_database() -> None:
    program = (
        "import sys\nfrom polyarm.cli.main import main\n"
        "try:\n    main(['study', '--help'])\nfinally:\n"
        "    assert not {'numba', 'numpy', 'sqlalchemy', 'alembic'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "create" in done.stdout
