"""Templates: their rows mean what they say, what is told fits what is declared, and certex answers truly."""

import math
from collections.abc import Callable
from itertools import pairwise, permutations, product
from typing import Any, Self

import numpy as np
import pytest

from polyarm import Constraint, InvalidInput, Problem, make_explorer, templates
from polyarm._types import FloatArray
from polyarm.bounds.lower import make_truth
from polyarm.bounds.lower import shadow_price as shadow_price_at_the_optimum
from polyarm.problem import find_optimum
from polyarm.templates import Guardrail

STATED: dict[str, Any] = {"reward_std": 0.5, "delta": 0.1, "r": 0.1}
ARMS = ["a", "b", "c"]


def rows_of(problem: Problem, costs: dict[str, Any]) -> FloatArray:
    """G with every row `<=` and its bound folded in; the costs of measured rows by name."""
    assert set(costs) == {problem.constraints[i].name for i in problem.unknown}
    return np.array(
        [c.sign * (np.array(costs[c.name] if c.row is None else c.row) - c.bound) for c in problem.constraints]
    )


def mixes(rng: np.random.Generator, n_arms: int, count: int = 300) -> FloatArray:
    """Random mixes, some of few arms, and every single arm: one in each column."""
    drawn = [rng.dirichlet(np.full(n_arms, rng.choice([0.2, 1.0, 5.0]))) for _ in range(count)]
    return np.array([*drawn, *np.eye(n_arms)]).T


class Agreement:
    """Collects mixes: each must satisfy the rows exactly when it satisfies the condition, and both must happen."""

    def __init__(self) -> None:
        self.seen: set[bool] = set()

    def add(self, rows: FloatArray, points: FloatArray, satisfied: Any) -> None:
        excess = rows @ points
        clear = np.min(np.abs(excess), axis=0) > 1e-12  # on an edge round-off decides
        assert np.array_equal(np.all(excess <= 0.0, axis=0)[clear], satisfied[clear])
        self.seen |= set(satisfied[clear].tolist())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        assert kind is not None or self.seen == {True, False}


def explore(problem: Problem, pull: Callable[[int], tuple[float, dict[str, float]]], limit: int = 60_000) -> FloatArray:
    """Run certex to its certificate; return the mix."""
    session = make_explorer("certex", problem, seed=3)
    while not session.stopped:
        assert session.steps < limit
        for arm in session.ask_batch():
            session.tell(arm, *pull(arm))
    answer = session.recommend()
    assert answer.claims.proved
    return answer.policy


def require_near_best(problem: Problem, mu: FloatArray, costs: dict[str, Any], mix: FloatArray) -> None:
    best = find_optimum(mu, rows_of(problem, costs))
    assert best is not None
    assert mu @ mix >= best.value - problem.r


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


# Thresholds


def test_thresholds_mean_shares_and_mean_toxicity(rng: np.random.Generator) -> None:
    with Agreement() as agreement:
        for _ in range(20):
            theta, c = rng.uniform(0.35, 1.4, 4), rng.uniform(0, 1, 4)
            level = float(np.sort(c)[1:3].mean())
            problem = templates.thresholds(4, theta.tolist(), toxicity_limit=level, toxicity_std=0.5, **STATED)
            points = mixes(rng, 4)
            satisfied = np.all(points <= theta[:, None], axis=0) & (c @ points <= level)
            agreement.add(rows_of(problem, {"toxicity": c}), points, satisfied)
            assert problem.n_constraints == 1 + int(np.sum(theta < 1))
    one_limit = templates.thresholds(ARMS, 0.5, **STATED)
    assert [c.bound for c in one_limit.constraints] == [0.5] * 3
    assert one_limit.unknown == ()


def test_a_certified_dose_is_safe(rng: np.random.Generator) -> None:
    effect, toxicity = np.array([0.2, 0.5, 0.9]), np.array([0.05, 0.2, 0.6])
    problem = templates.thresholds(
        ARMS,
        [1.0, 1.0, 0.4],
        toxicity_limit=0.3,
        toxicity_std=0.5,
        **{**STATED, "family": "bernoulli", "reward_std": None},
    )
    mix = explore(problem, lambda a: (float(rng.random() < effect[a]), {"toxicity": float(rng.random() < toxicity[a])}))
    assert mix @ toxicity <= 0.3
    assert mix[2] <= 0.4 + 1e-9
    require_near_best(problem, effect, {"toxicity": toxicity}, mix)


