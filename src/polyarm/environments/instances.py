"""Instances: problems whose truth is known, shipped with the package or read from a TOML file."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.environments.ranges import SCALED_MEANS, name_range, split_ranges
from polyarm.environments.synthetic import SyntheticWorld, build_world
from polyarm.errors import InvalidInput, unknown_name
from polyarm.families.family import make_family
from polyarm.problem import Constraint, Optimum, Problem, find_optimum
from polyarm.tolerances import TRUTH

_KEYS = {
    "source",
    "arms",
    "mu",
    "A",
    "b",
    "constraints",
    "senses",
    "known",
    "family",
    "reward_std",
    "reward_range",
    "cost_std",
    "assumed_reward_std",
    "delta",
    "r",
    "noise",
    "optimal_policy",
}


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem together with its truth.

    Args:
        name: Its name, for tables.
        source: Where its numbers are from; may be empty.
        problem: The problem as an explorer is told it.
        mu: The true mean reward of each arm (K,).
        A: The true mean costs (d, K), one row per constraint, known ones too.
    """

    name: str
    source: str
    problem: Problem
    mu: FloatArray
    A: FloatArray

    def __post_init__(self) -> None:
        _require_means_in_domain(self.problem, self.mu)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Instance):
            return NotImplemented
        return (
            (self.name, self.source, self.problem) == (other.name, other.source, other.problem)
            and np.array_equal(self.mu, other.mu)
            and np.array_equal(self.A, other.A)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.problem))

    @property
    def true_rows(self) -> FloatArray:
        """G with every row `<=` and its bound folded in: a policy is feasible when G policy <= 0."""
        return self.world().true_rows

    def world(self) -> SyntheticWorld:
        """Return the simulator of this instance."""
        return build_world(self.problem, self.mu, self.A)

    def optimum(self) -> Optimum | None:
        """Return the best feasible policy and its value, or None when no policy is feasible."""
        return find_optimum(self.mu, self.true_rows)

    def excess(self, policy: FloatArray) -> float:
        """Return the largest violation of a true constraint by a policy (negative: the least slack).

        Args:
            policy: The mix: the share of each arm (K,).
        """
        return float(np.max(self.true_rows @ policy, initial=-np.inf))

    def with_problem(self, **changes: Any) -> "Instance":
        """Return the same truth under a changed problem.

        Args:
            changes: Fields of `Problem` and their new values: another `delta` or `r`, say.
        """
        return Instance(self.name, self.source, self.problem.replace(**changes), self.mu, self.A)


@dataclass(frozen=True)
class Guess:
    """A guess of a truth: every mean and cost lies between those of two instances that agree on everything else.

    `has_ranges` says whether any was stated as a range.
    """

    low: Instance
    high: Instance
    has_ranges: bool

    def middle(self) -> Instance:
        """Return the instance in the middle of all ranges."""
        return self._between(np.full_like(self.low.mu, 0.5), np.full_like(self.low.A, 0.5))

    def draw(self, count: int, seed: int) -> list[Instance]:
        """Return instances whose means and costs are uniform on their ranges, independently of each other."""
        rng = np.random.default_rng(seed)
        return [self._between(rng.random(self.low.mu.shape), rng.random(self.low.A.shape)) for _ in range(count)]

    def _between(self, mu_shares: FloatArray, cost_shares: FloatArray) -> Instance:
        low, high = self.low, self.high
        # Round-off must not pass the high end: it may be the largest mean that a family has.
        mu = np.minimum(low.mu + mu_shares * (high.mu - low.mu), high.mu)
        return Instance(low.name, low.source, low.problem, mu, low.A + cost_shares * (high.A - low.A))


def _require_means_in_domain(problem: Problem, mu: FloatArray) -> None:
    family = make_family(problem.family, problem.n_arms, problem.reward_std, problem.reward_range)
    outside = (mu < family.low) | (mu > family.high)
    wanted = f"from {family.low:g} to {family.high:g}"
    if family.low > -np.inf and family.high == np.inf:
        outside |= mu == family.low  # no distribution of this family has that mean
        wanted = f"above {family.low:g}"
    if outside.any():
        raise InvalidInput(f"mu: expected means {wanted} for family {problem.family!r}, got {mu[outside].tolist()}")


def instance_names() -> list[str]:
    """Return the names of the shipped instances."""
    return sorted(_shipped())


def load_instance(name_or_path: str | Path) -> Instance:
    """Load a shipped instance, or one from a TOML file of the same schema.

    Args:
        name_or_path: A name from `instance_names`, or a file; `file.toml:table` if it has several tables.
    """
    return _read_instance(*_find_table(name_or_path))


def load_guess(name_or_path: str | Path) -> Guess:
    """Load a guess: an instance (see `load_instance`) whose entries of mu and A may be ranges, [low, high]."""
    name, table = _find_table(name_or_path)
    try:
        low, high = split_ranges(table)
    except InvalidInput as error:
        raise InvalidInput(f"instance {name!r}: {error}") from None
    return Guess(_read_instance(name, low), _read_instance(name, high), name_range(table) is not None)


def _find_table(name_or_path: str | Path) -> tuple[str, dict[str, Any]]:
    """Return the name and the table of an instance that is shipped or in a file."""
    text = str(name_or_path)
    if text in _shipped():
        return text, _shipped()[text]
    path, _, table = text.partition(".toml:")
    if table:
        path += ".toml"
    if not path.endswith(".toml"):
        raise unknown_name("instance", text, instance_names())
    tables = _read_tables(Path(path))
    if not table:
        if len(tables) != 1:
            raise InvalidInput(
                f"{path} holds {len(tables)} instances ({', '.join(sorted(tables))}); "
                f"choose one, as in {path}:{min(tables, default='name')}"
            )
        table = next(iter(tables))
    if table not in tables:
        raise unknown_name(f"instance in {path}", table, tables)
    return table, tables[table]


