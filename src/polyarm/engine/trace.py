"""Readings along one exploration, for displays and pictures."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from polyarm._types import FloatArray
from polyarm.engine.run import Exploration

#: A reading is kept each time the number of pulls has grown by this factor.
_GROWTH = 1.02


@dataclass
class Trace:
    """One entry per reading; rounds without a feasible mix leave none."""

    steps: list[int] = field(default_factory=list)
    statistic: list[float] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    policy: list[FloatArray] = field(default_factory=list)
    slack: list[dict[str, float]] = field(default_factory=list)

    def read(self, exploration: Exploration) -> None:
        """Add the exploration as it stands."""
        session = exploration.session
        policy = session.policy
        if policy is not None:
            self.steps.append(session.steps)
            self.statistic.append(session.statistic)
            self.threshold.append(session.threshold)
            self.policy.append(policy)
            self.slack.append(session.estimated_slack(policy))


def explore_in_pieces(exploration: Exploration, horizon: int, trace: Trace) -> Iterator[None]:
    """Advance to the end, reading into `trace` and yielding between pieces."""
    session = exploration.session
    limit = session.problem.n_arms
    while True:
        exploration.advance_to(min(limit, horizon))
        trace.read(exploration)
        yield
        if session.stopped or session.steps >= horizon:
            return
        limit = max(limit + 1, int(limit * _GROWTH))
