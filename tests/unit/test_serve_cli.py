"""`polyarm serve`, `demo` and `token` from the shell."""

import json
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from polyarm.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def test_tokens_are_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    storage = ("--storage", f"sqlite:///{tmp_path}/t.db")
    assert run(capsys, "token", "list", *storage)[1].startswith("no token yet")
    code, secret, said = run(capsys, "token", "create", "robot", *storage)
    assert (code, secret.strip()[:3], "not shown again" in said) == (0, "pa_", True)
    made = json.loads(run(capsys, "token", "create", "boss", "--scope", "admin", "--json", *storage)[1])
    assert made["token"] != secret.strip()
    listed = run(capsys, "token", "list", "--json", *storage)[1]
    assert [(row["name"], row["scopes"]) for row in json.loads(listed)] == [
        ("robot", ["read", "write"]),
        ("boss", ["read", "write", "admin"]),
    ]
    assert secret.strip() not in listed
    assert run(capsys, "token", "revoke", "robot", *storage)[0] == 0
    assert json.loads(run(capsys, "token", "list", "--json", *storage)[1])[0]["revoked_at"] is not None
    assert "robot" in run(capsys, "token", "list", *storage)[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["token", "create", "x", "--scope", "root"], "unknown scope 'root'"),
        (["token", "create", ""], "name: expected 1 to 200"),
        (["token", "revoke", "nobody"], "unknown token 'nobody'"),
        (["serve", "--host", "0.0.0.0"], "loopback only"),
        (["serve", "--host", "nowhere.invalid"], "loopback only"),
        (["serve", "--log-level", "loud"], "unknown log level 'loud'"),
        (["serve", "--explorer", "none.py"], "none.py"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, said = run(capsys, *arguments, "--storage", f"sqlite:///{tmp_path}/t.db")
    assert code == 2
    assert said.count("\n") == 1
    assert complaint in said


def test_an_unknown_instance_for_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = run(capsys, "demo", "nope", "--no-browser")
    assert (code, "nope" in said) == (2, True)


def test_the_demo_shows_a_study_that_moves() -> None:
    command = [sys.executable, "-m", "polyarm", "demo", "--port", "0", "--no-browser", "--speed", "200"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split(" at ")[1].split()[0]
            used, end = 0, time.monotonic() + 300.0
            while used < 100:
                assert time.monotonic() < end, "nothing happened"
                listed = httpx.get(f"{url}/studies", timeout=300.0).json()["studies"]
                if listed:
                    assert listed[0]["name"] == "router (demo)"
                    view = httpx.get(f"{url}/studies/{listed[0]['id']}/view", timeout=300.0).json()
                    used = view["status"]["used"]
                time.sleep(0.2)
        finally:
            process.terminate()
            rest = process.stderr.read()
    assert "Traceback" not in rest
