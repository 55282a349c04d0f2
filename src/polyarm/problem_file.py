"""Problems stated in a TOML file, with the fields of `Problem` as keys and `[[constraints]]` tables."""

import tomllib
from pathlib import Path
from typing import Any

from polyarm.environments.instances import instance_names, load_instance
from polyarm.errors import InvalidInput, unknown_name
from polyarm.problem import Constraint, Problem


def load_problem(path: str | Path) -> Problem:
    """Return a problem that is stated in a file or shipped.

    Args:
        path: A TOML file with the fields of `Problem`, an instance file (`file.toml`, or `file.toml:table` if it has
            several tables), or the name of a shipped instance.
    """
    text = str(path)
    if text in instance_names() or ".toml:" in text:
        return load_instance(text).problem
    if not text.endswith(".toml"):
        raise InvalidInput(f"{unknown_name('problem', text, instance_names())} A file's name must end in .toml.")
    content = _read(Path(path))
    if _is_instance(content):
        return load_instance(text).problem
    try:
        _require_known_keys(content)
        return Problem(**content)
    except InvalidInput as error:
        raise InvalidInput(f"{text}: {error}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"no such problem file: {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from None


def _is_instance(content: dict[str, Any]) -> bool:
    """Whether a file states a truth (mu, A, b), at its top or in tables of their own."""
    only_tables = bool(content) and all(isinstance(value, dict) for value in content.values())
    return only_tables or not content.keys().isdisjoint({"mu", "A", "b"})


def _require_known_keys(content: dict[str, Any]) -> None:
    for key in content:
        if key not in Problem.model_fields:
            raise unknown_name("key", key, Problem.model_fields)
    constraints = content.get("constraints", [])
    if not isinstance(constraints, list) or not all(isinstance(item, dict) for item in constraints):
        raise InvalidInput(f"constraints: expected [[constraints]] tables, got {constraints!r}")
    for number, table in enumerate(constraints, start=1):
        for key in table:
            if key not in Constraint.model_fields:
                raise unknown_name(f"key of constraint {table.get('name', number)!r}:", key, Constraint.model_fields)
