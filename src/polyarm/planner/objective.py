r"""What a plan is worth: the least ratio of a statistic to its threshold that an allocation and an answer lead to.

.. math:: \min_k \frac{f_k(w, p)}{\beta_k(w)}

over the cuts k: one cost statistic per unknown row, and the value of every witness q of a pool: the sum of its
coordinates, or the largest in terms of its threshold (the test averages them, which is mostly easier to pass). The
thresholds are those that the test itself will use once T pulls have been made in proportions w. (Plans for blocks:
`planner.prospect`.)
"""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray
from polyarm.certify.pooled import PROVED, Estimated, Pricing, Worth, make_worth
from polyarm.certify.witnesses import Pool
from polyarm.model import Model
from polyarm.polytope.projection import ProjectionWork, make_projection_work

#: Less than any statistic over its threshold, yet its squares and small shares do not underflow.
TINY = 1e-100
#: Differences smaller than this share of what is subtracted are computed in another way.
_CANCELLED = 1e-6


@struct
class Scene:
    """What stays fixed while planning: estimates, the problem, witnesses, how thresholds are computed."""

    estimated: Estimated
    model: Model
    pool: Pool
    pricing: Pricing


@struct
class Score:
    """The cuts at one point (w, p): the d rows, then the active witnesses.

    `values` are f_k / beta_k; `slacks`, `lengths` and `row_lengths` their parts, of which the counted ones add up to
    `totals`; `deciders` says which coordinate decides a witness alone (0: the reward, 1 + i: row i; -1: all together);
    `weights` those of the soft minimum.
    """

    values: FloatArray
    slacks: FloatArray
    lengths: FloatArray
    row_lengths: FloatArray
    totals: FloatArray
    deciders: IntArray
    weights: FloatArray
    worth: Worth


def _make_score(n_cuts: int, n_arms: int, n_constraints: int) -> Score:
    n = n_cuts
    return Score(
        values=np.zeros(n),
        slacks=np.zeros(n),
        lengths=np.zeros(n),
        row_lengths=np.zeros((n, n_constraints)),
        totals=np.zeros(n),
        deciders=np.full(n, -1),
        weights=np.zeros(n),
        worth=make_worth(n_arms),
    )


class Vantage(Scalars):
    """Where the cuts are seen from: the answer's mean reward (`worth`) and squared norm; `n_active` cuts count."""

    worth: float
    norm: float
    n_active: int


@struct
class PlanWork:
    """Scratch of the planner.

    Witnesses mix few arms: `supports` (capacity, K) lists those of each active one, `n_supports` how many they are.
    `rates` (K,) are the variances that the planned pulls leave, of the score that was evaluated last.
    """

    score: Score
    trial: Score
    vantage: Vantage
    active: IntArray
    is_active: IntArray
    supports: IntArray
    n_supports: IntArray
    rates: FloatArray
    means: FloatArray
    excess: FloatArray
    pulls: FloatArray
    direction: FloatArray
    moved: FloatArray
    projected: FloatArray
    multipliers: FloatArray
    safe_allocation: FloatArray
    safe_answer: FloatArray
    projection: ProjectionWork


def make_plan_work(pool: Pool, model: Model) -> PlanWork:
    """Allocate the scratch of planning against a pool."""
    c, n_arms = pool.mixes.shape
    d, n_known = model.known.size, int(model.known.sum())
    vectors = (np.zeros(n_arms) for _ in range(7))
    return PlanWork(
        score=_make_score(d + c, n_arms, d),
        trial=_make_score(d + c, n_arms, d),
        vantage=Vantage(),
        active=np.zeros(c, dtype=np.int64),
        is_active=np.zeros(c, dtype=np.int64),
        supports=np.zeros((c, n_arms), dtype=np.int64),
        n_supports=np.zeros(c, dtype=np.int64),
        rates=next(vectors),
        means=np.zeros(c),
        excess=np.zeros((c, d)),
        pulls=next(vectors),
        direction=next(vectors),
        moved=next(vectors),
        projected=next(vectors),
        multipliers=np.zeros(n_known),
        safe_allocation=next(vectors),
        safe_answer=next(vectors),
        projection=make_projection_work(n_arms, n_known),
    )


@kernel
def _below_zero(distance: float) -> float:
    """A value, smaller than any honest one, for a cut that is on the wrong side by this distance: less if farther.

    The statistics are flat at zero there, and an ascent needs to see which way is out.
    """
    return TINY * math.exp(max(distance, -100.0))


@kernel
def _score_rows(scene: Scene, answer: FloatArray, score: Score) -> None:
    """Fill in the cost statistics; known rows cost nothing and are infinitely far."""
    known, rows, noise = scene.model.known, scene.estimated.rows, scene.estimated.noise
    effective, threshold = score.worth.effective, score.worth.thresholds.cost
    for i in range(known.size):
        score.values[i] = np.inf
        if not known[i]:
            slack, length = 0.0, 0.0
            for a in range(answer.size):
                slack -= rows[i, a] * answer[a]
                length += answer[a] * answer[a] * noise[1 + i, a] / effective[a]
            score.slacks[i] = slack
            score.lengths[i] = length
            if slack > 0.0:
                score.values[i] = max(0.5 * slack * slack / (length * threshold), TINY)
            else:
                score.values[i] = _below_zero(slack / math.sqrt(length))


