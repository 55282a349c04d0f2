"""The status of a study, for people and programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import WithJsonSchema

from polyarm._json import finite
from polyarm.claims import SAMPLING, Claim
from polyarm.engine.claims import ESTIMATED
from polyarm.engine.session import Session
from polyarm.studies.projection import ARCHIVED, STOPPED
from polyarm.studies.state import StudyState

#: Described as a list of two: not every generator of clients knows how OpenAPI describes a pair.
Interval = Annotated[
    tuple[float, float],
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]
Lifecycle = Literal["running", "stopped", "archived"]
StateWord = Literal["exploring", "tripped", "contradicted", "stopped", "answered", "infeasible", "archived"]
#: Refused outcomes that a status tells of; the rest are counted.
_MOST_CONTRADICTIONS = 20


@dataclass(frozen=True)
class StudyStatus:
    """A study at a glance.

    `state` is exploring, tripped (the breaker routes to the control mix), contradicted (an outcome is outside what is
    declared of it), stopped (by hand), answered, infeasible or archived; `lifecycle` is running, stopped or archived.
    `contradictions` says which outcomes contradict what, of at most 20 trials; while there are any, nothing is proved.
    `capped` counts the outcomes used that were cut at the end of their range, by outcome and arm.

    `used` outcomes have reached the explorer; `waiting` are complete and have not; `pending` trials are under way, of
    which `overdue` have outlived their lease; `expired` were given up, of which `late` came after all; `observed` were
    never asked for. `certified_r`: the smallest r for which a mix is certified now (None: for none), with which
    `stop(accept=True)` ends. `tripped`: by how much the sampling breaks each constraint that tripped the
    breaker; `alarm`: what is claimed of that. `stopped`: the explorer has finished. `waiting_for` names the arm whose
    outcome the explorer needs next.
    """

    name: str
    state: StateWord
    lifecycle: Lifecycle
    contradictions: tuple[str, ...]
    capped: Mapping[str, Mapping[str, int]]
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
    certified_r: float | None
    stopped: bool
    tripped: Mapping[str, float] | None
    alarm: Claim | None
    assumptions: tuple[str, ...]
    events: int
    created_at: str


@dataclass(frozen=True)
class Moment:
    """As of event `seq`: the status, what has to be assumed, what contradicts the declarations, the readings so far,
    and a copy of the explorer."""

    seq: int
    status: StudyStatus
    assumptions: tuple[str, ...]
    contradiction: str | None
    history: dict[str, list[Any]]
    session: Session


def describe(state: StudyState, name: str, created_at: str, now: str) -> StudyStatus:
    """Return the status of a study."""
    session, tallies = state.session, state.tallies
    problem = session.problem
    return StudyStatus(
        name=name,
        state=_name_state(state),
        lifecycle=cast(Lifecycle, state.lifecycle),
        contradictions=tuple(_describe_contradictions(state)),
        capped=_count_capped(session),
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
        certified_r=_find_certified_r(session),
        stopped=session.stopped,
        tripped=state.tripped,
        alarm=claim_alarm(state),
        assumptions=tuple(state.assumptions()),
        events=state.seq,
        created_at=created_at,
    )


def _find_certified_r(session: Session) -> float | None:
    """The r that is certified now: the answer's, or the smallest one that a mix is certified for already."""
    if session.stopped:
        return session.case.r if session.certified and not session.infeasible else None
    found = session.certified_now()
    return None if found is None else found.r


def _name_state(state: StudyState) -> StateWord:
    if state.lifecycle == ARCHIVED:
        return "archived"
    if state.refused:
        return "contradicted"
    if state.session.stopped:
        return "infeasible" if state.session.infeasible else "answered"
    if state.lifecycle == STOPPED:
        return "stopped"
    return "exploring" if state.tripped is None else "tripped"


def _describe_contradictions(state: StudyState) -> Iterator[str]:
    arms, trials = state.session.problem.arms, sorted(state.refused)
    for trial in trials[:_MOST_CONTRADICTIONS]:
        refused = state.refused[trial]
        yield f"trial {trial} of {arms[refused['arm']]!r}: {'; '.join(refused['why'])}"
    if len(trials) > _MOST_CONTRADICTIONS:
        yield f"{len(trials) - _MOST_CONTRADICTIONS} more trials"


def _count_capped(session: Session) -> dict[str, dict[str, int]]:
    """How often each outcome was cut, by arm; what never was is left out."""
    problem, counts = session.problem, session.capped.tolist()
    names = ["reward", *(f"cost {constraint.name!r}" for constraint in problem.constraints)]
    by_name = {
        name: {arm: count for arm, count in zip(problem.arms, row, strict=True) if count}
        for name, row in zip(names, counts, strict=True)
    }
    return {name: by_arm for name, by_arm in by_name.items() if by_arm}


def describe_end(state: StudyState) -> str:
    """Return how the exploration ended, in words."""
    session = state.session
    after = f"after {session.steps} pulls"
    if session.infeasible:
        claim = withhold(session.claim_infeasible().under(*state.assumptions()), state.contradiction)
        return f"finished {after}; nothing left to ask; {claim.label}: {claim.sentence}"
    return f"finished {after}; nothing left to ask: see recommend()"


def claim_alarm(state: StudyState) -> Claim | None:
    """Return what the breaker has proved, while it is tripped."""
    if state.tripped is None:
        return None
    problem, tripped = state.session.problem, state.tripped
    broken = ", ".join(f"{name} by at least {x:.4g}" for name, x in tripped.items())
    rows = [c for c in problem.constraints if c.name in tripped]
    estimated = any(c.account.kind == "estimated" for c in rows)
    claim = Claim(
        SAMPLING,
        "asymptotic" if estimated else "proved",
        f"the sampling breaks {broken}",
        1.0 - problem.delta,
        tuple(state.assumptions()),
        why=ESTIMATED if estimated else None,
        # A cost that must not exceed its bound is at least what it is after the cut; one that must reach it is not.
        cut=any(c.cap and c.sense == ">=" for c in rows),
    )
    return withhold(claim, state.contradiction)


def withhold(claim: Claim, contradiction: str | None) -> Claim:
    """Return a claim as it is made of a study: not at all, while something contradicts the declarations."""
    return claim if contradiction is None else claim.withheld(contradiction)


def describe_alarm(alarm: Claim) -> str:
    """Return what tripped the breaker and what follows, in words."""
    return f"{alarm.label}: {alarm.sentence}; trials follow the control mix until resume()"
