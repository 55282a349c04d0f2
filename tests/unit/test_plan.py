"""`plan` and `polyarm plan`."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

import polyarm
from polyarm.bounds.forecast import stylised_pulls
from polyarm.cli.main import main

GUESS = """
arms = ["small", "medium", "large"]
mu = [0.62, 0.74, 0.86]
constraints = ["price", "latency"]
A = [[0.2, 0.8, 2.4], [0.4, 0.9, 1.6]]
b = [1.2, 1.1]
reward_std = 0.25
cost_std = [0.4, 0.5]
delta = 0.05
r = 0.06
"""


@pytest.fixture
def guess(tmp_path: Path) -> Path:
    path = tmp_path / "guess.toml"
    path.write_text(GUESS)
    return path


def refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(["plan", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert isinstance(done.value.code, int)
    return done.value.code, out, err


def test_a_plan_has_a_forecast_for_every_tolerance_and_level(guess: Path) -> None:
    plan = polyarm.plan(guess, r=[0.06, 0.12], delta=[0.05, 0.2])
    assert [(row["r"], row["delta"]) for row in plan["forecasts"]] == [
        (0.06, 0.05),
        (0.06, 0.2),
        (0.12, 0.05),
        (0.12, 0.2),
    ]
    for row in plan["forecasts"]:
        assert row["lower_T"] <= row["T"] <= row["certified_T"] <= 1.03 * row["T"]
        assert row["T"] < row["stylised"] < row["proved"], "a guarantee costs pulls"
    by_place = [row["proved"] for row in plan["forecasts"]]
    assert by_place[0] > by_place[1], "less certainty, fewer pulls"
    assert by_place[0] > by_place[2], "more tolerance, fewer pulls"
    assert sum(plan["allocation"]) == pytest.approx(1.0)
    assert sum(plan["answer"]) == pytest.approx(1.0)
    assert plan["simulated"] is None


def test_tolerances_and_levels_have_defaults(guess: Path) -> None:
    plan = polyarm.plan(guess)
    assert (plan["r"], plan["delta"]) == (0.06, 0.05)
    assert sorted({row["r"] for row in plan["forecasts"]}) == [0.06, 0.12, 0.24, 0.48]
    assert {row["delta"] for row in plan["forecasts"]} == {0.05, 0.1, 0.01}


def test_stylised_pulls_solve_their_equation() -> None:
    pulls = stylised_pulls(100.0, 0.1)
    assert pulls == pytest.approx(100.0 * math.log((1.0 + math.log(pulls)) / 0.1))


def test_relaxing_a_bound_is_priced_in_its_own_units(guess: Path) -> None:
    plan = polyarm.plan(guess, r=0.06, delta=0.05, relax=0.3)
    assert [row["name"] for row in plan["constraints"]] == ["price", "latency"]
    for row in plan["constraints"]:
        assert row["relaxed_by"] == 0.3
        assert row["saved"] == pytest.approx(plan["forecasts"][0]["proved"] - row["pulls"])
    wider = GUESS.replace("b = [1.2, 1.1]", "b = [1.5, 1.1]")
    guess.write_text(wider)
    again = polyarm.plan(guess, r=0.06, delta=0.05)
    assert plan["constraints"][0]["pulls"] == pytest.approx(again["forecasts"][0]["proved"], rel=0.02)
    assert plan["constraints"][0]["reward_gained"] == pytest.approx(again["value"] - plan["value"])


def test_a_floor_is_relaxed_downwards(guess: Path) -> None:
    guess.write_text(GUESS + 'senses = ["<=", ">="]\n')
    text = guess.read_text().replace("b = [1.2, 1.1]", "b = [1.2, 0.5]")
    guess.write_text(text)
    tight, loose = polyarm.plan(guess, r=0.06)["constraints"], polyarm.plan(guess, r=0.06, relax=0.4)["constraints"]
    assert tight[1]["sense"] == ">="
    assert loose[1]["reward_gained"] >= tight[1]["reward_gained"] >= 0.0


def test_known_rows_and_no_rows_can_be_planned(guess: Path) -> None:
    unknown = polyarm.plan(guess, r=0.06, delta=0.05)["forecasts"][0]
    guess.write_text(GUESS + "known = [true, true]\n")
    known = polyarm.plan(guess, r=0.06, delta=0.05)["forecasts"][0]
    assert known["proved"] < unknown["proved"]
    assert known["T"] <= known["certified_T"] <= 1.03 * known["T"]
    guess.write_text("mu = [0.5, 0.6, 0.9]\nreward_std = 0.5\ndelta = 0.1\nr = 0.1\n")
    free = polyarm.plan(guess, r=0.1)
    assert free["constraints"] == []
    assert free["forecasts"][0]["proved"] > 0.0


def test_simulated_runs_end_near_the_forecast(guess: Path) -> None:
    """Where the guess is right, the runs' median is the forecast within a factor of two."""
    plan = polyarm.plan(guess, r=0.12, delta=0.1, seeds=10)
    runs = plan["simulated"]
    assert runs["seeds"] == 10
    assert runs["q25_stop"] <= runs["median_stop"] <= runs["q75_stop"]
    assert 0.5 < runs["median_stop"] / plan["forecasts"][0]["proved"] < 2.0
    assert runs["correct_rate"] >= 0.8


