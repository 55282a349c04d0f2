"""The explorers by name, and the dispatch that lets one compiled driver serve them all."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from polyarm.errors import InvalidInput, unknown_name
from polyarm.explorers.certex import CertexSettings, build_certex
from polyarm.explorers.certex_blocks import BlocksRule, step_blocks
from polyarm.explorers.certex_pooled import PooledRule, step_pooled
from polyarm.explorers.certified_settings import CertifiedSettings
from polyarm.explorers.cge import CgeRule, CgeSettings, build_cge, step_cge
from polyarm.explorers.ctns import CtnsRule, CtnsSettings, build_ctns, step_ctns
from polyarm.explorers.lagex import LagexRule, LagexSettings, build_lagex, step_lagex
from polyarm.explorers.lats import LatsRule, LatsSettings, build_lats, step_lats
from polyarm.explorers.ptns import PtnsRule, PtnsSettings, build_ptns, step_ptns
from polyarm.explorers.uniform import UniformRule, UniformSettings, build_uniform, step_uniform
from polyarm.problem import Model, Problem


class Explorer(NamedTuple):
    """What the registry knows of an explorer.

    `steps` has one step per kind of rule that `build` makes; `needs_known_rows`: it must be told the whole matrix.
    """

    name: str
    summary: str
    settings: type[CertifiedSettings]
    build: Callable[[Any, Model], tuple[Any, Any, Any]]
    steps: Mapping[Any, Callable[..., int]]
    needs_known_rows: bool = False


_CTNS = (CtnsSettings, build_ctns, {CtnsRule: step_ctns})
_CGE = (CgeSettings, build_cge, {CgeRule: step_cge})
_ALL = (
    Explorer(
        "certex",
        "certified feasible and r-optimal",
        CertexSettings,
        build_certex,
        {PooledRule: step_pooled, BlocksRule: step_blocks},
    ),
    Explorer("lagex", "game with a Lagrange multiplier", LagexSettings, build_lagex, {LagexRule: step_lagex}),
    Explorer("lats", "track-and-stop with a Lagrange multiplier", LatsSettings, build_lats, {LatsRule: step_lats}),
    Explorer("ctns", "track-and-stop, constraints known", *_CTNS, needs_known_rows=True),
    Explorer("ctns-wlag", "track-and-stop on the estimated set", *_CTNS),
    Explorer("cge", "game, constraints known", *_CGE, needs_known_rows=True),
    Explorer("cge-wlag", "game on the estimated set", *_CGE),
    Explorer("ptns", "best-arm track-and-stop, projected", PtnsSettings, build_ptns, {PtnsRule: step_ptns}),
    Explorer("uniform", "every arm equally often", UniformSettings, build_uniform, {UniformRule: step_uniform}),
)

EXPLORERS = {explorer.name: explorer for explorer in _ALL}
_STEPS = {rule: step for explorer in _ALL for rule, step in explorer.steps.items()}


def get_explorer(name: str) -> Explorer:
    """Return an explorer by name."""
    if not isinstance(name, str) or name not in EXPLORERS:
        raise unknown_name("explorer", str(name), EXPLORERS)
    return EXPLORERS[name]


def check_fits(explorer: Explorer, problem: Problem) -> None:
    """Raise when an explorer cannot work on a problem."""
    if explorer.needs_known_rows and problem.unknown:
        names = ", ".join(problem.constraints[i].name for i in problem.unknown)
        raise InvalidInput(
            f"explorer {explorer.name!r} needs every constraint row, but these are unknown: {names}; give their `row`, "
            f"or use {explorer.name}-wlag, which estimates them"
        )


def make_settings(explorer: Explorer, given: dict[str, Any]) -> CertifiedSettings:
    """Resolve an explorer's settings from what the user gave and the preset."""
    check_setting_names(explorer, given)
    return explorer.settings(**given)


def check_setting_names(explorer: Explorer, given: Iterable[str], beside: Iterable[str] = ()) -> None:
    """Raise for a name that is neither a setting of the explorer nor one of those accepted `beside` them."""
    known = {*explorer.settings.model_fields, *beside}
    for name in given:
        if name not in known:
            raise InvalidInput(f"explorer {explorer.name!r} has no setting {name!r}; known: {', '.join(sorted(known))}")


def step(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any) -> int:
    """Run the step that belongs to a rule; this body serves when compilation is disabled."""
    return _STEPS[type(rule)](rule, state, model, rng, work)


@overload(step, strict=False)  # strict would compare annotations too
def _overload_step(rule: Any, state: Any, model: Any, rng: Any, work: Any) -> Any:
    chosen = _STEPS.get(getattr(rule, "instance_class", type(None)))
    # The plain function, not its dispatcher: one level of calls less to compile.
    return None if chosen is None else getattr(chosen, "py_func", chosen)
