"""The planner: slopes against finite differences, and what a climb may and may not do."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from oracle.joint import draw_mixes
from oracle.records import spoil
from oracle.reference import BoolArray, FloatArray, Generator
from polyarm.certify.pooled import Pricing, make_pricing, make_worth, weigh_pulls
from polyarm.certify.witnesses import Pool, add_witness, make_pool
from polyarm.families.family import make_family
from polyarm.model import Model
from polyarm.planner import improve
from polyarm.planner.improve import Effort, climb, fresh_steps
from polyarm.planner.objective import PlanWork, Scene, activate, evaluate, forget, make_memory, make_plan_work

SHARPNESS = 25.0
FLOOR = 1e-4

every_kind = pytest.mark.parametrize(
    ("proved", "share_known"), list(itertools.product([True, False], [0.0, 0.4])), ids=str
)


class Plan(NamedTuple):
    """A scene, a time, and a point to start from."""

    scene: Scene
    total: float
    allocation: FloatArray
    answer: FloatArray

    @property
    def pulls(self) -> FloatArray:
        """The plan in pulls."""
        return self.total * self.allocation

    @property
    def shape(self) -> tuple[int, int]:
        """K and d."""
        return self.answer.size, self.scene.model.known.size


def make_model(rows: FloatArray, known: BoolArray, reward_noise: FloatArray, row_noise: FloatArray, r: float) -> Model:
    """A problem whose rows are already in units of their noise, with bounds of zero."""
    d, n_arms = rows.shape
    return Model(
        family=make_family("gaussian", n_arms, tuple(np.sqrt(reward_noise).tolist())),
        known=known,
        known_rows=np.where(known[:, None], rows, 0.0),
        bounds=np.zeros(d),
        cost_std=np.sqrt(row_noise),
        factors=np.ones(d),
        simplex=np.ones((1, n_arms)),
        known_set=np.vstack([np.ones(n_arms), rows[known]]),
        reward_noise=reward_noise,
        row_noise=row_noise,
        independent=False,
        delta=0.1,
        r=r,
    )


def make_scene(mu: FloatArray, rows: FloatArray, model: Model, pool: Pool, pricing: Pricing) -> Scene:
    """A scene in which the whole exploration is to be planned."""
    d, n_arms = rows.shape
    scene = Scene(mu, rows, model, pool, pricing, make_memory(n_arms, d))
    forget(scene)
    return scene


def draw_plan(rng: Generator, share_known: float = 0.0, proved: bool = True) -> Plan:
    """A random problem whose answer has slack in every row, and a pool of single arms and random mixes."""
    n_arms, d = int(rng.integers(2, 9)), int(rng.integers(0, 4))
    known = rng.random(d) < share_known
    rows = rng.normal(size=(d, n_arms))
    answer = rng.dirichlet(np.full(n_arms, 2.0)) + 1e-3
    answer /= answer.sum()
    rows -= (rows @ answer)[:, None] + rng.uniform(0.05, 0.5, size=(d, 1))
    mu = rng.normal(size=n_arms)
    r = float(rng.uniform(0.1, 0.5)) + max(float(mu.max() - mu @ answer), 0.0)
    row_noise = np.where(known[:, None], 0.0, rng.uniform(0.2, 1.0, size=(d, n_arms)))
    pool = make_pool(n_arms, d)
    for mix in np.vstack([np.eye(n_arms), draw_mixes(rng, 15, n_arms)]):
        if (rows[known] @ mix <= 0.0).all():
            add_witness(pool, mix.copy())
    n_known = int(known.sum())
    pricing = make_pricing(proved, float(10.0 ** rng.uniform(0.0, 2.0)), 0.1, n_arms, n_known, d - n_known, False)
    model = make_model(rows, known, rng.uniform(0.3, 2.0, size=n_arms), row_noise, r)
    scene = make_scene(mu, rows, model, pool, pricing)
    allocation = rng.dirichlet(np.full(n_arms, 3.0)) + 0.01
    total = float(10.0 ** rng.uniform(2.0, 4.0))
    if not proved and rng.random() < 0.5:
        remember(rng, scene, total, answer)
    return Plan(scene, total, allocation / allocation.sum(), answer)


def remember(rng: Generator, scene: Scene, total: float, answer: FloatArray) -> None:
    """Fix a first part of the exploration: a few blocks with answers and allocations of their own."""
    memory, model, (d, n_arms) = scene.memory, scene.model, scene.rows.shape
    share = float(rng.uniform(0.2, 0.9))
    v, u, z = np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms)
    for _ in range(3):
        spread = (1.0 - share) / 3.0 / (total * (rng.dirichlet(np.full(n_arms, 3.0)) + 0.01))
        given = rng.dirichlet(50.0 * answer + 0.1)
        v, u, z = v + spread, u + spread * given, z + spread * given**2
    memory.terms.share = share
    memory.terms.earned = float((1.0 - share) * scene.mu @ answer)
    memory.terms.settled = float(model.reward_noise @ z)
    memory.terms.floor = float(rng.uniform(0.0, 1.0))
    memory.spreads[:], memory.cross[:] = v, u
    memory.means[:] = scene.mu + 0.05 * rng.normal(size=n_arms)
    memory.slacks[:] = -(1.0 - share) * (scene.rows @ answer)
    memory.bases[:] = model.row_noise @ z
    memory.rows[:] = scene.rows + 0.05 * rng.normal(size=(d, n_arms))


def cut_values(scene: Scene, pulls: FloatArray, answer: FloatArray) -> FloatArray:
    """f_k / beta_k of every unknown row and every witness of the pool, by the formulas."""
    worth, model, memory = make_worth(pulls.size), scene.model, scene.memory
    weigh_pulls(scene.pricing, pulls, worth)
    effective, unknown = worth.effective, ~model.known
    share, earned, base, floor = memory.terms.share, memory.terms.earned, memory.terms.settled, memory.terms.floor
    v, u = memory.spreads, memory.cross
    slacks, bases = memory.slacks[unknown], memory.bases[unknown]
    slack = np.maximum(slacks - share * (scene.rows[unknown] @ answer), 0.0)
    row_spread = bases + share * (model.row_noise[unknown] / effective) @ answer**2
    costs = slack**2 / (2.0 * row_spread) / worth.thresholds.cost
    mixes = scene.pool.mixes[: scene.pool.size[0]]
    gap = np.maximum(model.r + earned + share * (scene.mu @ answer) - mixes @ memory.means, 0.0)
    spread = base + (mixes**2 * v - 2.0 * mixes * u + share * (mixes - answer) ** 2 / effective) @ model.reward_noise
    values = gap**2 / np.maximum(spread, 1e-30)
    for i in np.flatnonzero(unknown):
        spread = mixes**2 @ (model.row_noise[i] * (v + share / effective))
        values += np.maximum(np.maximum(mixes @ memory.rows[i], 0.0) ** 2 / spread, 2.0 * floor)
    return np.concatenate([costs, 0.5 * values / worth.thresholds.reward])


def soft_minimum(scene: Scene, pulls: FloatArray, answer: FloatArray) -> float:
    """-log(sum of value^-sharpness) / sharpness."""
    logs = -SHARPNESS * np.log(np.maximum(cut_values(scene, pulls, answer), 1e-300))
    return -float(np.logaddexp.reduce(logs)) / SHARPNESS


def make_scratch(plan: Plan) -> PlanWork:
    work = make_plan_work(plan.scene.pool, plan.scene.model)
    spoil(work)
    return work


def prepare(plan: Plan) -> tuple[PlanWork, float]:
    """List every witness and fill in the score at the start; returns the soft minimum too."""
    work = make_scratch(plan)
    improve._price_allocation(plan.scene, plan.allocation, plan.total, work.pulls, work.score)
    work.vantage.n_active = 0
    for k in range(plan.scene.pool.size[0]):
        activate(plan.scene, k, work)
    return work, float(evaluate(plan.scene, plan.answer, SHARPNESS, work, work.score))


def run(plan: Plan, iterations: int = 60, total: float | None = None) -> tuple[float, FloatArray, FloatArray]:
    """Climb; returns the least ratio claimed, the allocation and the answer."""
    allocation, answer = plan.allocation.copy(), plan.answer.copy()
    if total == 0.0:
        allocation *= plan.total
    effort = Effort(plan.total if total is None else total, FLOOR, SHARPNESS, iterations)
    least = climb(plan.scene, effort, fresh_steps(), allocation, answer, make_scratch(plan))
    return float(least), allocation, answer


def write_at(plan: Plan, write: Callable[[Scene, FloatArray, PlanWork, FloatArray], None]) -> FloatArray:
    """What a kernel of the planner writes at the start: one number per arm."""
    work, _ = prepare(plan)
    written = np.full(plan.answer.size, np.nan)
    write(plan.scene, plan.answer, work, written)
    return written


# -- Slopes ----------------------------------------------------------------------------------------------------


@every_kind
def test_the_soft_minimum_agrees_with_its_formula(proved: bool, share_known: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        plan = draw_plan(rng, share_known, proved)
        work, soft = prepare(plan)
        assert soft == pytest.approx(soft_minimum(plan.scene, plan.pulls, plan.answer), abs=1e-9)
        known = plan.scene.model.known
        assert work.vantage.n_active == plan.scene.pool.size[0]
        values = np.delete(work.score.values[: known.size + work.vantage.n_active], np.flatnonzero(known))
        assert values == pytest.approx(cut_values(plan.scene, plan.pulls, plan.answer), rel=1e-9)


@every_kind
def test_gradients_agree_with_finite_differences(proved: bool, share_known: float) -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        plan = draw_plan(rng, share_known, proved)
        gradient = write_at(plan, improve._write_gradient)
        for a, step in enumerate(1e-6 * np.eye(plan.answer.size)):
            up = soft_minimum(plan.scene, plan.pulls, plan.answer + step)
            down = soft_minimum(plan.scene, plan.pulls, plan.answer - step)
            slope = (up - down) / 2e-6
            assert gradient[a] == pytest.approx(slope, rel=1e-3, abs=1e-3 * (1.0 + np.abs(gradient).max()))


@every_kind
def test_elasticities_agree_with_finite_differences(proved: bool, share_known: float) -> None:
    rng = np.random.default_rng(3)
    positive = 0
    for _ in range(100):
        plan = draw_plan(rng, share_known, proved)
        elasticity = write_at(plan, improve._write_elasticities)
        for a, change in enumerate(1e-5 * np.eye(plan.answer.size)):
            slope = (
                soft_minimum(plan.scene, plan.pulls * np.exp(change), plan.answer)
                - soft_minimum(plan.scene, plan.pulls * np.exp(-change), plan.answer)
            ) / 2e-5
            if not proved:
                # The stylised thresholds depend on the total alone, which planning keeps.
                beta = np.log((1.0 + np.log(plan.total)) / 0.1)
                slope += plan.allocation[a] / (1.0 + np.log(plan.total)) / beta
            assert elasticity[a] == pytest.approx(max(slope, 0.0), rel=1e-3, abs=1e-4)
            positive += slope > 0.01
    assert positive >= 150


# -- Climbs ----------------------------------------------------------------------------------------------------


@every_kind
def test_a_climb_keeps_its_promises(proved: bool, share_known: float) -> None:
    rng = np.random.default_rng(4)
    gains = []
    for _ in range(150):
        plan = draw_plan(rng, share_known, proved)
        scene = plan.scene
        before = cut_values(scene, plan.pulls, plan.answer)
        least, allocation, answer = run(plan)
        after = cut_values(scene, plan.total * allocation, answer)
        for mix in (allocation, answer):
            assert mix.min() >= 0.0
            assert mix.sum() == pytest.approx(1.0, abs=1e-9)
        assert allocation.min() >= FLOOR / (1.0 + allocation.size * FLOOR) * (1.0 - 1e-9)
        assert (scene.rows[scene.model.known] @ answer).max(initial=0.0) <= 1e-9
        assert least == pytest.approx(after.min(), rel=1e-6), "what is claimed is the minimum over the whole pool"
        # The soft minimum never falls, and lies within log(cuts)/sharpness of the true one.
        assert after.min() >= before.min() * before.size ** (-1.0 / SHARPNESS) * (1.0 - 1e-9)
        gains.append(after.min() / before.min())
    assert np.mean(np.array(gains) > 1.0) >= 0.9
    assert np.median(gains) > 1.3, "a climb that hardly climbs"


@pytest.mark.parametrize("share_known", [0.0, 0.4])
def test_with_pulls_made_only_the_answer_moves(share_known: float) -> None:
    rng = np.random.default_rng(5)
    gains = []
    for _ in range(150):
        plan = draw_plan(rng, share_known)
        least, allocation, answer = run(plan, total=0.0)
        assert allocation.tolist() == plan.pulls.tolist()
        before, after = cut_values(plan.scene, plan.pulls, plan.answer), cut_values(plan.scene, plan.pulls, answer)
        assert least == pytest.approx(after.min(), rel=1e-6)
        assert after.min() >= before.min() * before.size ** (-1.0 / SHARPNESS) * (1.0 - 1e-9)
        assert answer.sum() == pytest.approx(1.0, abs=1e-9)
        assert (plan.scene.rows[plan.scene.model.known] @ answer).max(initial=0.0) <= 1e-9
        gains.append(after.min() / before.min())
    assert np.mean(np.array(gains) > 1.0) >= 0.8


def test_no_iterations_change_nothing() -> None:
    rng = np.random.default_rng(6)
    for _ in range(30):
        plan = draw_plan(rng, 0.3)
        least, allocation, answer = run(plan, iterations=0)
        assert allocation.tolist() == plan.allocation.tolist()
        assert answer.tolist() == plan.answer.tolist()
        values = cut_values(plan.scene, plan.pulls, plan.answer)
        assert least == pytest.approx(values.min(), rel=1e-9)


def test_longer_climbs_end_higher() -> None:
    rng = np.random.default_rng(7)
    short, long = [], []
    for _ in range(60):
        plan = draw_plan(rng)
        short.append(run(plan, iterations=10)[0])
        long.append(run(plan, iterations=200)[0])
    assert np.mean(np.array(long) >= 0.99 * np.array(short)) >= 0.95
    assert np.median(np.array(long) / np.array(short)) > 1.01


def test_the_unit_of_the_reward_does_not_matter() -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        plan = draw_plan(rng, 0.3)
        unit = 2.0 ** int(rng.integers(-6, 7))
        scene, model = plan.scene, plan.scene.model
        model = make_model(scene.rows, model.known, unit**2 * model.reward_noise, model.row_noise, unit * model.r)
        scene = make_scene(unit * scene.mu, scene.rows, model, scene.pool, scene.pricing)
        least, allocation, answer = run(plan)
        other, other_allocation, other_answer = run(plan._replace(scene=scene))
        assert other == pytest.approx(least, rel=1e-6)
        assert other_allocation == pytest.approx(allocation, abs=1e-6)
        assert other_answer == pytest.approx(answer, abs=1e-6)


def test_an_answer_that_breaks_a_row_finds_back() -> None:
    rng = np.random.default_rng(9)
    back = []
    for _ in range(100):
        plan = draw_plan(rng)
        if plan.shape[1] == 0:
            continue
        away = np.eye(plan.shape[0])[int(np.argmax(plan.scene.rows[0]))]
        start = 0.05 * plan.answer + 0.95 * away
        if plan.scene.rows[0] @ start <= 0.0:
            continue
        _, _, answer = run(plan._replace(answer=start), iterations=120)
        back.append((plan.scene.rows @ answer).max() < 0.0)
    assert np.mean(back) >= 0.9


def test_an_answer_that_breaks_a_known_row_is_not_kept() -> None:
    rows, known = np.array([[0.8, -0.2, -0.2], [-1.0, 0.2, 0.2]]), np.array([True, False])
    row_noise = np.array([[0.0, 0.0, 0.0], [0.01, 0.01, 0.01]])
    model = make_model(rows, known, np.full(3, 0.01), row_noise, 0.5)
    scene = make_scene(np.zeros(3), rows, model, make_pool(3, 2), make_pricing(True, 1.0, 0.1, 3, 1, 1, False))
    add_witness(scene.pool, np.array([0.0, 1.0, 0.0]))
    uniform = np.full(3, 1.0 / 3.0)
    _, _, answer = run(Plan(scene, 6.0, uniform, uniform), total=0.0)
    assert scene.rows[0] @ answer <= 1e-9
