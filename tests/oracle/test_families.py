"""Every kernel of every family against long arithmetic, root finders and brute force that share nothing with it."""

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize, minimize_scalar

from polyarm.families.family import (
    MEAN_MARGIN,
    Family,
    alternative_cost,
    confidence_ends,
    divergence,
    linearise_move,
    make_family,
    write_nearest_alternative,
)
from polyarm.polytope.neighbours import Move, Moves

FloatArray = NDArray[np.float64]

CURVED = ["bernoulli", "poisson", "exponential"]
ALL = ["gaussian", "bounded", *CURVED]
every_family = pytest.mark.parametrize("name", ALL)
every_curved_family = pytest.mark.parametrize("name", CURVED)


def family_of(name: str, n_arms: int = 1) -> Family:
    """A family with unit noise, or rewards from -1 to 3."""
    return make_family(name, n_arms, 1.5 if name == "gaussian" else None, (-1.0, 3.0) if name == "bounded" else None)


def move_of(changes: Sequence[float]) -> Move:
    """One move that changes arms 0, 1, ... in turn."""
    n = len(changes)
    return Move(Moves(np.arange(n)[None, :], np.array([changes], dtype=np.float64), np.array([n])), 0)


# -- References ------------------------------------------------------------------------------------------------


def exact_divergence(name: str, x: float, y: float) -> Decimal:
    """The divergence in 60 digits, from its definition."""
    with localcontext() as context:
        context.prec = 60
        a, b, one = Decimal(x), Decimal(y), Decimal(1)

        def entropy_term(p: Decimal, q: Decimal) -> Decimal:
            return Decimal(0) if p == 0 else p * (p / q).ln()

        if name == "bernoulli":
            return entropy_term(a, b) + entropy_term(one - a, one - b)
        if name == "poisson":
            return b - a + entropy_term(a, b)
        if name == "exponential":
            return a / b - 1 - (a / b).ln()
        scale = Decimal("1.5") if name == "gaussian" else Decimal(2)
        return (a - b) ** 2 / (2 * scale**2)


def slow_divergence(name: str, x: FloatArray | float, y: FloatArray | float) -> FloatArray:
    """The divergence for arrays; infinite where y is outside the domain."""
    x, y = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    top = 1.0 if name == "bernoulli" else np.inf
    inside = (y > 0.0) & (y < top)
    z = np.where(inside, y, 0.5)
    p = np.where(x > 0.0, x, 1.0)
    if name == "bernoulli":
        q = np.where(x < 1.0, 1.0 - x, 1.0)
        value = np.where(x > 0.0, x * np.log(p / z), 0.0) + np.where(x < 1.0, (1 - x) * np.log(q / (1 - z)), 0.0)
    elif name == "poisson":
        value = z - x + np.where(x > 0.0, x * np.log(p / z), 0.0)
    else:
        value = x / z - 1.0 - np.log(p / z)
    return np.where(inside, value, np.inf)


def total_cost(name: str, means: FloatArray, weights: FloatArray, others: FloatArray) -> float:
    return float(np.sum(weights * slow_divergence(name, means, others)))


def cheapest_on_a_line(name: str, means: FloatArray, weights: FloatArray, changes: FloatArray, target: float) -> float:
    """Two arms: the constraint leaves one unknown, which a dense grid and a bounded search settle globally."""

    def cost(first: FloatArray | float) -> FloatArray:
        second = (target - changes[0] * np.asarray(first)) / changes[1]
        costs: FloatArray = weights[0] * slow_divergence(name, means[0], first)
        costs += weights[1] * slow_divergence(name, means[1], second)
        return costs

    edge = (target - changes[1] * np.array([0.0, 1.0])) / changes[0]  # where the second arm meets its own edge
    ends = np.unique(np.clip([0.0, 1.0, *edge], 0.0, 1.0) if name == "bernoulli" else [0.0, max(edge[0], 0.0)])
    spans = list(itertools.pairwise(ends.tolist()))
    if name != "bernoulli":
        spans += [(ends[-1], ends[-1] + 1.0), (ends[-1] + 1.0, ends[-1] + 1e4)]  # the first arm has no upper end
    best = math.inf
    steps = np.unique([np.geomspace(1e-14, 0.5, 4000), 1.0 - np.geomspace(0.5, 1e-14, 4000)])
    for low, high in spans:
        grid = low + (high - low) * steps
        values = cost(grid)
        least = int(np.argmin(values))
        if np.isfinite(values[least]):
            bounds = (grid[max(least - 1, 0)], grid[min(least + 1, grid.size - 1)])
            found = minimize_scalar(lambda z: float(cost(z)), bounds=bounds, method="bounded", options={"xatol": 1e-15})
            best = min(best, float(values[least]), float(found.fun))
    return best


