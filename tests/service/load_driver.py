"""A program for the test of load: some clients, each in a thread, that ask and tell until their time is over.

Usage: load_driver.py NAME FIRST CLIENTS SECONDS FOLDER URL..., with a token in POLYARM_TOKEN. Clients are numbered
from FIRST on; each begins with another server. A client notes in its journal each trial that it was given, each tell
that was acknowledged, and how long every call took; it tells all that it was given before it ends.
"""

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from polyarm import Client, RemoteStudy
from studies.worlds import outcome

T = TypeVar("T")


class Journal(NamedTuple):
    """What a client has noted: arms of the trials given, numbers of those whose tell was acknowledged, and seconds."""

    given: dict[int, int]
    acknowledged: list[int]
    seconds: list[float]


def read_journal(path: Path) -> Journal:
    journal = Journal({}, [], [])
    for line in path.read_text().splitlines():
        word, *values = line.split()
        if word == "given":
            assert int(values[0]) not in journal.given, "a trial was handed out twice to one client"
            journal.given[int(values[0])] = int(values[1])
        elif word == "acknowledged":
            journal.acknowledged.append(int(values[0]))
        else:
            journal.seconds.append(float(values[0]))
    return journal


class Worker:
    """One client: asks for a few trials, and tells them one by one or together."""

    def __init__(self, study: RemoteStudy, journal: Path, chance: random.Random) -> None:
        self._study, self._journal, self._chance = study, journal, chance
        self._lines: list[str] = []

    def run(self, end: float) -> None:
        while time.monotonic() < end:
            trials = self._timed(lambda: self._study.ask(self._chance.randint(1, 5)))
            self._lines += [f"given {trial.id} {trial.arm_index}" for trial in trials]
            tells = [(trial.id, *outcome(trial.arm_index, trial.id)) for trial in trials]
            self._chance.shuffle(tells)
            size = self._chance.choice((1, len(tells)))
            for k in range(0, len(tells), size):
                told = self._timed(lambda some=tells[k : k + size]: self._study.tell_many(some))  # type: ignore[misc]
                # A tell that was done before its answer got lost is answered as it was the first time.
                assert all(one.status == "recorded" for one in told), told
                self._lines += [f"acknowledged {one.trial}" for one in told]
        self._journal.write_text("\n".join(self._lines))

    def _timed(self, call: Callable[[], T]) -> T:
        begun = time.perf_counter()
        answer = call()
        self._lines.append(f"seconds {time.perf_counter() - begun}")
        return answer


def main(name: str, first: int, clients: int, seconds: float, folder: Path, urls: list[str]) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        mine = urls[number % len(urls) :] + urls[: number % len(urls)]
        try:
            with Client(mine, os.environ["POLYARM_TOKEN"], patience=60.0) as client:
                worker = Worker(client.load_study(name), folder / f"client-{number}", random.Random(number))
                worker.run(time.monotonic() + seconds)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(first, first + clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5]), sys.argv[6:])
