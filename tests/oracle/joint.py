"""References for evidence about witnesses: random evidence of every awkward kind, and dense searches for witnesses.

Nothing here imports polyarm's numerics but the container `Evidence`; every formula is written out again in numpy.
"""

import itertools
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import log_ndtr

from oracle.reference import BoolArray, FloatArray, Generator, IntArray
from polyarm.certify.evidence import FIXED, MIXED, TOGETHER, Evidence, EvidenceTerms

#: How the evidence may be awkward.
FLAVOURS = ("plain", "known", "per-arm", "integer", "unequal", "vertex", "unvaried", "everything")
KINDS = {"together": TOGETHER, "fixed": FIXED, "mixed": MIXED}
#: A deviation this far beyond the reach of a mixture counts as no larger.
FARTHEST = 30.0


@dataclass(frozen=True)
class Stated:
    """What an answer's evidence is made of: estimates, and the variances that they have.

    `levels` are what the reward and the rows must reach, where coordinates count alone.
    """

    mu: FloatArray
    rows: FloatArray
    mu_var: FloatArray
    row_var: FloatArray
    known: BoolArray
    answer: FloatArray
    r: float
    levels: tuple[float, float] = (1.0, 1.0)

    @property
    def shape(self) -> tuple[int, int]:
        """K and d."""
        return self.answer.size, self.known.size


def make_evidence(stated: Stated, kind: int = TOGETHER) -> Evidence:
    """Write evidence of one variant down, for coordinates that count together, or alone with fixed thresholds."""
    n_arms, d = stated.shape
    evidence = _allocate(n_arms, d, 1, kind)
    evidence.variants[:] = np.r_[1, np.where(stated.known, 0, 1)]
    evidence.known[:], evidence.known_rows[:] = stated.known, stated.rows
    p, v = stated.answer, stated.mu_var
    evidence.gains[:, 0] = np.vstack([-stated.mu, stated.rows])
    evidence.bases[0, 0] = stated.r + stated.mu @ p
    evidence.curves[:, 0] = np.vstack([v, stated.row_var])
    evidence.tilts[0, 0], evidence.fixed[0, 0] = v * p, float(v @ p**2)
    evidence.levels[:, 0] = np.r_[stated.levels[0], np.full(d, stated.levels[1])]
    return evidence


def mix_evidence(rng: Generator, stated: Stated, n_variants: int, unvaried: bool = False) -> Evidence:
    """Write evidence of blocks down, each coordinate in several variants: the variance of the statement and more.

    Every variant has a reach of its own, and states a larger variance for it; priors and the planned answer are near
    what they should be. `unvaried`: nothing is known of the variance of an arm.
    """
    n_arms, d = stated.shape
    evidence = _allocate(n_arms, d, n_variants, MIXED)
    evidence.known[:], evidence.known_rows[:] = stated.known, stated.rows
    anchor = rng.dirichlet(50.0 * stated.answer + 0.1)
    for k in range(1 + d):
        if k > 0 and stated.known[k - 1]:
            continue
        n = int(rng.integers(1, n_variants + 1))
        evidence.variants[k] = n
        variance = stated.mu_var if k == 0 else stated.row_var[k - 1]
        prior = 0.15 * variance * 10.0 ** rng.uniform(-0.5, 0.5, size=n_arms)
        moved = variance * stated.answer * rng.uniform(0.0, 0.2, size=n_arms)  # blocks had different answers
        reaches = np.sort(rng.choice([0.4, 0.7, 1.0, 1.5, 2.0, 3.2, np.inf], size=n, replace=False))
        for v in range(n):
            price = 1.0 + rng.exponential(size=n_arms) * (0.3 * min(reaches[v], 4.0)) ** 2
            learned = price * variance
            if unvaried and k > 0:
                learned[int(rng.integers(n_arms))] = 1e200
            evidence.reaches[k, v], evidence.levels[k, v] = reaches[v], stated.levels[min(k, 1)]
            evidence.curves[k, v], evidence.prior_curves[k, v] = learned + prior, prior
            if k > 0:
                evidence.gains[k, v] = stated.rows[k - 1]
                continue
            p = stated.answer
            evidence.gains[0, v], evidence.bases[0, v] = -stated.mu, stated.r + stated.mu @ p
            evidence.tilts[0, v], evidence.prior_tilts[0, v] = learned * p + prior * anchor, prior * anchor
            rest = 1.3 * float(prior @ anchor**2)
            evidence.fixed[0, v] = float(learned @ p**2 + (price * moved) @ p) + rest
            evidence.prior_fixed[0, v] = rest
    return evidence