def cheapest_by_duality(
    name: str, means: FloatArray, weights: FloatArray, changes: FloatArray, target: float
) -> tuple[float, FloatArray]:
    """Convex families: nested root finders for the stationary point of the Lagrangian."""

    def respond(theta: float) -> FloatArray:
        return np.array([respond_arm(m, theta * c / w) for m, c, w in zip(means, changes, weights, strict=True)])

    def respond_arm(mean: float, k: float) -> float:
        if k == 0.0:
            return mean
        curvature = 1.0 if name == "bernoulli" else 0.0  # V(z) = z - curvature z^2
        if k < 0.0:
            low, high = 0.0, mean
        else:
            low, high = mean, 1.0 if name == "bernoulli" else mean / (1.0 - k) * 2.0 + 1.0
        return float(brentq(lambda z: z - mean - k * z * (1.0 - curvature * z), low, high, xtol=1e-16, rtol=1e-15))

    limits = [w / c for w, c in zip(weights, changes, strict=True) if c != 0.0]
    if name == "poisson":
        top = min((z for z in limits if z > 0.0), default=1e6) * (1.0 - 1e-13)
        bottom = max((z for z in limits if z < 0.0), default=-1e6) * (1.0 - 1e-13)
    else:
        top, bottom = 1e6 * float(weights.max()), -1e6 * float(weights.max())
    theta = float(brentq(lambda z: float(changes @ respond(z)) - target, bottom, top, xtol=1e-15, rtol=1e-14))
    others = respond(theta)
    return total_cost(name, means, weights, others), others


def cheapest_by_grid(means: FloatArray, weights: FloatArray, changes: FloatArray, target: float) -> float:
    """Exponentials, three arms: a grid over two of them and a local search from its best point, for every pair."""
    return min(
        _cheapest_with_last_free(np.roll(means, k), np.roll(weights, k), np.roll(changes, k), target) for k in range(3)
    )


def _cheapest_with_last_free(means: FloatArray, weights: FloatArray, changes: FloatArray, target: float) -> float:
    def cost(logarithms: FloatArray) -> FloatArray:
        """Cost of the logarithms of two means relative to their estimates, shape (2, ...)."""
        pair = np.exp(logarithms)
        rest = target - changes[0] * means[0] * pair[0] - changes[1] * means[1] * pair[1]
        costs: FloatArray = weights[2] * slow_divergence("exponential", means[2], rest / changes[2])
        for k in range(2):
            costs = costs + weights[k] * slow_divergence("exponential", 1.0, pair[k])
        return costs

    axis = np.log(np.geomspace(1e-3, 1e3, 121))
    grid = np.array(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
    start = grid[:, int(np.argmin(cost(grid)))]
    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000}
    search: Any = minimize  # its stubs refuse this call
    return float(search(lambda pair: min(float(cost(pair)), 1e300), start, method="Nelder-Mead", options=options).fun)


# -- Divergence and confidence ends ----------------------------------------------------------------------------

