"""Sums that overflow, or come out as NaN, once counted as evidence, or switched the guard of `estimated` off."""

import math

import numpy as np
import pytest

from polyarm import Constraint, Problem
from polyarm.accounts import guard
from polyarm.certify.blocks import Told, add_block, begin, least_answer_evidence, make_start
from polyarm.certify.evidence import MIXED, make_evidence, witness_value
from polyarm.certify.pooled import Estimated, cost_statistic, declared_noise, given_pricing, make_worth, weigh_pulls
from polyarm.model import build_model

PROBLEM = Problem(
    arms=("small", "large"),
    reward_std=1.0,
    delta=0.1,
    r=0.1,
    constraints=(Constraint(name="x", bound=1.0, std=1.0), Constraint(name="y", bound=1.0, std=1.0)),
)


@pytest.mark.parametrize("unit", [1e60, 1e80, 1e100])
def test_the_guard_is_as_strict_or_stricter_in_units_that_overflow(unit: float) -> None:
    y = np.array([1.0, -1.0, 2.0, -2.0])
    assert guard(float(y @ y), float((y**2) @ (y**2))) == pytest.approx((80 * 34 / 100) ** 2)
    with np.errstate(over="ignore"):
        scaled = unit * y
        squares, fourths = float(scaled @ scaled), float((scaled**2) @ (scaled**2))
    assert guard(squares, fourths) >= (80 * 34 / 100) ** 2 * (1.0 - 1e-12)


@pytest.mark.parametrize(
    ("squares", "fourths"), [(math.inf, math.inf), (1e200, math.inf), (math.nan, 1.0), (1.0, -1.0)]
)
def test_sums_that_say_nothing_give_an_infinite_guard(squares: float, fourths: float) -> None:
    assert guard(squares, fourths) == math.inf


def test_a_row_at_the_answer_without_evidence_is_not_passed_over() -> None:
    model = build_model(PROBLEM)
    start = make_start(0, 0.1, model)
    begin(start, model, 100.0, np.full(2, 0.5), np.full(2, 0.5), np.ones((3, 2)), np.zeros((3, 2)))
    powers = np.zeros((4, 3, 2))
    add_block(start, model, Told(np.full(2, 0.5), np.full(2, 500.0), np.zeros((3, 2)), powers), np.ones((3, 2)))
    assert least_answer_evidence(start, model) > 1.0  # both rows leave a slack of one
    start.priors[0] = math.inf  # inf/inf
    with np.errstate(invalid="ignore"):
        assert not least_answer_evidence(start, model) > 1.0


def test_a_pooled_row_without_evidence_is_not_passed_over() -> None:
    model, worth, answer = build_model(PROBLEM), make_worth(2), np.full(2, 0.5)
    weigh_pulls(given_pricing(), np.full(2, 500.0), worth)
    rows = np.array([[-1.0, -1.0], [-1.0, -1.0]])
    good = Estimated(np.zeros(2), rows, declared_noise(model))
    assert cost_statistic(good, model, worth, answer) > 100.0
    rows[0, 0] = math.nan
    assert cost_statistic(good, model, worth, answer) == 0.0


def test_a_variance_that_is_no_number_refutes_nothing() -> None:
    evidence = make_evidence(2, 0)
    evidence.terms.kind = MIXED
    evidence.variants[0], evidence.bases[0, 0], evidence.levels[0, 0] = 1, 100.0, 3.0
    evidence.fixed[0, 0] = evidence.prior_fixed[0, 0] = 1.0
    q = np.full(2, 0.5)
    assert witness_value(evidence, q) > 1.0
    evidence.fixed[0, 0] = math.nan
    assert witness_value(evidence, q) == 0.0
