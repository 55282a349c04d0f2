"""Outcomes with a range once had other intervals when those of a block were told in another order.

Each was guessed from all outcomes told before it, those of its own block included; without a range the first outcome
told was the point from which powers are summed. Now all guesses are those made before the block.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polyarm import Problem, Session, make_certificate, make_explorer, verify_certificate
from polyarm._types import FloatArray
from polyarm.engine.region import find_intervals
from polyarm.experiments.rehearsal import _add_outcomes

#: Each arm has outcomes on both sides of the middle of its range, the same on both, and units are powers of two: so all
#: its sums are exact.
LOW, HIGH = np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 2.0])
ACCOUNTS: dict[str, dict[str, Any]] = {
    "range": {"range": tuple(zip(LOW.tolist(), HIGH.tolist(), strict=True))},
    "declared": {"std": 0.5},
    "estimated": {},
}
Tell = Callable[[list[tuple[int, FloatArray]]], list[tuple[int, FloatArray]]]
ORDERS: dict[str, Tell] = {
    "as asked": lambda block: block,
    "backwards": lambda block: block[::-1],
    "largest first": lambda block: sorted(block, key=lambda place: -float(place[1][0])),
}


def start(account: str, r: float = 0.25) -> Session:
    known = ACCOUNTS[account]
    rows = [{"name": "price", "bound": 1.0, **known}, {"name": "quality", "bound": 0.5, "sense": ">=", **known}]
    reward = {f"reward_{name}": value for name, value in known.items()}
    stated: dict[str, Any] = {"arms": 3, "constraints": rows, "delta": 0.1, "r": r, **reward}
    return make_explorer("certex", Problem(**stated), seed=3)


def draw_block(batch: list[int], rng: np.random.Generator) -> list[tuple[int, FloatArray]]:
    """Outcomes of every place of a block, with exactly the middle as the mean of each arm."""
    block: list[tuple[int, FloatArray]] = []
    for arm, count in zip(*np.unique(batch, return_counts=True), strict=True):
        half = rng.integers(0, 5, size=(count // 2, 3)) / 8.0 * (HIGH[arm] - LOW[arm])
        away = np.vstack([half, np.zeros((count % 2, 3)), -half])
        block += [(int(arm), 0.5 * (LOW[arm] + HIGH[arm]) + row) for row in rng.permutation(away)]
    return block


def tell_block(session: Session, block: list[tuple[int, FloatArray]]) -> None:
    for arm, outcome in block:
        session.tell(arm, float(outcome[0]), outcome[1:].tolist())
    session.certified_now()  # the look at the end of the block


def intervals_of(session: Session) -> FloatArray:
    found = find_intervals(session)
    return np.vstack([found.rewards, found.reward_widths, found.costs, found.cost_widths])


@pytest.mark.parametrize("order", list(ORDERS)[1:])
@pytest.mark.parametrize("account", ACCOUNTS)
def test_nothing_depends_on_the_order_in_which_a_block_is_told(account: str, order: str) -> None:
    """From the first block to the proof, every saved number is the same to the bit."""
    one, two, rng, recorded = start(account), start(account), np.random.default_rng(1), 0
    for _ in range(150):
        if one.stopped:
            break
        batch = one.ask_batch()
        assert batch == two.ask_batch()
        block = draw_block(batch, rng)
        tell_block(one, block)
        tell_block(two, ORDERS[order](block))
        assert np.array_equal(intervals_of(one), intervals_of(two))
        assert one.state_dict() == two.state_dict()
        recorded = int(one.state.block.now.recorded)
    assert recorded > 5, "blocks on record are to be compared, too"
    if one.stopped:
        documents = [make_certificate(session).document for session in (one, two)]
        assert documents[0] == documents[1]
        assert verify_certificate(documents[0]).valid


@pytest.mark.parametrize("account", ACCOUNTS)
def test_sums_of_any_outcomes_differ_by_round_off_only(account: str) -> None:
    session, rng = start(account), np.random.default_rng(2)
    for _ in range(20):
        batch = session.ask_batch()
        other = copy.deepcopy(session)
        block = [(arm, rng.uniform(LOW[arm], HIGH[arm], size=3)) for arm in batch]
        tell_block(session, block)
        tell_block(other, ORDERS["largest first"](block))
        np.testing.assert_allclose(intervals_of(other), intervals_of(session), rtol=1e-11)
        mine, others = session.round.estimates, other.round.estimates
        for name in ("guesses", "totals", "pivots", "wander"):
            np.testing.assert_allclose(getattr(others, name), getattr(mine, name), rtol=1e-9, atol=1e-11)


def test_wander_is_about_the_guesses_made_before_each_block() -> None:
    session, rng = start("range"), np.random.default_rng(4)
    expected = np.zeros((3, 3))
    factors = np.concatenate([[1.0], session.plan.model.factors])
    for _ in range(6):
        batch = session.ask_batch()
        guesses = session.round.estimates.guesses.copy()
        for arm in batch:
            outcome = rng.uniform(LOW[arm], HIGH[arm], size=3)
            session.tell(arm, float(outcome[0]), outcome[1:].tolist())
            expected[:, arm] += (outcome * factors - guesses[:, arm]) ** 2
        assert session.round.estimates.wander == pytest.approx(expected)
        session.ask()
        session = Session.from_state_dict(session.state_dict())


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_rehearsed_block_adds_up_to_what_its_outcomes_do(account: str) -> None:
    """First and second powers, and wander: a rehearsal adds a whole block at once, about the same guesses."""
    session, rng = start(account), np.random.default_rng(6)
    factors = np.concatenate([[1.0], session.plan.model.factors])
    for _ in range(5):
        batch = session.ask_batch()
        block = [(arm, rng.uniform(LOW[arm], HIGH[arm], size=3)) for arm in batch]
        rehearsed = copy.deepcopy(session)
        for arm in range(3):
            outcomes = np.array([outcome for a, outcome in block if a == arm]) * factors
            for k, values in enumerate(outcomes.T):
                n, mean = float(values.size), float(values.mean())
                _add_outcomes(rehearsed, k, arm, n, mean, float(((values - mean) ** 2).sum()))
        for arm, outcome in block:
            session.tell(arm, float(outcome[0]), outcome[1:].tolist())
        mine, theirs = session.round.estimates, rehearsed.round.estimates
        assert theirs.wander == pytest.approx(mine.wander, rel=1e-9)
        if account == "range" or mine.pulls.sum() > 12:  # else the first outcome told is what others are compared with
            for n in (0, 1):
                assert theirs.powers[n] == pytest.approx(mine.powers[n], rel=1e-9, abs=1e-12)
        session.certified_now()
