"""The pictures of docs/concepts.md and docs/index.md: `make pictures` draws them again, to the byte.

One example serves for all: three language models share the traffic of a chat service whose price per request may be 1
cent in the mean. Nobody knows the qualities and prices below; explorers measure them, a noisy request at a time.
"""

from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon

import polyarm
from polyarm.engine.plan import make_plan
from polyarm.engine.region import find_intervals, find_regions
from polyarm.engine.run import Exploration
from polyarm.figures import COLOURS, new_figure, save_figure, tidy
from polyarm.problem import find_optimum

PICTURES = Path(__file__).parent / "pictures"
BLUE, RED, GREEN, ORANGE = COLOURS[:4]
ROOM, GREY = "#dcebf5", "#8795a1"
SEEDS = 200
#: Pulls of each arm behind one estimate of the edge.
EACH = 20

CHAT = polyarm.Instance(
    name="chat",
    source="docs/pictures.py",
    problem=polyarm.Problem(
        arms=["small", "medium", "large"],
        reward_std=0.2,
        delta=0.05,
        r=0.02,
        constraints=[polyarm.Constraint(name="price", bound=1.0, std=0.3)],
    ),
    mu=np.array([0.60, 0.75, 0.90]),
    A=np.array([[0.2, 0.6, 2.0]]),
)
BOUND = CHAT.problem.constraints[0].bound
CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(0.75)], [1.0, 0.0]])  # small, medium, large


def place(mixes: np.ndarray) -> np.ndarray:
    """Where mixes (n, 3) lie in the triangle (n, 2)."""
    return np.asarray(np.asarray(mixes) @ CORNERS)


def outline(mixes: np.ndarray) -> np.ndarray:
    """The corners of a convex set of mixes, in order around it."""
    points = place(mixes)
    centre = points.mean(axis=0)
    return points[np.argsort(np.arctan2(points[:, 1] - centre[1], points[:, 0] - centre[0]))]


def feasible_set(prices: np.ndarray) -> np.ndarray:
    """The corners of the set of mixes that these prices leave."""
    excess = prices - BOUND
    corners = [corner for corner, over in zip(np.eye(3), excess, strict=True) if over <= 0.0]
    for a, b in ((0, 1), (1, 2), (0, 2)):
        if excess[a] * excess[b] < 0.0:
            share = excess[b] / (excess[b] - excess[a])
            corners.append(share * np.eye(3)[a] + (1 - share) * np.eye(3)[b])
    return np.array(corners)


def draw_triangle(axes: Axes) -> None:
    """An empty set of mixes, its corners named."""
    axes.add_patch(Polygon(CORNERS, closed=True, fill=False, edgecolor="#333333", linewidth=1.2, zorder=3))
    for corner, name, side, height in zip(
        CORNERS, CHAT.problem.arms, ("center", "center", "center"), ("top", "bottom", "top"), strict=True
    ):
        shift = -0.025 if height == "top" else 0.025
        axes.text(corner[0], corner[1] + shift, f"only {name}", ha=side, va=height, fontsize=10)
    axes.set_xlim(-0.12, 1.12)
    axes.set_ylim(-0.1, 0.96)
    axes.set_aspect("equal")
    axes.axis("off")


def draw_edge(axes: Axes, prices: np.ndarray, **style: object) -> None:
    """The mixes that cost exactly the budget."""
    ends = [mix for mix in feasible_set(prices) if abs(mix @ prices - BOUND) < 1e-9]
    if len(ends) == 2:
        axes.plot(*place(np.array(ends)).T, **style)  # type: ignore[arg-type]


def draw_truth(axes: Axes) -> None:
    """The mixes within the true budget, and its edge."""
    axes.add_patch(Polygon(outline(feasible_set(CHAT.A[0])), closed=True, color=ROOM, linewidth=0, zorder=0))
    draw_edge(axes, CHAT.A[0], color=BLUE, linewidth=2, zorder=4)


def draw_mixes() -> Figure:
    """Arms, mixes, the budget, and why the best mix lies on its edge."""
    figure = new_figure(6.4, 4.6)
    axes = figure.subplots()
    draw_triangle(axes)
    draw_truth(axes)
    for level in np.arange(0.65, 0.9, 0.05):  # the mixes that earn this much: from the side towards large, down
        ends = [
            (1 - x) * np.eye(3)[a] + x * np.eye(3)[b]
            for a, b in ((0, 1), (1, 2), (0, 2))
            for x in [(level - CHAT.mu[a]) / (CHAT.mu[b] - CHAT.mu[a])]
            if -1e-9 <= x <= 1 + 1e-9
        ]
        points = place(np.array(ends))
        points = points[np.argsort(points[:, 1])][[0, -1]]
        axes.plot(*points.T, color=GREY, linewidth=0.8, linestyle=":", zorder=2)
        axes.text(points[0, 0], -0.015, f"{level:.2f}", color=GREY, fontsize=8, ha="center", va="top")
    best = find_optimum(CHAT.mu, CHAT.A - BOUND)
    assert best is not None
    spot = place(best.policy[None])[0]
    draw_spot(axes, best.policy)
    axes.annotate(
        f"the best mix: {best.policy[1]:.0%} medium,\n{best.policy[2]:.0%} large; quality {best.value:.2f}",
        spot,
        (spot[0] + 0.09, spot[1] + 0.12),
        fontsize=10,
        arrowprops={"arrowstyle": "-", "color": "#555555"},
    )
    axes.text(0.275, 0.12, "within the budget", color=BLUE, fontsize=11, ha="center")
    axes.text(0.76, 0.12, "too dear", color=RED, fontsize=11, ha="center")
    axes.text(0.5, -0.11, "dotted: mixes of equal quality", color=GREY, fontsize=9, ha="center")
    return figure


