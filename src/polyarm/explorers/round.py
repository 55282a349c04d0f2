"""The part of a round that the paper's explorers share: estimates, polytope, policy, alternatives, stop test."""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray, IntArray
from polyarm.estimates import Estimates, make_estimates, write_shifted, write_widths
from polyarm.families.family import Family
from polyarm.geometry.lp import OPTIMAL, LpWork, make_basis, make_lp_work, solve_lp, write_vertex
from polyarm.geometry.neighbours import (
    TOO_MANY,
    Moves,
    NeighbourWork,
    find_neighbours,
    find_outer_directions,
    make_moves,
    make_neighbour_work,
    neighbour_capacity,
)
from polyarm.geometry.projection import PROJECTED, ProjectionWork, make_projection_work, project_polytope
from polyarm.geometry.vertices import (
    SUPPORT,
    TIGHT,
    VertexWork,
    make_candidate,
    make_vertex_work,
    next_candidate,
    solve_candidate,
)
from polyarm.problem import Model
from polyarm.statistics.glr import least_statistic, move_statistic, write_vertex_move
from polyarm.stopping.certified import (
    INFEASIBLE_PROVED,
    KEEP_SAMPLING,
    CertifiedRule,
    CertifiedWork,
    make_certified_state,
    make_certified_work,
    run_certified,
)
from polyarm.stopping.thresholds import compute_beta
from polyarm.tolerances import SAME_POLICY

# What a step returns instead of an arm.
STOP = -1

# Entries of `RoundState.counters`.
STEPS = 0  # pulls told so far
PENDING = 1  # the arm asked for and not yet told, or NO_ARM
STATUS = 2  # one of the statuses below
SET_IS_EMPTY = 3  # 1 when the last round found no feasible policy
N_MOVES = 4  # alternatives found in the last round
FIRST_PULLS = 5  # so many arms, in order, are pulled before the explorer's first step
N_COUNTERS = 6

NO_ARM = -1

RUNNING = 0
STOPPED = 1
INFEASIBLE = 2  # stopped with a proof that no mix satisfies every constraint

# Entries of `RoundState.readings`.
STATISTIC = 0
THRESHOLD = 1
N_READINGS = 2

# The polytopes, as signs of the widths added to the estimated matrix.
OPTIMISTIC = -1
EMPIRICAL = 0
PESSIMISTIC = 1

SET_CODES = {"optimistic": OPTIMISTIC, "empirical": EMPIRICAL, "pessimistic": PESSIMISTIC}


class RoundRule(NamedTuple):
    """Settings of the shared part.

    `target` is the value that an alternative must give a vertex over the policy: r, 0, or -r as printed in
    the paper (then `one_sided` is off). `needs_widths`: some set is wider or narrower than the estimate.
    `confined`: allocations are kept inside `exploration_set`. `certified`: the certified rule decides when to stop.
    """

    policy_set: int
    radius: int
    needs_widths: bool
    confined: bool
    exploration_set: int
    confirm_on_vertices: bool
    target: float
    one_sided: bool
    beta: int
    theory_constant: float
    certified: CertifiedRule | None


class RoundWork(NamedTuple):
    """Scratch of a round: nothing in it outlives the step."""

    widths: FloatArray
    policy_columns: FloatArray
    set_columns: FloatArray
    candidate: IntArray
    costs: FloatArray
    confined: FloatArray
    lp: LpWork
    neighbours: NeighbourWork
    moves: Moves
    vertex: VertexWork
    vertex_move: Moves
    projection: ProjectionWork
    certified: CertifiedWork | None


class RoundState(NamedTuple):
    """What a round remembers.

    `policy` is the optimum of the estimated problem, `answer` what the explorer would recommend: the policy itself, or
    the candidate of the certified stop. `blocker` is the vertex that last kept the explorer from stopping.
    """

    estimates: Estimates
    counters: IntArray
    readings: FloatArray
    policy: FloatArray
    answer: FloatArray
    allocation: FloatArray
    tracked: FloatArray
    basis: IntArray
    blocker: IntArray
    confine_basis: IntArray
    confine_nu: FloatArray
    certified: Any  # CertifiedState or None: two types for the compiler


