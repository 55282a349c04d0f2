"""How the suite is divided between processes (`make test` runs one per core), and what no test leaves behind."""

from collections.abc import Iterator

import pytest

from polyarm.rules.registry import EXPLORERS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one explorer together, and of one file otherwise: what they compile is compiled once."""
    for item in items:
        params = item.callspec.params.values() if hasattr(item, "callspec") else ()
        explorers = [value for value in params if isinstance(value, str) and value in EXPLORERS]
        item.add_marker(pytest.mark.xdist_group((explorers or [item.nodeid.partition("::")[0]])[0]))


@pytest.fixture(autouse=True)
def _forget_explorers() -> Iterator[None]:
    """Forget the explorers that a test loaded from files: others list the known ones."""
    before = dict(EXPLORERS)
    yield
    EXPLORERS.clear()
    EXPLORERS.update(before)
