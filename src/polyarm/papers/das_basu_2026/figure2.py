"""Figure 2: the optimistic feasible set and the policy of one LAGEX run close in on the truth.

The paper's own stopping rule ends the run long before there is anything to see, so the run is continued: the certified
rule, which needs far more pulls, decides when to stop, and changes nothing else. Figure 3 reads the same run.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.instances import Instance, load_instance
from polyarm.estimates import RADIUS_CODES, write_shifted, write_widths
from polyarm.figures import COLOURS, new_figure, tidy
from polyarm.polytope.vertices import enumerate_vertices
from polyarm.tolerances import TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSTANCE = "figure2"
SEED = 0
HORIZON = 100_000

#: Where the pure policies (arm 1, 2, 3) lie in the plane: a triangle of side 1 around the origin. Also projects vectors
#: onto the plane sum = 0, up to a factor, so that angles and inner products there are right.
CORNERS = np.array([[-0.5, 0.5, 0.0], [-1.0 / 3.0, -1.0 / 3.0, 2.0 / 3.0]]) * np.array([[1.0], [math.sqrt(0.75)]])

#: The run is read this often per factor of ten, and drawn once per factor of ten from the first on.
_READINGS_PER_DECADE = 10
_FIRST_DRAWN = 100


@dataclass(frozen=True)
class Reading:
    """A run after `pulls` pulls: the policy, its estimates, and both optimistic sets (columns, as in `estimates`)."""

    pulls: int
    policy: FloatArray
    mu_hat: FloatArray
    sets: dict[str, FloatArray]


def find_own_stop() -> int:
    """Return after how many pulls the run stops by the paper's own rule."""
    instance, plan = plan_run(load_instance(INSTANCE), "lagex", {"preset": "paper"})
    exploration = Exploration(instance, plan, SEED)
    exploration.advance_to(HORIZON)
    return exploration.session.steps


def list_times(own_stop: int) -> list[int]:
    """Return when the run is read: geometrically, and when the paper's rule would have stopped it."""
    decades = math.log10(HORIZON)
    grid = np.logspace(0.0, decades, 1 + round(decades * _READINGS_PER_DECADE)).round().astype(int)
    n_arms = load_instance(INSTANCE).problem.n_arms
    return sorted({int(t) for t in grid if t >= n_arms} | {own_stop})


def follow_run(times: list[int]) -> Iterator[Reading]:
    """Yield the run as it stands at each time; times without a feasible policy are left out.

    Preset `paper`: the policy is optimal on the `scalar` set around the previous policy.
    """
    # The declared noise is the one that the preset assumes; certified stopping insists on the declaration.
    settings = {"preset": "paper", "assumed_reward_std": None, "stopping": "certified"}
    instance, plan = plan_run(load_instance(INSTANCE), "lagex", settings)
    exploration = Exploration(instance, plan, SEED)
    state, model = exploration.session.round, plan.model
    for t in times:
        exploration.advance_to(t - 1)
        previous = state.policy.copy()
        exploration.advance_to(t)
        if state.now.no_policy:
            continue
        sets = {}
        for name, code in RADIUS_CODES.items():
            widths, columns = np.zeros_like(model.known_rows), np.zeros_like(state.estimates.columns)
            write_widths(code, state.estimates, model, previous, widths)
            write_shifted(state.estimates.columns, widths, -1.0, columns)
            sets[name] = columns
        yield Reading(t, state.policy.copy(), state.estimates.mu_hat.copy(), sets)


def true_columns(instance: Instance) -> FloatArray:
    """Return the true feasible set."""
    return np.vstack([np.ones(instance.problem.n_arms), instance.true_rows])


def list_corners(columns: FloatArray) -> FloatArray:
    """Return the vertices of a set of three arms, counter-clockwise."""
    vertices = enumerate_vertices(columns)
    flat = CORNERS @ vertices.T
    x, y = flat - flat.mean(axis=1, keepdims=True)
    ordered: FloatArray = vertices[np.argsort(np.arctan2(y, x))]
    return ordered


def area_share(polygon: FloatArray) -> float:
    """Return the area of a polygon of policies (corners in order) as a share of the simplex."""
    x, y = CORNERS @ polygon.T
    area = 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))
    return area / (math.sqrt(3.0) / 4.0)


SETS = tuple(RADIUS_CODES)
TRUE_SET, POLICY, OPTIMUM = "true", "policy", "optimum"


