"""The joint characteristic time against the research prototype's values, a brute force, and what must hold of any T."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from oracle.joint import make_evidence
from polyarm._types import FloatArray
from polyarm.bounds.joint import JointTime, joint_time, why_no_joint_time
from polyarm.certify.evidence import Evidence, cost_statistic, witness_value
from polyarm.environments.instances import load_instance
from polyarm.model import Model, build_model
from polyarm.problem import Constraint, Problem, find_optimum


def prepare(problem: Problem, means: FloatArray, costs: FloatArray) -> tuple[Model, FloatArray, FloatArray]:
    model = build_model(problem)
    return model, means, costs * model.factors[:, None] - model.bounds[:, None]


def load(name: str, **changes: Any) -> tuple[Model, FloatArray, FloatArray]:
    instance = load_instance(name).with_problem(**changes)
    return prepare(instance.problem, instance.mu, instance.A)


def solve(name: str, **changes: Any) -> JointTime:
    found = joint_time(*load(name, **changes))
    assert found is not None
    return found


def evidence_of(
    model: Model, means: FloatArray, rows: FloatArray, allocation: FloatArray, answer: FloatArray
) -> Evidence:
    return make_evidence(
        means, rows, model.reward_noise / allocation, model.row_noise / allocation, model.known, answer, model.r
    )


# T of the prototype, and of its uniform allocation: witness values at local optima that several starts agreed on.
PROTOTYPE = [
    ("setup1-hard", 0.05, 5894.0, 18098.0),
    ("setup1-hard", 0.2, 502.5, 1058.0),
    ("setup1-easy", 0.02, 34598.0, 115277.0),
    ("setup1-easy", 0.1, 1511.0, 4314.0),
    ("setup2-easy", 0.05, 408.0, 665.0),
    ("setup2-easy", 0.2, 68.1, 104.0),
    ("setup2-hard", 0.02, 5452.0, 12675.0),
    ("setup2-hard", 0.1, 452.5, 630.0),
]


@pytest.mark.parametrize(("name", "r", "expected", "expected_uniform"), PROTOTYPE)
def test_agrees_with_the_prototype(name: str, r: float, expected: float, expected_uniform: float) -> None:
    found = solve(name, r=r)
    assert found.time == pytest.approx(expected, rel=0.01)
    assert found.uniform_time == pytest.approx(expected_uniform, rel=0.01)
    assert found.time <= found.certified <= 1.03 * found.time
    assert found.lower <= found.certified
    assert found.uniform_time is not None
    assert found.time < found.uniform_time


def test_imdb_is_no_worse_than_the_prototype() -> None:
    found = solve("imdb", r=0.05, reward_std=1.2)
    assert 0.9 * 1478.0 < found.time < 1.01 * 1478.0
    assert found.time <= found.certified <= 1.03 * found.time


def test_what_is_certified_survives_a_brute_force() -> None:
    """No mix, wherever a local search is started from, has a smaller value than the certificate says."""
    model, means, rows = load("setup2-hard", r=0.1)
    found = joint_time(model, means, rows)
    assert found is not None
    evidence = evidence_of(model, means, rows, found.allocation, found.answer)
    assert cost_statistic(evidence, found.answer) >= (1.0 - 1e-9) / found.certified
    rng = np.random.default_rng(5)

    def value(logits: FloatArray) -> float:
        q = np.exp(logits - logits.max())
        return float(witness_value(evidence, q / q.sum()))

    least = math.inf
    for _ in range(60):
        start = np.log(rng.dirichlet(np.full(means.size, 0.4)) + 1e-6)
        least = min(least, float(minimize(value, start, method="Nelder-Mead", options={"maxiter": 800}).fun))
    assert least >= (1.0 - 1e-9) / found.certified
    # ... and the witness reported is about as good as any that the brute force finds.
    assert 1.0 / found.time <= 1.005 * least


def test_the_value_of_the_plan_is_that_of_its_closest_witness() -> None:
    model, means, rows = load("setup1-hard", r=0.2)
    found = joint_time(model, means, rows)
    assert found is not None
    evidence = evidence_of(model, means, rows, found.allocation, found.answer)
    value = min(cost_statistic(evidence, found.answer), witness_value(evidence, found.closest))
    assert value == pytest.approx(1.0 / found.time, rel=1e-6)
    assert found.allocation.sum() == pytest.approx(1.0)
    assert found.answer.sum() == pytest.approx(1.0)
    assert (rows @ found.answer).max() < 0.0
    best = find_optimum(means, rows)
    assert best is not None
    assert means @ found.answer > best.value - model.r


def test_order_of_arms_does_not_matter() -> None:
    model, means, rows = load("setup2-hard", r=0.1)
    order = np.array([3, 0, 4, 2, 1])
    one = joint_time(model, means, rows)
    other = joint_time(model, means[order], np.ascontiguousarray(rows[:, order]))
    assert one is not None
    assert other is not None
    assert other.time == pytest.approx(one.time, rel=5e-3)


def test_a_wider_tolerance_needs_fewer_samples() -> None:
    times = [solve("setup2-easy", r=r).time for r in (0.03, 0.06, 0.12, 0.24)]
    assert times == sorted(times, reverse=True)


def test_less_noise_needs_fewer_samples() -> None:
    assert (
        solve("setup2-easy", r=0.1, reward_std=(1.0, 1.0, 1.0, 0.7, 1.0)).time
        <= 1.005 * solve("setup2-easy", r=0.1).time
    )


def test_more_pulls_of_any_arm_are_never_worse() -> None:
    model, means, rows = load("setup2-easy", r=0.1)
    found = joint_time(model, means, rows)
    assert found is not None
    before = evidence_of(model, means, rows, found.allocation, found.answer)
    for arm in range(means.size):
        more = found.allocation.copy()
        more[arm] *= 1.5
        after = evidence_of(model, means, rows, more, found.answer)
        assert cost_statistic(after, found.answer) >= cost_statistic(before, found.answer)
        assert witness_value(after, found.closest) >= witness_value(before, found.closest)


def make_problem(known: tuple[bool, ...], r: float) -> tuple[Problem, FloatArray, FloatArray]:
    means, costs = np.array([1.0, 0.5, 0.4, 0.95]), np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    constraints = [
        Constraint(
            name=f"row {i}",
            bound=(0.5, 0.6)[i],
            std=None if known[i] else 1.0,
            row=tuple(costs[i]) if known[i] else None,
        )
        for i in range(len(known))
    ]
    problem = Problem(
        arms=("a", "b", "c", "d"), constraints=tuple(constraints), reward_std=1.0, delta=0.1, r=r, noise="independent"
    )
    return problem, means, costs[: len(known)]


def test_knowing_a_row_helps_and_the_row_is_kept() -> None:
    times = []
    for known in ((False, False), (True, False), (True, True)):
        model, means, rows = prepare(*make_problem(known, 0.1))
        found = joint_time(model, means, rows)
        assert found is not None
        for mix in (found.answer, found.closest):
            assert np.max(rows[model.known] @ mix, initial=-1.0) <= 1e-9
        assert found.time <= found.certified <= 1.03 * found.time
        times.append(found.time)
    assert times[0] > times[1] > times[2]


@pytest.mark.parametrize("known", [(True, True), ()])
def test_without_tolerance_it_is_the_known_time(known: tuple[bool, ...]) -> None:
    from polyarm.bounds.lower import compute_bounds, make_truth

    problem, means, costs = make_problem(known, 0.0)
    found = joint_time(*prepare(problem, means, costs))
    assert found is not None
    expected = compute_bounds(make_truth(problem, means, costs), 0.1, 0.0)["known"]["T"]
    assert found.time == pytest.approx(expected, rel=1e-5)
    assert found.lower <= found.time <= found.certified
    assert found.uniform_time is not None
    assert found.uniform_time >= found.time


def test_without_constraints_it_is_best_arm_identification_with_tolerance() -> None:
    problem, means, costs = make_problem((), 0.1)
    found = joint_time(*prepare(problem, means, costs))
    assert found is not None
    # Two arms compete within r of each other: any mix of them will do, and both must be told from the rest.
    assert 0.0 < found.time <= found.certified <= 1.03 * found.time
    assert found.lower == 0.0


def test_refuses_what_has_no_time() -> None:
    problem, means, costs = make_problem((True, False), 0.0)
    model, means, rows = prepare(problem, means, costs)
    assert "infinitely many" in str(why_no_joint_time(model))
    with pytest.raises(ValueError, match="infinitely many"):
        joint_time(model, means, rows)


def test_is_infinite_when_nothing_has_slack() -> None:
    constraint = Constraint(name="c", bound=0.0, std=1.0)
    problem = Problem(arms=("a", "b", "c"), constraints=(constraint,), reward_std=1.0, delta=0.1, r=0.1)
    assert joint_time(*prepare(problem, np.array([1.0, 0.5, 0.2]), np.array([[1.0, 0.0, 0.0]]))) is None