def test_shadow_price_of_thresholds() -> None:
    mix, theta = [0.5, 0.3, 0.2], [0.7, 0.8, 0.9]
    assert templates.thresholds_shadow_price(theta, mix) == pytest.approx(0.7 / 0.2)
    assert templates.thresholds_shadow_price(0.5, mix) is None
    problem = templates.thresholds(ARMS, theta, **STATED)
    assert templates.shadow_price(problem, mix) == pytest.approx(0.7 / 0.2)
    printed = np.array(mix) - theta  # the paper's, which it says is at least 1
    assert printed.max() / printed.min() == pytest.approx(0.2 / 0.7)


# Knapsack


def test_a_knapsack_holds_what_the_rounds_use(rng: np.random.Generator) -> None:
    with Agreement() as agreement:
        for _ in range(20):
            A = rng.uniform(0, 2, (2, 4))
            total = 100 * np.sort(A, axis=1)[:, 1:3].mean(axis=1)
            capacities, known = {"memory": float(total[0]), "power": float(total[1])}, {"power": A[1].tolist()}
            problem = templates.knapsack(4, capacities, {"memory": 0.3}, consumption=known, rounds=100, **STATED)
            assert problem.unknown == (0,)
            points = mixes(rng, 4)
            agreement.add(
                rows_of(problem, {"memory": A[0]}), points, np.all(100 * A @ points <= total[:, None], axis=0)
            )


def test_a_certified_knapsack_is_not_overfull(rng: np.random.Generator) -> None:
    mu, used = np.array([0.3, 0.6, 1.0]), np.array([[0.1, 0.6, 1.5], [0.9, 0.4, 0.2]])
    problem = templates.knapsack(ARMS, {"memory": 80.0, "power": 70.0}, 0.4, rounds=100, **STATED)
    mix = explore(
        problem,
        lambda a: (
            rng.normal(mu[a], 0.5),
            {"memory": rng.normal(used[0, a], 0.4), "power": rng.normal(used[1, a], 0.4)},
        ),
    )
    assert np.all(100 * used @ mix <= [80.0, 70.0])
    require_near_best(problem, mu, {"memory": used[0], "power": used[1]}, mix)


def test_the_bound_on_the_shadow_price_of_a_knapsack(rng: np.random.Generator) -> None:
    checked = 0
    for _ in range(200):
        A, c = rng.uniform(0, 3, (3, 4)), rng.uniform(1, 8, 3)
        mix = rng.dirichlet(np.ones(4))
        problem = templates.knapsack(4, {str(i): c[i] for i in range(3)}, 1.0, **STATED)
        price = templates.shadow_price(problem, mix, A)
        if np.min(c - A @ mix) >= 1.0:  # what the paper's "s <= c" needs
            assert price is not None
            assert 1.0 <= price <= c.max()
            checked += 1
    assert checked > 20
    small = templates.knapsack(2, {"x": 0.5, "y": 0.5}, 1.0, **STATED)
    price = templates.shadow_price(small, [0.5, 0.5], [[0.1, 0.1], [0.4, 0.4]])
    assert price == pytest.approx(4.0)  # above c = 0.5


# Feasible arms


def test_a_team_is_feasible_when_its_average_reaches_every_floor(rng: np.random.Generator) -> None:
    with Agreement() as agreement, Agreement() as own_floors:
        for _ in range(20):
            f = rng.uniform(0, 1, (2, 4))
            tau = np.sort(f, axis=1)[:, 1:3].mean(axis=1)
            problem = templates.feasible_arms(4, {"cats": tau[0], "dogs": tau[1]}, 0.5, **STATED)
            points = mixes(rng, 4)
            rows = rows_of(problem, {"cats": f[0], "dogs": f[1]})
            agreement.add(rows, points, np.all(f @ points >= tau[:, None], axis=0))
            # Floors of each worker's own: performance minus floor, against 0.
            own = rng.uniform(0.2, 0.6, 4)
            problem = templates.feasible_arms(4, {"cats": 0.0}, 0.5, **STATED)
            own_floors.add(rows_of(problem, {"cats": f[0] - own}), points, f[0] @ points >= own @ points)


def test_a_certified_team_reaches_its_floors(rng: np.random.Generator) -> None:
    utility, skill = np.array([1.0, 0.6, 0.3]), np.array([[0.6, 0.8, 0.9], [0.95, 0.7, 0.9]])
    problem = templates.feasible_arms(ARMS, {"cats": 0.7, "dogs": 0.75}, 0.5, **STATED)

    def pull(a: int) -> tuple[float, dict[str, float]]:
        cats, dogs = rng.random(2) < skill[:, a]
        return rng.normal(utility[a], 0.5), {"cats": float(cats), "dogs": float(dogs)}

    mix = explore(problem, pull)
    assert np.all(skill @ mix >= [0.7, 0.75])
    require_near_best(problem, utility, {"cats": skill[0], "dogs": skill[1]}, mix)


