"""A server as a process: it starts or says why not, keeps secrets out of its log, and ends when it is told to."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from polyarm import Client, load_study, verify_study
from polyarm.service.access import create_token
from polyarm.service.server import _bind
from polyarm.studies.storage import open_storage
from studies.worlds import make_problem, outcome

#: Seconds that anything may take before a test gives up; nothing is expected to take that long.
PATIENCE = 900.0


class Program:
    """`polyarm serve` in a process of its own; what it says on standard error goes to a file."""

    def __init__(self, log: Path, *options: str) -> None:
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "polyarm", "serve", *options], stderr=file, stdout=file, env=clean_environment()
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def url(self) -> str:
        """Where it listens, as soon as it says so."""
        found = self._wait_for(lambda: re.search(r" at (http://\S+) ", self.said))
        assert found is not None
        return str(found[1])

    def wait_until_ready(self) -> str:
        """Wait for the kernels, which may have to be compiled; returns the address."""
        url = self.url
        self._wait_for(lambda: is_ready(url))
        return url

    def wait_until_said(self, text: str) -> None:
        self._wait_for(lambda: text in self.said)

    def _wait_for(self, condition: Any) -> Any:
        end = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert self._process.poll() is None, f"it ended with code {self._process.returncode}: {self.said}"
            assert time.monotonic() < end, f"waited in vain: {self.said}"
            time.sleep(0.05)
        return found

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for its end; returns its exit code."""
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)


def is_ready(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/healthz", timeout=PATIENCE).json()["ready"])
    except httpx.TransportError:
        return False


def clean_environment() -> dict[str, str]:
    """This process's environment, without what would set up a server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("POLYARM")}


@contextmanager
def serving(folder: Path, storage: str, *options: str) -> Iterator[Program]:
    """Run a server, which is gone with the block."""
    number = len(list(folder.glob("server-*.log")))
    program = Program(folder / f"server-{number}.log", "--storage", storage, "--port", "0", *options)
    try:
        yield program
    finally:
        program.kill()


def refused(*options: str) -> str:
    """Run a server that cannot start; returns what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "polyarm", "serve", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=clean_environment(),
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    return done.stderr


class Teller(threading.Thread):
    """Tells a trial after the other until the server is gone, and notes which were answered."""

    def __init__(self, url: str, trials: list[tuple[int, int]]) -> None:
        super().__init__()
        self._url, self._trials = url, trials
        self.answered: list[int] = []
        self.odd: list[str] = []

    def run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=PATIENCE) as http:
            for number, arm in self._trials:
                reward, costs = outcome(arm, number)
                tell = {"trial": number, "reward": reward, "costs": costs}
                try:
                    answer = http.post("/studies/1/tell", json={"tells": [tell]})
                except httpx.TransportError:
                    return
                if answer.status_code != 200:
                    self.odd.append(answer.text)
                    return
                self.answered.append(number)


def test_what_was_answered_before_the_end_is_stored_and_everything_ends(sqlite: str, tmp_path: Path) -> None:
    with serving(tmp_path, sqlite) as server, ExitStack() as stack:
        url = server.wait_until_ready()
        client = stack.enter_context(Client(url))
        study = client.create_study(make_problem(r=0.001), name="end", seed=1)
        trials = [(trial.id, trial.arm_index) for trial in study.ask(6_000)]
        streams = [
            stack.enter_context(stack.enter_context(httpx.Client(timeout=PATIENCE)).stream("GET", f"{url}/{path}"))
            for path in ("studies/1/events", "studies/1/changes")
        ]
        assert [stream.status_code for stream in streams] == [200, 200]
        tellers = [Teller(url, trials[k::8]) for k in range(8)]
        for teller in tellers:
            teller.start()
        while sum(len(teller.answered) for teller in tellers) < 200:
            assert all(teller.is_alive() for teller in tellers), server.said
            time.sleep(0.01)
        server.send(signal.SIGTERM)
        texts = ["".join(stream.iter_text()) for stream in streams]  # ends only when the stream does
        code = server.wait()
        for teller in tellers:
            teller.join()
        assert code in (0, -signal.SIGTERM)
        assert "Traceback" not in server.said, server.said
        assert "event: told" in texts[0]
    assert [teller.odd for teller in tellers] == [[]] * 8, "a request is answered, or not taken"
    answered = [number for teller in tellers for number in teller.answered]
    assert 200 <= len(answered) < len(trials)
    arms = dict(trials)
    stored = {trial["id"]: trial for trial in load_study("end", sqlite).trials()}
    for number in answered:
        assert (stored[number]["reward"], stored[number]["costs"]) == outcome(arms[number], number)
    assert load_study("end", sqlite).status().told == len(answered), "what was under way was finished and answered"
    result = verify_study(load_study("end", sqlite))
    assert result.valid, result.faults


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_does_nothing_ends_at_once(number: signal.Signals, sqlite: str, tmp_path: Path) -> None:
    with serving(tmp_path, sqlite) as server:
        assert httpx.get(f"{server.url}/healthz").status_code == 200  # ready or not
        server.send(number)
        assert server.wait() in (0, -number)
        assert "Traceback" not in server.said, server.said