@cache
def _shipped() -> dict[str, dict[str, Any]]:
    text = resources.files("polyarm.environments").joinpath("data/instances.toml").read_text("utf-8")
    return tomllib.loads(text)


def _read_tables(path: Path) -> dict[str, dict[str, Any]]:
    """Return the instances of a file by name; a file without tables is one instance named after it."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"no such instance file: {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from None
    if any(key in {"A", "b", "mu"} or SCALED_MEANS.fullmatch(key) for key in content):
        return {path.stem: content}
    for name, value in content.items():
        if not isinstance(value, dict):
            raise InvalidInput(f"{path}: expected a table [{name}] with mu, A and b, got {value!r}")
    return content


def _read_instance(name: str, table: dict[str, Any]) -> Instance:
    try:
        return _build_instance(name, table)
    except InvalidInput as error:
        raise InvalidInput(f"instance {name!r}: {error}") from None


def _build_instance(name: str, table: dict[str, Any]) -> Instance:
    for key in table:
        if key not in _KEYS and not SCALED_MEANS.fullmatch(key):
            raise unknown_name("key", key, _KEYS)
    open_entry = name_range(table)
    if open_entry is not None:
        raise InvalidInput(f"{open_entry}: ranges are for `polyarm plan`; a truth is one number")
    mu = _read_means(table)
    K = mu.size
    if "A" in table and "b" not in table:
        raise InvalidInput("b: required with A, but not given: the bound of each row")
    bounds = _read_numbers("b", table.get("b", []), (None,))
    d = bounds.size
    A = _read_numbers("A", table.get("A", []), (d, K)) if d else np.zeros((0, K))
    names = _read_list("constraints", table.get("constraints", _default_names(d)), d)
    senses = _read_list("senses", table.get("senses", ["<="] * d), d)
    known = _read_list("known", table.get("known", [False] * d), d)
    if not all(isinstance(flag, bool) for flag in known):
        raise InvalidInput(f"known: expected true or false for each constraint, got {known!r}")
    stds = _read_cost_stds(table.get("cost_std"), d)
    problem = Problem(
        arms=table.get("arms", K),
        constraints=tuple(
            Constraint(
                name=names[i],
                sense=senses[i],
                bound=bounds[i],
                row=tuple(A[i].tolist()) if known[i] else None,
                std=stds[i],
            )
            for i in range(d)
        ),
        **{key: table[key] for key in ("reward_std", "reward_range", "delta", "r", "noise", "family") if key in table},
    )
    if problem.n_arms != K:
        raise InvalidInput(f"arms: expected one name per entry of mu ({K}), got {problem.n_arms}")
    return Instance(name, str(table.get("source", "")), problem, mu, A)


def _default_names(d: int) -> list[str]:
    return [f"constraint {i + 1}" for i in range(d)]


def _read_means(table: dict[str, Any]) -> FloatArray:
    given = [key for key in table if key == "mu" or SCALED_MEANS.fullmatch(key)]
    if not given:
        raise InvalidInput("mu: required, but not given: the true mean reward of each arm")
    if len(given) > 1:
        raise InvalidInput(f"mu: expected one way of giving the means, got {', '.join(given)}")
    scaled = SCALED_MEANS.fullmatch(given[0])
    times = int(scaled[1]) if scaled else 1
    if times == 0:
        raise InvalidInput(f"{given[0]}: expected a positive number of observations")
    return _read_numbers(given[0], table[given[0]], (None,)) / times


def _read_numbers(field: str, value: Any, shape: tuple[int | None, ...]) -> FloatArray:
    """Return a finite array of the expected shape (None: any length)."""
    wanted = " x ".join("n" if n is None else str(n) for n in shape)
    try:
        numbers = np.array(value, dtype=np.float64)
    except (ValueError, TypeError):
        lengths = [len(row) if isinstance(row, list) else row for row in value] if isinstance(value, list) else value
        raise InvalidInput(f"{field}: expected {wanted} numbers, got {lengths!r} (lists by their length)") from None
    if numbers.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, numbers.shape, strict=True)):
        raise InvalidInput(f"{field}: expected {wanted} numbers, got shape {numbers.shape}")
    if not np.all(np.isfinite(numbers)):
        raise InvalidInput(f"{field}: expected finite numbers, got {numbers.tolist()}")
    return numbers


def _read_cost_stds(value: Any, d: int) -> list[Any]:
    """Return the noise of each row: one number serves all rows, a list has one entry per row."""
    return _read_list("cost_std", value, d) if isinstance(value, list) else [value] * d


def _read_list(field: str, value: Any, length: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != length:
        raise InvalidInput(f"{field}: expected a list of {length}, one per constraint, got {value!r}")
    return value


def is_feasible(instance: Instance, policy: FloatArray) -> bool:
    """Judge a policy against the true constraints."""
    return instance.excess(policy) <= TRUTH


def is_correct(instance: Instance, policy: FloatArray) -> bool:
    """Judge whether a policy is truly feasible and within r of the true optimum."""
    best = instance.optimum()
    return (
        best is not None
        and is_feasible(instance, policy)
        and float(instance.mu @ policy) >= best.value - instance.problem.r - TRUTH
    )