def test_shadow_price_of_feasible_arms() -> None:
    f = [0.95, 0.8, 0.5]
    assert templates.feasible_arms_shadow_price(f, 0.7, [0.5, 0.5, 0.0]) == pytest.approx(2.5)
    assert templates.feasible_arms_shadow_price(f, 0.7, [0.5, 0.0, 0.5]) is None
    # As printed, "at least 1": with both workers above, and for a feasible team with one below.
    above, below = (0.7 - 0.8) / (0.7 - 0.95), (0.7 - 0.5) / (0.7 - 0.95)
    assert above == pytest.approx(1 / 2.5)
    assert below < 0.0
    problem = templates.feasible_arms(ARMS, {"cats": 0.7}, 0.5, **STATED)
    assert templates.shadow_price(problem, [0.5, 0.5, 0.0], [f]) == 1.0  # Theorem 6, one row


# Sub-populations

SHARES = {"young": 0.3, "old": 0.7}


def test_sub_populations_are_each_above_their_floor(rng: np.random.Generator) -> None:
    with Agreement() as agreement:
        for _ in range(20):
            mu = rng.uniform(-1, 1, (2, 4))
            tau = np.sort(mu, axis=1)[:, 1:3].mean(axis=1)
            floors = {"young": tau[0], "old": tau[1]}
            problem = templates.subpopulations(4, SHARES, 1.0, floors=floors, delta=0.1, r=0.1)
            rows, points = rows_of(problem, {"young": mu[0], "old": mu[1]}), mixes(rng, 4)
            agreement.add(rows, points, np.all(mu @ points >= tau[:, None], axis=0))
            # The paper's condition, all of the mix on arms that are good for everyone, is stronger.
            good = (mu >= tau[:, None]).all(axis=0)
            assert np.all(rows @ np.where(good[:, None], points, 0.0) <= 1e-12)
    # ... and not the same: neither arm is good for both groups, half of each is.
    problem = templates.subpopulations(2, SHARES, 1.0, delta=0.1, r=0.1)
    rows = rows_of(problem, {"young": [1.0, -0.5], "old": [-0.5, 1.0]})
    assert np.all(rows @ [0.5, 0.5] <= 0.0)
    assert not np.any(np.all(rows <= 0.0, axis=0))


def test_the_reward_of_sub_populations_stays_within_its_scale() -> None:
    problem = templates.subpopulations(2, SHARES, {"young": 2.0, "old": [1.0, 3.0]}, delta=0.1, r=0.1)
    assert problem.reward_std == pytest.approx((0.3 * 2 + 0.7 * 1, 0.3 * 2 + 0.7 * 3))
    assert problem.noise == "correlated"
    reward, costs = templates.subpopulation_outcome(problem, SHARES, {"old": 1.0, "young": -2.0})
    assert reward == pytest.approx(0.3 * -2 + 0.7)
    assert costs == {"young": -2.0, "old": 1.0}
    given = templates.subpopulations(2, SHARES, 1.0, reward_std=0.8, delta=0.1, r=0.1)
    assert given.reward_std == 0.8


def test_a_certified_treatment_is_fair(rng: np.random.Generator) -> None:
    mu = np.array([[-0.6, 0.9, 0.2], [1.4, -0.4, 0.3]])
    problem = templates.subpopulations(ARMS, SHARES, 0.5, delta=0.1, r=0.2)

    def pull(a: int) -> tuple[float, dict[str, float]]:
        shock = 0.3 * rng.standard_normal()  # of one day: shared by both groups, scale 0.5 with the rest
        young, old = mu[:, a] + shock + 0.4 * rng.standard_normal(2)
        return templates.subpopulation_outcome(problem, SHARES, {"young": young, "old": old})

    mix = explore(problem, pull)
    assert np.all(mu @ mix >= 0.0)
    require_near_best(problem, np.array([0.3, 0.7]) @ mu, {"young": mu[0], "old": mu[1]}, mix)


def test_shadow_price_of_sub_populations() -> None:
    assert templates.subpopulations_shadow_price([0.6, 0.0, 0.4]) == pytest.approx(1.5)
    assert templates.subpopulations_shadow_price([0.0, 1.0]) == 1.0  # not above 1, as printed


# Exposure


def inverse_merits(merits: FloatArray, n: int) -> FloatArray:
    """What the costs of `exposure` measure in the mean."""
    return np.asarray((1 - (1 - merits) ** (n + 1)) / merits)


