"""Health, metrics and logs."""

import json
import logging
from typing import Any

import pytest

from polyarm.errors import StorageError
from polyarm.service.access import create_token
from polyarm.service.telemetry import JsonLines, PlainLines
from polyarm.studies.sql.database import Database
from polyarm.studies.sql.storage import SqlStorage
from polyarm.studies.storage import open_storage
from service.conftest import Served
from service.worlds import new_study


def test_health_says_whether_the_storage_answers(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = server.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")

    def fail(*_: Any, **__: Any) -> Any:
        raise StorageError("gone")

    monkeypatch.setattr(Database, "transaction", fail)
    answer = server.get("/healthz")
    assert (answer.status_code, answer.json()["storage"]) == (503, "failing")
    refused = server.get("/studies")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert refused.json()["title"] == "The storage failed"
    assert "gone" not in refused.text, "what is wrong with it is for the log"


def test_an_error_of_our_own_is_a_problem_document_without_details(
    server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(SqlStorage, "list_studies", fail)
    answer = server.get("/studies")
    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "X-Request-ID" in answer.headers
    assert "secret detail" not in answer.text
    assert "secret detail" in caplog.text


def test_metrics_count_requests_and_trials(server: Served) -> None:
    server.post("/studies", new_study())
    server.post("/studies/test/ask", {"n": 3})
    told = {"tells": [{"trial": 1, "reward": 0.5}, {"trial": 2, "reward": 0.5}]}
    server.post("/studies/test/tell", told)
    server.post("/studies/test/tell", told)
    text = server.get("/metrics").text
    for line in (
        'polyarm_trials_total{what="asked"} 3.0',
        'polyarm_trials_total{what="partial"} 2.0',
        'polyarm_trials_total{what="duplicate"} 2.0',
        'polyarm_requests_total{method="POST",route="/studies/{study}/tell",status="200"} 2.0',
        'polyarm_studies{lifecycle="running"} 1.0',
    ):
        assert line in text


def test_the_log_says_who_did_what_and_keeps_secrets(locked_server: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "polyarm.service")
    other = create_token(open_storage(locked_server.storage), "robot", "read")
    answer = locked_server.get("/studies", token=other)
    locked_server.get("/studies", token="pa_wrong-secret")
    locked_server.post("/session", {"token": locked_server.token})
    records = [record for record in caplog.records if record.name == "polyarm.service" and record.message == "request"]
    lines = [json.loads(JsonLines().format(record)) for record in records]
    assert [(line["path"], line["status"], line["caller"]) for line in lines] == [
        ("/studies", 200, "robot"),
        ("/studies", 401, None),
        ("/session", 200, None),
    ]
    assert lines[0]["request_id"] == answer.headers["X-Request-ID"]
    printed = caplog.text + "".join(map(JsonLines().format, caplog.records)) + json.dumps(lines)
    for secret in (other, locked_server.token, "wrong-secret"):
        assert secret is not None
        assert secret not in printed


def test_a_path_cannot_forge_a_line_of_the_log() -> None:
    record = logging.makeLogRecord({"msg": "request", "path": "/x\n12:00:00 request path=/forged"})
    assert "\n" not in PlainLines().format(record)
    assert "\n" not in JsonLines().format(record)
