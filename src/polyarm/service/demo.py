"""A simulated study that feeds a server, so that a newcomer sees one live."""

import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyarm.engine.randomness import WORLD, make_stream
from polyarm.environments.instances import Instance
from polyarm.environments.synthetic import sample
from polyarm.errors import ExplorationOver, ServiceError, StudyHalted
from polyarm.service.client import Client, RemoteStudy
from polyarm.studies.trial import Trial

_PAUSE = 0.2


class DemoWorld:
    """Stands for the user's system: gives every trial an outcome of the instance."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self._world, self._rng = instance.world(), make_stream(seed, WORLD)
        self._costs = np.zeros(instance.problem.n_constraints)
        self._names = {i: instance.problem.constraints[i].name for i in instance.problem.unknown}

    def pull(self, trial: Trial) -> tuple[Trial, float, dict[str, float]]:
        """Return a trial with its reward and costs."""
        reward = float(sample(self._world, trial.arm_index, self._rng, self._costs))
        return trial, reward, {name: float(self._costs[i]) for i, name in self._names.items()}


def feed(study: RemoteStudy, world: DemoWorld, speed: float, until: threading.Event) -> str:
    """Ask and tell, so many outcomes a second, until the study is over; returns how it ended."""
    batch = max(1, round(speed * _PAUSE))
    while not until.is_set():
        begun = time.monotonic()
        try:
            study.tell_many([world.pull(trial) for trial in study.ask(batch)])
        except ExplorationOver as error:
            return str(error)
        except StudyHalted:
            pass  # stopped on its page, where it may be resumed
        until.wait(max(0.0, batch / speed - (time.monotonic() - begun)))
    return "interrupted"


def feed_in_background(
    url: str, instance: Instance, speed: float, seed: int, settings: Mapping[str, Any], until: threading.Event
) -> threading.Thread:
    """Create a study of an instance on a server, and feed it in a thread of its own."""

    def work() -> None:
        with Client(url, patience=300.0) as client:
            name = f"{instance.name} (demo)"
            try:
                study = client.create_study(instance.problem, name=name, seed=seed, **settings)
                feed(study, DemoWorld(instance, seed), speed, until)
            except ServiceError:
                if not until.is_set():
                    raise

    thread = threading.Thread(target=work, name="demo", daemon=True)
    thread.start()
    return thread
