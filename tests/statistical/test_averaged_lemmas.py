"""The two crossing lemmas of the averaged certificate, against an adversary who plans every block on past outcomes.

At the edge of the claim (all means zero, r = 0) each statistic is its martingale, so that the share of runs in which it
ever crosses its threshold is what Ville's inequality bounds by delta. The adversary bets on arms that have looked good
and samples less where the witness has looked lucky. The rates below were measured over 20,000 runs (Gaussian noise, by
the research prototype) and 40,000 (two-point noise): far below delta, since thresholds hold for the worst witness.
"""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from contract.suitable import make_instance
from polyarm._compile import kernel
from polyarm.certify.blocks import (
    MAX_STARTS,
    REWARD_THRESHOLD,
    ROW_FLOOR,
    Levels,
    Starts,
    add_block,
    begin,
    cost_evidence,
    make_starts,
    row_variance,
    write_evidence,
    write_thresholds,
)
from polyarm.certify.evidence import Evidence, make_evidence, witness_value
from polyarm.model import Model, build_model

RUNS = 6000
ARMS, ROWS, BLOCKS = 4, 2, 25
LEVEL = 1e-3


@kernel
def count_crossings(
    seed: int, runs: int, two_point: bool, levels: Levels, model: Model, evidence: Evidence, starts: Starts
) -> tuple[int, int]:
    """Return in how many runs the cost test of the first row, and the reward test at a fixed q, ever pass."""
    np.random.seed(seed)
    K, d = ARMS, ROWS
    centre, thresholds, uniform = np.zeros(K), np.zeros(2), np.full(K, 1.0 / K)
    cost_crossings, reward_crossings = 0, 0
    for _ in range(runs):
        starts.weight[0] = starts.earned[0] = 0.0
        for sums in (starts.v, starts.u, starts.z, starts.rewards, starts.answer, starts.slack):
            sums[0] = 0.0
        starts.rows[0] = 0.0
        q = np.random.rand(K) ** 3
        q /= q.sum()
        pulls, rewards, costs = np.zeros(K), np.zeros(K), np.zeros((d, K))
        answer, allocation = uniform.copy(), uniform.copy()
        begin(0, 0.0, 400.0, uniform, uniform, model, starts)
        cost_crossed, reward_crossed = False, False
        for k in range(BLOCKS):
            if k > 0:
                for a in range(K):
                    looks = (rewards[a] - costs[:, a].sum()) / math.sqrt(pulls[a])
                    answer[a] = math.exp(min(5.0, 3.0 * looks))
                    allocation[a] = math.exp(-1.5 * costs[0, a] / math.sqrt(pulls[a]))
                answer /= answer.sum()
                allocation /= allocation.sum()
            counts, means, rows = np.empty(K), np.empty(K), np.empty((d, K))
            for a in range(K):
                counts[a] = max(1.0, math.floor(allocation[a] * 8 * K * 1.1**k))
                for i in range(-1, d):
                    if two_point:
                        noise = 2.0 * np.random.binomial(int(counts[a]), 0.5) / counts[a] - 1.0
                    else:
                        noise = np.random.standard_normal() / math.sqrt(counts[a])
                    if i < 0:
                        means[a] = noise
                        rewards[a] += counts[a] * noise
                    else:
                        rows[i, a] = noise
                        costs[i, a] += counts[a] * noise
                pulls[a] += counts[a]
            add_block(0, counts, answer, means, rows, starts)
            found = cost_evidence(
                starts.slack[0, 0], row_variance(0, 0, model, starts), starts.predicted[0, 0], levels.cost_log[0]
            )
            cost_crossed |= found >= levels.cost_log[0]
            write_thresholds(0, levels, model, starts, thresholds)
            r = write_evidence(0, 0.0, thresholds[ROW_FLOOR], model, starts, evidence, centre)
            reward_crossed |= witness_value(evidence, centre, q, r) > thresholds[REWARD_THRESHOLD]
        cost_crossings += cost_crossed
        reward_crossings += reward_crossed
    return cost_crossings, reward_crossings


@pytest.mark.parametrize(
    ("two_point", "delta", "cost_rate", "reward_rate"),
    [(False, 0.3, 0.166, 0.023), (False, 0.1, 0.045, 0.008), (True, 0.3, 0.162, 0.010), (True, 0.1, 0.041, 0.0024)],
)
def test_crossings_stay_below_delta(two_point: bool, delta: float, cost_rate: float, reward_rate: float) -> None:
    rows = [{"name": f"c{i}", "bound": 0.0, "std": 1.0} for i in range(ROWS)]
    nothing = np.zeros((ROWS, ARMS)).tolist()
    model = build_model(make_instance([0.0] * ARMS, nothing, rows, delta=delta, noise="independent").problem)
    each = np.full(MAX_STARTS, math.log(1.0 / delta))
    costs, rewards = count_crossings(
        7, RUNS, two_point, Levels(each, each, ROWS), model, make_evidence(ARMS, ROWS), make_starts(ARMS, ROWS)
    )
    for crossings, measured in ((costs, cost_rate), (rewards, reward_rate)):
        assert binomtest(crossings, RUNS, delta, alternative="greater").pvalue >= LEVEL
        # The bound is far from tight, so the rate itself is watched too: half as high or twice is another test.
        assert 0.5 * measured < crossings / RUNS < 2.0 * measured
