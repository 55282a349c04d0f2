"""What the user states: arms, constraints, how variances are known, confidence. Validated here and nowhere else."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, PrivateAttr, field_validator, model_validator

from polyarm._html import html_table
from polyarm._types import FloatArray
from polyarm.accounts import Account
from polyarm.errors import Checked, InvalidInput, unknown_name
from polyarm.families.family import FAMILY_CODES
from polyarm.polytope.lp import EMPTY, make_basis, make_lp_work, solve_lp

Positive = Annotated[float, Field(gt=0)]
Probability = Annotated[float, Field(gt=0, lt=1)]
NonNegative = Annotated[float, Field(ge=0)]
PerArm = Positive | tuple[Positive, ...]
Range = tuple[float, float]
RangePerArm = Range | tuple[Range, ...]


class Constraint(Checked):
    """One budget: the mix's expected cost compared with a bound. Its costs are known, or measured with every pull.

    The variance of a measured cost is known by `std`, by `range`, or estimated if neither is given (see
    docs/noise.md).

    Args:
        name: Its name, which costs are told by.
        bound: The bound on the mix's expected cost.
        sense: `<=` if the cost must not exceed the bound, `>=` if it must reach it.
        row: The cost of each arm if it is known; by default it is unknown, and measured.
        std: The sub-Gaussian scale of a measured cost, one number or one per arm; by default not declared.
        range: The least and the largest cost that can be measured, one pair or one per arm; by default not declared.
        cap: Whether costs above the range are cut to its end instead of refused; what is certified is then the mean of
            the costs after the cut.
    """

    name: str = Field(min_length=1)
    bound: float
    sense: Literal["<=", ">="] = "<="
    row: tuple[float, ...] | None = None
    std: PerArm | None = None
    range: RangePerArm | None = None
    cap: bool = False

    @model_validator(mode="after")
    def _declare_once(self) -> Self:
        where = f"constraint {self.name!r}"
        if self.row is not None and self.range is not None:
            raise ValueError(f"{where}: its costs are known (`row`), so `range` has no meaning; leave it out")
        check_declaration(where, self.std, self.range, self.cap)
        return self

    @property
    def account(self) -> Account:
        """How the variance of its measured costs is known."""
        return Account(self.std, self.range, self.cap)

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
        family: The distribution of rewards, `gaussian`, `bounded`, `bernoulli`, `poisson` or `exponential`: how the
            explorers of the paper model them. By default `gaussian` with a std, `bounded` with a range, else unknown.
        reward_std: The sub-Gaussian scale of the reward, one number or one per arm; by default not declared.
        reward_range: The least and the largest reward, one pair or one per arm; by default not declared, but 0 and 1
            for family `bernoulli`.
        reward_cap: Whether rewards above the range are cut to its end instead of refused.
        delta: The error probability, between 0 and 1: how likely a wrong answer may be.
        r: How far the answer's expected reward may fall short of the best, in units of the reward, 0 or more.
    """

    arms: tuple[str, ...]
    constraints: tuple[Constraint, ...] = ()
    family: str | None = None
    reward_std: PerArm | None = None
    reward_range: RangePerArm | None = None
    reward_cap: bool = False
    delta: Probability
    r: NonNegative
    _guess: Means | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _refuse_noise(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            refuse_noise(given)
        return given

    @field_validator("arms", mode="before")
    @classmethod
    def _number_arms(cls, arms: Any) -> Any:
        if isinstance(arms, int) and not isinstance(arms, bool):
            return tuple(f"arm {a + 1}" for a in range(arms))
        return arms

    @field_validator("family")
    @classmethod
    def _know_family(cls, family: str | None) -> str | None:
        if family is not None and family not in FAMILY_CODES:
            raise unknown_name("family", family, FAMILY_CODES)
        return family

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if len(self.arms) < 2:
            raise ValueError(f"arms: expected at least 2, got {len(self.arms)}: {self.arms!r}")
        _require_unique("arms", self.arms)
        _require_unique("constraints", tuple(c.name for c in self.constraints))
        self._fit_family()
        self._require_length("reward_std", self.reward_std)
        self._require_ranges("reward_range", self.reward_range)
        for constraint in self.constraints:
            self._require_length(f"constraint {constraint.name!r}: std", constraint.std)
            self._require_ranges(f"constraint {constraint.name!r}: range", constraint.range)
            self._require_length(f"constraint {constraint.name!r}: row", constraint.row)
        self._require_consistent_known_rows()
        return self

    def _fit_family(self) -> None:
        """Raise when the family contradicts what is declared of the reward."""
        check_declaration("reward", self.reward_std, self.reward_range, self.reward_cap, prefix="reward_")
        if self.reward_std is not None and self.family not in (None, "gaussian"):
            raise ValueError(
                f"reward_std: belongs to family 'gaussian'; leave it out for family {self.family!r}, got "
                f"{self.reward_std!r}"
            )
        if self.reward_range is not None and self.family not in (None, "bounded"):
            raise ValueError(
                f"reward_range: belongs to family 'bounded'; leave it out for family {self.family!r}, got "
                f"{self.reward_range!r}"
            )
        if self.family == "bounded" and self.reward_range is None:
            raise ValueError("reward_range: required for family 'bounded', but not given")

    def _require_ranges(self, field: str, ranges: RangePerArm | None) -> None:
        if ranges is not None and isinstance(ranges[0], tuple) and len(ranges) != self.n_arms:
            raise ValueError(f"{field}: expected one pair, or one per arm ({self.n_arms}), got {len(ranges)}")

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
    def reward_account(self) -> Account:
        """How the variance of the reward is known."""
        if self.family == "bernoulli":
            return Account(range=(0.0, 1.0), cap=False)
        return Account(self.reward_std, self.reward_range, self.reward_cap)

    @property
    def reward_family(self) -> str | None:
        """The distribution by which the explorers of the paper model rewards; None if nothing says."""
        if self.family is None:
            return {"declared": "gaussian", "range": "bounded"}.get(self.reward_account.kind)
        return self.family

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
                {**c.model_dump(), "row": tuple(float(x) for x in row), "range": None, "cap": False}
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
            (c.name, c.sense, f"{c.bound:g}", "known" if c.known else "measured", "" if c.known else str(c.account))
            for c in self.constraints
        ]
        family = f"{self.family}, " if self.family else ""
        notes = [
            f"arms: {', '.join(self.arms)}",
            f"rewards: {family}{self.reward_account}; within r = {self.r:g} of the best mix, confidence "
            f"{1 - self.delta:g}",
        ]
        title = f"Problem: {self.n_arms} arms, {self.n_constraints} constraints"
        return html_table(title, ("constraint", "sense", "bound", "costs", "variance"), rows, notes)


