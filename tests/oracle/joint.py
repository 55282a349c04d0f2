"""References for the joint statistics: random evidence of every awkward kind, and dense searches for witnesses.

Nothing here imports polyarm's numerics but the container `Evidence`; every formula is written out again in numpy.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from oracle.reference import BoolArray, FloatArray, Generator, IntArray
from polyarm.certify.evidence import Evidence, Terms

#: How the evidence may be awkward.
FLAVOURS = ("plain", "known", "per-arm", "integer", "unequal", "vertex", "averaged", "everything")


def make_evidence(
    mu: FloatArray,
    rows: FloatArray,
    mu_var: FloatArray,
    row_var: FloatArray,
    known: BoolArray,
    centre: FloatArray,
    tolerance: float,
    spread: float = 0.0,
    floor: float = 0.0,
) -> Evidence:
    """Write evidence down; that of single pulls has neither spread nor floor."""
    terms = Terms(tolerance=tolerance, spread=spread, floor=floor)
    return Evidence(
        mu.copy(),
        np.ascontiguousarray(rows),
        mu_var.copy(),
        np.ascontiguousarray(row_var),
        known.copy(),
        centre.copy(),
        terms,
    )


@dataclass(frozen=True)
class Case:
    """Evidence about an answer that satisfies the known rows (or a centre near one), and a mix inside them."""

    evidence: Evidence
    inside: FloatArray

    @property
    def answer(self) -> FloatArray:
        """What is to be beaten."""
        return self.evidence.centre

    @property
    def r(self) -> float:
        """By how much."""
        return float(self.evidence.terms.tolerance)

    @property
    def shape(self) -> tuple[int, int]:
        """K and d."""
        return self.answer.size, self.evidence.known.size

    def permuted(self, arms: IntArray, rows: IntArray) -> "Case":
        """The same case with arms and rows in another order."""
        e = self.evidence
        evidence = make_evidence(
            e.mu[arms],
            e.rows[rows][:, arms],
            e.mu_var[arms],
            e.row_var[rows][:, arms],
            e.known[rows],
            e.centre[arms],
            self.r,
            e.terms.spread,
            e.terms.floor,
        )
        return Case(evidence, self.inside[arms].copy())

    def scaled(self, reward: float, rows: FloatArray) -> "Case":
        """The same case with rewards and rows in other units."""
        e = self.evidence
        evidence = make_evidence(
            reward * e.mu,
            rows[:, None] * e.rows,
            reward**2 * e.mu_var,
            rows[:, None] ** 2 * e.row_var,
            e.known,
            e.centre,
            reward * self.r,
            reward**2 * e.terms.spread,
            e.terms.floor,
        )
        return Case(evidence, self.inside)

    def relaxed(self, slack: float) -> "Case":
        """The same case with every known row `slack` easier to satisfy."""
        e, t = self.evidence, self.evidence.terms
        rows = e.rows - slack * e.known[:, None]
        return Case(
            make_evidence(e.mu, rows, e.mu_var, e.row_var, e.known, e.centre, self.r, t.spread, t.floor), self.inside
        )


def draw_mixes(rng: Generator, n: int, n_arms: int) -> FloatArray:
    """Mixes of few arms, of many, and of nearly one."""
    scores = rng.standard_gamma(rng.choice([0.1, 0.5, 1.0, 5.0], size=(n, 1)), size=(n, n_arms)) + 1e-12
    size = rng.integers(1, n_arms + 1, size=n)
    order = rng.random((n, n_arms)).argsort(axis=1).argsort(axis=1)
    scores = np.where(order < size[:, None], scores, 0.0)
    mixes: FloatArray = scores / scores.sum(axis=1, keepdims=True)
    return mixes


def draw_case(rng: Generator, n_arms: int, d: int, flavour: str) -> Case:
    """Random evidence of one flavour; the answer has slack in most rows, so that the statistic is often positive."""
    everything = flavour == "everything"
    whole = flavour == "integer" or (everything and rng.random() < 0.3)
    draw = rng.integers(-2, 3, size=(d, n_arms)).astype(np.float64) if whole else rng.normal(size=(d, n_arms))
    known = rng.random(d) < (0.5 if flavour == "known" or everything else 0.0)
    if rng.random() < 0.5:
        best = int(rng.integers(n_arms))
        inside = np.eye(n_arms)[best]
        draw[:, best] = -np.abs(draw[:, best]) if whole else -np.abs(draw[:, best]) - 0.1
    else:
        inside = rng.dirichlet(np.ones(n_arms))
        draw -= (draw @ inside)[:, None] + rng.choice([0.0, 0.3, 1.0])
        draw[draw @ inside > 0.0] -= 1e-12
    unequal = flavour == "unequal" or (everything and rng.random() < 0.5)
    pulls = 10.0 ** (rng.uniform(-4.0, 4.0, size=n_arms) if unequal else rng.uniform(1.0, 3.0, size=n_arms))
    noise = np.ones((d, n_arms))
    if flavour == "per-arm" or everything:
        noise = 10.0 ** rng.uniform(-1.5, 1.5, size=(d, n_arms))
    row_var = np.where(known[:, None], 0.0, noise / pulls)
    mu = rng.normal(size=n_arms) * rng.choice([0.1, 1.0])
    reward_noise = 10.0 ** rng.uniform(-0.5, 0.5, size=n_arms) if everything else np.ones(n_arms)
    averaged = flavour == "averaged" or (everything and rng.random() < 0.5)
    spread, floor = (10.0 ** rng.uniform(-4.0, -1.0), rng.uniform(0.0, 1.5)) if averaged else (0.0, 0.0)
    answer = _draw_answer(rng, mu, draw, known, inside, flavour)
    if averaged:
        answer *= rng.uniform(0.8, 1.2, size=n_arms)  # the centre of an averaged certificate need not be a mix
    # Between "as good as the answer already is" and generous: statistics of every size.
    r = float(rng.uniform(0.05, 1.0)) + (0.0 if rng.random() < 0.3 else max(float(mu.max() - mu @ answer), 0.0))
    evidence = make_evidence(mu, draw, reward_noise / pulls, row_var, known, answer, r, spread, floor)
    return Case(evidence, inside)


def _draw_answer(
    rng: Generator, mu: FloatArray, rows: FloatArray, known: BoolArray, inside: FloatArray, flavour: str
) -> FloatArray:
    """A mix that satisfies the known rows: good, random, nearly one arm, or (vertex) exactly one."""
    n_arms = inside.size
    candidates = np.vstack([inside, draw_mixes(rng, 60, n_arms)])
    vertex = flavour == "vertex" or (flavour == "everything" and rng.random() < 0.3)
    if vertex:
        near = (1.0 - 1e-6) * np.eye(n_arms) + 1e-6 / n_arms
        candidates = np.vstack([inside, np.eye(n_arms), near])
    fits = np.all(candidates @ rows[known].T <= 0.0, axis=1) | (np.arange(len(candidates)) == 0)
    candidates = candidates[fits]
    if rng.random() < 0.7:
        broken = np.maximum(candidates @ rows.T, 0.0).sum(axis=1)
        return np.array(candidates[int(np.argmax(candidates @ mu - 10.0 * broken))])
    return np.array(candidates[int(rng.integers(len(candidates)))])


def witness_values(case: Case, mixes: FloatArray) -> FloatArray:
    """g of every mix (n, K), by the formula; infinite where a known row is broken at all."""
    e = case.evidence
    away = mixes - case.answer
    gap = np.maximum(case.r - away @ e.mu, 0.0)
    spread = away**2 @ e.mu_var + e.terms.spread
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(gap > 0.0, np.where(spread > 0.0, gap**2 / spread, np.inf), 0.0)
    for i in range(e.known.size):
        excess = mixes @ e.rows[i]
        if e.known[i]:
            total = np.where(excess > 0.0, np.inf, total)
        else:
            total += np.maximum(np.maximum(excess, 0.0) ** 2 / (mixes**2 @ e.row_var[i]), 2.0 * e.terms.floor)
    return 0.5 * total


def face_grid(n_arms: int, d: int, steps: int) -> FloatArray:
    """All mixes of d + 1 arms whose shares are multiples of 1/steps."""
    size = min(d + 1, n_arms)
    bars = np.array(list(itertools.combinations(range(steps + size - 1), size - 1)), dtype=np.int64)
    edges = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), steps + size - 1)])
    shares = (np.diff(edges, axis=1) - 1) / steps
    grid = []
    for arms in itertools.combinations(range(n_arms), size):
        mixes = np.zeros((len(shares), n_arms))
        mixes[:, arms] = shares
        grid.append(mixes)
    return np.vstack(grid)


def search_densely(rng: Generator, case: Case, n: int = 300, rounds: int = 12) -> tuple[float, FloatArray]:
    """The smallest witness value that random mixes, grids over faces and local random search find, and its mix."""
    n_arms, d = case.shape
    mixes = [np.eye(n_arms), draw_mixes(rng, n, n_arms)]
    if n_arms <= 4:
        mixes.append(face_grid(n_arms, d, 24 if d < 3 else 12))
    starts = np.vstack(mixes)
    if case.evidence.known.any():
        starts = np.vstack([starts, case.inside, 0.5 * (starts + case.inside), 0.1 * starts + 0.9 * case.inside])
    values = witness_values(case, starts)
    keep = np.argsort(values)[:6]
    best, best_values = starts[keep], values[keep]
    size = 0.3
    for _ in range(rounds):
        near = case.answer / case.answer.sum()
        ends = np.vstack([np.eye(n_arms), draw_mixes(rng, 10, n_arms), case.inside, near])
        share = size * rng.random((len(best), len(ends), 1))
        moved = (best[:, None, :] * (1.0 - share) + share * ends[None, :, :]).reshape(-1, n_arms)
        # The other way: take from one arm what it has.
        taken = np.maximum(best[:, None, :] * (1.0 - size * np.eye(n_arms)[None]), 0.0).reshape(-1, n_arms)
        taken /= taken.sum(axis=1, keepdims=True) + 1e-300
        pool = np.vstack([best, moved, taken])
        found = np.concatenate([best_values, witness_values(case, moved), witness_values(case, taken)])
        keep = np.argsort(found)[:6]
        size *= 0.9 if found[keep[0]] < best_values[0] else 0.5
        best, best_values = pool[keep], found[keep]
    return float(best_values[0]), best[0]