def _allocate(n_arms: int, d: int, n_variants: int, kind: int) -> Evidence:
    m, v, k = 1 + d, n_variants, n_arms
    return Evidence(
        terms=EvidenceTerms(kind=kind),
        variants=np.zeros(m, dtype=np.int64),
        gains=np.zeros((m, v, k)),
        bases=np.zeros((m, v)),
        curves=np.zeros((m, v, k)),
        tilts=np.zeros((m, v, k)),
        fixed=np.zeros((m, v)),
        prior_curves=np.zeros((m, v, k)),
        prior_tilts=np.zeros((m, v, k)),
        prior_fixed=np.zeros((m, v)),
        levels=np.ones((m, v)),
        reaches=np.full((m, v), np.inf),
        known=np.zeros(d, dtype=np.bool_),
        known_rows=np.zeros((d, k)),
        parts=np.zeros(m),
        steeps=np.zeros(m),
    )


def remade(evidence: Evidence, **changes: FloatArray | IntArray | BoolArray) -> Evidence:
    """A copy with some arrays replaced."""
    names = [name for name in Evidence.__annotations__ if name != "terms"]
    arrays = {name: np.ascontiguousarray(changes.get(name, getattr(evidence, name))).copy() for name in names}
    return Evidence(terms=EvidenceTerms(kind=int(evidence.terms.kind)), **arrays)


@dataclass(frozen=True)
class Case:
    """Evidence about an answer that satisfies the known rows, and a mix inside them."""

    evidence: Evidence
    answer: FloatArray
    inside: FloatArray

    @property
    def kind(self) -> int:
        """How coordinates are combined."""
        return int(self.evidence.terms.kind)

    @property
    def shape(self) -> tuple[int, int]:
        """K and d."""
        return self.answer.size, self.evidence.known.size

    def permuted(self, arms: IntArray, rows: IntArray) -> "Case":
        """The same case with arms and rows in another order."""
        e, coordinates = self.evidence, np.r_[0, 1 + rows]
        per_arm = ("gains", "curves", "tilts", "prior_curves", "prior_tilts")
        others = ("variants", "bases", "fixed", "prior_fixed", "levels", "reaches")
        evidence = remade(
            e,
            known=e.known[rows],
            known_rows=e.known_rows[rows][:, arms],
            **{name: getattr(e, name)[coordinates][:, :, arms] for name in per_arm},
            **{name: getattr(e, name)[coordinates] for name in others},
        )
        return Case(evidence, self.answer[arms].copy(), self.inside[arms].copy())

    def scaled(self, reward: float, rows: FloatArray) -> "Case":
        """The same case with rewards and rows in other units."""
        e, units = self.evidence, np.r_[reward, rows]
        evidence = remade(
            e,
            known_rows=rows[:, None] * e.known_rows,
            gains=units[:, None, None] * e.gains,
            bases=units[:, None] * e.bases,
            **{
                name: units[:, None, None] ** 2 * getattr(e, name)
                for name in ("curves", "tilts", "prior_curves", "prior_tilts")
            },
            **{name: units[:, None] ** 2 * getattr(e, name) for name in ("fixed", "prior_fixed")},
        )
        return Case(evidence, self.answer, self.inside)

    def relaxed(self, slack: float) -> "Case":
        """The same case with every known row `slack` easier to satisfy."""
        return replace(self, evidence=remade(self.evidence, known_rows=self.evidence.known_rows - slack))


def draw_mixes(rng: Generator, n: int, n_arms: int) -> FloatArray:
    """Mixes of few arms, of many, and of nearly one."""
    scores = rng.standard_gamma(rng.choice([0.1, 0.5, 1.0, 5.0], size=(n, 1)), size=(n, n_arms)) + 1e-12
    size = rng.integers(1, n_arms + 1, size=n)
    order = rng.random((n, n_arms)).argsort(axis=1).argsort(axis=1)
    scores = np.where(order < size[:, None], scores, 0.0)
    mixes: FloatArray = scores / scores.sum(axis=1, keepdims=True)
    return mixes


def draw_case(rng: Generator, n_arms: int, d: int, flavour: str, kind: int, most_variants: int = 4) -> Case:
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
    answer = _draw_answer(rng, mu, draw, known, inside, flavour)
    # Between "as good as the answer already is" and generous: statistics of every size.
    r = float(rng.uniform(0.05, 1.0)) + (0.0 if rng.random() < 0.3 else max(float(mu.max() - mu @ answer), 0.0))
    levels = (float(rng.uniform(2.0, 9.0)), float(rng.uniform(2.0, 9.0)))  # no share of delta is above exp(-2)
    stated = Stated(mu, draw, reward_noise / pulls, row_var, known, answer, r, levels)
    if kind != MIXED:
        return Case(make_evidence(stated, kind), answer, inside)
    unvaried = flavour == "unvaried" or (everything and rng.random() < 0.2)
    return Case(mix_evidence(rng, stated, most_variants, unvaried), answer, inside)


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


