"""A problem as kernels see it."""

import numpy as np

from polyarm._structs import struct
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.accounts import KNOWN
from polyarm.families.family import Family, make_family
from polyarm.problem import Constraint, Problem, known_row, reward_ends


@struct
class Model:
    """A problem as the kernels see it: every row `<=`, its bound folded in, in units of its scale, range or bound.

    Outcome 0 is the reward, outcome 1 + i the cost of row i. `accounts` (1 + d,) says how the variance of each is known
    (see `polyarm.accounts`); `low` and `high` (1 + d, K) are the ends of its range, infinite without one.

    Multiply a user's cost of row i by `factors[i]` to enter these units; divide to leave them. `simplex` (1, K) is the
    polytope without constraints: all ones, so that its row also serves as equal weights; `known_set` (1 + d_k, K)
    is the polytope of the known rows alone. `reward_noise` (K,) and `row_noise` (d, K) are the variances of one pull,
    in these units: scales squared (nan where nothing is declared, zero for known rows).
    """

    family: Family
    known: BoolArray
    known_rows: FloatArray
    bounds: FloatArray
    cost_std: FloatArray
    factors: FloatArray
    simplex: FloatArray
    known_set: FloatArray
    reward_noise: FloatArray
    row_noise: FloatArray
    accounts: IntArray
    low: FloatArray
    high: FloatArray
    delta: float
    r: float


def build_model(problem: Problem, assumed_reward_std: float | None = None) -> Model:
    """Compile a problem into arrays; `assumed_reward_std` replaces the declared noise of Gaussian rewards.

    Other families ignore it, so that a preset may set it for any problem.
    """
    K, d = problem.n_arms, problem.n_constraints
    known_rows, cost_std = np.zeros((d, K)), np.zeros((d, K))
    bounds, factors = np.zeros(d), np.zeros(d)
    accounts, low, high = np.full(1 + d, KNOWN), np.full((1 + d, K), -np.inf), np.full((1 + d, K), np.inf)
    accounts[0] = problem.reward_account.code
    low[0], high[0] = problem.reward_account.ends(K)
    for i, constraint in enumerate(problem.constraints):
        scale = _unit(constraint, K)
        factors[i] = constraint.sign / scale
        bounds[i] = constraint.bound * factors[i]
        if constraint.row is not None:
            known_rows[i] = known_row(constraint) / scale
            continue
        account = constraint.account
        cost_std[i] = account.scale(K) / scale
        accounts[1 + i] = account.code
        low[1 + i], high[1 + i] = np.sort(np.array(account.ends(K)) * factors[i], axis=0)
    scales = problem.reward_account.scale(K)
    if assumed_reward_std is not None and problem.reward_family == "gaussian":
        scales = np.full(K, assumed_reward_std)
    family = make_family(problem.reward_family, K, tuple(scales.tolist()), reward_ends(problem))
    known = np.array([c.known for c in problem.constraints], dtype=np.bool_)
    return Model(
        family=family,
        known=known,
        known_rows=known_rows,
        bounds=bounds,
        cost_std=cost_std,
        factors=factors,
        simplex=np.ones((1, K)),
        known_set=np.vstack([np.ones(K), known_rows[known]]),
        reward_noise=scales**2,
        row_noise=cost_std**2,
        accounts=accounts,
        low=low,
        high=high,
        delta=problem.delta,
        r=problem.r,
    )


def _unit(constraint: Constraint, n_arms: int) -> float:
    """The user's units in one kernel unit of a row: its largest entry if known, else its scale, range or bound."""
    if constraint.row is not None:  # whatever its std: a mix keeps a known row within a share of its largest entry
        return float(np.abs(known_row(constraint)).max()) or 1.0
    if constraint.std is not None:
        return float(np.max(constraint.std))
    if constraint.account.kind == "estimated":
        return abs(constraint.bound) or 1.0
    low, high = constraint.account.ends(n_arms)
    return float(np.max(high - low))
