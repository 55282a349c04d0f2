"""What follows from an explorer's answer, and what does not."""

from collections.abc import Sequence

from polyarm.claims import FEASIBLE, INFEASIBLE, KNOWN_CONSTRAINTS, NEAR_OPTIMAL, Claim, Claims, Kind
from polyarm.problem import Problem
from polyarm.rules.settings import RoundSettings
from polyarm.stops.settings import CertifiedSettings

_STYLISED = "stylised thresholds, without a proof"
_NOT_STOPPED = "the explorer has not stopped"


def kind_of_bounds(settings: CertifiedSettings) -> Kind:
    """How far the bounds of the certified rule may be trusted: none if another test decides."""
    return settings.thresholds if settings.stops_certified() else "none"


def make_claims(problem: Problem, settings: CertifiedSettings, stopped: bool, safe: bool) -> Claims:
    """State what follows from an explorer's answer; `safe`: it is the best safe mix of a certified rule."""
    if settings.stops_certified() or not isinstance(settings, RoundSettings):
        return Claims((*_known_rows(problem), *_certified_claims(problem, settings, stopped, safe)))
    return Claims((*_known_rows(problem), *_own_claims(problem, settings, stopped)))


def claim_infeasible(problem: Problem, settings: CertifiedSettings, conflict: Sequence[str]) -> Claim:
    """State that the named constraints contradict each other, as the certified rule has found."""
    rows = ", ".join(str(c) for c in problem.constraints if c.name in conflict)
    return _certified(settings, INFEASIBLE, f"no mix satisfies all of: {rows}", 1.0 - problem.delta)


def _certified(settings: CertifiedSettings, about: str, text: str, confidence: float) -> Claim:
    """A claim that the certified rule has earned."""
    kind = kind_of_bounds(settings)
    return Claim(about, kind, text, confidence, why=None if kind == "proved" else _STYLISED)


def _known_rows(problem: Problem) -> list[Claim]:
    known = ", ".join(c.name for c in problem.constraints if c.known)
    return [Claim(KNOWN_CONSTRAINTS, "proved", f"the known constraints hold exactly: {known}")] if known else []


def _feasible(problem: Problem) -> str:
    return f"the mix satisfies {', '.join(problem.constraints[i].name for i in problem.unknown)}"


def _near_optimal(problem: Problem) -> str:
    return f"within r = {problem.r:g} of the best feasible mix"


def _certified_claims(problem: Problem, settings: CertifiedSettings, stopped: bool, safe: bool) -> list[Claim]:
    confidence, claims = 1.0 - problem.delta, []
    if problem.unknown and (stopped or safe):
        claims.append(_certified(settings, FEASIBLE, _feasible(problem), confidence))
    elif problem.unknown:
        claims.append(Claim(FEASIBLE, "none", _feasible(problem), confidence, why="no mix is certain to yet"))
    if stopped:
        claims.append(_certified(settings, NEAR_OPTIMAL, _near_optimal(problem), confidence))
    else:
        claims.append(Claim(NEAR_OPTIMAL, "none", _near_optimal(problem), confidence, why=_NOT_STOPPED))
    return claims


def _own_claims(problem: Problem, settings: RoundSettings, stopped: bool) -> list[Claim]:
    """State what follows when an explorer that stops on a reward-only test gives its answer."""
    claims = []
    if problem.unknown:
        why = (
            "the stopping test looks at rewards only; in simulations such a mix, on the edge of an estimated set, is "
            "truly feasible in fewer than half of the runs"
        )
        claims.append(Claim(FEASIBLE, "none", _feasible(problem), why=why))
    missing: str | None = None
    if not stopped:
        missing = _NOT_STOPPED
    elif problem.unknown:
        missing = "the set of feasible mixes is itself an estimate"
    elif not _test_is_proved(settings):
        missing = (
            "with known constraints that needs beta=theory, alternatives=vertices, margin=plus or none, and the "
            "declared reward noise"
        )
    kind: Kind = "proved" if missing is None else "none"
    claims.append(Claim(NEAR_OPTIMAL, kind, _near_optimal(problem), 1.0 - problem.delta, why=missing))
    return claims


def _test_is_proved(settings: RoundSettings) -> bool:
    sound_alternatives = settings.margin == "none" or (
        settings.margin == "plus" and settings.alternatives == "vertices"
    )
    return settings.beta == "theory" and sound_alternatives and settings.assumed_reward_std is None
