"""Outcomes outside what is declared: refused or cut, in sessions and replays."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm import InvalidInput, OutsideDeclaration, Problem, Session, make_explorer, read_log, replay
from polyarm.engine.outcomes import Limits
from polyarm.environments.replay import ReplayLog


def ranged(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "arms": ["a", "b"],
        "reward_range": (0.0, 1.0),
        "delta": 0.1,
        "r": 0.1,
        "constraints": [
            {"name": "known", "bound": 5.0, "row": (1.0, 2.0)},
            {"name": "price", "bound": 4.0, "range": ((0.0, 20.0), (1.0, 10.0))},
        ],
    }
    return Problem(**{**stated, **changes})


def capped(**changes: Any) -> Problem:
    rows = [c.model_dump() for c in ranged().constraints]
    return ranged(reward_cap=True, constraints=[rows[0], {**rows[1], "cap": True}], **changes)


def start(problem: Problem, explorer: str = "uniform") -> Session:
    return make_explorer(explorer, problem, seed=1)


OUTSIDE = [
    ({}, 0, 50.0, 1.0, ["reward: 50 is above 1, the largest value declared for arm 'a'", "declare reward_cap=True"]),
    ({}, 0, -1e-9, 1.0, ["reward: -1e-09 is below 0, the least value declared for arm 'a'", "a range that holds it"]),
    ({}, 0, 0.5, 900.0, ["cost 'price': 900 is above 20", "declare cap=True, and larger values count as 20"]),
    ({}, 1, 0.5, 11.0, ["cost 'price': 11 is above 10, the largest value declared for arm 'b'"]),
    ({}, 1, 0.5, 0.5, ["cost 'price': 0.5 is below 1, the least value declared for arm 'b'"]),
    ({}, 1, 7.0, 0.5, ["reward: 7 is above 1", "; cost 'price': 0.5 is below 1"]),
    (
        {"family": "bernoulli", "reward_range": None},
        0,
        0.6,
        1.0,
        ["0.6 is no outcome of family 'bernoulli'", "0 and 1"],
    ),
    ({"family": "bernoulli", "reward_range": None}, 0, 2.0, 1.0, ["2 is no outcome of family 'bernoulli'"]),
    ({"family": "poisson", "reward_range": None}, 0, -1.0, 1.0, ["-1 is no outcome of family 'poisson'"]),
    (
        {"family": "poisson", "reward_range": None},
        0,
        0.5,
        1.0,
        ["0.5 is no outcome of family 'poisson'", "0, 1, 2, ..."],
    ),
    ({"family": "exponential", "reward_range": None}, 0, -1.0, 1.0, ["-1 is no outcome of family 'exponential'"]),
]


@pytest.mark.parametrize(("changes", "arm", "reward", "cost", "fragments"), OUTSIDE)
def test_an_outcome_outside_its_declaration_is_refused_and_its_arm_stays_pending(
    changes: dict[str, Any], arm: int, reward: float, cost: float, fragments: list[str]
) -> None:
    session = start(ranged(**changes))
    if arm == 1:
        session.tell(session.ask(), 1.0, [1.0])
    assert session.ask() == arm
    before = json.dumps(session.state_dict())
    with pytest.raises(OutsideDeclaration) as caught:
        session.tell(arm, reward, [cost])
    for fragment in fragments:
        assert fragment in str(caught.value)
    assert json.dumps(session.state_dict()) == before
    assert session.ask() == arm
    session.tell(arm, 1.0, [5.0])
    assert session.steps == arm + 1


def test_the_ends_of_a_range_are_in_it() -> None:
    session = start(ranged())
    session.tell(session.ask(), 0.0, [20.0])
    session.tell(session.ask(), 1.0, [1.0])
    assert not session.capped.any()


def test_a_declared_std_refuses_nothing() -> None:
    session = start(
        ranged(reward_range=None, reward_std=1.0, constraints=[{"name": "price", "bound": 1.0, "std": 1.0}])
    )
    session.tell(session.ask(), -50.0, [900.0])
    assert session.steps == 1


def test_a_cap_cuts_larger_values_and_counts_them() -> None:
    session = start(capped())
    session.tell(session.ask(), 3.0, [900.0])
    session.tell(session.ask(), 0.5, {"price": 10.5})
    assert session.capped.tolist() == [[1, 0], [0, 0], [1, 1]]
    assert session.round.estimates.mu_hat.tolist() == [1.0, 0.5]
    factor, bound = session.plan.model.factors[1], session.plan.model.bounds[1]
    costs = (session.round.estimates.columns[2] + bound) / factor
    assert costs.tolist() == pytest.approx([20.0, 10.0])
    arm = session.ask()
    with pytest.raises(OutsideDeclaration, match="cost 'price': -1 is below"):
        session.tell(arm, 0.5, [-1.0])


def test_what_was_cut_is_saved_copied_and_restored() -> None:
    session = start(capped())
    session.tell(session.ask(), 3.0, [900.0])
    saved = json.loads(json.dumps(session.state_dict()))
    for again in (Session.from_state_dict(saved), copy.deepcopy(session)):
        assert again.capped.tolist() == [[1, 0], [0, 0], [1, 0]]
        assert again.state_dict() == session.state_dict()
        again.tell(again.ask(), 3.0, [5.0])
        assert again.capped.tolist() == [[1, 1], [0, 0], [1, 0]]
    assert session.capped.tolist() == [[1, 0], [0, 0], [1, 0]]


def test_capping_later_is_as_if_it_had_been_stated() -> None:
    later, stated = start(ranged()), start(capped())
    for session in (later, stated):
        session.tell(session.ask(), 0.5, [3.0])
    arm = later.ask()
    with pytest.raises(OutsideDeclaration):
        later.tell(arm, 2.0, [900.0])
    later.cap(reward=True, costs=["price"])
    for session in (later, stated):
        session.tell(session.ask(), 2.0, [900.0])
    assert later.state_dict() == stated.state_dict()
    assert Session.from_state_dict(later.state_dict()).problem == stated.problem


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ({}, "name the outcomes to cut"),
        ({"costs": ["known"]}, "unknown measured constraint 'known'; known: price"),
        ({"costs": ["colour"]}, "unknown measured constraint 'colour'"),
    ],
)
def test_a_cap_of_nothing_is_refused(what: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        start(ranged()).cap(**what)


def test_an_outcome_of_a_batch_may_be_refused() -> None:
    session = start(ranged(), "certex")
    arms = session.ask_batch()
    waiting = session.waiting
    with pytest.raises(OutsideDeclaration):
        session.tell(arms[-1], 2.0, [5.0])
    assert session.waiting == waiting
    session.tell(arms[-1], 0.5, [5.0])


def test_parts_of_an_outcome_are_judged_alone() -> None:
    limits = Limits(ranged())
    assert not limits.find_outside(0, None, {})
    assert not limits.find_outside(0, 0.5, {})
    found = limits.find_outside(0, None, {"price": 21.0})
    assert (found.reward, found.costs, len(found.why)) == (False, ("price",), 1)


# -- replays ----------------------------------------------------------------------------------------------------------


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["arm,reward,price", *rows]))
    return path


def test_a_row_outside_is_named_even_if_no_explorer_asks_for_it(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", "a,0.5,1", "b,0.5,2", "b,0.5,10.5", "a,0.5,3")
    with pytest.raises(OutsideDeclaration, match=r"log\.csv, row 3: cost 'price': 10\.5 is above 10"):
        replay(ranged(), log, "uniform", horizon=1)
    with pytest.raises(OutsideDeclaration, match=r"log\.csv, row 3: cost"):
        replay(ranged(), read_log(log, ranged()), "uniform")
    result = replay(capped(), log, "uniform")
    assert result.session.capped.tolist() == [[0, 0], [0, 0], [0, 1]]


def test_a_log_that_is_no_file_has_no_rows_to_name() -> None:
    outcomes = (np.array([[0.5, 1.0]]), np.array([[7.0, 2.0]]))
    log = ReplayLog(arms=("a", "b"), costs=("price",), outcomes=outcomes)
    with pytest.raises(OutsideDeclaration, match=r"^reward: 7 is above 1"):
        replay(ranged(), log, "uniform")
