"""How fast the service is, beside a study on the same disk: `python benchmarks/measure_service.py [TELLS]`.

Starts one server on SQLite and prints tells a second and the latency of a request, for one tell a request and for a
hundred, from one client and from eight at once; beside each, what `Study.tell` and `tell_many` do in this process.
"""

import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from polyarm import Client, Constraint, Problem, RemoteStudy, Study, create_study

BATCH = 100
CLIENTS = 8

Told = tuple[int, float, dict[str, float]]


def make_problem() -> Problem:
    return Problem(
        arms=("small", "medium", "large"),
        reward_std=0.2,
        delta=0.05,
        r=0.0005,  # never within reach: the study goes on
        constraints=(Constraint(name="price", bound=1.0, std=0.3),),
    )


def hand_out(study: Study | RemoteStudy, count: int) -> list[Told]:
    """Ask for trials, and make up what they gave."""
    noise = np.random.default_rng(1).standard_normal((count, 2))
    means = [(0.6, 0.2), (0.7, 0.8), (0.9, 2.0)]
    trials: list[Any] = []
    while len(trials) < count:
        trials += study.ask(min(count - len(trials), 5_000))
    return [
        (trial.id, means[trial.arm_index][0] + 0.2 * x, {"price": means[trial.arm_index][1] + 0.3 * y})
        for trial, (x, y) in zip(trials, noise.tolist(), strict=True)
    ]


def measure(tell: Callable[[Sequence[Told]], object], tells: Sequence[Told], size: int) -> list[float]:
    """Tell in requests of a size; returns the seconds of each."""
    seconds = []
    for k in range(0, len(tells), size):
        begun = time.perf_counter()
        tell(tells[k : k + size])
        seconds.append(time.perf_counter() - begun)
    return seconds


def measure_at_once(url: str, number: int, tells: Sequence[Told], size: int) -> tuple[float, list[float]]:
    """Tell from several clients at once; returns the seconds in all, and those of each request."""
    seconds: list[float] = []

    def work(mine: Sequence[Told]) -> None:
        with Client(url) as client:
            seconds.extend(measure(RemoteStudy(client, number, "speed").tell_many, mine, size))

    share = len(tells) // CLIENTS
    threads = [threading.Thread(target=work, args=(tells[k * share : (k + 1) * share],)) for k in range(CLIENTS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun, seconds


@contextmanager
def serving(storage: str, log: Path) -> Iterator[str]:
    """Run a server in a process of its own; yields its address once its kernels are loaded."""
    command = [sys.executable, "-m", "polyarm", "serve", "--storage", storage, "--port", "0", "--rate", "1000000"]
    with log.open("wb") as file, subprocess.Popen([*command, "--log-level", "warning"], stderr=file) as process:
        try:
            while not (found := re.search(r" at (http://\S+) ", log.read_text())):
                if process.poll() is not None:
                    sys.exit(log.read_text())
                time.sleep(0.05)
            while not is_ready(found[1]):
                time.sleep(0.1)
            yield found[1]
        finally:
            process.terminate()


def is_ready(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/healthz", timeout=60.0).json()["ready"])
    except httpx.TransportError:
        return False


def report(what: str, tells: int, elapsed: float, seconds: Sequence[float], beside: float | None = None) -> float:
    """Print a line; returns the tells a second."""
    rate = tells / elapsed
    middle, most = np.quantile(seconds, [0.5, 0.99]) * 1e3
    ratio = "" if beside is None else f"  ({rate / beside:.2f} of the study)"
    print(f"{what:34s} {rate:8,.0f} tells a second, p50 {middle:6.1f} ms, p99 {most:6.1f} ms{ratio}", flush=True)
    return rate


def main(tells: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        study = create_study(make_problem(), storage=f"sqlite:///{folder}/study.db", name="speed", seed=1)
        measure(study.tell_many, hand_out(study, 200), 1)  # loads the kernels
        with serving(f"sqlite:///{folder}/service.db", Path(folder) / "log") as url, Client(url) as client:
            remote = client.create_study(make_problem(), name="speed", seed=1)
            measure(remote.tell_many, hand_out(remote, 200), 1)
            for size, count in ((1, tells), (BATCH, BATCH * tells // 10)):
                word = "one by one" if size == 1 else f"in batches of {size}"
                seconds = measure(study.tell_many, hand_out(study, count), size)
                alone = report(f"study, {word}", count, sum(seconds), seconds)
                seconds = measure(remote.tell_many, hand_out(remote, count), size)
                report(f"service, {word}", count, sum(seconds), seconds, alone)
                elapsed, seconds = measure_at_once(url, remote.id, hand_out(remote, count), size)
                report(f"service, {word}, {CLIENTS} clients", len(seconds) * size, elapsed, seconds, alone)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
