"""Shares of delta and constants of the mixtures, in one place: fixed before any data, and written into every document.

The accounts have two more, in `polyarm.accounts`.
"""

from typing import Final

from polyarm.accounts import GUARDED, LEARNABLE

#: Shares of delta beside a certificate by blocks: the proof itself; what all outcomes together (pooled) say of declared
#: outcomes of mixes; and the intervals of single means. Without blocks the pooled proof has what blocks would have.
BLOCKS_SHARE: Final = 0.9
POOLED_SHARE: Final = 0.05
INTERVALS_SHARE: Final = 0.05
#: Within a proof: constraints at the answer, the reward at the true optimum, constraints there. Those of constraints
#: are divided by their number; without unknown constraints the reward has all.
ANSWER_SHARE: Final = 0.4
REWARD_SHARE: Final = 0.3
ROWS_SHARE: Final = 0.3
#: The j-th start gets this share of what blocks may spend; they sum to one.
START_WEIGHTS: Final = (0.75, 0.16, 0.05, 0.025, 0.01, 0.005)
#: The first start comes when the plan has this share of the pulls that it expects to need.
START_AT: Final = 0.2
#: The precision of a mixture, as a share of the variance that is expected at the stop.
PRECISION: Final = 0.15
#: Share of p_s^2 in the precision of the reward: keeps it positive at q = p_s.
ANCHOR: Final = 0.3
#: How far a mixture over learned variances may reach, in units of 1/sqrt(S): any will do, the best counts.
REACHES: Final = (0.4, 0.7, 1.0, 1.5, 2.0, 2.5, 3.2, 4.5)
#: Points of the mixture that decides a constraint at the answer, where variances are learned.
POINTS: Final = 64
#: They lie between these, in units of 1/sqrt(precision).
POINTS_BETWEEN: Final = (0.004, 5.0)
#: Pulls grow by this share with each block.
BLOCK_GROWTH: Final = 0.04


def tabulate_constants() -> dict[str, float | tuple[float, ...]]:
    """Return the constants by name, for documents."""
    return {
        "blocks_share": BLOCKS_SHARE,
        "pooled_share": POOLED_SHARE,
        "intervals_share": INTERVALS_SHARE,
        "answer_share": ANSWER_SHARE,
        "reward_share": REWARD_SHARE,
        "rows_share": ROWS_SHARE,
        "start_weights": START_WEIGHTS,
        "start_at": START_AT,
        "precision": PRECISION,
        "anchor": ANCHOR,
        "reaches": REACHES,
        "points": POINTS,
        "points_between": POINTS_BETWEEN,
        "learnable": LEARNABLE,
        "guarded": GUARDED,
        "block_growth": BLOCK_GROWTH,
    }
