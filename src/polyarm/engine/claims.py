"""What follows from an explorer's answer, and what does not."""

from collections.abc import Collection, Mapping, Sequence

from polyarm.claims import FEASIBLE, INFEASIBLE, KNOWN_CONSTRAINTS, NEAR_OPTIMAL, Claim, Claims, Kind
from polyarm.problem import Constraint, Problem
from polyarm.rules.settings import RoundSettings
from polyarm.stops.settings import CertifiedSettings

_STYLISED = "stylised thresholds, without a proof"
#: Why a claim is asymptotic.
ESTIMATED = "some variances are estimated; declare a range or a std for a proof"
_NOT_STOPPED = "the explorer has not stopped"


def kind_of_bounds(problem: Problem, settings: CertifiedSettings, rows_only: bool = False) -> Kind:
    """How far what the certified rule says may be trusted: none if another test decides.

    Asymptotic where some variance that it rests on is estimated. `rows_only`: it does not rest on the reward's.
    """
    if not settings.stops_certified():
        return "none"
    if settings.thresholds != "proved":
        return "stylised"
    accounts = [problem.constraints[i].account for i in problem.unknown]
    if not rows_only:
        accounts.append(problem.reward_account)
    return "asymptotic" if any(account.kind == "estimated" for account in accounts) else "proved"


def make_claims(
    problem: Problem,
    settings: CertifiedSettings,
    stopped: bool,
    safe: bool,
    cut: Mapping[str, float] | None = None,
    accepted_r: float | None = None,
) -> Claims:
    """State what follows from an explorer's answer.

    `safe`: it is the best safe mix of a certified rule. `cut` is the share of outcomes that were cut at their range, by
    the name of the constraint; the reward's has the name of nothing, "". `accepted_r` is a tolerance other than the
    problem's that the answer was accepted for.
    """
    if accepted_r is not None:
        problem = problem.replace(r=accepted_r)
    if settings.stops_certified() or not isinstance(settings, RoundSettings):
        return Claims((*_known_rows(problem), *_certified_claims(problem, settings, stopped, safe, cut or {})))
    return Claims((*_known_rows(problem), *_own_claims(problem, settings, stopped)))


def claim_infeasible(problem: Problem, settings: CertifiedSettings) -> Claim:
    """State that no mix satisfies every constraint, as the certified rule has found.

    Every mix was refuted by one row or another, so the claim is about all constraints together. Which of them are to
    blame is an estimate; see `hint_conflict`.
    """
    # A cost that must not exceed its bound is at least what it is after the cut; one that must reach it is not.
    cut = any(c.cap and c.sense == ">=" for c in problem.constraints)
    rows = ", ".join(_read_refuted_row(problem, c) for c in problem.constraints)
    return _certified(problem, settings, INFEASIBLE, f"no mix satisfies all of: {rows}", cut, rows_only=True)


def hint_conflict(names: Sequence[str], suspected: Collection[str]) -> str | None:
    """Say which of all constraints are suspected to be in conflict, and that this is no proof; None if all are."""
    if len(suspected) == len(names):
        return None  # no more than what is claimed
    listed = ", ".join(name for name in names if name in suspected)
    return f"hint (estimated, not proved): no mix seems to satisfy all of: {listed}"


def _certified(
    problem: Problem, settings: CertifiedSettings, about: str, text: str, cut: bool, rows_only: bool = False
) -> Claim:
    """A claim that the certified rule has earned."""
    kind = kind_of_bounds(problem, settings, rows_only)
    why = {"stylised": _STYLISED, "asymptotic": ESTIMATED}.get(kind)
    return Claim(about, kind, text, 1.0 - problem.delta, why=why, cut=cut)


def _known_rows(problem: Problem) -> list[Claim]:
    known = ", ".join(c.name for c in problem.constraints if c.known)
    return [Claim(KNOWN_CONSTRAINTS, "proved", f"the known constraints hold exactly: {known}")] if known else []


def _is_cut(constraint: Constraint) -> bool:
    """Whether a claim about a constraint speaks of costs after the cut; a cost that must reach its bound is larger."""
    return constraint.cap and constraint.sense == "<="


def _read_row(problem: Problem, constraint: Constraint, cut: Mapping[str, float]) -> str:
    """A constraint in words: of what is measured, which may be cut."""
    if not _is_cut(constraint):
        return str(constraint)
    share = f", {cut[constraint.name]:.2%} of them cut" if constraint.name in cut else ""
    return _read_cut_row(problem, constraint) + share


def _read_refuted_row(problem: Problem, constraint: Constraint) -> str:
    """A constraint that cannot be kept, in words: of costs after the cut only where those before it may be enough."""
    if constraint.cap and constraint.sense == ">=":
        return _read_cut_row(problem, constraint)
    return str(constraint)


def _read_cut_row(problem: Problem, constraint: Constraint) -> str:
    high = float(constraint.account.ends(problem.n_arms)[1].max())
    return f"mean of min({constraint.name}, {high:g}) {constraint.sense} {constraint.bound:g}"


def _feasible(problem: Problem, cut: Mapping[str, float] | None = None) -> str:
    rows = [problem.constraints[i] for i in problem.unknown]
    names = [_read_row(problem, c, cut or {}) if _is_cut(c) else c.name for c in rows]
    return f"the mix satisfies {', '.join(names)}"


def _near_optimal(problem: Problem, cut: Mapping[str, float] | None = None) -> str:
    text = f"within r = {problem.r:g} of the best feasible mix"
    if problem.reward_cap:
        share = f", {(cut or {}).get('', 0.0):.2%} of them cut"
        high = float(problem.reward_account.ends(problem.n_arms)[1].max())
        text += f", by the mean of min(reward, {high:g}){share}"
    return text


def _certified_claims(
    problem: Problem, settings: CertifiedSettings, stopped: bool, safe: bool, cut: Mapping[str, float]
) -> list[Claim]:
    claims, feasible, near = [], _feasible(problem, cut), _near_optimal(problem, cut)
    cut_rows = any(_is_cut(problem.constraints[i]) for i in problem.unknown)
    confidence = 1.0 - problem.delta
    if problem.unknown and (stopped or safe):
        claims.append(_certified(problem, settings, FEASIBLE, feasible, cut_rows, rows_only=True))
    elif problem.unknown:
        claims.append(Claim(FEASIBLE, "none", feasible, confidence, why="no mix is certain to yet"))
    if stopped:
        any_cut = problem.reward_cap or any(problem.constraints[i].cap for i in problem.unknown)
        claims.append(_certified(problem, settings, NEAR_OPTIMAL, near, any_cut))
    else:
        claims.append(Claim(NEAR_OPTIMAL, "none", near, confidence, why=_NOT_STOPPED))
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