def make_round_state(model: Model, certified: bool) -> RoundState:
    """Allocate a state with nothing observed, with or without a certified stop."""
    d, n_arms = model.known_rows.shape
    counters = np.zeros(N_COUNTERS, dtype=np.int64)
    counters[PENDING] = NO_ARM
    counters[FIRST_PULLS] = n_arms
    policy = np.full(n_arms, 1.0 / n_arms)
    stop = make_certified_state(model) if certified else None
    return RoundState(
        estimates=make_estimates(model),
        counters=counters,
        readings=np.full(N_READINGS, np.nan),
        policy=policy,
        answer=policy if stop is None else stop.answer,  # the same array: never out of step
        allocation=np.full(n_arms, 1.0 / n_arms),
        tracked=np.zeros(n_arms),
        basis=make_basis(d),
        blocker=make_candidate(d),
        confine_basis=make_basis(d),
        confine_nu=np.zeros(d),
        certified=stop,
    )


def make_round_work(model: Model, certified: bool) -> RoundWork:
    """Allocate the scratch of a round, with or without a certified stop."""
    d, n_arms = model.known_rows.shape
    return RoundWork(
        widths=np.zeros((d, n_arms)),
        policy_columns=np.zeros((d + 1, n_arms)),
        set_columns=np.zeros((d + 1, n_arms)),
        candidate=make_candidate(d),
        costs=np.zeros(d),
        confined=np.zeros(n_arms),
        lp=make_lp_work(n_arms + 1, d),  # one more column: the Slater slack of the multiplier
        neighbours=make_neighbour_work(n_arms, d),
        moves=make_moves(neighbour_capacity(n_arms, d), d),
        vertex=make_vertex_work(d),
        vertex_move=make_moves(1, d),
        projection=make_projection_work(n_arms, d),
        certified=make_certified_work(model) if certified else None,
    )


@inlined_kernel
def _vertex_statistic(
    rule: RoundRule,
    estimates: Estimates,
    policy: FloatArray,
    basis: IntArray,
    family: Family,
    columns: FloatArray,
    candidate: IntArray,
    vertex: VertexWork,
    move: Moves,
) -> float:
    """Statistic of a candidate; infinity when it is no vertex (any more), or the policy itself."""
    if not solve_candidate(columns, candidate, vertex):
        return np.inf
    write_vertex_move(policy, basis, candidate, vertex.values, move)
    length = 0.0
    for k in range(move.sizes[0]):
        length = max(length, abs(move.changes[0, k]))
    if length <= SAME_POLICY:
        return np.inf
    return move_statistic(family, estimates.mu_hat, estimates.pulls, move, 0, rule.target, rule.one_sided)


@kernel
def _confirm_on_vertices(
    rule: RoundRule,
    estimates: Estimates,
    policy: FloatArray,
    basis: IntArray,
    blocker: IntArray,
    family: Family,
    columns: FloatArray,
    threshold: float,
    candidate: IntArray,
    vertex: VertexWork,
    move: Moves,
) -> float:
    """Least statistic over all vertices, or of the first vertex found at or below the threshold.

    The vertex that blocked last time is tried first: it usually still does, and one linear system is
    cheaper than a walk over all of them.
    """
    if blocker[SUPPORT, 0] > 0:
        statistic = _vertex_statistic(rule, estimates, policy, basis, family, columns, blocker, vertex, move)
        if statistic <= threshold:
            return statistic
    least = np.inf
    candidate[SUPPORT, 0] = 0
    m, n_arms = columns.shape
    while least > threshold and next_candidate(n_arms, m - 1, candidate):
        statistic = _vertex_statistic(rule, estimates, policy, basis, family, columns, candidate, vertex, move)
        least = min(least, statistic)
    if least <= threshold:
        # Only the candidate's own entries: what lies behind them is scratch, and the blocker is saved.
        size = candidate[SUPPORT, 0]
        for k in range(candidate.shape[1]):
            blocker[SUPPORT, k] = candidate[SUPPORT, k] if k <= size else 0
            blocker[TIGHT, k] = candidate[TIGHT, k] if 0 < k < size else 0
    return least


@inlined_kernel
def conclude(verdict: int, state: RoundState) -> bool:
    """Note what the certified stop proved; True when it proved anything."""
    if verdict == INFEASIBLE_PROVED:
        state.counters[STATUS] = INFEASIBLE
    return verdict != KEEP_SAMPLING


def _may_stop(rule: CertifiedRule | None, passed: bool, state: Any, model: Model, work: Any) -> bool:
    """Whether to stop: the certified rule decides if the explorer has one, its own test otherwise."""
    if rule is None:
        return passed
    verdict = run_certified(
        rule, state.certified, state.estimates, model, state.counters[STEPS], state.readings, work.certified
    )
    return conclude(verdict, state)


