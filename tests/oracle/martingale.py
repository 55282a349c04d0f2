"""The lemma behind certificates by blocks, from its definition: every pull is kept, and its mixture is integrated.

Random problems with every account, sense and kind of range; random blocks, planned on past outcomes, told to the
library as a session would; and beside that every single outcome, from which each martingale, its account of variance
and its mixture follow in the user's units, pull by pull. Nothing here imports polyarm's sums or rates.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle.reference import FloatArray, Generator
from polyarm import Problem
from polyarm.certify import blocks as library
from polyarm.certify.blocks import Record, Start
from polyarm.estimates import Estimates, expect_spread, make_estimates, mark, record
from polyarm.model import Model, build_model

#: Learned variances hold up to this u, and the guard counts variances in full from this many outcomes on: restated.
LEARNABLE, GUARDED = 0.9, 80.0
#: What a claim is about: the reward at q, row i at q, or row i at the answer.
REWARD, ROW, ANSWER = "reward", "row", "answer"
ACCOUNTS = ("declared", "range", "estimated")


def price(u: FloatArray) -> FloatArray:
    """G(u) = 2 (-log(1 - u) - u)/u^2, by its series where u is small."""
    u = np.asarray(u, dtype=np.float64)
    series = 1.0 + u * (2.0 / 3.0 + u * (0.5 + u * (0.4 + u / 3.0)))
    safe = np.where(u < 1e-3, 0.5, u)
    return np.where(u < 1e-3, series, 2.0 * (-np.log1p(-safe) - safe) / safe**2)


@dataclass(frozen=True)
class Pulls:
    """One complete block: what was fixed before it, in the user's units, and every outcome of it.

    `outcomes` has, per arm, an array (pulls, 1 + d): the reward, then each row's cost.
    """

    answer: FloatArray
    guesses: FloatArray
    variances: FloatArray
    outcomes: list[FloatArray]

    @property
    def counts(self) -> FloatArray:
        """Pulls of each arm."""
        return np.array([len(told) for told in self.outcomes], dtype=np.float64)

    @property
    def size(self) -> float:
        """Pulls in all."""
        return float(self.counts.sum())


@dataclass(frozen=True)
class Draw:
    """A problem with a start, the blocks since, and what the library has accumulated of them."""

    problem: Problem
    model: Model
    start: Start
    record: Record
    blocks: list[Pulls]

    @property
    def n_arms(self) -> int:
        """K."""
        return self.problem.n_arms

    def sign(self, k: int) -> float:
        """+1 for the reward and rows `<=`, -1 for rows `>=`."""
        return 1.0 if k == 0 else self.problem.constraints[k - 1].sign

    def bound(self, k: int) -> float:
        """The bound of row k - 1."""
        return float(self.problem.constraints[k - 1].bound)

    def unit(self, k: int) -> float:
        """Kernel units in one of the user's."""
        return 1.0 if k == 0 else float(abs(self.model.factors[k - 1]))

    def account(self, k: int) -> str:
        """How the variance of an outcome is known."""
        return (self.problem.reward_account if k == 0 else self.problem.constraints[k - 1].account).kind

    def ends(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Least and largest value of an outcome, per arm."""
        return (self.problem.reward_account if k == 0 else self.problem.constraints[k - 1].account).ends(self.n_arms)

    def scale(self, k: int) -> FloatArray:
        """Sub-Gaussian scale of an outcome, per arm."""
        return (self.problem.reward_account if k == 0 else self.problem.constraints[k - 1].account).scale(self.n_arms)

    @property
    def average(self) -> FloatArray:
        """The answer: the average over the blocks, weighed by their pulls."""
        total = sum(block.size for block in self.blocks)
        return np.asarray(sum(block.size * block.answer for block in self.blocks) / total)


# Coefficients and statistics, straight from the table of claims.


def coefficients(claim: str, draw: Draw, k: int, block: Pulls, q: FloatArray) -> FloatArray:
    """c of one pull of each arm, in the user's units; rows `>=` enter with a minus."""
    f = block.size / block.counts
    if claim == REWARD:
        return np.asarray(-f * (q - block.answer))
    if claim == ROW:
        return np.asarray(draw.sign(k) * f * q)
    return np.asarray(-draw.sign(k) * f * block.answer)


def statistic(claim: str, draw: Draw, k: int, q: FloatArray, r: float) -> float:
    """D: what the martingale is at least if the claim is false."""
    total = 0.0
    for block in draw.blocks:
        means: FloatArray = np.array([told[:, k].mean() for told in block.outcomes])
        if claim == REWARD:
            total += block.size * (r - float(means @ (q - block.answer)))
        elif claim == ROW:
            total += block.size * draw.sign(k) * (float(means @ q) - draw.bound(k))
        else:
            total -= block.size * draw.sign(k) * (float(means @ block.answer) - draw.bound(k))
    return total


def martingale(claim: str, draw: Draw, k: int, q: FloatArray, means: FloatArray) -> float:
    """M: the sum of c (X - mean), for these true means (K,)."""
    return sum(
        float(c * (told[:, k] - mean).sum())
        for block in draw.blocks
        for c, told, mean in zip(coefficients(claim, draw, k, block, q), block.outcomes, means, strict=True)
    )


def precision(claim: str, draw: Draw, k: int, q: FloatArray) -> float:
    """Lambda of a claim, from what was fixed at the start, in the user's units."""
    lam_tau = draw.start.precision[k] / draw.unit(k) ** 2
    anchor = draw.start.anchor
    if claim == REWARD:
        return float(lam_tau @ ((q - anchor) ** 2 + 0.3 * anchor**2))
    return float(lam_tau @ (q**2 if claim == ROW else anchor**2))


# Accounts, pull by pull.


@dataclass(frozen=True)
class Group:
    """Pulls of one arm in one block, which share c, the guess and the account: their number and the sum of xi^2.

    `side` is how far an outcome can lie from the guess on the side that lowers c (X - guess); `factor` is the guard's.
    """

    arm: int
    c: float
    pulls: float
    squares: float
    side: float
    width: float
    scale: float
    factor: float
    coarse: bool
    expected: float


def guard_factor_of(outcomes: FloatArray, f: FloatArray) -> float:
    """max(1, 80 / n_eff)^2, from outcomes and their weights f; infinite without variation."""
    weights = f**2
    away = outcomes - (weights @ outcomes) / weights.sum()
    if np.ptp(outcomes) == 0.0:
        return math.inf
    return max(1.0, GUARDED * float((f**4) @ away**4) / float(weights @ away**2) ** 2) ** 2


def guard_factor(draw: Draw, k: int, arm: int) -> float:
    """The guard's factor of an arm, from all outcomes since the start."""
    outcomes = np.concatenate([block.outcomes[arm][:, k] for block in draw.blocks])
    f = np.concatenate([np.full(len(b.outcomes[arm]), b.size / len(b.outcomes[arm])) for b in draw.blocks])
    return guard_factor_of(outcomes, f)


def groups(claim: str, draw: Draw, k: int, q: FloatArray) -> list[Group]:
    """Everything that the account of a claim is made of."""
    kind, (low, high), made = draw.account(k), draw.ends(k), []
    # Which account a pull of a row at the answer has is chosen by the variance expected; elsewhere, at the start.
    for block in draw.blocks:
        for a, c in enumerate(coefficients(claim, draw, k, block, q)):
            guess = block.guesses[k, a]
            below, above = guess - low[a], high[a] - guess
            # The reward's sign depends on q, so the larger side is used for both signs.
            side = max(below, above) if claim == REWARD else (below if c > 0.0 else above)
            made.append(
                Group(
                    arm=a,
                    c=float(c),
                    pulls=float(len(block.outcomes[a])),
                    squares=float(((block.outcomes[a][:, k] - guess) ** 2).sum()),
                    side=float(side),
                    width=float(high[a] - low[a]),
                    scale=float(draw.scale(k)[a]),
                    factor=guard_factor(draw, k, a) if kind == "estimated" and c != 0.0 else 1.0,
                    coarse=claim != ANSWER and bool(draw.start.coarse[k, a]),
                    expected=float(block.variances[k, a]) if claim == ANSWER else 0.0,
                )
            )
    return made


def account(kind: str, group: Group, x: FloatArray) -> FloatArray:
    """The account of a group of pulls at each x, summed over its pulls."""
    square = x**2 * group.c**2
    if group.c == 0.0:
        return np.zeros_like(x)
    if kind == "declared":
        return np.asarray(0.5 * square * group.pulls * group.scale**2)
    if kind == "estimated":
        return np.asarray(0.5 * square * group.factor * group.squares)
    u = x * abs(group.c) * group.side
    learned = price(np.minimum(u, LEARNABLE))
    use = (u <= LEARNABLE) & (not group.coarse)
    if group.expected > 0.0:
        use &= learned * group.expected < 0.25 * group.width**2
    return np.where(use, 0.5 * square * learned * group.squares, 0.125 * square * group.pulls * group.width**2)


def total_account(kind: str, made: list[Group], x: FloatArray) -> FloatArray:
    """The account of all pulls at each x."""
    return np.asarray(sum(account(kind, group, x) for group in made))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def log_mixture_integral(kind: str, made: list[Group], lam: float, d: float) -> float:
    """log of the mixture over x > 0, half-normal of precision lam, of exp(x d - account(x)), by quadrature."""
    # Where accounts change their form they jump: panels end there.
    jumps = [LEARNABLE / (abs(g.c) * g.side) for g in made if kind == "range" and g.c != 0.0 and g.side > 0.0]
    # exp(x d - lam x^2/2) is below e^-60 times its largest value beyond this.
    far = max(d, 0.0) / lam + 11.0 / math.sqrt(lam)
    probe = np.geomspace(1e-9 * far, far, 4000)
    exponent = probe * d - total_account(kind, made, probe) - 0.5 * lam * probe**2
    alive = probe[exponent > max(float(exponent.max()), 0.0) - 45.0]
    far = float(alive.max()) * 1.01
    ends = np.unique(np.concatenate([np.linspace(0.0, far, 401), [x for x in jumps if x < far]]))
    half = 0.5 * np.diff(ends)
    x = (0.5 * (ends[1:] + ends[:-1])[:, None] + half[:, None] * _NODES).ravel()
    weights = (half[:, None] * _WEIGHTS).ravel()
    exponent = x * d - total_account(kind, made, x) - 0.5 * lam * x**2
    top = float(exponent.max())
    return top + math.log(float(weights @ np.exp(exponent - top))) + 0.5 * math.log(2.0 * lam / math.pi)


# Random problems and blocks.


def _ends(rng: Generator, per_arm: bool, n_arms: int) -> tuple[float, float] | tuple[tuple[float, float], ...]:
    def pair() -> tuple[float, float]:
        low = float(rng.choice([0.0, rng.normal()]))
        return low, low + float(10.0 ** rng.uniform(-1.0, 1.0))

    return tuple(pair() for _ in range(n_arms)) if per_arm else pair()


def draw_problem(rng: Generator, n_arms: int, n_rows: int, kind: str | None = None, known: bool = False) -> Problem:
    """A problem with random accounts (or one of them everywhere), senses, bounds and per-arm declarations."""

    def declare(prefix: str) -> dict[str, Any]:
        chosen = kind or str(rng.choice(ACCOUNTS))
        if chosen == "declared":
            per_arm = rng.random() < 0.5
            stds = 10.0 ** rng.uniform(-1.0, 1.0, size=n_arms)
            return {f"{prefix}std": tuple(stds.tolist()) if per_arm else float(stds[0])}
        if chosen == "range":
            return {f"{prefix}range": _ends(rng, rng.random() < 0.5, n_arms)}
        return {}

    rows = []
    for i in range(n_rows):
        row: dict[str, Any] = {"name": f"row {i}", "sense": str(rng.choice(["<=", ">="]))}
        if known and i == 0:
            costs = rng.normal(size=n_arms)
            edge = float(np.quantile(costs, 0.5))
            row |= {"row": tuple(costs.tolist()), "bound": edge}
        else:
            row |= {"bound": float(rng.normal()), **declare("")}
        rows.append(row)
    r = float(rng.uniform(0.01, 0.3))
    stated: dict[str, Any] = {"arms": n_arms, "constraints": rows, "delta": 0.1, "r": r, **declare("reward_")}
    return Problem(**stated)


def draw_outcomes(rng: Generator, problem: Problem, arm: int, n: int, means: FloatArray) -> FloatArray:
    """Outcomes (n, 1 + d) of an arm: two-point or beta within a range, Gaussian or skewed outside; correlated."""
    told = np.zeros((n, means.shape[0]))
    shared = rng.random(n)
    for k in range(means.shape[0]):
        account = problem.reward_account if k == 0 else problem.constraints[k - 1].account
        uniform = shared if rng.random() < 0.5 else rng.random(n)
        if account.kind == "range":
            low, high = (ends[arm] for ends in account.ends(problem.n_arms))
            share = (means[k, arm] - low) / (high - low)
            if k % 2 == 0:
                told[:, k] = np.where(uniform < share, high, low)
            else:
                told[:, k] = low + (high - low) * rng.beta(8.0 * share, 8.0 * (1.0 - share), size=n)
        else:
            std = 1.0 if account.kind == "estimated" else account.scale(problem.n_arms)[arm]
            told[:, k] = means[k, arm] + std * rng.standard_normal(n)
    return told


def draw_means(rng: Generator, problem: Problem) -> FloatArray:
    """True means (1 + d, K), inside the ranges."""
    accounts = [problem.reward_account] + [c.account for c in problem.constraints]
    means = np.zeros((len(accounts), problem.n_arms))
    for k, one in enumerate(accounts):
        means[k] = rng.normal(size=problem.n_arms)
        if one.kind == "range":
            low, high = one.ends(problem.n_arms)
            means[k] = low + (high - low) * np.clip(rng.beta(0.5, 0.5, size=problem.n_arms), 0.02, 0.98)
    return means


def _observe(estimates: Estimates, model: Model, arm: int, told: FloatArray) -> None:
    for row in told:
        record(estimates, model, arm, float(row[0]), np.ascontiguousarray(row[1:]))


def draw_start(rng: Generator, problem: Problem, n_blocks: int, most: int = 40) -> Draw:
    """Pulls before a start, then blocks of random plans, told to the library as its stop tells them."""
    model, K = build_model(problem), problem.n_arms
    d = problem.n_constraints
    means = draw_means(rng, problem)
    estimates = make_estimates(model)
    variances, kurtoses = np.zeros((1 + d, K)), np.zeros((1 + d, K))
    for a in range(K):
        _observe(estimates, model, a, draw_outcomes(rng, problem, a, int(rng.integers(2, 40)), means))
    mark(estimates, model)
    expect_spread(estimates, model, variances, kurtoses)
    start = library.make_start(int(rng.integers(0, 6)), 0.9 * problem.delta, model)
    expected = float(10.0 ** rng.uniform(0.5, 4.0))
    library.begin(
        start, model, expected, rng.dirichlet(np.full(K, 3.0)), _draw_mix(rng, K), variances, estimates.guesses
    )
    factors = np.concatenate([[1.0], model.factors])[:, None]
    # An answer that holds still but for one small block: its pulls have by far the largest coefficients at that answer.
    still = _draw_mix(rng, K) if rng.random() < 0.3 else None
    blocks, table = [], library.make_record(n_blocks, K, d)
    for k in range(n_blocks):
        answer, counts = _draw_mix(rng, K), rng.integers(1, most, size=K)
        if rng.random() < 0.3:
            counts[rng.integers(K)] = 1
        if still is not None:
            answer, counts = (answer, np.full(K, 2)) if k == 0 else (still, np.full(K, most))
        table.answers[k], table.counts[k] = answer, counts
        table.guesses[k], table.variances[k] = estimates.guesses, variances
        outcomes = [draw_outcomes(rng, problem, a, int(counts[a]), means) for a in range(K)]
        blocks.append(Pulls(answer, table.guesses[k] / factors, variances / factors**2, outcomes))
        for a in rng.permutation(K):
            _observe(estimates, model, int(a), outcomes[a])
        table.powers[k] = estimates.powers
        library.add_recorded(start, model, table, k)
        mark(estimates, model)
        expect_spread(estimates, model, variances, kurtoses)
    return Draw(problem, model, start, table, blocks)


def _draw_mix(rng: Generator, n_arms: int) -> FloatArray:
    mix = rng.dirichlet(np.full(n_arms, rng.choice([0.3, 1.0, 10.0])))
    mix[mix < rng.choice([0.0, 0.05])] = 0.0
    return np.asarray(mix / mix.sum())


def draw_witness(rng: Generator, draw: Draw) -> FloatArray:
    """A mix: any, few arms, close to the answer, or the answer itself."""
    choice = rng.integers(4)
    if choice == 0:
        return draw.average
    mix = _draw_mix(rng, draw.n_arms)
    if choice == 1:
        mix = 0.95 * draw.average + 0.05 * mix
    return np.asarray(mix / mix.sum())
