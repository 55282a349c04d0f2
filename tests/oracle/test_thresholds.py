"""Thresholds against their formulas, with every inverse found by bisection instead of the Lambert function."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from polyarm.stops.own import LOG, PAPER, THEORY, calibration, compute_beta, theory_constant


def h(u: float) -> float:
    return u - math.log(u)


def invert_h(x: float) -> float:
    """Return the u >= 1 with h(u) = x."""
    return 1.0 if x <= 1.0 else float(brentq(lambda u: h(u) - x, 1.0, 2.0 * x + 3.0, xtol=1e-14, rtol=1e-14))


def h_tilde(z: float, x: float) -> float:
    """Kaufmann and Koolen (2021), Equation (14), with the switch at h(1/ln z)."""
    if x >= h(1.0 / math.log(z)):
        u = invert_h(x)
        return math.exp(1.0 / u) * u
    return z * (x - math.log(math.log(z)))


def expected_calibration(x: float) -> float:
    """T(x), Theorem 7; zeta(2) is pi^2 / 6."""
    return 2.0 * h_tilde(1.5, 0.5 * (invert_h(1.0 + x) + math.log(math.pi**2 / 3.0)))


def switch_of_calibration() -> float:
    """Return the x at which T changes its formula."""
    u = 2.0 * h(1.0 / math.log(1.5)) - math.log(math.pi**2 / 3.0)
    return h(u) - 1.0


@pytest.mark.parametrize("x", np.geomspace(1e-4, 300.0, 60).tolist())
def test_calibration(x: float) -> None:
    assert calibration(x) == pytest.approx(expected_calibration(x), rel=1e-11)


def test_calibration_next_to_its_switch() -> None:
    switch = switch_of_calibration()
    assert 0.0 < switch < 1.0
    for x in (switch - 1e-3, switch - 1e-7, switch + 1e-7, switch + 1e-3):
        assert calibration(x) == pytest.approx(expected_calibration(x), rel=1e-11)
    assert calibration(switch - 1e-10) == pytest.approx(calibration(switch + 1e-10), abs=1e-8)


def test_calibration_increases_and_exceeds_its_argument() -> None:
    grid = np.linspace(0.01, 50.0, 2001)
    values = np.array([calibration(x) for x in grid.tolist()])
    assert (np.diff(values) > 0.0).all()
    assert (np.diff(values) < 0.5).all(), "a jump"
    assert (values > grid).all()


def test_calibration_is_close_to_its_published_approximation() -> None:
    """T(x) is about x + 4 ln(1 + x + sqrt(2 x)) for large x."""
    for x in (10.0, 30.0, 100.0, 300.0):
        assert calibration(x) == pytest.approx(x + 4.0 * math.log(1.0 + x + math.sqrt(2.0 * x)), rel=0.03)


@pytest.mark.parametrize("delta", [0.3, 0.1, 0.01, 1e-6])
def test_betas(delta: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        K, d = int(rng.integers(1, 20)), int(rng.integers(0, 6))
        pulls = rng.integers(1, 10 ** int(rng.integers(1, 7)), size=K).astype(np.float64)
        t = float(pulls.sum())
        constant = theory_constant(K, d, delta)
        assert constant == pytest.approx(K * expected_calibration((min(K, d) + math.log(1.0 / delta)) / K), rel=1e-11)
        paper = math.log((1.0 + math.log(math.log(max(t, 3.0)))) / delta)
        assert compute_beta(PAPER, delta, constant, pulls) == pytest.approx(paper, rel=1e-13)
        assert compute_beta(LOG, delta, constant, pulls) == pytest.approx(
            math.log((1.0 + math.log(t)) / delta), rel=1e-13
        )
        theory = constant + sum(3.0 * math.log(1.0 + math.log(n)) for n in pulls.tolist())
        assert compute_beta(THEORY, delta, constant, pulls) == pytest.approx(theory, rel=1e-13)


def test_paper_beta_of_one_or_two_pulls_is_that_of_three() -> None:
    three = compute_beta(PAPER, 0.1, 0.0, np.array([3.0]))
    assert compute_beta(PAPER, 0.1, 0.0, np.array([1.0])) == three
    assert compute_beta(PAPER, 0.1, 0.0, np.array([1.0, 1.0])) == three