def test_progress_is_told_to_the_end(guess: Path) -> None:
    seen: list[tuple[int, int]] = []
    polyarm.plan(guess, r=0.12, delta=0.1, seeds=2, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] == seen[-1][1]


def test_json_is_strict_and_alone_on_standard_output(capsys: pytest.CaptureFixture[str], guess: Path) -> None:
    code, out, err = run(capsys, guess, "--r", 0.06, "--delta", 0.1, "--json", "--plot", guess.with_suffix(".png"))
    assert code == 0, err
    plan = json.loads(out, parse_constant=refuse_constant)
    assert set(plan) == {
        "instance",
        "r",
        "delta",
        "value",
        "optimal_policy",
        "allocation",
        "answer",
        "forecasts",
        "simulated",
        "constraints",
    }
    assert "guess.png" in err


def test_the_report_and_the_picture(capsys: pytest.CaptureFixture[str], guess: Path) -> None:
    picture = guess.with_suffix(".svg")
    code, out, err = run(capsys, guess, "--r", 0.06, "--r", 0.12, "--delta", 0.1, "--seeds", 3, "--plot", picture)
    assert code == 0, err
    for word in ("forecasts, not bounds", "simulated", "3 seeds", "price", "latency", "pulls saved"):
        assert word in " ".join(out.split())
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-instance"], "no-such-instance"),
        (["missing.toml"], "missing.toml"),
        (["setup2-easy", "--r", "0"], "r = 0"),
        (["setup2-easy", "--r", "-1"], "r"),
        (["setup2-easy", "--r", "0.1", "--r", "-1"], "r"),
        (["setup2-easy", "--delta", "2"], "delta"),
        (["setup2-easy", "--delta", "0.1", "--delta", "2"], "delta"),
        (["setup2-easy", "--seeds", "-3"], "seeds"),
        (["setup2-easy", "--relax", "-0.1"], "relax"),
        (["setup2-easy", "--relax", "nan"], "relax"),
        (["setup2-easy", "--plot", "plan.txt"], "plan.txt"),
    ],
)
def test_a_mistake_is_one_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        pytest.fail("the plan was begun")

    monkeypatch.setattr("polyarm.experiments.plan.joint_time", fail)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_a_problem_without_a_guess_is_told_apart(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(
        'arms = ["a", "b"]\nreward_std = 1.0\ndelta = 0.1\nr = 0.1\n'
        '[[constraints]]\nname = "c"\nbound = 1.0\nstd = 1.0\n'
    )
    code, _, err = run(capsys, path)
    assert code == 2
    assert "without a guess" in err


def test_a_guess_that_nothing_satisfies_is_refused(capsys: pytest.CaptureFixture[str], guess: Path) -> None:
    guess.write_text(GUESS.replace("b = [1.2, 1.1]", "b = [0.1, 1.1]"))
    code, _, err = run(capsys, guess)
    assert code == 2
    assert "no mix satisfies" in err