def exposure_rows(problem: Problem, merits: FloatArray, n: int, weight: float) -> FloatArray:
    x = inverse_merits(merits, n)
    rows = np.zeros((problem.n_constraints, merits.size))
    for i, (a, b) in enumerate(permutations(range(merits.size), 2)):
        rows[i, a], rows[i, b] = x[a], -weight * x[b]
    return rows_of(problem, {c.name: row for c, row in zip(problem.constraints, rows, strict=True)})


def unfairness(mix: FloatArray, merits: FloatArray) -> float:
    """How many times more exposure for its merit some arm has than another."""
    per_merit = mix / merits
    return float(per_merit.max() / per_merit.min()) if per_merit.min() > 0 else math.inf


def test_exposure_rows_keep_every_mix_within_the_tolerance(rng: np.random.Generator) -> None:
    least, seen = 0.4, set()
    for tolerance, n in [(0.3, 4), (0.5, 6), (1.0, 3), (2.0, 40)]:
        problem = templates.exposure(3, tolerance=tolerance, least_merit=least, outcomes_per_pull=n, delta=0.1, r=0.1)
        kept = 1 - (1 - least) ** (n + 1)
        for _ in range(20):
            merits = rng.uniform(least, 1.0, 3)
            rows = exposure_rows(problem, merits, n, (1 + tolerance) * kept)
            fair = merits / merits.sum()
            assert np.all(rows @ fair < 0.0)
            for mix in [*mixes(rng, 3, 30).T, *(rng.dirichlet(200 * fair) for _ in range(60))]:
                satisfied, ratio = bool(np.all(rows @ mix <= 0.0)), unfairness(mix, merits)
                if satisfied:
                    assert ratio <= 1 + tolerance
                if ratio <= (1 + tolerance) * kept**2:
                    assert satisfied
                if n == 40:  # nothing left to shut out
                    assert satisfied == (ratio <= 1 + tolerance)
                seen.add((satisfied, ratio <= 1 + tolerance))
    assert seen >= {(True, True), (False, False)}


@pytest.mark.parametrize("merit", [0.4, 0.55, 0.9, 1.0])
def test_exposure_costs_have_the_declared_mean_and_scale(merit: float) -> None:
    """By enumeration of all clicks of a pull: the mean, and the moment generating function below a Gaussian's."""
    n, tolerance, least = 4, 0.5, 0.4
    problem = templates.exposure(ARMS, tolerance=tolerance, least_merit=least, outcomes_per_pull=n, delta=0.1, r=0.1)
    weight = (1 + tolerance) * (1 - (1 - least) ** (n + 1))
    wanted = {f"{a} over {b}": 0.0 for a, b in permutations(ARMS, 2)}
    mean = float(inverse_merits(np.array(merit), n))
    wanted |= {f"b over {other}": mean for other in "ac"} | {f"{other} over b": -weight * mean for other in "ac"}
    assert list(wanted) == [c.name for c in problem.constraints]
    clicks = list(product([0.0, 1.0], repeat=n))
    chances = np.array([merit ** sum(c) * (1 - merit) ** (n - sum(c)) for c in clicks])
    told = [templates.exposure_outcome(problem, "b", c) for c in clicks]
    assert isinstance(problem.reward_std, float)
    scales = [(np.array([reward for reward, _ in told]), merit, problem.reward_std)]
    for c in problem.constraints:
        assert isinstance(c.std, tuple)
        scales.append((np.array([costs[c.name] for _, costs in told]), wanted[c.name], c.std[1]))
    for values, expected, scale in scales:
        assert chances @ values == pytest.approx(expected)
        for t in np.linspace(-5, 5, 41) / scale:
            assert chances @ np.exp(t * (values - expected)) <= math.exp(t**2 * scale**2 / 2) + 1e-12


def test_exposure_takes_grades_as_well_as_clicks(rng: np.random.Generator) -> None:
    problem = templates.exposure(2, tolerance=1.0, least_merit=0.5, outcomes_per_pull=3, delta=0.1, r=0.1)
    reward, costs = templates.exposure_outcome(problem, 0, [0.5, 0.2, 1.0])
    assert reward == pytest.approx(1.7 / 3)
    x = 1 + 0.5 + 0.5 * 0.8 + 0.0
    assert costs == {"arm 1 over arm 2": pytest.approx(x), "arm 2 over arm 1": pytest.approx(-2 * (1 - 0.5**4) * x)}
    grades = rng.beta(2, 1, (20_000, 3))
    mean = np.mean([templates.exposure_outcome(problem, 0, g)[1]["arm 1 over arm 2"] for g in grades])
    assert mean == pytest.approx(float(inverse_merits(np.array(2 / 3), 3)), abs=0.02)
    # Rows of one's own come after the template's.
    more = problem.replace(constraints=[*problem.constraints, Constraint(name="price", bound=1.0, std=1.0)])
    assert templates.exposure_outcome(more, 0, [0.5, 0.2, 1.0]) == (reward, costs)


