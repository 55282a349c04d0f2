"""Trials under way, and outcomes that wait for the explorer."""

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, NamedTuple, Self

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


class Outcome(NamedTuple):
    """A complete outcome that waits for the explorer."""

    reward: float
    costs: tuple[float, ...]
    asked: bool


#: Trials of one arm that the explorer has not taken, in the order of the asks; None while the outcome is not complete.
Queue = OrderedDict[int, Outcome | None]


def pack_queue(queue: Queue) -> dict[str, list[Any]]:
    """Return a queue as plain JSON types. By column: a lost trial may hold up a million outcomes."""
    ready = [outcome for outcome in queue.values() if outcome is not None]
    return {
        "trials": list(queue),
        "rewards": [outcome.reward for outcome in ready],
        "costs": [list(costs) for costs in zip(*(outcome.costs for outcome in ready), strict=True)],
        "asked": [int(outcome.asked) for outcome in ready],
    }


def unpack_queue(saved: Mapping[str, Any], pending: UnderWay) -> Queue:
    """Return what `pack_queue` packed."""
    costs: Iterable[tuple[float, ...]] = zip(*saved["costs"], strict=True) if saved["costs"] else repeat(())
    outcomes = map(Outcome, saved["rewards"], costs, map(bool, saved["asked"]))
    queue: Queue = OrderedDict.fromkeys(saved["trials"])
    queue.update(zip([trial for trial in queue if trial not in pending], outcomes, strict=True))
    return queue
