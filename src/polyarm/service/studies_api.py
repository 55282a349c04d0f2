"""The API of studies."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from polyarm.errors import Conflict
from polyarm.rules.registry import find_explorer
from polyarm.service import bodies
from polyarm.service.guard import Administrator, Guard, Reader, Worker
from polyarm.service.problems import document_problems
from polyarm.service.shelf import Shelf
from polyarm.service.telemetry import Metrics
from polyarm.studies.manage import add_study, describe_row
from polyarm.studies.statement import state_study
from polyarm.studies.study import Study

router = APIRouter(prefix="/studies", tags=["studies"], responses=document_problems(401, 403, 404, 422, 429, 503))

_CHANGES = document_problems(400, 409, 413)
_TYPES = {"csv": "text/csv", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
_SHAPES = {"application/json": "object"}

T = TypeVar("T")

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Any text of your own. A repeated key returns the stored answer and changes nothing, for two days; "
        "use a new key for every new request.",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
    ),
]


def _shelf(request: Request) -> Shelf:
    shelf: Shelf = request.app.state.shelf
    return shelf


def _guard(request: Request) -> Guard:
    guard: Guard = request.app.state.guard
    return guard


def _metrics(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


def _describe(study: Study) -> bodies.StudyBody:
    status = study.status()
    return bodies.StudyBody(
        id=study.id,
        name=study.name,
        created_at=status.created_at,
        statement=study.statement.document(),
        status=status,
    )


@router.get("")
def list_studies(request: Request, caller: Reader) -> bodies.StudyList:
    """List the studies by name."""
    rows = _shelf(request).storage.list_studies()
    return bodies.StudyList(studies=[bodies.Listed(id=row.id, **describe_row(row)) for row in rows])


@router.post("", status_code=201, responses=_CHANGES)
def create(request: Request, caller: Administrator, new: bodies.NewStudy) -> bodies.StudyBody:
    """Create a study."""
    shelf = _shelf(request)
    find_explorer(new.explorer)  # by name only: a file of the server's is none of a caller's business
    statement = state_study(
        new.problem, new.explorer, new.settings, seed=new.seed, lease=new.lease, breaker=new.breaker
    )
    study = add_study(shelf.storage, new.name, statement)
    return _describe(shelf.open(shelf.storage.read_study(study.id)))


@router.get("/{study}")
def read(request: Request, caller: Reader, study: str) -> bodies.StudyBody:
    """Return a study, by its number or its name: its statement and its status."""
    return _describe(_shelf(request).find(study))


@router.post("/{study}/stop", responses=_CHANGES)
def stop(request: Request, caller: Administrator, study: str, why: bodies.Stop, key: Key = None) -> bodies.StudyBody:
    """Hand out no more trials until it is resumed; outcomes are still taken."""
    found = _shelf(request).find(study)
    found.stop(why.reason, key)
    return _describe(found)


@router.post("/{study}/resume", responses=_CHANGES)
def resume(request: Request, caller: Administrator, study: str, key: Key = None) -> bodies.StudyBody:
    """Continue after a stop or an archiving; if the study is running, acknowledge the breaker's alarm."""
    found = _shelf(request).find(study)
    found.resume(key)
    return _describe(found)


@router.post("/{study}/archive", responses=_CHANGES)
def archive(request: Request, caller: Administrator, study: str, key: Key = None) -> bodies.StudyBody:
    """Close a study: no trial, no outcome, until it is resumed."""
    found = _shelf(request).find(study)
    found.archive(key)
    return _describe(found)


@router.post("/{study}/ask", responses=_CHANGES)
def ask(request: Request, caller: Worker, study: str, wanted: bodies.Ask, key: Key = None) -> bodies.Asked:
    """Hand out trials: pull each one's arm and tell what it gave."""
    trials = _shelf(request).find(study).ask(wanted.n, key)
    _metrics(request).trials.labels("asked").inc(len(trials))
    return bodies.Asked(trials=[bodies.TrialBody(**trial.document()) for trial in trials])


@router.post("/{study}/tell", responses=_CHANGES)
def tell(request: Request, caller: Worker, study: str, told: bodies.Tells, key: Key = None) -> bodies.ToldAll:
    """Record outcomes, whole or in parts: all of them, or none when one is wrong. The same again changes nothing."""
    tells = [(one.trial, one.reward, one.costs) for one in told.tells]
    results = _shelf(request).find(study).tell_many(tells, key)
    for result in results:
        _metrics(request).trials.labels(result.status).inc()
    return bodies.ToldAll(results=[bodies.ToldBody(**result.document()) for result in results])


