"""An answer: the mix, its estimates and bounds, and what is claimed of them; described once for every output."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from polyarm._html import html_table
from polyarm._types import FloatArray
from polyarm.claims import Claim, Claims, Kind
from polyarm.figures import COLOURS, finish_figure, new_figure, require_plots, tidy
from polyarm.problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Recommendation:
    """The mix an explorer would choose now, with its estimates in the user's units.

    `slack` is positive where the estimated cost leaves room and negative where it exceeds the bound; `stopped` tells
    whether the explorer has stopped with it; `safe` that a certified rule has not, and this is the best mix that is
    certainly feasible so far; `claims` what is proved and what is not. With a certified rule `slack_low` and
    `value_interval` bound the true slack and value, all at once, with confidence 1 - delta; `bounds` says how far they
    may be trusted. `pulls` and `rewards` hold the pulls and the estimated mean reward of each arm.
    """

    policy: FloatArray
    value: float
    slack: dict[str, float]
    steps: int
    stopped: bool
    safe: bool
    claims: Claims
    slack_low: dict[str, float] | None
    value_interval: tuple[float, float] | None
    bounds: Kind
    pulls: FloatArray
    rewards: FloatArray
    problem: Problem

    def shares(self, problem: Problem | None = None) -> dict[str, float]:
        """Return the share of each arm by name.

        Args:
            problem: A problem that names the arms otherwise; by default the session's own.
        """
        return dict(zip((problem or self.problem).arms, self.policy.tolist(), strict=True))

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw the mix and the slack that it leaves.

        Args:
            path: A picture file to write, too: `.png`, `.svg` or `.pdf`; by default none.
        """
        return _draw(describe(self), path)

    def _repr_html_(self) -> str:
        return _write_html(self)


@dataclass(frozen=True)
class Description:
    """An answer as plain data, for every output to lay out; without an answer most fields are None.

    Args:
        kind: answer (the explorer has stopped with it), safe (the best that is certainly feasible so far), candidate
            (the best guess) or none.
        shares: The mix, by arm.
        value: Its estimated mean reward.
        value_interval: Bounds on that.
        slack: The estimated room of each constraint.
        slack_low: Bounds on that.
        bounds: How far the bounds may be trusted; stylised ones bound nothing and are left out.
        pulls: Pulls made, by arm.
        rewards: Estimated mean rewards, by arm.
        claims: What is claimed.
    """

    kind: Literal["answer", "safe", "candidate", "none"] = "none"
    shares: dict[str, float] | None = None
    value: float | None = None
    value_interval: tuple[float, float] | None = None
    slack: dict[str, float] | None = None
    slack_low: dict[str, float] | None = None
    bounds: Kind = "none"
    pulls: dict[str, int] | None = None
    rewards: dict[str, float] | None = None
    claims: tuple[Claim, ...] = ()


def describe(answer: Recommendation) -> Description:
    """Return an answer as plain data."""
    arms, bounded = answer.problem.arms, answer.bounds in ("proved", "asymptotic")
    return Description(
        kind="answer" if answer.stopped else "safe" if answer.safe else "candidate",
        shares=answer.shares(),
        value=answer.value,
        value_interval=answer.value_interval if bounded else None,
        slack=answer.slack,
        slack_low=answer.slack_low if bounded else None,
        bounds=answer.bounds,
        pulls=dict(zip(arms, map(int, answer.pulls), strict=True)),
        rewards=dict(zip(arms, answer.rewards.tolist(), strict=True)),
        claims=answer.claims.all,
    )


def _write_html(answer: Recommendation) -> str:
    """Lay an answer out as a table for notebooks."""
    said = describe(answer)
    rows = [(arm, f"{share:.1%}") for arm, share in (said.shares or {}).items() if share > 0.0]
    low = said.slack_low
    notes = [
        f"{name}: slack {slack:.4g}" + ("" if low is None else f", at least {low[name]:.4g}")
        for name, slack in (said.slack or {}).items()
    ]
    notes += [f"{claim.label}: {claim.sentence}" for claim in said.claims]
    title = f"Mix after {answer.steps:,} pulls: estimated value {said.value:.4f}"
    return html_table(title, ("arm", "share"), rows, notes)


def _draw(said: Description, path: str | Path | None) -> "Figure":
    """Draw the share of each arm and the slack of each constraint, with its lower bound where there is one."""
    require_plots()
    shares, slack, low = said.shares or {}, said.slack or {}, said.slack_low
    figure = new_figure(9.0 if slack else 5.0, 0.8 + 0.32 * max(len(shares), len(slack), 4))
    panels = figure.subplots(1, 2 if slack else 1, squeeze=False)[0]
    panels[0].barh(list(shares), [100.0 * share for share in shares.values()], color=COLOURS[0])
    panels[0].invert_yaxis()
    panels[0].set_xlabel("share of the mix, percent")
    if slack:
        places = np.arange(len(slack))
        panels[1].plot(list(slack.values()), places, "o", color=COLOURS[0], label="estimated")
        if low is not None:
            panels[1].hlines(
                places, [low[name] for name in slack], list(slack.values()), color=COLOURS[0], label="at least"
            )
        panels[1].axvline(0.0, color=COLOURS[1], linestyle="--", linewidth=1.0)
        panels[1].set_yticks(places, list(slack))
        panels[1].invert_yaxis()
        panels[1].set_ylim(len(slack) - 0.5, -0.5)
        panels[1].set_xlabel("slack")
        panels[1].legend(frameon=False)
    for axes in panels:
        tidy(axes)
    return finish_figure(figure, path)
