"""An explorer with its settings, made ready for a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyarm.model import Model, build_model
from polyarm.problem import Problem
from polyarm.rules.explorer import Explorer
from polyarm.rules.registry import check_fits, find_explorer, make_settings
from polyarm.stops.settings import CertifiedSettings, check_certifiable

POOLED = "pooled"
AVERAGED = "averaged"


@dataclass(frozen=True)
class Plan:
    """An explorer with its settings, ready for a problem; many sessions may share one."""

    problem: Problem
    explorer: Explorer
    settings: CertifiedSettings
    model: Model

    @property
    def certificate(self) -> str | None:
        """Which certificate proves an answer of this explorer: AVERAGED, POOLED, or None."""
        if not self.settings.stops_certified():
            return None
        return AVERAGED if self.settings.pooled_share() < 1.0 else POOLED

    def recorded_settings(self) -> dict[str, Any]:
        """Return every setting in force, with the problem's delta and r, as plain JSON types."""
        return {**self.settings.model_dump(mode="json"), "delta": self.problem.delta, "r": self.problem.r}


def make_plan(explorer: str, problem: Problem, settings: Mapping[str, Any]) -> Plan:
    """Validate an explorer's name (of one that is loaded) and settings, and compile the problem for it."""
    chosen = find_explorer(explorer)
    check_fits(chosen, problem)
    resolved = make_settings(chosen, dict(settings))
    if resolved.stops_certified():
        check_certifiable(problem)
    return Plan(problem, chosen, resolved, build_model(problem, resolved.assumed_std()))
