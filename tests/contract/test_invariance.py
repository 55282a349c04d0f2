"""What an explorer may not know, and what may not matter to it."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from polyarm import load_instance, simulate
from polyarm._types import FloatArray
from polyarm.engine.plan import make_plan
from polyarm.engine.run import Exploration, plan_run
from polyarm.engine.session import Session
from polyarm.environments.instances import Instance
from polyarm.rules.registry import EXPLORERS

BLIND = sorted(name for name, explorer in EXPLORERS.items() if not explorer.needs_known_rows)


@pytest.mark.parametrize("name", BLIND)
def test_explorers_that_estimate_the_constraints_never_see_them(name: str) -> None:
    instance = load_instance("setup1-hard")
    other = Instance(instance.name, instance.source, instance.problem, instance.mu, instance.A[::-1].copy())
    arms = []
    for truth in (instance, other):
        _, plan = plan_run(truth, name, {})
        assert not plan.model.known.any()
        assert not plan.model.known_rows.any()
        session, rng = Session(plan, 5), np.random.default_rng(5)
        asked = []
        for _ in range(150):
            asked.append(session.ask())
            session.tell(asked[-1], rng.normal(), rng.normal(size=2).tolist())
        arms.append(asked)
    assert arms[0] == arms[1]


def test_explorers_that_are_told_the_constraints_get_the_true_ones() -> None:
    instance = load_instance("setup1-hard")
    for name in set(EXPLORERS) - set(BLIND):
        _, plan = plan_run(instance, name, {})
        assert plan.model.known.all()
        np.testing.assert_allclose(plan.model.known_rows, instance.true_rows)


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_the_unit_of_the_reward_does_not_matter(name: str) -> None:
    """Twice the rewards, noise and tolerance: the same arms (a power of two changes no digit)."""
    instance = load_instance("setup1-easy")
    doubled = Instance(
        instance.name,
        instance.source,
        instance.problem.replace(reward_std=2.0, r=2.0 * instance.problem.r),
        2.0 * instance.mu,
        instance.A,
    )
    runs = []
    for truth in (instance, doubled):
        exploration = Exploration(*plan_run(truth, name, {}), seed=3)
        exploration.advance_to(400)
        runs.append(exploration.session)
    assert runs[0].steps == runs[1].steps
    np.testing.assert_array_equal(runs[0].round.estimates.pulls, runs[1].round.estimates.pulls)


@pytest.mark.parametrize(("estimated", "known"), [("ctns-wlag", "ctns"), ("cge-wlag", "cge")])
def test_with_every_row_known_the_two_are_one(estimated: str, known: str) -> None:
    instance = load_instance("setup1-easy")
    problem = instance.problem.with_known_rows(instance.A)
    runs = [Exploration(instance, make_plan(name, problem, {}), seed=2) for name in (estimated, known)]
    for run in runs:
        run.advance_to(500)
    np.testing.assert_array_equal(runs[0].session.round.estimates.pulls, runs[1].session.round.estimates.pulls)


ORDER = np.array([4, 0, 6, 2, 1, 5, 3])


def reordered(instance: Instance) -> Instance:
    """The same instance with its arms listed in another order."""
    problem = instance.problem.replace(arms=[instance.problem.arms[a] for a in ORDER])
    return Instance(instance.name, instance.source, problem, instance.mu[ORDER], instance.A[:, ORDER])


def play_from_table(instance: Instance, name: str, rewards: FloatArray, costs: FloatArray, steps: int) -> Session:
    """Tell each arm's n-th pull the n-th entry of its own column: outcomes do not depend on the order of arms."""
    _, plan = plan_run(instance, name, {})
    session = Session(plan, 0)
    pulled = np.zeros(instance.problem.n_arms, dtype=np.int64)
    for _ in range(steps):
        arm = session.ask()
        measured = costs[:, arm, pulled[arm]].tolist() if session.problem.unknown else []
        session.tell(arm, rewards[arm, pulled[arm]], measured)
        pulled[arm] += 1
    return session


@pytest.mark.parametrize("name", sorted(set(EXPLORERS) - {"uniform", "certex"}))  # chance, or last digits, decide
def test_the_order_of_the_arms_does_not_matter_to_what_is_pulled(name: str) -> None:
    """Only ties, broken by the order, may shift a pull or two in time."""
    instance = load_instance("setup1-hard")
    rng = np.random.default_rng(8)
    rewards = instance.mu[:, None] + rng.normal(size=(7, 400))
    costs = instance.A[:, :, None] + rng.normal(size=(2, 7, 400))
    first = play_from_table(instance, name, rewards, costs, 400)
    second = play_from_table(reordered(instance), name, rewards[ORDER], costs[:, ORDER], 400)
    pulls = first.round.estimates.pulls[ORDER]
    assert np.abs(second.round.estimates.pulls - pulls).max() <= 3


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_the_order_of_the_arms_does_not_matter_to_when_it_stops(name: str) -> None:
    instance = load_instance("setup1-easy").with_problem(r=0.2)
    times = [
        np.array([run.steps for run in simulate(truth, name, seeds=150).cells[0].runs])
        for truth in (instance, reordered(instance))
    ]
    assert ks_2samp(times[0], times[1]).pvalue > 1e-3
