"""The certified bound: below every witness that anything can find, whatever the prices, the order and the units."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from oracle.joint import FLAVOURS, Case, draw_case, draw_mixes, make_evidence, search_densely, witness_values
from oracle.records import spoil
from oracle.reference import FloatArray, Generator
from polyarm.certify import search as branch
from polyarm.certify.evidence import cost_statistic, witness_value
from polyarm.certify.search import CERTIFIED, UNRESOLVED, WITNESS, Task, make_search_work, search_witness

ACCURACY = 0.03
MAX_NODES = 3000
PENALTY = 200.0
#: How far a witness may be beyond a known row; not the library's own number, which might be loosened.
KNOWN_ROW = 1e-9

Result = tuple[int, int, float, FloatArray]


def first_witness(case: Case) -> FloatArray:
    """A mix that satisfies the known rows."""
    arms = np.eye(case.answer.size)
    values = witness_values(case, arms)
    best = int(np.argmin(values))
    return arms[best].copy() if np.isfinite(values[best]) else case.inside.copy()


def search_exactly(
    case: Case, penalty: float = PENALTY, max_nodes: int = MAX_NODES, search: Any = search_witness
) -> Result:
    """Bound the statistic itself."""
    q = first_witness(case)
    start = float(witness_value(case.evidence, q))
    return run(case, Task(start, ACCURACY, 0.0, penalty, max_nodes), q, search)


def decide(
    case: Case, threshold: float, penalty: float = PENALTY, max_nodes: int = MAX_NODES, search: Any = search_witness
) -> Result:
    """Decide whether the statistic exceeds a threshold."""
    q = np.full(case.answer.size, np.nan)
    return run(case, Task(threshold, 0.0, threshold, penalty, max_nodes), q, search)


def run(case: Case, task: Task, q: FloatArray, search: Any) -> Result:
    work = make_search_work(*case.shape)
    # Scratch that was never written must not matter: what an earlier search left there certainly does not.
    spoil(work)
    outcome, nodes, bound = search(case.evidence, task, work, q)
    return int(outcome), int(nodes), float(bound), q


def check_witness(case: Case, q: FloatArray, claimed: float) -> None:
    """A witness is a mix, satisfies the known rows and has the value claimed."""
    e = case.evidence
    assert q.min() >= 0.0
    assert q.sum() == pytest.approx(1.0, abs=1e-9)
    assert (e.rows[e.known] @ q).max(initial=0.0) <= 1.01 * KNOWN_ROW
    assert float(witness_values(case.relaxed(1.01 * KNOWN_ROW), q[None])[0]) == pytest.approx(
        claimed, rel=1e-6, abs=1e-9
    )


def draw_shape(rng: Generator) -> tuple[int, int]:
    """Small cases, which grids cover, are the more frequent ones."""
    return int(rng.integers(2, 5 if rng.random() < 0.5 else 13)), int(rng.integers(0, 5))


def draw_cases(rng: Generator, n: int, flavour: str) -> Iterator[Case]:
    for _ in range(n):
        n_arms, d = draw_shape(rng)
        yield draw_case(rng, n_arms, d, flavour)


def just_above(value: float) -> float:
    """Round-off in the dense search is no counterexample."""
    return value * (1.0 + 1e-9) + 1e-12


# -- The formulas ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_values_agree_with_their_formulas(flavour: str) -> None:
    rng = np.random.default_rng(1)
    for case in draw_cases(rng, 200, flavour):
        e = case.evidence
        mixes = draw_mixes(rng, 5, e.mu.size)
        expected = witness_values(case, mixes)
        for q, value in zip(mixes, expected, strict=True):
            found = witness_value(e, q)
            assert found == pytest.approx(value, rel=1e-8, abs=1e-12) or not np.isfinite(value)
            worst = (e.rows[e.known] @ q).max(initial=0.0)
            if not np.isfinite(value) and worst > 2 * KNOWN_ROW:
                assert found == np.inf
        if e.terms.spread > 0.0:
            continue  # the centre of an averaged certificate is no answer: its costs are tested otherwise
        slack = np.maximum(-(e.rows @ case.answer), 0.0)
        unknown = ~e.known
        costs = slack[unknown] ** 2 / (2.0 * (e.row_var[unknown] @ case.answer**2))
        assert cost_statistic(e, case.answer) == pytest.approx(costs.min(initial=np.inf), rel=1e-9, abs=1e-15)


def test_the_answer_is_no_witness_against_itself() -> None:
    case = draw_case(np.random.default_rng(2), 4, 2, "plain")
    assert witness_value(case.evidence, case.answer) == np.inf


# -- Validity of the bound -------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_no_witness_is_below_the_certified_value(flavour: str) -> None:
    rng = np.random.default_rng(3)
    outcomes, tightness = [], []
    for case in draw_cases(rng, 800, flavour):
        outcome, _, bound, q = search_exactly(case)
        least, _ = search_densely(rng, case)
        if outcome != WITNESS:
            assert bound <= just_above(least)
        if outcome == CERTIFIED and np.isfinite(bound):
            check_witness(case, q, bound / (1.0 - ACCURACY))
            tightness.append(least / bound if bound > 0.0 else 1.0)
        elif outcome == WITNESS:
            assert bound <= 0.0
            check_witness(case, q, 0.0)
        outcomes.append(outcome)
    assert outcomes.count(CERTIFIED) >= 600, "too few cases in which anything is claimed"
    assert np.quantile(tightness, 0.75) < 1.0 / (1.0 - ACCURACY) + 0.02, "the dense search is too weak to refute much"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_few_arms_and_rows_are_resolved(flavour: str) -> None:
    rng = np.random.default_rng(11)
    unresolved = 0
    for _ in range(400):
        n_arms, d = draw_shape(rng)
        case = draw_case(rng, n_arms, min(d, 3), flavour)
        outcome, _, _, _ = search_exactly(case)
        unresolved += outcome == UNRESOLVED
    # Floors make the statistic less convex: a few more cases are hard.
    assert unresolved <= (16 if flavour == "averaged" else 8)


def test_a_cell_without_mixes_that_satisfy_the_known_rows_is_excluded() -> None:
    """Half of the simplex is forbidden, so half of the cells are empty: one cut, and the search is over."""
    evidence = make_evidence(
        mu=np.zeros(2),
        rows=np.array([[1.0, -0.9], [-1.0, -1.0]]),
        mu_var=np.full(2, 0.01),
        row_var=np.array([[0.0, 0.0], [0.01, 0.01]]),
        known=np.array([True, False]),
        centre=np.array([0.2, 0.8]),
        tolerance=0.5,
    )
    case = Case(evidence, np.array([0.0, 1.0]))
    assert search_exactly(case)[0] == CERTIFIED


def test_an_answer_of_one_arm_is_resolved_beside_a_known_row() -> None:
    rng = np.random.default_rng(12)
    for _ in range(100):
        n_arms = int(rng.integers(3, 9))
        rows = rng.normal(size=(1, n_arms))
        rows[0, 0] = -1.0
        arm = np.eye(n_arms)[0]
        evidence = make_evidence(
            0.1 * rng.normal(size=n_arms),
            rows,
            1.0 / rng.uniform(10.0, 100.0, size=n_arms),
            np.zeros((1, n_arms)),
            np.ones(1, dtype=np.bool_),
            centre=arm,
            tolerance=0.4,
        )
        assert search_exactly(Case(evidence, arm))[0] == CERTIFIED


def test_a_witness_exactly_at_the_threshold_is_written() -> None:
    equal, nothing = np.array([0.5, 0.5]), np.zeros((0, 2))
    evidence = make_evidence(
        np.zeros(2), nothing, np.ones(2), nothing, np.zeros(0, dtype=np.bool_), centre=equal, tolerance=1.0
    )
    case = Case(evidence, equal)
    outcome, _, value, q = decide(case, float(witness_values(case, np.eye(2))[0]))
    assert outcome == WITNESS
    check_witness(case, q, value)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_searches_cut_short_claim_only_what_is_certain(flavour: str) -> None:
    rng = np.random.default_rng(4)
    claims = 0
    for case in draw_cases(rng, 400, flavour):
        outcome, nodes, bound, _ = search_exactly(case, max_nodes=int(rng.integers(1, 25)))
        assert nodes <= 25
        if outcome == UNRESOLVED:
            least, _ = search_densely(rng, case, n=150, rounds=8)
            assert bound <= just_above(least)
            claims += bound > 0.1 * least > 0.0
    assert claims >= 10, "bounds of unfinished searches that claim nothing prove nothing"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_decisions_are_right(flavour: str) -> None:
    rng = np.random.default_rng(5)
    outcomes = []
    hard = 0
    for case in draw_cases(rng, 400, flavour):
        least, _ = search_densely(rng, case)
        if not np.isfinite(least) or least <= 1e-9:
            continue
        # Mostly close to the statistic, where a wrong decision would hide.
        threshold = least * float(rng.choice([0.5, 0.9, 0.97, 0.995, 0.9999, 1.0001, 1.005, 1.1]))
        outcome, _, value, q = decide(case, threshold)
        if outcome == CERTIFIED:
            assert threshold <= just_above(least)
        elif outcome == WITNESS:
            assert value <= threshold
            check_witness(case, q, value)
        elif case.evidence.known.size <= 3 and abs(threshold / least - 1.0) >= 0.02:
            hard += 1
        outcomes.append(outcome)
    assert outcomes.count(CERTIFIED) >= 60
    assert outcomes.count(WITNESS) >= 60
    assert hard <= 3


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0, 1e3, 1e5])
def test_bad_prices_never_certify_what_is_false(penalty: float) -> None:
    """The penalty steers the linear programs that look for better witnesses."""
    rng = np.random.default_rng(6)
    for k in range(350):
        n_arms, d = draw_shape(rng)
        case = draw_case(rng, n_arms, d, FLAVOURS[k % len(FLAVOURS)])
        least, _ = search_densely(rng, case, n=200, rounds=8)
        outcome, _, bound, _ = search_exactly(case, penalty=penalty, max_nodes=300)
        if outcome != WITNESS:
            assert bound <= just_above(least)
        if np.isfinite(least) and least > 0.0:
            assert decide(case, 1.001 * least, penalty, 300)[0] != CERTIFIED


def spoil_prices(rng: Generator, how: str) -> Any:
    """A stand-in for the tangent whose prices y and shares theta are wrong."""
    compiled: Any = branch._write_tangent

    def write_tangent(cut: float, cuts: Any, look: Any) -> float:
        compiled(cut, cuts, look)
        y = np.divide(2.0 * look.tolls, look.prices, out=look.prices.copy(), where=look.tolls > 0.0)
        share = np.divide(look.prices, y, out=np.zeros(y.size), where=y > 0.0)
        if how == "noisy":
            y *= np.exp(0.3 * rng.normal(size=y.size))
        elif how == "random":
            y *= rng.exponential(size=y.size) * 10.0 ** rng.uniform(-1.0, 1.0, size=y.size)
            share = rng.random(y.size)
        else:
            y[1:] = 0.0
        known = cuts.softness > 0.0
        share = np.where(known | (cuts.floors == 0.0), 1.0, share)
        look.prices[:] = share * y
        look.tolls[:] = np.where(known, 0.0, 0.5 * share * y**2)
        return float((1.0 - share) @ cuts.floors)

    return write_tangent


@pytest.mark.parametrize("how", ["noisy", "random", "none"])
def test_an_inexact_inner_solve_never_certifies_what_is_false(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    searcher: Any = search_witness
    for name in ("_bound_box", "_move_shares"):
        monkeypatch.setattr(branch, name, getattr(branch, name).py_func)
    monkeypatch.setattr(branch, "_write_tangent", spoil_prices(rng, how))
    certified = 0
    for k in range(40):
        n_arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        case = draw_case(rng, n_arms, d, FLAVOURS[k % len(FLAVOURS)])
        least, _ = search_densely(rng, case, n=200, rounds=8)
        if not np.isfinite(least) or least <= 0.0:
            continue
        outcome, _, bound, _ = search_exactly(case, max_nodes=100, search=searcher.py_func)
        if outcome != WITNESS:
            assert bound <= just_above(least)
        assert decide(case, 1.001 * least, max_nodes=60, search=searcher.py_func)[0] != CERTIFIED
        certified += decide(case, 0.3 * least, max_nodes=60, search=searcher.py_func)[0] == CERTIFIED
    assert certified >= 3


# -- Symmetries ------------------------------------------------------------------------------------------------


def check_same(case: Case, other: Case, penalty: float) -> bool:
    """Both cases have the same statistic: bounds agree up to accuracy and decisions away from it agree.

    False when there is nothing to compare.
    """
    outcome, _, bound, _ = search_exactly(case)
    if outcome != CERTIFIED or not 0.0 < bound < np.inf:
        return False
    again, _, other_bound, _ = search_exactly(other, penalty)
    if again == UNRESOLVED and (case.evidence.known.any() or case.evidence.terms.spread > 0.0):
        return False  # the cases that are hard, see test_few_arms_and_rows_are_resolved
    assert again == CERTIFIED
    assert (1.0 - ACCURACY) * bound * (1.0 - 1e-6) <= other_bound <= bound / (1.0 - ACCURACY) * (1.0 + 1e-6)
    assert decide(other, 0.9 * bound, penalty)[0] == CERTIFIED
    assert decide(other, 1.1 * bound, penalty)[0] == WITNESS
    return True


def permute(rng: Generator, case: Case) -> tuple[Case, float]:
    d, n_arms = case.evidence.rows.shape
    return case.permuted(rng.permutation(n_arms), rng.permutation(d)), PENALTY


def rescale_reward(rng: Generator, case: Case) -> tuple[Case, float]:
    unit = 10.0 ** rng.uniform(-3.0, 3.0)
    return case.scaled(unit, np.ones(case.evidence.known.size)), unit * PENALTY


def rescale_rows(rng: Generator, case: Case) -> tuple[Case, float]:
    known = case.evidence.known
    return case.scaled(1.0, np.where(known, 1.0, 10.0 ** rng.uniform(-0.5, 0.5, size=known.size))), PENALTY


@pytest.mark.parametrize(
    ("restate", "seed", "cases", "least"),
    [(permute, 8, 300, 80), (rescale_reward, 9, 200, 50), (rescale_rows, 10, 200, 50)],
)
def test_order_and_units_do_not_matter(
    restate: Callable[[Generator, Case], tuple[Case, float]], seed: int, cases: int, least: int
) -> None:
    """The same case with arms and rows in another order, or in other units, and the penalty in that unit."""
    rng = np.random.default_rng(seed)
    compared = 0
    for k in range(cases):
        n_arms, d = draw_shape(rng)
        case = draw_case(rng, n_arms, min(d, 3), FLAVOURS[k % len(FLAVOURS)])
        compared += check_same(case, *restate(rng, case))
    assert compared >= least
