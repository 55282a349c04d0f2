"""What a server says of itself: its health, a log that programs can read, and metrics for Prometheus."""

import json
import logging
import secrets
import time
from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyarm import __version__
from polyarm.errors import StorageError
from polyarm.service import bodies
from polyarm.service.guard import Reader
from polyarm.service.problems import FOR_EVERYBODY, document_problems
from polyarm.studies.projection import ARCHIVED, RUNNING, STOPPED
from polyarm.studies.trial import write_time

router = APIRouter(tags=["operations"])

_log = logging.getLogger("polyarm.service")
#: What every log record has; the rest is what was said with it.
_USUAL = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
#: Methods that are counted by name: a caller could make up any number of others.
_METHODS = {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}


class JsonLines(logging.Formatter):
    """One JSON object per record: at, level, logger, message, and whatever came with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        said = {key: value for key, value in vars(record).items() if key not in _USUAL}
        line: dict[str, Any] = {
            "at": write_time(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **said,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class PlainLines(logging.Formatter):
    """One line per record, for people: the message and whatever came with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        said = [f"{key}={_one_line(value)}" for key, value in vars(record).items() if key not in _USUAL]
        line = " ".join([f"{self.formatTime(record, '%H:%M:%S')} {record.getMessage()}", *said])
        return line if not record.exc_info else f"{line}\n{self.formatException(record.exc_info)}"


def _one_line(value: Any) -> str:
    """Escape what a caller sent, so that it cannot start a line of its own."""
    text = str(value)
    return text if text.isprintable() else ascii(text)


def set_up_logs(as_json: bool, level: str) -> None:
    """Send what polyarm and uvicorn log to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else PlainLines())
    for name in ("polyarm", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())


class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "polyarm_requests", "Requests answered", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "polyarm_request_seconds", "Time to the answer", ("method", "route"), registry=self.registry
        )
        self.trials = Counter(
            "polyarm_trials",
            "Trials asked, told or observed",
            ("what",),
            registry=self.registry,
        )
        self.streams = Gauge("polyarm_streams", "Open event streams", registry=self.registry)
        self.studies = Gauge("polyarm_studies", "Studies by lifecycle", ("lifecycle",), registry=self.registry)
        self.ready = Gauge("polyarm_ready", "Whether the kernels are loaded", registry=self.registry)


class Telemetry:
    """Logs and counts every request; its answer carries its number."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        number, begun, status, seconds = secrets.token_hex(8), time.perf_counter(), 500, 0.0
        scope.setdefault("state", {})

        async def note(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                status, seconds = message["status"], time.perf_counter() - begun  # a stream goes on for hours
                message["headers"] = [*message["headers"], (b"x-request-id", number.encode())]
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(method, route, status).inc()
            self._metrics.seconds.labels(method, route).observe(seconds)
            _log.info(
                "request",
                extra={
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "ms": round(1e3 * seconds, 2),
                    "caller": scope["state"].get("caller"),
                    "request_id": number,
                },
            )


@router.get(
    "/healthz",
    responses={503: {"model": bodies.Health, "description": "the storage does not answer"}},
    openapi_extra=FOR_EVERYBODY,
)
def health(request: Request, response: Response) -> bodies.Health:
    """Say whether the server works; 503 while its storage does not answer."""
    word: Literal["ok", "failing"] = "ok"
    try:
        request.app.state.shelf.storage.check()
    except StorageError:
        word = "failing"
        response.status_code = 503
    return bodies.Health(status=word, storage=word, ready=request.app.state.ready.is_set(), version=__version__)


@router.get(
    "/metrics",
    response_class=Response,
    responses=document_problems(401, 403, 429, 503)
    | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request, caller: Reader) -> Response:
    """Metrics of this server, for Prometheus."""
    counted: Metrics = request.app.state.metrics
    lifecycles = [row.lifecycle for row in request.app.state.shelf.storage.list_studies()]
    for lifecycle in (RUNNING, STOPPED, ARCHIVED):
        counted.studies.labels(lifecycle).set(lifecycles.count(lifecycle))
    counted.streams.set(request.app.state.streams.count)
    counted.ready.set(request.app.state.ready.is_set())
    return Response(generate_latest(counted.registry), media_type=CONTENT_TYPE_LATEST)
