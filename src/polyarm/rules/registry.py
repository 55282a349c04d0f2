"""The explorers by name, and the dispatch that lets one compiled driver serve them all."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polyarm.errors import InvalidInput, unknown_name
from polyarm.problem import Problem
from polyarm.rules.base import ALLOCATE, CHOOSE
from polyarm.rules.certex import (
    BlocksRule,
    CertexSettings,
    PooledRule,
    choose_from_block,
    choose_planned,
    init_certex,
)
from polyarm.rules.cge import CgeRule, CgeSettings, allocate_cge, init_cge
from polyarm.rules.ctns import CtnsRule, CtnsSettings, allocate_ctns, init_ctns
from polyarm.rules.explorer import Explorer
from polyarm.rules.lagex import LagexRule, LagexSettings, allocate_lagex, init_lagex
from polyarm.rules.lats import LatsRule, LatsSettings, allocate_lats, init_lats
from polyarm.rules.plugins import read_source, run_source
from polyarm.rules.ptns import PtnsRule, PtnsSettings, allocate_ptns, init_ptns
from polyarm.rules.uniform import UniformRule, UniformSettings, allocate_uniform, init_uniform
from polyarm.stops.settings import CertifiedSettings

_CTNS = (CtnsSettings, init_ctns, {CtnsRule: allocate_ctns})
_CGE = (CgeSettings, init_cge, {CgeRule: allocate_cge})
_ALL = (
    Explorer(
        "certex",
        "certified feasible and r-optimal",
        CertexSettings,
        init_certex,
        allocate={},
        choose={PooledRule: choose_planned, BlocksRule: choose_from_block},
    ),
    Explorer("lagex", "game with a Lagrange multiplier", LagexSettings, init_lagex, {LagexRule: allocate_lagex}),
    Explorer("lats", "track-and-stop with a Lagrange multiplier", LatsSettings, init_lats, {LatsRule: allocate_lats}),
    Explorer("ctns", "track-and-stop, constraints known", *_CTNS, needs_known_rows=True),
    Explorer("ctns-wlag", "track-and-stop on the estimated set", *_CTNS),
    Explorer("cge", "game, constraints known", *_CGE, needs_known_rows=True),
    Explorer("cge-wlag", "game on the estimated set", *_CGE),
    Explorer("ptns", "best-arm track-and-stop, projected", PtnsSettings, init_ptns, {PtnsRule: allocate_ptns}),
    Explorer("uniform", "every arm equally often", UniformSettings, init_uniform, {UniformRule: allocate_uniform}),
)

SHIPPED = {explorer.name: explorer for explorer in _ALL}
#: The shipped explorers, and those loaded from the user's files.
EXPLORERS = dict(SHIPPED)
#: Explorers that were loaded, by their text.
_LOADED: dict[str, Explorer] = {}


def _enlist(explorer: Explorer, filename: str = "") -> None:
    """Let the driver find the functions of an explorer's rules; a class of rules belongs to one explorer."""
    for table, own in ((ALLOCATE, explorer.allocate), (CHOOSE, explorer.choose)):
        for rule, function in own.items():
            if table.setdefault(rule, function) is not function:
                raise InvalidInput(
                    f"{filename}: {rule!r} already belongs to another explorer; define a class of your own"
                )


for _explorer in _ALL:
    _enlist(_explorer)


def get_explorer(name: str | Path) -> Explorer:
    """Return an explorer.

    Args:
        name: Its name, or the Python file (ending in .py) of your own, which is loaded.
    """
    if isinstance(name, Path) or (isinstance(name, str) and name.endswith(".py")):
        return load_explorer(name)
    return find_explorer(name)


def find_explorer(name: Any) -> Explorer:
    """Return an explorer by name and never run a file: for names from documents, which may hold anything."""
    if not isinstance(name, str) or name not in EXPLORERS:
        raise InvalidInput(
            f"{unknown_name('explorer', str(name), EXPLORERS)} Give the file of your own explorer "
            "(my_explorer.py), or its name after polyarm.load_explorer('my_explorer.py')."
        )
    return EXPLORERS[name]


def load_explorer(path: str | Path) -> Explorer:
    """Load an explorer from its file; from then on its name stands for it.

    Args:
        path: A Python file, which must set `explorer`.
    """
    return load_explorer_source(read_source(path), str(path))


def load_explorer_source(text: str, filename: str = "<explorer>") -> Explorer:
    """Load an explorer from the text of its file: the same text gives the same record, another text replaces an
    explorer of its name.

    Args:
        text: Python code, which must set `explorer`.
        filename: What to call it in error messages.
    """
    explorer = _LOADED.get(text)
    if explorer is None:
        explorer = run_source(text, filename)
        if explorer.name in SHIPPED:
            raise InvalidInput(f"{filename}: the name {explorer.name!r} belongs to a shipped explorer; choose another")
        _enlist(explorer, filename)
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