def test_certified_exposure_is_fair_within_the_tolerance(rng: np.random.Generator) -> None:
    merits, n = np.array([0.5, 0.6, 0.9]), 5
    problem = templates.exposure(ARMS, tolerance=0.5, least_merit=0.5, outcomes_per_pull=n, delta=0.1, r=0.1)
    mix = explore(problem, lambda a: templates.exposure_outcome(problem, a, (rng.random(n) < merits[a]).astype(float)))
    assert unfairness(mix, merits) <= 1.5
    best = find_optimum(merits, exposure_rows(problem, merits, n, 1.5 * (1 - 0.5**6)))
    assert best is not None
    assert merits @ mix >= best.value - 0.1


@pytest.mark.parametrize(("tolerance", "least"), [(0.1, 0.2), (0.5, 0.5), (0.3, 0.05), (2.0, 0.7)])
def test_exposure_says_how_many_outcomes_are_enough(tolerance: float, least: float) -> None:
    def make(n: int) -> Problem:
        return templates.exposure(3, tolerance=tolerance, least_merit=least, outcomes_per_pull=n, delta=0.1, r=0.1)

    def fits(n: int) -> bool:
        return (1 + tolerance) * (1 - (1 - least) ** (n + 1)) ** 2 > 1

    enough = next(n for n in range(1, 200) if fits(n))
    make(enough)
    if enough > 1:
        with pytest.raises(InvalidInput, match=f"give {enough} or more"):
            make(enough - 1)


def test_shadow_price_of_exposure() -> None:
    assert templates.exposure_shadow_price([1.0, 2.0, 3.0]) == pytest.approx(4.0)
    assert templates.exposure_shadow_price([1.0, 2.0, 2.0]) is None
    merits = [1.0, 2.0, 3.0]
    assert max(abs(x - y) for x, y in permutations(merits, 2)) / min(y - x for x, y in pairwise(merits)) == 2.0


# Guardrails


def test_guardrails_compare_with_the_control(rng: np.random.Generator) -> None:
    problem = templates.guardrails(
        ["old", "x", "y", "z"],
        [
            Guardrail(name="crashes", margin=0.05, std=0.5, better="lower"),
            Guardrail(name="retention", margin=0.1, std=0.5, better="higher"),
            Guardrail(name="seconds", margin=0.4, std=1.0, better="lower", baseline=2.0),
        ],
        **STATED,
    )
    with Agreement() as agreement:
        for _ in range(20):
            crashes, stay, speed = rng.uniform(0.1, 0.3, 4), rng.uniform(0.3, 0.6, 4), rng.uniform(1, 3, 4)
            differences = {
                "crashes against old": crashes - crashes[0],
                "retention against old": stay - stay[0],
                "seconds": speed,
            }
            rows, points = rows_of(problem, differences), mixes(rng, 4)
            satisfied = (crashes @ points <= crashes[0] + 0.05) & (stay @ points >= stay[0] - 0.1)
            agreement.add(rows, points, satisfied & (speed @ points <= 2.4))
            assert np.all(rows[:2, 0] < 0.0)  # the control passes what is measured against it


def test_differences_have_the_declared_scale() -> None:
    metrics = [Guardrail(name="crashes", margin=0.05, std=(0.3, 0.4, 0.5), better="lower")]
    problem = templates.guardrails(["old", "x", "y"], metrics, **STATED)
    (row,) = problem.constraints
    assert row.std == pytest.approx((0.01 * math.hypot(0.5, 0.3), 0.5, math.hypot(0.5, 0.3)))
    assert templates.guardrail_costs(problem, "x", {"crashes": 1.0}, {"crashes": 0.25}) == {"crashes against old": 0.75}
    assert templates.guardrail_costs(problem, 0, {"crashes": 1.0}) == {"crashes against old": 0.0}
    with pytest.raises(InvalidInput, match="control_metrics: 'crashes' is required"):
        templates.guardrail_costs(problem, 1, {"crashes": 1.0})
    with pytest.raises(InvalidInput, match="each of \\['crashes'\\]"):
        templates.guardrail_costs(problem, 1, {"crash": 1.0}, {"crash": 1.0})
    known = templates.guardrails(2, [Guardrail(name="s", margin=1, std=1, better="higher", baseline=5)], **STATED)
    assert templates.guardrail_costs(known, 1, {"s": 4.5}) == {"s": 4.5}
    assert (known.constraints[0].sense, known.constraints[0].bound) == (">=", 4.0)


