"""How fast studies are, beside the bare disk: `python benchmarks/measure_studies.py [TELLS] [URL]`.

Prints pairs of ask and tell a second with a commit each and in batches, the commits a second that the disk allows a
bare SQLite insert, explorer and storage time per pair as the study grows, and how long opening it takes in the end.
"""

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from polyarm import Constraint, Problem, Study, Trial, create_study, load_study

PAIRS = 300
BATCH = 500


def rate(count: int, work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return count / (time.perf_counter() - begun)


def bare_commits(folder: str) -> float:
    """Commits a second of one small insert, as durable as a study's."""
    connection = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (x TEXT)")

    def work() -> None:
        for _ in range(PAIRS):
            connection.execute("INSERT INTO t VALUES ('a small event of some hundred characters')")

    return rate(PAIRS, work)


class World:
    """Outcomes of three arms."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def pull(self, trial: Trial) -> tuple[Trial, float, list[float]]:
        noise = self.rng.standard_normal(2)
        means = [(0.6, 0.2), (0.7, 0.8), (0.9, 2.0)][trial.arm_index]
        return trial, means[0] + 0.2 * noise[0], [means[1] + 0.3 * noise[1]]


def single(study: Study, world: World) -> None:
    for _ in range(PAIRS):
        study.tell(*world.pull(study.ask()[0]))


def batched(study: Study, world: World, pairs: int) -> None:
    for _ in range(pairs // BATCH):
        study.tell_many([world.pull(trial) for trial in study.ask(BATCH)])


def main(tells: int, url: str | None) -> None:
    folder = tempfile.mkdtemp()
    problem = Problem(
        arms=("small", "medium", "large"),
        reward_std=0.2,
        delta=0.05,
        r=0.0005,  # never within reach: the study goes on
        constraints=(Constraint(name="price", bound=1.0, std=0.3),),
    )
    storage = url or f"sqlite:///{folder}/study.db"
    study, world = create_study(problem, storage=storage, name="speed", seed=1), World()
    single(study, world)  # loads the kernels
    disk = bare_commits(folder)
    pairs = rate(PAIRS, lambda: single(study, world))
    print(f"bare commits a second: {disk:,.0f}")
    print(
        f"pairs a second, a commit for each ask and each tell: {pairs:,.0f} "
        f"({2 * pairs / disk:.2f} of the bare commits)"
    )
    done, step = 2 * PAIRS, max(BATCH, tells // 5)
    while done < tells:
        speed = rate(step, lambda: batched(study, world, step))
        done += step
        print(f"pairs a second in batches of {BATCH}, up to {done:,} tells: {speed:,.0f}", flush=True)
    study.status()
    begun = time.perf_counter()
    status = load_study("speed", storage).status()
    print(f"opening it, {status.told:,} tells and {status.events:,} events: {time.perf_counter() - begun:.2f} s")
    print(f"outcomes told and not used at the end: {status.waiting:,}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, sys.argv[2] if len(sys.argv) > 2 else None)
