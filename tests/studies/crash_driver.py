"""A program for the tests of crashes: forks workers on one study, kills them at random, and starts them again.

Usage: crash_driver.py URL WORKERS TELLS KILLS FOLDER. A worker notes in its journal, on disk, each trial that it was
given, and each tell that was acknowledged; a new life of a worker first tells what its journal leaves open.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from polyarm import create_study, load_study
from studies.worlds import engine_of, make_problem, outcome

BATCH = 25
LEASE = 3.0


def note(file: int, line: str) -> None:
    os.write(file, f"{line}\n".encode())
    os.fsync(file)


def read_journal(path: Path) -> tuple[dict[int, int], set[int]]:
    """Return the arms of the trials that were given, and the trials whose tell was acknowledged."""
    given, acknowledged = {}, set()
    for line in path.read_text().splitlines() if path.exists() else []:
        word, *numbers = line.split()
        if word == "given":
            given[int(numbers[0])] = int(numbers[1])
        else:
            acknowledged.add(int(numbers[0]))
    return given, acknowledged


def work(url: str, journal: Path, tells: int) -> None:
    """Ask and tell until so many tells were acknowledged in all lives of this worker."""
    study = load_study("crash", url)
    given, acknowledged = read_journal(journal)
    file = os.open(journal, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    todo = [(trial, arm) for trial, arm in given.items() if trial not in acknowledged]
    while len(acknowledged) < tells:
        if not todo:
            for trial in study.ask(min(BATCH, tells - len(acknowledged))):
                note(file, f"given {trial.id} {trial.arm_index}")
                todo.append((trial.id, trial.arm_index))
        number, arm = todo.pop(0)
        study.tell(number, *outcome(arm, number))
        note(file, f"acknowledged {number}")
        acknowledged.add(number)


def fork(url: str, journal: Path, tells: int) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(url, journal, tells)
            code = 0
        finally:
            os._exit(code)
    return child


def main(url: str, workers: int, tells: int, kills: int, folder: Path) -> None:
    # The first asks load the kernels before the forks. Trials that died with their worker must not hold the others up.
    create_study(make_problem(r=0.001), storage=url, name="crash", seed=1, lease=LEASE).ask(3)
    engine_of(url).dispose()
    chance = random.Random(7)
    journals = [folder / f"worker-{k}" for k in range(workers)]
    alive = {fork(url, journal, tells): journal for journal in journals}
    next_kill = time.monotonic() + 0.3
    while alive:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            journal = alive.pop(child)
            if os.WIFSIGNALED(status):
                alive[fork(url, journal, tells)] = journal
            elif os.WEXITSTATUS(status):
                sys.exit(f"a worker failed with code {os.WEXITSTATUS(status)}")
        elif kills and time.monotonic() > next_kill:
            os.kill(chance.choice(list(alive)), signal.SIGKILL)
            kills -= 1
            next_kill = time.monotonic() + chance.uniform(0.05, 0.5)
        else:
            time.sleep(0.01)
    print(f"kills left: {kills}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
