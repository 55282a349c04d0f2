"""What an explorer's answer proves, and what it does not, in words."""

from dataclasses import dataclass

from polyarm.problem import Problem
from polyarm.rules.settings import RoundSettings
from polyarm.stops.settings import CertifiedSettings


@dataclass(frozen=True)
class Claims:
    """Sentences for people; both lists may be shown as they are."""

    proved: tuple[str, ...]
    not_proved: tuple[str, ...]

    def under(self, assumption: str, why: str) -> "Claims":
        """Make every claim conditional on something; `why` it is not known itself."""
        return Claims(
            proved=tuple(f"if {assumption}: {sentence}" for sentence in self.proved),
            not_proved=(*self.not_proved, f"that {assumption}: {why}"),
        )


def make_claims(problem: Problem, settings: CertifiedSettings, stopped: bool, safe: bool) -> Claims:
    """State what follows from an explorer's answer; `safe`: it is the best safe mix of a certified rule."""
    if settings.stops_certified() or not isinstance(settings, RoundSettings):
        return _certified_claims(problem, settings, stopped, safe)
    return _own_claims(problem, settings, stopped)


def _certified_claims(problem: Problem, settings: CertifiedSettings, stopped: bool, safe: bool) -> Claims:
    known = [c.name for c in problem.constraints if c.known]
    unknown = [c.name for c in problem.constraints if not c.known]
    proved = [f"the known constraints hold exactly: {', '.join(known)}"] if known else []
    confidence = f"with confidence {1 - problem.delta:g}"
    optimality = f"within r = {problem.r:g} of the best feasible mix {confidence}"
    feasibility = f"the mix satisfies {', '.join(unknown)} {confidence}"
    earned = [feasibility] if unknown and (stopped or safe) else []
    missing = [] if not unknown or stopped or safe else [feasibility + ": no mix is certain to yet"]
    if stopped:
        earned.append(optimality)
    else:
        missing.append(f"{optimality}: the explorer has not stopped")
    if settings.thresholds == "proved":
        proved += earned
    else:
        missing = [f"{claim}: stylised thresholds, without a proof" for claim in earned] + missing
    return Claims(tuple(proved), tuple(missing))


def _own_claims(problem: Problem, settings: RoundSettings, stopped: bool) -> Claims:
    """State what follows when an explorer that stops on a reward-only test gives its answer."""
    proved, not_proved = [], []
    known = [c.name for c in problem.constraints if c.known]
    unknown = [c.name for c in problem.constraints if not c.known]
    if known:
        proved.append(f"the known constraints hold exactly: {', '.join(known)}")
    if unknown:
        not_proved.append(
            f"that the mix satisfies {', '.join(unknown)}: the stopping test looks at rewards only; in simulations "
            "such a mix, on the edge of an estimated set, is truly feasible in fewer than half of the runs"
        )
    optimality = f"within r = {problem.r:g} of the best feasible mix with confidence {1 - problem.delta:g}"
    if not stopped:
        not_proved.append(f"{optimality}: the explorer has not stopped")
    elif unknown:
        not_proved.append(f"{optimality}: the set of feasible mixes is itself an estimate")
    elif _test_is_proved(settings):
        proved.append(optimality)
    else:
        not_proved.append(
            f"{optimality}: with known constraints that needs beta=theory, alternatives=vertices, "
            "margin=plus or none, and the declared reward noise"
        )
    return Claims(tuple(proved), tuple(not_proved))


def _test_is_proved(settings: RoundSettings) -> bool:
    sound_alternatives = settings.margin == "none" or (
        settings.margin == "plus" and settings.alternatives == "vertices"
    )
    return settings.beta == "theory" and sound_alternatives and settings.assumed_reward_std is None
