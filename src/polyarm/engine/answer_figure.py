"""A mix and the room that it leaves, as a figure."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from polyarm.figures import COLOURS, finish_figure, new_figure, require_plots, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from polyarm.engine.session import Recommendation


def draw_recommendation(answer: "Recommendation", path: str | Path | None) -> "Figure":
    """Draw the share of each arm and the slack of each constraint, with its proved lower end where there is one."""
    require_plots()
    shares, slack = answer.shares(), answer.slack
    figure = new_figure(9.0 if slack else 5.0, 0.8 + 0.32 * max(len(shares), len(slack), 4))
    panels = figure.subplots(1, 2 if slack else 1, squeeze=False)[0]
    panels[0].barh(list(shares), [100.0 * share for share in shares.values()], color=COLOURS[0])
    panels[0].invert_yaxis()
    panels[0].set_xlabel("share of the mix, percent")
    if slack:
        places = np.arange(len(slack))
        panels[1].plot(list(slack.values()), places, "o", color=COLOURS[0], label="estimated")
        if answer.slack_low is not None:
            low = [answer.slack_low[name] for name in slack]
            panels[1].hlines(places, low, list(slack.values()), color=COLOURS[0], label="at least")
        panels[1].axvline(0.0, color=COLOURS[1], linestyle="--", linewidth=1.0)
        panels[1].set_yticks(places, list(slack))
        panels[1].invert_yaxis()
        panels[1].set_ylim(len(slack) - 0.5, -0.5)
        panels[1].set_xlabel("slack")
        panels[1].legend(frameon=False)
    for axes in panels:
        tidy(axes)
    return finish_figure(figure, path)
