"""Batches: an explorer that plans in blocks hands them out at once, and takes outcomes in any order."""

import json
from typing import Any

import numpy as np
import pytest

from polyarm import Instance, InvalidInput, Session, load_instance, make_certificate, make_explorer, verify_certificate


@pytest.fixture(scope="module")
def instance() -> Instance:
    return load_instance("setup2-easy").with_problem(r=0.3, delta=0.1)


def outcome(instance: Instance, arm: int, number: int) -> dict[str, Any]:
    """What the number-th pull of an arm gives, whenever it is made."""
    noise = np.random.default_rng([arm, number]).standard_normal(1 + instance.problem.n_constraints)
    return {"reward": instance.mu[arm] + noise[0], "costs": (instance.A[:, arm] + noise[1:]).tolist()}


class World:
    """Outcomes in the order in which each arm is pulled."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.pulled = instance, [0] * instance.problem.n_arms

    def pull(self, arm: int) -> tuple[int, dict[str, Any]]:
        self.pulled[arm] += 1
        return arm, outcome(self.instance, arm, self.pulled[arm])


def finish(session: Session, world: World, limit: int | None, order: np.random.Generator | None) -> Session:
    """Explore in batches until the stop; with an order, outcomes are told in another than that of the pulls."""
    while not session.stopped:
        results = [world.pull(arm) for arm in session.ask_batch(limit)]
        for k in range(len(results)) if order is None else order.permutation(len(results)):
            session.tell(results[k][0], **results[k][1])
    return session


def start(instance: Instance, **settings: Any) -> Session:
    return make_explorer("certex", instance.problem, seed=3, **settings)


def bits(session: Session) -> str:
    return json.dumps(session.state_dict())


def test_batches_lead_where_single_pulls_do(instance: Instance) -> None:
    single, world = start(instance), World(instance)
    while not single.stopped:
        arm, result = world.pull(single.ask())
        single.tell(arm, **result)
    for limit in (None, 4):
        batched = finish(start(instance), World(instance), limit, None)
        assert bits(batched) == bits(single)
    shuffled = finish(start(instance), World(instance), None, np.random.default_rng(1))
    assert shuffled.steps == single.steps
    np.testing.assert_allclose(shuffled.recommend().policy, single.recommend().policy, atol=1e-6)
    assert verify_certificate(make_certificate(shuffled).document).proved


def test_nothing_more_is_asked_while_outcomes_of_the_block_are_missing(instance: Instance) -> None:
    session, world = start(instance), World(instance)
    results = [world.pull(arm) for arm in session.ask_batch()]
    for arm, result in results[:-1]:
        session.tell(arm, **result)
    before = bits(session)
    missing = session.problem.arms[results[-1][0]]
    for ask in (session.ask, session.ask_batch):
        with pytest.raises(InvalidInput, match=f"outcomes are missing.*{missing}"):
            ask()
    assert not session.stopped
    assert bits(session) == before
    session.tell(results[-1][0], **results[-1][1])
    assert session.ask_batch()


def test_an_outcome_that_nobody_waits_for_is_refused(instance: Instance) -> None:
    session, world = start(instance), World(instance)
    arms = session.ask_batch(2)
    for arm, result in map(world.pull, arms):
        session.tell(arm, **result)
    before = bits(session)
    with pytest.raises(InvalidInput, match="not waiting for an outcome"):
        session.tell(arms[0], **outcome(instance, arms[0], 2))
    assert bits(session) == before


def test_an_arm_that_was_asked_for_is_the_first_of_the_batch(instance: Instance) -> None:
    session = start(instance)
    arm = session.ask()
    first, rest = session.ask_batch(3), session.ask_batch()
    n_arms = instance.problem.n_arms
    assert first[0] == arm
    assert sorted([*first, *rest]) == sorted([*range(n_arms)] * 2), "the first block has every arm twice"
    for other in [*first, *rest]:
        session.tell(other, **outcome(instance, other, 1))
    assert session.steps == 2 * n_arms


def test_a_session_saved_in_the_middle_of_a_batch_goes_on(instance: Instance) -> None:
    session, world = start(instance), World(instance)
    for _ in range(5):
        results = [world.pull(arm) for arm in session.ask_batch()]
        for k, (arm, result) in enumerate(results):
            if k == len(results) // 2:
                session = Session.from_state_dict(json.loads(json.dumps(session.state_dict())))
            session.tell(arm, **result)
    undisturbed, other = start(instance), World(instance)
    for _ in range(5):
        for arm, result in [other.pull(arm) for arm in undisturbed.ask_batch()]:
            undisturbed.tell(arm, **result)
    assert bits(session) == bits(undisturbed)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "two"])
def test_a_bad_limit_is_refused(instance: Instance, limit: Any) -> None:
    with pytest.raises(InvalidInput, match="limit: expected a whole number"):
        start(instance).ask_batch(limit)


def test_explorers_without_blocks_hand_out_one_arm(instance: Instance) -> None:
    session = make_explorer("uniform", instance.problem, seed=3)
    assert session.ask_batch() == [session.ask()]
    pooled = start(instance, certificate="pooled")
    assert pooled.ask_batch(9) == [pooled.ask()]
