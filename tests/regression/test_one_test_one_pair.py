"""Readings once mixed two tests: that of the rule at most pulls, that of the certified stop at its looks."""

from typing import Any

import pytest

from polyarm import load_instance
from polyarm.certify.search import UNRESOLVED
from polyarm.cli.report import describe_test, list_answer
from polyarm.engine.run import Exploration, plan_run
from polyarm.engine.trace import explore_in_pieces
from polyarm.report.answer import Description
from polyarm.report.plots import Trace
from polyarm.stops import certified
from polyarm.studies.state import History

CERTIFIED: list[tuple[str, dict[str, Any]]] = [
    ("lagex", {"stopping": "certified"}),
    ("uniform", {"stopping": "certified"}),
    ("certex", {"certificate": "pooled"}),
    ("certex", {"certificate": "averaged"}),
]


def explore(explorer: str, settings: dict[str, Any], r: float = 0.25) -> Exploration:
    return Exploration(*plan_run(load_instance("setup2-easy"), explorer, {"r": r, **settings}), seed=1)


def read_along(exploration: Exploration, horizon: int) -> int:
    """Play to the end, compare what every display reads, and count the readings of a test that goes on."""
    session, trace, running = exploration.session, Trace(), 0
    history = History(first=session.problem.n_arms)
    for _ in explore_in_pieces(exploration, horizon, trace):
        history.read(session, "now")
        if session.policy is None or session.statistic != session.statistic:
            continue
        pair = (session.statistic, session.threshold)
        assert (trace.statistic[-1], trace.threshold[-1]) == pair
        if history.columns["steps"][-1] == session.steps:
            assert (history.columns["statistic"][-1], history.columns["threshold"][-1]) == pair
        told = list_answer(session, Description())
        assert (told["statistic"], told["threshold"]) == pair
        assert describe_test(session).startswith(f"statistic {pair[0]:.2f}, threshold {pair[1]:.2f}")
        assert (pair[0] > pair[1]) == session.stopped
        running += not session.stopped
    return running


@pytest.mark.parametrize(("explorer", "settings"), [*CERTIFIED, ("lagex", {}), ("uniform", {})])
def test_every_display_shows_the_test_that_decides(explorer: str, settings: dict[str, Any]) -> None:
    exploration = explore(explorer, settings)
    assert read_along(exploration, 100_000) > 20
    assert exploration.session.stopped


@pytest.mark.parametrize(("explorer", "settings"), CERTIFIED)
def test_between_looks_the_pair_stands(explorer: str, settings: dict[str, Any]) -> None:
    session = explore(explorer, settings).session
    assert session.stop is not None
    looks, seen, problem, look = 0, None, session.problem, session.stop.look

    def count() -> None:
        nonlocal looks
        look()
        looks += 1

    session.stop.look = count  # type: ignore[method-assign]
    for step in range(600):
        arm = session.ask()
        pair = (looks, repr(session.statistic), repr(session.threshold))
        if seen is not None and seen[0] == looks:
            assert pair == seen, "nothing but a look may change what is shown"
        seen = pair
        session.tell(arm, (step * 7 % 11) / 11.0, [(step * 5 % 13) / 13.0] * len(problem.unknown))
    assert looks > 5


@pytest.mark.parametrize(("explorer", "settings"), CERTIFIED)
def test_a_search_without_an_end_does_not_show_a_passed_test(
    explorer: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All known witnesses are beaten, yet nothing is proved: the statistic may not exceed the threshold."""
    monkeypatch.setattr(certified, "search_witness", lambda *_: (UNRESOLVED, 1, 0.0))
    exploration = explore(explorer, settings, r=0.4)
    assert read_along(exploration, 1_500) > 20
    assert not exploration.session.stopped
