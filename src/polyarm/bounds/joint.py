r"""The joint characteristic time: the rate at which rewards *and* unknown costs can be told from every wrong instance.

.. math:: T^*(r)^{-1} = \max_{w, p \in \Delta} \min(\min_i Z_i(p), Z_0(p))

with the statistics of `certify.evidence` at one pull in all, shared out as w. The problem is not concave in (w, p), and
:math:`Z_0` is itself a minimum that is not convex. So the T that is found is that of the plan returned, and the
certified lower bound on its :math:`Z_0` turns it into a proved upper bound on :math:`T^*`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from polyarm._types import FloatArray
from polyarm.bounds.characteristic import characteristic_time, list_alternatives
from polyarm.bounds.polish import Cuts, improve_locally
from polyarm.certify.evidence import Evidence, cost_statistic, make_evidence, witness_value
from polyarm.certify.pooled import Pricing, Thresholds, fixed_pricing, make_worth, weigh_pulls, write_pooled_evidence
from polyarm.certify.search import Task, make_search_work, search_witness
from polyarm.certify.witnesses import Pool, improve_witness, least_witness
from polyarm.families.family import make_family
from polyarm.model import Model
from polyarm.planner.cautious import Caution, write_cautious
from polyarm.planner.improve import Effort, climb, fresh_steps
from polyarm.planner.objective import Scene, forget, make_memory, make_plan_work
from polyarm.polytope.penalised import Program, forget_basis
from polyarm.problem import find_optimum

#: Planning starts from cautious answers, which give up these shares of r.
_LOSSES = (0.25, 0.5, 0.75)
#: The price of breaking an estimated row, per unit of reward noise: far above any price that an optimum pays.
_PENALTY = 200.0
_POOL_ROOM = 300
#: Witnesses closer than this (sum of absolute differences) are one.
_SAME_WITNESS = 1e-6
_LEAST_ALLOCATION = 1e-6
#: Sharpness of the soft minimum, from the first climb of a start to its last.
_SHARPNESS = (10.0, 170.0)
_CLIMBS = 12
_CLIMB_ITERATIONS = 400
#: Accuracy and budget of cells of the search for a best response: while climbing, while polishing, in a rehearsal of
#: the proof, and in the proof. The last few per cent cost most: they are not spent on a plan that still needs
#: polishing.
_ROUGH, _ROUGH_CELLS = 0.2, 300
_FINE, _FINE_CELLS = 0.03, 300
_REHEARSAL, _REHEARSAL_CELLS = 0.1, 20_000
_CERTIFYING, _CERTIFYING_CELLS = 0.028, 400_000
#: Descents of witnesses from scattered mixes: how many, how long, and which of their ends are kept.
_PROBES = 200
_DESCENT = 20
_HURTS = 1.03
_DISTINCT = 1e-3
_KEPT_PROBES = 8
#: The best starts whose answers are this far apart (sum of absolute differences) are polished.
_POLISHED_STARTS = 2
_APART = 0.01
#: With more arms, local solves take longer than they are worth.
_MOST_POLISHED_ARMS = 40
#: A polish ends when it gains less than this, or trusts its model less far than that.
_POLISHES = 12
_GAIN = 1e-3
_TRUST, _LEAST_TRUST = 0.1, 1e-3
#: A search may bring new witnesses: the plan is polished and searched again until they cost less than this.
_REPEATS = 3
_CLOSE = 5e-3


class Plan(NamedTuple):
    """Proportions in which to pull, the answer to give, and the least ratio of statistic to threshold known."""

    allocation: FloatArray
    answer: FloatArray
    value: float


class Response(NamedTuple):
    """A plan against its worst witness: the least ratio found, the lower bound proved for it, and the witness."""

    attained: float
    proved: float
    closest: FloatArray


class JointSearch:
    """Planning for one truth: what is fixed, the witnesses met, and scratch.

    `rows` (d, K) are G in the units of `model`. Without `pricing` the statistics themselves are maximised.
    """

    def __init__(self, model: Model, means: FloatArray, rows: FloatArray, pricing: Pricing | None = None) -> None:
        d, n_arms = rows.shape
        self.model = model
        self.means = np.ascontiguousarray(means)
        self.rows = np.ascontiguousarray(rows)
        self.pricing = pricing or fixed_pricing(1.0, 1.0)
        self.penalty = _PENALTY * math.sqrt(float(model.reward_noise.max()))
        capacity = _POOL_ROOM + n_arms
        self.pool = Pool(np.zeros((capacity, n_arms)), np.zeros(capacity, dtype=np.int64), np.zeros(1, dtype=np.int64))
        self._scene = Scene(self.means, self.rows, model, self.pool, self.pricing, make_memory(n_arms, d))
        forget(self._scene)
        self._climbing = make_plan_work(self.pool, model)
        self._searching = make_search_work(n_arms, d)
        self._rng = np.random.default_rng(0)
        first, second = np.triu_indices(n_arms, 1)
        if first.size > _PROBES:
            first, second = self._rng.permutation(np.array([first, second]), axis=1)[:, :_PROBES]
        self._pairs = 0.5 * (np.eye(n_arms)[first] + np.eye(n_arms)[second])
        for arm in np.eye(n_arms):
            if np.all(rows[model.known] @ arm <= 0.0):
                self._remember(arm)

    @property
    def n_arms(self) -> int:
        """Number of arms, K."""
        return self.means.size

    def _remember(self, witness: FloatArray) -> None:
        """Keep a witness, in place of the oldest if there is no room.

        Unlike an explorer's pool, this one keeps near duplicates: the last per cent depends on them.
        """
        pool, size = self.pool, int(self.pool.size[0])
        if np.abs(pool.mixes[:size] - witness).sum(axis=1).min(initial=np.inf) < _SAME_WITNESS:
            return
        place = size if size < len(pool.mixes) else int(np.argmin(pool.last_use))
        pool.mixes[place] = witness
        pool.last_use[place] = pool.last_use.max() + 1
        pool.size[0] = max(size, place + 1)

    def cautious(self, loss: float) -> FloatArray | None:
        """Return the answer that gives up this share of r for slack in every unknown row; None if it gains none."""
        optimum, answer = np.zeros(self.n_arms), np.zeros(self.n_arms)
        r = self.model.r
        found = write_cautious(
            Program(self.means, self.rows, self.model.known),
            Caution(loss * r, 0.5 * (1.0 + loss) * r, self.penalty),
            self._searching.descent,
            optimum,
            answer,
        )
        self._remember(optimum)
        return answer if found else None

    def _weigh(self, plan: Plan, total: float) -> tuple[Evidence, Thresholds]:
        """Return the evidence and the thresholds after `total` pulls by a plan, if the estimates were true."""
        worth, evidence = make_worth(self.n_arms), make_evidence(self.n_arms, self.model.known.size)
        weigh_pulls(self.pricing, total * plan.allocation, worth)
        write_pooled_evidence(self.means, self.rows, self.model, worth, plan.answer, evidence)
        return evidence, worth.thresholds

    def value(self, plan: Plan, total: float) -> float:
        """Return the least ratio of statistic to threshold against the witnesses known so far."""
        evidence, thresholds = self._weigh(plan, total)
        least, _ = least_witness(evidence, self.pool)
        return float(min(cost_statistic(evidence, plan.answer) / thresholds.cost, least / thresholds.reward))

    def respond(self, plan: Plan, total: float, accuracy: float, max_cells: int) -> Response:
        """Find the witness that hurts a plan most, to an accuracy or until the budget is spent, and remember it."""
        evidence, thresholds = self._weigh(plan, total)
        value, nearest = least_witness(evidence, self.pool)
        witness = self.pool.mixes[nearest].copy()
        costs = cost_statistic(evidence, plan.answer) / thresholds.cost
        lower = 0.0
        if value > 0.0:
            task = Task(value, accuracy, 0.0, self.penalty, max_cells)
            _, _, lower = search_witness(evidence, task, self._searching, witness)
            self._remember(witness)
            value = min(value, witness_value(evidence, witness))
        attained, proved = min(costs, value / thresholds.reward), min(costs, lower / thresholds.reward)
        return Response(float(attained), float(proved), witness)

    def probe(self, plan: Plan, total: float) -> None:
        """Let witnesses descend from everywhere on the simplex, and remember those that hurt the plan most.

        Proves nothing, but finds in milliseconds most of what a search needs many cells for.
        """
        evidence, _ = self._weigh(plan, total)
        work = self._searching.descent
        forget_basis(work.lp)
        scattered = self._rng.dirichlet(np.full(self.n_arms, 0.3), _PROBES)
        ends = []
        for witness in np.vstack([self._pairs, scattered]):
            value = improve_witness(evidence, self.penalty, _DESCENT, work, witness)
            ends.append((value, witness))
        ends.sort(key=lambda end: end[0])
        kept: list[FloatArray] = []
        for value, witness in ends:
            if value > _HURTS * ends[0][0] or len(kept) == _KEPT_PROBES:
                break
            if all(np.abs(witness - other).sum() > _DISTINCT for other in kept):
                kept.append(witness)
                self._remember(witness)

    def climb(self, plan: Plan, total: float, sharpness: float, fixed: bool) -> Plan:
        """Return a better plan against the witnesses known; `fixed` leaves the allocation alone."""
        allocation, answer = plan.allocation.copy(), plan.answer.copy()
        sampled = total * allocation if fixed else allocation
        effort = Effort(0.0 if fixed else total, 0.0 if fixed else _LEAST_ALLOCATION, sharpness, _CLIMB_ITERATIONS)
        value = climb(self._scene, effort, fresh_steps(), sampled, answer, self._climbing)
        return Plan(allocation, answer, float(value))

    def ascend(self, start: Plan, total: float, fixed: bool) -> Plan:
        """Climb with rising sharpness, adding the best response each time; return the best of the plans."""
        best, plan = start._replace(value=0.0), start
        for sharpness in np.geomspace(*_SHARPNESS, _CLIMBS):
            plan = self.climb(plan, total, float(sharpness), fixed)
            response = self.respond(plan, total, _ROUGH, _ROUGH_CELLS)
            if response.attained > best.value:
                best = plan._replace(value=response.attained)
        return best

    def starts(self, allocation: FloatArray | None) -> Iterator[Plan]:
        """Yield where to start from: cautious answers, with the allocation given or with two of each."""
        uniform = np.full(self.n_arms, 1.0 / self.n_arms)
        for loss in _LOSSES:
            answer = self.cautious(loss)
            if answer is not None:
                for w in (uniform, 0.5 * uniform + 0.5 * answer) if allocation is None else (allocation,):
                    yield Plan(w, answer, 0.0)

    def polish(self, plan: Plan, fixed: bool) -> Plan:
        """Improve a plan by local solves, each answered by the witness that hurts it most, until nothing is gained."""
        trust = _TRUST
        plan = plan._replace(value=self.value(plan, 1.0))
        if self.n_arms > _MOST_POLISHED_ARMS:
            return plan
        for _ in range(_POLISHES):
            if trust < _LEAST_TRUST or plan.value <= 0.0:
                break
            w, p, promised = improve_locally(
                self._cuts(), plan.allocation, plan.answer, trust, _LEAST_ALLOCATION, fixed
            )
            trial = Plan(w, p, promised)
            self.probe(trial, 1.0)
            reached = self.respond(trial, 1.0, _FINE, _FINE_CELLS).attained
            plan = plan._replace(value=self.value(plan, 1.0))
            if reached <= plan.value:
                trust *= 0.4
                continue
            settled = promised < (1.0 + _GAIN) ** 2 * plan.value and promised < (1.0 + _GAIN) * reached
            plan = trial._replace(value=reached)
            if settled:
                break
            if reached > 0.9 * promised:
                trust = min(2.0 * trust, 0.5)
        return plan

    def _cuts(self) -> Cuts:
        model, known = self.model, self.model.known
        rows, mixes = self.rows[~known], self.pool.mixes[: self.pool.size[0]].copy()
        excess = np.maximum(mixes @ rows.T, 0.0)
        return Cuts(
            self.means, model.reward_noise, model.r, rows, model.row_noise[~known], self.rows[known], mixes, excess
        )

    def optimise(self, allocation: FloatArray | None = None) -> tuple[Plan, Response] | None:
        """Return the best plan found (for the allocation given, if one is) and what is proved of it.

        None when no start exists: no answer within r has slack in every unknown row.
        """
        fixed = allocation is not None
        plans = [self.ascend(start, 1.0, fixed) for start in self.starts(allocation)]
        plans = [plan for plan in plans if plan.value > 0.0]
        if not plans:
            return None
        plans.sort(key=lambda plan: -self.value(plan, 1.0))
        apart = [plan for plan in plans[1:] if np.abs(plan.answer - plans[0].answer).sum() > _APART]
        plans = [self.polish(plan, fixed) for plan in (plans[0], *apart[: _POLISHED_STARTS - 1])]
        plan = max(plans, key=lambda plan: self.value(plan, 1.0))
        plan, _ = self._confirm(plan, fixed, _REHEARSAL, _REHEARSAL_CELLS)
        return self._confirm(plan, fixed, _CERTIFYING, _CERTIFYING_CELLS)

    def _confirm(self, plan: Plan, fixed: bool, accuracy: float, max_cells: int) -> tuple[Plan, Response]:
        """Search for a plan's best response; polish and search again if it costs much. Return the best proof."""
        found = []
        for _ in range(_REPEATS):
            hoped = plan.value
            response = self.respond(plan, 1.0, accuracy, max_cells)
            plan = plan._replace(value=response.attained)
            found.append((plan, response))
            if plan.value > (1.0 - _CLOSE) * hoped:
                break
            plan = self.polish(plan, fixed)
        return max(found, key=lambda pair: pair[1].proved)


