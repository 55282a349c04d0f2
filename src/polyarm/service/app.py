"""The web application, put together."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.responses import FileResponse
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyarm import __version__
from polyarm.service import front_api, studies_api, telemetry
from polyarm.service.bodies import ProblemDocument
from polyarm.service.guard import CSRF_HEADER, Guard
from polyarm.service.limits import BodyLimit
from polyarm.service.problems import Surprises, add_handlers
from polyarm.service.shelf import Shelf
from polyarm.service.streams import Streams
from polyarm.service.telemetry import Metrics, Telemetry
from polyarm.studies.storage import open_storage

#: Bytes of a request to sign in; anybody may send one.
_SIGN_IN_BODY = 4_096
#: Threads for reads that may take seconds.
_LONG_READS = 4

STATIC = Path(__file__).parent / "static"

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'; object-src 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class ServiceConfig:
    """Where studies live, who may come in, and how much at once.

    Args:
        storage: The address of the storage.
        loopback: Whether only its own machine reaches the server; it then needs no token until one is created.
        rate: Requests of one caller a second.
        burst: Requests of one caller at once.
        max_body: Bytes of one request.
        max_streams: Open event streams.
        cors_origins: Pages of other hosts that may use the API from a browser, with a token.
        trusted_proxies: Proxies that may state a caller's address and scheme.
    """

    storage: str
    loopback: bool = True
    rate: float = 500.0
    burst: float = 1_000.0
    max_body: int = 8 * 2**20
    max_streams: int = 200
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()


def make_app(config: ServiceConfig, stopping: Callable[[], bool] = lambda: False) -> FastAPI:
    """Return the application; `stopping` tells open streams when to end."""
    storage = open_storage(config.storage)
    app = FastAPI(
        title="polyarm",
        version=__version__,
        description="Which mix of options earns the most while staying inside budgets that you can only measure?",
        docs_url=None,  # these pages would load their scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.shelf = Shelf(storage)
    app.state.guard = Guard(storage, config.loopback, config.rate, config.burst)
    app.state.metrics = Metrics()
    app.state.streams = Streams(storage, config.max_streams, stopping)
    app.state.ready = threading.Event()
    app.state.long_reads = CapacityLimiter(_LONG_READS)
    for api in (studies_api, front_api, telemetry):
        app.include_router(api.router)
    add_handlers(app)
    _describe_problems(app)

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Surprises)
    app.add_middleware(BodyLimit, most=config.max_body, less={"/session": _SIGN_IN_BODY})
    if config.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", CSRF_HEADER],
        )
    app.add_middleware(_SecurityHeaders)
    app.add_middleware(Telemetry, metrics=app.state.metrics)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.shelf.storage.close()


def _describe_problems(app: FastAPI) -> None:
    """Add the problem document, which endpoints refer to, to the description of the API."""
    describe = app.openapi

    def described() -> dict[str, object]:
        schema = describe()
        parts: dict[str, dict[str, object]] = schema.setdefault("components", {})
        parts.setdefault("schemas", {})["ProblemDocument"] = _problem_schema()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        return schema

    app.openapi = described  # type: ignore[method-assign]


def _problem_schema() -> dict[str, object]:
    schema = ProblemDocument.model_json_schema()
    fault = schema.pop("$defs")["Fault"]
    schema["properties"]["errors"] = {"type": "array", "items": fault}
    return schema


class _SecurityHeaders:
    """Adds the headers that make browsers isolate the page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        await self._app(scope, receive, add if scope["type"] == "http" else send)
