"""The cautious answer: the optimum under constraints tightened until a given part of the tolerance is lost."""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.certify.witnesses import DescentWork
from polyarm.polytope.linear import is_mix
from polyarm.polytope.lp import OPTIMAL
from polyarm.polytope.penalised import Program, forget_basis, solve_penalised_lp
from polyarm.tolerances import INFEASIBLE

_BISECTIONS = 14
_MIXINGS = 12


class Caution(NamedTuple):
    """What a cautious answer may cost: `loss` of reward for slack, `room` in total, and the price of breaking a row."""

    loss: float
    room: float
    penalty: float


@kernel
def _solve_tightened(program: Program, tightening: float, penalty: float, work: DescentWork) -> float:
    """Write the optimum with the unknown rows tightened to `work.mix`; returns its value, -inf when there is none."""
    mu, rows, known = program.means, program.rows, program.known
    d, n_arms = rows.shape
    largest = 1e-300
    for i in range(d):
        for a in range(n_arms):
            work.rows[i, a] = rows[i, a] + (0.0 if known[i] else tightening)
            largest = max(largest, abs(work.rows[i, a]))
    if solve_penalised_lp(Program(mu, work.rows, known), penalty, work.lp, work.mix, work.prices) != OPTIMAL:
        return -np.inf
    if not is_mix(work.mix):
        return -np.inf  # entries differ so much in size that the program was not really solved
    for i in range(d):
        excess = 0.0
        for a in range(n_arms):
            excess += work.rows[i, a] * work.mix[a]
        if excess > INFEASIBLE * largest:
            return -np.inf
    value = 0.0
    for a in range(n_arms):
        value += mu[a] * work.mix[a]
    return value


@kernel
def write_cautious(
    program: Program, caution: Caution, work: DescentWork, optimum_out: FloatArray, answer_out: FloatArray
) -> bool:
    """Write the optimum, and the answer with as much slack in every unknown row as the loss of reward can buy.

    A little of every arm is mixed in if that keeps half the slack, every known row, and costs at most the room in
    total: all shares can then grow multiplicatively. Returns whether such an answer exists; the optimum is written even
    if not, and is the optimum of the penalised program if no mix satisfies the estimated rows.
    """
    rows, known, penalty = program.rows, program.known, caution.penalty
    d, n_arms = rows.shape
    blend = work.means
    forget_basis(work.lp)
    for a in range(n_arms):
        work.mix[a] = optimum_out[a]  # kept if the program cannot be solved
    best = _solve_tightened(program, 0.0, penalty, work)
    if is_mix(work.mix):
        for a in range(n_arms):
            optimum_out[a] = work.mix[a]
    if best == -np.inf:
        return False
    high = 0.0
    for i in range(d):
        for a in range(n_arms):
            if not known[i]:
                high = max(high, abs(rows[i, a]))
    low = 0.0
    for a in range(n_arms):
        answer_out[a] = optimum_out[a]
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        value = _solve_tightened(program, middle, penalty, work)
        if value >= best - caution.loss:
            low = middle
            for a in range(n_arms):
                answer_out[a] = work.mix[a]
        else:
            high = middle
    has_unknown = high > 0.0
    if has_unknown and low == 0.0:
        return False
    share = 0.01
    for _ in range(_MIXINGS):
        if _keeps_room(program, best - caution.room, 0.5 * low, share, answer_out, blend):
            for a in range(n_arms):
                answer_out[a] = blend[a]
            break
        share *= 0.4
    return True


@kernel
def _keeps_room(
    program: Program, least_value: float, slack: float, share: float, answer: FloatArray, blend_out: FloatArray
) -> bool:
    """Mix a share of the uniform mix into an answer; tell whether slack, value and known rows allow it."""
    mu, rows, known = program.means, program.rows, program.known
    d, n_arms = rows.shape
    value = 0.0
    for a in range(n_arms):
        blend_out[a] = (1.0 - share) * answer[a] + share / n_arms
        value += mu[a] * blend_out[a]
    good = value >= least_value
    for i in range(d):
        cost = 0.0
        for a in range(n_arms):
            cost += rows[i, a] * blend_out[a]
        good = good and cost <= (0.0 if known[i] else -slack)
    return good