MEANS = {
    "gaussian": [-2.0, 0.0, 0.3, 5.0],
    "bounded": [-1.0, 0.0, 2.5],
    "bernoulli": [1e-9, 0.003, 0.2, 0.5, 0.77, 0.999, 1.0 - 1e-9],
    "poisson": [1e-9, 0.02, 0.7, 3.0, 250.0],
    "exponential": [1e-9, 0.02, 0.7, 3.0, 250.0],
}
LEVELS = [1e-14, 1e-8, 1e-4, 0.03, 0.5, 3.0, 20.0]


@every_family
def test_divergence_is_exact_near_and_far(name: str) -> None:
    family = family_of(name)
    for x in MEANS[name]:
        for y in [*MEANS[name], x * (1 + 1e-3), x * (1 - 1e-6), x / 3.0]:
            if name != "bernoulli" or 0.0 < y < 1.0:
                exact = float(exact_divergence(name, x, y))
                assert divergence(family, 0, x, y) == pytest.approx(exact, rel=2e-13, abs=0.0), (x, y)


def test_divergence_at_the_edge_of_the_domain() -> None:
    bernoulli, poisson, exponential = (family_of(name) for name in CURVED)
    assert divergence(bernoulli, 0, 0.0, 0.3) == pytest.approx(-math.log(0.7), rel=1e-14)
    assert divergence(bernoulli, 0, 1.0, 0.3) == pytest.approx(-math.log(0.3), rel=1e-14)
    assert divergence(bernoulli, 0, 0.0, 0.0) == divergence(bernoulli, 0, 1.0, 1.0) == 0.0
    assert divergence(bernoulli, 0, 0.5, 0.0) == divergence(bernoulli, 0, 0.5, 1.0) == math.inf
    assert divergence(poisson, 0, 0.0, 0.3) == 0.3
    assert divergence(poisson, 0, 0.3, 0.0) == math.inf
    assert divergence(exponential, 0, 0.3, 0.0) == divergence(exponential, 0, 0.0, 0.3) == math.inf


@every_family
@pytest.mark.parametrize("level", LEVELS)
def test_confidence_ends_are_exact_to_twelve_digits(name: str, level: float) -> None:
    """The level lies between the divergences a hair inside and a hair outside of each end."""
    family = family_of(name)
    for mean in MEANS[name]:
        low, high = confidence_ends(family, 0, mean, level)
        assert low < mean < high or level < 1e-12 or mean + 1e-9 > 1.0
        for end, outwards in ((low, -1.0), (high, 1.0)):
            hair = outwards * 1e-12 * abs(end)
            inside, outside = end - hair, end + hair
            if min(inside, outside) <= 0.0 and name in CURVED:
                assert end < 1e-300  # smaller than any number
                continue
            assert exact_divergence(name, mean, inside) <= Decimal(level) * (1 + Decimal("1e-12")), (mean, end)
            if name != "bernoulli" or 0.0 < outside < 1.0:
                assert exact_divergence(name, mean, outside) >= Decimal(level) * (1 - Decimal("1e-12")), (mean, end)


@every_curved_family
@pytest.mark.parametrize("level", [1e-4, 0.03, 0.5, 3.0])
def test_confidence_ends_agree_with_a_root_finder(name: str, level: float) -> None:
    for mean in (0.02, 0.2, 0.5, 0.77):
        low, high = confidence_ends(family_of(name), 0, mean, level)
        top = 1.0 - 1e-16 if name == "bernoulli" else 1e4

        def excess(y: float, mean: float = mean) -> float:
            return float(slow_divergence(name, mean, y)) - level

        if excess(1e-300) > 0.0:
            logarithm = brentq(lambda z, excess=excess: excess(math.exp(z)), math.log(1e-300), math.log(mean))
            assert low == pytest.approx(math.exp(logarithm), rel=1e-11)
        assert high == pytest.approx(brentq(excess, mean, top, rtol=1e-14), rel=1e-11)