@overload(_may_stop, strict=False, inline="always")
def _overload_may_stop(rule: Any, passed: Any, state: Any, model: Any, work: Any) -> Any:
    def own_test(rule: Any, passed: Any, state: Any, model: Any, work: Any) -> Any:
        return passed

    def certified(rule: Any, passed: Any, state: Any, model: Any, work: Any) -> Any:
        verdict = run_certified(
            rule, state.certified, state.estimates, model, state.counters[STEPS], state.readings, work.certified
        )
        return conclude(verdict, state)

    return own_test if isinstance(rule, types.NoneType) else certified


@inlined_kernel
def examine(rule: RoundRule, state: RoundState, model: Model, work: RoundWork) -> bool:
    """Update policy, alternatives, statistic and threshold; True when the explorer may stop.

    An empty set sets `SET_IS_EMPTY` and keeps the last policy: no stop, and the caller samples to learn more.
    """
    estimates = state.estimates
    if rule.needs_widths:
        write_widths(rule.radius, estimates, model, state.policy, work.widths)
    columns = estimates.columns
    if rule.policy_set != EMPIRICAL:
        write_shifted(estimates.columns, work.widths, float(rule.policy_set), work.policy_columns)
        columns = work.policy_columns
    threshold = compute_beta(rule.beta, model.delta, rule.theory_constant, estimates.pulls)
    statistic = np.nan
    count = 0
    if solve_lp(estimates.mu_hat, columns, state.basis, work.lp) == OPTIMAL:
        state.counters[SET_IS_EMPTY] = 0
        write_vertex(state.policy.size, state.basis, work.lp.inverse, state.policy)
        target = rule.target
        count = find_neighbours(columns, state.basis, work.lp.inverse, work.neighbours, work.moves)
        if count == TOO_MANY:
            # Outer directions have no length of their own: only the test without r makes sense for them.
            count = find_outer_directions(columns, state.basis, work.lp.inverse, work.neighbours, work.moves)
            target = 0.0
        statistic, _ = least_statistic(
            model.family,
            estimates.mu_hat,
            estimates.pulls,
            work.moves,
            count,
            target,
            rule.one_sided,
        )
        if statistic > threshold and rule.confirm_on_vertices:
            confirmed = _confirm_on_vertices(
                rule,
                estimates,
                state.policy,
                state.basis,
                state.blocker,
                model.family,
                columns,
                threshold,
                work.candidate,
                work.vertex,
                work.vertex_move,
            )
            statistic = min(statistic, confirmed)
    else:
        state.counters[SET_IS_EMPTY] = 1
    state.counters[N_MOVES] = count
    state.readings[STATISTIC] = statistic
    state.readings[THRESHOLD] = threshold
    return _may_stop(rule.certified, statistic > threshold, state, model, work)


@inlined_kernel
def has_alternatives(state: RoundState) -> bool:
    """Tell whether the round found a policy and something to compare it with."""
    return state.counters[SET_IS_EMPTY] == 0 and state.counters[N_MOVES] > 0


@inlined_kernel
def confine(rule: RoundRule, state: RoundState, model: Model, work: RoundWork) -> None:
    """Move the allocation to the nearest point of the exploration set, if exploration is anytime.

    While that set is empty under the estimates the allocation stays as it is: nothing inside can be had.
    """
    if rule.confined:
        columns = state.estimates.columns
        if rule.exploration_set != EMPIRICAL:
            write_shifted(columns, work.widths, float(rule.exploration_set), work.policy_columns)
            columns = work.policy_columns
        feasible = solve_lp(state.estimates.mu_hat, columns, state.confine_basis, work.lp) == OPTIMAL
        if feasible and (
            project_polytope(
                state.allocation, model.simplex[0], columns, state.confine_nu, work.projection, work.confined
            )
            == PROJECTED
        ):
            for a in range(state.allocation.size):
                state.allocation[a] = work.confined[a]


@inlined_kernel
def sample_blindly(state: RoundState) -> int:
    """Choose the least-pulled arm, for rounds without a feasible policy; the allocation is uniform."""
    n_arms = state.allocation.size
    arm = 0
    for a in range(n_arms):
        state.allocation[a] = 1.0 / n_arms
        state.tracked[a] += 1.0 / n_arms
        if state.estimates.pulls[a] < state.estimates.pulls[arm]:
            arm = a
    return arm
