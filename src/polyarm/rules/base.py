"""The round that the paper's explorers share: policy, alternatives and stop test, then an allocation, then an arm.

A rule only allocates. `take_step` is the whole round: examine, sample blindly while there is nothing to compare, let
the rule allocate, confine the allocation, choose an arm.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray, IntArray
from polyarm.estimates import write_shifted, write_widths
from polyarm.families.alternatives import least_statistic, move_statistic, write_vertex_move
from polyarm.families.family import Family
from polyarm.model import Model
from polyarm.polytope.lp import OPTIMAL, LpWork, make_lp_work, solve_lp, write_vertex
from polyarm.polytope.neighbours import (
    TOO_MANY,
    Move,
    Moves,
    NeighbourWork,
    Rivals,
    find_neighbours,
    find_outer_directions,
    make_moves,
    make_neighbour_work,
    neighbour_capacity,
)
from polyarm.polytope.projection import PROJECTED, ProjectionWork, make_projection_work, project_polytope
from polyarm.polytope.vertices import (
    SUPPORT,
    TIGHT,
    VertexWork,
    make_candidate,
    make_vertex_work,
    next_candidate,
    solve_candidate,
)
from polyarm.round import STOP, Round
from polyarm.stops.own import compute_beta
from polyarm.tolerances import SAME_POLICY

# The polytopes, as signs of the widths added to the estimated matrix.
OPTIMISTIC = -1
EMPIRICAL = 0
PESSIMISTIC = 1

SET_CODES = {"optimistic": OPTIMISTIC, "empirical": EMPIRICAL, "pessimistic": PESSIMISTIC}

# How an arm is chosen from an allocation.
C_TRACKING = 0
D_TRACKING = 1
DRAWN = 2

#: Names of the tracking rules, as settings.
TRACKING_CODES = {"c": C_TRACKING, "d": D_TRACKING}


class RoundRule(NamedTuple):
    """Settings of the shared round.

    `tests`: the explorer's own test decides when to stop. `needs_policy`: without a policy and alternatives the rule
    cannot allocate, and the least-pulled arm is sampled. `choice` is how an arm is chosen. `target` is the value that
    an alternative must give a vertex over the policy: r, 0, or -r as printed in the paper (then `one_sided` is off).
    `needs_widths`: some set differs from the estimated one. `confined`: allocations are kept inside `exploration_set`.
    """

    tests: bool
    needs_policy: bool
    choice: int
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


@struct
class RoundWork:
    """Scratch of a round: nothing in it outlives the step."""

    widths: FloatArray
    policy_columns: FloatArray
    set_columns: FloatArray
    candidate: IntArray
    confined: FloatArray
    lp: LpWork
    neighbours: NeighbourWork
    moves: Moves
    vertex: VertexWork
    vertex_move: Moves
    projection: ProjectionWork


def make_round_work(model: Model) -> RoundWork:
    """Allocate the scratch of a round."""
    d, n_arms = model.known_rows.shape
    return RoundWork(
        widths=np.zeros((d, n_arms)),
        policy_columns=np.zeros((d + 1, n_arms)),
        set_columns=np.zeros((d + 1, n_arms)),
        candidate=make_candidate(d),
        confined=np.zeros(n_arms),
        lp=make_lp_work(n_arms + 1, d),  # one more column: the Slater slack of the multiplier
        neighbours=make_neighbour_work(n_arms, d),
        moves=make_moves(neighbour_capacity(n_arms, d), d),
        vertex=make_vertex_work(d),
        vertex_move=make_moves(1, d),
        projection=make_projection_work(n_arms, d),
    )


@kernel
def _vertex_statistic(
    rule: RoundRule, state: Round, family: Family, columns: FloatArray, candidate: IntArray, work: RoundWork
) -> float:
    """Statistic of a candidate; infinity when it is no vertex (any more), or the policy itself."""
    if not solve_candidate(columns, candidate, work.vertex):
        return np.inf
    move = work.vertex_move
    write_vertex_move(state.policy, state.basis, candidate, work.vertex.values, move)
    length = 0.0
    for k in range(move.sizes[0]):
        length = max(length, abs(move.changes[0, k]))
    if length <= SAME_POLICY:
        return np.inf
    estimates = state.estimates
    return move_statistic(family, estimates.mu_hat, estimates.pulls, Move(move, 0), rule.target, rule.one_sided)


@kernel
def _confirm_on_vertices(
    rule: RoundRule, state: Round, family: Family, columns: FloatArray, threshold: float, work: RoundWork
) -> float:
    """Least statistic over all vertices, or of the first vertex found at or below the threshold.

    The vertex that blocked last time is tried first: it usually still does, and one linear system is
    cheaper than a walk over all of them.
    """
    blocker, candidate = state.blocker, work.candidate
    if blocker[SUPPORT, 0] > 0:
        statistic = _vertex_statistic(rule, state, family, columns, blocker, work)
        if statistic <= threshold:
            return statistic
    least = np.inf
    candidate[SUPPORT, 0] = 0
    m, n_arms = columns.shape
    while least > threshold and next_candidate(n_arms, m - 1, candidate):
        least = min(least, _vertex_statistic(rule, state, family, columns, candidate, work))
    if least <= threshold:
        # Only the candidate's own entries: what lies behind them is scratch, and the blocker is saved.
        size = candidate[SUPPORT, 0]
        for k in range(candidate.shape[1]):
            blocker[SUPPORT, k] = candidate[SUPPORT, k] if k <= size else 0
            blocker[TIGHT, k] = candidate[TIGHT, k] if 0 < k < size else 0
    return least


@kernel
def _test(rule: RoundRule, state: Round, model: Model, columns: FloatArray, target: float, work: RoundWork) -> None:
    """Write the paper's statistic: neighbours first, all vertices only when these pass."""
    estimates, now = state.estimates, state.now
    rivals = Rivals(work.moves, now.n_moves)
    now.statistic, _ = least_statistic(model.family, estimates.mu_hat, estimates.pulls, rivals, target, rule.one_sided)
    if now.statistic > now.threshold and rule.confirm_on_vertices:
        confirmed = _confirm_on_vertices(rule, state, model.family, columns, now.threshold, work)
        now.statistic = min(now.statistic, confirmed)


