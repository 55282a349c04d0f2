"""`--set key=value` arguments."""

from typing import Any

from polyarm.errors import InvalidInput


def parse_settings(arguments: list[str]) -> dict[str, Any]:
    """Return the settings by name; values stay text, the settings' own types convert and check them."""
    settings: dict[str, Any] = {}
    for argument in arguments:
        name, separator, value = argument.partition("=")
        name, value = name.strip(), value.strip()
        if not separator or not name or not value:
            raise InvalidInput(f"--set {argument!r}: expected KEY=VALUE, as in --set r=0.1")
        if name in settings:
            raise InvalidInput(f"--set {name}: given twice")
        settings[name] = None if value.lower() == "none" else value
    return settings
