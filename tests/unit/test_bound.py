"""`lower_bounds` and `polyarm bound`: the joint entry, for people and for programs."""

import json
from typing import Any

import pytest

from polyarm import Constraint, Instance, Problem, load_instance, lower_bounds
from polyarm.cli.main import main

JOINT_KEYS = {
    "T",
    "certified_T",
    "lower_T",
    "T_uniform",
    "allocation",
    "samples",
    "answer",
    "closest",
    "accuracy",
    "note",
    "reason",
}


def refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as done:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert done.value.code == 0, err
    return out


def test_joint_stands_beside_the_other_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "bound", "setup2-easy", "--r", "0.2", "--json")
    joint = json.loads(text, parse_constant=refuse_constant)["bounds"]["joint"]
    assert set(joint) == JOINT_KEYS
    assert joint["lower_T"] <= joint["T"] <= joint["certified_T"] <= joint["T_uniform"]
    assert joint["accuracy"] == pytest.approx(1.0 - joint["T"] / joint["certified_T"])
    assert sum(joint["allocation"]) == pytest.approx(1.0)
    assert sum(joint["answer"]) == pytest.approx(1.0)
    assert joint["samples"] > 0.0
    assert joint["reason"] is None


def test_joint_needs_more_than_known_constraints() -> None:
    bounds = lower_bounds("setup2-hard", r=0.1)["bounds"]
    assert bounds["joint"]["T"] > bounds["known"]["T"]


def test_without_tolerance_joint_is_null_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    joint = lower_bounds("setup2-easy", r=0.0)["bounds"]["joint"]
    assert set(joint) == JOINT_KEYS
    assert "infinitely many" in joint["reason"]
    assert all(joint[key] is None for key in JOINT_KEYS - {"note", "reason"})
    assert "infinitely many" in run(capsys, "bound", "setup2-easy", "--r", "0")


def test_rewards_without_a_scale_have_no_joint_time() -> None:
    constraint = Constraint(name="c", bound=0.5, std=1.0)
    problem = Problem(arms=("a", "b"), constraints=(constraint,), family="poisson", delta=0.1, r=0.1)
    given = load_instance("figure2")
    instance = Instance("counts", "", problem, given.mu[:2], given.A[:, :2])
    assert "sub-Gaussian" in lower_bounds(instance)["bounds"]["joint"]["reason"]


def test_the_table_says_what_is_attained_and_what_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(run(capsys, "bound", "setup2-easy", "--r", "0.2").split())
    assert "joint" in text
    assert "attained" in text
    assert "<= T* <=" in text
