"""Accounts of variance, exactly: what one pull's account must lower exp(x c (X - m)) by, on the worst laws.

The helpers take what a proof depends on (the price, the side, the guess, the coefficient) as arguments, so that each
inequality is also shown to fail when it is given the wrong one.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from oracle import martingale
from polyarm._types import FloatArray
from polyarm.accounts import DECLARED, ESTIMATED, LEARNABLE, RANGE, Account, guard, guess_mean, learning_price
from polyarm.certify.blocks import side
from polyarm.model import build_model
from polyarm.problem import Constraint, Problem

#: Round-off of a few exponentials.
TINY = 1e-12

Price = Callable[[FloatArray], FloatArray]


def test_price_of_learning() -> None:
    """G(u) = 2 (-log(1 - u) - u)/u^2, against its series, and a few values as they are quoted."""
    for u, value in [(0.1, 1.07), (0.3, 1.26), (0.5, 1.55), (0.7, 2.06), (0.9, 3.46)]:
        assert learning_price(u) == pytest.approx(value, abs=0.005)
    for u in [*np.geomspace(1e-12, 1e-2, 60), *np.linspace(0.011, 0.95, 60)]:
        terms = sum(2.0 * u**n / (n + 2) for n in range(600, -1, -1))  # sum of positive terms: no cancellation
        assert learning_price(float(u)) == pytest.approx(terms, rel=1e-11)
    assert learning_price(0.0) == 1.0
    prices = [learning_price(float(u)) for u in np.linspace(0.0, 0.99, 500)]
    assert np.all(np.diff(prices) > 0.0)


# -- Learned variances: a range ------------------------------------------------------------------------------------


def worst_path(price: Price, guess: float, reach: Callable[[float, float], float]) -> float:
    """The largest exp(y - G(u) y^2/2) - (1 + y) over outcomes in [0, 1]: at most zero, path by path.

    y = x c (X - guess), and u = x |c| b, where `reach(c, guess)` is b.
    """
    largest = -math.inf
    outcomes = np.linspace(0.0, 1.0, 201)
    for c in (-1.0, 1.0):
        b = reach(c, guess)
        for u in np.linspace(0.01, LEARNABLE, 30):
            y = u / b * c * (outcomes - guess)
            log_kept = y - 0.5 * price(np.array([u])) * y**2
            largest = max(largest, float((np.exp(log_kept) - (1.0 + y)).max()))
    return largest


def right_side(c: float, guess: float) -> float:
    return guess if c > 0.0 else 1.0 - guess


def wrong_side(c: float, guess: float) -> float:
    return right_side(-c, guess)


def no_price(u: FloatArray) -> FloatArray:
    return np.ones_like(u)


def the_price(u: FloatArray) -> FloatArray:
    return np.array([learning_price(float(x)) for x in u])


@pytest.mark.parametrize("guess", [0.02, 0.1, 0.3, 0.5, 0.8, 0.97])
def test_what_is_kept_is_below_a_straight_line_path_by_path(guess: float) -> None:
    """exp(y - G(u) y^2/2) <= 1 + y for all y >= -u: the step that holds for every distribution in the range."""
    assert worst_path(the_price, guess, right_side) <= TINY
    # What the proof rests on, dropped: the price, or the side.
    assert worst_path(no_price, guess, right_side) > 1e-2
    if abs(guess - 0.5) > 0.1:
        assert worst_path(the_price, guess, wrong_side) > 1e-2


def expected_kept(
    law: tuple[FloatArray, FloatArray], x: float, coefficient: FloatArray, guess: FloatArray, b: float, price: Price
) -> float:
    """E exp(x c (X - m) - x^2 c^2 G(x |c| b) (X - guess)^2/2); c and the guess may (wrongly) depend on the outcome."""
    values, weights = law
    mean = float(weights @ values)
    u = np.abs(x * coefficient) * b
    log_kept = x * coefficient * (values - mean) - 0.5 * x**2 * coefficient**2 * price(u) * (values - guess) ** 2
    return float(weights @ np.exp(log_kept))


def two_point_laws() -> list[tuple[FloatArray, FloatArray]]:
    """Every law on two points of a grid of [0, 1]: the extreme ones of those with a given mean."""
    points, chances = np.linspace(0.0, 1.0, 9), [0.001, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 0.999]
    return [
        (np.array([one, other]), np.array([chance, 1.0 - chance]))
        for i, one in enumerate(points)
        for other in points[i + 1 :]
        for chance in chances
    ]


def largest_expectation(
    price: Price,
    reach: Callable[[float, float], float],
    peek_at_guess: bool = False,
    peek_at_coefficient: bool = False,
) -> float:
    """The largest expectation over two-point laws, guesses, signs and sizes of the coefficient; at most one."""
    largest = 0.0
    for law in two_point_laws():
        values = law[0]
        for guess in (0.05, 0.3, 0.6, 0.9):
            for c in (-1.0, 1.0):
                b = reach(c, guess)
                guesses = values if peek_at_guess else np.full(2, guess)
                # "p looked up after the block": the sign follows the outcome.
                coefficients = np.where(values > law[1] @ values, 1.0, -1.0) if peek_at_coefficient else np.full(2, c)
                for u in (0.1, 0.5, 0.9):
                    largest = max(largest, expected_kept(law, u / b, coefficients, guesses, b, price))
    return largest


def test_the_learned_account_keeps_expectations_below_one() -> None:
    assert largest_expectation(the_price, right_side) <= 1.0 + TINY
    # The larger of both sides, as for the reward whose sign depends on q, is valid, too.
    assert largest_expectation(the_price, lambda _, guess: max(guess, 1.0 - guess)) <= 1.0 + TINY


@pytest.mark.parametrize(
    ("changed", "least"),
    [
        ({"price": no_price}, 1.01),
        ({"reach": wrong_side}, 1.05),
        ({"peek_at_guess": True}, 1.1),
        ({"peek_at_coefficient": True}, 1.1),
    ],
)
def test_the_learned_account_fails_without_a_condition(changed: dict[str, object], least: float) -> None:
    """The wrong price or side; a guess or a coefficient that was made after the outcome."""
    if changed.get("peek_at_coefficient"):
        changed = {"reach": lambda _, guess: max(guess, 1.0 - guess), **changed}
    arguments = {"price": the_price, "reach": right_side, **changed}
    assert largest_expectation(**arguments) > least  # type: ignore[arg-type]


def test_hoeffdings_account_and_the_declared_one() -> None:
    for values, weights in two_point_laws():
        mean = float(weights @ values)
        for x in (0.1, 1.0, 3.0, 10.0):
            for c in (-1.0, 1.0):
                kept = math.log(float(weights @ np.exp(x * c * (values - mean))))
                assert kept <= x**2 / 8.0 + TINY  # a quarter of the width squared, halved
    # A two-point outcome of +-1, and a Gaussian one, have sub-Gaussian scale one; a skewed one has a larger scale than
    # its standard deviation.
    for x in np.linspace(0.01, 5.0, 50):
        assert math.log(math.cosh(float(x))) <= 0.5 * x**2
    chance = 0.01
    std = math.sqrt(chance * (1.0 - chance))
    kept = math.log(chance * math.exp(2.0 * (1.0 - chance)) + (1.0 - chance) * math.exp(-2.0 * chance))
    assert kept > 0.5 * 4.0 * std**2 * 1.05


# -- What the library takes from a problem ---------------------------------------------------------------------------


def test_sides_are_those_on_which_the_outcome_lowers_the_martingale() -> None:
    """At q a row's coefficient is positive in kernel units: `>=` turns the range round. The reward has either sign."""
    ends = ((0.0, 1.0), (-2.0, 6.0))
    problem = Problem(
        arms=("small", "large"),
        reward_range=ends,
        delta=0.1,
        r=0.1,
        constraints=(
            Constraint(name="most", bound=0.5, range=ends),
            Constraint(name="least", bound=0.5, range=ends, sense=">="),
        ),
    )
    model = build_model(problem)
    for arm, (low, high) in enumerate(ends):
        guess = low + 0.3 * (high - low)
        below, above = guess - low, high - guess
        assert side(model, 0, arm, guess) == pytest.approx(max(below, above))
        unit = abs(model.factors[0])
        assert side(model, 1, arm, guess * model.factors[0]) == pytest.approx(below * unit)
        assert side(model, 2, arm, guess * model.factors[1]) == pytest.approx(above * unit)