@dataclass(frozen=True)
class JointTime:
    """What is known of T*: `lower` <= T* <= `certified` are proved (0 and infinity where nothing is).

    `time` is that of the plan returned, `allocation` and `answer`, against the worst witness met, `closest`;
    `uniform_time` the same for pulling all arms equally, with the best answer for that (None: not looked for).
    """

    time: float
    certified: float
    lower: float
    allocation: FloatArray
    answer: FloatArray
    closest: FloatArray
    uniform_time: float | None


def why_no_joint_time(model: Model) -> str | None:
    """Return why a problem has no (finite) joint characteristic time, or None when it may have one."""
    if not np.all(np.isfinite(model.reward_noise)):
        return "the rewards are not sub-Gaussian, which the joint statistics need"
    if model.r == 0.0 and not model.known.all():
        return "r = 0 with an unknown constraint: a tight constraint would need infinitely many samples"
    return None


def joint_time(model: Model, means: FloatArray, rows: FloatArray, uniform: bool = True) -> JointTime | None:
    """Return the joint characteristic time of a truth: means, and `rows` = G in the units of `model`.

    None when it is infinite: no answer within r of the optimum has slack in every unknown row. Raises ValueError for
    what `why_no_joint_time` refuses. Without `uniform` that time is not looked for.
    """
    reason = why_no_joint_time(model)
    if reason is not None:
        raise ValueError(reason)
    if model.r == 0.0:
        return _exact_time(model, means, rows)
    search = JointSearch(model, means, rows)
    found = search.optimise()
    if found is None:
        return None
    plan, response = found
    uniform_time = None
    if uniform:
        # Witnesses met by other allocations only stand in the way of its answer: it starts with none.
        equal = JointSearch(model, means, rows).optimise(np.full(means.size, 1.0 / means.size))
        uniform_time = math.inf if equal is None else 1.0 / equal[0].value
    return JointTime(
        time=1.0 / plan.value,
        certified=1.0 / response.proved if response.proved > 0.0 else math.inf,
        lower=_lower_time(model, search.means, search.rows),
        allocation=plan.allocation,
        answer=plan.answer,
        closest=response.closest,
        uniform_time=uniform_time,
    )