@kernel
def examine(rule: RoundRule, state: Round, model: Model, work: RoundWork) -> bool:
    """Update policy, alternatives, and with a test of its own statistic and threshold; True when it says stop.

    An empty set sets `no_policy` and keeps the last policy: no stop, and the caller samples to learn more.
    """
    estimates, now = state.estimates, state.now
    if rule.needs_widths:
        write_widths(rule.radius, estimates, model, state.policy, work.widths)
    columns = estimates.columns
    if rule.policy_set != EMPIRICAL:
        write_shifted(estimates.columns, work.widths, float(rule.policy_set), work.policy_columns)
        columns = work.policy_columns
    now.n_moves = 0
    if rule.tests:
        now.threshold = compute_beta(rule.beta, model.delta, rule.theory_constant, estimates.pulls)
        now.statistic = np.nan
    if solve_lp(estimates.mu_hat, columns, state.basis, work.lp) != OPTIMAL:
        now.no_policy = 1
        return False
    now.no_policy = 0
    write_vertex(state.policy.size, state.basis, work.lp.inverse, state.policy)
    if rule.tests:
        for a in range(state.policy.size):
            state.answer[a] = state.policy[a]
    if not (rule.tests or rule.needs_policy):
        return False
    target = rule.target
    now.n_moves = find_neighbours(columns, state.basis, work.lp.inverse, work.neighbours, work.moves)
    if now.n_moves == TOO_MANY:
        # Outer directions have no length: only the test without r makes sense for them.
        now.n_moves = find_outer_directions(columns, state.basis, work.lp.inverse, work.neighbours, work.moves)
        target = 0.0
    if rule.tests:
        _test(rule, state, model, columns, target, work)
    return now.statistic > now.threshold if rule.tests else False


@kernel
def confine(rule: RoundRule, state: Round, model: Model, work: RoundWork) -> None:
    """Move the allocation to the nearest point of the exploration set, if exploration is anytime.

    If that set is empty under the estimates, the allocation stays as it is.
    """
    columns = state.estimates.columns
    if rule.exploration_set != EMPIRICAL:
        write_shifted(columns, work.widths, float(rule.exploration_set), work.policy_columns)
        columns = work.policy_columns
    feasible = solve_lp(state.estimates.mu_hat, columns, state.confine_basis, work.lp) == OPTIMAL
    if feasible and (
        project_polytope(state.allocation, model.simplex[0], columns, state.confine_nu, work.projection, work.confined)
        == PROJECTED
    ):
        for a in range(state.allocation.size):
            state.allocation[a] = work.confined[a]


