r"""What a plan is worth: the least ratio of a statistic to its threshold that an allocation and an answer lead to.

.. math:: \min_k \frac{f_k(w, p)}{\beta_k(w)}

over the cuts k: one cost statistic per unknown row, and g(q) for every witness q of a pool. The thresholds are those
that the test itself will use once T pulls have been made in proportions w.

A plan may be for what remains of an exploration whose first part is fixed (`Memory`). Its statistics are then those of
both parts together. Without one, the whole is planned.
"""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray
from polyarm.certify.pooled import Pricing, Worth, make_worth
from polyarm.certify.witnesses import Pool
from polyarm.model import Model
from polyarm.polytope.projection import ProjectionWork, make_projection_work

#: Less than any statistic over its threshold, yet its squares and small shares do not underflow.
TINY = 1e-100
#: Differences smaller than this share of what is subtracted are computed in another way.
_CANCELLED = 1e-6


class MemoryTerms(Scalars):
    """Numbers of a memory.

    `share`: how many of all pulls are still to be planned. `earned`: mean reward of the answers so far. `settled`: the
    spread that the reward term has already. `floor`: the least part of an unknown row in a witness's value.
    """

    share: float
    earned: float
    settled: float
    floor: float


@struct
class Memory:
    r"""What the first part of an exploration has fixed; every entry is already multiplied by its share of all pulls.

    With the planned part's share s, a witness q has the spread
    :math:`e + \sum_a \sigma_a^2 (v_a q_a^2 - 2 u_a q_a + s (q_a - p_a)^2 / w_a)` and the answer the mean reward
    :math:`m + s \mu^\top p`; likewise for rows. `spreads`, `cross` and `means` (K,): v, u and the mean rewards by which
    witnesses are judged; `slacks` and `bases` (d,): slack and spread of each row; `rows` (d, K): the costs by which
    witnesses are judged.
    """

    terms: MemoryTerms
    spreads: FloatArray
    cross: FloatArray
    means: FloatArray
    slacks: FloatArray
    bases: FloatArray
    rows: FloatArray


def make_memory(n_arms: int, n_constraints: int) -> Memory:
    """Allocate a memory; see `forget`."""
    k, d = n_arms, n_constraints
    return Memory(MemoryTerms(), np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(d), np.zeros(d), np.zeros((d, k)))


@struct
class Scene:
    """What stays fixed while planning: estimates (`mu`, `rows`), the problem, witnesses, thresholds, memory."""

    mu: FloatArray
    rows: FloatArray
    model: Model
    pool: Pool
    pricing: Pricing
    memory: Memory


@kernel
def forget(scene: Scene) -> None:
    """Write a memory of nothing: the whole exploration is to be planned, by the scene's estimates."""
    memory = scene.memory
    memory.terms.share = 1.0
    memory.terms.earned, memory.terms.settled, memory.terms.floor = 0.0, 0.0, 0.0
    for i in range(memory.slacks.size):
        memory.slacks[i], memory.bases[i] = 0.0, 0.0
    for a in range(memory.means.size):
        memory.spreads[a], memory.cross[a] = 0.0, 0.0
        memory.means[a] = scene.mu[a]
        for i in range(memory.slacks.size):
            memory.rows[i, a] = scene.rows[i, a]


@struct
class Score:
    """The cuts at one point (w, p): the d rows, then the active witnesses.

    `values` are f_k / beta_k; `slacks`, `lengths` and `row_lengths` their parts; `weights` those of the soft minimum.
    """

    values: FloatArray
    slacks: FloatArray
    lengths: FloatArray
    row_lengths: FloatArray
    weights: FloatArray
    worth: Worth


