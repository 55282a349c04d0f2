r"""What the outcomes so far say of every mean: intervals that hold at once, for all arms, rows and times.

With N pulls of an arm whose noise is sub-Gaussian of scale :math:`\sigma`, the mean is within

.. math:: \sigma \sqrt{2 (\log(1/\alpha) + \tfrac12 \log(1 + N)) (N + 1) / N^2}

of its estimate at every N, with probability at least :math:`1 - \alpha` (a Gaussian mixture over means). One
alpha = delta / (K (1 + d_u)) for each mean makes all of them hold together with confidence 1 - delta. For people to
look at: certificates spend their delta otherwise.
"""

import math
from dataclasses import dataclass

import numpy as np

from polyarm._types import FloatArray
from polyarm.engine.session import Session
from polyarm.families.family import make_family


@dataclass(frozen=True)
class Intervals:
    """Estimates and how far each may be off, in the user's units: rewards (K,), costs (d, K).

    nan where nothing was observed, and in `reward_widths` for families of rewards without a sub-Gaussian scale.
    """

    rewards: FloatArray
    reward_widths: FloatArray
    costs: FloatArray
    cost_widths: FloatArray


def find_intervals(session: Session) -> Intervals:
    """Return estimates with intervals that all hold at once, at all times, with confidence 1 - delta."""
    problem, estimates, model = session.problem, session.round.estimates, session.plan.model
    pulls = np.where(estimates.pulls > 0.0, estimates.pulls, math.nan)
    level = math.log(problem.n_arms * (1 + len(problem.unknown)) / problem.delta)
    relative = np.sqrt(2.0 * (level + 0.5 * np.log1p(pulls)) * (pulls + 1.0)) / pulls
    scale = make_family(problem.family, problem.n_arms, problem.reward_std, problem.reward_range).scale
    costs = np.zeros((problem.n_constraints, problem.n_arms))
    widths = np.zeros_like(costs)
    for i, constraint in enumerate(problem.constraints):
        if constraint.row is not None:
            costs[i] = constraint.row
        else:
            costs[i] = estimates.cost_sums[i] / pulls / model.factors[i]
            widths[i] = np.asarray(constraint.std) * relative
    return Intervals(estimates.reward_sums / pulls, scale * relative, costs, widths)
