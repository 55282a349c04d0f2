"""Planning blocks: allocation and answer together, again and again as estimates move.

First as if nothing had been earned, which keeps a plan from being tied to what luck has brought so far. Then, about
that plan, for what remains of the start that is nearest to a proof.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray
from polyarm.certify.blocks import Record, Start
from polyarm.certify.evidence import Evidence
from polyarm.certify.witnesses import Pool
from polyarm.estimates import Estimates, expect_spread
from polyarm.model import Model
from polyarm.planner.prospect import (
    Claims,
    Prospect,
    ProspectWork,
    cost_steeper,
    foresee,
    list_witnesses,
    look_ahead,
    make_prospect,
    make_prospect_work,
    recall,
    tabulate_thresholds,
    weigh_plan,
    write_slopes,
)
from polyarm.polytope.projection import PROJECTED, ProjectionWork, make_projection_work, project_polytope
from polyarm.round import schedule_next

#: Shares of an answer are floored by this while it is planned: a share of zero could never grow again.
LEAST_SHARE = 1e-5
#: No arm's planned share of the pulls falls below this, or below this part of an equal share.
_LEAST_ALLOCATION, _LEAST_PART = 0.004, 0.1
#: Claims this close to the least one, in logarithms, are climbed; the others are looked at again every few steps.
_ACTIVE, _RECHECK = 0.6, 6
#: The most claims that one step looks at, and how they are weighed.
_BUNDLE = 20
_WEIGHINGS, _WEIGHED = 80, 1e-4
#: Steps tried for a plan from nothing, for a challenger, and for what remains.
_ITERATIONS, _CHALLENGER_ITERATIONS, _REST_ITERATIONS = 18, 36, 12
#: Lengths of steps: a fresh one, near a plan, the least and the largest; how they grow and shrink; and how far a
#: logarithm may move in one.
_FRESH, _FRESH_NEAR, _SHORTEST, _LONGEST = 0.3, 0.05, 1e-4, 3.0
_LENGTHEN, _SHORTEN = 1.6, 0.35
_FARTHEST_STEP = 2.0
#: A fresh plan begins from a cautious answer, with a little of every arm.
_BLEND = 0.03
#: Pulls grow by this share between plans made afresh.
_CHALLENGER_GROWTH = 0.1
#: Forecasts move by at most these factors (in logarithms) in one go, and are settled when they move by less than this.
_FAR, _NEAR, _NEARER, _SETTLED = 1.5, 0.5, 0.3, 0.02
_FRESH_ROUNDS, _FORECAST_ROUNDS, _REST_ROUNDS = 2, 6, 3
#: Of a start, at least this share of what has been earned is still planned for: less would tie the plan to its luck.
_LEAST_REST = 0.3
_FARTHEST = 1e12


class Effort(NamedTuple):
    """How to climb: the number of steps tried, and the floor of the allocation."""

    iterations: int
    floor: float


@struct
class ClimbWork:
    """Scratch of a climb.

    The next point, and the last one that was surveyed; the bundle of the lowest claims: which they are, their log
    ratios, slopes (B, 2 K), inner products of these, and weights; and what keeps known rows.
    """

    allocation: FloatArray
    answer: FloatArray
    safe_allocation: FloatArray
    safe_answer: FloatArray
    picked: IntArray
    n_picked: IntArray
    ratios: FloatArray
    slopes: FloatArray
    products: FloatArray
    weights: FloatArray
    pulls: FloatArray
    direction: FloatArray
    projected: FloatArray
    multipliers: FloatArray
    projection: ProjectionWork


def make_climb_work(n_arms: int, n_known: int) -> ClimbWork:
    """Allocate the scratch."""
    k, n = n_arms, _BUNDLE
    return ClimbWork(
        allocation=np.zeros(k),
        answer=np.zeros(k),
        safe_allocation=np.zeros(k),
        safe_answer=np.zeros(k),
        picked=np.zeros(n, dtype=np.int64),
        n_picked=np.zeros(1, dtype=np.int64),
        ratios=np.zeros(n),
        slopes=np.zeros((n, 2 * k)),
        products=np.zeros((n, n)),
        weights=np.zeros(n),
        pulls=np.zeros(n),
        direction=np.zeros(2 * k),
        projected=np.zeros(k),
        multipliers=np.zeros(n_known),
        projection=make_projection_work(n_arms, n_known),
    )


@kernel
def _survey(prospect: Prospect, start: Start, allocation: FloatArray, answer: FloatArray, work: ProspectWork) -> float:
    """Weigh every witness, and take those near the least claim among the active ones; returns the least log ratio.

    Chooses the reaches that serve each claim, too.
    """
    claims, d, size = work.now, prospect.model.known.size, prospect.pool.size[0]
    for j in range(size):
        work.active[j] = j
    work.n_active[0] = size
    least = weigh_plan(prospect, start, allocation, answer, True, work, claims)
    kept = 0
    for j in range(size):
        if work.is_active[j] == 1 or claims.ratios[d + j] < least + _ACTIVE:
            work.is_active[j] = 1
            work.active[kept] = j
            for k in range(claims.variants.shape[1]):
                claims.variants[d + kept, k] = claims.variants[d + j, k]
            kept += 1
    work.n_active[0] = kept
    for c in range(d + kept):
        for k in range(claims.variants.shape[1]):
            work.trial.variants[c, k] = claims.variants[c, k]
    return least


@kernel
def _pick_lowest(claims: Claims, n_claims: int, least: float, climbing: ClimbWork) -> None:
    """Pick the lowest claims for the bundle, as many as it holds."""
    picked, n = climbing.picked, 0
    for c in range(n_claims):
        if not claims.ratios[c] < least + _ACTIVE:
            continue
        place = n
        if n == picked.size:  # full: in place of the highest, if that is higher
            place = 0
            for b in range(1, n):
                if claims.ratios[picked[b]] > claims.ratios[picked[place]]:
                    place = b
            if claims.ratios[picked[place]] <= claims.ratios[c]:
                continue
        else:
            n += 1
        picked[place] = c
    climbing.n_picked[0] = n


@kernel
def _gather(
    prospect: Prospect,
    start: Start,
    allocation: FloatArray,
    answer: FloatArray,
    work: ProspectWork,
    climbing: ClimbWork,
) -> None:
    r"""Write the slopes of the bundle, along mixes: by log w and by log p, less their means; and their products.

    The metric is that of multiplicative steps, :math:`\sum_a w_a x_a^2 + \sum_a p_a y_a^2`.
    """
    n_arms, slopes = answer.size, climbing.slopes
    cost_steeper(prospect, start, allocation, answer, work)
    for b in range(climbing.n_picked[0]):
        by_w, by_p = slopes[b, :n_arms], slopes[b, n_arms:]
        c = climbing.picked[b]
        climbing.ratios[b] = work.trial.ratios[c]
        write_slopes(prospect, start, c, allocation, answer, work, work.trial, by_w, by_p)
        on_w, on_p = 0.0, 0.0
        for a in range(n_arms):
            on_w += by_w[a]
            on_p += answer[a] * by_p[a]
        for a in range(n_arms):
            by_w[a] = by_w[a] / allocation[a] - on_w
            by_p[a] -= on_p
        for e in range(b + 1):
            product = 0.0
            for a in range(n_arms):
                product += allocation[a] * by_w[a] * slopes[e, a] + answer[a] * by_p[a] * slopes[e, n_arms + a]
            climbing.products[b, e], climbing.products[e, b] = product, product


@kernel
def _weigh_bundle(length: float, climbing: ClimbWork) -> None:
    r"""Weigh the bundle for a step of this length t: the dual of a proximal step.

    .. math:: \min_{\lambda \in \Delta} \tfrac t2 \lambda^\top Q \lambda + \lambda^\top f

    by moving weight from the claim with the highest slope to that with the lowest.
    """
    n, weights, pulls, products = climbing.n_picked[0], climbing.weights, climbing.pulls, climbing.products
    for b in range(n):
        weights[b] = 1.0 / n
    for b in range(n):
        pulls[b] = climbing.ratios[b]
        for e in range(n):
            pulls[b] += length * products[b, e] * weights[e]
    for _ in range(_WEIGHINGS):
        to, fro = 0, -1
        for b in range(n):
            if pulls[b] < pulls[to]:
                to = b
            if weights[b] > 0.0 and (fro < 0 or pulls[b] > pulls[fro]):
                fro = b
        if pulls[fro] - pulls[to] < _WEIGHED:
            break
        bend = length * (products[fro, fro] + products[to, to] - 2.0 * products[fro, to])
        moved = weights[fro]
        if bend > 0.0:
            moved = min(moved, (pulls[fro] - pulls[to]) / bend)
        weights[fro] -= moved
        weights[to] += moved
        for b in range(n):
            pulls[b] += length * moved * (products[b, to] - products[b, fro])


@kernel
def _step_along(
    prospect: Prospect, length: float, floor: float, allocation: FloatArray, answer: FloatArray, climbing: ClimbWork
) -> bool:
    """Write the next point: both mixes moved multiplicatively along the weighted slopes, and floored; False if there is
    none that keeps the known rows."""
    n_arms, direction = answer.size, climbing.direction
    for a in range(2 * n_arms):
        direction[a] = 0.0
        for b in range(climbing.n_picked[0]):
            direction[a] += climbing.weights[b] * climbing.slopes[b, a]
    _multiply(allocation, direction[:n_arms], length, floor, climbing.allocation)
    _multiply(answer, direction[n_arms:], length, LEAST_SHARE, climbing.answer)
    return keep_known_rows(prospect.model, climbing.answer, climbing)


@kernel
def _multiply(mix: FloatArray, direction: FloatArray, length: float, floor: float, moved_out: FloatArray) -> None:
    total, floored = 0.0, 0.0
    for a in range(mix.size):
        moved_out[a] = mix[a] * math.exp(max(-_FARTHEST_STEP, min(_FARTHEST_STEP, length * direction[a])))
        total += moved_out[a]
    for a in range(mix.size):
        moved_out[a] = max(moved_out[a] / total, floor)
        floored += moved_out[a]
    for a in range(mix.size):
        moved_out[a] /= floored


@kernel
def _breaks_known_rows(model: Model, mix: FloatArray) -> bool:
    for i in range(1, model.known_set.shape[0]):
        excess = 0.0
        for a in range(mix.size):
            excess += model.known_set[i, a] * mix[a]
        if excess > 0.0:
            return True
    return False


@kernel
def keep_known_rows(model: Model, mix: FloatArray, work: ClimbWork) -> bool:
    """Move a mix, in place, to the nearest one that satisfies the known rows; False when that did not work."""
    if model.known_set.shape[0] <= 1:
        return True
    for i in range(work.multipliers.size):
        work.multipliers[i] = 0.0
    status = project_polytope(mix, model.simplex[0], model.known_set, work.multipliers, work.projection, work.projected)
    if status == PROJECTED:
        for a in range(mix.size):
            mix[a] = max(work.projected[a], 1e-12)
    return status == PROJECTED


@kernel
def _copy(source: FloatArray, target: FloatArray) -> None:
    for a in range(source.size):
        target[a] = source[a]


@kernel
def climb_blocks(
    prospect: Prospect,
    start: Start,
    effort: Effort,
    length: FloatArray,
    allocation: FloatArray,
    answer: FloatArray,
    work: ProspectWork,
    climbing: ClimbWork,
) -> float:
    """Improve allocation and answer (K,) in place; returns the least log ratio over all witnesses of the pool.

    Proximal steps: the least of the lowest claims, each as a line, is raised as far as the `length` (1,) of a step
    allows. Lengths are adapted. Every few steps all witnesses are looked at.
    """
    if _breaks_known_rows(prospect.model, answer):
        keep_known_rows(
            prospect.model, answer, climbing
        )  # from beyond one every step would lead down, and none be taken
    list_witnesses(prospect, start, work)
    d, safe, current = prospect.model.known.size, -np.inf, -np.inf
    for j in range(work.is_active.size):
        work.is_active[j] = 0
    fresh = True
    for iteration in range(effort.iterations + 1):
        if iteration % _RECHECK == 0 or iteration == effort.iterations:
            least = _survey(prospect, start, allocation, answer, work)
            if least >= safe:
                safe = least
                _copy(allocation, climbing.safe_allocation)
                _copy(answer, climbing.safe_answer)
            else:  # a witness that was left out is in the way: go back, and climb with it
                _copy(climbing.safe_allocation, allocation)
                _copy(climbing.safe_answer, answer)
            if iteration == effort.iterations:
                break
            fresh = True
        if fresh:
            current = weigh_plan(prospect, start, allocation, answer, False, work, work.trial)
            _pick_lowest(work.trial, d + work.n_active[0], current, climbing)
            _gather(prospect, start, allocation, answer, work, climbing)
            fresh = False
        _weigh_bundle(length[0], climbing)
        if not _step_along(prospect, length[0], effort.floor, allocation, answer, climbing):
            length[0] = max(_SHORTEN * length[0], _SHORTEST)
            continue
        raised = weigh_plan(prospect, start, climbing.allocation, climbing.answer, False, work, work.trial)
        if raised > current:
            _copy(climbing.allocation, allocation)
            _copy(climbing.answer, answer)
            length[0] = min(_LENGTHEN * length[0], _LONGEST)
            fresh = True
        else:
            length[0] = max(_SHORTEN * length[0], _SHORTEST)
    return safe


class BlockPlanNow(Scalars):
    """`fresh` pulls that a plan from nothing needs; `nearest` to a proof of all starts (-1: none yet), and the pulls
    `left` that it still needs; pulls at which plans are improved, and made afresh, and at which the stop is expected.
    """

    fresh: float
    nearest: int
    left: float
    next_plan: float
    next_challenger: float
    expected_stop: float


@struct
class BlockPlan:
    """Plans: from nothing (`fresh_...`), and for what remains; (K,) each. `length` (1,) of a step of the first."""

    now: BlockPlanNow
    fresh_allocation: FloatArray
    fresh_answer: FloatArray
    allocation: FloatArray
    answer: FloatArray
    length: FloatArray


def make_block_plan(n_arms: int) -> BlockPlan:
    """Allocate plans that sample and answer evenly."""
    even = np.full(n_arms, 1.0 / n_arms)
    now = BlockPlanNow(fresh=1000.0, nearest=-1, expected_stop=4.0 * n_arms)
    return BlockPlan(now, even.copy(), even.copy(), even.copy(), even.copy(), np.full(1, _FRESH))


class BlockPlanner:
    """Keeps plans for blocks, and improves them.

    Args:
        model: The problem.
        estimates: What was observed; not a copy.
        pool: The witnesses met so far; not a copy.
        delta: What all starts may spend together.
        starts: The starts, made or not; not copies.
        record: The blocks on record; not a copy.
    """

    def __init__(
        self,
        model: Model,
        estimates: Estimates,
        pool: Pool,
        delta: float,
        starts: tuple[Start, ...],
        record: Record,
    ) -> None:
        n_arms, n_known = model.reward_noise.size, int(model.known.sum())
        self._model, self._estimates, self._starts, self._record = model, estimates, starts, record
        self.prospect = make_prospect(model, pool, estimates.mu_hat, estimates.columns[1:])
        self.state = make_block_plan(n_arms)
        self._work = make_prospect_work(self.prospect)
        self._climbing = make_climb_work(n_arms, n_known)
        self._tables = np.zeros((len(starts), *self.prospect.tables.shape))
        for j in range(len(starts)):
            tabulate_thresholds(j, delta, model, self._tables[j])
        self._floor = min(_LEAST_ALLOCATION, _LEAST_PART / n_arms)
        self._other = (np.zeros(n_arms), np.zeros(n_arms))

    def look(self, guesses: FloatArray) -> None:
        """Take in the estimates, and the guesses of the next block."""
        prospect = self.prospect
        expect_spread(self._estimates, self._model, prospect.variances, prospect.kurtoses)
        look_ahead(prospect, guesses)

    def replan(self, steps: int, cautious: FloatArray | None, n_begun: int) -> None:
        """Improve the plans after so many pulls, and note which start is nearest to a proof.

        `cautious` is a cautious answer if there is one, `n_begun` how many starts were made.
        """
        plan = self.state
        self._plan_afresh(steps, cautious)
        plan.allocation[:], plan.answer[:] = plan.fresh_allocation, plan.fresh_answer
        nearest, plan.now.left = self._find_nearest(n_begun)
        plan.now.nearest = nearest
        if nearest >= 0:
            self._plan_rest(nearest)
        begun = 0.0 if nearest < 0 else self._starts[nearest].terms.begun + self._starts[nearest].terms.weight
        left = plan.now.left if nearest >= 0 else plan.now.fresh
        plan.now.expected_stop = max(begun + left if nearest >= 0 else steps + left, float(steps))

    def _climb(self, number: int, total: float, recalls: bool, iterations: int, plan: tuple[FloatArray, ...]) -> float:
        """Climb from (allocation, answer, length) for so many pulls to come, after a start or from nothing."""
        prospect = self.prospect
        prospect.terms.total, prospect.terms.recalls = total, int(recalls)
        prospect.tables[:] = self._tables[number]
        allocation, answer, length = plan
        effort = Effort(iterations, self._floor)
        start = self._starts[number]
        return float(climb_blocks(prospect, start, effort, length, allocation, answer, self._work, self._climbing))

    def _plan_afresh(self, steps: int, cautious: FloatArray | None) -> None:
        """Plan as if nothing had been earned, and forecast what that would need."""
        plan, now = self.state, self.state.now
        if cautious is not None and now.next_challenger == 0.0:
            plan.fresh_answer[:] = (1.0 - _BLEND) * cautious + _BLEND / cautious.size
            plan.fresh_allocation[:] = 0.5 * plan.fresh_answer + 0.5 / cautious.size
        fresh = (plan.fresh_allocation, plan.fresh_answer, plan.length)
        for turn in range(_FRESH_ROUNDS if now.nearest < 0 else 1):
            plan.length[:] = max(plan.length[0], _FRESH_NEAR)
            found = self._climb(0, now.fresh, False, _ITERATIONS, fresh)
            if turn == 0 and cautious is not None and steps >= now.next_challenger:
                now.next_challenger = schedule_next(steps, _CHALLENGER_GROWTH)
                found = self._challenge(found, cautious)
            now.fresh = min(
                max(now.fresh * math.exp(-2.0 * min(max(found, -_FAR), _FAR)), 10.0 * plan.answer.size), _FARTHEST
            )

    def _challenge(self, held: float, cautious: FloatArray) -> float:
        """Climb from a cautious answer and keep the better plan: a share lost by both never comes back."""
        plan, (allocation, answer) = self.state, self._other
        answer[:] = (1.0 - _BLEND) * cautious + _BLEND / cautious.size
        allocation[:] = 0.5 * answer + 0.5 / cautious.size
        length = np.full(1, _FRESH)
        fresh = float(plan.now.fresh)
        found = self._climb(0, fresh, False, _CHALLENGER_ITERATIONS, (allocation, answer, length))
        if found <= held:
            return held
        plan.fresh_allocation[:], plan.fresh_answer[:], plan.length[:] = allocation, answer, length
        return found

    def _bound_rest(self, start: Start, total: float) -> float:
        """Keep the pulls that a start still needs within reason."""
        terms = start.terms
        most = 10.0 * terms.weight + terms.expected
        return float(min(max(total - terms.weight, _LEAST_REST * terms.weight), most))

    def _find_nearest(self, n_begun: int) -> tuple[int, float]:
        """Return the start that the fresh plan would prove first, and the pulls that it still needs."""
        plan, nearest, least = self.state, -1, math.inf
        for j in range(n_begun):
            start = self._starts[j]
            if start.terms.weight <= 0.0:
                continue
            recall(self.prospect, start, self._record)
            left = self._bound_rest(start, float(plan.now.fresh))
            for _ in range(_FORECAST_ROUNDS):
                copies = (plan.fresh_allocation.copy(), plan.fresh_answer.copy(), plan.length.copy())
                found = self._climb(j, left, True, 0, copies)
                moved = math.exp(-1.6 * min(max(found, -_NEAR), _NEAR))
                left = self._bound_rest(start, (start.terms.weight + left) * moved)
                if abs(found) < _SETTLED:
                    break
            start.terms.forecast = start.terms.weight + left
            if left < least:
                nearest, least = j, left
        return nearest, least

    def _plan_rest(self, nearest: int) -> None:
        """Improve the plan for what remains of a start."""
        plan, start = self.state, self._starts[nearest]
        recall(self.prospect, start, self._record)
        for turn in range(_REST_ROUNDS):
            length, left = np.full(1, _FRESH_NEAR), float(plan.now.left)
            found = self._climb(nearest, left, True, _REST_ITERATIONS, (plan.allocation, plan.answer, length))
            if turn < _REST_ROUNDS - 1:
                moved = math.exp(-2.0 * min(max(found, -_NEARER), _NEARER))
                plan.now.left = self._bound_rest(start, (start.terms.weight + left) * moved)
            if turn > 0 and abs(found) < _SETTLED:
                break
        start.terms.forecast = start.terms.weight + plan.now.left

    def foresee(self, nearest: int, evidence_out: Evidence) -> None:
        """Write the evidence that the plan leads to: for the nearest start, or (-1) from nothing."""
        plan, prospect = self.state, self.prospect
        number = max(nearest, 0)
        prospect.terms.recalls = int(nearest >= 0)
        prospect.terms.total = float(plan.now.left if nearest >= 0 else plan.now.fresh)
        foresee(prospect, self._starts[number], plan.allocation, plan.answer, self._work, evidence_out)