def log_mixture(z: FloatArray, reach: float) -> FloatArray:
    r"""log J(z, Y) for z >= 0, :math:`J = \sqrt{2/\pi} \int_0^Y \exp(y z - y^2/2) dy`."""
    z = np.minimum(z, reach + FARTHEST)
    upper = log_ndtr(reach - z) if np.isfinite(reach) else np.zeros_like(z)
    return np.asarray(np.log(2.0) + upper + np.log1p(-np.exp(log_ndtr(-z) - upper)) + 0.5 * z * z)


@cache
def _heights(reach: float) -> tuple[FloatArray, FloatArray]:
    """A fine grid of deviations, and log J there."""
    grid = np.linspace(0.0, min(reach + FARTHEST, 60.0), 4001)[1:]
    return grid, log_mixture(grid, reach)


def deviations(levels: FloatArray, reach: float) -> FloatArray:
    """The z with log J(z, Y) equal to each level; infinite where that is out of reach."""
    grid, heights = _heights(reach)
    z = np.interp(levels, heights, grid, left=grid[0], right=np.inf)
    for _ in range(2):  # the grid is fine, so Newton's method ends at once
        here = np.where(np.isfinite(z), z, 1.0)
        height = log_mixture(here, reach)
        slope = (log_mixture(here + 1e-5, reach) - height) / 1e-5
        z = np.where(np.isfinite(z), here - (height - levels) / slope, np.inf)
    return np.asarray(z)


