"""Trials under way: asked, and neither told nor given up."""

import heapq
from collections.abc import Mapping
from typing import Any, Self

#: Leases of trials that are not under way any more are cleared out once they outnumber the others and this.
_MOST_LEFT_OVER = 64


class UnderWay:
    """Trials by number, in the order of the asks, each with its arm and the end of its lease (None: it has none)."""

    def __init__(self) -> None:
        self._trials: dict[int, tuple[int, str | None]] = {}
        #: A heap, the lease that ends first at its top; those of trials told meanwhile stay in for a while.
        self._leases: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._trials)

    def __contains__(self, trial: object) -> bool:
        return trial in self._trials

    def add(self, trial: int, arm: int, lease: str | None) -> None:
        """Note a trial that was handed out."""
        self._trials[trial] = (arm, lease)
        if lease is not None:
            heapq.heappush(self._leases, (lease, trial))
            if len(self._leases) > 2 * len(self._trials) + _MOST_LEFT_OVER:
                self._clear_out()

    def remove(self, trial: int) -> int:
        """Forget a trial and return its arm."""
        return self._trials.pop(trial)[0]

    def overdue(self, now: str) -> list[int]:
        """Return the trials whose lease has run out; the oldest lease first."""
        found = []
        while self._leases and self._leases[0][0] <= now:
            lease = heapq.heappop(self._leases)
            if lease[1] in self._trials:
                found.append(lease)
        for lease in found:  # they are under way until somebody gives them up
            heapq.heappush(self._leases, lease)
        return [trial for _, trial in found]

    def pack(self) -> dict[str, Any]:
        """Return everything as plain JSON types, by column."""
        arms, leases = zip(*self._trials.values(), strict=True) if self._trials else ((), ())
        return {"trials": list(self._trials), "arms": list(arms), "leases": list(leases)}

    @classmethod
    def unpack(cls, saved: Mapping[str, Any]) -> Self:
        """Return what `pack` packed."""
        under_way = cls()
        rows = zip(saved["arms"], saved["leases"], strict=True)
        under_way._trials = dict(zip(saved["trials"], rows, strict=True))
        under_way._clear_out()
        return under_way

    def _clear_out(self) -> None:
        self._leases = [(lease, trial) for trial, (_, lease) in self._trials.items() if lease is not None]
        heapq.heapify(self._leases)
