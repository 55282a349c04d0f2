"""A step allocates nothing, however long the run, and what compiled code allocates it frees."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from contract.suitable import ALL_EXPLORERS, suit
from polyarm import load_instance
from polyarm.engine.loop import Scores, Simulation, driver_for
from polyarm.engine.randomness import WORLD, make_stream
from polyarm.engine.run import plan_run
from polyarm.engine.session import Session
from polyarm.round import LOOK

#: Numba's accounts of what compiled code allocates; it has no types.
RUNTIME: Any = import_module("numba.core.runtime.nrt")


@pytest.fixture(autouse=True)
def _counting() -> Iterator[None]:
    """Let Numba count the blocks of memory that compiled code takes and gives back."""
    RUNTIME._nrt.memsys_enable_stats()
    yield
    RUNTIME._nrt.memsys_disable_stats()


def read_accounts() -> tuple[int, int]:
    """Blocks taken and given back so far."""
    stats = RUNTIME.rtsys.get_allocation_stats()
    return stats.alloc + stats.mi_alloc, stats.free + stats.mi_free


def count(explorer: str, pulls: list[int]) -> list[tuple[int, int, int]]:
    """Play stretches of so many pulls; returns the pulls, blocks taken and blocks not freed of every compiled call.

    A call also ends where the certified stop must look: what a look does is not counted.
    """
    instance, plan = plan_run(suit(explorer, load_instance("setup1-hard")), explorer, {"delta": 1e-100})
    session, scores = Session(plan, 3), Scores()
    world, rng = instance.world(), make_stream(3, WORLD)
    advance = driver_for(plan.explorer).advance
    calls = []
    for limit in pulls:
        simulation, result = Simulation(world, rng, scores, session.steps + limit), LOOK
        while result == LOOK:
            begun, (taken, freed) = session.steps, read_accounts()
            result = advance(session.rule, session.state, plan.model, session.rng, session.work, simulation)
            taken, freed = read_accounts()[0] - taken, read_accounts()[1] - freed
            calls.append((session.steps - begun, taken, taken - freed))
            if result == LOOK:
                session.look()
    return calls


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_a_step_allocates_nothing(explorer: str) -> None:
    count(explorer, [40])  # compiles
    calls = count(explorer, [40, 1, 1, 500, 1000])
    lengths, taken, kept = zip(*calls, strict=True)
    assert min(lengths) <= 1
    assert max(lengths) >= 20
    assert len(set(taken)) == 1, "a longer call may not take more memory"
    assert set(kept) == {0}
