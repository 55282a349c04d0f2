"""Figure 3: the normal cone of the current policy, along the run of Figure 2, beside the true one.

Three arms: everything is projected onto the plane sum = 0, where a policy is optimal for a reward vector exactly when
the vector lies in the policy's cone, spanned by the normals of the constraints that are active there. Angles are those
of the triangle in Figure 2.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.environments.instances import load_instance
from polyarm.figures import COLOURS, new_figure, tidy
from polyarm.papers.das_basu_2026.figure2 import (
    CORNERS,
    INSTANCE,
    SEED,
    drawn_times,
    find_own_stop,
    follow_run,
    list_times,
    true_columns,
)
from polyarm.tolerances import TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Directions that differ by less, in degrees, are one direction.
_SAME_ANGLE = 1e-6


def find_angle(vector: FloatArray) -> float:
    """Return the direction of a vector with one entry per arm in the projected plane, in degrees."""
    x, y = CORNERS @ vector
    return math.degrees(math.atan2(y, x))


def normal_cone(columns: FloatArray, policy: FloatArray) -> tuple[float, float]:
    """Return the angles, low <= high, between which the cone of a vertex lies: less than a half-turn apart."""
    normals = [row for row in columns[1:] if row @ policy >= -TRUTH]
    normals += [-axis for axis, share in zip(np.eye(policy.size), policy, strict=True) if share <= TRUTH]
    flat = np.array([CORNERS @ normal for normal in normals])
    middle = (flat / np.linalg.norm(flat, axis=1)[:, None]).sum(axis=0)
    centre = math.degrees(math.atan2(middle[1], middle[0]))
    turns = [turn(centre, find_angle(normal)) for normal in normals]
    return centre + min(turns), centre + max(turns)


def turn(start: float, end: float) -> float:
    """Return by how much to turn from one direction to another, from -180 up to 180 degrees."""
    return (end - start + 180.0) % 360.0 - 180.0


def is_inside(row: dict[str, Any], angle: float) -> bool:
    """Tell whether a direction lies in the cone of a row."""
    low, high = float(row["angle_low"]), float(row["angle_high"])
    return abs(turn(0.5 * (low + high), angle)) <= 0.5 * (high - low) + _SAME_ANGLE


def compute() -> list[dict[str, Any]]:
    """Return one row per time with the cone of the policy and the direction of the estimated rewards, in degrees.

    The first row, with pulls 0, is the truth.
    """
    instance = load_instance(INSTANCE)
    best = instance.optimum()
    assert best is not None, "the instance is feasible"
    own_stop = find_own_stop()
    rows = [_row(own_stop, 0, best.policy, true_columns(instance), instance.mu)]
    for reading in follow_run(list_times(own_stop)):
        rows.append(_row(own_stop, reading.pulls, reading.policy, reading.sets["scalar"], reading.mu_hat))
    return rows


def _row(own_stop: int, pulls: int, policy: FloatArray, columns: FloatArray, rewards: FloatArray) -> dict[str, Any]:
    low, high = normal_cone(columns, policy)
    return {
        "seed": SEED,
        "own_stop": own_stop,
        "pulls": pulls,
        **{f"pi_{a + 1}": float(share) for a, share in enumerate(policy)},
        "angle_low": low,
        "angle_high": high,
        "angle_reward": find_angle(rewards),
    }


def draw(rows: list[dict[str, Any]]) -> "Figure":
    """Draw the cones at several times, and their angles over time."""
    truth, run = rows[0], rows[1:]
    times = drawn_times(truth["own_stop"], [row["pulls"] for row in run])
    figure = new_figure(13.5, 6.6)
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.4])  # an array, whatever the stubs say
    top, bottom = halves
    panels = top.subplots(1, len(times))
    for axes, t in zip(panels, times, strict=True):
        _draw_cones(axes, next(row for row in run if row["pulls"] == t), truth)
        axes.set_title(f"{t:,} pulls" + ("\n(the paper's rule stops)" if t == truth["own_stop"] else "\n"))
    _draw_angles(bottom.subplots(), run, truth)
    figure.suptitle(f"Figure 3: normal cones of LAGEX on instance {INSTANCE}, seed {truth['seed']}", fontsize=13)
    handles, labels = panels[-1].get_legend_handles_labels()
    top.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _draw_cones(axes: "Axes", row: dict[str, Any], truth: dict[str, Any]) -> None:
    axes.fill(*_wedge(truth, 1.0), color="#d0d0d0", linewidth=0, label="true cone at the true optimum")
    label = "cone at the policy"
    axes.fill(*_wedge(row, 0.88), facecolor="none", edgecolor=COLOURS[0], linewidth=1.8, hatch="//", label=label)
    _draw_ray(axes, truth["angle_reward"], COLOURS[1], "--", "true mean rewards")
    _draw_ray(axes, row["angle_reward"], "#000000", "-", "estimated mean rewards")
    axes.set_aspect("equal")
    axes.set_xlim(-1.1, 1.1)
    axes.set_ylim(-0.05, 1.1)
    axes.axis("off")


def _wedge(row: dict[str, Any], radius: float) -> FloatArray:
    """Return the outline of a cone, cut at a radius, as x and y."""
    angles = np.radians(np.linspace(row["angle_low"], row["angle_high"], 60))
    arc = radius * np.array([np.cos(angles), np.sin(angles)])
    return np.hstack([np.zeros((2, 1)), arc])


def _draw_ray(axes: "Axes", angle: float, colour: str, line: str, label: str) -> None:
    x, y = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    axes.plot([0.0, 1.05 * x], [0.0, 1.05 * y], color=colour, linestyle=line, linewidth=2, label=label)
    axes.plot([1.05 * x], [1.05 * y], marker="o", color=colour, markersize=5)


def _draw_angles(axes: "Axes", run: list[dict[str, Any]], truth: dict[str, Any]) -> None:
    pulls = [row["pulls"] for row in run]
    middle = truth["angle_reward"]  # angles are drawn within a half-turn of it
    low, high, reward = (
        [middle + turn(middle, row[key]) for row in run] for key in ("angle_low", "angle_high", "angle_reward")
    )
    axes.fill_between(pulls, low, high, color=COLOURS[0], alpha=0.15, linewidth=0)
    axes.plot(pulls, low, color=COLOURS[0], marker="v", markersize=4, label="cone at the policy, from")
    axes.plot(pulls, high, color=COLOURS[0], marker="^", markersize=4, label="cone at the policy, to")
    axes.plot(pulls, reward, color="black", marker="o", markersize=4, label="estimated mean rewards")
    axes.axhline(truth["angle_low"], color="#b0b0b0", linewidth=3, zorder=1, label="true cone")
    axes.axhline(truth["angle_high"], color="#b0b0b0", linewidth=3, zorder=1)
    axes.axhline(truth["angle_reward"], color=COLOURS[1], linestyle="--", label="true mean rewards")
    axes.axvline(truth["own_stop"], color="#555555", linewidth=1, linestyle=":", label="the paper's rule stops")
    axes.set_xscale("log")
    axes.set_xlabel("pulls")
    axes.set_ylabel("direction (degrees)")
    axes.set_title("a policy is optimal while the rewards lie in its cone")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    tidy(axes)


def describe(rows: list[dict[str, Any]]) -> list[str]:
    """Say how the cones converge, and whether they contain what they should."""
    truth, run = rows[0], rows[1:]
    last = run[-1]
    own = next(row for row in run if row["pulls"] == truth["own_stop"])
    optimal = sum(is_inside(row, row["angle_reward"]) for row in run)
    still = sum(is_inside(row, truth["angle_reward"]) for row in run)
    sides = (truth["angle_low"], truth["angle_high"])
    short = [row["pulls"] for row in run if not all(is_inside(row, side) for side in sides)]
    return [
        "The paper shows, without numbers, the normal cone at the policy over time, and observes that the alternatives "
        "to the optimistic set are among those to the true one, that is, that its cone contains the true cone.",
        f"The true cone reaches from {_format(truth)} degrees, with the mean rewards at {truth['angle_reward']:.1f}. "
        f"In the run of Figure 2 the cone at the policy reaches from {_format(own)} degrees when the paper's rule "
        f"stops ({own['pulls']} pulls) and from {_format(last)} at {last['pulls']:,} pulls.",
        f"The estimated rewards lie in the cone of the policy at {optimal} of {len(run)} times, as they must for a "
        f"policy that is optimal on the estimated set. The true rewards lie in the true cone: "
        f"{'yes' if is_inside(truth, truth['angle_reward']) else 'no'}; and in the estimated one at {still} times.",
        f"The estimated cone contains the true one at {len(run) - len(short)} of {len(run)} times (not at "
        f"{', '.join(f'{t:,}' for t in short) or 'none'} pulls). Subtracting one number from every entry of a row, as "
        "the scalar set does, moves the row but does not turn it: in the plane the cone is that of the plain estimate.",
    ]


def _format(row: dict[str, Any]) -> str:
    return f"{row['angle_low']:.1f} to {row['angle_high']:.1f}"
