"""A program for the tests of crashes: runs one script many times, killed at its first SQL statement, its second, ...

Usage: kill_driver.py URL FOLDER. Every step of the script says on a pipe when it has returned. After each death the
storage must hold all that was acknowledged, and at most one step more, whole.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from polyarm import Study, create_study, delete_study, import_study, list_studies, load_study, verify_study
from polyarm.studies import study as study_module
from studies.worlds import Clock, World, engine_of, make_problem, outcome

#: Low, so that snapshots are among what is killed.
SNAPSHOT_EVERY = 4
LEASE = 60.0


class Scene(NamedTuple):
    """What a step has at hand."""

    study: Study
    url: str
    clock: Clock
    export: Path


class Step(NamedTuple):
    """Something done, the events that it adds to the study, and a study that it makes or removes beside it."""

    do: Callable[[Scene], object]
    events: int = 0
    made: str = ""
    removed: str = ""


def lose_trials(scene: Scene) -> None:
    scene.clock.pass_time(hours=1)
    assert not scene.study.stopped  # gives up what is overdue


def create_another(scene: Scene) -> None:
    create_study(make_problem(), storage=scene.url, name="another", seed=2, clock=scene.clock)


STEPS = [
    Step(lambda scene: scene.study.ask(3), 3),
    Step(lambda scene: scene.study.tell(1, 0.5), 1),
    Step(lambda scene: scene.study.tell(2, *outcome(1, 0)), 1),
    Step(lambda scene: scene.study.tell_many([(3, *outcome(2, 0)), (1, 0.5, {"price": 0.1})]), 2),
    Step(lambda scene: scene.study.tell(1, 0.5)),
    Step(lambda scene: scene.study.observe_many([("large", *outcome(2, 1))], key="once"), 1),
    Step(lambda scene: scene.study.observe_many([("large", *outcome(2, 1))], key="once")),
    Step(lambda scene: scene.study.expire(1), 1),
    Step(lambda scene: scene.study.stop("enough"), 1),
    Step(lambda scene: scene.study.resume(), 1),
    Step(lambda scene: scene.study.ask(2), 2),
    Step(lose_trials, 2),
    Step(lambda scene: scene.study.tell(5, *outcome(0, 1)), 1),
    Step(create_another, made="another"),
    Step(lambda scene: import_study(scene.export, scene.url, "moved"), made="moved"),
    Step(lambda scene: delete_study("moved", scene.url), removed="moved"),
    Step(lambda scene: scene.study.archive(), 1),
]


def studies_after(steps: int) -> set[str]:
    names = {"kill"}
    for step in STEPS[:steps]:
        names = (names | {step.made}) - {step.removed, ""}
    return names


def events_after(steps: int) -> int:
    return 1 + sum(step.events for step in STEPS[:steps])


def live(url: str, export: Path, k: int, pipe: int) -> None:
    """Run the script and die at the k-th moment: before a statement, before a commit, or when all that is over."""
    engine, left, clock = engine_of(url), [k], Clock()

    def count(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    scene = Scene(load_study("kill", url, clock), url, clock, export)
    for name in ("before_cursor_execute", "commit", "checkin"):
        sa.event.listen(engine, name, count)
    for step in STEPS:
        step.do(scene)
        os.write(pipe, b".")


def main(url: str, folder: Path) -> None:
    study_module.SNAPSHOT_EVERY = SNAPSHOT_EVERY
    warm, world, export = create_study(make_problem(), storage=url, name="warm", seed=1), World(), folder / "warm.json"
    warm.tell_many([world.pull(trial) for trial in warm.ask(6)])
    warm.export(export)
    delete_study("warm", url)
    deaths = 0
    while True:
        create_study(make_problem(), storage=url, name="kill", seed=1, lease=LEASE, clock=Clock())
        engine_of(url).dispose()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            live(url, export, deaths + 1, writer)
            os._exit(0)
        os.close(writer)
        done = 0
        while part := os.read(reader, 100):
            done += len(part)
        os.close(reader)
        _, status = os.waitpid(child, 0)
        where = f"killed at {deaths + 1}, after step {done}"
        names = {row["name"] for row in list_studies(url)}
        assert names in (studies_after(done), studies_after(done + 1)), f"{where}: {names}"
        events = load_study("kill", url).status().events
        assert events in (events_after(done), events_after(done + 1)), f"{where}: {events} events"
        for name in names:
            result = verify_study(load_study(name, url))
            assert result.valid, f"{where}: {name}: {result.faults}"
            delete_study(name, url)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            assert done == len(STEPS)
            break
        deaths += 1
    print(f"{deaths} deaths")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