def compute() -> list[dict[str, Any]]:
    """Return one row per corner of a set (`true`, `scalar`, `arm`), per policy, and for the true optimum.

    `missed` says by how much the set, or the policy, is off: the largest value of a row of the set at a true corner
    (positive: the set is no superset of the true one), or the true excess of the policy. The truth has pulls 0.
    """
    instance = load_instance(INSTANCE)
    best = instance.optimum()
    assert best is not None, "the instance is feasible"
    truth = list_corners(true_columns(instance))
    own_stop = find_own_stop()
    rows = [_row(0, TRUE_SET, i, corner, area_share(truth), None) for i, corner in enumerate(truth)]
    rows.append(_row(0, OPTIMUM, 0, best.policy, None, None))
    for reading in follow_run(list_times(own_stop)):
        for name, columns in reading.sets.items():
            polygon = list_corners(columns)
            missed = float((columns[1:] @ truth.T).max())
            area = area_share(polygon)
            rows += [_row(reading.pulls, name, i, corner, area, missed) for i, corner in enumerate(polygon)]
        rows.append(_row(reading.pulls, POLICY, 0, reading.policy, None, instance.excess(reading.policy)))
    return [{"seed": SEED, "own_stop": own_stop, **row} for row in rows]


def _row(
    pulls: int, what: str, corner: int, point: FloatArray, area: float | None, missed: float | None
) -> dict[str, Any]:
    return {
        "pulls": pulls,
        "what": what,
        "corner": corner,
        **{f"pi_{a + 1}": float(share) for a, share in enumerate(point)},
        "area": area,
        "missed": missed,
    }


def _points(rows: list[dict[str, Any]], what: str, pulls: int) -> FloatArray:
    """Return the corners of a set, or a policy, as an array with one row per point."""
    kept = sorted((r for r in rows if r["what"] == what and r["pulls"] == pulls), key=lambda r: r["corner"])
    return np.array([[r["pi_1"], r["pi_2"], r["pi_3"]] for r in kept])


def _first_corners(rows: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """Return one row per time: what is the same for all corners of a set."""
    return sorted((r for r in rows if r["what"] == what and r["corner"] == 0), key=lambda r: r["pulls"])


def drawn_times(own_stop: int, times: list[int]) -> list[int]:
    """Return the times that have a panel of their own: the paper's stop, then powers of ten."""
    return [t for t in times if t == own_stop or (t >= _FIRST_DRAWN and math.log10(t).is_integer())]


_LOOKS: dict[str, dict[str, Any]] = {
    "scalar": {"color": COLOURS[0], "linestyle": "-", "linewidth": 1.8},
    "arm": {"color": COLOURS[1], "linestyle": "--", "linewidth": 1.8},
}
_NAMES = {"scalar": "optimistic set (scalar, the paper's)", "arm": "optimistic set (arm)"}


def draw(rows: list[dict[str, Any]]) -> "Figure":
    """Draw the sets and the policy on the simplex at several times, their areas, and the policy's distance."""
    own_stop = rows[0]["own_stop"]
    times = drawn_times(own_stop, [row["pulls"] for row in _first_corners(rows, POLICY)])
    figure = new_figure(13.5, 7.2)
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.15])  # an array, whatever the stubs say
    top, bottom = halves
    panels = top.subplots(1, len(times))
    for axes, t in zip(panels, times, strict=True):
        _draw_simplex(axes, rows, t)
        axes.set_title(f"{t:,} pulls" + ("\n(the paper's rule stops)" if t == own_stop else "\n"))
    areas, distances = bottom.subplots(1, 2)
    _draw_areas(areas, rows)
    _draw_distances(distances, rows)
    figure.suptitle(f"Figure 2: LAGEX on instance {INSTANCE}, seed {rows[0]['seed']}", fontsize=13)
    handles, labels = panels[-1].get_legend_handles_labels()
    top.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _draw_simplex(axes: "Axes", rows: list[dict[str, Any]], t: int) -> None:
    outline = np.hstack([CORNERS, CORNERS[:, :1]])
    axes.plot(*outline, color="#888888", linewidth=0.8)
    axes.fill(*(CORNERS @ _points(rows, TRUE_SET, 0).T), color="#d0d0d0", linewidth=0, label="true feasible set")
    for name in SETS:
        polygon = _points(rows, name, t)
        axes.plot(*(CORNERS @ np.vstack([polygon, polygon[:1]]).T), **_LOOKS[name], label=_NAMES[name])
    optimum, policy = (CORNERS @ _points(rows, what, when)[0] for what, when in ((OPTIMUM, 0), (POLICY, t)))
    star: dict[str, Any] = {
        "marker": "*",
        "markersize": 13,
        "color": COLOURS[3],
        "markeredgecolor": "black",
        "linestyle": "none",
    }
    axes.plot(*optimum[:, None], **star, label="true optimum", zorder=4)
    axes.plot(*policy[:, None], "o", color="black", markersize=5, label="policy", zorder=5)
    for arm, (offset, align) in enumerate(
        (((-0.03, -0.03), "left"), ((0.03, -0.03), "right"), ((0.0, 0.03), "center"))
    ):
        x, y = CORNERS[:, arm] + offset
        axes.text(x, y, f"arm {arm + 1}", ha=align, va="top" if arm < 2 else "bottom", fontsize=9)
    axes.set_aspect("equal")
    axes.set_xlim(-0.56, 0.56)
    axes.set_ylim(-0.47, 0.72)
    axes.axis("off")


