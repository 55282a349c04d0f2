"""Replay: a session fed by logged outcomes instead of live ones."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from polyarm.engine.plan import make_plan
from polyarm.engine.run import check_horizon, describe_status, split_settings
from polyarm.engine.session import Session
from polyarm.environments.replay import ReplayLog, cost_names, read_log
from polyarm.errors import InvalidInput
from polyarm.problem import Problem
from polyarm.report.answer import Recommendation
from polyarm.rules.registry import get_explorer

EXHAUSTED = "EXHAUSTED"

#: What every claim of a replay rests on.
INDEPENDENT = "the logged outcomes are independent given their arm, and none was logged or left out for its outcome"


@dataclass(frozen=True)
class ReplayResult:
    """A finished replay.

    `status` is STOPPED, INFEASIBLE, HORIZON, or EXHAUSTED if the arm asked for, `exhausted_arm`, had no row left. The
    last two are not stopping times. `recommendation` is None when there is no mix yet. `session` is the session at the
    end of the replay; it may go on with live outcomes.
    """

    status: str
    steps: int
    recommendation: Recommendation | None
    rows_used: dict[str, int]
    rows_left: dict[str, int]
    exhausted_arm: str | None
    settings: dict[str, Any]
    session: Session


def replay(
    problem: Problem,
    log: str | Path | ReplayLog,
    explorer: str | Path = "lagex",
    seed: int = 0,
    horizon: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ReplayResult:
    """Run an explorer on logged outcomes: each pull of an arm takes the arm's next row, and no row serves twice.

    Valid only if the logged outcomes are independent given their arm (across arms too), and none was logged or left out
    by a policy that saw it first. Rows drawn without replacement from a finite population, such as all the ratings of a
    data set, are not independent noise: the proved thresholds do not apply to them.

    Args:
        problem: The problem to explore.
        log: A `.csv` or `.parquet` file (see `read_log`), or what `read_log` returned.
        explorer: The name of an explorer, or the Python file of your own.
        seed: The seed of the explorer's own randomness.
        horizon: The most pulls to make; by default the replay goes on until the explorer stops or asks for an arm
            without rows.
        settings: The explorer's settings, and `delta`, `r` and `noise` to change the problem's; by default none.
    """
    changes, own = split_settings(settings or {})
    plan = make_plan(get_explorer(explorer).name, problem.replace(**changes), own)
    limit = inf if horizon is None else check_horizon(horizon)
    session = Session(plan, seed)
    if not isinstance(log, ReplayLog):
        log = read_log(log, problem)
    elif (log.arms, log.costs) != (problem.arms, cost_names(problem)):
        raise InvalidInput("log: read for other arms or constraints; read it with read_log(path, problem)")

    rows = [iter(outcomes) for outcomes in log.outcomes]
    exhausted_arm = None
    while not session.stopped and session.steps < limit:
        arm = session.ask()
        row = next(rows[arm], None)
        if row is None:
            exhausted_arm = problem.arms[arm]
            break
        session.tell(arm, reward=row[0], costs=row[1:])

    used = [int(pulls) for pulls in session.round.estimates.pulls]
    left = [len(outcomes) - n for outcomes, n in zip(log.outcomes, used, strict=True)]
    return ReplayResult(
        status=EXHAUSTED if exhausted_arm is not None else describe_status(session),
        steps=session.steps,
        recommendation=None if session.policy is None else _qualify(session.recommend()),
        rows_used=dict(zip(problem.arms, used, strict=True)),
        rows_left=dict(zip(problem.arms, left, strict=True)),
        exhausted_arm=exhausted_arm,
        settings=plan.recorded_settings(),
        session=session,
    )


def _qualify(answer: Recommendation) -> Recommendation:
    """Make every claim conditional on what a replay cannot check."""
    return replace(answer, claims=answer.claims.under(INDEPENDENT, "the log cannot show it"))
