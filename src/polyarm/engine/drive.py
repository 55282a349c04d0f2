"""The compiled protocol that both drivers speak: ask for an arm, tell what it gave, or play on alone."""

from typing import Any

import numpy as np

from polyarm._borrow import borrow
from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray
from polyarm.environments.synthetic import SyntheticWorld, sample
from polyarm.estimates import record
from polyarm.explorers.registry import step
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


@kernel
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
        if core.counters[STEPS] >= core.policy.size:
            excess = _worst_excess(world.true_rows, core.allocation)
            scores[EXCESS] += excess
            if excess > VIOLATION:
                scores[ALLOCATION_VIOLATIONS] += 1.0
            if core.counters[SET_IS_EMPTY] == 0 and _worst_excess(world.true_rows, core.answer) > VIOLATION:
                scores[POLICY_VIOLATIONS] += 1.0
        arm = core.counters[PENDING]
        reward = sample(world, arm, world_rng, work.round.costs)
        tell(core, model, arm, reward, work.round.costs)
