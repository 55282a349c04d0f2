"""The compiled protocol that both drivers speak: ask for an arm, tell what it gave, or play on alone."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from polyarm._borrow import borrow
from polyarm._compile import inlined_kernel, kernel, uncached_kernel
from polyarm._types import FloatArray
from polyarm.environments.synthetic import SyntheticWorld, sample
from polyarm.estimates import record
from polyarm.explorers.explorer import Explorer
from polyarm.explorers.registry import SHIPPED, step
from polyarm.explorers.round import (
    FIRST_PULLS,
    NO_ARM,
    PENDING,
    RUNNING,
    SET_IS_EMPTY,
    STATUS,
    STEPS,
    STOP,
    STOPPED,
    RoundState,
)
from polyarm.problem import Model
from polyarm.tolerances import VIOLATION

# Entries of the scores that `advance` keeps against the truth.
ALLOCATION_VIOLATIONS = 0
POLICY_VIOLATIONS = 1
EXCESS = 2
N_SCORES = 3


@inlined_kernel
def ask(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any) -> int:
    """Return the arm to pull next, the same one until it is told, or NO_ARM when the explorer has stopped."""
    core = state.round
    if core.counters[STATUS] != RUNNING or core.counters[PENDING] != NO_ARM:
        return core.counters[PENDING]
    steps = core.counters[STEPS]
    if steps < core.counters[FIRST_PULLS]:
        arm = steps  # every arm once, in order, before anything can be estimated
    else:
        arm = step(rule, state, model, rng, work)
        if arm == STOP:
            if core.counters[STATUS] == RUNNING:  # else the explorer has said more precisely how it ends
                core.counters[STATUS] = STOPPED
            return NO_ARM
    core.counters[PENDING] = arm
    return arm


@inlined_kernel
def tell(core: RoundState, model: Model, arm: int, reward: float, costs: FloatArray) -> None:
    """Record the outcome of an arm: the pending one, or one that was handed out beside it."""
    record(core.estimates, model, arm, reward, costs)
    core.counters[STEPS] += 1
    if arm == core.counters[PENDING]:
        core.counters[PENDING] = NO_ARM


@inlined_kernel
def _worst_excess(true_rows: FloatArray, mix: FloatArray) -> float:
    """Largest violation of a constraint by a mix, zero when it satisfies all."""
    worst = 0.0
    for i in range(true_rows.shape[0]):
        total = 0.0
        for a in range(mix.size):
            total += true_rows[i, a] * mix[a]
        worst = max(worst, total)
    return worst


@inlined_kernel
def _take_turn(
    core: RoundState,
    model: Model,
    world: SyntheticWorld,
    world_rng: np.random.Generator,
    scores: FloatArray,
    costs: FloatArray,
) -> None:
    """Judge the pending decision by the truth, pull its arm and tell what it gave; `costs` is scratch."""
    if core.counters[STEPS] >= core.policy.size:
        excess = _worst_excess(world.true_rows, core.allocation)
        scores[EXCESS] += excess
        if excess > VIOLATION:
            scores[ALLOCATION_VIOLATIONS] += 1.0
        if core.counters[SET_IS_EMPTY] == 0 and _worst_excess(world.true_rows, core.answer) > VIOLATION:
            scores[POLICY_VIOLATIONS] += 1.0
    arm = core.counters[PENDING]
    reward = sample(world, arm, world_rng, costs)
    tell(core, model, arm, reward, costs)


@kernel
def advance(
    rule: Any,
    state: Any,
    model: Model,
    world: SyntheticWorld,
    world_rng: np.random.Generator,
    explorer_rng: np.random.Generator,
    limit: int,
    scores: FloatArray,
    work: Any,
) -> None:
    """Play until the explorer stops or `limit` pulls have been made; may be called again with a higher limit.

    The trajectory does not depend on how it is cut: the decision after the last pull is taken (so that a stop
    is noticed) and stays pending. `scores` counts, over the pulls, allocations and policies that break a
    constraint under the truth, and sums the allocations' excess.
    """
    _play(
        rule,
        borrow(state),
        borrow(model),
        borrow(world),
        world_rng,
        explorer_rng,
        limit,
        borrow(scores),
        borrow(work),
    )


def _play(
    rule: Any,
    state: Any,
    model: Model,
    world: SyntheticWorld,
    world_rng: np.random.Generator,
    explorer_rng: np.random.Generator,
    limit: int,
    scores: FloatArray,
    work: Any,
) -> None:
    """The loop of `advance`, on borrowed arrays: their reference counts took more than half the time of a step."""
    core = state.round
    while ask(rule, state, model, explorer_rng, work) != NO_ARM and core.counters[STEPS] < limit:
        _take_turn(core, model, world, world_rng, scores, work.round.costs)


@overload(_play, strict=False)  # strict would compare annotations too
def _overload_play(
    rule: Any,
    state: Any,
    model: Any,
    world: Any,
    world_rng: Any,
    explorer_rng: Any,
    limit: Any,
    scores: Any,
    work: Any,
) -> Any:
    return _play  # not a kernel with a cache of its own: what it is compiled for is its caller's business


def _ask_interpreted(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any) -> int:
    """Run `ask` as plain Python, for steps that Numba cannot compile."""
    return int(getattr(ask, "py_func", ask)(rule, state, model, rng, work))


def _advance_interpreted(
    rule: Any,
    state: Any,
    model: Model,
    world: SyntheticWorld,
    world_rng: np.random.Generator,
    explorer_rng: np.random.Generator,
    limit: int,
    scores: FloatArray,
    work: Any,
) -> None:
    """Do as `advance` does, with every step in plain Python."""
    core = state.round
    while _ask_interpreted(rule, state, model, explorer_rng, work) != NO_ARM and core.counters[STEPS] < limit:
        _take_turn(core, model, world, world_rng, scores, work.round.costs)


class Driver(NamedTuple):
    """`ask` and `advance` in the form that an explorer needs."""

    ask: Callable[..., int]
    advance: Callable[..., None]


def driver_for(explorer: Explorer) -> Driver:
    """Return what drives an explorer: compiled and cached if it is shipped, else compiled afresh, or plain Python."""
    if explorer.name in SHIPPED:
        return Driver(ask, advance)
    return _fresh_driver(explorer.source) if explorer.compiled else Driver(_ask_interpreted, _advance_interpreted)


@cache
def _fresh_driver(source: str | None) -> Driver:
    """Compile the driver of one file: Numba takes classes of equal names and fields for one, so none may be shared."""
    return Driver(uncached_kernel(ask), uncached_kernel(advance))
