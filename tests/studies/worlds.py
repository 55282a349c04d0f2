"""A small problem, and outcomes that depend on nothing but the arm and how often it was asked for."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa

from polyarm import Breaker, Constraint, Problem, Session, Study, Trial, create_study, make_explorer
from polyarm.studies.events import GENESIS, seal
from polyarm.studies.sql.storage import SqlStorage
from polyarm.studies.sql.tables import events, studies
from polyarm.studies.storage import open_storage

MU = np.array([0.6, 0.7, 0.9])
COSTS = np.array([[0.2, 0.8, 2.0], [0.5, 0.1, 0.3]])


def make_problem(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "arms": ["small", "medium", "large"],
        "reward_std": 0.2,
        "delta": 0.05,
        "r": 0.15,
        "constraints": [
            Constraint(name="price", bound=1.0, std=0.3),
            Constraint(name="latency", bound=0.45, std=0.2),
        ],
    }
    return Problem(**{**stated, **changes})


def outcome(arm: int, k: int) -> tuple[float, dict[str, float]]:
    """What the k-th ask of an arm gives, from 0."""
    noise = np.random.default_rng([arm, k]).standard_normal(3)
    return float(MU[arm] + 0.2 * noise[0]), {
        "price": float(COSTS[0, arm] + 0.3 * noise[1]),
        "latency": float(COSTS[1, arm] + 0.2 * noise[2]),
    }


class World:
    """Gives every trial its outcome: that of the k-th ask of its arm."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()

    def pull(self, trial: Trial) -> tuple[Trial, float, dict[str, float]]:
        k = self.asked[trial.arm_index]
        self.asked[trial.arm_index] += 1
        return (trial, *outcome(trial.arm_index, k))


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_time(self, **duration: float) -> None:
        self.now += timedelta(**duration)


def start(storage: str, explorer: str = "certex", problem: Problem | None = None, **options: Any) -> Study:
    options = {"name": "test", "seed": 5, **options}
    return create_study(problem or make_problem(), explorer, storage, **options)


def explore(study: Study, world: World, batch: int = 20) -> None:
    """Ask and tell in batches until the explorer stops."""
    while not study.stopped:
        study.tell_many([world.pull(trial) for trial in study.ask(batch)])


def sequential(explorer: str, steps: int | None = None, problem: Problem | None = None, **settings: Any) -> Session:
    """The explorer alone, one pull after the other, until it stops or has made so many."""
    session = make_explorer(explorer, problem or make_problem(), seed=5, **settings)
    asked: Counter[int] = Counter()
    while not session.stopped and (steps is None or session.steps < steps):
        arm = session.ask()
        session.tell(arm, *outcome(arm, asked[arm]))
        asked[arm] += 1
    return session


def tripped_study(storage: str, **options: Any) -> tuple[Study, World]:
    """A study whose sampling is proved to be too expensive: its breaker has just tripped."""
    problem = make_problem(r=0.01, constraints=[{"name": "price", "bound": 0.4, "std": 0.3}])
    breaker = Breaker(control={"small": 0.75, "medium": 0.25})
    study, world = start(storage, "uniform", problem, breaker=breaker, **options), World()
    while study.status().tripped is None:
        tell_prices(study, world, 10)
    return study, world


def tell_prices(study: Study, world: World, n: int) -> None:
    told = [world.pull(trial) for trial in study.ask(n)]
    study.tell_many([(trial, reward, [costs["price"]]) for trial, reward, costs in told])


def infeasible_problem() -> Problem:
    return make_problem(r=0.2, constraints=[{"name": "price", "bound": 0.0, "std": 0.2}])


def engine_of(storage: str) -> sa.Engine:
    """The engine behind a storage."""
    place = open_storage(storage)
    assert isinstance(place, SqlStorage)
    return place.engine


def execute(storage: str, statement: str) -> None:
    """Change a storage behind polyarm's back."""
    with engine_of(storage).begin() as connection:
        connection.execute(sa.text(statement))


def reseal(storage: str) -> None:
    """Make the seals of the only study's log whole again, as a careful forger would."""
    with engine_of(storage).begin() as connection:
        digest = GENESIS
        for row in connection.execute(sa.select(events).order_by(events.c.seq)).all():
            digest = seal(digest, row.seq, row.at, row.kind, row.payload)
            connection.execute(sa.update(events).where(events.c.seq == row.seq).values(digest=digest))
        connection.execute(sa.update(studies).values(last_digest=digest, last_seq=row.seq))
