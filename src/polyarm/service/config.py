"""How a server is set up."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceConfig:
    """Where studies live, who may come in, and how much at once.

    `loopback`: the server can only be reached from its own machine, so that it may do without tokens as long as none
    was ever created. `rate` and `burst` limit the requests of one caller (a second; at once), `max_body` the bytes of
    one. `cors_origins` are pages of other hosts that may use the API from a browser, with a token. What is said of a
    caller's address and scheme is believed of `trusted_proxies` only.
    """

    storage: str
    loopback: bool = True
    rate: float = 500.0
    burst: float = 1_000.0
    max_body: int = 8 * 2**20
    max_streams: int = 200
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