def test_a_certified_split_is_not_inferior(rng: np.random.Generator) -> None:
    revenue, crashes = np.array([0.3, 0.5, 0.9]), np.array([0.2, 0.25, 0.5])
    problem = templates.guardrails(
        ["old", "x", "y"], [Guardrail(name="crashes", margin=0.15, std=0.5, better="lower")], **STATED
    )

    def pull(a: int) -> tuple[float, dict[str, float]]:
        own, beside = float(rng.random() < crashes[a]), float(rng.random() < crashes[0])
        return rng.normal(revenue[a], 0.5), templates.guardrail_costs(problem, a, {"crashes": own}, {"crashes": beside})

    mix = explore(problem, pull)
    assert crashes @ mix <= crashes[0] + 0.15
    require_near_best(problem, revenue, {"crashes against old": crashes - crashes[0]}, mix)


# Routing


def test_routing_bounds_means_shares_of_requests_and_shares_of_models(rng: np.random.Generator) -> None:
    with Agreement() as agreement:
        for _ in range(20):
            price, slow = rng.uniform(0, 2, 3), rng.uniform(0, 0.4, 3)
            limit, share = float(np.median(price)), float(np.median(slow)) + 0.02
            problem = templates.routing(
                3, budgets={"price": limit}, std={"price": 0.3}, at_most={"slow": share}, least_share=0.05, **STATED
            )
            points = mixes(rng, 3)
            satisfied = (price @ points <= limit) & (slow @ points <= share) & (points.min(axis=0) >= 0.05)
            agreement.add(rows_of(problem, {"price": price, "slow": slow}), points, satisfied)
            assert problem.constraints[1].std == 0.5


def test_the_share_of_slow_requests_says_what_a_percentile_does(rng: np.random.Generator) -> None:
    seconds = rng.lognormal([0.0, 0.4, 0.9], 0.5, (40_000, 3))
    for mix in mixes(rng, 3, 30).T:
        drawn = seconds[np.arange(40_000), rng.choice(3, 40_000, p=mix)]
        assert (np.quantile(drawn, 0.8, method="inverted_cdf") <= 2.0) == (np.mean(drawn > 2.0) <= 0.2)


def test_a_certified_router_keeps_its_service_level(rng: np.random.Generator) -> None:
    quality, price, slow = np.array([0.5, 0.7, 0.9]), np.array([0.2, 0.8, 2.0]), np.array([0.05, 0.15, 0.5])
    problem = templates.routing(
        ARMS, budgets={"price": 1.0}, std=0.3, at_most={"slow": 0.3}, least_share=0.05, **{**STATED, "reward_std": 0.2}
    )

    def pull(a: int) -> tuple[float, dict[str, float]]:
        length = rng.standard_normal()  # long answers are better and dearer at once
        return quality[a] + 0.2 * length, {"price": price[a] + 0.3 * length, "slow": float(rng.random() < slow[a])}

    mix = explore(problem, pull)
    assert price @ mix <= 1.0
    assert slow @ mix <= 0.3
    assert mix.min() >= 0.05 - 1e-9
    require_near_best(problem, quality, {"price": price, "slow": slow}, mix)


# What all have in common


def test_the_shadow_price_is_that_of_the_bounds(rng: np.random.Generator) -> None:
    defined = 0
    for _ in range(30):
        mu, A = rng.uniform(0, 1, 3), rng.uniform(0, 1, (2, 3))
        problem = templates.knapsack(3, {"x": 0.9, "y": 0.95}, 0.5, **STATED)
        best = find_optimum(mu, rows_of(problem, {"x": A[0], "y": A[1]}))
        if best is None:
            continue
        ours = templates.shadow_price(problem, best.policy, A)
        theirs = shadow_price_at_the_optimum(make_truth(problem, mu, A))
        assert ours == (None if theirs is None else pytest.approx(theirs))
        defined += ours is not None
    assert defined > 5
    assert templates.shadow_price(templates.thresholds(2, 1.0, **STATED), [0.5, 0.5]) is None
    with pytest.raises(InvalidInput, match="expected 2 rows"):
        templates.shadow_price(problem, best.policy if best else [1, 0, 0], A[:1])


GOOD: dict[str, dict[str, Any]] = {
    "thresholds": {"arms": 3, "limits": 0.5, **STATED},
    "knapsack": {"arms": 3, "capacities": {"x": 1.0}, "std": 1.0, **STATED},
    "feasible_arms": {"arms": 3, "floors": {"x": 1.0}, "std": 1.0, **STATED},
    "subpopulations": {"arms": 3, "shares": SHARES, "std": 1.0, "delta": 0.1, "r": 0.1},
    "exposure": {"arms": 3, "tolerance": 0.5, "least_merit": 0.5, "outcomes_per_pull": 5, "delta": 0.1, "r": 0.1},
    "guardrails": {"arms": 3, "metrics": [Guardrail(name="x", margin=1, std=1, better="lower")], **STATED},
    "routing": {"models": 3, "budgets": {"x": 1.0}, "std": 1.0, **STATED},
}

