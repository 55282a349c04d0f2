"""What the library states of blocks, held against `oracle.martingale`: each check returns how far it is from failing.

The same checks run on the library as it is (`unit/test_lemma.py`) and with one condition of the proof dropped at a time
(`unit/test_mutations.py`), where they must fail.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from oracle.joint import FLAVOURS, Case, draw_case, draw_mixes, largest_values, remade, sums_of_evidence
from oracle.martingale import (
    ANSWER,
    REWARD,
    ROW,
    Draw,
    Group,
    draw_witness,
    groups,
    log_mixture_integral,
    precision,
    statistic,
    total_account,
)
from oracle.reference import FloatArray, Generator
from polyarm import Problem
from polyarm.accounts import guess_mean
from polyarm.certify import blocks, constants, cuts, lemma
from polyarm.certify import evidence as evidences
from polyarm.certify.evidence import Evidence, make_evidence
from polyarm.certify.lemma import log_mixture
from polyarm.model import Model, build_model

CLAIMS = (REWARD, ROW, ANSWER)
#: How far a witness may be beyond a known row, and a little more.
KNOWN_ROW = 1.01e-9


@dataclass(frozen=True)
class Weighed:
    """What the library makes of a start: the evidence of every witness."""

    evidence: Evidence


def weigh(draw: Draw) -> Weighed:
    """Let the library write its evidence."""
    model = draw.model
    made = make_evidence(model.reward_noise.size, model.known.size, blocks.count_variants(model))
    sums = blocks.make_sums(model)
    blocks.write_block_evidence(draw.start, model, draw.record, draw.problem.r, sums, made)
    return Weighed(made)


class Part(NamedTuple):
    """One variant of a coordinate at a witness: the library's D, S and Lambda, in the user's units; what is true."""

    k: int
    v: int
    account: str
    statistic: float
    variance: float
    prior: float
    reach: float
    groups: list[Group]
    lam: float


def _parts(draw: Draw, weighed: Weighed, q: FloatArray) -> Iterator[Part]:
    for k, n_variants in enumerate(weighed.evidence.variants):
        if n_variants == 0:
            continue
        claim, unit = (REWARD if k == 0 else ROW), draw.unit(k)
        made, lam = groups(claim, draw, k, q), precision(claim, draw, k, q)
        for v in range(n_variants):
            d, s, prior = evidences.statistic_at(weighed.evidence, k, v, q)
            reach = float(weighed.evidence.reaches[k, v])
            yield Part(k, v, draw.account(k), d / unit, s / unit**2, prior / unit**2, reach, made, lam)


def _unvaried(part: Part) -> bool:
    return any(group.factor == math.inf for group in part.groups)


def disagreement(draw: Draw, weighed: Weighed, q: FloatArray) -> float:
    """The largest relative error of D and Lambda at q, and at the answer."""
    worst = 0.0
    for part in _parts(draw, weighed, q):
        claim = REWARD if part.k == 0 else ROW
        true = statistic(claim, draw, part.k, q, draw.problem.r)
        worst = max(worst, abs(part.statistic - true) / (1.0 + abs(true)), abs(part.prior / part.lam - 1.0))
        worst = max(worst, part.prior / part.variance - 1.0)
    for i in draw.problem.unknown:
        true = statistic(ANSWER, draw, 1 + i, draw.average, 0.0)
        worst = max(worst, abs(draw.start.slack[i] / draw.unit(1 + i) - true) / (1.0 + abs(true)))
        lam = precision(ANSWER, draw, 1 + i, draw.average)
        worst = max(worst, abs(draw.start.priors[i] / draw.unit(1 + i) ** 2 / lam - 1.0))
    return worst


def largest_account(draw: Draw, weighed: Weighed, q: FloatArray, stretch: float = 1.0) -> float:
    """The largest account(x)/(x^2 V/2) for x <= Y/sqrt(S): at most one. `stretch` makes the reach longer (wrongly)."""
    worst = 0.0
    for part in _parts(draw, weighed, q):
        variance = part.variance - part.lam
        if _unvaried(part) or variance <= 1e-12 * part.variance:
            continue
        x = np.linspace(1e-3, 1.0, 300) * stretch * min(part.reach, 30.0) / math.sqrt(part.variance)
        ratio = total_account(part.account, part.groups, x) / (0.5 * x**2 * variance)
        worst = max(worst, float(ratio.max()))
    return worst


def evidence_gaps(
    draw: Draw, weighed: Weighed, q: FloatArray, rng: Generator, cheaper: float = 1.0
) -> Iterator[tuple[str, float]]:
    """By how much the true mixture exceeds what is stated, for D as it came and for one of several sqrt(S).

    `cheaper` divides the price of the mixture (wrongly).
    """
    for part in _parts(draw, weighed, q):
        if _unvaried(part):
            continue
        for d in (part.statistic, float(rng.uniform(0.3, 6.0)) * math.sqrt(part.variance)):
            if d > 0.0:
                stated = log_mixture(d / math.sqrt(part.variance), part.reach)
                stated -= 0.5 * math.log(cheaper * part.variance / part.prior)
                yield part.account, log_mixture_integral(part.account, part.groups, part.lam, d) - stated


def largest_claim(draw: Draw, weighed: Weighed, q: FloatArray, rng: Generator) -> float:
    """The largest value of a coordinate that is asked for a little more evidence than the true mixture has.

    Statistics are moved to where they matter, several sqrt(S).
    """
    worst, evidence = 0.0, weighed.evidence
    first = {part.k: part for part in _parts(draw, weighed, q) if part.v == 0}
    for k, part in first.items():
        if _unvaried(part):
            continue
        wanted = float(rng.uniform(1.5, 5.0)) * math.sqrt(part.variance)
        evidence.gains[k] += (wanted - part.statistic) * draw.unit(k)  # q sums to one
        true = log_mixture_integral(part.account, part.groups, part.lam, wanted)
        if true > 0.05:
            evidence.levels[k] = true + 1e-6
            worst = max(worst, float(evidences.coordinate_value(evidence, k, q)))
    return worst


def _log_points_mixture(kind: str, made: list[Group], lam: float, d: float) -> float:
    """log of the mixture over the points that are fixed at the start, with the weights of a half-normal."""
    x = np.geomspace(0.004, 5.0, constants.POINTS) / math.sqrt(lam)
    weights = x * np.exp(-0.5 * lam * x**2)
    exponent = x * d - total_account(kind, made, x)
    top = float(exponent.max())
    return top + math.log(float(weights @ np.exp(exponent - top)) / float(weights.sum()))


def answer_gaps(draw: Draw, rng: Generator) -> Iterator[float]:
    """Evidence of each row at the answer, less the true mixture's, for D as it came and for several sqrt(S)."""
    for i in draw.problem.unknown:
        kind, made = draw.account(1 + i), groups(ANSWER, draw, 1 + i, draw.average)
        lam, unit = precision(ANSWER, draw, 1 + i, draw.average), draw.unit(1 + i)
        if any(group.factor == math.inf for group in made):
            assert blocks.answer_evidence(draw.start, draw.model, i, 1e9) == -np.inf
            continue
        scale = math.sqrt(lam + 2e18 * float(total_account(kind, made, np.array([1e-9]))[0]))
        for d in (statistic(ANSWER, draw, 1 + i, draw.average, 0.0), float(rng.uniform(0.5, 6.0)) * scale):
            stated = float(blocks.answer_evidence(draw.start, draw.model, i, d * unit))
            if stated == -np.inf:
                assert d <= 0.0
            elif kind == "range":
                yield stated - _log_points_mixture(kind, made, lam, d)
            else:
                yield stated - log_mixture_integral(kind, made, lam, d)


