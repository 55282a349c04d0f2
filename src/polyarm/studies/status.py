"""The status of a study, for people and programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import WithJsonSchema

from polyarm._json import finite
from polyarm.claims import SAMPLING, Claim
from polyarm.engine.session import Session
from polyarm.studies.projection import ARCHIVED, STOPPED
from polyarm.studies.state import StudyState

#: Described as a list of two: not every generator of clients knows how OpenAPI describes a pair.
Interval = Annotated[
    tuple[float, float],
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]
StateWord = Literal["exploring", "tripped", "stopped", "answered", "infeasible", "archived"]


@dataclass(frozen=True)
class StudyStatus:
    """A study at a glance.

    `state` is exploring, tripped (the breaker routes to the control mix), stopped (by hand), answered, infeasible or
    archived. `used` outcomes have reached the explorer; `waiting` are complete and have not; `pending` trials are under
    way, of which `overdue` have outlived their lease; `expired` were given up, of which `late` came after all;
    `observed` were never asked for. `tripped`: by how much the sampling breaks each constraint that tripped the
    breaker; `alarm`: what is claimed of that. `stopped`: the explorer has finished. `waiting_for` names the arm whose
    outcome the explorer needs next.
    """

    name: str
    state: StateWord
    explorer: str
    used: int
    asked: int
    told: int
    pending: int
    overdue: int
    waiting: int
    expired: int
    late: int
    observed: int
    pulls: Mapping[str, int]
    allocation: Mapping[str, float]
    waiting_for: str | None
    statistic: float | None
    threshold: float | None
    expected_stop: Interval | None
    stopped: bool
    tripped: Mapping[str, float] | None
    alarm: Claim | None
    assumptions: tuple[str, ...]
    events: int
    created_at: str


@dataclass(frozen=True)
class Moment:
    """As of event `seq`: the status, what has to be assumed, the readings so far, and a copy of the explorer."""

    seq: int
    status: StudyStatus
    assumptions: tuple[str, ...]
    history: dict[str, list[Any]]
    session: Session


def describe(state: StudyState, name: str, created_at: str, now: str) -> StudyStatus:
    """Return the status of a study."""
    session, tallies = state.session, state.tallies
    problem = session.problem
    return StudyStatus(
        name=name,
        state=_name_state(state),
        explorer=session.plan.explorer.name,
        used=session.steps,
        asked=tallies.asked,
        told=tallies.told,
        pending=len(state.pending),
        overdue=len(state.overdue(now)),
        waiting=state.n_waiting,
        expired=tallies.expired,
        late=tallies.late,
        observed=tallies.observed,
        pulls=dict(zip(problem.arms, map(int, session.round.estimates.pulls), strict=True)),
        allocation=dict(zip(problem.arms, session.round.allocation.tolist(), strict=True)),
        waiting_for=None if session.stopped else problem.arms[session.ask()],
        statistic=finite(session.statistic),
        threshold=finite(session.threshold),
        expected_stop=session.expected_stop(),
        stopped=session.stopped,
        tripped=state.tripped,
        alarm=claim_alarm(state),
        assumptions=tuple(state.assumptions()),
        events=state.seq,
        created_at=created_at,
    )


def _name_state(state: StudyState) -> StateWord:
    if state.lifecycle == ARCHIVED:
        return "archived"
    if state.session.stopped:
        return "infeasible" if state.session.infeasible else "answered"
    if state.lifecycle == STOPPED:
        return "stopped"
    return "exploring" if state.tripped is None else "tripped"


def describe_end(state: StudyState) -> str:
    """Return how the exploration ended, in words."""
    session = state.session
    after = f"after {session.steps} pulls"
    if session.infeasible:
        claim = session.claim_infeasible().under(*state.assumptions())
        return f"finished {after}; nothing left to ask; {claim.label}: {claim.sentence}"
    return f"finished {after}; nothing left to ask: see recommend()"


def claim_alarm(state: StudyState) -> Claim | None:
    """Return what the breaker has proved, while it is tripped."""
    if state.tripped is None:
        return None
    broken = ", ".join(f"{name} by at least {x:.4g}" for name, x in state.tripped.items())
    confidence, assumptions = 1.0 - state.session.problem.delta, tuple(state.assumptions())
    return Claim(SAMPLING, "proved", f"the sampling breaks {broken}", confidence, assumptions)


def describe_alarm(alarm: Claim) -> str:
    """Return what tripped the breaker and what follows, in words."""
    return f"{alarm.label}: {alarm.sentence}; trials follow the control mix until resume()"
