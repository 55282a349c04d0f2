"""The vertex that blocked a stop is saved with whatever the scratch held behind its own entries.

A candidate uses the first few entries of its array. When it becomes the state's `blocker` all entries are copied, so
that two sessions with the same past, one of them restored on the way, save different states.
"""

import json

from contract.suitable import make_instance
from polyarm import make_explorer


def test_what_is_saved_does_not_depend_on_scratch() -> None:
    constraints = [{"name": name, "bound": 0.5, "std": 0.05} for name in "xy"]
    rows = [[1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0]]
    instance = make_instance([1.5, 1.0, 1.3, 0.4, 0.3, 0.2, 0.1], rows, constraints, r=0.5)
    clean, spoilt = (make_explorer("uniform", instance.problem, seed=11) for _ in range(2))
    while not clean.stopped and clean.steps < 400:
        for session in (clean, spoilt):
            arm = session.ask()
            session.tell(arm, float(instance.mu[arm]), instance.A[:, arm].tolist())
        spoilt.work.round.candidate[...] = 1
        assert spoilt.stopped == clean.stopped
    assert clean.round.blocker[0, 0] > 0, "some vertex did block"
    assert json.dumps(spoilt.state_dict()) == json.dumps(clean.state_dict())
