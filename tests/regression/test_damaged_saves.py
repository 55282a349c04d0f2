"""Saved sessions damaged in ways that are accepted, or that end in another error than `InvalidInput`."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from polyarm import InvalidInput, Session, load_instance, make_explorer

Saved = dict[str, Any]


@pytest.fixture
def saved() -> Saved:
    """A healthy save, with an arm pending."""
    session = make_explorer("uniform", load_instance("setup1-hard").problem, seed=0)
    for _ in range(20):
        session.tell(session.ask(), 0.5, [0.25, 0.25])
    session.ask()
    healthy: Saved = json.loads(json.dumps(session.state_dict()))
    return healthy


def now(name: str, value: Any) -> Callable[[Saved], None]:
    def damage(saved: Saved) -> None:
        saved["state"]["round"]["now"][name] = value

    return damage


def pulls(value: Any) -> Callable[[Saved], None]:
    def damage(saved: Saved) -> None:
        saved["state"]["round"]["estimates"]["pulls"] = value

    return damage


def rng_state(value: Any) -> Callable[[Saved], None]:
    def damage(saved: Saved) -> None:
        saved["rng"]["state"]["state"] = value

    return damage


DAMAGE: dict[str, Callable[[Saved], None]] = {
    "no settings": lambda saved: saved.update(settings=[]),
    "no seed": lambda saved: saved.update(seed=None),
    "pending arm does not exist": now("pending", 99),
    "pending arm below none": now("pending", -7),
    "steps below zero": now("steps", -20),
    "steps not whole": now("steps", 20.5),
    "steps as text": now("steps", "20"),
    "steps beyond 64 bits": now("steps", 10**30),
    "pulls are null": pulls([None] * 7),
    "pulls in another shape": pulls([[1.0]] * 7),
    "rng state below zero": rng_state(-1),
    "rng state beyond 128 bits": rng_state(2**200),
    "rng state not whole": rng_state(1.5),
}


def test_the_healthy_save_is_accepted(saved: Saved) -> None:
    assert Session.from_state_dict(saved).steps == 20


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_save_is_refused(saved: Saved, damage: Callable[[Saved], None]) -> None:
    damage(saved)
    with pytest.raises(InvalidInput):
        Session.from_state_dict(saved)


def test_a_basis_out_of_range_does_not_crash_the_process(saved: Saved) -> None:
    saved["state"]["round"]["basis"][0] = 999_999_999
    code = (
        "import json, sys, polyarm\n"
        "try: session = polyarm.Session.from_state_dict(json.load(sys.stdin))\n"
        "except polyarm.InvalidInput: sys.exit(0)\n"
        "session.tell(session.ask(), 0.5, [0.25, 0.25])\n"
        "session.ask()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(saved), text=True, capture_output=True, check=False
    )
    assert done.returncode == 0
