"""Climbing plans of blocks: proximal steps solve their quadratic programs, and a climb keeps its promises."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from oracle.reference import FloatArray, Generator
from polyarm import Session
from polyarm.planner.block_planner import ClimbWork, Effort, _weigh_bundle, climb_blocks, make_climb_work
from polyarm.planner.prospect import list_witnesses, weigh_plan
from unit.test_prospect import DECLARED, EVERY_PLAN, Scene, explore, make_scene

FLOOR = 0.004


# -- Weights of a step -----------------------------------------------------------------------------------------


def draw_bundle(rng: Generator) -> tuple[float, ClimbWork]:
    """A length of a step, and claims with slopes of few or many dimensions, some nearly alike."""
    n_arms = int(rng.integers(2, 12))
    climbing = make_climb_work(n_arms, 0)
    n = int(rng.integers(1, climbing.ratios.size + 1))
    slopes = rng.normal(size=(n, 2 * n_arms)) * 10.0 ** rng.uniform(-1.0, 0.5)
    slopes[rng.random(n) < 0.3] = slopes[0] + 1e-3 * rng.normal(size=2 * n_arms)
    climbing.n_picked[0] = n
    climbing.ratios[:n] = rng.uniform(0.0, 0.6, size=n)
    climbing.products[:n, :n] = slopes @ slopes.T
    return float(10.0 ** rng.uniform(-3.0, 0.5)), climbing


def solve_slowly(Q: FloatArray, f: FloatArray, start: FloatArray) -> float:
    """The least of lambda' Q lambda / 2 + lambda' f over the simplex."""
    solved = minimize(
        lambda x: float(0.5 * x @ Q @ x + x @ f),
        start,
        jac=lambda x: Q @ x + f,
        bounds=[(0.0, 1.0)] * f.size,
        constraints=[{"type": "eq", "fun": lambda x: x.sum() - 1.0, "jac": lambda x: np.ones(f.size)}],  # type: ignore[call-overload]
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return float(solved.fun)


def test_weights_solve_the_quadratic_program_of_a_step() -> None:
    rng, exact = np.random.default_rng(1), 0
    for _ in range(100):
        length, climbing = draw_bundle(rng)
        n = int(climbing.n_picked[0])
        Q, f = length * climbing.products[:n, :n], climbing.ratios[:n].copy()
        climbing.weights[:] = np.nan
        _weigh_bundle(length, climbing)
        weights = climbing.weights[:n]
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0)
        found = float(0.5 * weights @ Q @ weights + weights @ f)
        even = np.full(n, 1.0 / n)
        least, begun = solve_slowly(Q, f, weights), float(0.5 * even @ Q @ even + even @ f)
        assert found <= least + 1e-3 * (begun - least) + 1e-9, (
            "the number of moves is limited, with little left to gain"
        )
        exact += found <= least + 1e-6
    assert exact >= 95


# -- Climbs ----------------------------------------------------------------------------------------------------


def climb(scene: Scene, iterations: int) -> tuple[float, FloatArray, FloatArray]:
    """Climb from a plan; returns the least log ratio that is claimed, the allocation and the answer."""
    allocation, answer = scene.allocation.copy(), scene.answer.copy()
    model = scene.prospect.model
    climbing = make_climb_work(answer.size, int(model.known.sum()))
    effort, length = Effort(iterations, FLOOR), np.full(1, 0.3)
    least = climb_blocks(scene.prospect, scene.start, effort, length, allocation, answer, scene.work, climbing)
    return float(least), allocation, answer


def weigh_all(scene: Scene, allocation: FloatArray, answer: FloatArray) -> float:
    """The least log ratio over every row at the answer and every witness of the pool."""
    size = int(scene.prospect.pool.size[0])
    scene.work.active[:size], scene.work.n_active[0] = np.arange(size), size
    return float(weigh_plan(scene.prospect, scene.start, allocation, answer, True, scene.work, scene.work.now))


def least_statistic(scene: Scene, allocation: FloatArray, answer: FloatArray) -> float:
    """Negative where some claim is on the wrong side: a row at the answer, or a witness by its best coordinate."""
    weigh_all(scene, allocation, answer)
    claims = np.r_[~scene.prospect.model.known, np.ones(int(scene.prospect.pool.size[0]), dtype=np.bool_)]
    return float(scene.work.now.statistics[: claims.size][claims].min())


def begin_somewhere(rng: Generator, session: Session, recalls: bool) -> Scene:
    """A plan near that of an exploration, with every statistic on the right side, as a cautious answer has it."""
    while True:
        scene = make_scene(rng, session, recalls)
        known = scene.prospect.model.known_rows[scene.prospect.model.known]
        if (known @ scene.answer).max() <= 0.0 and weigh_all(scene, scene.allocation, scene.answer) > -4.0:
            return scene


@EVERY_PLAN
def test_a_climb_keeps_its_promises(kind: str, recalls: bool) -> None:
    rng, gains = np.random.default_rng(2), []
    for seed in range(3):
        session = explore(kind, seed)
        for _ in range(8):
            scene = begin_somewhere(rng, session, recalls)
            before = weigh_all(scene, scene.allocation, scene.answer)
            least, allocation, answer = climb(scene, 18)
            assert least == pytest.approx(weigh_all(scene, allocation, answer), abs=1e-9), "the whole pool counts"
            assert least >= before
            for mix, floor in ((allocation, FLOOR / (1.0 + 4 * FLOOR)), (answer, 0.0)):
                assert mix.min() >= floor * (1.0 - 1e-9)
                assert mix.sum() == pytest.approx(1.0, abs=1e-9)
            model = scene.prospect.model
            assert (model.known_rows[model.known] @ answer).max() <= 1e-9
            gains.append(least - before)
    assert np.mean(np.array(gains) > 0.0) >= 0.9
    assert np.median(gains) > 0.05, "a climb that hardly climbs"


@pytest.mark.parametrize("kind", DECLARED)
def test_longer_climbs_end_higher(kind: str) -> None:
    rng, session = np.random.default_rng(3), explore(kind, 1)
    more = []
    for _ in range(8):
        scene = begin_somewhere(rng, session, recalls=False)
        more.append(climb(scene, 60)[0] - climb(scene, 6)[0])
    assert np.min(more) > -1e-9
    assert np.median(more) > 0.01


@EVERY_PLAN
def test_a_plan_with_statistics_on_the_wrong_side_finds_back(kind: str, recalls: bool) -> None:
    """From answers that break rows or lose too much, and for however many pulls: then deviations are huge."""
    rng, back = np.random.default_rng(5), []
    for seed in range(3):
        session = explore(kind, seed)
        for _ in range(8):
            scene = make_scene(rng, session, recalls)
            scene.prospect.terms.total *= 10.0 ** rng.choice([0.0, 3.0])
            list_witnesses(scene.prospect, scene.start, scene.work)
            if least_statistic(scene, scene.allocation, scene.answer) < 0.0:
                _, allocation, answer = climb(scene, 60)
                back.append(least_statistic(scene, allocation, answer) > 0.0)
    assert len(back) >= 8
    assert np.mean(back) >= 0.9


@EVERY_PLAN
def test_an_answer_a_little_beyond_a_known_row_is_moved_within(kind: str, recalls: bool) -> None:
    """As when a little of every arm is mixed into an answer at its edge."""
    rng, session = np.random.default_rng(4), explore(kind, 1)
    for _ in range(6):
        scene = begin_somewhere(rng, session, recalls)
        model, edge = scene.prospect.model, scene.answer
        row = model.known_rows[model.known][0]
        worst = np.eye(4)[int(np.argmax(row))]
        share = -(row @ edge) / (row @ (worst - edge)) + 0.01
        beyond = (1.0 - share) * edge + share * worst
        assert row @ beyond > 0.0
        _, _, answer = climb(replace(scene, answer=beyond), 18)
        assert row @ answer <= 1e-9


def test_no_iterations_change_nothing() -> None:
    rng, session = np.random.default_rng(4), explore("mixed", 1)
    scene = make_scene(rng, session, recalls=True, away=False)
    least, allocation, answer = climb(scene, 0)
    assert least == pytest.approx(weigh_all(scene, scene.allocation, scene.answer))
    assert allocation.tolist() == scene.allocation.tolist()
    assert answer.tolist() == scene.answer.tolist()
