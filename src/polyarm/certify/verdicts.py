"""What a test may conclude from evidence: its settings, the task of the search, and the proof that no mix exists."""

import math
from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.certify.evidence import Evidence, cost_statistic
from polyarm.certify.pooled import Pricing, Worth
from polyarm.certify.search import CERTIFIED, SearchWork, Task, search_witness
from polyarm.certify.witnesses import Pool, least_witness
from polyarm.model import Model
from polyarm.polytope.lp import EMPTY, solve_lp
from polyarm.polytope.penalised import forget_basis
from polyarm.tolerances import KNOWN_ROW

#: An unresolved search costs pulls: at K = 100, proved, runs with 2,400 cells took nearly twice as many.
_MAX_CELLS, _FEWEST_CELLS = 60_000, 1_500
#: A cell's cost grows with the arms: many arms get fewer cells, so that an unresolved search stays affordable.
_CELLS_TIMES_ARMS = 6_000_000
#: The price of breaking an estimated row, per unit of reward noise: far above any price that an optimum pays.
_PENALTY = 200.0


class CertifiedRule(NamedTuple):
    """Settings of a test: thresholds, the price of breaking an estimated row, and the cells that a search may take."""

    pricing: Pricing
    penalty: float
    max_cells: int

    def decide(self, threshold: float, max_cells: int | None = None) -> Task:
        """Return the task of deciding whether every witness's value exceeds a threshold."""
        cells = self.max_cells if max_cells is None else max_cells
        return Task(float(threshold), 0.0, float(threshold), self.penalty, cells)


def make_certified_rule(pricing: Pricing, model: Model) -> CertifiedRule:
    """Return the settings that belong to these thresholds."""
    n_arms = model.reward_noise.size
    max_cells = min(_MAX_CELLS, max(_FEWEST_CELLS, _CELLS_TIMES_ARMS // n_arms))
    return CertifiedRule(pricing, _PENALTY * math.sqrt(float(model.reward_noise.max())), max_cells)


@kernel
def _is_empty(evidence: Evidence, threshold: float, work: SearchWork) -> bool:
    """Tell whether no mix satisfies all rows, even with every unknown entry as low as the cost threshold allows."""
    d, n_arms = evidence.rows.shape
    columns, lp = work.columns, work.descent.lp
    for a in range(n_arms):
        columns[0, a] = 1.0
        for i in range(d):
            columns[i + 1, a] = evidence.rows[i, a] - math.sqrt(2.0 * threshold * evidence.row_var[i, a])
    forget_basis(lp)
    return solve_lp(evidence.mu, columns, lp.basis, lp.lp) == EMPTY


@kernel
def least_ratio(evidence: Evidence, worth: Worth, pool: Pool, answer: FloatArray) -> float:
    """The least statistic over its threshold, for an answer and the witnesses known: above one, a test may pass.

    Leaves the evidence about that answer.
    """
    for a in range(answer.size):
        evidence.centre[a] = answer[a]
    value, _ = least_witness(evidence, pool)
    return float(min(cost_statistic(evidence, answer) / worth.thresholds.cost, value / worth.thresholds.reward))


def prove_infeasible(rule: CertifiedRule, worth: Worth, evidence: Evidence, work: SearchWork) -> bool:
    """Tell whether no mix can satisfy every row, at the level of the tests: first by one LP, then by a search.

    The search: every mix breaks the rows by more than the reward threshold, so none can be the true optimum. It is the
    search for witnesses without rewards; the evidence is overwritten.
    """
    if _is_empty(evidence, worth.thresholds.cost, work):
        return True
    n_arms = evidence.mu.size
    evidence.mu[:] = 0.0
    evidence.mu_var[:] = 0.0
    evidence.centre[:] = 1.0 / n_arms
    evidence.terms.tolerance = 0.0
    outcome, _, _ = search_witness(evidence, rule.decide(worth.thresholds.reward), work, np.zeros(n_arms))
    return bool(outcome == CERTIFIED)


def keeps_known_rows(model: Model, mix: FloatArray) -> bool:
    """Whether a mix satisfies the constraints that are known exactly."""
    return bool(np.all(model.known_rows[model.known] @ mix <= KNOWN_ROW))
