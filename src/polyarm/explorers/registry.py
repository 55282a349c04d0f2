"""The explorers by name, and the dispatch that lets one compiled driver serve them all."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numba.extending import overload

from polyarm.errors import InvalidInput, unknown_name
from polyarm.explorers.certex import CertexSettings, build_certex
from polyarm.explorers.certex_blocks import BlocksRule, step_blocks
from polyarm.explorers.certex_pooled import PooledRule, step_pooled
from polyarm.explorers.certified_settings import CertifiedSettings
from polyarm.explorers.cge import CgeRule, CgeSettings, build_cge, step_cge
from polyarm.explorers.ctns import CtnsRule, CtnsSettings, build_ctns, step_ctns
from polyarm.explorers.explorer import Explorer
from polyarm.explorers.lagex import LagexRule, LagexSettings, build_lagex, step_lagex
from polyarm.explorers.lats import LatsRule, LatsSettings, build_lats, step_lats
from polyarm.explorers.plugins import read_source, run_source
from polyarm.explorers.ptns import PtnsRule, PtnsSettings, build_ptns, step_ptns
from polyarm.explorers.uniform import UniformRule, UniformSettings, build_uniform, step_uniform
from polyarm.problem import Model, Problem

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

SHIPPED = {explorer.name: explorer for explorer in _ALL}
#: Those that are shipped, and those that were loaded from the user's files.
EXPLORERS = dict(SHIPPED)
_STEPS = {rule: step for explorer in _ALL for rule, step in explorer.steps.items()}
#: What was loaded, by its text.
_LOADED: dict[str, Explorer] = {}


def get_explorer(name: str | Path) -> Explorer:
    """Return an explorer by name, or load the file (ending in .py) of one's own."""
    if isinstance(name, Path) or (isinstance(name, str) and name.endswith(".py")):
        return load_explorer(name)
    return find_explorer(name)


def find_explorer(name: Any) -> Explorer:
    """Return an explorer by name and never run a file: for names from documents, which may hold anything."""
    if not isinstance(name, str) or name not in EXPLORERS:
        raise InvalidInput(
            f"{unknown_name('explorer', str(name), EXPLORERS)} An explorer of your own goes by its file "
            "(my_explorer.py), and by its name after polyarm.load_explorer('my_explorer.py')."
        )
    return EXPLORERS[name]


def load_explorer(path: str | Path) -> Explorer:
    """Load an explorer from its file, which must set `explorer`; from then on its name stands for it."""
    return load_explorer_source(read_source(path), str(path))


def load_explorer_source(text: str, filename: str = "<explorer>") -> Explorer:
    """Load an explorer from the text of its file: the same text is the same record, another replaces its namesake."""
    explorer = _LOADED.get(text)
    if explorer is None:
        explorer = run_source(text, filename)
        if explorer.name in SHIPPED:
            raise InvalidInput(f"{filename}: the name {explorer.name!r} belongs to a shipped explorer; choose another")
        for rule, own in explorer.steps.items():
            if _STEPS.get(rule, own) is not own:
                raise InvalidInput(
                    f"{filename}: steps: {rule!r} already has a step, of another explorer; define a class of your own"
                )
        _STEPS.update(explorer.steps)
        _LOADED[text] = explorer
    EXPLORERS[explorer.name] = explorer
    return explorer


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
