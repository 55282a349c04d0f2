"""Exploration on a simplex

Every point of the triangle is a mix of three models: at a corner all traffic goes to one of them. Two budgets, a
price and a latency, cut a part of it off, and nobody knows where: they are measured, like the rewards. Three sets of
mixes close in on the true one as pulls come in: the mixes that *may* be feasible (optimistic), that are if the
estimates are right (estimated), and that *must* be (pessimistic). While the intervals hold, the true set lies between
the pessimistic and the optimistic one.

What to learn: the best mix sits at a corner of a set whose edges are only estimated, so an explorer must measure the
edges as well as the rewards, and a mix that is to be certainly feasible keeps a distance from them. The diamond shows
where the pulls go; it need not be feasible, and need not be near the answer. The answer is proved by a sharper
argument than the one that draws these sets, and may therefore come before the pessimistic set has reached it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.animation import PillowWriter
from picture import GREY, clear_frame, main, plain_numbers, save_small

from polyarm import Constraint, Instance, Problem
from polyarm._types import FloatArray
from polyarm.engine.region import find_intervals, find_regions
from polyarm.engine.run import Exploration, plan_run
from polyarm.figures import COLOURS, new_figure, tidy
from polyarm.papers.das_basu_2026.figure2 import CORNERS, area_share, list_corners, true_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = ("simplex.gif", "simplex.png")
SEED = 3
HORIZON = 1_000_000
FRAMES, QUICK_FRAMES = 44, 6
FRAMES_PER_SECOND = 5
#: The last frame stays for this many.
PAUSE = 10
#: Coarse enough for a small file.
DPI = 80

INSTANCE = Instance(
    name="three models",
    source="gallery",
    problem=Problem(
        arms=("small", "medium", "large"),
        reward_std=0.2,
        delta=0.05,
        r=0.02,
        constraints=(
            Constraint(name="price", bound=1.0, std=0.3),
            Constraint(name="latency", bound=1.0, std=0.3),
        ),
    ),
    mu=np.array([0.5, 0.7, 0.9]),
    A=np.array([[0.2, 0.6, 2.0], [0.4, 1.6, 0.9]]),
)

#: Sets by name, the largest first: how each is drawn.
LOOKS: dict[str, dict[str, Any]] = {
    "optimistic": {"facecolor": "#d6ebf8", "edgecolor": COLOURS[4], "linewidth": 1.5},
    "estimated": {"facecolor": "none", "edgecolor": COLOURS[0], "linewidth": 2.0},
    "pessimistic": {"facecolor": "#8fd3be", "edgecolor": COLOURS[2], "linewidth": 1.5},
}
#: The share of pulls: open, because the mix may lie inside.
DIAMOND: dict[str, Any] = {
    "marker": "D",
    "markersize": 12,
    "markerfacecolor": "none",
    "markeredgecolor": COLOURS[5],
    "markeredgewidth": 2.5,
    "linestyle": "none",
}
ORDER = {"optimistic": 1, "pessimistic": 2, "estimated": 3}


@dataclass(frozen=True)
class Frame:
    """The run after some pulls: corners of the sets in order, share of pulls, and the mix, once there is one."""

    pulls: int
    sets: dict[str, FloatArray]
    allocation: FloatArray
    mix: FloatArray | None

    def area(self, name: str) -> float:
        """Return the size of a set as a share of the simplex."""
        return area_share(self.sets[name]) if len(self.sets[name]) > 2 else 0.0


def put_in_order(vertices: FloatArray) -> FloatArray:
    """Return the corners of a polygon counter-clockwise."""
    if len(vertices) < 3:
        return vertices
    x, y = CORNERS @ vertices.T
    ordered: FloatArray = vertices[np.argsort(np.arctan2(y - y.mean(), x - x.mean()))]
    return ordered


def read_frame(exploration: Exploration) -> Frame:
    """Read the exploration as it stands."""
    session = exploration.session
    regions = find_regions(session.problem, find_intervals(session))
    assert regions is not None, "every arm has been pulled"
    pulls = session.round.estimates.pulls
    sets = {name: put_in_order(getattr(regions, name)) for name in LOOKS}
    return Frame(session.steps, sets, pulls / pulls.sum(), session.policy)


def follow_run(frames: int) -> tuple[list[Frame], Exploration]:
    """Run twice with one seed: to learn when it stops, and to read it at times in geometric progression till then."""
    instance, plan = plan_run(INSTANCE, "certex", {})
    first = Exploration(instance, plan, SEED)
    first.advance_to(HORIZON)
    exploration = Exploration(instance, plan, SEED)
    read = []
    # Every arm once, and a little more, before there is anything to see.
    for limit in np.geomspace(3 * instance.problem.n_arms, first.session.steps, frames).round().astype(int):
        exploration.advance_to(int(limit))
        read.append(read_frame(exploration))
    return read, exploration


def draw_triangle(axes: "Axes", frame: Frame, trail: list[FloatArray]) -> None:
    """Draw the simplex with the sets, the pulls and the mix; the trail is where the mix has been."""
    axes.plot(*np.hstack([CORNERS, CORNERS[:, :1]]), color=GREY, linewidth=0.8, zorder=0)
    for name, look in LOOKS.items():
        corners = frame.sets[name]
        if len(corners) > 2:
            axes.fill(*(CORNERS @ corners.T), **look, zorder=ORDER[name])
    truth = list_corners(true_columns(INSTANCE))
    axes.plot(*(CORNERS @ np.vstack([truth, truth[:1]]).T), color="black", linewidth=1.2, linestyle="--", zorder=4)
    best = INSTANCE.optimum()
    assert best is not None, "the instance is feasible"
    marks: dict[str, Any] = {"markeredgecolor": "black", "linestyle": "none"}
    axes.plot(*(CORNERS @ best.policy)[:, None], marker="*", markersize=15, color=COLOURS[3], **marks, zorder=5)
    axes.plot(*(CORNERS @ frame.allocation)[:, None], **DIAMOND, zorder=8)
    if trail:
        axes.plot(*(CORNERS @ np.array(trail).T), color="black", linewidth=0.8, alpha=0.5, zorder=6)
    if frame.mix is not None:
        axes.plot(*(CORNERS @ frame.mix)[:, None], marker="o", markersize=7, color="black", zorder=7)
    for arm, (name, align) in enumerate(zip(INSTANCE.problem.arms, ("right", "left", "center"), strict=True)):
        x, y = CORNERS[:, arm]
        axes.text(x, y - 0.03 if arm < 2 else y + 0.02, name, ha=align, va="top" if arm < 2 else "bottom", fontsize=11)
    axes.set_xlim(-0.62, 0.62)
    axes.set_ylim(-0.37, 0.66)
    clear_frame(axes)


def draw_sizes(axes: "Axes", frames: list[Frame], last: int) -> None:
    """Draw the size of every set up to now."""
    truth = area_share(list_corners(true_columns(INSTANCE)))
    axes.axhline(100.0 * truth, color="black", linewidth=1.2, linestyle="--")
    for name, look in LOOKS.items():
        axes.plot([f.pulls for f in frames], [100.0 * f.area(name) for f in frames], color=look["edgecolor"], lw=2)
        axes.plot(frames[-1].pulls, 100.0 * frames[-1].area(name), "o", color=look["edgecolor"], markersize=5)
    axes.set_xscale("log")
    axes.set_xlim(3 * INSTANCE.problem.n_arms, 1.15 * last)
    axes.set_ylim(-3.0, 103.0)
    axes.set_xlabel("pulls")
    axes.set_ylabel("size of the set (percent of all mixes)")
    tidy(axes)
    plain_numbers(axes.xaxis)


def add_legend(figure: "Figure") -> None:
    """Name everything once, above both panels."""
    from matplotlib.lines import Line2D  # noqa: PLC0415  (only to make keys)
    from matplotlib.patches import Patch  # noqa: PLC0415

    marks: dict[str, Any] = {"linestyle": "none", "markeredgecolor": "black"}
    keys: list[Any] = [Patch(label=f"{name} set", **look) for name, look in LOOKS.items()]
    keys += [
        Line2D([], [], color="black", linestyle="--", label="true set"),
        Line2D([], [], marker="*", markersize=13, color=COLOURS[3], label="true best mix", **marks),
        Line2D([], [], marker="o", color="black", linestyle="none", label="recommended mix, its path"),
        Line2D([], [], label="share of pulls", **DIAMOND),
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=4, frameon=False)


def draw(quick: bool, out: Path) -> list[str]:
    """Write the animation and its last frame."""
    frames, exploration = follow_run(QUICK_FRAMES if quick else FRAMES)
    figure = new_figure(10, 5.4)
    triangle, sizes = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
    add_legend(figure)
    writer = PillowWriter(fps=FRAMES_PER_SECOND)
    animation, still = (out / name for name in NAMES)
    with writer.saving(figure, str(animation), DPI):
        for k, frame in enumerate(frames):
            for axes in (triangle, sizes):
                axes.clear()
            trail = [f.mix for f in frames[: k + 1] if f.mix is not None]
            draw_triangle(triangle, frame, trail)
            draw_sizes(sizes, frames[: k + 1], frames[-1].pulls)
            ended = k == len(frames) - 1
            figure.suptitle(f"certex, {frame.pulls:,} pulls" + (": stopped, proved" if ended else ""), fontsize=13)
            if k == 0:
                figure.canvas.draw()
                figure.set_layout_engine("none")  # the panels keep their places in all frames
            for _ in range(PAUSE if ended else 1):
                writer.grab_frame()
    save_small(figure, still)
    return describe(frames[-1], exploration)


def describe(last: Frame, exploration: Exploration) -> list[str]:
    """Say what the last frame shows."""
    assert last.mix is not None
    assert exploration.session.stopped
    record = exploration.record()
    sizes = ", ".join(f"{name} {100.0 * last.area(name):.0f} %" for name in LOOKS)
    mix = ", ".join(f"{100.0 * share:.0f} % {arm}" for arm, share in zip(INSTANCE.problem.arms, last.mix, strict=True))
    truth = area_share(list_corners(true_columns(INSTANCE)))
    return [
        f"Stopped after {last.pulls:,} pulls with {mix}, which is {'truly' if record.correct else 'NOT'} feasible and "
        f"within r = {INSTANCE.problem.r:g} of the best.",
        f"The sets then cover, of all mixes: {sizes}; the true one {100.0 * truth:.0f} %.",
    ]


if __name__ == "__main__":
    main(draw)