@router.post("/{study}/observe", responses=_CHANGES)
def observe(
    request: Request, caller: Worker, study: str, seen: bodies.Observations, key: Key = None
) -> bodies.Observed:
    """Record outcomes that nobody asked for; the certificate will say so. Give a key: the same again counts again."""
    rows = [(one.arm, one.reward, one.costs) for one in seen.outcomes]
    trials = _shelf(request).find(study).observe_many(rows, key)
    _metrics(request).trials.labels("observed").inc(len(trials))
    return bodies.Observed(trials=trials)


async def _in_peace(request: Request, work: Callable[[], T]) -> T:
    """Run something long in one of a few threads of its own, so that asks and tells need not wait."""
    limiter: CapacityLimiter = request.app.state.long_reads
    return await to_thread.run_sync(work, limiter=limiter)


@router.get("/{study}/recommendation")
async def recommend(request: Request, caller: Reader, study: str) -> bodies.RecommendationBody:
    """Return the mix to choose now, and what is proved of it; `kind` is none while there is no mix."""
    view = await _in_peace(request, lambda: _shelf(request).view(study))
    status = view["status"]
    return bodies.RecommendationBody(
        study=view["study"]["name"], steps=status["used"], stopped=status["stopped"], **view["mix"]
    )


@router.get("/{study}/certificate", responses=document_problems(409))
async def certificate(request: Request, caller: Reader, study: str) -> dict[str, Any]:
    """Return what was proved, with every number needed to check it: `polyarm verify` does."""

    def work() -> dict[str, Any]:
        found = _shelf(request).find(study)
        if not found.statement.plan().settings.stops_certified():
            raise Conflict(
                f"explorer {found.statement.explorer!r} stops by a rule of its own, which proves no certificate"
            )
        return found.certificate().document

    return await _in_peace(request, work)


@router.get("/{study}/view", response_class=JSONResponse)
async def view(request: Request, caller: Reader, study: str) -> JSONResponse:
    """Return everything that the study's page shows, at one moment."""
    return JSONResponse(await _in_peace(request, lambda: _shelf(request).view(study)))


@router.get("/{study}/log")
def log(request: Request, caller: Reader, study: str, last: Annotated[int, Query(ge=1, le=1_000)] = 50) -> bodies.Log:
    """Return the latest entries of the log, the oldest first."""
    shelf = _shelf(request)
    row = shelf.find_row(study)
    found = shelf.storage.events(row.id, row.last_seq - last, row.last_seq)
    return bodies.Log(events=[bodies.EventBody(**event.read()._asdict()) for event in found])


_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


@router.get("/{study}/events", response_class=StreamingResponse, responses=_STREAM)
async def events(
    request: Request,
    caller: Reader,
    study: str,
    after: Annotated[int | None, Query(ge=0, lt=2**62, description="Send what is beyond this event; 0: all.")] = None,
    last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,18}$")] = None,
) -> StreamingResponse:
    """Stream the log: every event from now on, or beyond `after`, or after the last one that a reader has seen."""
    row = await run_in_threadpool(_shelf(request).find_row, study)
    seen = int(last_event_id) if last_event_id is not None else after
    stream: StreamingResponse = request.app.state.streams.events(
        row.id, row.last_seq if seen is None else seen, caller, lambda: _guard(request).still_admits(request)
    )
    return stream


@router.get("/{study}/changes", response_class=StreamingResponse, responses=_STREAM)
async def changes(request: Request, caller: Reader, study: str) -> StreamingResponse:
    """Stream, at most once a second, that something has happened: for displays, which then read `view`."""
    row = await run_in_threadpool(_shelf(request).find_row, study)
    stream: StreamingResponse = request.app.state.streams.changes(
        row.id, caller, lambda: _guard(request).still_admits(request)
    )
    return stream


@router.get(
    "/{study}/export",
    response_class=FileResponse,
    responses={200: {"content": {kind: {"schema": {"type": _SHAPES.get(kind, "string")}} for kind in _TYPES.values()}}},
)
def export(
    request: Request, caller: Reader, study: str, format: Literal["csv", "json", "parquet"] = "csv"
) -> FileResponse:
    """Download the trials (csv, parquet) or the whole study, log and all (json)."""
    found = _shelf(request).find(study)
    folder = tempfile.TemporaryDirectory(prefix="polyarm-")
    path = Path(folder.name) / f"export.{format}"
    try:
        found.export(path)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path, media_type=_TYPES[format], filename=f"{found.name}.{format}", background=BackgroundTask(folder.cleanup)
    )