def _draw_areas(axes: "Axes", rows: list[dict[str, Any]]) -> None:
    truth = _first_corners(rows, TRUE_SET)[0]["area"]
    axes.axhline(100.0 * truth, color="#888888", linewidth=4, alpha=0.6, label="true feasible set")
    for name in SETS:
        kept = _first_corners(rows, name)
        pulls, shares = [row["pulls"] for row in kept], [100.0 * row["area"] for row in kept]
        axes.plot(pulls, shares, **_LOOKS[name], label=f"{name} set")
    short = [row for row in _first_corners(rows, "scalar") if row["missed"] > TRUTH]
    label = "scalar set lacks a part of the true one"
    axes.plot([r["pulls"] for r in short], [100.0 * r["area"] for r in short], "x", color="black", ms=7, label=label)
    axes.set_ylabel("area (percent of the simplex)")
    axes.set_ylim(0.0, 105.0)
    _mark_own_stop(axes, rows, "the paper's rule stops")
    axes.set_title("size of the sets")
    axes.legend(frameon=False, loc="lower right")


def _draw_distances(axes: "Axes", rows: list[dict[str, Any]]) -> None:
    kept = _first_corners(rows, POLICY)
    pulls = [row["pulls"] for row in kept]
    (optimum,) = _points(rows, OPTIMUM, 0)
    distances = [float(np.linalg.norm(_points(rows, POLICY, t)[0] - optimum)) for t in pulls]
    excess = [max(row["missed"], 0.0) or math.nan for row in kept]
    axes.plot(pulls, distances, color="black", marker="o", markersize=4, label="distance from the true optimum")
    label = "violation of the true constraint"  # in units of cost; on a log scale none is not seen
    axes.plot(pulls, excess, color=COLOURS[1], linestyle="--", marker="s", markersize=4, label=label)
    axes.set_yscale("log")
    axes.set_ylabel("distance (shares), violation (units of cost)")
    _mark_own_stop(axes, rows)
    axes.set_title("the policy")
    axes.legend(frameon=False, loc="upper right")


def _mark_own_stop(axes: "Axes", rows: list[dict[str, Any]], label: str | None = None) -> None:
    axes.axvline(rows[0]["own_stop"], color="#555555", linewidth=1, linestyle=":", label=label)
    axes.set_xscale("log")
    axes.set_xlabel("pulls")
    tidy(axes)


def describe(rows: list[dict[str, Any]]) -> list[str]:
    """Say how the sets and the policy converge, and when a set was no superset of the true one."""
    own_stop = rows[0]["own_stop"]
    truth = _first_corners(rows, TRUE_SET)[0]["area"]
    policies = _first_corners(rows, POLICY)
    last = policies[-1]["pulls"]
    sizes = {name: {row["pulls"]: row["area"] for row in _first_corners(rows, name)} for name in SETS}
    stopped, final = (next(r for r in policies if r["pulls"] == t) for t in (own_stop, last))
    violating = sum(row["missed"] > TRUTH for row in policies)
    sentences = [
        "The paper shows, without numbers, the optimistic set shrinking to the true feasible set, and the policy too.",
        f"Run here: LAGEX, preset paper, instance {INSTANCE}, seed {rows[0]['seed']}. Its own rule stops it after "
        f"{own_stop} pulls, with an optimistic set of {100.0 * sizes['scalar'][own_stop]:.1f} % of the simplex (the "
        f"true one: {100.0 * truth:.1f} %) and the policy {_format(stopped)}. To see convergence, the same run is "
        f"continued to {last:,} pulls: same samples, another stopping rule.",
        f"At {last:,} pulls the scalar set covers {100.0 * sizes['scalar'][last]:.1f} % and the arm set "
        f"{100.0 * sizes['arm'][last]:.1f} %; the policy is {_format(final)}, the optimum "
        f"{_format(_first_corners(rows, OPTIMUM)[0])}. The policy violates the true constraint at {violating} of the "
        f"{len(policies)} times looked at, as an optimistic policy does while its set is too large.",
    ]
    for name in SETS:
        short = [row["pulls"] for row in _first_corners(rows, name) if row["missed"] > TRUTH]
        where = f", at {', '.join(f'{t:,}' for t in short)} pulls" if short else ""
        sentences.append(
            f"The {name} set failed to contain the true set at {len(short)} of {len(sizes[name])} times{where}."
        )
    return sentences


def _format(row: dict[str, Any]) -> str:
    return f"({row['pi_1']:.3f}, {row['pi_2']:.3f}, {row['pi_3']:.3f})"
