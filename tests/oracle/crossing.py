"""One start, played against an adversary who plans every block on past outcomes; how far each claim's evidence gets.

The library keeps the sums and states the evidence; only truth and adversary are here. Each statistic is moved to the
edge of its claim, where it is the martingale itself, so that the evidence ever reaches 1/delta in at most a share delta
of the runs.
"""

from typing import NamedTuple

import numpy as np

from oracle.reference import FloatArray
from polyarm._compile import kernel
from polyarm.certify.blocks import Record, Start, Sums, add_recorded, answer_evidence, begin, write_block_evidence
from polyarm.certify.evidence import Evidence, statistic_at
from polyarm.certify.lemma import log_mixture
from polyarm.estimates import Estimates, expect_spread, mark
from polyarm.estimates import record as observe
from polyarm.model import Model

# Whom the adversary plays against.
REWARD, ROW, ANSWER = 0, 1, 2
# How the answers of blocks are planned.
STILL, LUCKY, BOLD, WILD, PEEKING = 0, 1, 2, 3, 4
# How many pulls the arms get.
EVEN, RANDOM, ONE_ARM, BOLD_COUNTS, SINGLE, RARE = 0, 1, 2, 3, 4, 5
# How reward and cost of one pull go together.
APART, SAME, OPPOSED = 0, 1, 2


class Game(NamedTuple):
    """What is played: the witness, tables of outcomes (2, K, values) with their means (2, K), and the adversary.

    `before` pulls of each arm come before the start; blocks have `size` pulls, growing by `growth`; the start expects
    `expected` pulls until its stop.
    """

    witness: FloatArray
    tables: FloatArray
    means: FloatArray
    against: int
    plan: int
    counts: int
    together: int
    before: int
    n_blocks: int
    size: float
    growth: float
    expected: float


class Memory(NamedTuple):
    """The library's own state and scratch."""

    model: Model
    start: Start
    estimates: Estimates
    record: Record
    sums: Sums
    evidence: Evidence


@kernel
def _clear(memory: Memory) -> None:
    start, estimates = memory.start, memory.estimates
    start.terms.weight = start.terms.earned = 0.0
    start.terms.blocks = 0
    for sums in (start.slack, start.rewards, start.answer, start.spread, start.spread_p, start.spread_pp):
        sums[:] = 0.0
    for sums in (start.squares_p, start.squares_pp, start.highest, estimates.pulls, estimates.reward_sums):
        sums[:] = 0.0
    for table in (start.rows, start.squares, start.own, start.charges, estimates.cost_sums):
        table[:] = 0.0
    for cube in (start.twos, start.fours, estimates.powers, estimates.totals):
        cube[:] = 0.0
    estimates.wander[:] = 0.0
    for k in range(2):
        for a in range(start.anchor.size):
            bounded = np.isfinite(memory.model.low[k, a])
            estimates.guesses[k, a] = 0.5 * (memory.model.low[k, a] + memory.model.high[k, a]) if bounded else 0.0


@kernel
def _pull(game: Game, memory: Memory, arm: int, costs: FloatArray) -> None:
    values = game.tables.shape[2]
    i = np.random.randint(values)
    j = i if game.together == SAME else (values - 1 - i if game.together == OPPOSED else np.random.randint(values))
    costs[0] = game.tables[1, arm, j]
    observe(memory.estimates, memory.model, arm, game.tables[0, arm, i], costs)


@kernel
def _luck(game: Game, memory: Memory, arm: int, cost: int) -> float:
    """How many standard errors (about) an arm's outcomes are above their mean."""
    estimates, pulls = memory.estimates, memory.estimates.pulls[arm]
    total = estimates.cost_sums[0, arm] / memory.model.factors[0] if cost == 1 else estimates.reward_sums[arm]
    spread = game.tables[cost, arm].std()
    return (total / pulls - game.means[cost, arm]) * np.sqrt(pulls) / spread if spread > 0.0 else 0.0


@kernel
def _plan(game: Game, memory: Memory, ahead: float, answer: FloatArray) -> None:
    """Write the next block's answer."""
    n_arms, q = answer.size, game.witness
    cost = 0 if game.against == REWARD else 1
    for a in range(n_arms):
        if game.plan == LUCKY:
            answer[a] = np.exp(1.5 * _luck(game, memory, a, cost)) * np.random.random()
        elif game.plan == WILD:
            answer[a] = np.random.random() ** 4
        elif game.plan == BOLD:
            # Behind: the largest coefficients that there are; ahead: nearly none.
            answer[a] = q[a] + 1e-3 if ahead > 1.5 else 1e-3
        else:
            answer[a] = memory.start.anchor[a]
    if game.plan == BOLD and not ahead > 1.5:
        answer[np.argmin(q + 1e-9 * np.random.random(n_arms))] = 1.0
    answer /= answer.sum()