#: Each case: template, changes, what the message says.
BAD = [
    ("thresholds", {"limits": None}, "give limits"),
    ("thresholds", {"limits": [0.5, 0.5]}, "one per arm \\(3\\), got 2"),
    ("thresholds", {"limits": 0.0}, "limits: expected a finite number above 0, got 0.0"),
    ("thresholds", {"limits": "half"}, "limits: expected"),
    ("thresholds", {"limits": 0.2}, "contradict each other"),
    ("thresholds", {"toxicity_limit": 0.3}, "toxicity_std: required"),
    ("thresholds", {"toxicity_std": 0.3}, "belongs to toxicity_limit"),
    ("thresholds", {"toxicity_limit": math.nan, "toxicity_std": 1}, "toxicity_limit: expected a finite number"),
    ("thresholds", {"constraints": []}, "the template makes them"),
    ("thresholds", {"colour": 1}, "colour: unknown field"),
    ("thresholds", {"delta": 2}, "delta"),
    ("knapsack", {"capacities": {}}, "capacities: expected a dictionary"),
    ("knapsack", {"capacities": {"x": -1.0}}, "capacity of 'x': expected a finite number at least 0"),
    ("knapsack", {"std": None}, "std: required"),
    ("knapsack", {"std": {"y": 1.0}}, "each of \\['x'\\], got \\['y'\\]"),
    ("knapsack", {"std": 0.0}, "greater than 0"),
    ("knapsack", {"consumption": {"xx": [1, 2, 3]}}, "Did you mean 'x'"),
    ("knapsack", {"consumption": {"x": [1, 2]}}, "one value per arm \\(3\\)"),
    ("knapsack", {"rounds": 0}, "rounds: expected a whole number"),
    ("knapsack", {"rounds": True}, "rounds: expected a whole number"),
    ("feasible_arms", {"floors": [0.5]}, "floors: expected a dictionary"),
    ("feasible_arms", {"floors": {"x": None}}, "floor of 'x'"),
    ("feasible_arms", {"std": [1.0, 1.0]}, "one value per arm \\(3\\)"),
    ("subpopulations", {"shares": {"young": 0.5, "old": 0.6}}, "sum to 1"),
    ("subpopulations", {"shares": {"young": 0.0, "old": 1.0}}, "share of 'young'"),
    ("subpopulations", {"floors": {"young": 0.0}}, "floors: expected"),
    ("subpopulations", {"std": {"young": 1.0}}, "std: expected"),
    ("subpopulations", {"std": [1.0, 2.0]}, "one value per arm \\(3\\)"),
    ("exposure", {"tolerance": 0.0}, "tolerance: expected a finite number above 0"),
    ("exposure", {"least_merit": 0.0}, "least_merit: expected a finite number above 0 and at most 1"),
    ("exposure", {"least_merit": 1.5}, "least_merit"),
    ("exposure", {"outcomes_per_pull": 2.5}, "outcomes_per_pull: expected a whole number"),
    ("exposure", {"outcomes_per_pull": 1}, "too few"),
    ("guardrails", {"metrics": []}, "metrics: expected one or more"),
    ("guardrails", {"metrics": ["crashes"]}, "metrics: expected one or more"),
    ("guardrails", {"metrics": [Guardrail(name="x", margin=1, std=(1, 2), better="lower")]}, "per arm \\(3\\), got 2"),
    ("guardrails", {"metrics": 2 * GOOD["guardrails"]["metrics"]}, "names must differ"),
    ("routing", {"budgets": None}, "give budgets"),
    ("routing", {"at_most": {"slow": 1.0}}, "at_most 'slow': expected a finite number above 0 and below 1"),
    ("routing", {"least_share": 0.5}, "least_share: expected a finite number at least 0 and at most 0.333"),
    ("routing", {"models": 1}, "at least 2"),
]


@pytest.mark.parametrize("name", GOOD)
def test_a_template_gives_a_problem(name: str) -> None:
    problem = getattr(templates, name)(**GOOD[name])
    assert isinstance(problem, Problem)
    assert problem.n_arms == 3
    assert Problem(**problem.model_dump()) == problem


