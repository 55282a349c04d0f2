"""Two servers on one PostgreSQL under load, one of them killed: nothing acknowledged is lost, nothing counts twice."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import pytest

from polyarm import Client, InvalidInput, load_study, verify_study
from polyarm.service.access import create_token
from polyarm.studies.storage import open_storage
from service.load_driver import read_journal
from service.test_shutdown import clean_environment, serving
from studies.worlds import make_problem, outcome

TESTS = Path(__file__).parents[1]
DRIVER = str(TESTS / "service" / "load_driver.py")
#: Clients, in few processes: the machine that tests has few cores.
PROCESSES, CLIENTS_EACH = 4, 4
SECONDS = float(os.environ.get("POLYARM_LOAD_SECONDS", "20"))


def start_driver(number: int, token: str, folder: Path, urls: list[str]) -> subprocess.Popen[str]:
    first, clients = str(number * CLIENTS_EACH), str(CLIENTS_EACH)
    return subprocess.Popen(
        [sys.executable, DRIVER, "load", first, clients, str(SECONDS), str(folder), *urls],
        env={**clean_environment(), "PYTHONPATH": str(TESTS), "POLYARM_TOKEN": token},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_server_that_is_killed_under_load_loses_and_doubles_nothing(
    postgresql: str, tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    admin, worker = (create_token(open_storage(postgresql), scope, scope) for scope in ("admin", "write"))
    with ExitStack() as stack:
        # All clients are one caller here: with the usual limit it is the limit that would be measured.
        servers = [stack.enter_context(serving(tmp_path, postgresql, "--rate", "100000")) for _ in range(2)]
        urls = [server.wait_until_ready() for server in servers]
        with Client(urls, admin) as client:
            client.create_study(make_problem(r=0.001), name="load", seed=1)
        drivers = [stack.enter_context(start_driver(k, worker, tmp_path, urls)) for k in range(PROCESSES)]
        for driver in drivers:
            stack.callback(driver.kill)
        for server in servers:
            server.wait_until_said("path=/studies/1/tell status=200")  # all have work
        time.sleep(SECONDS / 2)
        servers[0].send(signal.SIGKILL)
        servers[0].wait()
        for driver in drivers:
            _, said = driver.communicate(timeout=SECONDS + 600)
            assert driver.returncode == 0, said[-2000:]
        assert "Traceback" not in servers[1].said

    journals = [read_journal(path) for path in sorted(tmp_path.glob("client-*"))]
    assert len(journals) == PROCESSES * CLIENTS_EACH
    given: dict[int, int] = {}
    for journal in journals:
        assert not given.keys() & journal.given.keys(), "a trial was handed out twice"
        given |= journal.given
    acknowledged = [number for journal in journals for number in journal.acknowledged]
    assert sorted(acknowledged) == sorted(given), "every client has told what it was given, once"

    study = load_study("load", postgresql)
    stored = {trial["id"]: trial for trial in study.trials()}
    assert stored.keys() == given.keys(), "a trial was handed out to nobody"
    for number, arm in given.items():
        assert (stored[number]["reward"], stored[number]["costs"]) == outcome(arm, number)
    status = study.status()
    assert (status.asked, status.told, status.pending, status.observed) == (len(given), len(given), 0, 0)
    result = verify_study(study)
    assert result.valid, result.faults

    seconds = np.concatenate([journal.seconds for journal in journals])
    middle, most, longest = np.quantile(seconds, [0.5, 0.99, 1.0]) * 1e3
    line = (
        f"{len(journals)} clients, {SECONDS:g} s: {len(seconds):,} requests ({len(seconds) / SECONDS:,.0f} a second), "
        f"{len(given):,} tells; latency p50 {middle:.0f} ms, p99 {most:.0f} ms, longest {longest:.0f} ms"
    )
    record_property("load", line)
    with capsys.disabled():
        print(f"\nload: {line}")


@pytest.mark.parametrize("failure", [httpx.ReadError("gone"), httpx.ConnectError("refused"), 502, 503])
def test_a_request_goes_on_at_the_next_server_under_its_key(failure: httpx.TransportError | int) -> None:
    seen: list[tuple[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.host, request.headers["Idempotency-Key"]))
        if request.url.host == "two":
            return httpx.Response(200, json={"trials": []})
        if isinstance(failure, int):
            return httpx.Response(failure, text="a proxy's page")
        raise failure

    with Client(["http://one", "http://two/"], transport=httpx.MockTransport(answer)) as client:
        client.request("POST", "/studies/1/ask", {"n": 1})
        client.request("POST", "/studies/1/ask", {"n": 1})
    assert [host for host, _ in seen] == ["one", "two", "two"], "it stays where it was answered"
    keys = [key for _, key in seen]
    assert keys[0] == keys[1] != keys[2]


def test_a_client_needs_a_server() -> None:
    with pytest.raises(InvalidInput, match="address of a server"):
        Client([])
