"""For those who run the server: is it alive, and what does it do."""

from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from polyarm import __version__
from polyarm.errors import StorageError
from polyarm.service import bodies
from polyarm.service.guard import Reader
from polyarm.service.problems import FOR_EVERYBODY, document_problems
from polyarm.service.telemetry import Metrics
from polyarm.studies.state import ARCHIVED, STOPPED
from polyarm.studies.storage import RUNNING

router = APIRouter(tags=["operations"])


@router.get(
    "/healthz",
    responses={503: {"model": bodies.Health, "description": "the storage does not answer"}},
    openapi_extra=FOR_EVERYBODY,
)
def health(request: Request, response: Response) -> bodies.Health:
    """Say whether the server works; 503 while its storage does not."""
    word: Literal["ok", "failing"] = "ok"
    try:
        with request.app.state.shelf.storage.transaction() as connection:
            connection.exec_driver_sql("SELECT 1")
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
