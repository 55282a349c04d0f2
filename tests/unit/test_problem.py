"""`Problem` and `Constraint`: what is accepted, and in which words the rest is refused."""

import math
from typing import Any

import numpy as np
import pytest

from polyarm import Constraint, InvalidInput, Problem
from polyarm.model import build_model
from polyarm.problem import find_optimum

NAN, INF = math.nan, math.inf


def constraint(**changes: Any) -> Constraint:
    return Constraint(**{"name": "price", "bound": 1.0, "std": 1.0, **changes})


def problem(**changes: Any) -> Problem:
    good = {"arms": ["a", "b", "c"], "constraints": [constraint()], "reward_std": 1.0, "delta": 0.1, "r": 0.1}
    return Problem(**{**good, **changes})


def refusal(make: Any, **changes: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        make(**changes)
    return str(caught.value)


# Each case: field, value, what the message says was expected.
BAD_PROBLEMS = [
    ("arms", [], "at least 2"),
    ("arms", ["only"], "at least 2"),
    ("arms", 1, "at least 2"),
    ("arms", "abc", "valid tuple"),
    ("arms", None, "valid tuple"),
    ("arms", True, "valid tuple"),
    ("arms", 2.5, "valid tuple"),
    ("constraints", None, "valid tuple"),
    ("constraints", "price", "valid tuple"),
    ("constraints", [1], "Constraint"),
    ("reward_std", 0, "greater than 0"),
    ("reward_std", -1.5, "greater than 0"),
    ("reward_std", NAN, "finite"),
    ("reward_std", INF, "finite"),
    ("reward_std", "loud", "valid number"),
    ("reward_std", [1.0, 2.0], "one value per arm (3)"),
    ("reward_std", [], "one value per arm (3)"),
    ("delta", 0, "greater than 0"),
    ("delta", 1, "less than 1"),
    ("delta", -0.25, "greater than 0"),
    ("delta", 1.75, "less than 1"),
    ("delta", NAN, "finite"),
    ("delta", INF, "finite"),
    ("delta", "often", "valid number"),
    ("delta", None, "valid number"),
    ("r", -0.125, "greater than or equal to 0"),
    ("r", NAN, "finite"),
    ("r", INF, "finite"),
    ("r", "some", "valid number"),
    ("family", "poison", "known: "),
    ("family", 3, "valid string"),
    ("noise", "pink", "'correlated' or 'independent'"),
]


@pytest.mark.parametrize(("field", "value", "expected"), BAD_PROBLEMS)
def test_a_bad_field_is_named_with_its_value_and_what_was_expected(field: str, value: Any, expected: str) -> None:
    message = refusal(problem, **{field: value})
    assert message.startswith(field)
    assert expected in message
    shown = value[0] if isinstance(value, list) and value and expected == "Constraint" else value
    assert str(shown).strip("[]") in message


BAD_CONSTRAINTS = [
    ("name", "", "at least 1 character"),
    ("name", 5, "valid string"),
    ("bound", NAN, "finite"),
    ("bound", -INF, "finite"),
    ("bound", "high", "valid number"),
    ("bound", None, "valid number"),
    ("sense", "<", "'<=' or '>='"),
    ("sense", "==", "'<=' or '>='"),
    ("row", "abc", "valid tuple"),
    ("row", 5, "valid tuple"),
    ("std", 0, "greater than 0"),
    ("std", -2.5, "greater than 0"),
    ("std", NAN, "finite"),
    ("std", INF, "finite"),
    ("std", "loud", "valid number"),
]


@pytest.mark.parametrize(("field", "value", "expected"), BAD_CONSTRAINTS)
def test_a_bad_constraint_field_is_named_with_its_value(field: str, value: Any, expected: str) -> None:
    message = refusal(constraint, **{field: value})
    assert message.startswith(field)
    assert expected in message
    assert repr(value) in message


@pytest.mark.parametrize(("field", "make"), [("reward_std", problem), ("row", constraint), ("std", constraint)])
@pytest.mark.parametrize("bad", [NAN, INF, "x"])
def test_a_bad_entry_of_a_list_is_named_by_its_place(field: str, make: Any, bad: Any) -> None:
    message = refusal(make, **{field: [1.0, bad, 2.0]})
    assert any(line.startswith(field) and ".1: " in line and repr(bad) in line for line in message.splitlines())


@pytest.mark.parametrize(("field", "make"), [("reward_std", problem), ("std", constraint)])
@pytest.mark.parametrize("bad", [0.0, -0.5])
def test_no_arm_may_be_without_noise(field: str, make: Any, bad: float) -> None:
    message = refusal(make, **{field: [1.0, bad, 2.0]})
    assert any(".1: Input should be greater than 0" in line and repr(bad) in line for line in message.splitlines())


@pytest.mark.parametrize("field", ["row", "std"])
def test_a_constraint_has_one_entry_per_arm(field: str) -> None:
    message = refusal(problem, constraints=[constraint(**{field: [1.0, 2.0]})])
    assert message == f"constraint 'price': {field}: expected one value per arm (3), got 2: [1.0, 2.0]"


def test_a_bad_constraint_inside_a_problem_is_named_by_its_place() -> None:
    fine = {"name": "price", "bound": 1.0, "std": 1.0}
    message = refusal(problem, constraints=[fine, {"name": "latency", "bound": NAN, "std": 1.0}])
    assert message.startswith("constraints.1")
    assert "bound" in message
    assert "finite" in message


def test_a_measured_constraint_needs_its_noise() -> None:
    message = refusal(constraint, std=None)
    assert "'price'" in message
    assert "`std`" in message
    assert "`row`" in message


def test_arm_names_differ() -> None:
    assert refusal(problem, arms=["x", "y", "x"]) == "arms: names must differ, but 'x' appears more than once"


def test_constraint_names_differ() -> None:
    message = refusal(problem, constraints=[constraint(), constraint(bound=2.0)])
    assert message == "constraints: names must differ, but 'price' appears more than once"


def test_an_unknown_field_is_refused_by_name() -> None:
    assert refusal(problem, detla=0.1) == "detla: unknown field"
    assert refusal(constraint, bounds=0.1) == "bounds: unknown field"


def test_every_missing_field_is_listed() -> None:
    given: dict[str, Any] = {"arms": 3}
    lines = refusal(Problem, **given).splitlines()
    assert lines == [f"{field}: required, but not given" for field in ("reward_std", "delta", "r")]


def test_a_near_miss_is_suggested() -> None:
    assert "Did you mean 'gaussian'?" in refusal(problem, family="gausian")


@pytest.mark.parametrize(
    "rows",
    [
        [{"name": "low", "row": [1, 1, 1], "bound": 0.5}],
        [
            {"name": "most", "row": [1, 0, 0], "bound": 0.5},
            {"name": "least", "row": [1, 0, 0], "bound": 0.7, "sense": ">="},
        ],
        [
            {"name": "one", "row": [1, 0, 0], "bound": 0.3},
            {"name": "two", "row": [0, 1, 0], "bound": 0.3},
            {"name": "three", "row": [0, 0, 1], "bound": 0.3},
        ],
    ],
)
def test_known_rows_that_contradict_each_other_are_all_named(rows: list[dict[str, Any]]) -> None:
    message = refusal(problem, constraints=rows)
    assert "contradict" in message
    for row in rows:
        assert f"{row['name']} {row.get('sense', '<=')} {row['bound']}" in message


def test_known_rows_that_leave_a_single_mix_are_accepted() -> None:
    tight = problem(constraints=[{"name": c, "row": np.eye(3)[i], "bound": 1 / 3} for i, c in enumerate("xyz")])
    assert tight.n_constraints == 3


def test_unknown_rows_cannot_contradict_known_ones() -> None:
    mixed = problem(constraints=[constraint(bound=-100.0), {"name": "known", "row": [1, 0, 0], "bound": 0.5}])
    assert mixed.unknown == (0,)


def test_arms_may_be_a_number() -> None:
    assert problem(arms=4).arms == ("arm 1", "arm 2", "arm 3", "arm 4")


def test_a_problem_cannot_be_changed_behind_its_back() -> None:
    with pytest.raises(ValueError, match="frozen"):
        problem().delta = 2.0


def test_replace_validates() -> None:
    assert problem().replace(delta=0.2).delta == 0.2
    assert refusal(problem().replace, delta=2.0).startswith("delta")


def test_a_problem_survives_its_own_dump() -> None:
    stated = problem(
        constraints=[constraint(std=[1.0, 2.0, 3.0]), {"name": "k", "row": [1, 0, 0], "bound": 0.5, "sense": ">="}],
        reward_std=[0.1, 0.2, 0.3],
        noise="independent",
    )
    assert Problem(**stated.model_dump(mode="json")) == stated


@pytest.mark.parametrize("arm", [-1, 3, 1.0, None, True, np.int64(99)])
def test_an_arm_that_does_not_exist_is_refused(arm: Any) -> None:
    message = refusal(lambda: problem().arm_index(arm))
    assert "from 0 to 2" in message
    assert repr(arm) in message


def test_an_unknown_arm_name_lists_the_arms() -> None:
    assert "unknown arm 'd'; known: a, b, c" in refusal(lambda: problem().arm_index("d"))


def test_arms_are_found_by_index_and_by_name() -> None:
    arms: list[Any] = [0, "b", np.int64(2)]
    assert [problem().arm_index(arm) for arm in arms] == [0, 1, 2]


@pytest.mark.parametrize("policy", [[0.5, 0.5], [0.5, 0.6, 0.0], [1.2, -0.2, 0.0], [NAN, 1.0, 0.0], [[1.0, 0.0, 0.0]]])
def test_a_policy_off_the_simplex_is_refused(policy: Any) -> None:
    assert refusal(lambda: problem().check_policy(policy)).startswith("policy: expected")


def test_the_model_folds_bounds_signs_and_units_into_its_rows() -> None:
    model = build_model(
        problem(
            constraints=[
                {"name": "k", "row": [1.0, 0.0, 3.0], "bound": 2.0, "sense": ">=", "std": 0.5},
                constraint(bound=3.0, std=[1.0, 2.0, 4.0]),
            ]
        )
    )
    assert model.known.tolist() == [True, False]
    assert model.known_rows[0].tolist() == [2.0, 4.0, -2.0]
    assert model.factors.tolist() == [-2.0, 0.25]
    assert model.bounds.tolist() == [-4.0, 0.75]
    assert model.cost_std[1].tolist() == [0.25, 0.5, 1.0]


def test_the_model_uses_the_assumed_reward_noise_when_there_is_one() -> None:
    declared = problem(reward_std=[1.0, 2.0, 3.0])
    assert build_model(declared).family.scale.tolist() == [1.0, 2.0, 3.0]
    assert build_model(declared, assumed_reward_std=0.5).family.scale.tolist() == [0.5, 0.5, 0.5]


def test_the_optimum_of_an_empty_set_is_none() -> None:
    assert find_optimum(np.zeros(2), np.array([[1.0, 1.0]])) is None


def test_the_optimum_does_not_depend_on_the_units_of_a_row() -> None:
    means, rows = np.array([3.0, 2.0, 4.0]), np.array([[-1.0, 0.0, 1.0]])
    best, same = find_optimum(means, rows), find_optimum(means, 1e9 * rows)
    assert best is not None
    assert same is not None
    assert best.policy.tolist() == pytest.approx([0.5, 0.0, 0.5])
    assert same.policy.tolist() == best.policy.tolist()
    assert best.value == pytest.approx(3.5)
