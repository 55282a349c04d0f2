"""What an answer is said to prove, and what not: never more than the settings can carry."""

from typing import Any

import pytest

from contract.suitable import make_instance
from polyarm import Instance, make_explorer
from polyarm.engine.claims import Claims, make_claims

OPTIMALITY = "within r = 0.1 of the best feasible mix with confidence 0.9"


def instance(known: bool) -> Instance:
    row = [1.0, 0.0, 0.0] if known else None
    return make_instance([3.0, 2.0, 1.0], [[1, 0, 0]], [{"name": "price", "bound": 0.5, "std": 1.0, "row": row}])


def claims(known: bool, stopped: bool = True, **settings: Any) -> Claims:
    session = make_explorer("uniform", instance(known).problem, seed=0, **settings)
    return make_claims(session.problem, session.plan.settings, stopped, safe=False)


def test_a_measured_constraint_is_never_proved() -> None:
    choices: list[dict[str, Any]] = [{}, {"beta": "theory"}, {"preset": "paper"}]
    for settings in choices:
        said = claims(known=False, **settings)
        assert said.proved == ()
        assert any("satisfies price" in sentence for sentence in said.not_proved)
        assert any(sentence.startswith(OPTIMALITY) for sentence in said.not_proved)


def test_a_known_constraint_holds_exactly() -> None:
    assert any("price" in sentence for sentence in claims(known=True).proved)


@pytest.mark.parametrize("margin", ["plus", "none"])
def test_known_constraints_and_the_proved_threshold_prove_optimality(margin: str) -> None:
    assert OPTIMALITY in claims(known=True, beta="theory", margin=margin).proved


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"beta": "log"},
        {"beta": "paper"},
        {"beta": "theory", "margin": "printed"},
        {"beta": "theory", "alternatives": "neighbours"},
        {"beta": "theory", "assumed_reward_std": 0.5},
        {"preset": "paper", "beta": "theory"},
    ],
)
def test_anything_less_does_not(settings: dict[str, Any]) -> None:
    said = claims(known=True, **settings)
    assert OPTIMALITY not in said.proved
    assert any(sentence.startswith(OPTIMALITY) for sentence in said.not_proved)


def test_nothing_about_optimality_is_proved_before_stopping() -> None:
    said = claims(known=True, stopped=False, beta="theory")
    assert OPTIMALITY not in said.proved
    assert any("has not stopped" in sentence for sentence in said.not_proved)