def test_a_port_that_is_taken_is_one_line(sqlite: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("--storage", sqlite, "--port", str(port))
    assert said.count("\n") == 1, said
    assert f"port {port}" in said
    assert "choose another --port" in said


def test_without_a_token_nobody_else_is_let_in(sqlite: str) -> None:
    said = refused("--storage", sqlite, "--host", "0.0.0.0", "--port", "0")
    assert said.count("\n") == 1, said
    assert "polyarm token create" in said


def test_the_log_is_json_and_has_no_secrets(sqlite: str, tmp_path: Path) -> None:
    token = create_token(open_storage(sqlite), "admin", "admin")
    wrong = "pa_this-is-not-a-token-but-somebody-tries"
    with serving(tmp_path, sqlite, "--log-json") as server:
        url = server.url
        with httpx.Client(base_url=url, timeout=PATIENCE) as http:
            right = {"Authorization": f"Bearer {token}"}
            assert http.get("/studies", headers=right).status_code == 200
            assert http.get("/studies/nobody", headers=right).status_code == 404
            assert http.get("/studies", headers={"Authorization": f"Bearer {wrong}"}).status_code == 401
            assert http.post("/session", json={"token": wrong}).status_code == 401
            signed_in = http.post("/session", json={"token": token})
            assert signed_in.status_code == 200
            secrets = [token, wrong, http.cookies["polyarm_login"], signed_in.json()["csrf"]]
            assert http.get("/studies").status_code == 200, "by cookie"
            # Where tokens do not belong, but people put them:
            assert http.get("/studies", params={"token": token}).status_code == 200
            assert http.post("/session", json={"token": [token]}).status_code == 422
        server.send(signal.SIGTERM)
        server.wait()
        lines = [line for line in server.said.splitlines() if line.startswith("{")]
        spoken = [line for line in server.said.splitlines() if not line.startswith("{")]
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    assert all({"at", "level", "logger", "message"} <= record.keys() for record in records)
    requests = [record for record in records if record["message"] == "request"]
    assert [(one["method"], one["path"], one["status"]) for one in requests[:3]] == [
        ("GET", "/studies", 200),
        ("GET", "/studies/nobody", 404),
        ("GET", "/studies", 401),
    ]
    assert requests[0]["caller"] == "admin"
    assert all(line.startswith("polyarm serves ") for line in spoken), spoken
    for secret in secrets:
        assert secret not in server.said


def test_servers_that_start_together_on_an_empty_database_all_come_up(postgresql: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(tmp_path, postgresql)) for _ in range(3)]
        for server in servers:
            assert httpx.get(f"{server.url}/studies", timeout=PATIENCE).json() == {"studies": []}
            assert "Traceback" not in server.said, server.said


def test_an_answer_is_sent_at_once() -> None:
    """With Nagle's algorithm every answer takes 40 ms: its body waits until its head was confirmed."""
    with _bind("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
