"""The best safe mix of an estimated cost that had never varied on some arm ended in an error of the solver.

Nothing is known of such a cost: its interval is infinite, and no linear program takes that.
"""

import json

import numpy as np
import pytest

from polyarm import Constraint, Problem, Session, make_certificate, make_explorer
from polyarm.certify.proof import find_conflict
from polyarm.cli.report import list_answer, show_answer
from polyarm.engine.run import describe_status
from polyarm.report.answer import describe


def explore(costs: list[float], bound: float, varied: list[bool], limit: int) -> Session:
    """A session in which only some arms' costs vary."""
    arms = tuple(f"arm {a}" for a in range(len(costs)))
    problem = Problem(
        arms=arms, reward_range=(0.0, 1.0), delta=0.1, r=0.2, constraints=(Constraint(name="c", bound=bound),)
    )
    session, rng = make_explorer("certex", problem, seed=1), np.random.default_rng(1)
    while not session.stopped and session.steps < limit:
        arm = session.ask()
        cost = costs[arm] + 0.2 * rng.standard_normal() * varied[arm]
        session.tell(arm, float(rng.random() < 0.5), [cost])
    return session


def test_the_safe_mix_leaves_such_an_arm_out() -> None:
    session = explore([0.2, 0.3, 0.9], 0.6, [False, True, True], 600)
    assert describe_status(session) == "HORIZON"
    answer = session.recommend()
    assert answer.slack_low is not None
    assert answer.policy[0] == 0.0
    assert answer.slack_low["c"] >= -1e-9


def test_nothing_bounds_the_slack_of_such_arms_and_every_output_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    session = explore([0.2, 0.3], 0.6, [False, False], 60)
    answer = session.recommend()
    assert not answer.safe
    assert answer.slack_low == {"c": -np.inf}
    told = list_answer(session, describe(answer))
    assert told["slack_low"] == {"c": None}
    assert json.dumps(told, allow_nan=False)
    assert "at least" not in answer._repr_html_()
    show_answer(session, describe(answer))
    assert "unknown" in capsys.readouterr().out


def test_a_conflict_is_named_beside_such_an_arm() -> None:
    """The costs of one arm have never varied: nothing contradicts a mix of it alone, so the estimates name the row."""
    session = explore([0.9, 0.9, 0.9], 0.1, [True, True, True], 50_000)
    assert session.infeasible
    assert session.suspected_conflict == ["c"]
    assert make_certificate(session).document["suspected_conflict"] == {"c": pytest.approx(1.0)}
    standing = explore([0.9, 0.9, 0.9], 0.1, [False, True, True], 300).standing()
    assert np.isinf(standing.widths[1, 0])
    assert find_conflict(standing).tolist() == [1.0]
