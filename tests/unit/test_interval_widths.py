"""Intervals of single means: their widths against the mixture as it is defined, pull by pull, and their coverage."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from oracle.martingale import Group, guard_factor_of, log_mixture_integral
from oracle.reference import FloatArray, Generator
from polyarm import Problem
from polyarm.certify.intervals import half_widths
from polyarm.estimates import Estimates, make_estimates, record
from polyarm.model import Model, build_model

LOW, HIGH = 2.0, 5.0
KNOWN: dict[str, dict[str, Any]] = {"declared": {"std": 0.7}, "range": {"range": (LOW, HIGH)}, "estimated": {}}


def make_model(account: str, sense: str = "<=") -> Model:
    known = KNOWN[account]
    rows: list[dict[str, Any]] = [
        {"name": "price", "bound": 3.0, "sense": sense, **known},
        {"name": "size", "bound": 1.0, "row": (0.5, 1.5)},
    ]
    reward = {f"reward_{name}": value for name, value in known.items()}
    stated: dict[str, Any] = {"arms": 2, "constraints": rows, "delta": 0.1, "r": 0.1, **reward}
    return build_model(Problem(**stated))


def draw(rng: Generator, n: int) -> FloatArray:
    """Outcomes in the range, of two values or of many, often rarely high."""
    share = float(rng.choice([0.03, 0.3, 0.5, 0.9]))
    if rng.random() < 0.5:
        return np.asarray(np.where(rng.random(n) < share, HIGH, LOW))
    return np.asarray(LOW + (HIGH - LOW) * rng.beta(4.0 * share, 4.0 * (1.0 - share), size=n))


def tell(model: Model, outcomes: FloatArray) -> Estimates:
    """The first arm has these outcomes, as reward and as cost; the second has none."""
    estimates = make_estimates(model)
    for outcome in outcomes:
        record(estimates, model, 0, float(outcome), np.array([outcome, 0.0]))
    return estimates


def pulls_one_by_one(account: str, outcomes: FloatArray) -> tuple[list[Group], float]:
    """Every pull with its own guess, made just before it; and the precision: the variance of one pull."""
    width, scale, n = HIGH - LOW, 0.7, outcomes.size
    if account == "estimated":  # about the mean, as outcomes become many: nothing is promised for few
        factor = guard_factor_of(outcomes, np.ones(n))
        squares = n * float(outcomes.var())
        return [Group(0, 1.0, float(n), squares, width, width, scale, factor, False, 0.0)], factor * squares / n
    made = []
    for before, outcome in enumerate(outcomes):
        guess = (outcomes[:before].sum() + 0.5 * (LOW + HIGH)) / (before + 1.0)
        # An interval has two sides, and the whole width is how far outcomes can lie on either.
        made.append(Group(0, 1.0, 1.0, float((outcome - guess) ** 2), width, width, scale, 1.0, False, 0.0))
    return made, scale**2 if account == "declared" else 0.25 * width**2


@pytest.mark.parametrize("account", KNOWN)
@pytest.mark.parametrize("sense", ["<=", ">="])
def test_a_width_is_where_the_true_mixture_has_the_evidence(account: str, sense: str) -> None:
    """At the ends of an interval the mixture is worth at least 1/delta': M = width times pulls."""
    rng, model = np.random.default_rng(5), make_model(account, sense)
    delta, excess = 0.05, []
    level = math.log(2.0 * 2 * 2 / delta)  # two sides, two measured outcomes, two arms
    for n in (2, 5, 20, 100, 600):
        for _ in range(4):
            outcomes = draw(rng, n)
            widths = half_widths(tell(model, outcomes), model, delta)
            unit = abs(float(model.factors[0]))
            assert widths[1, 0] == pytest.approx(widths[0, 0] * unit)  # the same outcomes, in other units
            if np.ptp(outcomes) == 0.0 and account == "estimated":
                assert widths[0, 0] == math.inf
                continue
            if account == "range" and widths[0, 0] == pytest.approx(HIGH - LOW):
                continue  # nothing is known but the range
            made, prior = pulls_one_by_one(account, outcomes)
            excess.append(log_mixture_integral(account, made, prior, float(widths[0, 0]) * n) - level)
            if account != "range":
                assert log_mixture_integral(account, made, prior, 0.98 * float(widths[0, 0]) * n) < level
    assert min(excess) >= -1e-7
    assert len(excess) >= 8
    assert min(excess) < (1.0 if account == "range" else 1e-6), "far too wide"


def test_known_rows_have_no_width_and_arms_without_outcomes_any() -> None:
    model = make_model("declared")
    widths = half_widths(tell(model, draw(np.random.default_rng(1), 10)), model, 0.05)
    assert np.all(widths[2] == 0.0)
    assert np.all(np.isinf(widths[:2, 1]))


@pytest.mark.parametrize(("account", "share"), [("range", 0.05), ("range", 0.5), ("declared", 0.5)])
def test_means_stay_inside_for_all_time(account: str, share: float) -> None:
    """Looked at after every sweep; the declared scale is the largest that such outcomes can have."""
    stated: dict[str, Any] = {"arms": 2, "constraints": [], "delta": 0.1, "r": 0.1}
    stated |= {"reward_std": 0.5} if account == "declared" else {"reward_range": (0.0, 1.0)}
    model, runs, delta, missed = build_model(Problem(**stated)), 150, 0.3, 0
    rng, none = np.random.default_rng(8), np.zeros(0)
    for _ in range(runs):
        estimates, outside = make_estimates(model), False
        for outcomes in (rng.random((60, 2)) < share).astype(float):
            for arm in range(2):
                record(estimates, model, arm, float(outcomes[arm]), none)
            outside |= bool((np.abs(estimates.mu_hat - share) > half_widths(estimates, model, delta)[0]).any())
        missed += outside
    assert binomtest(missed, runs, delta, alternative="greater").pvalue > 1e-4
