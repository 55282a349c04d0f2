"""Servers to test: in this process, on a free port of loopback."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from polyarm import Client
from polyarm.service.access import create_token
from polyarm.service.server import Server, make_config
from polyarm.studies.storage import open_storage
from service.worlds import new_study
from studies.conftest import postgres, postgresql, sqlite, storage  # noqa: F401  (fixtures)


@dataclass(frozen=True)
class Served:
    """A running server: its address, its storage, and an admin token if it has any."""

    url: str
    storage: str
    token: str | None = None

    def client(self, **options: Any) -> Client:
        return Client(self.url, self.token, **options)

    def request(self, method: str, path: str, token: str | None = None, **options: Any) -> httpx.Response:
        """Send one request, with this server's token or another."""
        secret = token or self.token
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        headers |= options.pop("headers", {})
        return httpx.request(method, self.url + path, headers=headers, timeout=300.0, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.request("POST", path, json=json, **options)


Start = Callable[..., Served]


@contextmanager
def starting() -> Iterator[Start]:
    """Starts servers, which end with the block."""
    running: list[tuple[Server, threading.Thread]] = []

    def begin(url: str, token: str | None = None, host: str = "127.0.0.1", **limits: Any) -> Served:
        server = Server(make_config(url, host, **limits), host, 0)
        thread = threading.Thread(target=server.run)
        thread.start()
        running.append((server, thread))
        server.join()  # until the kernels are there: compiling them is not what is tested
        return Served(server.url, url, token)

    yield begin
    for server, _ in running:
        server.stop()
    for _, thread in running:
        thread.join(30.0)
        assert not thread.is_alive(), "a server did not stop"


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers, which end with the test."""
    with starting() as begin:
        yield begin


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for tests that change nothing, with a study called test."""
    with starting() as begin:
        server = begin(f"sqlite:///{tmp_path_factory.mktemp('shared')}/service.db")
        assert server.post("/studies", new_study()).status_code == 201
        yield server


@pytest.fixture
def server(start: Start, tmp_path: Path) -> Served:
    """A server without tokens, on SQLite."""
    return start(f"sqlite:///{tmp_path}/service.db")


@pytest.fixture
def locked_server(start: Start, tmp_path: Path) -> Served:
    """A server that wants tokens, on SQLite, and one of scope admin."""
    url = f"sqlite:///{tmp_path}/locked.db"
    return start(url, create_token(open_storage(url), "admin", "admin"))
