"""A look of the certified stop that was interrupted (Ctrl-C in a notebook) left an empty block behind.

The session then said that it had stopped, and that its mix was proved.
"""

from typing import Any

import pytest

from polyarm import InvalidInput, Session
from polyarm.engine import session as session_module
from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.instances import load_instance
from polyarm.stops.blocks import BlocksStop, take_next
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
    whole: Any = getattr(stop, step)
    interruptions: list[str] = []

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


def _ask_all(session: Session) -> list[int]:
    costs = [constraint.bound for constraint in session.problem.constraints]
    for arm in session.ask_batch():
        session.tell(arm, 0.5, costs)
    return session.ask_batch()


def test_an_interrupted_batch_is_handed_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, session = _explore("averaged").session, _explore("averaged").session
    batch = _ask_all(expected)
    taken: list[int] = []

    def interrupt(block: Any) -> int:
        taken.append(int(take_next(block)))
        if len(taken) == 20:
            raise KeyboardInterrupt
        return taken[-1]

    monkeypatch.setattr(session_module, "take_next", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _ask_all(session)
    assert session.ask_batch() == batch


def test_an_outcome_that_went_missing_is_no_proof() -> None:
    session = _explore("averaged").session
    session.ask_batch()
    assert session._block is not None
    session._block.waiting[:] = 0.0
    assert not session.stopped
    with pytest.raises(InvalidInput, match="outcomes are missing"):
        session.ask()