@kernel
def sample_blindly(state: Round) -> int:
    """Choose the least-pulled arm, for rounds without a feasible policy; the allocation is uniform."""
    n_arms = state.allocation.size
    arm = 0
    for a in range(n_arms):
        state.allocation[a] = 1.0 / n_arms
        state.tracked[a] += 1.0 / n_arms
        if state.estimates.pulls[a] < state.estimates.pulls[arm]:
            arm = a
    return arm


@kernel
def draw(allocation: FloatArray, rng: np.random.Generator) -> int:
    """Draw an arm independently of everything."""
    mark = rng.random()
    for a in range(allocation.size):
        mark -= allocation[a]
        if mark < 0.0:
            return a
    return allocation.size - 1  # round-off: the shares add up to slightly less than the draw


@kernel
def track(kind: int, state: Round) -> int:
    r"""Choose the arm that lags most behind the allocation.

    `C_TRACKING` adds :math:`(w + \epsilon)/(1 + K \epsilon)`, :math:`\epsilon = 1/(2 \sqrt{t + K^2})`, to a running
    sum and pulls argmin of pulls minus sum. `D_TRACKING` pulls argmin :math:`N_a - t w_a`, or the least-pulled arm
    while it has fewer than :math:`\sqrt t - K/2` pulls. Source: Garivier and Kaufmann (2016).
    """
    pulls, allocation, tracked = state.estimates.pulls, state.allocation, state.tracked
    n_arms = pulls.size
    steps = float(state.now.steps)
    epsilon = 0.5 / math.sqrt(steps + n_arms * n_arms)
    least = 0
    for a in range(n_arms):
        tracked[a] += (allocation[a] + epsilon) / (1.0 + n_arms * epsilon)
        if pulls[a] < pulls[least]:
            least = a
    if kind == D_TRACKING and pulls[least] < math.sqrt(steps) - 0.5 * n_arms:
        return least
    arm = 0
    lowest = math.inf
    for a in range(n_arms):
        lag = pulls[a] - (tracked[a] if kind == C_TRACKING else steps * allocation[a])
        if lag < lowest:
            lowest = lag
            arm = a
    return arm


#: For each class of rules, what writes its allocation or, without the shared round, chooses its arm; the registry fills
#: both.
ALLOCATE: dict[Any, Any] = {}
CHOOSE: dict[Any, Any] = {}


def allocate(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any) -> None:
    """Write the allocation, by the function that belongs to a rule; this body serves when compilation is disabled."""
    ALLOCATE[type(rule)](rule, state, model, rng, work)


@overload(allocate, strict=False)  # strict would compare annotations too
def _overload_allocate(rule: Any, state: Any, model: Any, rng: Any, work: Any) -> Any:
    return _plain(ALLOCATE, rule)


def choose_arm(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any) -> int:
    """Return the next arm, or STOP; this body serves when compilation is disabled."""
    return int(CHOOSE.get(type(rule), take_step)(rule, state, model, rng, work))


@overload(choose_arm, strict=False)
def _overload_choose_arm(rule: Any, state: Any, model: Any, rng: Any, work: Any) -> Any:
    return _plain(CHOOSE, rule) or take_step


def _plain(table: dict[Any, Any], rule: Any) -> Any:
    """The plain function of a rule, not its dispatcher: that saves compiling one level of calls."""
    chosen = table.get(getattr(rule, "instance_class", type(None)))
    return getattr(chosen, "py_func", chosen)


def take_step(rule: Any, state: Any, model: Model, rng: np.random.Generator, work: Any) -> int:
    """Return the next arm, or STOP: one round of an explorer whose rule allocates."""
    settings, core = rule.round, state.round
    if examine(settings, core, model, work.round):
        return STOP
    if settings.needs_policy and (core.now.no_policy == 1 or core.now.n_moves == 0):
        return sample_blindly(core)
    allocate(rule, state, model, rng, work)
    if settings.confined:
        confine(settings, core, model, work.round)
    if settings.choice == DRAWN:
        return draw(core.allocation, rng)
    return track(settings.choice, core)
