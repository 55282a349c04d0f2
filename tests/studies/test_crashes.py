"""Killed processes: nothing that was acknowledged is lost, nothing is counted twice."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from polyarm import load_study, verify_study
from studies.crash_driver import LEASE, read_journal
from studies.worlds import outcome

TESTS = Path(__file__).parents[1]
WORKERS = 8
#: Tells of each worker, and how often one of them is killed.
SIZES = [pytest.param(1_000, 20), pytest.param(2_000, 30, marks=pytest.mark.nightly)]


def run(program: str, *arguments: object) -> str:
    """Run a driver in a process of its own: forks and threads of a test runner do not mix."""
    done = subprocess.run(
        [sys.executable, str(TESTS / "studies" / program), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(("tells", "kills"), SIZES)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_many_processes_that_are_killed_at_random_lose_and_double_nothing(
    kind: str, tells: int, kills: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    storage = request.getfixturevalue(kind)
    assert "kills left: 0" in run("crash_driver.py", storage, WORKERS, tells, kills, tmp_path)
    given: dict[int, int] = {}
    acknowledged: list[int] = []
    for journal in sorted(tmp_path.glob("worker-*")):
        mine, told = read_journal(journal)
        assert not given.keys() & mine.keys(), "a trial was handed out twice"
        given |= mine
        acknowledged += told
    assert len(acknowledged) == len(set(acknowledged)) == WORKERS * tells
    study = load_study("crash", storage, clock=lambda: datetime.now(UTC) + timedelta(seconds=LEASE))
    assert not study.stopped, "gives up what died with its worker"
    stored = {trial["id"]: trial for trial in study.trials()}
    assert {number for number, trial in stored.items() if trial["state"] == "complete"} == set(acknowledged)
    for number in acknowledged:
        assert (stored[number]["reward"], stored[number]["costs"]) == outcome(given[number], number)
    status = study.status()
    assert status.told == WORKERS * tells
    assert status.used + status.waiting == status.told
    assert status.pending == 0
    assert status.used > 0.9 * status.told, "the explorer went on through the kills"
    result = verify_study(study)
    assert result.valid, result.faults


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_at_any_statement_a_storage_holds_what_was_acknowledged(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    printed = run("kill_driver.py", request.getfixturevalue(kind), tmp_path)
    assert int(printed.split()[0]) > 150
