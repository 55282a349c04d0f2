"""Limits on callers: requests a second, and bytes of a request."""

import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyarm.service.problems import Refusal, problem_response

#: Callers remembered at once; idle ones are forgotten.
_MOST_CALLERS = 10_000


class Limiter:
    """A token bucket per caller: `rate` requests a second, `burst` at once; `advice` ends the refusal."""

    def __init__(
        self, rate: float, burst: float, advice: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._advice, self._clock = rate, burst, advice, clock
        self._guard = threading.Lock()
        self._left: dict[Hashable, tuple[float, float]] = {}

    def take(self, caller: Hashable) -> None:
        """Count a request, or refuse it and say when to come back."""
        now = self._clock()
        with self._guard:
            left, last = self._left.get(caller, (self._burst, now))
            left = min(self._burst, left + (now - last) * self._rate)
            if left < 1.0:
                wait = math.ceil((1.0 - left) / self._rate)
                raise Refusal(
                    429,
                    f"more than {self._rate:g} a second; wait {wait} s{self._advice}",
                    {"Retry-After": str(wait)},
                )
            self._left[caller] = (left - 1.0, now)
            if len(self._left) > _MOST_CALLERS:
                full = [key for key, (n, at) in self._left.items() if n + (now - at) * self._rate >= self._burst]
                for key in full or list(self._left)[: _MOST_CALLERS // 2]:
                    del self._left[key]


class BodyLimit:
    """Refuses bodies over a size, stated or not; `less` has smaller sizes for some paths."""

    def __init__(self, app: ASGIApp, most: int, less: Mapping[str, int]) -> None:
        self._app, self._most, self._less = app, most, less

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, counting its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = min(self._most, self._less.get(scope["path"], self._most))
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        detail = f"the body is larger than {most:,} bytes; send it in parts"
        if stated.isdigit() and int(stated) > most:
            await problem_response(413, detail)(scope, receive, send)
            return
        seen = 0

        async def count() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise Refusal(413, detail)
            return message

        await self._app(scope, count, send)
