"""A program for the tests of crashes: runs one script many times, killed at its first SQL statement, its second, ...

Usage: kill_driver.py URL. Every step of the script says on a pipe when it has returned. After each death the study must
hold all that was acknowledged, and at most one step more, whole.
"""

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from polyarm import Study, create_study, delete_study, load_study, verify_study
from polyarm.studies.storage import open_storage
from studies.worlds import make_problem, outcome

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def tell_whole(study: Study) -> None:
    study.tell(2, *outcome(1, 0))


def tell_many(study: Study) -> None:
    study.tell_many([(3, *outcome(2, 0)), (1, 0.5, {"price": 0.1})])


STEPS: list[tuple[Callable[[Study], object], int]] = [  # each with the events that it adds
    (lambda study: study.ask(3), 3),
    (lambda study: study.tell(1, 0.5), 1),
    (tell_whole, 1),
    (tell_many, 2),
    (lambda study: study.tell(1, 0.5), 0),
    (lambda study: study.observe("large", *outcome(2, 1)), 1),
    (lambda study: study.expire(1), 1),
    (lambda study: study.stop("enough"), 1),
    (lambda study: study.resume(), 1),
    (lambda study: study.ask(2), 2),
    (lambda study: study.archive(), 1),
]


def live(url: str, k: int, pipe: int) -> None:
    """Run the script and die at the k-th statement; commits count as statements."""
    engine, left = open_storage(url).engine, [k]

    def count(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    study = load_study("kill", url, clock=lambda: NOW + timedelta(hours=1))
    for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
        sa.event.listen(engine, name, count)
    for step, _ in STEPS:
        step(study)
        os.write(pipe, b".")


def main(url: str) -> None:
    create_study(make_problem(), storage=url, name="warm", seed=1).ask(3)
    deaths = 0
    while True:
        create_study(make_problem(), storage=url, name="kill", seed=1)
        open_storage(url).engine.dispose()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            live(url, deaths + 1, writer)
            os._exit(0)
        os.close(writer)
        acknowledged = 0
        while part := os.read(reader, 100):
            acknowledged += len(part)
        os.close(reader)
        _, status = os.waitpid(child, 0)
        study = load_study("kill", url)
        events = study.status().events - 1
        before = sum(added for _, added in STEPS[:acknowledged])
        after = sum(added for _, added in STEPS[: acknowledged + 1])
        assert events in (before, after), f"killed at {deaths + 1}: {events} events, acknowledged {before}"
        result = verify_study(study)
        assert result.valid, result.faults
        delete_study("kill", url)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            assert acknowledged == len(STEPS)
            break
        deaths += 1
    print(f"{deaths} deaths")


if __name__ == "__main__":
    main(sys.argv[1])