def estimate_edges() -> tuple[np.ndarray, np.ndarray]:
    """Estimated prices (SEEDS, 3) after EACH pulls of every arm, and the best mix for each estimate."""
    rng = np.random.default_rng(7)
    noise = 1.0 / np.sqrt(EACH)
    prices = CHAT.A[0] + 0.3 * noise * rng.standard_normal((SEEDS, 3))
    means = CHAT.mu + 0.2 * noise * rng.standard_normal((SEEDS, 3))
    found = [find_optimum(mu, (row - BOUND)[None]) for mu, row in zip(means, prices, strict=True)]
    return prices, np.array([answer.policy for answer in found if answer is not None])


def draw_edges() -> Figure:
    """What an estimate of the budget does: the edge moves, and the best mix for it with it."""
    prices, answers = estimate_edges()
    over = answers @ CHAT.A[0] > BOUND
    figure = new_figure(10.5, 4.0)
    whole, near = figure.subplots(1, 2, width_ratios=[1.25, 1])
    draw_triangle(whole)
    draw_truth(whole)
    for row in prices[:60]:
        draw_edge(whole, row, color=GREY, linewidth=0.5, alpha=0.6, zorder=1)
    draw_answers(whole, answers, over)
    whole.set_title(f"the budget's edge, estimated from {EACH} pulls of each arm", fontsize=11)
    draw_costs(near, answers @ CHAT.A[0], over)
    near.set_title(f"{over.sum()} of {SEEDS} best mixes break the true budget", fontsize=11)
    return figure


def draw_answers(axes: Axes, answers: np.ndarray, over: np.ndarray) -> None:
    """Mixes as dots, green within the true budget and red above it."""
    for chosen, colour, label in ((~over, GREEN, "within the budget"), (over, RED, "above it")):
        points = place(answers[chosen]) if chosen.any() else np.zeros((0, 2))
        axes.plot(*points.T, "o", color=colour, markersize=4, alpha=0.75, markeredgewidth=0, zorder=5, label=label)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.62, 0.9), fontsize=9)


def draw_costs(axes: Axes, costs: np.ndarray, over: np.ndarray, limits: tuple[float, float] = (0.82, 1.18)) -> None:
    """The true costs of many answers, against the bound."""
    bins = np.arange(limits[0], limits[1] + 1e-9, 0.01).tolist()
    axes.hist([costs[~over], costs[over]], bins, stacked=True, color=[GREEN, RED], rwidth=0.9)
    axes.axvline(BOUND, color=BLUE, linewidth=2)
    axes.set_xlim(*limits)
    axes.set_xlabel("true price of the mix, cents a request (the budget is 1)")
    axes.set_ylabel("answers")
    tidy(axes)


def draw_front() -> Figure:
    """The same task many times: explorers that trust estimates, and one that proves its answer."""
    figure = new_figure(10.5, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, explorer in zip(panels, ("lagex", "certex"), strict=True):
        cell = polyarm.simulate(CHAT, explorer, seeds=SEEDS).cells[0]
        costs = np.array([run.policy @ CHAT.A[0] for run in cell.runs if run.policy is not None])
        over = ~np.array([run.feasible for run in cell.runs])
        draw_costs(axes, costs, over)
        summary = cell.summary()
        axes.set_title(
            f"{explorer}: {over.sum()} of {SEEDS} answers break the budget\n"
            f"(median: {summary['median_stop']:,.0f} pulls)",
            fontsize=11,
        )
        print(explorer, {key: summary[key] for key in ("median_stop", "feasible_rate", "correct_rate")})
    return figure


def draw_closing() -> Figure:
    """One run of certex: what is certainly feasible and what may be, closing in on the truth."""
    figure = new_figure(11.0, 3.9)
    exploration = Exploration(CHAT, make_plan("certex", CHAT.problem, {}), seed=3)
    shades = {"feasible, certainly": "#9ad1b9", "perhaps": ROOM}
    for axes, pulls in zip(figure.subplots(1, 3), (40, 160, 1_000_000), strict=True):
        exploration.advance_to(pulls)
        session = exploration.session
        regions = find_regions(CHAT.problem, find_intervals(session))
        assert regions is not None
        draw_triangle(axes)
        for mixes, shade, order in zip((regions.pessimistic, regions.optimistic), shades.values(), (1, 0), strict=True):
            if len(mixes) > 2:
                axes.add_patch(Polygon(outline(mixes), closed=True, color=shade, linewidth=0, zorder=order))
        draw_edge(axes, CHAT.A[0], color=BLUE, linewidth=1.5, linestyle="--", zorder=4)
        if session.stopped:
            draw_spot(axes, session.recommend().policy)
        state = "stopped, with a proof" if session.stopped else "exploring"
        axes.set_title(f"{session.steps:,} pulls: {state}", fontsize=11)
    handles: list[Artist] = [Patch(color=shade, label=label) for label, shade in shades.items()]
    handles += [Line2D([], [], color=BLUE, linestyle="--", label="the true edge, which nobody knows")]
    handles += [Line2D([], [], color=ORANGE, marker="o", linestyle="", markeredgecolor="black", label="the answer")]
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=4, fontsize=10)
    return figure


def draw_spot(axes: Axes, mix: np.ndarray) -> None:
    """The mix that matters."""
    axes.plot(*place(mix[None])[0], "o", color=ORANGE, markersize=10, markeredgecolor="black", zorder=6)


def main() -> None:
    """Draw them all."""
    PICTURES.mkdir(exist_ok=True)
    for name, draw in (("mixes", draw_mixes), ("edges", draw_edges), ("front", draw_front), ("closing", draw_closing)):
        save_figure(draw(), PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
