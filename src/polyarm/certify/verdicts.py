"""What a test may conclude from evidence: its settings, the task of the search, and the proof that no mix exists."""

import math
from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.certify.evidence import FIXED, TOGETHER, Evidence
from polyarm.certify.pooled import Estimated, Pricing, Worth, cost_statistic
from polyarm.certify.search import CERTIFIED, SearchWork, Task, search_witness
from polyarm.certify.witnesses import Pool, least_witness
from polyarm.model import Model
from polyarm.polytope.lp import EMPTY, solve_lp
from polyarm.polytope.penalised import forget_basis
from polyarm.tolerances import KNOWN_ROW

#: An unresolved search costs pulls: at K = 100, proved, runs with 2,400 cells took nearly twice as many.
_MAX_CELLS, _FEWEST_CELLS = 60_000, 1_500
#: A cell's cost grows with the arms: many arms get fewer cells, so that an unresolved search stays affordable.
_CELLS_TIMES_ARMS = 200_000
#: The price of breaking an estimated row, per unit of reward noise: far above any price that an optimum pays.
_PENALTY = 200.0


class CertifiedRule(NamedTuple):
    """Settings of a test: thresholds, the price of breaking an estimated row, and the cells that a search may take."""

    pricing: Pricing
    penalty: float
    max_cells: int

    def decide(self, threshold: float, max_cells: int | None = None, penalty: float | None = None) -> Task:
        """Return the task of deciding whether every witness's value exceeds a threshold."""
        cells = self.max_cells if max_cells is None else max_cells
        price = self.penalty if penalty is None else penalty
        return Task(float(threshold), 0.0, float(threshold), price, cells)


def price_rows(reward_variances: FloatArray) -> float:
    """Return the price of breaking an estimated row, far above any that an optimum pays."""
    return _PENALTY * math.sqrt(float(np.nanmax(reward_variances, initial=1e-300)))


def make_certified_rule(pricing: Pricing, model: Model) -> CertifiedRule:
    """Return the settings that belong to these thresholds."""
    n_arms = model.reward_noise.size
    max_cells = min(_MAX_CELLS, max(_FEWEST_CELLS, _CELLS_TIMES_ARMS // n_arms))
    return CertifiedRule(pricing, price_rows(model.reward_noise), max_cells)


@kernel
def _is_empty(estimated: Estimated, worth: Worth, threshold: float, work: SearchWork) -> bool:
    """Tell whether no mix satisfies all rows, even with every unknown entry as low as the cost threshold allows."""
    d, n_arms = estimated.rows.shape
    columns, lp = work.columns, work.descent.lp
    for a in range(n_arms):
        columns[0, a] = 1.0
        for i in range(d):
            width = math.sqrt(2.0 * threshold * estimated.noise[1 + i, a] / worth.effective[a])
            columns[i + 1, a] = estimated.rows[i, a] - width
    forget_basis(lp)
    return solve_lp(estimated.mu, columns, lp.basis, lp.lp) == EMPTY


@kernel
def least_ratio(
    estimated: Estimated, model: Model, evidence: Evidence, worth: Worth, pool: Pool, answer: FloatArray
) -> float:
    """The least statistic over its threshold, for the evidence about an answer and the witnesses known: above one, a
    test may pass."""
    value, _ = least_witness(evidence, pool)
    costs = cost_statistic(estimated, model, worth, answer)
    return float(min(costs / worth.thresholds.cost, value / worth.thresholds.witness))


def refute_all_by_rows(evidence: Evidence, task: Task, work: SearchWork) -> bool:
    """Tell whether rows alone refute every mix: then no mix satisfies them all.

    The search for witnesses, without the reward; the evidence is overwritten.
    """
    evidence.variants[0] = 0
    if evidence.terms.kind == TOGETHER:
        evidence.terms.kind = FIXED  # a sum over rows would count the same luck twice
    outcome, _, _ = search_witness(evidence, task, work, np.zeros(evidence.known_rows.shape[1]))
    return bool(outcome == CERTIFIED)


def prove_infeasible(
    rule: CertifiedRule, estimated: Estimated, worth: Worth, evidence: Evidence, work: SearchWork
) -> bool:
    """Tell whether all outcomes prove that no mix can satisfy every row: first by one LP, then by a search.

    The evidence is overwritten.
    """
    if _is_empty(estimated, worth, worth.thresholds.cost, work):
        return True
    return refute_all_by_rows(evidence, rule.decide(1.0), work)


def keeps_known_rows(model: Model, mix: FloatArray) -> bool:
    """Whether a mix satisfies the constraints that are known exactly."""
    return bool(np.all(model.known_rows[model.known] @ mix <= KNOWN_ROW))
