"""docs/errata.md and the script that writes it cannot drift apart, and the page names only settings that exist."""

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, get_args

import pytest

from polyarm.rules.registry import EXPLORERS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "errata.md").read_text("utf-8")


def load_script() -> Any:
    spec = spec_from_file_location("measure_errata", ROOT / "benchmarks" / "measure_errata.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_has_a_section_and_a_row_per_measurement(page: str) -> None:
    script = load_script()
    titles = [script.heading(measure) for measure in script.MEASUREMENTS]
    assert re.findall(r"^## \d+\. (.*)$", page, re.MULTILINE) == titles
    assert re.findall(r"^\| \d+ \| ([^|]*) \| [^|]* \|$", page, re.MULTILINE) == titles


def allowed_values() -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for explorer in EXPLORERS.values():
        for name, field in explorer.settings.model_fields.items():
            values.setdefault(name, set()).update(map(str, get_args(field.annotation)))
    return values


def test_every_setting_named_on_the_page_exists(page: str) -> None:
    named = re.findall(r"`(?:[^`\n]*--set )?(\w+)=([\w-]+)`", page)
    assert named
    allowed = allowed_values()
    assert [pair for pair in named if pair[1] not in allowed.get(pair[0], set())] == []


def test_prose_is_wrapped_for_reading_as_plain_text(page: str) -> None:
    assert [line for line in page.splitlines() if len(line) > 120 and not line.startswith("|")] == []
