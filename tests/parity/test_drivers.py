"""One trajectory per seed, however it is driven: in one piece, in pieces, by hand, elsewhere, without compilation."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.suitable import ALL_EXPLORERS, CERTIFYING, make_instance, suit, tell_rows
from parity.trajectory import Case, Trajectory, follow, make_case, read_case
from polyarm import Instance, Session, load_instance
from polyarm.engine.randomness import WORLD, make_stream
from polyarm.engine.run import Exploration, RunRecord
from polyarm.environments.synthetic import sample
from polyarm.rules.registry import EXPLORERS

PULLS = 300


def cases_of(explorer: str) -> dict[str, Case]:
    """A few worlds and settings that take different paths through the code of an explorer."""

    def case(instance: Instance, seed: int = 5, pulls: int = PULLS, **settings: Any) -> Case:
        return make_case(suit(explorer, instance), explorer, settings, seed, pulls)

    def only_if_known(**settings: Any) -> dict[str, Any]:
        known = EXPLORERS[explorer].settings.model_fields
        return {name: value for name, value in settings.items() if name in known}

    easy, router, imdb = (load_instance(name) for name in ("setup1-easy", "router", "imdb"))
    quick = make_instance([5.0, 1.0, 0.0], [[1, 0, 0]], [{"name": "cap", "bound": 0.5, "std": 0.1}], r=1.0)
    free = make_instance([0.0, 0.3, 0.1], [], [])
    return {
        "setup1-easy": case(easy),
        "another seed": case(easy, seed=6),
        "known rows": case(tell_rows(easy), **only_if_known(beta="theory")),
        "as the paper prints it": case(router, **only_if_known(preset="paper")),
        "pessimistic": case(imdb, pulls=100, **only_if_known(policy="pessimistic", set="arm")),
        "stops early": case(quick),
        "no constraints": case(free),
    }


CASES = {(explorer, name): case for explorer in ALL_EXPLORERS for name, case in cases_of(explorer).items()}
#: What is followed without compilation; planning takes minutes there, so only its shortest case is.
INTERPRETED = {key: case for key, case in CASES.items() if key[0] not in CERTIFYING or key[1] == "stops early"}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=["-".join(key) for key in CASES])


def play_at_once(case: Case) -> Exploration:
    exploration, pulls = read_case(case)
    exploration.advance_to(pulls)
    return exploration


def bits(session: Session) -> str:
    return json.dumps(session.state_dict(), allow_nan=False)


def record_bits(record: RunRecord) -> dict[str, Any]:
    """Every field of a record, arrays as bytes."""
    return {
        name: (value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else (type(value), value)
        for name, value in vars(record).items()
    }


def follow_elsewhere(cases: dict[tuple[str, str], Case], **environment: str) -> dict[tuple[str, str], Trajectory]:
    """Follow cases in a fresh process."""
    program = Path(__file__).with_name("trajectory.py")
    done = subprocess.run(
        [sys.executable, program],
        input=json.dumps(list(cases.values())),
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return dict(zip(cases, json.loads(done.stdout), strict=True))


@pytest.fixture(scope="module")
def another_process() -> dict[tuple[str, str], Trajectory]:
    return follow_elsewhere(CASES)


@pytest.fixture(scope="module")
def without_compilation() -> dict[tuple[str, str], Trajectory]:
    return follow_elsewhere(INTERPRETED, NUMBA_DISABLE_JIT="1")


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_the_cases_reach_both_ends(explorer: str) -> None:
    stopped = {name: follow(case)["stopped"] for (which, name), case in CASES.items() if which == explorer}
    assert stopped["stops early"]
    assert not stopped["pessimistic"]


@every_case
@pytest.mark.parametrize("seed", [1, 2])
def test_in_pieces_is_the_same_as_at_once(case: Case, seed: int) -> None:
    whole = play_at_once(case)
    pieces, pulls = read_case(case)
    cuts = np.random.default_rng(seed).integers(0, pulls, size=12)
    for cut in (*sorted(cuts), int(cuts[0]), 0, pulls):  # also backwards, which does nothing
        pieces.advance_to(int(cut))
        _ = (pieces.session.stopped, pieces.session.policy, pieces.record())
    assert bits(pieces.session) == bits(whole.session)
    assert record_bits(pieces.record()) == record_bits(whole.record())


@every_case
def test_by_hand_is_the_same_as_simulated(case: Case) -> None:
    whole = play_at_once(case)
    by_hand, pulls = read_case(case)
    session, instance = by_hand.session, by_hand.instance
    world, rng = instance.world(), make_stream(session.seed, WORLD)
    costs = np.zeros(instance.problem.n_constraints)
    while session.steps < pulls and not session.stopped:
        arm = session.ask()
        reward = sample(world, arm, rng, costs)
        session.tell(arm, reward, costs[list(instance.problem.unknown)].tolist())
    assert session.stopped == whole.session.stopped
    assert bits(session) == bits(whole.session)


@every_case
def test_pull_by_pull_is_the_same_as_at_once(case: Case) -> None:
    assert json.dumps(follow(case)["saved"]) == bits(play_at_once(case).session)


@pytest.mark.parametrize("key", CASES, ids="-".join)
def test_another_process_is_the_same_bit_for_bit(
    key: tuple[str, str], another_process: dict[tuple[str, str], Trajectory]
) -> None:
    here: Trajectory = json.loads(json.dumps(follow(CASES[key])))
    assert another_process[key] == here


def numbers(value: Any) -> Iterator[float]:
    """Walk all numbers of a saved session, in order; what JSON cannot hold stands there by name."""
    if isinstance(value, dict):
        for name in sorted(value):
            yield from numbers(value[name])
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item)
    else:
        yield float(value)


@pytest.mark.parametrize("key", INTERPRETED, ids="-".join)
def test_without_compilation_the_arms_are_the_same_and_floats_agree(
    key: tuple[str, str], without_compilation: dict[tuple[str, str], Trajectory]
) -> None:
    compiled, plain = follow(CASES[key]), without_compilation[key]
    assert plain["arms"] == compiled["arms"]
    assert plain["stopped"] == compiled["stopped"]
    assert plain["saved"]["rng"] == compiled["saved"]["rng"]
    assert plain["scores"] == pytest.approx(compiled["scores"], rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(
        list(numbers(plain["saved"]["state"])), list(numbers(compiled["saved"]["state"])), rtol=1e-9, atol=1e-9
    )
