"""Options of the form KEY=VALUE."""

from collections.abc import Sequence
from typing import Any

from polyarm.errors import InvalidInput

_EXAMPLES = {"--set": "r=0.1", "--cost": "price=0.3", "--control": "small=0.5,large=0.5"}


def parse_settings(arguments: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """Return the values by name, as text: whoever uses them converts and checks them."""
    settings: dict[str, Any] = {}
    for argument in arguments:
        name, separator, value = argument.partition("=")
        name, value = name.strip(), value.strip()
        if not separator or not name or not value:
            raise InvalidInput(f"{option} {argument!r}: expected KEY=VALUE, as in {option} {_EXAMPLES[option]}")
        if name in settings:
            raise InvalidInput(f"{option} {name}: given twice")
        settings[name] = None if value.lower() == "none" else value
    return settings
