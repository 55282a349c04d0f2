"""How the test of a study went, reading by reading: what charts show of a study's past."""

import math
from collections.abc import Mapping
from typing import Any, Self

from polyarm._json import finite
from polyarm.engine.session import Session

#: A reading is kept each time the number of outcomes used has grown by this factor: a million leave some 500.
_GROWTH = 1.03


class History:
    """Readings of a session, in the order of its steps; follows from the outcomes alone, but for the times `at`."""

    def __init__(self, first: int) -> None:
        self._next = first
        self.columns: dict[str, list[Any]] = {
            name: [] for name in ("steps", "at", "statistic", "threshold", "stop_low", "stop_high", "slack")
        }

    def read(self, session: Session, at: str) -> None:
        """Keep a reading if one is due: by the number of steps, or because the explorer has just stopped."""
        steps, taken = session.steps, self.columns["steps"]
        if steps < self._next and not (session.stopped and (not taken or taken[-1] < steps)):
            return
        self._next = max(steps + 1, math.ceil(steps * _GROWTH))
        policy = session.policy
        low, high = session.expected_stop() or (None, None)
        reading = {
            "steps": steps,
            "at": at,
            "statistic": finite(session.statistic),
            "threshold": finite(session.threshold),
            "stop_low": low,
            "stop_high": high,
            "slack": None if policy is None else list(session.estimated_slack(policy).values()),
        }
        for name, value in reading.items():
            self.columns[name].append(value)

    def pack(self) -> dict[str, Any]:
        """Return everything as plain JSON types."""
        return {"next": self._next, **self.columns}

    @classmethod
    def unpack(cls, saved: Mapping[str, Any]) -> Self:
        """Return what `pack` packed."""
        history = cls(saved["next"])
        history.columns = {name: list(saved[name]) for name in history.columns}
        return history
