"""A simulated world: draws a reward and costs for any arm, and knows the truth."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.accounts import Account
from polyarm.environments.draws import BERNOULLI, CELLS, Draw, Law, has_table, make_laws, make_tables, place_gaussian
from polyarm.errors import InvalidInput
from polyarm.families.bernoulli import BERNOULLI as BERNOULLI_FAMILY
from polyarm.families.bernoulli import sample_bernoulli
from polyarm.families.bounded import BOUNDED, CONCENTRATION, sample_bounded
from polyarm.families.exponential import EXPONENTIAL
from polyarm.families.family import Family, sample_reward
from polyarm.families.poisson import POISSON
from polyarm.model import build_model
from polyarm.problem import Problem

# How an outcome is drawn.
_FAMILY = 0  # a reward, as its family says
_NORMAL = 1  # place + spread * score, cut at the range
_COIN = 2  # 0 or 1
_TABLE = 3  # from a table of quantiles
_WITHIN = 4  # a cost in its range, as bounded rewards are drawn


@struct
class SyntheticWorld:
    """The truth, in the user's units. Outcome 0 is the reward, outcome 1 + i the cost of row i.

    `means` and `stds` (1 + d, K) are those of what is drawn, after it was cut at its range (`low`, `high`); `stds` are
    nan for known rows. `true_rows` is G with every row `<=`. `ways` (1 + d,) says how each outcome is drawn: by
    `places` and `spreads` (1 + d, K) around a normal score, or from `tables[table_of[j]]` (K, cells). The scores of one
    pull are `common` times a normal number that they share, plus `own` times one of each.
    """

    family: Family
    means: FloatArray
    stds: FloatArray
    low: FloatArray
    high: FloatArray
    ways: IntArray
    places: FloatArray
    spreads: FloatArray
    tables: FloatArray
    table_of: IntArray
    common: float
    own: float
    measured: BoolArray
    true_rows: FloatArray


def fold_rows(problem: Problem, costs: FloatArray) -> FloatArray:
    """Return G (d, K), the true rows as `<=` with their bounds folded in."""
    signs = np.array([c.sign for c in problem.constraints])
    bounds = np.array([c.bound for c in problem.constraints])
    return np.ascontiguousarray(signs[:, None] * (costs - bounds[:, None]))


def build_world(problem: Problem, mu: FloatArray, costs: FloatArray, draw: Draw | None = None) -> SyntheticWorld:
    """Compile the truth of an instance; only rows that the problem does not know are measured.

    Without `draw` the reward's family draws it; costs are Gaussian, or drawn in their range as bounded rewards are.
    """
    K, d = problem.n_arms, problem.n_constraints
    means = np.ascontiguousarray(np.vstack([mu, costs]), dtype=np.float64)
    made = _Outcomes(
        means=means,
        stds=np.full((1 + d, K), np.nan),
        low=np.full((1 + d, K), -np.inf),
        high=np.full((1 + d, K), np.inf),
        ways=np.full(1 + d, _NORMAL),
        places=means.copy(),
        spreads=np.zeros((1 + d, K)),
    )
    tables: list[FloatArray] = []
    table_of = np.zeros(1 + d, dtype=np.int64)
    if draw is None:
        _set_as_declared(made, problem)
    else:
        for place, law in enumerate(make_laws(draw, problem, mu, costs)):
            if law is not None and has_table(law):
                table_of[place] = len(tables)
                tables.append(make_tables(law))
                made.ways[place], made.stds[place] = _TABLE, tables[-1].std(axis=1)
            elif law is not None:
                _set_law(made, place, law)
    correlation = 0.0 if draw is None else draw.correlation
    return SyntheticWorld(
        family=build_model(problem).family,
        **vars(made),
        tables=np.array(tables).reshape(len(tables), K, CELLS if tables else 1),
        table_of=table_of,
        common=math.sqrt(correlation),
        own=math.sqrt(1.0 - correlation),
        measured=np.array([not c.known for c in problem.constraints], dtype=np.bool_),
        true_rows=fold_rows(problem, means[1:]),
    )


@dataclass
class _Outcomes:
    """The arrays of a world that have a row for each outcome."""

    means: FloatArray
    stds: FloatArray
    low: FloatArray
    high: FloatArray
    ways: IntArray
    places: FloatArray
    spreads: FloatArray


def _set_law(made: _Outcomes, place: int, law: Law) -> None:
    """Draw an outcome without a table: a coin, or a Gaussian that is cut at its range."""
    if law.name == BERNOULLI:
        made.ways[place] = _COIN
        made.places[place] = -ndtri(law.means)  # the score above which it is 1
        made.stds[place] = np.sqrt(law.means * (1.0 - law.means))
        return
    made.places[place], made.stds[place] = place_gaussian(law)
    made.spreads[place], made.low[place], made.high[place] = law.stds, law.low, law.high


def _set_as_declared(made: _Outcomes, problem: Problem) -> None:
    """Draw every outcome by what the problem declares of it."""
    if problem.reward_account.kind == "estimated" and problem.reward_family in (None, "gaussian"):
        raise _undeclared("the reward")
    made.ways[0] = _FAMILY
    made.stds[0] = _family_stds(build_model(problem).family, made.means[0])
    for i in problem.unknown:
        account, place = problem.constraints[i].account, 1 + i
        if account.kind == "estimated":
            raise _undeclared(f"constraint {problem.constraints[i].name!r}")
        if account.kind == "range":
            made.ways[place] = _WITHIN
            made.low[place], made.high[place] = account.ends(problem.n_arms)
            made.stds[place] = _stds_within(account, made.means[place])
        else:
            made.spreads[place] = made.stds[place] = account.scale(problem.n_arms)


def _undeclared(what: str) -> InvalidInput:
    return InvalidInput(
        f"{what} has neither a std nor a range, so nothing says how to simulate it; give the instance `draw` (and "
        "`draw_std` or `draw_cv`), which no explorer is told"
    )


def _stds_within(account: Account, means: FloatArray) -> FloatArray:
    """The standard deviations of `sample_bounded`."""
    low, high = account.ends(means.size)
    return np.asarray(np.sqrt((means - low) * (high - means) / (1.0 + CONCENTRATION)))


def _family_stds(family: Family, means: FloatArray) -> FloatArray:
    """The standard deviations of `sample_reward`."""
    variances = {
        BOUNDED: (means - family.low) * (family.high - means) / (1.0 + CONCENTRATION),
        BERNOULLI_FAMILY: means * (1.0 - means),
        POISSON: means,
        EXPONENTIAL: means**2,
    }
    return np.asarray(family.scale if family.kind not in variances else np.sqrt(variances[family.kind]))


@kernel
def sample(world: SyntheticWorld, arm: int, rng: np.random.Generator, costs_out: FloatArray) -> float:
    """Draw a reward, and the cost of every measured row into `costs_out` (d,)."""
    shared = 0.0
    if world.common > 0.0:
        shared = world.common * rng.standard_normal()
    reward = _draw(world, 0, arm, shared, rng)
    for i in range(world.measured.size):
        if world.measured[i]:
            costs_out[i] = _draw(world, i + 1, arm, shared, rng)
    return reward


@kernel
def _draw(world: SyntheticWorld, outcome: int, arm: int, shared: float, rng: np.random.Generator) -> float:
    """Draw one outcome of a pull; `shared` is the common part of its normal score."""
    way, mean = world.ways[outcome], world.means[outcome, arm]
    if way == _FAMILY:
        return sample_reward(world.family, arm, mean, rng)
    if way == _WITHIN:
        return sample_bounded(world.low[outcome, arm], world.high[outcome, arm], mean, rng)
    if way == _NORMAL or world.common > 0.0:
        score = shared + world.own * rng.standard_normal()
        if way == _NORMAL:
            value = world.places[outcome, arm] + world.spreads[outcome, arm] * score
            return float(min(max(value, world.low[outcome, arm]), world.high[outcome, arm]))
        if way == _COIN:
            return 1.0 if score > world.places[outcome, arm] else 0.0
        share = 0.5 * math.erfc(-score / math.sqrt(2.0))
    else:
        if way == _COIN:
            return sample_bernoulli(mean, rng)
        share = rng.random()
    table = world.table_of[outcome]
    cells = world.tables.shape[2]
    return float(world.tables[table, arm, min(int(share * cells), cells - 1)])