def spent(n_unknown: int, delta: float) -> float:
    """What all claims of all starts spend together: a union."""
    total = 0.0
    for number in range(blocks.MAX_STARTS):
        reward, row, answer = blocks.share_delta(number, delta, n_unknown)
        total += reward + n_unknown * (row + answer)
    return total


# -- The average ------------------------------------------------------------------------------------------------------


def curvature(reach: float) -> float:
    """The largest second difference of log J(sqrt(s), Y) in s, up to the reach and beyond: not above zero."""
    end = min(reach + 29.0, 40.0)
    squares = np.unique(np.r_[np.linspace(0.0, end, 400) ** 2, np.linspace(0.0, 4.0, 200)])
    heights = np.array([lemma.log_mixture(float(z), reach) for z in np.sqrt(squares)])
    steps = np.diff(squares)
    return float(np.max(np.diff(np.diff(heights) / steps) * np.minimum(steps[1:], steps[:-1])))


def louder(case: Case, factors: FloatArray) -> Case:
    """The same case with the statistic of each coordinate so many times larger."""
    e = case.evidence
    return replace(case, evidence=remade(e, gains=factors[:, None, None] * e.gains, bases=factors[:, None] * e.bases))


def worth(case: Case, q: FloatArray, value: float) -> Case:
    """The same case with louder statistics, so that the library gives this value to a witness, or very nearly."""
    for _ in range(4):  # what is louder may be weighed by another variant
        found = float(evidences.witness_value(case.evidence, q))
        case = louder(case, np.full(case.evidence.variants.size, math.sqrt(value / found)))
    return case


