"""What sufficient statistics prove: the certified stop again, outside the loop, with every number shown.

Used for certificates and their verification, for the best safe mix of an unfinished run, and for naming the constraints
that contradict each other. Everything is in kernel units (see `Model`); nothing here depends on how arms were chosen.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from polyarm._types import FloatArray
from polyarm.certify.evidence import Evidence, make_evidence, witness_value
from polyarm.certify.pooled import Worth, make_worth, weigh_pulls, write_pooled_evidence
from polyarm.certify.search import CERTIFIED, Task, make_search_work, search_witness
from polyarm.certify.verdicts import CertifiedRule, prove_infeasible
from polyarm.model import Model
from polyarm.tolerances import KNOWN_ROW

#: Cells that a proof outside the loop may search: many more than a test inside it.
_MAX_CELLS = 200_000
#: The closest witness is looked for to this accuracy, in this many cells at most.
_WITNESS_ACCURACY = 0.02
_WITNESS_CELLS = 20_000
_CUTS = 200
#: The best safe mix is found to this accuracy, as a share of the largest reward.
_SAFE_ACCURACY = 1e-7


@dataclass(frozen=True)
class Standing:
    """The state of an exploration: what its pulls are worth, and the evidence about the uniform mix."""

    model: Model
    rule: CertifiedRule
    worth: Worth
    evidence: Evidence

    @property
    def cost_threshold(self) -> float:
        """What every cost statistic must exceed."""
        return float(self.worth.thresholds.cost)

    @property
    def reward_threshold(self) -> float:
        """What the value of every witness must exceed."""
        return float(self.worth.thresholds.reward)

    def about(self, mix: FloatArray) -> Evidence:
        """Return the evidence about an answer."""
        evidence = make_evidence(mix.size, self.model.known.size)
        write_pooled_evidence(self.evidence.mu, self.evidence.rows, self.model, self.worth, mix, evidence)
        return evidence


def weigh_statistics(
    model: Model, rule: CertifiedRule, pulls: FloatArray, mu_hat: FloatArray, rows: FloatArray
) -> Standing:
    """Compute thresholds and variances from pulls (at least one of each arm), mean rewards and mean rows."""
    worth, evidence = make_worth(pulls.size), make_evidence(pulls.size, model.known.size)
    weigh_pulls(rule.pricing, pulls, worth)
    uniform = np.full(pulls.size, 1.0 / pulls.size)
    write_pooled_evidence(np.ascontiguousarray(mu_hat), np.ascontiguousarray(rows), model, worth, uniform, evidence)
    return Standing(model, rule, worth, evidence)


def row_margins(standing: Standing, mix: FloatArray) -> FloatArray:
    """Return how far each row's slack may be below its estimate, at the confidence of the cost test."""
    spread = standing.evidence.row_var @ (mix * mix)
    return np.sqrt(2.0 * standing.cost_threshold * spread)


def proved_excess(standing: Standing, mix: FloatArray) -> FloatArray:
    """Return by how much a mix provably exceeds each row, at the confidence of the cost test; negative: not proved."""
    return np.asarray(standing.evidence.rows @ mix - row_margins(standing, mix))


def value_margin(standing: Standing, mix: FloatArray) -> float:
    """Return how far a mix's value may be from its estimate, at the confidence of the reward test."""
    return math.sqrt(2.0 * standing.reward_threshold * float(standing.evidence.mu_var @ (mix * mix)))


def cost_statistics(standing: Standing, mix: FloatArray) -> list[float | None]:
    """Return Z_i of every unknown row; None for rows that are known."""
    slack = np.maximum(-(standing.evidence.rows @ mix), 0.0)
    spread = standing.evidence.row_var @ (mix * mix)
    return [
        None if known else float(s * s / (2.0 * v))
        for known, s, v in zip(standing.model.known, slack, spread, strict=True)
    ]


@dataclass(frozen=True)
class RewardTest:
    """One reward test: every witness's value, by this evidence, must exceed the threshold."""

    evidence: Evidence
    threshold: float
    penalty: float


