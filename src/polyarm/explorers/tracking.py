"""Tracking: which arm to pull so that the shares of pulls follow the allocations."""

import math

from polyarm._compile import inlined_kernel
from polyarm.explorers.round import STEPS, RoundState

C_TRACKING = 0
D_TRACKING = 1

#: Names of the tracking rules, as settings.
TRACKING_CODES = {"c": C_TRACKING, "d": D_TRACKING}


@inlined_kernel
def track(kind: int, state: RoundState) -> int:
    r"""Choose the arm that lags most behind the allocation.

    `C_TRACKING` adds :math:`(w + \epsilon)/(1 + K \epsilon)`, :math:`\epsilon = 1/(2 \sqrt{t + K^2})`, to a running
    sum and pulls argmin of pulls minus sum. `D_TRACKING` pulls argmin :math:`N_a - t w_a`, or the least-pulled arm
    while it has fewer than :math:`\sqrt t - K/2` pulls. Source: Garivier and Kaufmann (2016).
    """
    pulls, allocation, tracked = state.estimates.pulls, state.allocation, state.tracked
    n_arms = pulls.size
    steps = float(state.counters[STEPS])
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