def _make_score(n_cuts: int, n_arms: int, n_constraints: int) -> Score:
    n = n_cuts
    return Score(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((n, n_constraints)), np.zeros(n), make_worth(n_arms))


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
    memory, known, row_noise = scene.memory, scene.model.known, scene.model.row_noise
    rows, effective, threshold = scene.rows, score.worth.effective, score.worth.thresholds.cost
    share = memory.terms.share
    for i in range(known.size):
        score.values[i] = np.inf
        if not known[i]:
            slack, length = 0.0, 0.0
            for a in range(answer.size):
                slack -= rows[i, a] * answer[a]
                length += answer[a] * answer[a] * row_noise[i, a] / effective[a]
            slack = memory.slacks[i] + share * slack
            length = memory.bases[i] + share * length
            score.slacks[i] = slack
            score.lengths[i] = length
            if slack > 0.0:
                score.values[i] = max(0.5 * slack * slack / (length * threshold), TINY)
            else:
                score.values[i] = _below_zero(slack / math.sqrt(length))


@kernel
def look_from(scene: Scene, answer: FloatArray, score: Score, work: PlanWork) -> None:
    """Note the variance that the planned pulls leave of a unit of noise, and the answer's mean reward and norm."""
    effective, rates, noise, mu = score.worth.effective, work.rates, scene.model.reward_noise, scene.mu
    terms = scene.memory.terms
    mean, norm, share = 0.0, 0.0, terms.share
    for a in range(answer.size):
        rates[a] = share / effective[a]
        norm += noise[a] * answer[a] * answer[a] * rates[a]
        mean += mu[a] * answer[a]
    work.vantage.norm = norm
    work.vantage.worth = terms.earned + share * mean


@kernel
def _score_witness(scene: Scene, answer: FloatArray, j: int, work: PlanWork, score: Score) -> None:
    """Fill in the cut of the j-th active witness, as seen from `work.vantage`.

    Sums run over the arms that the witness mixes. The row length of a row whose part is at its floor is infinite: it
    does not change with the plan.
    """
    memory, rates, mixes, supports = scene.memory, work.rates, scene.pool.mixes, work.supports
    noise, row_noise, known = scene.model.reward_noise, scene.model.row_noise, scene.model.known
    spreads, cross = memory.spreads, memory.cross
    base, norm = memory.terms.settled, work.vantage.norm
    place, k, size = work.active[j], known.size + j, work.n_supports[j]
    gap, floor = scene.model.r + work.vantage.worth - work.means[j], 2.0 * memory.terms.floor
    length = base + norm
    for s in range(size):
        a = supports[j, s]
        q = mixes[place, a]
        fixed = spreads[a] * q - 2.0 * cross[a]
        length += noise[a] * q * (fixed + (q - 2.0 * answer[a]) * rates[a])
    if length < _CANCELLED * norm:  # the witness is nearly the answer, and only a sum of squares tells how nearly
        length = base
        for a in range(answer.size):
            q = mixes[place, a]
            fixed = q * (spreads[a] * q - 2.0 * cross[a])
            length += noise[a] * (fixed + (q - answer[a]) ** 2 * rates[a])
    score.lengths[k] = max(length, 1e-30)
    score.slacks[k] = max(gap, 0.0)
    value = score.slacks[k] * score.slacks[k] / score.lengths[k]
    for i in range(known.size):
        part, excess = 0.0, work.excess[j, i]
        if excess > 0.0:
            length = 0.0
            for s in range(size):
                a = supports[j, s]
                length += mixes[place, a] ** 2 * row_noise[i, a] * (spreads[a] + rates[a])
            score.row_lengths[k, i] = length
            part = excess * excess / length
        if part < floor and not known[i]:
            score.row_lengths[k, i] = np.inf
            part = floor
        value += part
    if value > 0.0:
        score.values[k] = max(0.5 * value / score.worth.thresholds.reward, TINY)
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
    mixes, memory, known = scene.pool.mixes, scene.memory, scene.model.known
    supports, place = work.supports, work.vantage.n_active
    mean, size = 0.0, 0
    for a in range(mixes.shape[1]):
        if mixes[k, a] != 0.0:
            supports[place, size] = a
            size += 1
            mean += memory.means[a] * mixes[k, a]
    work.n_supports[place] = size
    work.means[place] = mean
    for i in range(known.size):
        excess = 0.0
        if not known[i]:
            for s in range(size):
                a = supports[place, s]
                excess += memory.rows[i, a] * mixes[k, a]
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
