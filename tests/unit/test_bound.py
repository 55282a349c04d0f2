"""`lower_bounds` and `polyarm bound`: the joint entry and the noise, for people and for programs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm import Constraint, Instance, Problem, load_instance, lower_bounds
from polyarm.cli.main import main
from polyarm.environments.draws import Draw

MEANS, NO_ROWS = np.array([0.1, 0.2]), np.zeros((0, 2))

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


def make_drawn(**changes: Any) -> Instance:
    """Outcomes in ranges that are much wider than what is drawn, with other spreads for other arms."""
    rows = (Constraint(name="price", bound=1.0, range=(0.0, 20.0)),)
    problem = Problem(arms=("a", "b", "c"), reward_range=(0.0, 1.0), constraints=rows, delta=0.05, r=0.1)
    draw = Draw(laws=("bernoulli", "gamma"), std=(0.0, 0.0), cv=(0.0, 0.5))
    mu, costs = np.array([0.1, 0.5, 0.8]), np.array([[0.4, 0.8, 2.0]])
    return replace(Instance("drawn", "", problem, mu, costs, draw), **changes)


def test_times_are_for_the_noise_that_the_world_draws() -> None:
    """What is proved of Gaussians with the world's standard deviations, whatever range is declared."""
    drawn = make_drawn()
    stds = drawn.true_stds()
    assert stds[0] == pytest.approx(np.sqrt(drawn.mu * (1.0 - drawn.mu)))
    assert stds[1] == pytest.approx(0.5 * drawn.A[0], rel=1e-3)
    rows = (Constraint(name="price", bound=1.0, std=tuple(stds[1].tolist())),)
    told = Problem(arms=drawn.problem.arms, reward_std=tuple(stds[0].tolist()), constraints=rows, delta=0.05, r=0.1)
    twin = lower_bounds(Instance("twin", "", told, drawn.mu, drawn.A))
    found = lower_bounds(drawn)
    for name in ("bai", "known", "known_restricted"):
        assert found["bounds"][name]["T"] == pytest.approx(twin["bounds"][name]["T"], rel=1e-4)
    assert found["bounds"]["joint"]["T"] == pytest.approx(twin["bounds"]["joint"]["T"], rel=0.02)
    assert found["noise"]["reward"] == {"source": "as the world draws", "std": stds[0].tolist()}
    assert found["noise"]["costs"] == {"price": {"source": "as the world draws", "std": stds[1].tolist()}}
    assert {row["source"] for row in (twin["noise"]["reward"], twin["noise"]["costs"]["price"])} == {"as declared"}


def test_two_coins_take_the_time_of_their_own_spread() -> None:
    coins = Instance("coins", "", Problem(arms=("a", "b"), reward_range=(0.0, 1.0), delta=0.1, r=0.0), MEANS, NO_ROWS)
    drawn = replace(coins, draw=Draw(laws=("bernoulli",), std=(0.0,), cv=(0.0,)))
    spread = np.sqrt(MEANS * (1.0 - MEANS)).sum()
    assert lower_bounds(drawn)["bounds"]["bai"]["T"] == pytest.approx(2.0 * (spread / 0.1) ** 2, rel=1e-4)
    assert lower_bounds(coins)["bounds"]["bai"]["T"] == pytest.approx(2.0 * (1.0 / 0.1) ** 2, rel=1e-4)


def test_where_nothing_but_a_range_is_known_half_of_it_counts_and_the_output_says_so() -> None:
    drawn = lower_bounds(make_drawn())
    found = lower_bounds(make_drawn(draw=None))
    source = "half of the range: an upper bound on the noise"
    assert found["noise"]["reward"] == {"source": source, "std": [0.5] * 3}
    assert found["noise"]["costs"] == {"price": {"source": source, "std": [10.0] * 3}}
    for name in ("bai", "known"):
        assert found["bounds"][name]["T"] > 1.2 * drawn["bounds"][name]["T"]
    assert found["bounds"]["joint"]["T"] > 50.0 * drawn["bounds"]["joint"]["T"]


def test_an_arm_whose_cost_never_varies_has_a_time() -> None:
    free = lower_bounds(make_drawn(A=np.array([[0.0, 0.8, 2.0]])))
    assert free["noise"]["costs"]["price"]["std"][0] == 0.0
    joint = free["bounds"]["joint"]
    assert 0.0 < joint["lower_T"] <= joint["T"] <= joint["certified_T"] < 1.1 * joint["T"]


def test_a_family_says_how_its_rewards_vary() -> None:
    """A family has distances of its own between means; the joint time takes the spread of its rewards."""
    rows = (Constraint(name="price", bound=1.0, std=0.5),)
    coins = Problem(arms=("a", "b", "c"), family="bernoulli", constraints=rows, delta=0.05, r=0.1)
    drawn = make_drawn()
    found = lower_bounds(Instance("coins", "", coins, drawn.mu, drawn.A))
    assert found["noise"]["reward"] == {"source": "by its family", "std": drawn.true_stds()[0].tolist()}
    gaussian = coins.replace(family=None, reward_std=tuple(drawn.true_stds()[0].tolist()))
    twin = lower_bounds(Instance("twin", "", gaussian, drawn.mu, drawn.A))
    assert found["bounds"]["joint"]["T"] == pytest.approx(twin["bounds"]["joint"]["T"], rel=0.02)


def test_the_text_says_what_noise_was_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "noise: as the world draws" in run(capsys, "bound", "router-bounded", "--r", "0.2").splitlines()
    assert "noise: as declared" in run(capsys, "bound", "setup2-easy", "--r", "0.2").splitlines()
    path = tmp_path / "both.toml"
    path.write_text(
        "r = 0.1\ndelta = 0.1\nmu = [0.2, 0.5]\nA = [[0.1, 0.9]]\nb = [0.6]\nreward_std = 0.3\ncost_range = [0, 1]\n"
    )
    said = "noise: reward as declared; constraint 1 half of the range: an upper bound on the noise"
    assert said in run(capsys, "bound", str(path)).splitlines()
    told = json.loads(run(capsys, "bound", str(path), "--json"), parse_constant=refuse_constant)["noise"]
    assert told["reward"] == {"source": "as declared", "std": [0.3, 0.3]}