@kernel
def _count(game: Game, size: float, ahead: float, counts: FloatArray) -> None:
    """Write the next block's counts."""
    n_arms = counts.size
    for a in range(n_arms):
        n = size / n_arms
        if game.counts == RANDOM:
            n = size * np.random.random() ** 3
        elif game.counts == ONE_ARM:
            n = 0.9 * size if a == 0 else 0.1 * size / (n_arms - 1)
        elif game.counts == BOLD_COUNTS:
            n = size if ahead >= 1.0 else (0.05 * size if a < 2 else size / n_arms)
        elif game.counts == SINGLE:
            n = size if a == 0 else 1.0
        elif game.counts == RARE:
            n = 0.98 * size if a == 0 else 0.02 * size / (n_arms - 1)
        counts[a] = max(1.0, np.floor(n + 0.5))


@kernel
def _peek(game: Game, memory: Memory, counts: FloatArray, answer: FloatArray) -> None:
    """Replace the answer, wrongly, by one that was chosen once the block's outcomes were known."""
    cost = 1 if game.against == ANSWER else 0
    answer[:] = 0.0
    best, chosen = -np.inf, 0
    for a in range(answer.size):
        guess = memory.estimates.guesses[cost, a]
        mean = guess + memory.estimates.powers[0, cost, a] / counts[a]
        true = game.means[cost, a] * (memory.model.factors[0] if cost == 1 else 1.0)
        gain = (mean - true) if cost == 0 else (true - mean)
        if gain > best:
            best, chosen = gain, a
    answer[chosen] = 1.0


@kernel
def _log_evidence(evidence: Evidence, k: int, q: FloatArray, shift: float) -> tuple[float, float]:
    """The best variant's evidence where D is moved by `shift`; and D/sqrt(S) of the first."""
    best, ahead = -np.inf, 0.0
    for v in range(evidence.variants[k]):
        d, s, prior = statistic_at(evidence, k, v, q)
        z = (d + shift) / np.sqrt(s)
        if v == 0:
            ahead = z
        if z > 0.0:
            best = max(best, log_mixture(z, evidence.reaches[k, v]) - 0.5 * np.log(s / prior))
    return best, ahead


@kernel
def play(game: Game, memory: Memory, seed: int, runs: int, best_out: FloatArray) -> float:
    """Write the largest log evidence of each claim (runs, 3) at the end of any block; returns the pulls of a run."""
    model, start, estimates, record = memory.model, memory.start, memory.estimates, memory.record
    n_arms, q = game.witness.size, game.witness
    np.random.seed(seed)
    variances, kurtoses, costs = np.zeros((2, n_arms)), np.zeros((2, n_arms)), np.zeros(1)
    answer, counts, even = np.zeros(n_arms), np.zeros(n_arms), np.full(n_arms, 1.0 / n_arms)
    rows = game.means[1] * model.factors[0] - model.bounds[0]
    pulls = 0.0
    for run in range(runs):
        _clear(memory)
        best_out[run] = -np.inf
        for a in range(n_arms):
            for _ in range(game.before):
                _pull(game, memory, a, costs)
        mark(estimates, model)
        expect_spread(estimates, model, variances, kurtoses)
        begin(start, model, game.expected, even, even, variances, estimates.guesses)
        ahead, size = 0.0, game.size
        for b in range(game.n_blocks):
            _plan(game, memory, ahead, answer)
            _count(game, size, ahead, counts)
            for a in range(n_arms):
                for _ in range(int(counts[a])):
                    _pull(game, memory, a, costs)
            if game.plan == PEEKING:
                _peek(game, memory, counts, answer)
            record.answers[b], record.counts[b], record.powers[b] = answer, counts, estimates.powers
            record.guesses[b], record.variances[b] = estimates.guesses, variances
            add_recorded(start, model, record, b)
            mark(estimates, model)
            expect_spread(estimates, model, variances, kurtoses)
            write_block_evidence(start, model, record, 0.0, memory.sums, memory.evidence)
            weight, shift, row_shift, own_shift = start.terms.weight, 0.0, 0.0, 0.0
            for a in range(n_arms):
                shift += game.means[0, a] * (weight * q[a] - start.answer[a])
                row_shift -= weight * rows[a] * q[a]
                own_shift += rows[a] * start.answer[a]
            reward, reward_ahead = _log_evidence(memory.evidence, 0, q, shift)
            row, row_ahead = _log_evidence(memory.evidence, 1, q, row_shift)
            own = answer_evidence(start, model, 0, start.slack[0] + own_shift)
            best_out[run, 0] = max(best_out[run, 0], reward)
            best_out[run, 1] = max(best_out[run, 1], row)
            best_out[run, 2] = max(best_out[run, 2], own)
            ahead = reward_ahead
            if game.against == ROW:
                ahead = row_ahead
            elif game.against == ANSWER:
                # What matters to the adversary is the sign, and about the size.
                ahead = np.sqrt(2.0 * max(own, 0.0)) if own > -np.inf else -1.0
            size *= game.growth
        pulls += estimates.pulls.sum()
    return pulls / runs
