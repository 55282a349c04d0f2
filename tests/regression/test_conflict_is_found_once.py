"""Naming the constraints in conflict once built a whole certificate for every constraint, and for every view."""

from pathlib import Path

import pytest

from polyarm import Constraint, NoFeasibleMix, Problem, Session, make_certificate, make_explorer
from polyarm._types import FloatArray
from polyarm.certify.proof import Standing, find_conflict
from polyarm.cli.report import describe_result, show_claim
from polyarm.engine import answer_proof as proof_module
from polyarm.engine import certificate
from polyarm.service.view import view_study
from studies.worlds import World, infeasible_problem, start, tell_prices


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Standing]:
    """Every standing whose conflict was looked for; certificates are out of bounds."""
    seen: list[Standing] = []

    def find(standing: Standing) -> FloatArray:
        seen.append(standing)
        return find_conflict(standing)

    monkeypatch.setattr(proof_module, "find_conflict", find)
    monkeypatch.setattr(certificate, "weigh_statistics", lambda *_: pytest.fail("a certificate was made"))
    return seen


def stop_infeasible() -> Session:
    rows = tuple(Constraint(name=name, bound=-1.0, std=0.1) for name in ("price", "size", "weight"))
    session = make_explorer("certex", Problem(arms=("a", "b"), reward_std=0.1, delta=0.1, r=0.5, constraints=rows), 1)
    while not session.stopped:
        session.tell(session.ask(), 0.5, [0.5, -3.0, 1.0])
    return session


def test_a_session_looks_for_it_once(calls: list[Standing]) -> None:
    session = stop_infeasible()
    assert calls == []
    for _ in range(3):
        assert session.conflict == ["weight"]
        show_claim(session.claim_infeasible())
        assert describe_result(session, None).claims[0].text == "no mix satisfies all of: weight <= -1"
        with pytest.raises(NoFeasibleMix, match="weight"):
            session.recommend()
    assert len(calls) == 1


def test_a_view_looks_for_it_once(tmp_path: Path, calls: list[Standing]) -> None:
    study, world = start(f"sqlite:///{tmp_path}/studies.db", problem=infeasible_problem()), World()
    while not study.stopped:
        tell_prices(study, world, 20)
    calls.clear()
    view = view_study(1, study.moment())
    assert view["conflict"] == ["price"]
    assert view["mix"]["claims"][0]["about"] == "infeasible"
    assert len(calls) == 1


def test_the_certificate_names_the_same() -> None:
    session = stop_infeasible()
    assert list(make_certificate(session).document["conflict"]) == session.conflict