def refuse_noise(given: Mapping[str, Any]) -> None:
    """Raise for the field `noise`, which problems once had.

    Args:
        given: The fields that were given, by name.
    """
    if "noise" in given:
        raise InvalidInput(
            "noise: no longer a setting, as certificates hold for every correlation between outcomes; leave it out"
        )


#: The variance of a smaller scale would vanish beside others.
_LEAST_STD = 1e-60


def check_declaration(where: str, std: Any, ends: RangePerArm | None, cap: bool, prefix: str = "") -> None:
    """Raise for an outcome that is declared twice, an empty range, or a cap without a range.

    Args:
        where: What to call the outcome in the error.
        std: Its declared scale; None without.
        ends: Its declared range; None without.
        cap: Whether larger values are cut.
        prefix: What the names of the fields begin with in the error.
    """
    if std is not None and np.min(std) < _LEAST_STD:
        raise ValueError(
            f"{where}: {prefix}std: expected at least {_LEAST_STD:g}, got {np.min(std):g}, whose square cannot be told "
            "from zero; use larger units"
        )
    if ends is None:
        if cap:
            raise ValueError(f"{where}: `{prefix}cap` cuts values at the end of the range; give `{prefix}range`, too")
        return
    if std is not None:
        raise ValueError(
            f"{where}: give `{prefix}range` or `{prefix}std`, not both: each is a way to know the variance"
        )
    if not ends:
        raise ValueError(f"{where}: {prefix}range: expected a pair [least, largest], or one per arm, got none")
    for low, high in ends if isinstance(ends[0], tuple) else (ends,):
        if not low < high:
            raise ValueError(
                f"{where}: {prefix}range: expected the least value, then a larger one, got {[low, high]!r}"
            )


def _require_unique(field: str, names: tuple[str, ...]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{field}: names must differ, but {', '.join(map(repr, twice))} appears more than once")


def known_row(constraint: Constraint) -> FloatArray:
    """G of a known row: costs minus bound, negated for `>=`."""
    return constraint.sign * (np.array(constraint.row) - constraint.bound)


def reward_ends(problem: Problem) -> tuple[float, float] | None:
    """Return the least and the largest reward of any arm; None if no range is declared."""
    account = problem.reward_account
    if account.range is None:
        return None
    low, high = account.ends(problem.n_arms)
    return float(low.min()), float(high.max())


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
