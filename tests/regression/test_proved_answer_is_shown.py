"""A proof can come at a look right after a review at which no mix seemed to fit: the answer was then withheld.

`recommend` of such a session raised that there was nothing to recommend yet.
"""

import numpy as np
import pytest

from contract.suitable import make_instance
from polyarm.engine.run import Exploration, plan_run
from polyarm.round import STOPPED


@pytest.mark.parametrize("certificate", ["blocks", "pooled"])
def test_a_proved_answer_does_not_depend_on_the_review_before(certificate: str) -> None:
    rows = [{"name": "price", "bound": 0.5, "std": 0.3}]
    instance = make_instance([0.3, 0.9], [[0.1, 0.8]], rows, r=0.3)
    run = Exploration(*plan_run(instance, "certex", {"certificate": certificate}), seed=1)
    run.advance_to(100_000)
    session = run.session
    assert session.stopped
    answer = session.policy
    assert answer is not None
    assert session.stop is not None
    session.stop.state.now.looks_empty = 1
    assert session.round.now.status == STOPPED
    shown = session.policy
    assert shown is not None
    assert np.array_equal(shown, answer)
    assert np.array_equal(session.recommend().policy, answer)
