"""What a proof by blocks needs to be fixed before a block is: nothing on record depends on the block's own outcomes.

A session is copied whenever a block has been opened; the copies are told different outcomes, and must then have the
same plans, guesses and expected variances of that block on record.
"""

import copy
from typing import Any

import numpy as np
import pytest

from polyarm import Problem, Session, make_explorer
from polyarm._types import FloatArray
from polyarm.estimates import mark
from polyarm.stops import blocks as stops

ACCOUNTS: dict[str, dict[str, Any]] = {"declared": {"std": 0.5}, "range": {"range": (0.0, 1.0)}, "estimated": {}}
MEANS = np.array([[0.3, 0.5, 0.8], [0.1, 0.4, 0.8], [0.3, 0.6, 0.9]])
FIXED = ("told", "answers", "counts", "guesses", "variances")


def make_session(account: str) -> Session:
    known = ACCOUNTS[account]
    rows = [{"name": "price", "bound": 0.5, **known}, {"name": "quality", "bound": 0.4, "sense": ">=", **known}]
    reward = {f"reward_{name}": value for name, value in known.items()}
    stated: dict[str, Any] = {"arms": 3, "constraints": rows, "delta": 0.1, "r": 0.1, **reward}
    return make_explorer("certex", Problem(**stated), seed=3)


def tell_block(session: Session, rng: np.random.Generator, low: float, high: float) -> dict[int, list[FloatArray]]:
    """Tell all outcomes of the block, drawn from [low, high] about the means; returns them by arm."""
    told: dict[int, list[FloatArray]] = {}
    for arm in session.ask_batch():
        outcome = np.clip(MEANS[:, arm] + rng.uniform(low, high, size=3), 0.0, 1.0)
        session.tell(arm, outcome[0], outcome[1:].tolist())
        told.setdefault(arm, []).append(outcome)
    return told


def record_of(session: Session, name: str) -> FloatArray:
    """The last block on record."""
    block = session.state.block
    return np.array(getattr(block.record, name)[int(block.now.recorded) - 1])


def started_session(account: str, rng: np.random.Generator) -> Session:
    """A session that has just made its first start, and opened the block after it."""
    session = make_session(account)
    for _ in range(150):
        session.ask()  # opens the block
        if session.state.block.now.n_starts > 0:
            return session
        tell_block(session, rng, -0.3, 0.3)
        assert not session.stopped
    raise AssertionError("no start: nothing could be compared")


def starts_of(session: Session) -> Any:
    """The starts that were made."""
    assert session.stop is not None
    return session.stop.begun  # type: ignore[attr-defined]


def play(account: str) -> list[str]:
    """The fields on record that ever depended on the block's own outcomes."""
    rng, changed = np.random.default_rng(1), []
    session = started_session(account, rng)
    for _ in range(10):
        session.ask()
        other, n_starts = copy.deepcopy(session), len(starts_of(session))
        tell_block(session, rng, -0.3, 0.3)
        tell_block(other, rng, -0.9, 0.1)
        assert not session.stopped
        assert not other.stopped
        changed += [name for name in FIXED if not np.array_equal(record_of(session, name), record_of(other, name))]
        assert not np.array_equal(record_of(session, "powers"), record_of(other, "powers"))
        for one, two in zip(starts_of(session)[:n_starts], starts_of(other)[:n_starts], strict=True):
            for name in ("anchor", "precision", "priors", "points", "pivots", "coarse"):
                if not np.array_equal(getattr(one, name), getattr(two, name)):
                    changed.append(name)
            assert one.terms.begun <= record_of(session, "told")
    return changed


@pytest.mark.parametrize("account", ACCOUNTS)
def test_nothing_on_record_depends_on_the_blocks_own_outcomes(account: str) -> None:
    assert play(account) == []


def test_a_guess_made_after_the_block_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = stops.close_block

    def guess_first(estimates: Any, model: Any, block: Any) -> None:
        powers = estimates.powers.copy()
        mark(estimates, model)
        estimates.powers[:] = powers
        original(estimates, model, block)

    monkeypatch.setattr(stops, "close_block", guess_first)
    assert "guesses" in play("range")


@pytest.mark.parametrize("account", ACCOUNTS)
def test_the_record_has_exactly_the_outcomes_of_its_block(account: str) -> None:
    """Power sums about the guesses on record, in kernel units, of all the block's outcomes and of no other."""
    rng = np.random.default_rng(2)
    session = started_session(account, rng)
    factors = np.concatenate([[1.0], session.plan.model.factors])
    for _ in range(8):
        session.ask()
        told = tell_block(session, rng, -0.3, 0.3)
        assert not session.stopped
        guesses, powers, counts = (record_of(session, name) for name in ("guesses", "powers", "counts"))
        for arm, outcomes in told.items():
            assert counts[arm] == len(outcomes)
            away = np.array(outcomes) * factors - guesses[:, arm]
            for n in range(4):
                assert powers[n, :, arm] == pytest.approx((away ** (n + 1)).sum(axis=0), abs=1e-9)
