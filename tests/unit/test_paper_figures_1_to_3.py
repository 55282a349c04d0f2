"""Figures 1 to 3 of Das and Basu (2026): what their rows say, and that the pictures are those of the rows."""

import math
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linprog

from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.instances import load_instance
from polyarm.figures import save_figure
from polyarm.papers.das_basu_2026 import figure1, figure2, figure3
from polyarm.tolerances import TRUTH

FIGURES = [figure1, figure2, figure3]


@cache
def rows_of(figure: ModuleType) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = figure.compute()
    return rows


def pick(figure: ModuleType, **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in rows_of(figure) if all(row[key] == value for key, value in wanted.items())]


def near(rows: list[dict[str, Any]], eps: float) -> dict[str, Any]:
    return min(rows, key=lambda row: abs(row["eps"] - eps))


def policy_of(row: dict[str, Any]) -> np.ndarray:
    return np.array([row["pi_1"], row["pi_2"], row["pi_3"]])


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__.rsplit(".")[-1])
def test_rows_are_flat_and_plain_and_fit_together(figure: ModuleType) -> None:
    rows = rows_of(figure)
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    for key in rows[0]:
        kinds = {type(row[key]) for row in rows} - {type(None)}
        assert len(kinds) == 1
        assert kinds <= {str, int, float}
    assert figure.compute() == rows
    assert pa.Table.from_pylist(rows).to_pylist() == rows


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__.rsplit(".")[-1])
def test_a_picture_is_that_of_its_rows_byte_for_byte(figure: ModuleType, tmp_path: Path) -> None:
    for ending in ("png", "pdf"):
        for name in ("first", "second"):
            save_figure(figure.draw(rows_of(figure)), tmp_path / f"{name}.{ending}")
        first, second = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("first", "second"))
        assert len(first) > 10_000
        assert first == second


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__.rsplit(".")[-1])
def test_the_report_has_sentences(figure: ModuleType) -> None:
    sentences = figure.describe(rows_of(figure))
    assert len(sentences) >= 3
    for sentence in sentences:
        assert sentence.endswith(".")
        assert "nan" not in sentence


# Figure 1


@pytest.mark.parametrize("reading", list(figure1.READINGS))
@pytest.mark.parametrize("eps", [-figure1.PAPER_EPS, 0.0, figure1.PAPER_EPS])
def test_the_optimum_moves_as_the_linear_program_says(reading: str, eps: float) -> None:
    row = near(pick(figure1, reading=reading, quantity=figure1.EXACT), eps)
    instance = load_instance("figure1")
    changed, bound = figure1.READINGS[reading](instance.A[0], 0.0, eps)
    A = np.vstack([changed, instance.A[1:]])
    found = linprog(-instance.mu, A_ub=A, b_ub=[bound, 0.0], A_eq=np.ones((1, 3)), b_eq=[1.0])
    assert found.success
    assert policy_of(row) == pytest.approx(found.x, abs=1e-9)


def test_the_optimum_moves_only_when_the_row_is_tightened() -> None:
    for row in pick(figure1, quantity=figure1.EXACT):
        tightens = row["eps"] > 0.0 and row["reading"] in {figure1.MAIN, "every entry", "bound"}
        assert (row["pi_1"] < 1.0 - 1e-9) == tightens


def test_time_jumps_at_zero_but_does_not_blow_up_with_known_constraints() -> None:
    known = pick(figure1, reading=figure1.MAIN, quantity=figure1.EXACT)
    before = {row["T"] for row in known if row["eps"] <= 0.0}
    after = [row["T"] for row in known if row["eps"] > 0.0]
    assert max(before) - min(before) < 1e-3
    assert min(after) > 1.05 * max(before)
    assert max(after) < 1.01 * min(after)


def test_no_reading_with_known_constraints_comes_near_the_published_order() -> None:
    at_eps = [row for row in rows_of(figure1) if math.isclose(abs(row["eps"]), figure1.PAPER_EPS)]
    assert len(at_eps) == 4 * 2 * len(figure1.READINGS)
    assert max(row["samples"] for row in at_eps if row["quantity"] != figure1.JOINT) < figure1.PAPER_SAMPLES / 10.0


def test_time_as_printed_is_infinite_where_a_gap_equals_r() -> None:
    printed = pick(figure1, reading=figure1.MAIN, quantity=figure1.PRINTED)
    (pole,) = (row for row in printed if row["T"] is None)
    instance = load_instance("figure1")
    eps, r = pole["eps"], instance.problem.r
    # The two vertices on the perturbed row eps x_1 = 0.3 x_2 + 0.2 x_3.
    best, neighbour = np.array([0.3, eps, 0.0]) / (0.3 + eps), np.array([0.2, 0.0, eps]) / (0.2 + eps)
    assert instance.mu @ (best - neighbour) == pytest.approx(r, abs=1e-12)
    assert policy_of(pole) == pytest.approx(best, abs=1e-9)
    close = [row["T"] for row in printed if 0.0 < abs(row["eps"] - eps) < 1e-5]
    assert close
    assert min(close) > 1e6


