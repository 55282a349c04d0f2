"""Problems read from TOML files."""

from pathlib import Path

import pytest

from polyarm import Constraint, InvalidInput, Problem, load_instance, load_problem

STATED = """
arms = ["small", "large"]
reward_std = [0.2, 0.3]
delta = 0.05
r = 0.1
family = "gaussian"
noise = "independent"

[[constraints]]
name = "price"
bound = 1
std = 0.3

[[constraints]]
name = "quality"
sense = ">="
bound = 0.5
row = [0.4, 0.8]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "problem.toml"
    path.write_text(text)
    return path


def test_a_file_states_what_the_constructor_states(tmp_path: Path) -> None:
    assert load_problem(write(tmp_path, STATED)) == Problem(
        arms=("small", "large"),
        reward_std=(0.2, 0.3),
        delta=0.05,
        r=0.1,
        family="gaussian",
        noise="independent",
        constraints=(
            Constraint(name="price", bound=1.0, std=0.3),
            Constraint(name="quality", sense=">=", bound=0.5, row=(0.4, 0.8)),
        ),
    )


def test_constraints_are_optional_and_arms_may_be_a_number(tmp_path: Path) -> None:
    problem = load_problem(str(write(tmp_path, "arms = 3\nreward_std = 1\ndelta = 0.1\nr = 0")))
    assert problem.arms == ("arm 1", "arm 2", "arm 3")
    assert problem.constraints == ()


def test_instances_give_their_problem(tmp_path: Path) -> None:
    assert load_problem("router") == load_instance("router").problem
    flat = "mu = [1, 0.5]\nA = [[1, 0]]\nb = [0.5]\nreward_std = 1\ncost_std = 1\ndelta = 0.1\nr = 0.1\n"
    path = write(tmp_path, flat)
    assert load_problem(path) == load_instance(path).problem
    tables = write(tmp_path, f"[one]\n{flat}\n[two]\n{flat}")
    assert load_problem(f"{tables}:two") == load_instance(f"{tables}:two").problem
    with pytest.raises(InvalidInput, match="holds 2 instances"):
        load_problem(tables)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("delta = 0.05", "detla = 0.05", "unknown key 'detla'; known: arms, .*delta.* Did you mean 'delta'"),
        ("std = 0.3", "stdd = 0.3", "constraint 'price': 'stdd'; known: bound, name, row, sense, std"),
        ("delta = 0.05", "", "delta: required, but not given"),
        ("delta = 0.05", "delta = 1.5", "delta: .*less than 1; got 1.5"),
        ("delta = 0.05", 'delta = "low"', "delta: .*number.*; got 'low'"),
        ("bound = 1\n", "", "bound: required, but not given"),
        ("reward_std = [0.2, 0.3]", "reward_std = [0.2]", "reward_std: expected one value per arm"),
        ("row = [0.4, 0.8]", "row = [0.4]", "'quality': row: expected one value per arm"),
        ('sense = ">="', 'sense = "=="', "sense"),
        ('"gaussian"', '"gauss"', "unknown family 'gauss'"),
        ("[[constraints]]\n", "[[constraint]]\n", "unknown key 'constraint'; known: .*constraints"),
    ],
)
def test_a_wrong_field_is_named_with_the_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in STATED
    with pytest.raises(InvalidInput, match=f"problem.toml: (.|\n)*{message}"):
        load_problem(write(tmp_path, STATED.replace(old, new, 1)))


@pytest.mark.parametrize("constraints", ["constraints = 3", 'constraints = ["price"]', "[constraints]\nbound = 1"])
def test_constraints_must_be_tables(tmp_path: Path, constraints: str) -> None:
    with pytest.raises(InvalidInput, match=r"expected \[\[constraints\]\] tables"):
        load_problem(write(tmp_path, f"arms = 2\n{constraints}"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no such problem file: .*missing\.toml"):
        load_problem(tmp_path / "missing.toml")
    with pytest.raises(InvalidInput, match=r"cannot read .*problem\.toml"):
        load_problem(write(tmp_path, "arms = ["))
    with pytest.raises(InvalidInput, match="arms: required"):
        load_problem(write(tmp_path, ""))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InvalidInput, match=r"cannot read .*folder\.toml"):
        load_problem(tmp_path / "folder.toml")
    with pytest.raises(InvalidInput, match=r"unknown problem 'rooter'; .*'router'\? .*\.toml"):
        load_problem("rooter")