def reward_test(standing: Standing, mix: FloatArray) -> RewardTest:
    """Return the reward test of an answer."""
    return RewardTest(standing.about(mix), standing.reward_threshold, standing.rule.penalty)


@dataclass(frozen=True)
class RewardProof:
    """The reward test of one answer: `lower` <= Z_0 <= `witness_value`, the value of the closest witness found."""

    passed: bool
    lower: float
    witness: FloatArray
    witness_value: float


def prove_reward(test: RewardTest) -> RewardProof:
    """Run a reward test, then look for its closest witness."""
    evidence, threshold = test.evidence, test.threshold
    d, n_arms = evidence.rows.shape
    work, witness = make_search_work(n_arms, d), np.zeros(n_arms)
    task = Task(threshold, 0.0, threshold, test.penalty, _MAX_CELLS)
    outcome, _, lower = search_witness(evidence, task, work, witness)
    passed = outcome == CERTIFIED
    if passed:
        # Any witness is worse than the threshold; the search for the best starts from one that is surely worse still.
        task = Task(4.0 * threshold, _WITNESS_ACCURACY, 0.0, test.penalty, _WITNESS_CELLS)
        _, _, found = search_witness(evidence, task, work, witness)
        lower = max(threshold, found)
    value = float(witness_value(evidence, witness)) if witness.any() else math.inf
    return RewardProof(passed, float(lower), witness, value)


def breaks_known_rows(model: Model, mix: FloatArray) -> bool:
    """Whether a mix breaks a constraint that is known exactly."""
    return bool(np.any(model.known_rows[model.known] @ mix > KNOWN_ROW))


def proves_infeasible(standing: Standing) -> bool:
    """Tell whether no mix can satisfy every row, as the certified stop would."""
    d, n_arms = standing.evidence.rows.shape
    spoilt = standing.about(standing.evidence.centre)
    return prove_infeasible(standing.rule, standing.worth, spoilt, make_search_work(n_arms, d))


def find_conflict(standing: Standing) -> FloatArray:
    """Return weights on the rows (d,), summing to one, that show the contradiction: every arm breaks their sum.

    The rows are those with every entry as low as the cost threshold allows if these contradict each other, and the
    estimated ones otherwise.
    """
    evidence = standing.evidence
    lowered = evidence.rows - np.sqrt(2.0 * standing.cost_threshold * evidence.row_var)
    level, weights = _least_excess(lowered)
    return weights if level > 0.0 else _least_excess(evidence.rows)[1]


