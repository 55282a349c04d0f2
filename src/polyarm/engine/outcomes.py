"""Outcomes as users tell them, checked: finite numbers, costs by name or in order, and what is declared of them.

A proof about a range holds for outcomes in it. So an outcome outside is refused, whichever way it comes in, unless the
user has said that larger values are cut (`cap`); then they are counted.
"""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyarm.accounts import Account
from polyarm.environments.replay import cost_names
from polyarm.errors import InvalidInput, OutsideDeclaration, unknown_name
from polyarm.problem import Problem

#: Fourth powers of larger outcomes could overflow in sums, and squares exceed what stands for an unknown variance.
_LARGEST_OUTCOME = 1e60


def check_outcome(field: str, value: Any) -> float:
    """Return a reward or a cost as a number, or raise."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{field}: expected a number, got {reprlib.repr(value)}") from None
    if not abs(number) <= _LARGEST_OUTCOME:
        raise InvalidInput(f"{field}: expected a finite number of at most {_LARGEST_OUTCOME:g}, got {number}")
    return number


def check_costs(
    problem: Problem, costs: Sequence[float] | Mapping[str, float], partial: bool = False
) -> dict[str, float]:
    """Return the costs of one pull by name, in the order of the unknown constraints; `partial`: some may be missing."""
    names = list(cost_names(problem))
    if isinstance(costs, Mapping):
        given = dict(costs)
        if not set(given) <= set(names) or (len(given) != len(names) and not partial):
            expected = "some of the unknown constraints" if partial else "the unknown constraints"
            raise InvalidInput(f"costs: expected {expected} {names}, got {list(costs)}")
    else:
        ordered = list(np.atleast_1d(np.asarray(costs, dtype=object)))
        if len(ordered) != len(names):
            raise InvalidInput(
                f"costs: expected {len(names)} numbers, one per unknown constraint {names}, got {len(ordered)}"
            )
        given = dict(zip(names, ordered, strict=True))
    return {name: check_outcome(f"cost {name!r}", given[name]) for name in names if name in given}


class Fitted(NamedTuple):
    """An outcome after it was cut at its range; `capped` holds what was: 0 for the reward, else 1 + the row."""

    reward: float
    costs: dict[str, float]
    capped: tuple[int, ...]


class Outside(NamedTuple):
    """What of an outcome is outside its declaration: the reward, costs by name, and why, a sentence for each."""

    reward: bool
    costs: tuple[str, ...]
    why: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.reward or bool(self.costs)

    def document(self) -> dict[str, Any]:
        """Return the same as plain JSON types."""
        return {"outside_reward": self.reward, "outside_costs": list(self.costs), "why": list(self.why)}


class _Limit(NamedTuple):
    """What is declared of one outcome, by arm."""

    place: int
    field: str
    setting: str
    low: list[float]
    high: list[float]
    cap: bool


class Limits:
    """What a problem declares possible of each outcome: the one place that judges and cuts them.

    Args:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self._arms = problem.arms
        self._family = problem.family
        self._reward = _limit(problem, 0, "reward", "reward_cap=True", problem.reward_account)
        self._costs = {
            problem.constraints[i].name: _limit(
                problem, 1 + i, f"cost {problem.constraints[i].name!r}", "cap=True", problem.constraints[i].account
            )
            for i in problem.unknown
        }

    def find_outside(self, arm: int, reward: float | None, costs: Mapping[str, float]) -> Outside:
        """Return what of an outcome contradicts its declaration; nothing, as a rule.

        Args:
            arm: The index of the arm.
            reward: Its reward; None if it is not known yet.
            costs: Its costs by name, as far as they are known.
        """
        why, outside = [], []
        of_reward = None if reward is None else self._judge_reward(arm, reward)
        if of_reward is not None:
            why.append(of_reward)
        for name, cost in costs.items():
            of_cost = self._judge(self._costs[name], arm, cost)
            if of_cost is not None:
                outside.append(name)
                why.append(of_cost)
        return Outside(of_reward is not None, tuple(outside), tuple(why))

    def fit(self, arm: int, reward: float, costs: Mapping[str, float]) -> Fitted:
        """Return an outcome as it counts: cut where the declaration says so; raises `OutsideDeclaration`.

        Args:
            arm: The index of the arm.
            reward: Its reward.
            costs: Its costs by name.
        """
        outside = self.find_outside(arm, reward, costs)
        if outside:
            raise OutsideDeclaration("; ".join(outside.why))
        capped = []
        if reward > self._reward.high[arm]:
            reward = self._reward.high[arm]
            capped.append(0)
        cut = dict(costs)
        for name, cost in costs.items():
            limit = self._costs[name]
            if cost > limit.high[arm]:
                cut[name] = limit.high[arm]
                capped.append(limit.place)
        return Fitted(reward, cut, tuple(capped))

    def _judge_reward(self, arm: int, reward: float) -> str | None:
        possible = _POSSIBLE.get(self._family or "")
        if possible is not None and not possible[1](reward):
            return (
                f"reward: {reward:.12g} is no outcome of family {self._family!r}, which has {possible[0]}; tell the "
                "right value, or state another family"
            )
        return self._judge(self._reward, arm, reward)

    def _judge(self, limit: _Limit, arm: int, value: float) -> str | None:
        low, high = limit.low[arm], limit.high[arm]
        if value < low:
            return (
                f"{limit.field}: {value:.12g} is below {low:.12g}, the least value declared for arm "
                f"{self._arms[arm]!r}; tell the right value, or declare a range that holds it"
            )
        if value > high and not limit.cap:
            return (
                f"{limit.field}: {value:.12g} is above {high:.12g}, the largest value declared for arm "
                f"{self._arms[arm]!r}; tell the right value, or declare {limit.setting}, and larger values count as "
                f"{high:.12g}"
            )
        return None


#: What the rewards of a family may be, beside their range.
_POSSIBLE: dict[str, tuple[str, Any]] = {
    "bernoulli": ("0 and 1", lambda reward: reward in (0.0, 1.0)),
    "poisson": ("0, 1, 2, ...", lambda reward: reward >= 0.0 and reward == int(reward)),
    "exponential": ("numbers from 0 on", lambda reward: reward >= 0.0),
}


def _limit(problem: Problem, place: int, field: str, setting: str, account: Account) -> _Limit:
    low, high = account.ends(problem.n_arms)
    return _Limit(place, field, setting, low.tolist(), high.tolist(), account.cap)


def with_caps(problem: Problem, reward: bool = False, costs: Sequence[str] = ()) -> Problem:
    """Return the same problem, with larger values of some outcomes cut at the end of their range.

    Args:
        problem: The problem.
        reward: Whether to cut rewards.
        costs: The names of the constraints whose costs to cut.
    """
    names = cost_names(problem)
    for name in costs:
        if name not in names:
            raise unknown_name("measured constraint", name, names)
    if not reward and not costs:
        raise InvalidInput("cap: name the outcomes to cut at the end of their range: the reward, or constraints")
    if reward and problem.family == "bernoulli":
        raise InvalidInput("cap: rewards of family 'bernoulli' are 0 or 1: there is nothing to cut")
    return problem.replace(
        reward_cap=problem.reward_cap or reward,
        constraints=[{**c.model_dump(), "cap": c.cap or c.name in costs} for c in problem.constraints],
    )
