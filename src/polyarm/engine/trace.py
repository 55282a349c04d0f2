"""Readings along one exploration, for displays and pictures."""

from collections.abc import Iterator

from polyarm.engine.run import Exploration
from polyarm.report.plots import Trace

#: A reading is kept each time the number of pulls has grown by this factor.
_GROWTH = 1.02


def read_test(exploration: Exploration, trace: Trace) -> None:
    """Add a reading of the exploration as it stands."""
    session = exploration.session
    policy = session.policy
    if policy is not None:
        trace.steps.append(session.steps)
        trace.statistic.append(session.statistic)
        trace.threshold.append(session.threshold)
        trace.policy.append(policy)
        trace.slack.append(session.estimated_slack(policy))


def explore_in_pieces(exploration: Exploration, horizon: int, trace: Trace) -> Iterator[None]:
    """Advance to the end, reading into `trace` and yielding between pieces."""
    session = exploration.session
    limit = session.problem.n_arms
    while True:
        exploration.advance_to(min(limit, horizon))
        read_test(exploration, trace)
        yield
        if session.stopped or session.steps >= horizon:
            return
        limit = max(limit + 1, int(limit * _GROWTH))