def draw_refutable(rng: Generator, kind: int) -> tuple[Case, FloatArray]:
    """A case and a witness that it can refute; mostly several of its coordinates are about equally clear."""
    while True:
        n_arms, d = int(rng.integers(2, 7)), int(rng.integers(0, 5))
        case, q = draw_case(rng, n_arms, d, str(rng.choice(FLAVOURS)), kind), draw_mixes(rng, 1, n_arms)[0]
        factors = np.ones(1 + d)
        if rng.random() < 0.7:
            for k in range(1 + d):
                alone = float(evidences.coordinate_value(case.evidence, k, q))
                factors[k] = math.sqrt(rng.uniform(0.6, 1.0) / alone) if 1e-6 < alone < 1e6 else 1.0
        case = louder(case, factors)
        if 1e-6 < evidences.witness_value(case.evidence, q) < 1e6:
            return case, q


def sum_at(case: Case, q: FloatArray, value: float) -> float:
    """The sum of delta E once the library gives this value to a witness."""
    return float(sums_of_evidence(worth(case, q, value), q[None])[0])


def most_at_one(case: Case) -> float:
    """The largest sum of delta E that a value of 1 can stand for, with fixed thresholds: only what is spare is lost."""
    levels = case.evidence.levels[case.evidence.variants > 0, 0]
    return 1.0 + float(np.exp(-levels).sum()) + 1e-4


def sums_in_refuted_box(rng: Generator, case: Case, q: FloatArray) -> FloatArray | None:
    """The sums of delta E of mixes in a small box about a witness, if the library is sure that all have a value of 1.

    Values are near 1: the bound that the library finds is brought there.
    """
    width = float(10.0 ** rng.uniform(-3.0, 0.0))
    low, high = np.maximum(q - width * rng.random(q.size), 0.0), np.minimum(q + width * rng.random(q.size), 1.0)
    mixes = np.array(_mixes_in(rng, low, high, q, 20))
    mixes = mixes[np.isfinite(largest_values(case, mixes))]
    if not len(mixes):
        return None
    work = cuts.make_cut_work(*case.shape)
    for nearly in (0.85, 0.93, 0.98, 1.0001, 1.02, 1.1, 1.5):
        louder_case = worth(case, q, nearly)
        work.box.low[:], work.box.high[:], work.box.mix[:] = low, high, q
        cuts.write_cuts(louder_case.evidence, 1.0, work)
        if cuts.bound_box(louder_case.evidence, 0.0, 1.0, 1.0, work) > 1.0:
            return sums_of_evidence(louder_case, mixes)
    return None


# -- Boxes ------------------------------------------------------------------------------------------------------------


class BoxCheck(NamedTuple):
    """A box: its bound, the least value of mixes in it, and the largest S/Lambda over the bound on that."""

    lower: float
    least: float
    ratio: float


def least_value(evidence: Evidence, mixes: list[FloatArray]) -> float:
    """The least value of these mixes, each coordinate by its best variant; those that break a known row have none."""
    case = Case(evidence, mixes[0], mixes[0]).relaxed(KNOWN_ROW)
    return float(largest_values(case, np.array(mixes)).min())


