"""Server-sent events: all of the log, once, in order, whoever wrote it."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from polyarm import delete_study, load_study
from polyarm.service.access import create_token, revoke_token
from polyarm.studies.storage import open_storage
from service.conftest import Served, Start
from service.worlds import new_study


@contextmanager
def listen(server: Served, path: str, **headers: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Read a stream; comments are left out."""

    def messages(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
        fields: dict[str, Any] = {}
        for line in lines:
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                yield {"event": fields["event"], "id": int(fields["id"]), **json.loads(fields["data"])}
                fields = {}

    with httpx.stream("GET", server.url + path, headers=headers, timeout=30.0) as stream:
        assert stream.status_code == 200
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        yield messages(stream.iter_lines())


def test_a_stream_tells_what_others_write(storage: str, start: Start) -> None:
    first, second = start(storage), start(storage)
    first.post("/studies", new_study())
    with listen(first, "/studies/test/events?after=0") as messages:
        assert next(messages)["kind"] == "created"
        load_study("test", storage).ask(2)
        second.post("/studies/test/tell", {"tells": [{"trial": 2, "reward": 0.5}]})
        got = list(itertools.islice(messages, 3))
    assert [(m["seq"], m["event"]) for m in got] == [(2, "asked"), (3, "asked"), (4, "told")]
    assert got[2]["payload"]["reward"] == 0.5
    with listen(second, "/studies/test/events", **{"Last-Event-ID": "2"}) as messages:
        assert [m["seq"] for m in itertools.islice(messages, 2)] == [3, 4]


def test_a_stream_begins_now_unless_told_otherwise(server: Served) -> None:
    server.post("/studies", new_study())
    with listen(server, "/studies/test/events") as messages:
        server.post("/studies/test/ask", {"n": 1})
        assert next(messages)["kind"] == "asked"


def test_displays_are_told_once_of_many_events(server: Served) -> None:
    server.post("/studies", new_study())
    with listen(server, "/studies/test/changes") as messages:
        assert next(messages)["seq"] == 1
        for _ in range(30):
            server.post("/studies/test/ask", {"n": 10})
        told = 1
        while next(messages)["seq"] < 301:
            told += 1
    assert told < 15


def test_streams_have_a_limit_and_are_counted(sqlite: str, start: Start) -> None:
    server = start(sqlite, max_streams=1)
    server.post("/studies", new_study())
    with listen(server, "/studies/test/changes") as messages:
        next(messages)
        assert server.get("/studies/test/changes").status_code == 503
        assert "polyarm_streams 1.0" in server.get("/metrics").text
    end = time.monotonic() + 300.0
    while "polyarm_streams 0.0" not in server.get("/metrics").text:  # once it is noticed that the reader has gone
        assert time.monotonic() < end, "the stream is still counted"
        time.sleep(0.2)


def test_a_stream_ends_when_its_token_is_revoked(sqlite: str, start: Start) -> None:
    place = open_storage(sqlite)
    boss, reader = create_token(place, "boss", "admin"), create_token(place, "reader", "read")
    server = start(sqlite, boss)
    server.post("/studies", new_study())
    with listen(server, "/studies/test/events?after=0", Authorization=f"Bearer {reader}") as messages:
        assert next(messages)["kind"] == "created"
        revoke_token(place, "reader")
        time.sleep(3.0)
        server.post("/studies/test/ask", {"n": 1})
        assert list(messages) == []


def test_one_token_leaves_streams_to_others(sqlite: str, start: Start) -> None:
    place = open_storage(sqlite)
    boss, reader = create_token(place, "boss", "admin"), create_token(place, "reader", "read")
    server = start(sqlite, boss, max_streams=4)
    server.post("/studies", new_study())
    with listen(server, "/studies/test/changes", Authorization=f"Bearer {reader}") as messages:
        next(messages)
        assert server.get("/studies/test/changes", token=reader).status_code == 503
        with listen(server, "/studies/test/changes", Authorization=f"Bearer {boss}") as others:
            next(others)


def test_a_stream_of_no_study_is_refused_and_that_of_a_deleted_one_ends(server: Served) -> None:
    assert server.get("/studies/99/events").status_code == 404
    server.post("/studies", new_study())
    with listen(server, "/studies/test/events?after=0") as messages:
        next(messages)
        threading.Timer(0.1, delete_study, ("test", server.storage)).start()
        assert list(messages) == []
