"""What service tests send: a small problem as JSON, and outcomes of its arms."""

from typing import Any

from polyarm import RemoteStudy
from studies.worlds import World, make_problem


def new_study(name: str = "test", **changes: Any) -> dict[str, Any]:
    """The body of a request that creates a study."""
    return {"name": name, "problem": make_problem().model_dump(mode="json"), "seed": 5, **changes}


def explore(study: RemoteStudy, world: World, batch: int = 50) -> None:
    """Ask and tell until the explorer stops."""
    while not study.stopped:
        study.tell_many([world.pull(trial) for trial in study.ask(batch)])
