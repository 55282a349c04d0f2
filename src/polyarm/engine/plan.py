"""An explorer with its settings, made ready for a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyarm.certify.terms import Terms
from polyarm.model import Model, build_model
from polyarm.problem import Problem
from polyarm.rules.explorer import Explorer
from polyarm.rules.registry import check_fits, find_explorer, make_settings
from polyarm.stops.settings import CertifiedSettings, check_certifiable


@dataclass(frozen=True)
class Plan:
    """An explorer with its settings, ready for a problem; many sessions may share one.

    `terms` holds the constants of a certificate; None if the explorer stops by its own test.
    """

    problem: Problem
    explorer: Explorer
    settings: CertifiedSettings
    model: Model
    terms: Terms | None

    @property
    def certificate(self) -> str | None:
        """Which certificate proves an answer of this explorer: averaged, pooled, or None."""
        return None if self.terms is None else self.terms.certificate

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
    model = build_model(problem, resolved.assumed_std())
    terms = resolved.make_terms(model) if resolved.stops_certified() else None
    return Plan(problem, chosen, resolved, model, terms)