def _exact_time(model: Model, means: FloatArray, rows: FloatArray) -> JointTime | None:
    """Every row known and r = 0: the optimum is the only answer, and its neighbours the only alternatives."""
    n_arms = means.size
    columns = np.vstack([np.ones(n_arms), rows])
    family = make_family("gaussian", n_arms, tuple(np.sqrt(model.reward_noise).tolist()), None)
    alternatives = list_alternatives(means, columns, 0.0)
    found = characteristic_time(family, means, alternatives, columns[:1], 0.0)
    if not math.isfinite(found.time):
        return None
    changes = alternatives.moves.changes[: alternatives.count]
    arms = alternatives.moves.arms[: alternatives.count]
    gaps = np.array([-(means[arms[k]] * changes[k]).sum() for k in range(alternatives.count)])
    lengths = np.array([(changes[k] ** 2 * model.reward_noise[arms[k]]).sum() for k in range(alternatives.count)])
    return JointTime(
        time=found.time,
        certified=found.time,
        lower=found.time * (1.0 - found.accuracy),
        allocation=found.allocation,
        answer=alternatives.policy,
        closest=found.closest,
        uniform_time=float((2.0 * n_arms * lengths / gaps**2).max()),
    )


def _lower_time(model: Model, means: FloatArray, rows: FloatArray) -> float:
    r"""Return a proved lower bound on T*, from the cost statistics alone; 0 without unknown rows.

    By Cauchy-Schwarz :math:`\sum_a s_{ia}^2 p_a^2 / w_a \ge (s_i^\top p)^2` for every w, so no plan has a value above
    :math:`\max_p \min_i (-G_i p / s_i^\top p)^2 / 2`, over the p that satisfy every row and are within r of the optimum
    (any other has :math:`Z_0 = 0`). The ratio is maximised by linear programs: the largest h(z) of the smallest
    :math:`-G_i p - z s_i^\top p` bounds it by :math:`z + h(z) / \min s`.
    """
    unknown = ~model.known
    best = find_optimum(means, rows)
    if not unknown.any() or best is None:
        return 0.0
    d, n_arms = rows.shape
    noise = np.sqrt(model.row_noise)
    least_noise = float(noise[unknown].min())
    objective = np.append(np.zeros(n_arms), -1.0)
    ratio, bound = 0.0, math.inf
    for _ in range(20):
        # Variables: p, and the smallest margin.
        limits = np.hstack([rows + ratio * noise, unknown[:, None].astype(np.float64)])
        limits = np.vstack([limits, np.append(-means, 0.0)])
        result = linprog(
            objective,
            A_ub=limits,
            b_ub=np.append(np.zeros(d), model.r - best.value),
            A_eq=np.append(np.ones(n_arms), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0.0, 1.0)] * n_arms + [(None, None)],
        )
        if result.x is None:
            break
        margin = float(result.x[-1])
        bound = min(bound, ratio + max(margin, 0.0) / least_noise)
        p = result.x[:n_arms]
        reached = float(np.min(-(rows[unknown] @ p) / (noise[unknown] @ p)))
        if reached <= ratio * (1.0 + 1e-9):
            break
        ratio = reached
    # Linear programs are solved to about 1e-7.
    return 2.0 / ((bound + 1e-7) * (1.0 + 1e-6)) ** 2 if math.isfinite(bound) else 0.0
