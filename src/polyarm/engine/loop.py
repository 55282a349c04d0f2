"""The compiled protocol that both drivers speak: ask for an arm, tell its outcome, or play on alone."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from polyarm._compile import inlined_kernel, kernel, uncached_kernel
from polyarm._structs import Scalars
from polyarm._types import FloatArray
from polyarm.environments.synthetic import SyntheticWorld, sample
from polyarm.estimates import record
from polyarm.model import Model
from polyarm.round import LOOK, NO_ARM, RUNNING, STOP, STOPPED, Round
from polyarm.rules.base import choose_arm
from polyarm.rules.explorer import Explorer
from polyarm.rules.registry import SHIPPED
from polyarm.tolerances import VIOLATION


class Scores(Scalars):
    """The loop's tallies against the truth: pulls at which the allocation or the answer broke a constraint, and by how
    much the allocations did in all.
    """

    allocation_violations: int
    policy_violations: int
    excess: float


class Simulation(NamedTuple):
    """The world that is played against, its randomness, the scores kept, and the pulls at which to pause."""

    world: SyntheticWorld
    rng: np.random.Generator
    scores: Scores
    limit: int


@inlined_kernel  # a user's explorer compiles it into a driver of its own
def ask(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any) -> int:
    """Return the arm to pull next, the same one until it is told; NO_ARM once stopped; LOOK when the stop must look."""
    now = state.round.now
    if now.status != RUNNING or now.pending != NO_ARM:
        return int(now.pending)
    if now.steps >= now.due:
        return LOOK
    if now.steps < now.first_pulls:
        arm = int(now.steps)  # every arm once, in order, before anything can be estimated
    else:
        arm = choose_arm(rule, state, model, rng, work)
        if arm == STOP:
            now.status = STOPPED
            return NO_ARM
    now.pending = arm
    return arm


@kernel
def tell(core: Round, model: Model, arm: int, reward: float, costs: FloatArray) -> None:
    """Record the outcome of an arm: the pending one, or one that was handed out beside it."""
    record(core.estimates, model, arm, reward, costs)
    core.now.steps += 1
    if arm == core.now.pending:
        core.now.pending = NO_ARM


@kernel
def _worst_excess(true_rows: FloatArray, mix: FloatArray) -> float:
    """Largest violation of a constraint by a mix, zero when it satisfies all."""
    worst = 0.0
    for i in range(true_rows.shape[0]):
        total = 0.0
        for a in range(mix.size):
            total += true_rows[i, a] * mix[a]
        worst = max(worst, total)
    return worst


@kernel
def _take_turn(core: Round, model: Model, simulation: Simulation, costs: FloatArray) -> None:
    """Judge the pending decision by the truth, pull its arm and tell the outcome; `costs` is scratch."""
    world, scores = simulation.world, simulation.scores
    if core.now.steps >= core.policy.size:
        excess = _worst_excess(world.true_rows, core.allocation)
        scores.excess += excess
        if excess > VIOLATION:
            scores.allocation_violations += 1
        if core.now.no_policy == 0 and _worst_excess(world.true_rows, core.answer) > VIOLATION:
            scores.policy_violations += 1
    arm = core.now.pending
    reward = sample(world, arm, simulation.rng, costs)
    tell(core, model, arm, reward, costs)


@kernel
def advance(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any, simulation: Simulation) -> int:
    """Play until the explorer stops, the stop must look, or `limit` pulls were made; returns what `ask` returned last.

    Pausing does not change the trajectory: the decision after the last pull is taken (so that a stop is noticed) and
    stays pending.
    """
    core, costs = state.round, np.zeros(model.known.size)
    while True:
        arm = ask(rule, state, model, rng, work)
        if arm < 0 or core.now.steps >= simulation.limit:
            return arm
        _take_turn(core, model, simulation, costs)


def _ask_interpreted(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any) -> int:
    """Run `ask` as plain Python, for steps that Numba cannot compile."""
    return int(getattr(ask, "py_func", ask)(rule, state, model, rng, work))


def _advance_interpreted(
    rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any, simulation: Simulation
) -> int:
    """Do as `advance` does, with every step in plain Python."""
    core, costs = state.round, np.zeros(model.known.size)
    while True:
        arm = _ask_interpreted(rule, state, model, rng, work)
        if arm < 0 or core.now.steps >= simulation.limit:
            return arm
        _take_turn(core, model, simulation, costs)


class Driver(NamedTuple):
    """`ask` and `advance` in the form that an explorer needs."""

    ask: Callable[..., int]
    advance: Callable[..., int]


def driver_for(explorer: Explorer) -> Driver:
    """Return what drives an explorer: compiled and cached if it is shipped, else compiled afresh, or plain Python."""
    if explorer.name in SHIPPED:
        return Driver(ask, advance)
    return _fresh_driver(explorer.source) if explorer.compiled else Driver(_ask_interpreted, _advance_interpreted)


@cache
def _fresh_driver(source: str | None) -> Driver:
    """Compile the driver of one file: Numba takes classes of equal names and fields for one, so none may be shared."""
    return Driver(uncached_kernel(ask), uncached_kernel(advance))
