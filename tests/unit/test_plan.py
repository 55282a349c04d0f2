"""`plan` and `polyarm plan`."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyarm
from polyarm.cli.main import main
from polyarm.planner.forecast import stylised_pulls

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
    steps = [done for done, _ in seen]
    assert all(before < after for before, after in pairwise(steps))
    assert seen[-1][0] == seen[-1][1] > 3


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
        "ranges",
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
        (["setup2-easy", "--draws", "-1"], "draws"),
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


def write_ranges(path: Path, mu: str = "[0.62, 0.74, 0.86]", costs: str = "[0.2, 0.8, 2.4]", more: str = "") -> Path:
    text = GUESS.replace("[0.62, 0.74, 0.86]", mu).replace("[0.2, 0.8, 2.4]", costs)
    path.write_text(text + more)
    return path


def test_ranges_without_width_give_the_point_forecast_for_every_draw(guess: Path) -> None:
    point = polyarm.plan(guess, r=[0.06, 0.12], delta=[0.05, 0.2])
    assert point["ranges"] is None
    write_ranges(guess, mu="[0.62, [0.74, 0.74], 0.86]", costs="[0.2, 0.8, [2.4, 2.4]]")
    plan = polyarm.plan(guess, r=[0.06, 0.12], delta=[0.05, 0.2], draws=3)
    ranges = plan.pop("ranges")
    del point["ranges"]
    assert plan == point
    assert (ranges["draws"], ranges["infeasible"]) == (3, 0)
    assert [row["r"] for row in ranges["forecasts"]] == [0.06, 0.12]
    for row, expected in zip(ranges["forecasts"], point["forecasts"][::2], strict=True):
        assert row["delta"] == expected["delta"] == 0.05
        for name in ("T", "stylised", "proved"):  # of three draws, the quantiles are the three
            assert row[name] == [expected[name]] * 3


def test_draws_are_reproducible_and_spread(guess: Path) -> None:
    write_ranges(guess, mu="[0.62, [0.70, 0.78], 0.86]", costs="[0.2, 0.8, [1.8, 3.0]]")
    seen: list[tuple[int, int]] = []
    first = polyarm.plan(guess, r=0.12, delta=0.1, draws=4, progress=lambda done, total: seen.append((done, total)))
    assert first == polyarm.plan(guess, r=0.12, delta=0.1, draws=4)
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1] == (len(seen), len(seen)), "the draws are part of the progress"
    row = first["ranges"]["forecasts"][0]
    for name in ("T", "stylised", "proved"):
        assert 0.0 < row[name][0] < row[name][1] < row[name][2]
    assert row["without_forecast"] == 0
    assert polyarm.plan(guess, r=0.12, delta=0.1, draws=0)["ranges"] is None


def test_draws_lie_in_their_ranges(guess: Path) -> None:
    from polyarm.environments.instances import load_guess

    write_ranges(guess, mu="[0.62, [0.70, 0.78], 0.86]", costs="[0.2, 0.8, [1.8, 3.0]]")
    expected = load_guess(guess)
    assert expected.middle().mu.tolist() == pytest.approx([0.62, 0.74, 0.86])
    assert expected.middle().A[0].tolist() == pytest.approx([0.2, 0.8, 2.4])
    drawn = expected.draw(200, seed=1)
    means, costs = [truth.mu[1] for truth in drawn], [truth.A[0, 2] for truth in drawn]
    assert 0.70 <= min(means) < 0.705
    assert 0.775 < max(means) <= 0.78
    assert 1.8 <= min(costs) < 1.9
    assert 2.9 < max(costs) <= 3.0
    assert abs(np.corrcoef(means, costs)[0, 1]) < 0.25, "independent"
    assert {(*truth.mu[[0, 2]], *truth.A[0, :2]) for truth in drawn} == {(0.62, 0.86, 0.2, 0.8)}


def test_infeasible_and_endless_draws_are_counted(guess: Path) -> None:
    """Bound 0.1 on the price: the cheapest arm costs up to 0.3, so two draws in three have no feasible mix."""
    write_ranges(guess, costs="[[0.0, 0.3], 0.8, 2.4]")
    guess.write_text(guess.read_text().replace("b = [1.2, 1.1]", "b = [0.1, 1.1]"))
    plan = polyarm.plan(guess, r=0.06, draws=12)
    assert plan["value"] is None
    assert plan["optimal_policy"] is None
    assert 0 < plan["ranges"]["infeasible"] < 12
    assert plan["ranges"]["forecasts"][0]["proved"][0] > 0.0
    assert plan["constraints"][0]["reward_gained"] is None
    # A price of exactly the bound, whatever is drawn: feasible, but never to be certified.
    write_ranges(guess, mu="[0.62, [0.7, 0.8], 0.86]", costs="[0.1, 0.1, 0.1]")
    guess.write_text(guess.read_text().replace("b = [1.2, 1.1]", "b = [0.1, 1.1]"))
    row = polyarm.plan(guess, r=0.06, draws=3)["ranges"]["forecasts"][0]
    assert row["without_forecast"] == 3
    assert row["proved"] == row["T"] == [None, None, None]


def test_a_plan_of_an_infeasible_middle_is_reported(capsys: pytest.CaptureFixture[str], guess: Path) -> None:
    write_ranges(guess, costs="[[0.0, 0.3], 0.8, 2.4]")
    guess.write_text(guess.read_text().replace("b = [1.2, 1.1]", "b = [0.1, 1.1]"))
    picture = guess.with_suffix(".svg")
    code, out, err = run(capsys, guess, "--r", 0.06, "--draws", 12, "--plot", picture)
    assert code == 0, err
    for word in ("no mix satisfies the constraints in the middle", "12 draws", "10 / 50 / 90 %"):
        assert word in " ".join(out.split())
    assert "truths from the ranges" in picture.read_text()
    code, out, err = run(capsys, guess, "--r", 0.06, "--draws", 12, "--seeds", 2)
    assert (code, out) == (2, "")
    assert "nothing to simulate" in err
    write_ranges(guess, costs="[[0.2, 0.3], 0.8, 2.4]")
    guess.write_text(guess.read_text().replace("b = [1.2, 1.1]", "b = [0.1, 1.1]"))
    code, out, err = run(capsys, guess, "--draws", 12)
    assert (code, out) == (2, "")
    assert "nor in 12 draws" in err


def test_ranges_are_reported_and_drawn(capsys: pytest.CaptureFixture[str], guess: Path) -> None:
    write_ranges(guess, mu="[0.62, [0.70, 0.78], 0.86]")
    picture = guess.with_suffix(".svg")
    code, out, err = run(capsys, guess, "--r", 0.06, "--r", 0.12, "--delta", 0.1, "--draws", 3, "--plot", picture)
    assert code == 0, err
    for word in ("if the middle of the ranges is right", "over truths drawn from the ranges (delta = 0.1)", "3 draws"):
        assert word in " ".join(out.split())
    assert "truths from the ranges" in picture.read_text()


@pytest.mark.parametrize(
    ("mu", "costs", "more", "said"),
    [
        ("[0.62, [0.78, 0.70], 0.86]", "[0.2, 0.8, 2.4]", "", "mu, entry 2: expected a range [low, high] with low <="),
        ("[0.62, [0.7, 0.75, 0.8], 0.86]", "[0.2, 0.8, 2.4]", "", "mu, entry 2: expected a number or a range"),
        ("[0.62, [0.7], 0.86]", "[0.2, 0.8, 2.4]", "", "mu, entry 2"),
        ("[0.62, [0.7, nan], 0.86]", "[0.2, 0.8, 2.4]", "", "mu, entry 2"),
        ("[0.62, 0.74, 0.86]", "[[-inf, 0.2], 0.8, 2.4]", "", "A, row 1, entry 1"),
        ("[0.62, 0.74, 0.86]", '[0.2, 0.8, ["1.8", "3.0"]]', "", "A, row 1, entry 3"),
        ("[0.62, 0.74, 0.86]", "[0.2, 0.8, [false, true]]", "", "A, row 1, entry 3"),
        ("[0.62, 0.74, 0.86]", "[0.2, 0.8, [1.8, 3.0]]", "known = [true, false]", "row 1: expected numbers, as its"),
        ("[[0.62, 0.7], 0.74]", "[0.2, 0.8, 2.4]", "", "A: expected 2 x 2 numbers"),
    ],
)
def test_a_mistaken_range_is_one_message(
    capsys: pytest.CaptureFixture[str], guess: Path, mu: str, costs: str, more: str, said: str
) -> None:
    code, out, err = run(capsys, write_ranges(guess, mu, costs, more))
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err


def test_both_ends_of_a_range_must_be_possible_means(capsys: pytest.CaptureFixture[str], guess: Path) -> None:
    write_ranges(guess, mu="[0.62, 0.74, [0.86, 1.2]]", more='family = "bernoulli"')
    guess.write_text(guess.read_text().replace("reward_std = 0.25", ""))
    code, out, err = run(capsys, guess)
    assert (code, out) == (2, "")
    assert "expected means from 0 to 1 for family 'bernoulli', got [1.2]" in err


@pytest.mark.parametrize("command", ["run", "simulate", "bound"])
def test_ranges_are_for_plans_only(capsys: pytest.CaptureFixture[str], guess: Path, command: str) -> None:
    write_ranges(guess, costs="[0.2, 0.8, [1.8, 3.0]]")
    with pytest.raises(SystemExit) as done:
        main([command, str(guess)])
    out, err = capsys.readouterr()
    assert (done.value.code, out) == (2, "")
    assert "A, row 1, entry 3 is a range, [1.8, 3.0]: ranges are for `polyarm plan`" in err
    assert len(err.strip().splitlines()) == 1


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


PROBLEM = polyarm.Problem(
    arms=("small", "medium", "large"),
    reward_std=0.25,
    delta=0.05,
    r=0.06,
    constraints=(
        polyarm.Constraint(name="price", bound=1.2, std=0.4),
        polyarm.Constraint(name="latency", bound=1.1, std=0.5),
    ),
)
MU, COSTS = [0.62, 0.74, 0.86], {"latency": [0.4, 0.9, 1.6], "price": [0.2, 0.8, 2.4]}


def test_a_problem_is_planned_for_guessed_means(guess: Path) -> None:
    expected = {**polyarm.plan(guess, r=0.12, delta=0.1), "instance": "your guess"}
    assert polyarm.plan(PROBLEM, r=0.12, delta=0.1, mu=MU, costs=COSTS) == expected
    in_order = [COSTS["price"], COSTS["latency"]]
    assert polyarm.plan(PROBLEM, r=0.12, delta=0.1, mu=np.array(MU), costs=in_order) == expected
    assert polyarm.plan(PROBLEM.with_guess(MU, COSTS).replace(r=0.01), r=0.12, delta=0.1) == expected
    known = PROBLEM.with_known_rows(np.array(in_order))
    guess.write_text(GUESS + "known = [true, true]\n")
    expected = {**polyarm.plan(guess, r=0.12, delta=0.1), "instance": "your guess"}
    assert polyarm.plan(known, r=0.12, delta=0.1, mu=MU) == expected


def test_a_problem_with_a_guess_is_the_same_problem_to_everyone_else() -> None:
    guessed = PROBLEM.with_guess(MU, COSTS)
    assert PROBLEM.guess is None
    assert guessed.model_dump() == PROBLEM.model_dump()
    assert guessed.replace(delta=0.1).guess == guessed.guess
    assert guessed.replace(constraints=[]).guess is None


def test_a_template_may_bring_the_guess() -> None:
    problem = polyarm.templates.routing(
        ["small", "medium", "large"],
        budgets={"price": 1.2},
        std=0.4,
        at_most={"slow": 0.5},
        least_share=0.05,
        reward_std=0.25,
        delta=0.1,
        r=0.1,
        guess={"reward": MU, "price": COSTS["price"], "slow": [0.1, 0.2, 0.6]},
    )
    plan = polyarm.plan(problem, r=0.1, delta=0.1)
    assert plan["value"] == pytest.approx(float(np.array(plan["optimal_policy"]) @ MU))
    assert min(plan["optimal_policy"]) == pytest.approx(0.05)
    assert plan["forecasts"][0]["proved"] > 0.0
    other = polyarm.plan(problem, r=0.1, delta=0.1, mu=[0.62, 0.74, 0.75], costs=[COSTS["price"], [0.1, 0.2, 0.6]])
    assert other["value"] < plan["value"], "a guess given to plan is the one that counts"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, r"give mu=\[...\], .* and costs=\{'price': \[...\], 'latency': \[...\]\}"),
        ({"costs": COSTS}, "mu: required beside costs"),
        ({"mu": MU}, r"costs: expected .*\['price', 'latency'\], got 0 rows"),
        ({"mu": MU, "costs": {"price": MU}}, r"got \['price'\]"),
        ({"mu": MU, "costs": [MU, MU, MU]}, "got 3 rows"),
        ({"mu": MU[:2], "costs": COSTS}, "mu: expected 3 finite numbers"),
        ({"mu": MU, "costs": {**COSTS, "price": [0.1, math.nan, 0.2]}}, "costs of 'price': expected 3 finite numbers"),
    ],
)
def test_a_problem_without_a_full_guess_is_told_what_to_give(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(polyarm.InvalidInput, match=said):
        polyarm.plan(PROBLEM, **arguments)


def test_means_are_for_problems_only() -> None:
    with pytest.raises(polyarm.InvalidInput, match="belong to a Problem"):
        polyarm.plan("setup2-easy", mu=[1.0] * 5)
    with pytest.raises(polyarm.InvalidInput, match="a Problem, got dict"):
        polyarm.plan({"mu": MU})  # type: ignore[arg-type]
