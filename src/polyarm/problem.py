"""What the user states: arms, constraints, noise, confidence. Validated here and nowhere else."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from polyarm._html import html_table
from polyarm._types import FloatArray
from polyarm.errors import Checked, InvalidInput, unknown_name
from polyarm.families.family import FAMILY_CODES
from polyarm.polytope.lp import EMPTY, make_basis, make_lp_work, solve_lp

Positive = Annotated[float, Field(gt=0)]
Probability = Annotated[float, Field(gt=0, lt=1)]
NonNegative = Annotated[float, Field(ge=0)]
PerArm = Positive | tuple[Positive, ...]


class Constraint(Checked):
    """One budget: the mix's expected cost compared with a bound. Its costs are known, or measured with every pull.

    Args:
        name: Its name, which costs are told by.
        bound: The bound on the mix's expected cost.
        sense: `<=` if the cost must not exceed the bound, `>=` if it must reach it.
        row: The cost of each arm if it is known; by default it is unknown, and measured.
        std: The noise of a measured cost: its sub-Gaussian scale, one number or one per arm; required without `row`.
    """

    name: str = Field(min_length=1)
    bound: float
    sense: Literal["<=", ">="] = "<="
    row: tuple[float, ...] | None = None
    std: PerArm | None = None

    @model_validator(mode="after")
    def _needs_row_or_noise(self) -> Self:
        if self.row is None and self.std is None:
            raise ValueError(
                f"constraint {self.name!r}: give `std`, the noise of its measured cost, or `row`, its known costs"
            )
        return self

    @property
    def known(self) -> bool:
        """Whether the costs are given rather than measured."""
        return self.row is not None

    @property
    def sign(self) -> float:
        """+1 for `<=`, -1 for `>=`."""
        return 1.0 if self.sense == "<=" else -1.0

    def __str__(self) -> str:
        return f"{self.name} {self.sense} {self.bound:g}"


class Means(NamedTuple):
    """What is expected of a problem: the mean reward of each arm, and the mean costs of each measured constraint."""

    mu: tuple[float, ...]
    costs: dict[str, tuple[float, ...]]


class Problem(Checked):
    """A mix of arms to choose, constraints to respect, and how sure the answer must be.

    Args:
        arms: The names of the arms, at least 2, or how many there are.
        constraints: The constraints that the mix must satisfy; by default none.
        family: The distribution of rewards: `gaussian`, `bounded`, `bernoulli`, `poisson` or `exponential`.
        reward_std: The noise of a `gaussian` reward: its sub-Gaussian scale, one number or one per arm. Required for
            that family, refused for others.
        reward_range: The least and the largest reward of family `bounded`. Required for that family, refused for
            others.
        delta: The error probability, between 0 and 1: how likely a wrong answer may be.
        r: How far the answer's expected reward may fall short of the best, in units of the reward, 0 or more.
        noise: Whether the reward and costs of one pull may be `correlated` (the safe default) or are `independent`;
            proved thresholds depend on it.
    """

    arms: tuple[str, ...]
    constraints: tuple[Constraint, ...] = ()
    family: str = "gaussian"
    reward_std: PerArm | None = Field(default=None, validate_default=True)
    reward_range: tuple[float, float] | None = Field(default=None, validate_default=True)
    delta: Probability
    r: NonNegative
    noise: Literal["correlated", "independent"] = "correlated"
    _guess: Means | None = PrivateAttr(default=None)

    @field_validator("arms", mode="before")
    @classmethod
    def _number_arms(cls, arms: Any) -> Any:
        if isinstance(arms, int) and not isinstance(arms, bool):
            return tuple(f"arm {a + 1}" for a in range(arms))
        return arms

    @field_validator("family")
    @classmethod
    def _know_family(cls, family: str) -> str:
        if family not in FAMILY_CODES:
            raise unknown_name("family", family, FAMILY_CODES)
        return family

    @field_validator("reward_std")
    @classmethod
    def _belongs_to_gaussian(cls, reward_std: Any, info: ValidationInfo) -> Any:
        _require_parameter(info, "gaussian", reward_std)
        return reward_std

    @field_validator("reward_range")
    @classmethod
    def _belongs_to_bounded(cls, reward_range: Any, info: ValidationInfo) -> Any:
        _require_parameter(info, "bounded", reward_range)
        if reward_range is not None and not reward_range[0] < reward_range[1]:
            raise ValueError(f"expected the least reward, then a larger one, got {list(reward_range)!r}")
        return reward_range

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if len(self.arms) < 2:
            raise ValueError(f"arms: expected at least 2, got {len(self.arms)}: {self.arms!r}")
        _require_unique("arms", self.arms)
        _require_unique("constraints", tuple(c.name for c in self.constraints))
        self._require_length("reward_std", self.reward_std)
        for constraint in self.constraints:
            self._require_length(f"constraint {constraint.name!r}: std", constraint.std)
            self._require_length(f"constraint {constraint.name!r}: row", constraint.row)
        self._require_consistent_known_rows()
        return self

    def _require_length(self, field: str, values: float | tuple[float, ...] | None) -> None:
        if isinstance(values, tuple) and len(values) != self.n_arms:
            raise ValueError(
                f"{field}: expected one value per arm ({self.n_arms}), got {len(values)}: {list(values)!r}"
            )

    def _require_consistent_known_rows(self) -> None:
        known = [c for c in self.constraints if c.row is not None]
        if known and find_optimum(np.zeros(self.n_arms), np.array([known_row(c) for c in known])) is None:
            rows = "; ".join(str(c) for c in known)
            raise ValueError(f"constraints: the known rows contradict each other, no mix satisfies all of: {rows}")

    @property
    def n_arms(self) -> int:
        """Number of arms, K."""
        return len(self.arms)

    @property
    def n_constraints(self) -> int:
        """Number of constraints, d, known and unknown."""
        return len(self.constraints)

    @property
    def unknown(self) -> tuple[int, ...]:
        """Indices of the constraints whose costs are measured."""
        return tuple(i for i, c in enumerate(self.constraints) if not c.known)

    def arm_index(self, arm: int | str) -> int:
        """Return the index of an arm.

        Args:
            arm: Its name or its index.
        """
        if isinstance(arm, str):
            if arm not in self.arms:
                raise unknown_name("arm", arm, self.arms)
            return self.arms.index(arm)
        if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < self.n_arms:
            raise InvalidInput(f"arm: expected a name or an index from 0 to {self.n_arms - 1}, got {arm!r}")
        return int(arm)

    def check_policy(self, policy: Any) -> FloatArray:
        """Return a mix as an array; raises if it is not on the simplex. Round-off is mended.

        Args:
            policy: One share per arm, not negative, with sum 1.
        """
        try:
            mix = np.array(policy, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(f"policy: expected {self.n_arms} numbers, got {policy!r}") from None
        if mix.shape != (self.n_arms,):
            raise InvalidInput(f"policy: expected {self.n_arms} shares, one per arm, got shape {mix.shape}")
        if not np.all(np.isfinite(mix)) or mix.min() < -1e-9 or abs(mix.sum() - 1.0) > 1e-6:
            raise InvalidInput(f"policy: expected non-negative shares that sum to 1, got {mix.tolist()}")
        mix = np.maximum(mix, 0.0)
        return np.asarray(mix / mix.sum())

    def check_numbers(self, field: str, values: Any) -> FloatArray:
        """Return one finite number per arm as an array, or raise.

        Args:
            field: What to call them in the error.
            values: The numbers.
        """
        try:
            numbers = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            numbers = np.array(np.nan)
        if numbers.shape != (self.n_arms,) or not np.all(np.isfinite(numbers)):
            raise InvalidInput(f"{field}: expected {self.n_arms} finite numbers, one per arm, got {values!r}")
        return numbers

    def check_counts(self, field: str, values: Any) -> FloatArray:
        """Return how often each arm was pulled as an array, or raise.

        Args:
            field: What to call the counts in the error.
            values: One whole number per arm, at least 1.
        """
        counts = self.check_numbers(field, values)
        if np.any(counts < 1.0) or np.any(counts != np.floor(counts)):
            raise InvalidInput(f"{field}: expected whole numbers, at least 1 of every arm, got {counts.tolist()}")
        return counts

    @property
    def guess(self) -> Means | None:
        """What `with_guess` said; no part of the problem: it is not saved with it, and no explorer sees it."""
        return self._guess

    def with_guess(
        self, mu: Sequence[float] | FloatArray, costs: Mapping[str, Any] | Sequence[Any] | FloatArray = ()
    ) -> "Problem":
        """Return the same problem with what you expect of its truth, for `polyarm.plan`.

        Args:
            mu: The mean reward of each arm.
            costs: The mean costs of each measured constraint, one number per arm: by name, or in their order.
        """
        names = [self.constraints[i].name for i in self.unknown]
        rows = dict(costs) if isinstance(costs, Mapping) else dict(zip(names, costs, strict=False))
        if set(rows) != set(names) or len(costs) != len(names):
            got = sorted(rows) if isinstance(costs, Mapping) else f"{len(costs)} rows"
            raise InvalidInput(f"costs: expected the mean costs of each measured constraint, {names}, got {got}")
        made = self.model_copy()
        made._guess = Means(
            tuple(self.check_numbers("mu", mu).tolist()),
            {name: tuple(self.check_numbers(f"costs of {name!r}", rows[name]).tolist()) for name in names},
        )
        return made

    def with_known_rows(self, rows: FloatArray) -> "Problem":
        """Return the same problem with every row given: what an explorer that is told A works on.

        Args:
            rows: The mean costs A (d, K), one row per constraint.
        """
        return self.replace(
            constraints=[
                {**c.model_dump(), "row": tuple(float(x) for x in row)}
                for c, row in zip(self.constraints, rows, strict=True)
            ]
        )

    def replace(self, **changes: Any) -> "Problem":
        """Return a validated copy with some fields changed; a guess stays unless arms or constraints change.

        Args:
            changes: Fields and their new values.
        """
        made = Problem(**{**self.model_dump(), **changes})
        if changes.keys().isdisjoint({"arms", "constraints"}):
            made._guess = self._guess
        return made

    def _repr_html_(self) -> str:
        rows = [
            (c.name, c.sense, f"{c.bound:g}", "known" if c.known else "measured", "" if c.std is None else c.std)
            for c in self.constraints
        ]
        noise = f", noise {self.reward_std}" if self.reward_std is not None else ""
        notes = [
            f"arms: {', '.join(self.arms)}",
            f"rewards: {self.family}{noise}; within r = {self.r:g} of the best mix, confidence {1 - self.delta:g}",
        ]
        title = f"Problem: {self.n_arms} arms, {self.n_constraints} constraints"
        return html_table(title, ("constraint", "sense", "bound", "costs", "noise"), rows, notes)


def _require_parameter(info: ValidationInfo, owner: str, value: Any) -> None:
    """Raise when a family lacks the parameter that belongs to it, or another family has it."""
    family = info.data.get("family")  # None: refused already
    if family == owner and value is None:
        raise ValueError("required, but not given")
    if family not in (owner, None) and value is not None:
        raise ValueError(f"belongs to family {owner!r}; leave it out for family {family!r}, got {value!r}")


def _require_unique(field: str, names: tuple[str, ...]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{field}: names must differ, but {', '.join(map(repr, twice))} appears more than once")


def known_row(constraint: Constraint) -> FloatArray:
    """G of a known row: costs minus bound, negated for `>=`."""
    return constraint.sign * (np.array(constraint.row) - constraint.bound)


class Optimum(NamedTuple):
    """The best feasible mix of a fully known instance."""

    policy: FloatArray
    value: float


def find_optimum(means: FloatArray, G: FloatArray) -> Optimum | None:
    """Maximise means.x over {simplex, G x <= 0}; None when the set is empty."""
    d, n = G.shape
    scale = np.abs(G).max(axis=1, initial=0.0)
    columns = np.vstack([np.ones(n), G / np.where(scale > 0.0, scale, 1.0)[:, None]])
    basis, work = make_basis(d), make_lp_work(n, d)
    status = solve_lp(np.ascontiguousarray(means), columns, basis, work)
    if status == EMPTY:
        return None
    policy = np.zeros(n)
    for i, variable in enumerate(basis):
        if variable < n:
            policy[variable] = max(work.inverse[i, 0], 0.0)
    return Optimum(policy, float(means @ policy))