def test_joint_time_has_proved_bounds_and_grows_with_the_perturbation() -> None:
    joint = sorted(pick(figure1, reading=figure1.MAIN, quantity=figure1.JOINT), key=lambda row: row["eps"])
    for row in joint:
        assert row["T_proved_low"] <= row["T"] <= row["T_proved_high"] * (1.0 + 1e-9)
    assert near(joint, figure1.PAPER_EPS)["T"] > 3.0 * near(joint, -figure1.PAPER_EPS)["T"]


# Figure 2


def corners(what: str, pulls: int) -> np.ndarray:
    return np.array([policy_of(row) for row in pick(figure2, what=what, pulls=pulls)])


def contains(polygon: np.ndarray, point: np.ndarray) -> bool:
    """Whether a convex polygon of policies, corners in order, contains a policy."""
    flat, (x, y) = figure2.CORNERS @ polygon.T, figure2.CORNERS @ point
    steps = np.roll(flat, -1, axis=1) - flat
    return bool(np.all(steps[0] * (y - flat[1]) - steps[1] * (x - flat[0]) >= -1e-9))


def run_times() -> list[int]:
    return sorted(row["pulls"] for row in pick(figure2, what="policy"))


def test_the_arm_set_contains_the_true_set_and_the_optimum_at_all_times() -> None:
    (optimum,) = corners("optimum", 0)
    for t in run_times():
        polygon = corners("arm", t)
        assert contains(polygon, optimum)
        assert all(contains(polygon, corner) for corner in corners("true", 0))


def test_missed_says_when_the_scalar_set_is_no_superset() -> None:
    verdicts = {}
    for row in pick(figure2, what="scalar", corner=0):
        polygon = corners("scalar", row["pulls"])
        verdicts[row["pulls"]] = all(contains(polygon, corner) for corner in corners("true", 0))
        assert verdicts[row["pulls"]] == (row["missed"] <= TRUTH)
    assert not all(verdicts.values())


@pytest.mark.parametrize("name", figure2.SETS)
def test_areas_shrink_towards_the_truth(name: str) -> None:
    areas = [row["area"] for row in sorted(pick(figure2, what=name, corner=0), key=lambda row: row["pulls"])]
    true = pick(figure2, what="true")[0]["area"]
    assert true == pytest.approx(0.5)
    assert areas[0] > 0.99
    assert abs(areas[-1] - true) < 0.04


def test_the_policy_is_a_corner_of_its_set() -> None:
    for t in run_times():
        (policy,) = corners("policy", t)
        assert np.abs(corners("scalar", t) - policy).max(axis=1).min() < 1e-9


def test_the_continued_run_is_the_paper_s_run_until_that_stops() -> None:
    stop = rows_of(figure2)[0]["own_stop"]
    instance, plan = plan_run(load_instance(figure2.INSTANCE), "lagex", {"preset": "paper"})
    exploration = Exploration(instance, plan, figure2.SEED)
    exploration.advance_to(figure2.HORIZON)
    assert exploration.session.stopped
    assert exploration.session.steps == stop
    (continued,) = figure2.follow_run([stop])
    assert np.array_equal(continued.mu_hat, exploration.session.round.estimates.mu_hat)
    assert np.array_equal(continued.policy, exploration.session.round.policy)


# Figure 3


def test_rewards_lie_in_the_cone_of_the_policy_they_make_optimal() -> None:
    rows = rows_of(figure3)
    assert len(rows) == 1 + len(run_times())
    assert all(figure3.is_inside(row, row["angle_reward"]) for row in rows)


def test_the_true_cone() -> None:
    truth = rows_of(figure3)[0]
    assert (truth["angle_low"], truth["angle_high"]) == pytest.approx((60.0, 150.0))
    assert truth["angle_reward"] == pytest.approx(120.0)


def test_cones_of_the_corners_tell_which_is_optimal() -> None:
    columns = figure2.true_columns(load_instance(figure2.INSTANCE))
    vertices = figure2.list_corners(columns)
    cones = [dict(zip(("angle_low", "angle_high"), figure3.normal_cone(columns, v), strict=True)) for v in vertices]
    assert sum(cone["angle_high"] - cone["angle_low"] for cone in cones) == pytest.approx(360.0)
    for mu in np.random.default_rng(5).normal(size=(200, 3)):
        inside = [figure3.is_inside(cone, figure3.find_angle(mu)) for cone in cones]
        assert inside == [v == np.argmax(vertices @ mu) for v in range(len(vertices))]


def test_cones_converge() -> None:
    truth, *run = rows_of(figure3)
    errors = [abs(row["angle_low"] - truth["angle_low"]) for row in run]
    assert errors[-1] < 1.0 < max(errors)
    assert math.isclose(run[-1]["angle_high"], truth["angle_high"])
