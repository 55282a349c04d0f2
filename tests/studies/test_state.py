"""The state of a study: what it holds does not grow with what is done with."""

import heapq
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polyarm import verify_study
from polyarm.engine.plan import make_plan
from polyarm.studies import events
from polyarm.studies.events import Event
from polyarm.studies.queues import UnderWay
from polyarm.studies.state import StudyState
from polyarm.studies.trial import write_time
from studies.worlds import World, explore, make_problem, outcome, start

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def moment(seconds: float) -> str:
    return write_time(BEGIN + timedelta(seconds=seconds))


class Log:
    """A state, and a log written for it: one ask a second, with a lease of a year."""

    def __init__(self) -> None:
        self.plan = make_plan("certex", make_problem(r=0.0005), {})
        self.state = StudyState(self.plan, 5, None)
        self.trials = 0

    def add(self, kind: str, **payload: Any) -> None:
        self.state.apply(Event(self.state.seq + 1, moment(self.trials), kind, payload, "digest"))

    def ask(self) -> tuple[int, int]:
        self.trials += 1
        arm, route = self.state.choose()
        lease = moment(self.trials + 365 * 86400)
        self.add(events.ASKED, trial=self.trials, arm=arm, lease_until=lease, route=route)
        return self.trials, arm

    def tell(self, trial: int, arm: int) -> None:
        reward, costs = outcome(arm, trial)
        self.add(events.TOLD, trial=trial, arm=arm, reward=reward, costs=costs, complete=True)

    def sizes(self) -> tuple[int, int]:
        """How long a snapshot is, but for the readings for charts, and how many leases are kept."""
        packed = self.state.pack()
        del packed["history"]
        return len(json.dumps(packed)), len(self.state.pending._leases)


def test_neither_snapshots_nor_leases_grow_with_the_tells() -> None:
    log, sizes = Log(), []
    for total in (500, 4000):
        while log.trials < total:
            log.tell(*log.ask())
        sizes.append(log.sizes())
    assert sizes[1][0] < 1.1 * sizes[0][0]
    assert max(leases for _, leases in sizes) < 100


def test_what_waits_for_a_lost_trial_survives_a_snapshot() -> None:
    log = Log()
    lost = log.ask()
    for _ in range(300):
        log.tell(*log.ask())
    given_up, _ = log.ask()
    log.add(events.EXPIRED, trial=given_up, by="lease")
    log.add(events.OBSERVED, trial=log.trials + 1, arm=0, reward=0.5, costs={"price": 0.1, "latency": 0.1})
    assert log.state.n_waiting > 100
    text = log.state.write()
    again = StudyState.unpack(json.loads(text), log.plan, 5, None)
    assert again.write() == text
    for state in (log.state, again):
        log.state = state
        log.tell(*lost)
    assert log.state.session.steps > 100
    assert again.write() == log.state.write()


def test_a_stopped_explorer_keeps_nothing_waiting(sqlite: str) -> None:
    study, world = start(sqlite), World()
    explore(study, world, 60)
    with study.reading() as state:
        before, size = state.n_waiting, len(state.write())
    study.observe_many([("small", *outcome(0, k)) for k in range(500)])
    assert study.status().waiting == before + 500
    with study.reading() as state:
        assert len(state.write()) < size + 100
    assert verify_study(study).valid


def test_giving_up_and_looking_for_what_is_overdue_take_no_longer_with_many_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counts what is taken from the heap: the one lease that has run out, whatever was told before."""
    under_way, popped = UnderWay(), [0]
    original = heapq.heappop

    def counting(heap: list[Any]) -> Any:
        popped[0] += 1
        return original(heap)

    monkeypatch.setattr(heapq, "heappop", counting)
    under_way.add(0, 0, moment(5))
    for trial in range(1, 5000):
        under_way.add(trial, trial % 3, moment(10 + trial))
        if trial % 50:
            under_way.remove(trial)
    assert under_way.overdue(moment(4)) == []
    assert under_way.overdue(moment(5)) == under_way.overdue(moment(6)) == [0]
    assert popped == [2]
    under_way.remove(0)
    assert under_way.overdue(moment(7)) == []
    assert under_way.overdue(moment(10 + 100)) == [50, 100]


def test_overdue_trials_come_by_the_end_of_their_lease() -> None:
    under_way = UnderWay()
    for trial, lease in [(1, 30), (2, 10), (3, None), (4, 20)]:
        under_way.add(trial, 0, None if lease is None else moment(lease))
    assert under_way.overdue(moment(25)) == [2, 4]
    again = UnderWay.unpack(json.loads(json.dumps(under_way.pack())))
    assert again.overdue(moment(40)) == [2, 4, 1]
    assert 3 in again
    assert len(again) == 4