def _least_excess(rows: FloatArray) -> tuple[float, FloatArray]:
    """min over mixes of the largest row, and the multipliers of the rows."""
    d, n_arms = rows.shape
    unit = float(np.abs(rows).max()) or 1.0  # the solver gives up on huge entries
    solved = linprog(
        np.r_[np.zeros(n_arms), 1.0],
        A_ub=np.c_[rows / unit, -np.ones(d)],
        b_ub=np.zeros(d),
        A_eq=np.r_[np.ones(n_arms), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * n_arms + [(None, None)],
    )
    weights = np.maximum(-solved.ineqlin.marginals, 0.0)
    assert solved.fun is not None  # a bounded program with a solution
    return unit * float(solved.fun), weights / weights.sum()


def find_safe_mix(standing: Standing) -> FloatArray | None:
    r"""Return the best mix that is certainly feasible, or None while there is none.

    .. math:: \max_{p \in \Delta} \hat\mu^\top p \quad\text{s.t.}\quad
              \hat G_i p + \sqrt{2 \beta_c} \|p\|_{v_i} \le 0 \text{ (unknown)},\ G_i p \le 0 \text{ (known)}

    Convex; solved by cutting planes, each a linear program whose solution is too good to be safe. Between it and a mix
    that is safe lies the edge of what is; there the rows are cut next, which closes in much faster than cuts at the
    solution itself.
    """
    inside = _find_inside(standing)
    if inside is None:
        return None
    mu = standing.evidence.mu
    best, cuts = inside, _Cuts(standing, np.r_[-mu, 0.0], slack=0.0)
    for _ in range(_CUTS):
        bound = cuts.solve()
        if bound is None:
            return best
        edge = _move_inside(standing, bound, inside)
        if mu @ edge > mu @ best:
            best = edge
        if mu @ bound - mu @ best <= _SAFE_ACCURACY * float(np.abs(mu).max()):
            return best
        cuts.add(edge)
        cuts.add(bound)
    return best


def _find_inside(standing: Standing) -> FloatArray | None:
    """Return a safe mix with at least half of the room there is in every unknown row, or None if no mix is safe."""
    n_arms, unknown = standing.evidence.mu.size, ~standing.model.known
    cuts = _Cuts(standing, np.r_[np.zeros(n_arms), -1.0], slack=1.0)
    roomiest, most = None, -math.inf
    for _ in range(_CUTS):
        mix = cuts.solve()
        if mix is None or cuts.level < 0.0:
            break
        upper = _upper_rows(standing, mix)
        room = -float(upper[unknown].max(initial=-math.inf))
        if upper.max(initial=-math.inf) <= 0.0 and room > most:
            roomiest, most = mix, room
        if most >= 0.5 * cuts.level:
            break
        cuts.add(mix)
    return roomiest


def _move_inside(standing: Standing, mix: FloatArray, inside: FloatArray) -> FloatArray:
    """Return the mix on the way to a safe one that is just safe itself: the rows are convex, so there is one edge."""
    if _is_safe(standing, mix):
        return mix
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        safe = _is_safe(standing, (1.0 - middle) * mix + middle * inside)
        low, high = (low, middle) if safe else (middle, high)
    return (1.0 - high) * mix + high * inside


def _upper_rows(standing: Standing, mix: FloatArray) -> FloatArray:
    """Return the upper confidence bound of every row; known rows may be off by round-off."""
    upper = standing.evidence.rows @ mix + row_margins(standing, mix)
    upper[standing.model.known] -= KNOWN_ROW
    return np.asarray(upper)


def _is_safe(standing: Standing, mix: FloatArray) -> bool:
    return bool(_upper_rows(standing, mix).max(initial=-math.inf) <= 0.0)


class _Cuts:
    """A linear program over mixes and one level, with a growing list of tangents to the rows.

    Args:
        standing: The rows.
        objective: What to minimise, (K + 1,).
        slack: The weight of the level in the unknown rows.
    """

    def __init__(self, standing: Standing, objective: FloatArray, slack: float) -> None:
        self.standing, self.objective, self.slack = standing, objective, slack
        self.level = math.inf
        known = standing.model.known
        self._rows = [np.r_[row, 0.0 if known[i] else slack] for i, row in enumerate(standing.evidence.rows)]

    def solve(self) -> FloatArray | None:
        """Return the best mix within the cuts so far, and write its `level`; None if there is none."""
        n_arms = self.objective.size - 1
        solved = linprog(
            self.objective,
            A_ub=np.array(self._rows).reshape(len(self._rows), n_arms + 1),
            b_ub=np.zeros(len(self._rows)),
            A_eq=np.r_[np.ones(n_arms), 0.0][None],
            b_eq=[1.0],
            bounds=[(0, None)] * n_arms + [(None, 1e6)],
        )
        if solved.x is None:
            return None
        self.level = float(solved.x[n_arms])
        return np.asarray(solved.x[:n_arms])

    def add(self, mix: FloatArray) -> None:
        """Add the tangents at a mix."""
        evidence, margins = self.standing.evidence, row_margins(self.standing, mix)
        scale = 2.0 * self.standing.cost_threshold
        for i in np.flatnonzero(~self.standing.model.known & (margins > 0.0)):
            self._rows.append(np.r_[evidence.rows[i] + scale * evidence.row_var[i] * mix / margins[i], self.slack])
