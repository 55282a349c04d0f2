"""Outcomes so odd that refusing them fails: another error than `InvalidInput` reaches the caller."""

from typing import Any

import pytest

from polyarm import InvalidInput, Session, load_instance, make_explorer


@pytest.fixture
def session() -> Session:
    return make_explorer("uniform", load_instance("setup1-hard").problem, seed=0)


def test_a_reward_too_large_for_a_float_is_refused(session: Session) -> None:
    with pytest.raises(InvalidInput, match="reward"):
        session.tell(session.ask(), 10**400, [0.25, 0.25])


def test_a_cost_too_large_for_a_float_is_refused(session: Session) -> None:
    with pytest.raises(InvalidInput, match="cost"):
        session.tell(session.ask(), 0.5, [0.25, 10**400])


def test_costs_named_by_numbers_and_text_are_refused(session: Session) -> None:
    costs: Any = {"constraint 1": 0.25, 3: 0.25}
    with pytest.raises(InvalidInput, match="costs: expected"):
        session.tell(session.ask(), 0.5, costs)
