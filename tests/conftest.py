"""How the suite is divided between processes (`make test` runs one per core)."""

import pytest

from polyarm.explorers.registry import EXPLORERS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one explorer together, and of one file otherwise: what they compile is compiled once."""
    for item in items:
        params = item.callspec.params.values() if hasattr(item, "callspec") else ()
        explorers = [value for value in params if isinstance(value, str) and value in EXPLORERS]
        item.add_marker(pytest.mark.xdist_group((explorers or [item.nodeid.partition("::")[0]])[0]))
