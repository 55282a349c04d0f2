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
    Start,
    add_block,
    begin,
    cost_evidence,
    find_thresholds,
    make_start,
    row_variance,
    write_block_evidence,
)
from polyarm.certify.evidence import Evidence, make_evidence, witness_value
from polyarm.model import Model, build_model

RUNS = 6000
ARMS, ROWS, BLOCKS = 4, 2, 25
LEVEL = 1e-3


@kernel
def count_crossings(
    seed: int, runs: int, two_point: bool, model: Model, evidence: Evidence, start: Start
) -> tuple[int, int]:
    """Return in how many runs the cost test of the first row, and the reward test at a fixed q, ever pass."""
    np.random.seed(seed)
    K, d = ARMS, ROWS
    uniform = np.full(K, 1.0 / K)
    cost_crossings, reward_crossings = 0, 0
    for _ in range(runs):
        start.terms.weight = start.terms.earned = 0.0
        for sums in (start.v, start.u, start.z, start.rewards, start.answer, start.slack):
            sums[:] = 0.0
        start.rows[:] = 0.0
        q = np.random.rand(K) ** 3
        q /= q.sum()
        pulls, rewards, costs = np.zeros(K), np.zeros(K), np.zeros((d, K))
        answer, allocation = uniform.copy(), uniform.copy()
        begin(start, 0.0, 400.0, uniform, uniform, model)
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
            add_block(start, counts, answer, means, rows)
            variance = row_variance(start, 0, model)
            found = cost_evidence(start.slack[0], variance, start.predicted[0], start.terms.cost_log)
            cost_crossed |= found >= start.terms.cost_log
            threshold, floor = find_thresholds(start, model)
            write_block_evidence(start, floor, model, evidence)
            reward_crossed |= witness_value(evidence, q) > threshold
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
    model = build_model(make_instance([0.0] * ARMS, nothing, rows, delta=delta, r=0.0, noise="independent").problem)
    start = make_start(0, delta, model.independent, model)
    start.terms.reward_log = start.terms.cost_log = math.log(1.0 / delta)  # each test may spend delta
    costs, rewards = count_crossings(7, RUNS, two_point, model, make_evidence(ARMS, ROWS), start)
    for crossings, measured in ((costs, cost_rate), (rewards, reward_rate)):
        assert binomtest(crossings, RUNS, delta, alternative="greater").pvalue >= LEVEL
        # The bound is far from tight, so the rate itself is watched too: half as high or twice is another test.
        assert 0.5 * measured < crossings / RUNS < 2.0 * measured