@pytest.mark.parametrize("level", LEVELS)
def test_confidence_ends_at_the_edge_of_the_domain(level: float) -> None:
    bernoulli, poisson, exponential = (family_of(name) for name in CURVED)
    assert confidence_ends(bernoulli, 0, 0.0, level) == pytest.approx((0.0, -math.expm1(-level)), rel=1e-14, abs=0.0)
    assert confidence_ends(bernoulli, 0, 1.0, level) == pytest.approx((math.exp(-level), 1.0), rel=1e-14, abs=0.0)
    assert confidence_ends(poisson, 0, 0.0, level) == (0.0, level)
    low, high = confidence_ends(exponential, 0, 0.0, level)
    assert 0.0 < low <= MEAN_MARGIN <= high < math.inf


@every_curved_family
def test_a_mean_outside_the_domain_counts_as_its_edge(name: str) -> None:
    family = family_of(name)
    assert confidence_ends(family, 0, -0.3, 0.5) == confidence_ends(family, 0, 0.0, 0.5)
    if name == "bernoulli":
        assert confidence_ends(family, 0, 1.3, 0.5) == confidence_ends(family, 0, 1.0, 0.5)


@every_family
def test_level_zero_leaves_the_mean(name: str) -> None:
    assert confidence_ends(family_of(name), 0, 0.4, 0.0) == (0.4, 0.4)


@every_curved_family
@pytest.mark.parametrize("level", [50.0, 700.0, 1e4])
def test_huge_levels_stay_inside_the_domain(name: str, level: float) -> None:
    for mean in MEANS[name]:
        low, high = confidence_ends(family_of(name), 0, mean, level)
        assert 0.0 <= low <= mean <= high < math.inf
        assert name != "bernoulli" or high <= 1.0


# -- Nearest alternatives --------------------------------------------------------------------------------------


def draw_mean(name: str, rng: np.random.Generator, size: int) -> FloatArray:
    return rng.uniform(0.02, 0.98, size) if name == "bernoulli" else rng.gamma(1.0, 1.0, size) + 0.05