def _parts(case: Case, k: int, mixes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of one coordinate at every mix, of every variant (V, n): the value, log(delta E), and how far that is below zero
    where D is zero."""
    e, n = case.evidence, int(case.evidence.variants[k])
    values, margins = np.zeros((n, len(mixes))), np.full((n, len(mixes)), -np.inf)
    steeps = np.full((n, len(mixes)), np.inf)
    for v in range(n):
        D = e.bases[k, v] + mixes @ e.gains[k, v]
        S = e.fixed[k, v] + mixes**2 @ e.curves[k, v] - 2.0 * mixes @ e.tilts[k, v]
        if k == 0 and case.kind != MIXED:  # a sum of squares: no cancellation next to the answer
            S = (mixes - case.answer) ** 2 @ e.curves[0, v]
        with np.errstate(divide="ignore", invalid="ignore"):
            square = np.where(D > 0.0, np.where(S > 0.0, D**2 / S, np.inf), 0.0)
        if case.kind == TOGETHER:
            values[v] = 0.5 * square
        elif case.kind == FIXED:
            values[v] = square / (2.0 * e.levels[k, v])
            steeps[v] = e.levels[k, v]
            margins[v] = np.where(D > 0.0, 0.5 * square - e.levels[k, v], -np.inf)
        else:
            L = e.prior_fixed[k, v] + mixes**2 @ e.prior_curves[k, v] - 2.0 * mixes @ e.prior_tilts[k, v]
            levels = e.levels[k, v] + 0.5 * np.log(S / L)
            values[v] = square / deviations(levels, e.reaches[k, v]) ** 2
            steeps[v] = levels - log_mixture(np.array(1e-12), e.reaches[k, v])
            margins[v] = np.where(D > 0.0, log_mixture(np.sqrt(square), e.reaches[k, v]) - levels, -np.inf)
    return values, margins, steeps


def _newton(w: FloatArray, a: FloatArray, begin: FloatArray) -> FloatArray:
    r"""The root v of :math:`\sum_k e^{a_k (w_k/v - 1)} = 1 + \sum_k e^{-a_k}` at every mix, by Newton's method in v.

    Of coordinates (m, n), of which the clearest is above zero.
    """
    spare, value = np.log1p(np.exp(-a).sum(axis=0)), begin.copy()
    says = np.isfinite(a)
    rises = np.where(says, a, 0.0) * w
    with np.errstate(all="ignore"):
        for _ in range(60):
            exponents = np.where(says, rises / value - a, -np.inf)
            highest = exponents.max(axis=0)
            shares = np.exp(exponents - highest)
            total = shares.sum(axis=0)
            slope = (shares * rises).sum(axis=0) / (total * value)
            step = np.maximum(np.nan_to_num((highest + np.log(total) - spare) / slope), -0.5)
            value *= 1.0 + step
            if np.abs(step).max(initial=0.0) < 1e-8:  # the next one would be its square
                break
    return value


def _average(parts: list[FloatArray], steeps: list[FloatArray]) -> FloatArray:
    """The root of `_newton` at every mix. Each coordinate has arrays (V, n): the variant with the largest term counts.

    At the root of any choice of variants, those that then have the largest terms have a root that is no smaller.
    """
    most = np.max([w.max(axis=0) for w in parts], axis=0)
    sure, says = np.isinf(most), (most > 0.0) & np.isfinite(most)
    where = np.flatnonzero(says)
    value = most[where]
    chosen: list[IntArray] = []
    for _ in range(20):
        before, chosen = chosen, []
        for w, a in zip(parts, steeps, strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                terms = np.exp(np.minimum(a[:, where] * (w[:, where] / value - 1.0), 700.0)) - np.exp(-a[:, where])
            chosen.append(np.nan_to_num(terms, nan=-np.inf).argmax(axis=0))
        if before and all(np.array_equal(x, y) for x, y in zip(before, chosen, strict=True)):
            break
        picked = [[x[v, where] for x, v in zip(all_of, chosen, strict=True)] for all_of in (parts, steeps)]
        value = _newton(np.array(picked[0]), np.array(picked[1]), value)
        if all(len(x) == 1 for x in parts):
            break
    found = np.where(sure, np.inf, 0.0)
    found[where] = value
    return found


def _combine(case: Case, mixes: FloatArray, best: bool) -> FloatArray:
    e, values, steeps = case.evidence, [np.zeros((1, len(mixes)))], [np.full((1, len(mixes)), np.inf)]
    for k in range(e.variants.size):
        if e.variants[k] == 0:
            continue
        found, margins, slopes = _parts(case, k, mixes)
        chosen = margins.argmax(axis=0)
        # Without a variant that speaks for it, the one with the largest statistic counts: its value is zero.
        for all_of, listed in ((found, values), (slopes, steeps)):
            listed.append(all_of if best else all_of[chosen, np.arange(len(mixes))][None])
    if case.kind == TOGETHER:
        total = np.sum([v.max(axis=0) for v in values], axis=0)
    else:
        total = _average(values, steeps)
    broken = np.any(mixes @ e.known_rows[e.known].T > 0.0, axis=1)
    return np.asarray(np.where(broken, np.inf, total))


def clearest_values(case: Case, mixes: FloatArray) -> FloatArray:
    """The value of every mix by the one coordinate that says most, as if the others said nothing."""
    used = [k for k in range(case.evidence.variants.size) if case.evidence.variants[k] > 0]
    return np.asarray(np.max([_parts(case, k, mixes)[0].max(axis=0) for k in used], axis=0))


def sums_of_evidence(case: Case, mixes: FloatArray) -> FloatArray:
    """The sum of delta_k E_k at every mix, each by the variant that states most: one or more refutes a mix."""
    total = np.zeros(len(mixes))
    for k in range(case.evidence.variants.size):
        if case.evidence.variants[k] > 0:
            total += np.exp(np.minimum(_parts(case, k, mixes)[1].max(axis=0), 700.0))
    return total


def witness_values(case: Case, mixes: FloatArray) -> FloatArray:
    """The value of every mix (n, K), by the formula; infinite where a known row is broken at all.

    A coordinate counts by the variant with the most evidence.
    """
    return _combine(case, mixes, best=False)


def largest_values(case: Case, mixes: FloatArray) -> FloatArray:
    """The same by the variant with the largest value: what bounds must stay below.

    All variants are valid, and at the threshold the two agree: a mix has a variant whose value is one or more exactly
    where the most evidence of a variant suffices.
    """
    return _combine(case, mixes, best=True)


def cancellations(case: Case, mixes: FloatArray) -> FloatArray:
    """How many times larger than the reward's variance at a mix (n, K) the numbers are that it is the difference of."""
    e, n = case.evidence, int(case.evidence.variants[0])
    times = np.ones(len(mixes))
    for v in range(n):
        plus, minus = e.fixed[0, v] + mixes**2 @ e.curves[0, v], 2.0 * mixes @ e.tilts[0, v]
        times = np.maximum(times, plus / np.maximum(plus - minus, 1e-300))
    return times


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
    values = largest_values(case, starts)
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
        found = np.concatenate([best_values, largest_values(case, moved), largest_values(case, taken)])
        keep = np.argsort(found)[:6]
        size *= 0.9 if found[keep[0]] < best_values[0] else 0.5
        best, best_values = pool[keep], found[keep]
    return float(best_values[0]), best[0]