def test_codes_and_scales() -> None:
    assert [Account(std=1.0).code, Account(range=(0.0, 1.0)).code, Account().code] == [DECLARED, RANGE, ESTIMATED]
    assert Account(range=((0.0, 1.0), (0.0, 4.0))).scale(2).tolist() == [0.5, 2.0]
    assert np.isnan(Account().scale(3)).all()
    low, high = Account().ends(2)
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def test_a_guess_lies_strictly_inside_its_range() -> None:
    """Else an outcome could lie on no side of it, and u would be zero."""
    for pulls in (0.0, 1.0, 7.0, 1e6):
        for mean in (2.0, 3.0, 5.0):
            guessed = guess_mean(pulls * mean, pulls, 2.0, 5.0)
            assert 2.0 < guessed < 5.0
    assert guess_mean(0.0, 0.0, 2.0, 5.0) == 3.5
    assert guess_mean(10.0, 4.0, 0.0, 1.0) == pytest.approx(10.5 / 5.0)


# -- The guard of `estimated` ----------------------------------------------------------------------------------------


def test_guard() -> None:
    rng = np.random.default_rng(1)
    y = rng.standard_normal(4000)
    squares, fourths = float(y @ y), float((y**2) @ (y**2))
    assert guard(squares, fourths) == 1.0  # about 1,300 outcomes in effect
    few = y[:40]
    squares, fourths = float(few @ few), float((few**2) @ (few**2))
    expected = (80.0 * fourths / squares**2) ** 2
    assert guard(squares, fourths) == pytest.approx(expected)
    assert expected > 20.0
    assert guard(1e12 * squares, 1e24 * fourths) == pytest.approx(expected)  # any units
    assert guard(0.0, 0.0) == math.inf  # never varied


def test_the_guard_counts_a_rare_event_by_how_often_it_was_seen() -> None:
    """Among many pulls, k events are about k outcomes in effect: a variance is trusted once 80 of them were seen."""
    for events in (1, 20, 79, 81, 200):
        y = np.zeros(200_000)
        y[:events] = 1.0
        y -= y.mean()
        found = guard(float(y @ y), float((y**2) @ (y**2)))
        assert found == pytest.approx(max(1.0, 80.0 / events) ** 2, rel=0.02)


def test_the_oracle_restates_the_constants_of_the_library() -> None:
    assert martingale.LEARNABLE == LEARNABLE
    assert np.allclose(
        martingale.price(np.array([0.0, 1e-5, 0.3, 0.9])), [learning_price(u) for u in (0, 1e-5, 0.3, 0.9)]
    )