#: For each template: a guess in the user's words, and the means of what is told: rewards, then one row per constraint.
GUESSES: dict[str, tuple[dict[str, Any], list[list[float]]]] = {
    "thresholds": ({"reward": [1, 2, 3]}, [[1, 2, 3]]),
    "knapsack": ({"reward": [1, 2, 3], "x": [4, 5, 6]}, [[1, 2, 3], [4, 5, 6]]),
    "feasible_arms": ({"reward": [1, 2, 3], "x": [4, 5, 6]}, [[1, 2, 3], [4, 5, 6]]),
    "subpopulations": (
        {group: [1.0, 2.0, 4.0 * (k + 1)] for k, group in enumerate(SHARES)},
        [
            [1.0, 2.0, sum(4.0 * (k + 1) * share for k, share in enumerate(SHARES.values()))],
            *([1.0, 2.0, 4.0 * (k + 1)] for k in range(len(SHARES))),
        ],
    ),
    "guardrails": ({"reward": [1, 2, 3], "x": [4, 5, 7]}, [[1, 2, 3], [0, 1, 3]]),
    "routing": ({"reward": [1, 2, 3], "x": [4, 5, 6]}, [[1, 2, 3], [4, 5, 6]]),
}


@pytest.mark.parametrize("name", GUESSES)
def test_a_guess_becomes_means_of_what_is_told(name: str) -> None:
    guess, (mu, *rows) = GUESSES[name]
    problem = getattr(templates, name)(**GOOD[name], guess=guess)
    assert problem.model_dump() == getattr(templates, name)(**GOOD[name]).model_dump()
    assert problem.guess is not None
    assert problem.guess.mu == pytest.approx(mu)
    assert list(problem.guess.costs) == [problem.constraints[i].name for i in problem.unknown]
    for costs, row in zip(problem.guess.costs.values(), rows, strict=True):
        assert costs == pytest.approx(row)
    with pytest.raises(InvalidInput, match="guess: expected a dictionary with a value for each of"):
        getattr(templates, name)(**GOOD[name], guess={"y": [1, 2, 3]})


def test_a_guess_of_a_metric_with_a_baseline_is_as_measured() -> None:
    metric = Guardrail(name="x", margin=1, std=1, better="lower", baseline=4.0)
    problem = templates.guardrails(3, [metric], guess={"reward": [1, 2, 3], "x": [4, 5, 7]}, **STATED)
    assert problem.guess is not None
    assert problem.guess.costs == {"x": (4.0, 5.0, 7.0)}


def test_a_guess_of_merits_becomes_the_rows_of_exposure() -> None:
    merits = np.array([0.5, 0.6, 0.9])
    problem = templates.exposure(**GOOD["exposure"], guess={"merit": merits})
    assert problem.guess is not None
    assert problem.guess.mu == pytest.approx(merits)
    weight = 1.5 * (1.0 - 0.5**6)
    assert np.array([*problem.guess.costs.values()]) == pytest.approx(exposure_rows(problem, merits, 5, weight))
    with pytest.raises(InvalidInput, match=r"guess, merit: expected a finite number at least 0\.5"):
        templates.exposure(**GOOD["exposure"], guess={"merit": [0.5, 0.6, 0.4]})


@pytest.mark.parametrize(("name", "changes", "message"), BAD)
def test_what_is_wrong_is_said(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        getattr(templates, name)(**{**GOOD[name], **changes})


@pytest.mark.parametrize(
    ("changes", "message"), [({"margin": 0}, "margin"), ({"better": "bigger"}, "better"), ({"std": -1}, "std")]
)
def test_a_wrong_guardrail_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Guardrail(**{"name": "x", "margin": 1, "std": 1, "better": "lower", **changes})


def test_outcomes_that_do_not_fit_are_refused() -> None:
    exposed = templates.exposure(**GOOD["exposure"])
    with pytest.raises(InvalidInput, match="expected 5, the outcomes of one pull, got 4"):
        templates.exposure_outcome(exposed, 0, [1, 0, 1, 0])
    with pytest.raises(InvalidInput, match="outcome: expected a finite number at least 0 and at most 1"):
        templates.exposure_outcome(exposed, 0, [1, 0, 1, 0, 2])
    with pytest.raises(InvalidInput, match="unknown arm"):
        templates.exposure_outcome(exposed, "nobody", [1, 0, 1, 0, 0])
    with pytest.raises(InvalidInput, match="expected one that templates"):
        templates.exposure_outcome(templates.thresholds(**GOOD["thresholds"]), 0, [1, 0, 1, 0, 0])
    fair = templates.subpopulations(**GOOD["subpopulations"])
    with pytest.raises(InvalidInput, match="outcomes: expected"):
        templates.subpopulation_outcome(fair, SHARES, {"young": 1.0})
    with pytest.raises(InvalidInput, match="group in shares"):
        templates.subpopulation_outcome(fair, {"youth": 0.3, "old": 0.7}, {"youth": 1.0, "old": 1.0})