def _mixes_in(rng: Generator, low: FloatArray, high: FloatArray, inside: FloatArray, number: int) -> list[FloatArray]:
    """Mixes in a box that contains one: points of the box, moved to where shares sum to one, and some corners."""
    made = [inside]
    for _ in range(number):
        q = low + (high - low) * rng.random(low.size) ** rng.choice([0.2, 1.0, 5.0])
        for _ in range(40):
            missing = 1.0 - q.sum()
            room = high - q if missing > 0.0 else q - low
            if abs(missing) < 1e-14 or not room.sum() > 0.0:
                break
            q = np.clip(q + missing * room / room.sum(), low, high)
        if abs(q.sum() - 1.0) < 1e-12:
            made.append(q)
    return made


def check_box(rng: Generator, draw: Draw, weighed: Weighed) -> BoxCheck:
    """Bound a random box of mixes, with statistics moved to where they matter at its centre."""
    evidence, K = weighed.evidence, draw.n_arms
    near = rng.random() < 0.7  # the cut, 1: what is just below is most easily passed over
    centre, width = draw_witness(rng, draw), float(10.0 ** rng.uniform(-4.0, -1.0 if near else 0.0))
    for k, n_variants in enumerate(evidence.variants):
        if n_variants > 0:
            d, s, _ = evidences.statistic_at(evidence, k, 0, centre)
            if s < 1e150:  # else an arm has never varied
                evidence.gains[k] += rng.uniform(-2.0, 8.0) * math.sqrt(s) - d
    work = cuts.make_cut_work(K, draw.problem.n_constraints)
    box = work.box
    box.low[:] = np.maximum(centre - width * rng.random(K), 0.0)
    box.high[:] = np.minimum(centre + width * rng.random(K), 1.0)
    box.mix[:] = centre
    mixes = _mixes_in(rng, box.low.copy(), box.high.copy(), centre, 30)
    least = least_value(evidence, mixes)
    if near and 1e-3 < least < math.inf:
        loudness = math.sqrt(rng.uniform(0.9, 1.1) / least)
        evidence.gains[:] *= loudness
        evidence.bases[:] *= loudness
    largest = 0.0
    for k, n_variants in enumerate(evidence.variants):
        for v in range(n_variants):
            bound = cuts._largest_ratio(evidence, k, v, box)
            for q in mixes:
                _, s, prior = evidences.statistic_at(evidence, k, v, q)
                largest = max(largest, s / prior / bound)
    cuts.write_cuts(evidence, 1.0, work)
    lower = cuts.bound_box(evidence, 0.0, float(10.0 ** rng.uniform(-1.0, 1.0)), 1.0, work)
    return BoxCheck(float(lower), least_value(evidence, mixes), largest)


# -- The supermartingale, over all paths of a small tree ----------------------------------------------------------


@dataclass
class _Path:
    """Pulls so far: the blocks told to the library, sums for guesses, and the martingale."""

    told: list[blocks.Told]
    totals: FloatArray
    pulls: FloatArray
    behind: float


_TREE_BLOCKS = 4
_Q = np.array([0.8, 0.2])
_EXPECTED = 10.0


def _tree_problem(account: str) -> Model:
    known: dict[str, Any] = {"std": 0.5} if account == "declared" else {"range": (0.0, 1.0)}
    reward: dict[str, Any] = {f"reward_{name}": value for name, value in known.items()}
    rows = [{"name": "cost", "bound": 0.5, **known}]
    stated: dict[str, Any] = {"arms": 2, "constraints": rows, "delta": 0.1, "r": 0.1, **reward}
    return build_model(Problem(**stated))


def _plan(claim: str, path: _Path) -> tuple[FloatArray, FloatArray]:
    """Answer and counts against us: bold while behind, careful while ahead; on the past alone."""
    if path.behind > 0.0:
        return np.array([0.0, 1.0]), np.array([1.0, 2.0 if claim == ROW else 1.0])
    return (np.array([0.7, 0.3]) if claim == REWARD else np.array([0.5, 0.5])), np.array([1.0, 1.0])


def _gain(claim: str, successes: FloatArray, counts: FloatArray, answer: FloatArray, means: FloatArray) -> float:
    """What a block adds to the martingale."""
    c = {REWARD: -(_Q - answer), ROW: _Q, ANSWER: -answer}[claim]
    return float(counts.sum() * (c @ (successes / counts - means)))