@kernel
def look_from(scene: Scene, answer: FloatArray, score: Score, work: PlanWork) -> None:
    """Note the variance that the planned pulls leave of a unit of noise, and the answer's mean reward and norm."""
    effective, rates, noise, mu = score.worth.effective, work.rates, scene.estimated.noise, scene.estimated.mu
    mean, norm = 0.0, 0.0
    for a in range(answer.size):
        rates[a] = 1.0 / effective[a]
        norm += noise[0, a] * answer[a] * answer[a] * rates[a]
        mean += mu[a] * answer[a]
    work.vantage.norm = norm
    work.vantage.worth = mean


@kernel
def _reward_length(scene: Scene, answer: FloatArray, j: int, work: PlanWork) -> float:
    """The variance of the reward between the j-th active witness and the answer; sums run over the witness's arms."""
    noise, mixes, supports, rates = scene.estimated.noise, scene.pool.mixes, work.supports, work.rates
    place, norm = work.active[j], work.vantage.norm
    length = norm
    for s in range(work.n_supports[j]):
        a = supports[j, s]
        q = mixes[place, a]
        length += noise[0, a] * q * (q - 2.0 * answer[a]) * rates[a]
    if length < _CANCELLED * norm:  # the witness is nearly the answer, and only a sum of squares tells how nearly
        length = 0.0
        for a in range(answer.size):
            length += noise[0, a] * (mixes[place, a] - answer[a]) ** 2 * rates[a]
    return max(length, 1e-30)


@kernel
def _score_witness(scene: Scene, answer: FloatArray, j: int, work: PlanWork, score: Score) -> None:
    """Fill in the cut of the j-th active witness, as seen from `work.vantage`."""
    noise, known, thresholds = scene.estimated.noise, scene.model.known, score.worth.thresholds
    place, k = work.active[j], known.size + j
    alone = scene.pricing.kind == PROVED
    gap = scene.model.r + work.vantage.worth - work.means[j]
    score.lengths[k] = _reward_length(scene, answer, j, work)
    score.slacks[k] = max(gap, 0.0)
    total = score.slacks[k] * score.slacks[k] / score.lengths[k]
    decider = 0 if alone else -1
    best = total / thresholds.reward
    for i in range(known.size):
        score.row_lengths[k, i] = np.inf
        excess = work.excess[j, i]
        if excess > 0.0:
            length = 0.0
            for s in range(work.n_supports[j]):
                a = work.supports[j, s]
                length += scene.pool.mixes[place, a] ** 2 * noise[1 + i, a] * work.rates[a]
            score.row_lengths[k, i] = length
            part = excess * excess / length
            if not alone:
                total += part
            elif part / thresholds.row > best:
                best, total, decider = part / thresholds.row, part, 1 + i
    score.totals[k], score.deciders[k] = total, decider
    value = best if alone else total / thresholds.reward
    if value > 0.0:
        score.values[k] = max(0.5 * value, TINY)
    else:
        score.values[k] = _below_zero(gap / math.sqrt(score.lengths[k]))


@kernel
def evaluate(scene: Scene, answer: FloatArray, sharpness: float, work: PlanWork, score: Score) -> float:
    """Fill in a score whose effective pulls and thresholds are set; returns its log-softmin."""
    n_active = work.vantage.n_active
    n_cuts = scene.model.known.size + n_active
    _score_rows(scene, answer, score)
    look_from(scene, answer, score, work)
    for j in range(n_active):
        _score_witness(scene, answer, j, work, score)
    values, weights = score.values, score.weights
    least = least_value(score, n_cuts)
    total = 0.0
    for k in range(n_cuts):
        share = least / values[k]
        weights[k] = math.pow(share, sharpness) if share >= 0.2 else 0.0
        total += weights[k]
    for k in range(n_cuts):
        weights[k] /= total
    return math.log(least) - math.log(total) / sharpness


@kernel
def least_value(score: Score, n_cuts: int) -> float:
    """The least ratio of the first cuts; NaN fails."""
    values, least = score.values, np.inf
    for k in range(n_cuts):
        if not values[k] >= least:
            least = values[k]
    return least


@kernel
def activate(scene: Scene, k: int, work: PlanWork) -> None:
    """List witness k of the pool among the active cuts."""
    mixes, known = scene.pool.mixes, scene.model.known
    mu, rows = scene.estimated.mu, scene.estimated.rows
    supports, place = work.supports, work.vantage.n_active
    mean, size = 0.0, 0
    for a in range(mixes.shape[1]):
        if mixes[k, a] != 0.0:
            supports[place, size] = a
            size += 1
            mean += mu[a] * mixes[k, a]
    work.n_supports[place] = size
    work.means[place] = mean
    for i in range(known.size):
        excess = 0.0
        if not known[i]:
            for s in range(size):
                a = supports[place, s]
                excess += rows[i, a] * mixes[k, a]
        work.excess[place, i] = max(excess, 0.0)
    work.active[place] = k
    work.is_active[k] = 1
    work.vantage.n_active = place + 1


@kernel
def value_of(scene: Scene, answer: FloatArray, k: int, work: PlanWork) -> float:
    """Value of a witness that is not active, computed in the next place of the trial score."""
    spare = work.vantage.n_active
    activate(scene, k, work)
    work.vantage.n_active = spare
    work.is_active[k] = 0
    _score_witness(scene, answer, spare, work, work.trial)
    return float(work.trial.values[scene.model.known.size + spare])
