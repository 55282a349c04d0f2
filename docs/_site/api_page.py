"""The reference of the Python names, grouped by the module that is their home."""

import inspect
from typing import Any, get_type_hints

from pydantic import BaseModel

import polyarm
from polyarm import templates

#: Beginnings of modules, in the order of the page. A name whose home begins with none of them comes last.
GROUPS = {
    "State a problem": ("polyarm.problem",),
    "Ready-made problems": ("polyarm.templates",),
    "Explore": ("polyarm.engine.session", "polyarm.rules"),
    "Certificates": ("polyarm.engine.certificate",),
    "Plan, simulate, bound": ("polyarm.experiments", "polyarm.environments.instances"),
    "Replay": ("polyarm.engine.replay", "polyarm.environments.replay"),
    "Studies": ("polyarm.studies",),
    "Client of the service": ("polyarm.service",),
    "Errors": ("polyarm.errors",),
}
#: What pydantic adds to every model.
_INHERITED = {"model_config", "model_post_init", "model_fields", "model_computed_fields"}


def write() -> str:
    """Return the page: a heading per group, a directive per name."""
    groups: dict[str, list[str]] = {title: [] for title in [*GROUPS, "Others"]}
    for name in polyarm.__all__:
        if not name.startswith("_"):
            thing = getattr(polyarm, name)
            _simplify_types(thing)
            groups[_group_of(thing)].append(name)
    _simplify_types(templates.Guardrail)
    parts = []
    for title, names in groups.items():
        if title == "Ready-made problems":
            parts += [f"## {title}", "```{eval-rst}", ".. automodule:: polyarm.templates\n   :members:\n", "```"]
        elif names:
            # What one calls first comes first: functions, then classes.
            names.sort(key=lambda name: (inspect.isclass(getattr(polyarm, name)) and title != "State a problem", name))
            parts += [f"## {title}", "```{eval-rst}", *map(_describe, names), "```"]
    return "\n\n".join(parts)


def _simplify_types(thing: Any) -> None:
    """Show the fields of a validated class by their types alone, without what pydantic checks about them."""
    if inspect.isclass(thing) and issubclass(thing, BaseModel):
        hints = get_type_hints(thing)
        signature = inspect.signature(thing)
        thing.__annotations__ = {name: hints[name] for name in thing.__annotations__}
        thing.__signature__ = signature.replace(
            parameters=[p.replace(annotation=hints.get(p.name, p.annotation)) for p in signature.parameters.values()]
        )


def _group_of(thing: Any) -> str:
    home = inspect.getmodule(thing)
    for title, beginnings in GROUPS.items():
        if home is not None and home.__name__.startswith(beginnings):
            return title
    return "Others"


def _describe(name: str) -> str:
    thing = getattr(polyarm, name)
    if not inspect.isclass(thing):
        return f".. autofunction:: polyarm.{name}\n"
    if issubclass(thing, Exception):
        return f".. autoexception:: polyarm.{name}\n   :show-inheritance:\n"
    return f".. autoclass:: polyarm.{name}\n   :members:\n   :undoc-members:\n"


def skip(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what belongs to pydantic."""
    return True if name in _INHERITED else None
