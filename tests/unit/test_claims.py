"""What an answer is said to prove, and what not: never more than the settings can carry."""

from itertools import product
from typing import Any

import pytest

from contract.suitable import make_instance
from polyarm import Instance, make_explorer
from polyarm.claims import Claim, Claims, Kind
from polyarm.engine.claims import claim_infeasible, kind_of_bounds, make_claims

OPTIMALITY = "within r = 0.1 of the best feasible mix with confidence 0.9"


def instance(known: bool) -> Instance:
    row = [1.0, 0.0, 0.0] if known else None
    return make_instance([3.0, 2.0, 1.0], [[1, 0, 0]], [{"name": "price", "bound": 0.5, "std": 1.0, "row": row}])


def claims(known: bool, stopped: bool = True, **settings: Any) -> Claims:
    session = make_explorer("uniform", instance(known).problem, seed=0, **settings)
    return make_claims(session.problem, session.plan.settings, stopped, safe=False)


KINDS: tuple[Kind, ...] = ("proved", "asymptotic", "stylised", "none")


@pytest.mark.parametrize(
    ("kind", "confidence", "assumptions", "why"),
    list(product(KINDS, (None, 0.95), ((), ("pigs fly",), ("pigs fly", "cats bark")), (None, "nobody knows"))),
)
def test_a_sentence_says_all_that_belongs_to_a_claim(
    kind: Kind, confidence: float | None, assumptions: tuple[str, ...], why: str | None
) -> None:
    claim = Claim("feasible", kind, "the mix satisfies price", confidence, assumptions, why)
    said = {(): "", ("pigs fly",): "if pigs fly: "}.get(assumptions, "if pigs fly: if cats bark: ")
    said += "the mix satisfies price" + ("" if confidence is None else " with confidence 0.95")
    said += ", as outcomes become many" if kind == "asymptotic" else ""
    said += "" if why is None else ": nobody knows"
    assert claim.sentence == said
    assert (claim.proved, claim.label) == ((True, "proved") if kind == "proved" else (False, "not proved"))


def test_what_is_proved_is_told_by_the_kind_alone() -> None:
    claims = Claims(tuple(Claim("feasible", kind, kind, why="proved, without a proof") for kind in KINDS))
    assert claims.proved == ("proved: proved, without a proof",)
    assert [sentence.split(":")[0].split(",")[0] for sentence in claims.not_proved] == list(KINDS[1:])


def test_an_assumption_is_added_to_every_claim_and_told_itself() -> None:
    first, second = Claim("feasible", "proved", "fine", 0.9), Claim("near-optimal", "none", "best", why="too early")
    claims = Claims((first, second)).under("pigs fly", "we look away").under("cats bark", "we are deaf")
    assert [claim.assumptions for claim in claims.all] == [("pigs fly", "cats bark")] * 2 + [()] * 2
    assert claims.proved == ("if pigs fly: if cats bark: fine with confidence 0.9",)
    assert claims.not_proved[1:] == ("pigs fly: we look away", "cats bark: we are deaf")
    assert {claim.about for claim in claims.all[2:]} == {"assumption"}


@pytest.mark.parametrize(("known", "stopped", "safe"), list(product((True, False), repeat=3)))
@pytest.mark.parametrize("thresholds", ["proved", "stylised"])
def test_the_certified_rule_claims_what_it_has_earned(known: bool, stopped: bool, safe: bool, thresholds: Kind) -> None:
    session = make_explorer("uniform", instance(known).problem, seed=0, stopping="certified", thresholds=thresholds)
    settings = session.plan.settings
    said = [(claim.about, claim.kind) for claim in make_claims(session.problem, settings, stopped, safe).all]
    first = ("known-constraints", "proved") if known else ("feasible", thresholds if stopped or safe else "none")
    assert said == [first, ("near-optimal", thresholds if stopped else "none")]
    assert kind_of_bounds(settings) == thresholds
    refused = claim_infeasible(session.problem, settings, ["price"])
    assert (refused.about, refused.kind, refused.confidence) == ("infeasible", thresholds, 0.9)
    assert refused.text == "no mix satisfies all of: price <= 0.5"


def test_every_claim_that_is_not_proved_says_why() -> None:
    choices: list[dict[str, Any]] = [{}, {"beta": "theory"}, {"stopping": "certified", "thresholds": "stylised"}]
    for known, stopped, settings in product((True, False), (True, False), choices):
        assert all((claim.why is None) == claim.proved for claim in claims(known, stopped, **settings).all)


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
