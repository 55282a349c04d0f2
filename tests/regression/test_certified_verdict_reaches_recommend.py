"""What the certified stop proved is what `recommend` says, whatever polytope the explorer's own policy lives on.

`SET_IS_EMPTY` speaks of that polytope: a pessimistic one may be empty when an answer is proved, an optimistic one not
when it is proved that there is none.
"""

import numpy as np
import pytest

from contract.suitable import make_instance
from polyarm import Instance, make_explorer
from polyarm.engine.session import Session
from polyarm.errors import NoFeasibleMix
from polyarm.round import INFEASIBLE, STOPPED


def make(costs: list[float]) -> Instance:
    return make_instance([0.0, 0.0, 0.0], [costs], [{"name": "u", "bound": 0.0, "std": 1.0}], r=0.5)


def finish(instance: Instance, policy: str, seed: int) -> Session:
    session = make_explorer(
        "uniform", instance.problem, seed=seed, stopping="certified", thresholds="stylised", policy=policy
    )
    rng = np.random.default_rng(seed)
    while not session.stopped and session.steps < 5000:
        arm = session.ask()
        session.tell(arm, rng.standard_normal(), [instance.A[0, arm] + rng.standard_normal()])
    return session


def test_a_proved_answer_is_recommended() -> None:
    for seed in range(10):
        session = finish(make([-0.6, 0.1, 0.1]), "pessimistic", seed)
        if session.round.now.status == STOPPED:
            assert session.recommend().stopped


def test_nothing_is_recommended_when_nothing_can_be() -> None:
    alarms = 0
    for seed in range(10):
        session = finish(make([0.5, 0.6, 0.7]), "optimistic", seed)
        if session.round.now.status == INFEASIBLE:
            alarms += 1
            with pytest.raises(NoFeasibleMix):
                session.recommend()
    assert alarms >= 5
