"""Simulated explorations: a session fed by an instance's own noise, at compiled speed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.engine.loop import Scores, Simulation, driver_for
from polyarm.engine.plan import Plan, make_plan
from polyarm.engine.randomness import WORLD, make_stream
from polyarm.engine.session import Session
from polyarm.environments.instances import Instance, is_correct, is_feasible
from polyarm.errors import InvalidInput
from polyarm.round import LOOK, RUNNING
from polyarm.rules.registry import check_setting_names, get_explorer

#: The paper's cap on the number of pulls.
DEFAULT_HORIZON = 100_000

#: What `--set` changes in the problem rather than in the explorer.
PROBLEM_SETTINGS = ("delta", "r", "noise")

HORIZON = "HORIZON"
STOPPED = "STOPPED"
INFEASIBLE = "INFEASIBLE"


@dataclass(frozen=True)
class RunRecord:
    """One finished exploration, judged against the truth.

    `status` is STOPPED, INFEASIBLE when the explorer proved that no mix satisfies every constraint, or HORIZON when the
    cap came first: a cap is never a stopping time. `feasible` and `correct` judge the mix held at the end (for a
    certified rule at the horizon: the best safe mix), whatever the status; `policy` is None when there is none.
    """

    seed: int
    status: str
    steps: int
    policy: FloatArray | None
    feasible: bool
    correct: bool
    policy_violations: int
    allocation_violations: int
    excess: float
    pulls: FloatArray


class Exploration:
    """A session that plays against a simulated instance, in any number of pieces."""

    def __init__(self, instance: Instance, plan: Plan, seed: int) -> None:
        self.instance = instance
        self.session = Session(plan, seed)
        self._world = instance.world()
        self._world_rng = make_stream(self.session.seed, WORLD)
        self._scores = Scores()

    def advance_to(self, limit: int) -> None:
        """Play until the explorer stops or `limit` pulls have been made in all."""
        session = self.session
        if session.waiting:
            raise InvalidInput(f"a batch was handed out, and outcomes are missing: {session.waiting}; tell them first")
        advance = driver_for(session.plan.explorer).advance
        simulation = Simulation(self._world, self._world_rng, self._scores, limit)
        model = session.plan.model
        while session.round.now.status == RUNNING:
            arm = advance(session.rule, session.state, model, session.rng, session.work, simulation)
            session.refuse_stop_of_rule()
            if arm != LOOK:
                return
            session.look()

    def record(self) -> RunRecord:
        """Judge the exploration as it stands."""
        session = self.session
        policy = session.final_mix()
        status = describe_status(session)
        right = status == INFEASIBLE and self.instance.optimum() is None
        return RunRecord(
            seed=session.seed,
            status=status,
            steps=session.steps,
            policy=policy,
            feasible=policy is not None and is_feasible(self.instance, policy),
            correct=right or (policy is not None and is_correct(self.instance, policy)),
            policy_violations=int(self._scores.policy_violations),
            allocation_violations=int(self._scores.allocation_violations),
            excess=float(self._scores.excess),
            pulls=session.round.estimates.pulls.copy(),
        )


def describe_status(session: Session) -> str:
    """Say how an exploration ended, or that the horizon came first."""
    if session.infeasible:
        return INFEASIBLE
    return STOPPED if session.stopped else HORIZON


def split_settings(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into those of the problem and the explorer's own."""
    changes = {name: value for name, value in settings.items() if name in PROBLEM_SETTINGS}
    return changes, {name: value for name, value in settings.items() if name not in changes}


def plan_run(
    instance: Instance, explorer: str | Path, settings: Mapping[str, Any], allow_infeasible: bool = False
) -> tuple[Instance, Plan]:
    """Apply settings (`PROBLEM_SETTINGS` to the problem, others to the explorer); check that the truth is feasible."""
    chosen = get_explorer(explorer)
    check_setting_names(chosen, settings, beside=PROBLEM_SETTINGS)
    changes, own = split_settings(settings)
    if changes:
        instance = instance.with_problem(**changes)
    if instance.optimum() is None and not allow_infeasible:
        raise InvalidInput(
            f"instance {instance.name!r}: no mix satisfies its true constraints; correct A or b, or allow it "
            "explicitly (--allow-infeasible, allow_infeasible=True)"
        )
    problem = instance.problem
    if chosen.needs_known_rows:
        problem = problem.with_known_rows(instance.A)  # a simulation knows the truth
    return instance, make_plan(chosen.name, problem, own)


def check_horizon(horizon: int) -> int:
    """Return a valid cap on the number of pulls."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise InvalidInput(f"horizon: expected a whole number, 1 or more, got {horizon!r}")
    return int(horizon)
