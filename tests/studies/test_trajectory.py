"""The claim behind every certificate of a study: the explorer sees what it would have seen alone, pull by pull.

Neither batches nor delays nor the order of tells change it, even if they depend on the outcomes.
"""

import json
from typing import Any

import numpy as np
import pytest

from polyarm import Session, load_study, verify_certificate, verify_study
from studies.worlds import World, explore, sequential, start


def bits(session: Session) -> str:
    return json.dumps(session.state_dict())


@pytest.mark.parametrize(
    ("explorer", "settings"),
    [("certex", {}), ("certex", {"certificate": "pooled"}), ("uniform", {}), ("lagex", {"stopping": "certified"})],
)
@pytest.mark.parametrize("batch", [1, 7, 60])
def test_batches_lead_where_single_pulls_do(sqlite: str, explorer: str, settings: dict[str, Any], batch: int) -> None:
    alone = sequential(explorer, **settings)
    study = start(sqlite, explorer, **settings)
    explore(study, World(), batch)
    assert bits(study.session) == bits(alone)
    wasted = study.status().asked - alone.steps
    assert 0 <= wasted < 3 * batch


def test_delays_that_depend_on_the_outcome_change_nothing(storage: str) -> None:
    """Good outcomes at once, bad ones a hundred asks later: what a naive mean would be fooled by."""
    alone = sequential("certex", certificate="pooled")
    study, world = start(storage, certificate="pooled"), World()
    late: list[Any] = []
    while not study.stopped:
        now: list[Any] = []
        for trial in study.ask(10):
            told = world.pull(trial)
            (now if told[1] > 0.75 else late).append(told)
        if len(late) > 100:
            now += late[:50]
            del late[:50]
        study.tell_many(reversed(now))
    assert bits(study.session) == bits(alone)
    assert study.certificate().assumptions == ()
    assert verify_certificate(study.certificate().document).proved
    assert verify_study(study).valid


def test_tells_in_any_order_and_in_parts_lead_to_the_same_state(sqlite: str) -> None:
    alone = sequential("certex")
    study, world, order = start(sqlite), World(), np.random.default_rng(1)
    while not study.stopped:
        parts: list[Any] = []
        for trial, reward, costs in map(world.pull, study.ask(12)):
            parts += [(trial, reward, None)] + [(trial, None, {name: cost}) for name, cost in costs.items()]
        study.tell_many(parts[k] for k in order.permutation(len(parts)))
    assert bits(study.session) == bits(alone)


def test_pending_trials_count_as_pulls_to_come(sqlite: str) -> None:
    study = start(sqlite)
    first = [trial.arm for trial in study.ask(6)]
    assert sorted(first) == sorted(["small", "medium", "large"] * 2), "the first block has every arm twice"
    ahead = [trial.arm for trial in study.ask(30)]
    assert all(ahead.count(arm) == 10 for arm in ("small", "medium", "large")), "beyond it, in the allocation's shares"


def test_what_is_asked_does_not_depend_on_who_asks(sqlite: str) -> None:
    one, two = start(sqlite), load_study("test", sqlite)
    world, arms = World(), []
    for turn in range(60):
        (trial,) = (one if turn % 2 else two).ask()
        arms.append(trial.arm_index)
        (two if turn % 3 else one).tell(*world.pull(trial))
    assert bits(one.session) == bits(two.session)
    assert verify_study(one).valid
