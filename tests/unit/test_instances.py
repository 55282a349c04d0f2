"""Instances: the shipped numbers, and TOML files of the same schema."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm import Instance, InvalidInput, instance_names, load_instance
from polyarm.environments.instances import is_correct, is_feasible

# The reference numbers, typed in a second time: a slip in the shipped file shows up here.
SETUP1 = {"A": [[1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0]], "b": [0.5, 0.5], "delta": 0.01}
SETUP2 = {"A": [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]], "b": [0.5, 0.5], "delta": 0.1}
REFERENCE: dict[str, dict[str, Any]] = {
    "setup1-hard": {
        "mu": [1.5, 1.0, 0.5, 0.4, 0.3, 0.2, 0.1],
        **SETUP1,
        "policy": [0.5, 0, 0.5, 0, 0, 0, 0],
        "value": 1.0,
    },
    "setup1-easy": {
        "mu": [1.5, 1.0, 1.3, 0.4, 0.3, 0.2, 0.1],
        **SETUP1,
        "policy": [0.5, 0, 0.5, 0, 0, 0, 0],
        "value": 1.4,
    },
    "setup2-hard": {
        "mu": [1.0, 0.5, 0.4, 0.4, 0.5],
        **SETUP2,
        "policy": [0.5, 0, 0, 0, 0.5],
        "value": 0.75,
    },
    "setup2-easy": {
        "mu": [1.0, 0.5, 0.4, 0.95, 0.8],
        **SETUP2,
        "policy": [0.5, 0, 0, 0.5, 0],
        "value": 0.975,
    },
    "imdb": {
        "mu": [n / 600 for n in (2203, 1783, 1764, 2112, 1907, 1214, 1673, 1780, 1424, 1519, 1529, 1522)],
        "A": [
            [1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0],
            [-1, 0, 0, -1, -1, 0, 0, -1, 0, 0, -1, 0],
            [0, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ],
        "b": [0.3, -0.3, -0.3],
        "delta": 0.1,
        "policy": [0.3, 0.3, 0, 0, 0.4, 0, 0, 0, 0, 0, 0, 0],
        "value": (0.3 * 2203 + 0.3 * 1783 + 0.4 * 1907) / 600,
    },
    "figure1": {
        "mu": [1.0, 0.8, 0.6],
        "A": [[0.0, -0.3, -0.2], [-0.2, 0.1, 0.1]],
        "b": [0.0, 0.0],
        "delta": 0.01,
        "policy": [1, 0, 0],
        "value": 1.0,
    },
    "figure2": {
        "mu": [3.0, 2.0, 4.0],
        "A": [[-3, -2, -1]],
        "b": [-2.0],
        "delta": 0.01,
        "policy": [0.5, 0, 0.5],
        "value": 3.5,
    },
}
IMDB_STDS = (
    1.2595666195,
    1.3065382860,
    1.3099337938,
    1.3238281112,
    1.2997484881,
    0.9314333949,
    1.2162768755,
    1.3121579502,
    1.1428615152,
    1.1950079339,
    1.1902485910,
    1.1536349849,
)


def test_every_reference_instance_ships_and_so_does_the_router() -> None:
    assert {*REFERENCE, "router"} <= set(instance_names())
    assert instance_names() == sorted(instance_names())


@pytest.mark.parametrize("name", REFERENCE)
def test_a_shipped_instance_has_the_reference_numbers(name: str) -> None:
    expected, instance = REFERENCE[name], load_instance(name)
    problem = instance.problem
    assert instance.name == name
    assert instance.source.startswith("paper")
    assert instance.mu.tolist() == pytest.approx(expected["mu"], rel=1e-15)
    assert instance.A.tolist() == expected["A"]
    assert [c.bound for c in problem.constraints] == expected["b"]
    assert {c.sense for c in problem.constraints} == {"<="}
    assert problem.unknown == tuple(range(len(expected["b"])))
    assert {c.std for c in problem.constraints} == {1.0}
    assert problem.reward_std == (IMDB_STDS if name == "imdb" else 1.0)
    assert problem.delta == expected["delta"]
    assert problem.r == 0.01
    assert (problem.family, problem.noise) == ("gaussian", "independent")


@pytest.mark.parametrize("name", REFERENCE)
def test_a_shipped_instance_has_the_reference_optimum(name: str) -> None:
    expected, instance = REFERENCE[name], load_instance(name)
    best = instance.optimum()
    assert best is not None
    assert best.policy.tolist() == pytest.approx(expected["policy"], abs=1e-12)
    assert best.value == pytest.approx(expected["value"], abs=1e-12)
    assert is_correct(instance, best.policy)


def test_imdb_arms_are_films() -> None:
    arms = load_instance("imdb").problem.arms
    assert (arms[0], arms[4], arms[8], len(arms)) == ("The Net", "Das Boot", "The Matrix", 12)


def test_the_router_reads_like_a_real_problem() -> None:
    router = load_instance("router")
    assert [c.name for c in router.problem.constraints] == ["price", "latency"]
    assert router.problem.noise == "correlated"
    best = router.optimum()
    assert best is not None
    assert np.count_nonzero(best.policy) == 3, "a mix of three models, with both budgets tight"
    assert (router.true_rows @ best.policy).tolist() == pytest.approx([0.0, 0.0], abs=1e-12)


# A file of the same schema, changed one key at a time.
GOOD: dict[str, str] = {
    "mu": "[1.0, 2.0, 3.0]",
    "A": "[[1, 0, 2]]",
    "b": "[0.5]",
    "reward_std": "1.0",
    "cost_std": "1.0",
    "delta": "0.1",
    "r": "0.1",
}


def write(folder: Path, changes: dict[str, str | None], name: str = "mine.toml") -> Path:
    keys = {**GOOD, **changes}
    path = folder / name
    path.write_text("\n".join(f"{key} = {value}" for key, value in keys.items() if value is not None))
    return path


def load(folder: Path, **changes: str | None) -> Instance:
    return load_instance(write(folder, changes))


def refusal(name_or_path: str | Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        load_instance(name_or_path)
    return str(caught.value)


def test_a_flat_file_is_one_instance_named_after_it(tmp_path: Path) -> None:
    instance = load(tmp_path)
    assert instance.name == "mine"
    assert instance.mu.tolist() == [1.0, 2.0, 3.0]
    assert instance.A.tolist() == [[1.0, 0.0, 2.0]]
    assert instance.problem.arms == ("arm 1", "arm 2", "arm 3")
    assert instance.problem.constraints[0].name == "constraint 1"


def test_a_path_may_be_text(tmp_path: Path) -> None:
    assert load_instance(str(write(tmp_path, {}))).name == "mine"


def test_everything_optional_is_read(tmp_path: Path) -> None:
    instance = load(
        tmp_path,
        source='"a shop"',
        arms='["x", "y", "z"]',
        A="[[1, 0, 2], [0, 1, 0]]",
        b="[0.5, 0.25]",
        constraints='["price", "stock"]',
        senses='["<=", ">="]',
        known="[false, true]",
        reward_std="[0.1, 0.2, 0.3]",
        cost_std="[[1.0, 2.0, 3.0], 0.5]",
        noise='"independent"',
        family='"gaussian"',
    )
    problem, (price, stock) = instance.problem, instance.problem.constraints
    assert instance.source == "a shop"
    assert problem.arms == ("x", "y", "z")
    assert problem.reward_std == (0.1, 0.2, 0.3)
    assert problem.noise == "independent"
    assert (price.name, price.sense, price.known, price.std) == ("price", "<=", False, (1.0, 2.0, 3.0))
    assert (stock.name, stock.sense, stock.row, stock.bound) == ("stock", ">=", (0.0, 1.0, 0.0), 0.25)
    assert problem.unknown == (0,)


def test_rows_of_either_sense_are_folded_into_true_rows(tmp_path: Path) -> None:
    instance = load(tmp_path, A="[[1, 0, 2], [0, 1, 0]]", b="[0.5, 0.25]", senses='["<=", ">="]')
    assert instance.true_rows.tolist() == [[0.5, -0.5, 1.5], [0.25, -0.75, 0.25]]
    assert is_feasible(instance, np.array([0.5, 0.5, 0.0]))
    assert not is_feasible(instance, np.array([0.75, 0.25, 0.0])), "the first row is exceeded by 0.25"
    assert not is_feasible(instance, np.array([0.25, 0.125, 0.625])), "the second row is missed"
    assert instance.excess(np.array([0.75, 0.25, 0.0])) == pytest.approx(0.25)


def test_correct_means_feasible_and_within_r() -> None:
    instance = load_instance("figure2")  # the best mix is half arm 1, half arm 3: 3.5
    assert is_correct(instance, np.array([0.505, 0.0, 0.495])), "0.005 below the best, r is 0.01"
    assert not is_correct(instance, np.array([0.52, 0.0, 0.48])), "0.02 below the best"
    assert not is_correct(instance, np.array([0.499, 0.0, 0.501])), "better, but not allowed"


def test_means_may_be_given_as_sums(tmp_path: Path) -> None:
    assert load(tmp_path, mu=None, mu_times_8="[1, 2, 3]").mu.tolist() == [0.125, 0.25, 0.375]


def test_no_constraints_at_all(tmp_path: Path) -> None:
    instance = load(tmp_path, A=None, b=None, cost_std=None)
    best = instance.optimum()
    assert instance.problem.n_constraints == 0
    assert best is not None
    assert best.policy.tolist() == [0.0, 0.0, 1.0]
    assert is_correct(instance, best.policy)


def test_a_file_with_one_table_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text("[shop]\n" + write(tmp_path, {}).read_text())
    assert load_instance(path).name == "shop"
    assert load_instance(f"{path}:shop").name == "shop"


def test_a_file_with_several_tables_is_addressed_by_table(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    first, second = write(tmp_path, {}).read_text(), write(tmp_path, {"r": "0.2"}).read_text()
    path.write_text(f"[east]\n{first}\n[west]\n{second}")
    assert load_instance(f"{path}:west").problem.r == 0.2
    message = refusal(path)
    assert "holds 2 instances (east, west)" in message
    assert f"{path}:east" in message
    assert "'north'; known: east, west" in refusal(f"{path}:north")


def test_an_infeasible_truth_loads_and_has_no_optimum(tmp_path: Path) -> None:
    assert load(tmp_path, A="[[1, 1, 1]]").optimum() is None


@pytest.mark.parametrize(
    ("key", "value", "fragments"),
    [
        ("mu", "[nan, 2.0, 3.0]", ["mu: expected finite numbers", "nan"]),
        ("mu", "[1.0, inf, 3.0]", ["mu: expected finite numbers", "inf"]),
        ("mu", "3", ["mu: expected n numbers", "shape ()"]),
        ("mu", '"high"', ["mu: expected n numbers"]),
        ("mu", "[[1, 2], [3]]", ["mu: expected n numbers", "[2, 1]"]),
        ("mu", None, ["mu: required"]),
        ("A", "[[1, 0]]", ["A: expected 1 x 3 numbers", "(1, 2)"]),
        ("A", "[[1, 0, 0], [1]]", ["A: expected 1 x 3 numbers", "[3, 1]"]),
        ("A", "[[1, 0, 0], [1, 0, 0]]", ["A: expected 1 x 3 numbers", "(2, 3)"]),
        ("A", "[1, 0, 0]", ["A: expected 1 x 3 numbers", "(3,)"]),
        ("A", "[[1, nan, 0]]", ["A: expected finite numbers", "nan"]),
        ("A", "[[1, -inf, 0]]", ["A: expected finite numbers", "-inf"]),
        ("A", None, ["A: expected 1 x 3 numbers"]),
        ("b", "0.5", ["b: expected n numbers", "shape ()"]),
        ("b", "[nan]", ["b: expected finite numbers", "nan"]),
        ("b", "[0.5, 0.5]", ["A: expected 2 x 3 numbers", "(1, 3)"]),
        ("reward_std", "0", ["reward_std", "greater than 0", "got 0"]),
        ("reward_std", "-1.0", ["reward_std", "greater than 0", "got -1.0"]),
        ("reward_std", "nan", ["reward_std", "finite", "nan"]),
        ("reward_std", "[1.0, 2.0]", ["reward_std: expected one value per arm (3)", "[1.0, 2.0]"]),
        ("reward_std", None, ["reward_std: required"]),
        ("cost_std", "0", ["std", "greater than 0", "got 0"]),
        ("cost_std", "[-1.0]", ["std", "greater than 0", "got -1.0"]),
        ("cost_std", "inf", ["std", "finite", "inf"]),
        ("cost_std", "[1.0, 2.0]", ["cost_std: expected a list of 1", "[1.0, 2.0]"]),
        ("cost_std", "[[1.0, 2.0]]", ["std: expected one value per arm (3)", "[1.0, 2.0]"]),
        ("cost_std", None, ["'constraint 1'", "`std`"]),
        ("delta", "0.0", ["delta", "greater than 0", "got 0.0"]),
        ("delta", "1.0", ["delta", "less than 1", "got 1.0"]),
        ("delta", "nan", ["delta", "finite", "nan"]),
        ("delta", '"often"', ["delta", "valid number", "often"]),
        ("r", "-0.5", ["r", "greater than or equal to 0", "got -0.5"]),
        ("r", "inf", ["r", "finite", "inf"]),
        ("arms", '["x", "y"]', ["arms: expected one name per entry of mu (3), got 2"]),
        ("arms", '["x", "y", "x"]', ["arms: names must differ", "'x'"]),
        ("arms", "[1, 2, 3]", ["arms", "valid string", "got 1"]),
        ("constraints", '["p", "q"]', ["constraints: expected a list of 1", "['p', 'q']"]),
        ("constraints", "[7]", ["name", "valid string", "got 7"]),
        ("senses", '">="', ["senses: expected a list of 1", "'>='"]),
        ("senses", '["<"]', ["sense", "'<=' or '>='", "got '<'"]),
        ("known", "true", ["known: expected a list of 1", "True"]),
        ("known", "[true, false]", ["known: expected a list of 1", "[True, False]"]),
        ("family", '"poison"', ["unknown family 'poison'", "gaussian"]),
        ("noise", '"pink"', ["noise", "'correlated' or 'independent'", "pink"]),
        ("colour", '"red"', ["unknown key 'colour'", "reward_std"]),
        ("mu_times_x", "[1]", ["unknown key 'mu_times_x'"]),
    ],
)
def test_a_bad_key_is_named_with_its_value_and_what_was_expected(
    tmp_path: Path, key: str, value: str | None, fragments: list[str]
) -> None:
    message = refusal(write(tmp_path, {key: value}))
    assert message.startswith("instance 'mine': ")
    for fragment in fragments:
        assert fragment in message


def test_a_misspelt_key_is_corrected(tmp_path: Path) -> None:
    assert "Did you mean 'reward_std'?" in refusal(write(tmp_path, {"reward_sdt": "1.0"}))


def test_known_rows_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    changes: dict[str, str | None] = {"A": "[[1, 1, 1]]", "known": "[true]", "constraints": '["price"]'}
    message = refusal(write(tmp_path, changes))
    assert "contradict" in message
    assert "price <= 0.5" in message


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (b"mu = [1", "cannot read"),
        (b"\xff\xfe", "cannot read"),
        (b"", "holds 0 instances"),
        (b"x = 1", "expected a table [x]"),
    ],
)
def test_a_broken_file_is_refused_by_name(tmp_path: Path, content: bytes, fragment: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    message = refusal(path)
    assert fragment in message
    assert str(path) in message


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.toml") == f"no such instance file: {tmp_path / 'none.toml'}"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    assert "cannot read" in refusal(tmp_path / "folder.toml")


def test_an_unknown_instance_lists_the_known_ones() -> None:
    message = refusal("setup1hard")
    assert "unknown instance 'setup1hard'" in message
    assert ", ".join(instance_names()) in message
    assert "Did you mean 'setup1-hard'?" in message


# What the library gets wrong today.


def test_rows_without_bounds_are_refused(tmp_path: Path) -> None:
    assert "b" in refusal(write(tmp_path, {"b": None}))


def test_means_times_zero_are_refused(tmp_path: Path) -> None:
    assert "mu_times_0" in refusal(write(tmp_path, {"mu": None, "mu_times_0": "[1, 2, 3]"}))


def test_a_date_is_not_a_mean(tmp_path: Path) -> None:
    assert "mu" in refusal(write(tmp_path, {"mu": "1979-05-27"}))


def test_known_takes_only_true_and_false(tmp_path: Path) -> None:
    assert "known" in refusal(write(tmp_path, {"known": '["no"]'}))


def test_means_given_twice_are_refused(tmp_path: Path) -> None:
    assert "mu" in refusal(write(tmp_path, {"mu_times_10": "[1, 2, 3]"}))


def test_a_flat_file_may_give_sums_and_no_constraints(tmp_path: Path) -> None:
    absent = dict.fromkeys(("mu", "A", "b", "cost_std"))
    assert load(tmp_path, mu_times_10="[1, 2, 3]", **absent).mu.tolist() == [0.1, 0.2, 0.3]