def _tell(
    model: Model, successes: FloatArray, counts: FloatArray, answer: FloatArray, guesses: FloatArray
) -> blocks.Told:
    """A block of outcomes 0 and 1, the same in reward and cost, as the library is told it."""
    powers, units = np.zeros((4, 2, 2)), np.array([1.0, model.factors[0]])[:, None]
    for n in range(4):
        powers[n] = successes * (1.0 - guesses) ** (n + 1) + (counts - successes) * (-guesses) ** (n + 1)
        powers[n] *= units ** (n + 1)
    return blocks.Told(answer.copy(), counts.copy(), np.vstack([guesses, guesses]) * units, powers)


def _stated(model: Model, claim: str, path: _Path, means: FloatArray) -> float:
    """The evidence that the library states where D is the martingale itself."""
    start = blocks.make_start(0, 0.1, model)
    half, unit = np.full(2, 0.5), float(model.factors[0])
    variances, middle = np.array([[0.2, 0.2], [0.2 * unit**2] * 2]), np.array([[0.5, 0.5], [0.5 * unit] * 2])
    blocks.begin(start, model, _EXPECTED, half, half, variances, middle)
    table = blocks.make_record(max(len(path.told), 1), 2, 1)
    for k, told in enumerate(path.told):
        table.answers[k], table.counts[k], table.guesses[k] = told.answer, told.counts, told.guesses
        table.powers[k], table.variances[k] = told.powers, variances
        blocks.add_recorded(start, model, table, k)
    weight = float(start.terms.weight)
    if claim == ANSWER:
        # The bound is 1/2: D = M - sum n_k (means - 1/2) p_k.
        d = float(start.slack[0] + unit * (means - 0.5) @ start.answer)
        return math.exp(blocks.answer_evidence(start, model, 0, d))
    evidence = make_evidence(2, 1, blocks.count_variants(model))
    blocks.write_block_evidence(start, model, table, 0.0, blocks.make_sums(model), evidence)
    k, best = (0 if claim == REWARD else 1), -math.inf
    shift = float(means @ (weight * _Q - start.answer)) if k == 0 else -weight * unit * float((means - 0.5) @ _Q)
    for v in range(evidence.variants[k]):
        d, s, prior = evidences.statistic_at(evidence, k, v, _Q)
        if d + shift > 0.0:
            found = log_mixture((d + shift) / math.sqrt(s), evidence.reaches[k, v])
            best = max(best, found - 0.5 * math.log(s / prior))
    return math.exp(best)


def expected_evidence(account: str, claim: str, chance: float, peeking: bool) -> float:
    """The exact expectation of the evidence after some blocks of outcomes 0 and 1, over all paths.

    `peeking` (wrongly): the answer is chosen (for a row at q: a bad block is left out) once the block's outcomes are
    known.
    """
    model, means = _tree_problem(account), np.array([chance, 0.5])

    def walk(path: _Path, left: int) -> float:
        if left == 0:
            return _stated(model, claim, path, means) if path.told else 1.0
        answer, counts = _plan(claim, path)
        total = 0.0
        for first in range(int(counts[0]) + 1):
            for second in range(int(counts[1]) + 1):
                successes = np.array([float(first), float(second)])
                weight = 1.0
                for hit, n, mean in zip((first, second), counts, means, strict=True):
                    weight *= math.comb(int(n), hit) * mean**hit * (1.0 - mean) ** (int(n) - hit)
                chosen, guesses, keep = answer, np.empty(2), True
                for a in range(2):
                    guesses[a] = guess_mean(path.totals[a], path.pulls[a], 0.0, 1.0)
                if peeking:
                    plans = (np.array([1.0, 0.0]), np.array([0.0, 1.0]))
                    chosen = max(plans, key=lambda p: _gain(claim, successes, counts, p, means))
                    keep = _gain(claim, successes, counts, chosen, means) > 0.0 or claim != ROW
                gain = _gain(claim, successes, counts, chosen, means) if keep else 0.0
                told = [*path.told, _tell(model, successes, counts, chosen, guesses)] if keep else path.told
                after = _Path(told, path.totals + successes, path.pulls + counts, path.behind - gain)
                total += weight * walk(after, left - 1)
        return total

    return walk(_Path([], np.array([1.0, 1.0]), np.array([2.0, 2.0]), 0.0), _TREE_BLOCKS)
