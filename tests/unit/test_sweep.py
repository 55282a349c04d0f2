"""Sweeps: nothing is lost or repeated, whatever interrupts them."""

import errno
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyarm import InvalidInput, simulate
from polyarm.engine.run import Exploration
from polyarm.experiments import grid
from polyarm.experiments.grid import Entry, PieceResult, cut_pieces, make_grid
from polyarm.experiments.store import entry_key, hold_folder
from polyarm.experiments.sweep import choose_runner, run_sweep
from polyarm.experiments.sweep_file import load_sweep
from polyarm.experiments.threads import ThreadRunner

GRID = """
instances = ["setup2-easy", "mine.toml"]
explorers = ["uniform"]
seeds = 30
horizon = 3000
[[settings]]
preset = "paper"
[[settings]]
preset = "corrected"
r = 0.1
"""
MINE = "mu = [1.0, 2.0]\nA = [[1.0, 3.0]]\nb = [2.0]\nreward_std = 1.0\ncost_std = 1.0\ndelta = 0.1\nr = 0.1\n"


@pytest.fixture
def grid_file(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(MINE)
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def small(**changes: Any) -> list[Entry]:
    return make_grid("figure2", "uniform", **{"seeds": 12, "horizon": 300, "piece_size": 5, **changes})


class Recorder:
    """A runner that notes which seeds it was asked for."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def run(
        self, pieces: Iterable[tuple[Entry, range]], on_runs: Callable[[int], None]
    ) -> Iterator[tuple[Entry, range, PieceResult]]:
        listed = list(pieces)
        self.seeds += [seed for _, seeds in listed for seed in seeds]
        return ThreadRunner(1).run(listed, on_runs)


# What a grid is.


def test_a_grid_is_read_from_a_file(grid_file: Path) -> None:
    entries = load_sweep(grid_file)
    assert [(e.instance.name, e.explorer, e.settings, e.seeds, e.horizon) for e in entries] == [
        (name, "uniform", settings, 30, 3000)
        for name in ("setup2-easy", "mine")
        for settings in ({"preset": "paper"}, {"preset": "corrected", "r": 0.1})
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('explorers = ["uniform"]', "instances: required"),
        ('instances = ["figure2"]\nexplorers = ["uniform"]\nseed = 3', "seed: unknown field"),
        ('instances = ["figure2"]\nexplorers = ["uniform"]\nseeds = 0', "seeds: expected a whole number, 1 or more"),
        ('instances = ["figure3"]\nexplorers = ["uniform"]', "unknown instance 'figure3'"),
        ("instances = [", "cannot read"),
        ('instances = []\nexplorers = ["uniform"]', "instances: "),
        ('instances = ["figure2"]\nexplorers = ["uniform"]\nsettings = []', "settings: "),
        ('instances = ["figure2"]\nexplorers = ["uniform", "uniform"]', "is in the grid twice"),
        ('instances = ["figure2"]\nexplorers = ["uniform"]\nsettings = [{r = 0.5}, {r = "0.5"}]', "in the grid twice"),
    ],
)
def test_mistakes_in_the_file_are_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        load_sweep(path)


def test_two_instances_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder, mean in (("one", "1.0"), ("two", "1.5")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.toml").write_text(MINE.replace("1.0, 2.0", f"{mean}, 2.0"))
    (tmp_path / "grid.toml").write_text('instances = ["one/mine.toml", "two/mine.toml"]\nexplorers = ["uniform"]')
    with pytest.raises(InvalidInput, match="two different ones are named 'mine'"):
        load_sweep(tmp_path / "grid.toml")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such sweep file"):
        load_sweep(tmp_path / "none.toml")


def test_what_cannot_run_is_told_before_anything_runs() -> None:
    recorder = Recorder()
    with pytest.raises(InvalidInput, match="unknown explorer"):
        run_sweep([*small(), *make_grid("figure2", "unifrom")], runner=recorder)
    assert recorder.seeds == []


@given(st.sets(st.integers(0, 60)), st.integers(1, 9))
def test_pieces_hold_every_seed_once(seeds: set[int], size: int) -> None:
    pieces = cut_pieces(seeds, size)
    assert [seed for piece in pieces for seed in piece] == sorted(seeds)
    assert all(len(piece) <= size for piece in pieces)


@pytest.mark.parametrize("first", [-1, 1.5, "3", True, 2**63])
def test_a_first_seed_that_is_none_is_told(first: Any) -> None:
    with pytest.raises(InvalidInput, match="first_seed"):
        small(first_seed=first)


# The runs do not depend on how they come about.


def test_threads_and_store_give_the_runs_of_a_simulation(tmp_path: Path) -> None:
    wanted = list(simulate("figure2", "uniform", seeds=12, horizon=300).runs())
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        fresh = run_sweep(small(), folder, runner=ThreadRunner(workers))
        again = run_sweep(small(), folder, runner=ThreadRunner(workers))
        assert list(fresh.simulation.runs()) == wanted
        assert list(again.simulation.runs()) == wanted
        assert (fresh.reused, again.reused, again.steps) == (0, 12, 0)


def test_a_longer_sweep_runs_only_what_is_new(tmp_path: Path) -> None:
    run_sweep(small(seeds=12), tmp_path)
    recorder = Recorder()
    longer = run_sweep(small(seeds=23, piece_size=4), tmp_path, runner=recorder)
    assert recorder.seeds == list(range(12, 23))
    assert list(longer.simulation.runs()) == list(simulate("figure2", "uniform", seeds=23, horizon=300).runs())
    shorter = run_sweep(small(seeds=7, first_seed=2), tmp_path, runner=recorder)
    assert shorter.reused == 7
    assert [run.seed for run in shorter.simulation.cells[0].runs] == list(range(2, 9))


def test_entries_that_declare_the_same_runs_share_them() -> None:
    recorder = Recorder()
    outcome = run_sweep([*small(seeds=7), *small(seeds=12)], runner=recorder)
    assert recorder.seeds == list(range(12))
    assert [len(cell.runs) for cell in outcome.simulation.cells] == [7, 12]


@pytest.mark.parametrize(
    "changed",
    [
        small(horizon=301),
        small(settings=[{"preset": "paper"}]),
        small(settings=[{"r": 0.2}]),
        make_grid("figure1", "uniform"),
        make_grid("figure2", "lagex", horizon=300),
    ],
)
def test_runs_of_something_else_have_another_key(changed: list[Entry]) -> None:
    assert entry_key(changed[0]) != entry_key(small()[0])


def test_the_key_does_not_depend_on_the_seeds() -> None:
    assert entry_key(small(seeds=500, first_seed=3)[0]) == entry_key(small()[0])


def test_an_edited_explorer_has_another_key(tmp_path: Path) -> None:
    file = tmp_path / "even.py"
    text = (
        "import polyarm\n"
        "def allocate(view, rng):\n    return view.pulls * 0 + 1\n"
        "explorer = polyarm.python_explorer('even', 'every arm alike', allocate)\n"
    )
    file.write_text(text)
    before = entry_key(make_grid("figure2", file)[0])
    assert entry_key(make_grid("figure2", file)[0]) == before
    file.write_text(text.replace("+ 1", "+ 2"))
    assert entry_key(make_grid("figure2", file)[0]) != before


def test_runs_of_other_code_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_sweep(small(), tmp_path)
    monkeypatch.setattr("polyarm.experiments.store.code_version", lambda: "another")
    assert run_sweep(small(), tmp_path).reused == 0


# Interruptions.


def test_a_killed_sweep_goes_on_where_it_was(grid_file: Path, tmp_path: Path) -> None:
    """SIGKILL, several times, at whatever moment: the table is that of an uninterrupted sweep, byte for byte."""
    command = [sys.executable, "-m", "polyarm", "sweep", str(grid_file), "--json", "--out"]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    cut = tmp_path / "cut"
    kills = 0
    for pieces in (1, 3, 6):
        child = subprocess.Popen([*command, str(cut)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while child.poll() is None and len(list(cut.glob("pieces/*/*.parquet"))) < pieces:
            time.sleep(0.002)
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            kills += 1
        child.wait()
    assert kills >= 1, "every sweep ended before it could be killed"
    subprocess.run([*command, str(cut)], check=True, capture_output=True)
    assert (cut / "runs.parquet").read_bytes() == (tmp_path / "whole" / "runs.parquet").read_bytes()


@pytest.mark.parametrize("damage", ["cut", "emptied", "a bit"])
def test_a_damaged_piece_is_told_and_run_again(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    wanted = list(run_sweep(small(), tmp_path).simulation.runs())
    first = min(tmp_path.glob("*/*.parquet"))
    content = bytearray(first.read_bytes())
    content[100] ^= 4
    first.write_bytes(bytes({"cut": content[:-30], "emptied": b"", "a bit": content}[damage]))
    with caplog.at_level(logging.WARNING):
        recorder = Recorder()
        outcome = run_sweep(small(), tmp_path, runner=recorder)
    assert recorder.seeds == list(range(5))
    assert list(outcome.simulation.runs()) == wanted
    assert "is damaged" in caplog.text


def test_a_full_disk_is_told_and_keeps_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, calls = os.replace, []

    def fill_up(*paths: Any) -> None:
        calls.append(paths)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fill_up)
        with pytest.raises(InvalidInput, match="No space left on device"):
            run_sweep(small(), tmp_path, runner=ThreadRunner(1))
    assert not list(tmp_path.glob("*/.*"))
    assert run_sweep(small(), tmp_path).reused == 5


def test_an_error_in_a_run_ends_the_sweep_and_keeps_what_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Exploration):
        def advance_to(self, limit: int) -> None:
            if self.session.seed == 7:
                raise ArithmeticError("seed 7")
            super().advance_to(limit)

    with monkeypatch.context() as patch:
        patch.setattr(grid, "Exploration", Failing)
        with pytest.raises(ArithmeticError, match="seed 7"):
            run_sweep(small(), tmp_path, runner=ThreadRunner(1))
    assert run_sweep(small(), tmp_path).reused >= 5


ENDLESS = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell's children are born deaf to Ctrl-C
from polyarm import load_instance
from polyarm.experiments.grid import Entry
from polyarm.experiments.sweep import run_sweep
tie = load_instance("tie.toml")
entries = [Entry(tie, "uniform", seeds=1, horizon=100), Entry(tie, "uniform", seeds=2, horizon=10**9)]
try:
    run_sweep(entries, "pieces")
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupted_sweep_ends_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """Ctrl-C while runs of a billion pulls are under way, which takes many minutes: they are left at the next slice."""
    (tmp_path / "tie.toml").write_text("mu = [1.0, 1.0]\nreward_std = 1.0\ndelta = 1e-300\nr = 0.0\n")
    child = subprocess.Popen([sys.executable, "-c", ENDLESS], cwd=tmp_path)
    try:
        while child.poll() is None and not list(tmp_path.glob("pieces/*/*.parquet")):
            time.sleep(0.05)
        time.sleep(1.0)  # the short run is stored, the long ones go on
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=120) == 130
    finally:
        child.kill()


def test_two_sweeps_never_share_a_folder(tmp_path: Path) -> None:
    with hold_folder(tmp_path), pytest.raises(InvalidInput, match="in use by another run"):
        run_sweep(small(), tmp_path)
    run_sweep(small(), tmp_path)


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot use the folder"):
        run_sweep(small(), tmp_path / "file" / "pieces")


def test_progress_starts_with_what_is_there(tmp_path: Path) -> None:
    run_sweep(small(seeds=5), tmp_path)
    calls: list[tuple[int, int]] = []
    run_sweep(small(), tmp_path, progress=lambda *call: calls.append(call))
    assert calls[0] == (5, 12)
    assert calls[-1] == (12, 12)


def test_threads_and_a_cluster_exclude_each_other() -> None:
    with pytest.raises(InvalidInput, match="give one or the other"):
        choose_runner(2, "local")