def draw_case(name: str, rng: np.random.Generator, n_arms: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Means, weights and changes, and a target that some other means of the family would give."""
    changes = rng.normal(size=n_arms)
    if n_arms > 1 and rng.random() < 0.7:
        changes -= changes.mean()
    weights = 10.0 ** rng.uniform(-1.5, 2.0, n_arms)
    return draw_mean(name, rng, n_arms), weights, changes, float(changes @ draw_mean(name, rng, n_arms))


def check_alternative(name: str, means: FloatArray, weights: FloatArray, changes: FloatArray, target: float) -> float:
    """The alternative gives the move its target, at the cost claimed; the gap is the plain one. Return the cost."""
    family, move = family_of(name, means.size), move_of(changes.tolist())
    cost, gap = alternative_cost(family, means, weights, move, target)
    assert gap == pytest.approx(target - float(means @ changes), rel=1e-12, abs=1e-15)
    others = np.full(means.size, np.nan)
    write_nearest_alternative(family, means, weights, move, target, others)
    if np.max(slow_divergence(name, means, others)) > 49.9:
        return float(cost)  # written closer by than it is: see test_alternatives_of_arms_without_weight...
    assert float(others @ changes) == pytest.approx(target, rel=1e-10, abs=1e-10 * np.abs(changes * others).max())
    inside = np.clip(means, MEAN_MARGIN, 1.0 - MEAN_MARGIN if name == "bernoulli" else np.inf)
    assert cost == pytest.approx(total_cost(name, inside, weights, others), rel=1e-8, abs=1e-9)
    return float(cost)


@every_curved_family
def test_two_arms_against_a_dense_line_search(name: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        means, weights, changes, target = draw_case(name, rng, 2)
        cost = check_alternative(name, means, weights, changes, target)
        assert cost == pytest.approx(cheapest_on_a_line(name, means, weights, changes, target), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
@pytest.mark.parametrize("n_arms", [1, 3, 5])
def test_convex_families_against_nested_root_finders(name: str, n_arms: int) -> None:
    rng = np.random.default_rng(n_arms)
    for _ in range(40):
        means, weights, changes, target = draw_case(name, rng, n_arms)
        cost = check_alternative(name, means, weights, changes, target)
        expected, others = cheapest_by_duality(name, means, weights, changes, target)
        assert cost == pytest.approx(expected, rel=1e-8, abs=1e-13)
        family, move, written = family_of(name, n_arms), move_of(changes.tolist()), np.zeros(n_arms)
        write_nearest_alternative(family, means, weights, move, target, written)
        assert written == pytest.approx(others, rel=1e-6)


def test_exponentials_against_a_grid() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        means, weights = draw_mean("exponential", rng, 3), 10.0 ** rng.uniform(-1.0, 1.0, 3)
        changes = rng.normal(size=3) * rng.choice([-1.0, 1.0]) if rng.random() < 0.6 else rng.uniform(0.1, 1.0, 3)
        target = float(changes @ means) + abs(rng.normal()) * 2.0 * float(np.abs(changes * means).sum())
        cost, _ = alternative_cost(family_of("exponential", 3), means, weights, move_of(changes.tolist()), target)
        if cost < math.inf:
            check_alternative("exponential", means, weights, changes, target)
            assert cost == pytest.approx(cheapest_by_grid(means, weights, changes, target), rel=1e-7)


def test_one_exponential_arm_far_out_may_be_cheaper_than_all_a_little() -> None:
    """Ten equal arms could each rise to 1.9, where d is still convex; one alone at ten costs less."""
    means, weights, changes = np.ones(10), np.ones(10), np.full(10, 1.0)
    cost = check_alternative("exponential", means, weights, changes, 19.0)
    together = 10.0 * float(slow_divergence("exponential", 1.0, 1.9))
    alone = minimize_scalar(
        lambda z: total_cost("exponential", means, weights, np.array([z] + [(19.0 - z) / 9.0] * 9)),
        bounds=(2.0, 10.0),
        method="bounded",
        options={"xatol": 1e-12},
    )
    assert cost == pytest.approx(float(alone.fun), rel=1e-9)
    assert cost < 0.9 * together


def test_the_far_arm_need_not_be_the_one_pulled_hardest() -> None:
    """A light arm at a thousand times its mean, while the heavy arm with the larger change hardly moves."""
    means, weights, changes = np.array([1.0, 1.0]), np.array([1.0, 0.001]), np.array([1.0, 0.0009])
    cost = check_alternative("exponential", means, weights, changes, 2.0)
    assert cost == pytest.approx(cheapest_on_a_line("exponential", means, weights, changes, 2.0), rel=1e-7)
    assert cost < 0.01


EDGES: dict[str, list[tuple[list[float], list[float], float]]] = {
    "bernoulli": [
        ([0.0, 0.4], [1.0, -1.0], 0.1),
        ([0.0, 0.0], [1.0, -1.0], 0.3),
        ([1.0, 1.0], [1.0, -1.0], 0.2),
        ([1.0, 0.0], [-1.0, 1.0], 0.05),
        ([0.0, 1.0], [0.7, -0.2], -0.1),
    ],
    "poisson": [([0.0, 1.3], [1.0, -1.0], 0.2), ([0.0, 0.0], [1.0, -1.0], 0.5), ([2.0, 0.0], [-0.5, 1.0], 0.0)],
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("weights", [[10.0, 10.0], [3.0, 400.0], [250.0, 1.0]])
def test_arms_that_showed_only_zeros_or_ones(name: str, weights: list[float]) -> None:
    for means, changes, target in EDGES[name]:
        arrays = np.array(means), np.array(weights), np.array(changes)
        cost = check_alternative(name, *arrays, target)
        assert cost == pytest.approx(cheapest_on_a_line(name, *arrays, target), rel=1e-8, abs=1e-7)


def test_an_exponential_arm_that_showed_only_zeros_has_an_alternative() -> None:
    cost = check_alternative("exponential", np.array([0.0, 1.0]), np.array([5.0, 5.0]), np.array([1.0, -1.0]), 0.1)
    assert 0.0 < cost < math.inf


UNREACHABLE = [
    ("bernoulli", [1.0, -1.0], 1.0),
    ("bernoulli", [1.0, -1.0], 1.5),
    ("bernoulli", [1.0, -1.0], -1.0),
    ("bernoulli", [0.01, -0.01], 0.02),
    ("poisson", [-1.0, -0.5], 0.0),
    ("poisson", [1.0, 0.5], -0.1),
    ("exponential", [-1.0, -0.5], 0.1),
]


@pytest.mark.parametrize(("name", "changes", "target"), UNREACHABLE)
def test_a_target_that_no_means_give_costs_infinity(name: str, changes: list[float], target: float) -> None:
    family, move, means, weights = family_of(name, 2), move_of(changes), np.array([0.3, 0.6]), np.array([5.0, 7.0])
    assert alternative_cost(family, means, weights, move, target)[0] == math.inf
    others, spread = np.zeros(2), np.full((1, 2), np.nan)
    write_nearest_alternative(family, means, weights, move, target, others)
    assert others.tolist() == means.tolist()
    assert linearise_move(family, means, weights, move, target, spread) == math.inf
    assert spread.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(("name", "changes"), [("poisson", [-1.0, -0.5]), ("exponential", [-1.0, -0.5])])
def test_moves_that_can_only_fall(name: str, changes: list[float]) -> None:
    means, weights = np.array([0.3, 0.6]), np.array([5.0, 7.0])
    for target in (-0.5, -0.1, -1e-3):
        cost = check_alternative(name, means, weights, np.array(changes), target)
        expected = cheapest_on_a_line(name, means, weights, np.array(changes), target)
        assert cost == pytest.approx(expected, rel=1e-7)


def test_the_last_reachable_target_is_dear_but_finite() -> None:
    family, move, means = family_of("bernoulli", 2), move_of([1.0, -1.0]), np.array([0.3, 0.6])
    costs = [alternative_cost(family, means, np.ones(2), move, 1.0 - gap)[0] for gap in (1e-3, 1e-6, 1e-9)]
    assert np.all(np.diff(costs) > 0.0)
    assert costs[-1] < 60.0


@every_family
def test_moves_without_length_lead_nowhere(name: str) -> None:
    family, means, weights = family_of(name, 2), np.array([0.3, 0.6]), np.ones(2)
    nowhere = Moves(np.zeros((1, 2), dtype=np.int64), np.ones((1, 2)), np.array([0]))
    for move in (move_of([0.0, 0.0]), Move(nowhere, 0)):
        assert alternative_cost(family, means, weights, move, 0.1)[0] == math.inf
        assert linearise_move(family, means, weights, move, 0.1, np.zeros((1, 2))) == math.inf


@every_family
def test_a_move_already_worth_the_target_costs_nothing(name: str) -> None:
    family, means, weights = family_of(name, 2), np.array([0.25, 0.5]), np.ones(2)
    assert alternative_cost(family, means, weights, move_of([1.0, -0.5]), 0.0) == (0.0, 0.0)


@every_curved_family
def test_small_gaps_cost_what_a_gaussian_of_that_variance_would(name: str) -> None:
    means, weights, changes = np.array([0.3, 0.6, 0.2]), np.array([20.0, 5.0, 9.0]), np.array([1.0, -0.6, -0.4])
    variance = {"bernoulli": means * (1 - means), "poisson": means, "exponential": means**2}[name]
    for gap in (1e-4, -1e-4):
        cost = check_alternative(name, means, weights, changes, float(means @ changes) + gap)
        assert cost == pytest.approx(gap**2 / (2.0 * np.sum(variance * changes**2 / weights)), rel=1e-3)


@every_curved_family
def test_alternatives_of_arms_without_weight_do_not_run_off(name: str) -> None:
    """A game's allocation may put nothing on an arm; d(mean, alternative) then stays within fifty."""
    means, weights, others = np.array([0.3, 0.6, 0.5]), np.array([0.0, 1.0, 1.0]), np.zeros(3)
    for changes, target in (([1.0, -0.5, -0.5], 0.3), ([-1.0, 0.5, 0.5], 0.7)):
        write_nearest_alternative(family_of(name, 3), means, weights, move_of(changes), target, others)
        assert np.all(slow_divergence(name, means, others) <= 50.0 * (1 + 1e-9))
    if name == "exponential":  # it would fall to nothing
        assert slow_divergence(name, means, others)[0] == pytest.approx(50.0)


# -- Linearised moves ------------------------------------------------------------------------------------------


def modelled_cost(strength: float, spread: FloatArray, weights: FloatArray) -> float:
    return strength / float(np.sum(spread / weights))


def slopes_of(function: Callable[[FloatArray], float], point: FloatArray) -> FloatArray:
    """Fourth-order finite differences along each weight, times the weight."""

    def slope(k: int) -> float:
        step = 1e-3 * point[k] * np.eye(point.size)[k]
        near = function(point + step) - function(point - step)
        far = function(point + 2 * step) - function(point - 2 * step)
        return (8.0 * near - far) / 12e-3

    return np.array([slope(k) for k in range(point.size)])


def check_linearised(name: str, means: FloatArray, weights: FloatArray, changes: FloatArray, target: float) -> None:
    family, move, spread = family_of(name, means.size), move_of(changes.tolist()), np.zeros((1, means.size))

    def cost(w: FloatArray) -> float:
        return float(alternative_cost(family, means, w, move, target)[0])

    strength = linearise_move(family, means, weights, move, target, spread)
    assert strength == pytest.approx(0.5 * (target - float(means @ changes)) ** 2, rel=1e-9)
    assert modelled_cost(strength, spread[0], weights) == pytest.approx(cost(weights), rel=1e-10)
    modelled = slopes_of(lambda w: modelled_cost(strength, spread[0], w), weights)
    assert modelled == pytest.approx(slopes_of(cost, weights), rel=1e-6, abs=1e-7 * cost(weights))


@every_family
def test_linearised_moves_match_in_value_and_gradient(name: str) -> None:
    rng = np.random.default_rng(23)
    for _ in range(25):
        n_arms = int(rng.integers(1, 6))
        means, weights, changes, target = draw_case(name if name in CURVED else "poisson", rng, n_arms)
        check_linearised(name, means, weights / weights.sum(), changes, target)


@pytest.mark.parametrize("name", ["gaussian", "bounded"])
def test_gaussian_moves_are_exact_for_all_weights(name: str) -> None:
    family, move, spread = family_of(name, 2), move_of([1.0, -0.4]), np.zeros((1, 2))
    means = np.array([0.2, 0.9])
    strength = linearise_move(family, means, np.ones(2), move, 0.5, spread)
    for weights in (np.array([0.5, 0.5]), np.array([30.0, 1.0])):
        expected = alternative_cost(family, means, weights, move, 0.5)[0]
        assert modelled_cost(strength, spread[0], weights) == pytest.approx(expected, rel=1e-13)
    assert linearise_move(family, means, np.zeros(2), move, 0.5, spread) == strength  # weights do not matter


@every_curved_family
def test_without_a_gap_a_move_has_no_strength_and_its_limiting_spread(name: str) -> None:
    family, move, spread = family_of(name, 2), move_of([1.0, -0.5]), np.zeros((1, 2))
    means = np.array([0.25, 0.5])
    assert linearise_move(family, means, np.ones(2), move, 0.0, spread) == 0.0
    exact = spread.copy()
    linearise_move(family, means, np.ones(2), move, 1e-6, spread)
    assert exact[0] == pytest.approx(spread[0], rel=1e-4)
    assert np.all(exact > 0.0)
