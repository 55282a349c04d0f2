"""A look of the certified stop that was interrupted (Ctrl-C in a notebook) left an empty block behind.

The session then said that it had stopped, and that its mix was proved.
"""

from typing import Any

import pytest

from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.instances import load_instance
from polyarm.stops.blocks import BlocksStop
from polyarm.stops.certified import CertifiedStop
from polyarm.stops.planned import PlannedBlocks, PooledStop

_PLACES = [
    ("averaged", BlocksStop, "_try_starts"),
    ("averaged", CertifiedStop, "review"),
    ("averaged", PlannedBlocks, "_follow_plan"),
    ("averaged", PlannedBlocks, "_fix_answer"),
    ("pooled", PooledStop, "plan"),
    ("pooled", CertifiedStop, "_try_to_stop"),
]


def _explore(certificate: str) -> Exploration:
    instance = load_instance("router").with_problem(r=0.2)
    return Exploration(*plan_run(instance, "certex", {"certificate": certificate}), seed=0)


@pytest.mark.parametrize(("certificate", "stop", "step"), _PLACES)
@pytest.mark.parametrize("steps", [0, 100, 300])
def test_an_interrupted_look_changes_nothing(
    certificate: str, stop: type, step: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, explored = _explore(certificate), _explore(certificate)
    expected.advance_to(600)
    explored.advance_to(steps)
    whole, interruptions = getattr(stop, step), []

    def interrupt(self: Any, *args: Any) -> Any:
        result = whole(self, *args)
        if not interruptions:
            interruptions.append(step)
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(stop, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        explored.advance_to(600)
    assert interruptions
    assert not explored.session.stopped
    explored.advance_to(600)
    assert explored.session.state_dict() == expected.session.state_dict()
