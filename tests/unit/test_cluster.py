"""A sweep on a real cluster: the same table as in threads, even when a worker dies half-way."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from polyarm import InvalidInput
from polyarm.experiments.cluster import ClusterRunner, _Parcel, _run_there
from polyarm.experiments.grid import Entry, make_grid
from polyarm.experiments.sweep import run_sweep


def small_grid() -> list[Entry]:
    return make_grid(["setup2-easy", "figure2"], "uniform", seeds=60, horizon=2_000, piece_size=4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as started:
        yield started


def kill_one_worker(cluster: LocalCluster) -> int:
    with Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
    assert len(pids) == 2
    os.kill(pids[0], signal.SIGKILL)
    return int(pids[0])


def test_a_sweep_survives_the_death_of_a_worker(cluster: LocalCluster, tmp_path: Path) -> None:
    entries = small_grid()
    killed: list[int] = []

    def kill_half_way(done: int, total: int) -> None:
        if not killed and done > 0:
            assert done < total / 2
            killed.append(kill_one_worker(cluster))

    outcome = run_sweep(
        entries, tmp_path / "there", runner=ClusterRunner(cluster.scheduler_address), progress=kill_half_way
    )
    assert killed
    here = run_sweep(small_grid(), tmp_path / "here")
    assert list(outcome.simulation.runs()) == list(here.simulation.runs())
    outcome.simulation.to_parquet(tmp_path / "there.parquet")
    here.simulation.to_parquet(tmp_path / "here.parquet")
    assert (tmp_path / "there.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()


def test_workers_are_sent_the_explorer_of_ones_own(cluster: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "even.py"
    file.write_text(
        "import polyarm\n"
        "def allocate(view, rng):\n    return view.pulls * 0 + 1\n"
        "explorer = polyarm.python_explorer('even', 'every arm alike', allocate)\n"
    )
    entries = make_grid("figure2", file, seeds=4, horizon=30, piece_size=2)
    runner = ClusterRunner(cluster.scheduler_address)
    there = run_sweep(entries, runner=runner).simulation
    assert there.cells[0].explorer == "even"
    assert list(there.runs()) == list(run_sweep(entries).simulation.runs())


def test_a_worker_with_other_code_is_refused() -> None:
    with pytest.raises(InvalidInput, match="install the same"):
        _run_there(_Parcel.of(small_grid()[0]), range(1), "polyarm 0.0.0")


@pytest.mark.parametrize(
    ("address", "message"), [("cluster:8786", "expected 'local'"), ("tcp://127.0.0.1:9", "cannot reach the cluster")]
)
def test_a_wrong_address_is_told(address: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyarm.experiments.cluster._PATIENCE", 1)
    with pytest.raises(InvalidInput, match=message):
        run_sweep(small_grid()[:1], runner=ClusterRunner(address))


def test_without_distributed_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = __import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "distributed":
            raise ImportError(name)
        return real(name, *rest)

    patched: Callable[..., Any] = refuse
    monkeypatch.setattr("builtins.__import__", patched)
    with pytest.raises(InvalidInput, match=r"polyarm\[cluster\]"):
        ClusterRunner("local")
