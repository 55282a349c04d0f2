"""A problem as kernels see it."""

import numpy as np

from polyarm._structs import struct
from polyarm._types import BoolArray, FloatArray
from polyarm.families.family import Family, make_family
from polyarm.problem import Problem, known_row


@struct
class Model:
    """A problem as the kernels see it: every row `<=`, its bound folded in, in units of its noise.

    Multiply a user's cost of row i by `factors[i]` to enter these units; divide to leave them. `simplex` (1, K) is the
    polytope without constraints: all ones, so that its row also serves as equal weights; `known_set` (1 + d_k, K)
    is the polytope of the known rows alone. `reward_noise` (K,) and `row_noise` (d, K) are the variances of one pull,
    in these units (nan for rewards that are not sub-Gaussian, zero for known rows); `independent`: the reward and the
    costs of one pull are.
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
    independent: bool
    delta: float
    r: float


def build_model(problem: Problem, assumed_reward_std: float | None = None) -> Model:
    """Compile a problem into arrays; `assumed_reward_std` replaces the declared noise of Gaussian rewards.

    Other families ignore it, so that a preset may set it for any problem.
    """
    K, d = problem.n_arms, problem.n_constraints
    known_rows, cost_std = np.zeros((d, K)), np.zeros((d, K))
    bounds, factors = np.zeros(d), np.zeros(d)
    for i, constraint in enumerate(problem.constraints):
        if constraint.std is not None:
            scale = float(np.max(constraint.std))
        else:
            scale = float(np.abs(known_row(constraint)).max()) or 1.0
        factors[i] = constraint.sign / scale
        bounds[i] = constraint.bound * factors[i]
        if constraint.row is not None:
            known_rows[i] = known_row(constraint) / scale
        else:
            cost_std[i] = np.asarray(constraint.std) / scale
    reward_std = problem.reward_std if assumed_reward_std is None else assumed_reward_std
    family = make_family(problem.family, K, reward_std, problem.reward_range)
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
        reward_noise=family.scale**2,
        row_noise=cost_std**2,
        independent=problem.noise == "independent",
        delta=problem.delta,
        r=problem.r,
    )
