"""Every argument of a public function, method or class has a line of its own in the docstring."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import polyarm
from polyarm import templates

#: What users construct themselves; the other public classes are handed to them.
CONSTRUCTED = ("Breaker", "Client", "Constraint", "Explorer", "Instance", "Problem", "Session")


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in polyarm.__all__:
        found = getattr(polyarm, name)
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found):
            if name in CONSTRUCTED:
                yield name, found
            for method, attribute in vars(found).items():
                function = getattr(attribute, "__func__", attribute)  # of a class method
                if not method.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{method}", function
    yield "templates.Guardrail", templates.Guardrail
    for name, found in vars(templates).items():
        if not name.startswith("_") and inspect.isfunction(found) and found.__module__ == templates.__name__:
            yield f"templates.{name}", found


CALLABLES = dict(public_callables())


def undocumented(function: Callable[..., Any]) -> list[str]:
    """The arguments without a line under `Args:`."""
    section = (inspect.getdoc(function) or "").partition("\nArgs:\n")[2]
    named = set(re.findall(r"^ {4}(\w+): \S", section, re.MULTILINE))
    return [name for name in inspect.signature(function).parameters if name not in {"self", "cls", *named}]


@pytest.mark.parametrize("name", CALLABLES)
def test_the_docstring_has_a_line_for_each_argument(name: str) -> None:
    assert not undocumented(CALLABLES[name])


def test_the_list_of_callables_is_not_empty() -> None:
    assert {"simulate", "Study.tell", "Client", "Problem.with_guess"} <= set(CALLABLES)
    assert any(name.startswith("templates.") for name in CALLABLES)


def test_a_missing_line_is_found() -> None:
    def documented(first: int, second: int) -> None:
        """Do it.

        Args:
            first: A number.
        """

    assert undocumented(documented) == ["second"]
