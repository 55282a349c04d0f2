"""Whole explorations against laws given as tables: the blocks that certex asks for, told outcome by outcome, compiled.

A run is a session; only the draws are here, so that thousands of runs take minutes. Costs of one pull may be apart from
its reward, copied from its chance, or opposed to it.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from oracle import laws
from oracle.reference import FloatArray, IntArray
from polyarm import Problem, Session, make_explorer
from polyarm._compile import kernel
from polyarm.engine.loop import tell
from polyarm.model import Model
from polyarm.round import Round
from polyarm.stops.blocks import Block

# How a cost goes with the reward of its pull.
APART, SAME, OPPOSED = 0, 1, 2
TOGETHER = {"apart": APART, "same": SAME, "opposed": OPPOSED}


@kernel
def _tell_all(
    core: Round, model: Model, block: Block, arms: IntArray, tables: FloatArray, together: int, rng: np.random.Generator
) -> None:
    values, costs = tables.shape[2], np.zeros(tables.shape[0] - 1)
    for arm in arms:
        i = int(rng.random() * values)
        for k in range(costs.size):
            j = i if together == SAME else (values - 1 - i if together == OPPOSED else int(rng.random() * values))
            costs[k] = tables[1 + k, arm, j]
        tell(core, model, arm, tables[0, arm, i], costs)
        block.waiting[arm] -= 1.0


@dataclass(frozen=True)
class Truth:
    """What is told of a problem, and what is true: tables (1 + d, K, values), reward first."""

    problem: Problem
    tables: FloatArray

    @property
    def means(self) -> FloatArray:
        """True means (1 + d, K)."""
        return np.asarray(self.tables.mean(axis=2))

    @property
    def true_rows(self) -> FloatArray:
        """G (d, K): what a mix must keep at zero or below."""
        signs = np.array([c.sign for c in self.problem.constraints])
        bounds = np.array([c.bound for c in self.problem.constraints])
        return np.asarray(signs[:, None] * (self.means[1:] - bounds[:, None]))

    def best(self) -> float | None:
        """The value of the best feasible mix; None if none is feasible."""
        n_arms = self.problem.n_arms
        solved = linprog(
            -self.means[0],
            A_ub=self.true_rows,
            b_ub=np.zeros(len(self.true_rows)),
            A_eq=np.ones((1, n_arms)),
            b_eq=[1.0],
            bounds=(0.0, 1.0),
        )
        return None if solved.x is None or solved.fun is None else -float(solved.fun)


class Outcome(NamedTuple):
    """How a run ended: `wrong` if what it concluded is false."""

    status: str
    steps: int
    wrong: bool


def judge(truth: Truth, best: float | None, session: Session) -> Outcome:
    """Hold what a session concluded against the truth."""
    if not session.stopped:
        return Outcome("HORIZON", session.steps, False)
    if session.infeasible:
        return Outcome("INFEASIBLE", session.steps, best is not None)
    mix = session.policy
    assert mix is not None
    if best is None:
        return Outcome("STOPPED", session.steps, True)
    broken = bool((truth.true_rows @ mix > 1e-12).any())
    return Outcome("STOPPED", session.steps, broken or float(truth.means[0] @ mix) < best - truth.problem.r - 1e-12)


def explore(truth: Truth, best: float | None, seed: int, horizon: int, together: int) -> Outcome:
    """Run certex to its stop, or until a block ends beyond the horizon."""
    session = make_explorer("certex", truth.problem, seed=seed)
    rng, block = np.random.default_rng(seed), session.stop.block  # type: ignore[union-attr]
    while not session.stopped and session.steps < horizon:
        arms = np.array(session.ask_batch(), dtype=np.int64)
        _tell_all(session.round, session.plan.model, block, arms, truth.tables, together, rng)
    return judge(truth, best, session)


class Tally(NamedTuple):
    """How many runs there were, how they ended, and how many were wrong."""

    runs: int
    stopped: int
    infeasible: int
    wrong: int
    mean_steps: float


def tally(truth: Truth, runs: int, horizon: int, together: int, first_seed: int = 0) -> Tally:
    """Explore again and again."""
    best = truth.best()
    found = [explore(truth, best, first_seed + seed, horizon, together) for seed in range(runs)]
    return Tally(
        runs,
        sum(one.status == "STOPPED" for one in found),
        sum(one.status == "INFEASIBLE" for one in found),
        sum(one.wrong for one in found),
        math.fsum(one.steps for one in found) / runs,
    )


def make_truth(
    reward: list[FloatArray], costs: list[list[FloatArray]], rows: list[dict[str, Any]], **stated: Any
) -> Truth:
    """Put a problem and its tables together: one table per arm for the reward, and for each row."""
    problem = Problem(**{"arms": len(reward), "constraints": rows, **stated})
    return Truth(problem, np.array([reward, *costs]))


# -- Cells: a law, a truth, and how variances are known ---------------------------------------------------------------

#: Per law: where outcomes begin, and what one unit of the truths below is in them.
_LEVELS = {
    "gaussian": (0.0, 1.0),
    "two-point": (0.02, 0.25),
    "rare": (0.0025, 0.02),
    "beta": (0.1, 0.8),
    "lognormal": (0.2, 0.8),
}
LAWS = tuple(_LEVELS)
#: How far the rows of `barely` and `infeasible` are from their bound, in that unit: what some thousand pulls can tell.
_EDGE = {"gaussian": 0.04, "two-point": 0.15, "rare": 0.3, "beta": 0.04, "lognormal": 0.25}
#: r in the same unit. Rare rewards cannot be told apart by less.
_R = {"rare": 0.6}
#: Mean rewards, costs of a row `<= 0.5`, and of a row `>= 0.5` if there is one, in units of the law. `tight`: the best
#: mix lies on the edge of its rows. An edge is added to the first cost: `barely` leaves mixes close to the first arm
#: alone; `infeasible` leaves none, by little.
_TRUTHS: dict[str, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...] | None, float]] = {
    "tight": ((0.2, 0.5, 0.9), (0.1, 0.4, 0.8), None, 0.0),
    "two rows": ((0.2, 0.5, 0.9), (0.1, 0.4, 0.8), (0.2, 0.6, 0.9), 0.0),
    "barely": ((0.2, 0.5, 0.9), (0.5, 0.65, 0.9), None, -1.0),
    "infeasible": ((0.2, 0.5, 0.9), (0.5, 0.8, 1.0), None, 1.0),
}
TRUTHS = tuple(_TRUTHS)


def _table(law: str, level: float) -> FloatArray:
    begin, unit = _LEVELS[law]
    mean = begin + unit * level
    if law == "gaussian":
        return laws.normal(mean, 0.3)
    if law == "beta":
        return laws.beta(mean, 0.15)
    return laws.lognormal(mean, 1.0) if law == "lognormal" else laws.bernoulli(mean)


def make_cell(law: str, truth: str, known: bool, delta: float, edge: float | None = None) -> Truth:
    """A truth with outcomes of one law; variances are estimated, or known: a range (Gaussian: a std).

    `edge` replaces the law's own.
    """
    rewards, costs, qualities, side = _TRUTHS[truth]
    begin, unit = _LEVELS[law]
    costs = (costs[0] + side * (_EDGE[law] if edge is None else edge), *costs[1:])
    rows = [costs] if qualities is None else [costs, qualities]
    tables = [[_table(law, level) for level in levels] for levels in (rewards, *rows)]
    stated: dict[str, Any] = {"delta": delta, "r": _R.get(law, 0.2) * unit}
    constraints: list[dict[str, Any]] = []
    for k, made in enumerate(tables):
        account: dict[str, Any] = {}
        if known:
            # The ends of each arm's own range: the lognormal's are where its tail is cut.
            ends = [(0.0, 1.0 if law in ("beta", "two-point", "rare") else float(table.max())) for table in made]
            account = {"std": 0.3} if law == "gaussian" else {"range": tuple(ends)}
        if k == 0:
            stated |= {f"reward_{name}": value for name, value in account.items()}
        else:
            sense = "<=" if k == 1 else ">="
            # The mean of a table of two values is a multiple of 1/4,000: the bound is what the law says.
            constraints.append({"name": f"row {k}", "bound": begin + 0.5 * unit, "sense": sense, **account})
    return make_truth(tables[0], tables[1:], constraints, **stated)
