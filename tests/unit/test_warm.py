"""`polyarm warm`, and what commands say while they compile."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from polyarm import _compile, warm
from polyarm.engine.run import plan_run
from polyarm.environments.instances import load_instance
from polyarm.errors import InvalidInput
from polyarm.rules.registry import SHIPPED

#: Runs the command line and says on standard error which kernels had to be compiled for it.
LISTEN = """
import sys
from polyarm.warm import watch_compiling
from polyarm.cli.main import main

compiled = []
try:
    with watch_compiling(compiled.append):
        main()
finally:
    print("compiled:", *compiled, file=sys.stderr)
"""


class Fresh:
    """Runs commands in processes of their own that share a cache which nobody else has."""

    def __init__(self, folder: Path) -> None:
        self.environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}

    def __call__(self, *arguments: str) -> tuple[int, str, list[str], list[str]]:
        """Return code, output, what was said, and the kernels that were compiled."""
        command = [sys.executable, "-c", LISTEN, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment)
        *said, compiled = done.stderr.splitlines()
        assert compiled.startswith("compiled:"), done.stderr
        return done.returncode, done.stdout, said, compiled.split()[1:]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    return Fresh(tmp_path_factory.mktemp("cache"))


RUN = ("run", "setup1-easy", "--explorer", "uniform", "--horizon", "50", "--json")


def test_what_was_warmed_is_not_compiled_again(fresh: Fresh) -> None:
    code, out, said, compiled = fresh("warm", "--only", "uniform")
    assert (code, compiled) == (0, []), "other processes compile"
    assert [line.partition(" in ")[0] for line in said] == ["compiled uniform"]
    assert out == ""
    code, out, said, compiled = fresh(*RUN)
    assert json.loads(out)["steps"] == 50
    assert (code, said, compiled) == (0, [], [])
    code, out, said, compiled = fresh("warm", "--only", "uniform", "--json")
    assert json.loads(out) == {"compiled": {}, "cached": ["uniform"]}
    assert (code, said) == (0, [])


def test_a_command_that_compiles_says_so_beside_its_output(fresh: Fresh) -> None:
    """Bounds are compiled by no explorer: whatever else is cached, they are not."""
    code, out, said, compiled = fresh("bound", "setup1-easy", "--json")
    assert code == 0
    assert "bounds" in json.loads(out)
    assert said == ["compiling kernels (once per version, a minute or so) ..."]
    assert "solve_maxmin" in compiled
    assert fresh("bound", "setup1-easy", "--json") == (0, out, [], [])


def test_a_cache_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = subprocess.run(
        [sys.executable, "-m", "polyarm", "warm"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert f"tried {tmp_path / 'file'}: set NUMBA_CACHE_DIR" in done.stderr


def test_a_process_that_fails_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(InvalidInput, match="certex failed: the process ended with code 1"):
        warm.warm([warm.JOBS["certex"]], lambda _: None)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("exec <&-; sleep 0.3; exit 3", "certex failed: the process ended with code 3"),  # hears nothing
        ("read line; echo nonsense", "compiling failed: Expecting value"),
    ],
)
def test_whatever_goes_wrong_is_not_success(
    program: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(InvalidInput, match=said):
        warm.warm([warm.JOBS["certex"]], lambda _: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInput, match=r"compiling failed: .*nowhere"):
        warm.warm([warm.JOBS["certex"]], lambda _: None)


def test_every_shipped_explorer_has_its_jobs() -> None:
    for name, explorer in SHIPPED.items():
        instance = load_instance("router")
        (job,) = warm.jobs_for(plan_run(instance, name, {})[1])
        assert name.startswith(job.name)
        (curved,) = warm.jobs_for(plan_run(instance.with_problem(family="bernoulli", reward_std=None), name, {})[1])
        assert curved.name == job.name + warm.CURVED
        if "stopping" in explorer.settings.model_fields:
            jobs = warm.jobs_for(plan_run(instance, name, {"stopping": "certified"})[1])
            assert [job.name for job in jobs] == [job.name, "certex"]


def test_an_unknown_name_is_one_message() -> None:
    with pytest.raises(InvalidInput, match="unknown job 'lagexx'"):
        warm.find_jobs(["lagexx"])


def test_without_a_cache_nothing_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    warm._notes.cache_clear()
    monkeypatch.setattr(_compile, "CACHE_FOLDER", None)
    try:
        assert warm.missing([warm.JOBS["certex"]]) == [warm.JOBS["certex"]]
    finally:
        warm._notes.cache_clear()
