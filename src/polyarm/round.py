"""What every exploration remembers between rounds, whatever its rule and its stop."""

import math

import numpy as np

from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray
from polyarm.estimates import Estimates, make_estimates
from polyarm.model import Model
from polyarm.polytope.lp import make_basis
from polyarm.polytope.vertices import make_candidate

# What a step returns instead of an arm.
STOP = -1
LOOK = -2  # nothing can be decided before the stop has looked

NO_ARM = -1
#: A number of pulls that no run reaches: nothing is due.
NEVER = 2**62

# Values of `Now.status`.
RUNNING = 0
STOPPED = 1
INFEASIBLE = 2  # stopped with a proof that no mix satisfies every constraint


class Now(Scalars):
    """Where a round stands.

    `steps` pulls were told; `pending` is the arm asked for and not yet told, or NO_ARM; `status` is one of those above;
    `no_policy` is 1 when the last round found no feasible policy; `n_moves` alternatives were found; the first
    `first_pulls` pulls take the arms in order; from `due` pulls on the stop must look before the next decision.
    `statistic` and `threshold` are those of the test that decides when to stop, at its last look.
    """

    steps: int
    pending: int
    status: int
    no_policy: int
    n_moves: int
    first_pulls: int
    due: int
    statistic: float
    threshold: float


@struct
class Round:
    """What a round remembers.

    `policy` is the optimum of the estimated problem, `answer` what would be recommended: the policy, or the candidate
    of a certified stop. `allocation` is how to sample, `tracked` running sums of it; `blocker` is the vertex that last
    kept the explorer from stopping; the rest are warm starts.
    """

    now: Now
    estimates: Estimates
    policy: FloatArray
    answer: FloatArray
    allocation: FloatArray
    tracked: FloatArray
    basis: IntArray
    blocker: IntArray
    confine_basis: IntArray
    confine_nu: FloatArray


def make_round(model: Model) -> Round:
    """Allocate a round with nothing observed."""
    d, n_arms = model.known_rows.shape
    return Round(
        now=Now(pending=NO_ARM, first_pulls=n_arms, due=NEVER, statistic=math.nan, threshold=math.nan),
        estimates=make_estimates(model),
        policy=np.full(n_arms, 1.0 / n_arms),
        answer=np.full(n_arms, 1.0 / n_arms),
        allocation=np.full(n_arms, 1.0 / n_arms),
        tracked=np.zeros(n_arms),
        basis=make_basis(d),
        blocker=make_candidate(d),
        confine_basis=make_basis(d),
        confine_nu=np.zeros(d),
    )


def schedule_next(steps: int, growth: float) -> float:
    """The number of pulls at which something is due again."""
    return max(steps + 1.0, math.floor(steps * (1.0 + growth)))
