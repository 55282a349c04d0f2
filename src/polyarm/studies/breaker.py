"""The circuit breaker: an alarm for when the sampling itself is proved to break a constraint."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.certify.proof import proved_excess
from polyarm.engine.plan import Plan
from polyarm.engine.session import Session
from polyarm.errors import Checked, InvalidInput, unknown_name
from polyarm.problem import Problem
from polyarm.stops.settings import check_certifiable


class Breaker(Checked):
    """When the allocation is proved to break a constraint, pulls follow a control mix.

    Proved means for all times at once, at confidence 1 - delta, on the event that the study's certificate spends its
    delta on: the alarm costs nothing more.

    Args:
        control: The mix that is known to be safe: its share of each arm, by name, which sum to 1; an arm left out has
            none.
        constraints: Names of the unknown constraints to watch; by default all of them.
    """

    control: Mapping[str, float]
    constraints: tuple[str, ...] | None = None

    def mix(self, problem: Problem) -> FloatArray:
        """Return the control mix as shares in the order of the arms.

        Args:
            problem: The study's problem, which names the arms.
        """
        return problem.check_policy([self.control.get(arm, 0.0) for arm in problem.arms])

    def watched(self, problem: Problem) -> tuple[str, ...]:
        """Return the names of the constraints that the alarm watches.

        Args:
            problem: The study's problem, which names the unknown constraints.
        """
        unknown = tuple(problem.constraints[i].name for i in problem.unknown)
        return unknown if self.constraints is None else self.constraints


def check_breaker(breaker: Breaker, plan: Plan) -> None:
    """Raise when a breaker cannot work for a problem and an explorer."""
    problem = plan.problem
    for arm in breaker.control:
        if arm not in problem.arms:
            raise unknown_name("arm", arm, problem.arms)
    breaker.mix(problem)
    unknown = [problem.constraints[i].name for i in problem.unknown]
    if not unknown:
        raise InvalidInput("breaker: no unknown constraint to watch")
    for name in breaker.watched(problem):
        if name not in unknown:
            raise InvalidInput(f"breaker: no unknown constraint {name!r} to watch; there are: {', '.join(unknown)}")
    check_certifiable(problem)
    if plan.settings.thresholds != "proved":
        raise InvalidInput("breaker: an alarm needs thresholds=proved; stylised ones prove nothing")


def find_excess(session: Session, watched: Any) -> dict[str, float]:
    """Return the excess, in the user's units, of each watched constraint that the allocation is proved to break."""
    if np.any(session.round.estimates.pulls == 0.0):
        return {}
    excess = proved_excess(session.standing(), session.round.allocation) / np.abs(session.plan.model.factors)
    names = [c.name for c in session.problem.constraints]
    return {name: float(x) for name, x in zip(names, excess, strict=True) if name in watched and x > 0.0}
