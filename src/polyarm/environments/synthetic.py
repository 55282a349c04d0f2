"""A simulated world: draws a reward and costs for any arm, and knows the truth."""

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import BoolArray, FloatArray
from polyarm.families.family import Family, make_family, sample_reward
from polyarm.problem import Problem


@struct
class SyntheticWorld:
    """True means and noise, in the user's units, and `true_rows`: G with every row `<=`."""

    family: Family
    reward_means: FloatArray
    cost_means: FloatArray
    cost_std: FloatArray
    measured: BoolArray
    true_rows: FloatArray


def build_world(problem: Problem, reward_means: FloatArray, cost_means: FloatArray) -> SyntheticWorld:
    """Compile the truth of an instance; only rows that the problem does not know are measured."""
    K = problem.n_arms
    constraints = problem.constraints
    reward_means, cost_means = np.ascontiguousarray(reward_means), np.ascontiguousarray(cost_means)
    signs = np.array([c.sign for c in constraints])
    bounds = np.array([c.bound for c in constraints])
    stds = [np.broadcast_to(0.0 if c.std is None else np.asarray(c.std), (K,)) for c in constraints]
    return SyntheticWorld(
        family=make_family(problem.family, K, problem.reward_std, problem.reward_range),
        reward_means=reward_means,
        cost_means=cost_means,
        cost_std=np.array(stds, dtype=np.float64).reshape(len(constraints), K),
        measured=np.array([not c.known for c in constraints], dtype=np.bool_),
        true_rows=signs[:, None] * (cost_means - bounds[:, None]),
    )


@kernel
def sample(world: SyntheticWorld, arm: int, rng: np.random.Generator, costs_out: FloatArray) -> float:
    """Draw a reward, and the cost of every measured row into `costs_out` (d,)."""
    reward = sample_reward(world.family, arm, world.reward_means[arm], rng)
    for i in range(world.measured.size):
        if world.measured[i]:
            costs_out[i] = world.cost_means[i, arm] + world.cost_std[i, arm] * rng.standard_normal()
    return reward
