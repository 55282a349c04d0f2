"""The live display of one exploration."""

import math
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from polyarm.cli.compiling import say_compiling
from polyarm.cli.report import describe_test
from polyarm.engine.run import Exploration
from polyarm.engine.trace import explore_in_pieces
from polyarm.report.plots import Trace

_FRAMES_PER_SECOND = 12


def explore_live(exploration: Exploration, horizon: int, quiet: bool) -> Trace:
    """Advance to the end, showing the state a few times a second on a terminal; return the readings."""
    trace = Trace()
    console = Console(stderr=True)
    with say_compiling():  # an explorer of the user's own
        exploration.advance_to(1)
    if quiet or not console.is_terminal:
        for _ in explore_in_pieces(exploration, horizon, trace):
            pass
        return trace
    with Live(console=console, refresh_per_second=_FRAMES_PER_SECOND, transient=True) as live:
        shown = 0.0
        for _ in explore_in_pieces(exploration, horizon, trace):
            now = time.monotonic()
            if now - shown > 1.0 / _FRAMES_PER_SECOND:
                live.update(_draw(exploration, trace))
                shown = now
    return trace


def _draw(exploration: Exploration, trace: Trace) -> RenderableType:
    session = exploration.session
    lines: list[RenderableType] = [
        Text(f"{session.plan.explorer.name} on {exploration.instance.name}: {session.steps:,} pulls", "bold")
    ]
    if trace.steps:
        lines.append(Text(describe_test(session)))
        expected = session.expected_stop()
        if expected is not None:
            lines.append(Text(f"expects to stop after {expected[0]:,.0f} to {expected[1]:,.0f} pulls"))
        statistic, threshold = trace.statistic[-1], trace.threshold[-1]
        done = 0.0 if math.isnan(statistic) else min(max(statistic / threshold, 0.0), 1.0)
        lines.append(ProgressBar(total=1.0, completed=done, width=50))
        mix = Table.grid(padding=(0, 1))
        for arm, share in zip(session.problem.arms, trace.policy[-1], strict=True):
            mix.add_row(arm, ProgressBar(total=1.0, completed=float(share), width=30), f"{share:6.1%}")
        lines.append(mix)
        slack = ", ".join(f"{name} {value:+.3f}" for name, value in trace.slack[-1].items())
        lines.append(Text(f"estimated slack: {slack}"))
    else:
        lines.append(Text("no feasible mix under the estimates yet"))
    return Group(*lines)
