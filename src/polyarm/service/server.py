"""Runs the service until it is told to stop."""

import logging
import socket
import threading

import uvicorn

from polyarm.engine.region import find_intervals, find_regions
from polyarm.engine.session import make_explorer
from polyarm.errors import InvalidInput
from polyarm.problem import Constraint, Problem
from polyarm.service.access import has_tokens, has_usable_tokens
from polyarm.service.app import ServiceConfig, make_app
from polyarm.service.guard import is_loopback
from polyarm.studies.storage import open_storage

#: Seconds that requests under way get to finish.
_GRACE = 30

_log = logging.getLogger("polyarm.service")


class Server:
    """A server. Its address is bound at once, so that it is known before the first request."""

    def __init__(self, config: ServiceConfig, host: str, port: int) -> None:
        self.storage = open_storage(config.storage)
        if not config.loopback and not has_usable_tokens(self.storage):
            raise InvalidInput(
                f"--host {host}: without a token the server listens on loopback only; make one first: "
                "polyarm token create NAME --scope admin"
            )
        self._socket = _bind(host, port)
        app = make_app(config, stopping=lambda: self._server.should_exit)
        self._ready: threading.Event = app.state.ready
        self._warming = threading.Thread(target=self._warm_up, name="warm-up", daemon=True)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE,
                proxy_headers=bool(config.trusted_proxies),
                forwarded_allow_ips=list(config.trusted_proxies),
                h11_max_incomplete_event_size=64 * 1024,
            )
        )
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self._socket.getsockname()[1]}"
        self._warming.start()
        self.open = config.loopback and not has_tokens(self.storage)

    def run(self) -> None:
        """Answer requests until a signal comes, and finish those under way."""
        try:
            self._server.run([self._socket])
        finally:
            self._socket.close()

    @property
    def is_compiling(self) -> bool:
        """Whether kernels are still being loaded or compiled; that cannot be interrupted."""
        return self._warming.is_alive()

    def join(self) -> None:
        """Wait until nothing of the server runs any more."""
        self._warming.join()

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._server.should_exit = True

    def _warm_up(self) -> None:
        """Load the kernels, compiling them the first time, so that no request has to wait for it."""
        price = Constraint(name="price", bound=1.0, std=1.0)
        problem = Problem(arms=("a", "b"), reward_std=1.0, delta=0.1, r=0.5, constraints=(price,))
        session = make_explorer("certex", problem, seed=1)
        for _ in range(20):
            session.tell(session.ask(), 0.0, [0.0])
        session.recommend()
        find_regions(problem, find_intervals(session))
        self._ready.set()
        _log.info("ready")


def make_config(storage: str, host: str, **limits: object) -> ServiceConfig:
    """Return the configuration of a server on a host."""
    return ServiceConfig(storage=storage, loopback=is_loopback(host), **limits)  # type: ignore[arg-type]


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise InvalidInput(
            f"cannot listen on {host}, port {port}: {error.strerror or error}; choose another --port, or --host"
        ) from None
    # Connections inherit it. Without it an answer's body waits 40 ms for the caller to confirm the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
