"""How a simulated world draws its outcomes, stated apart from what an explorer is told of them."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, gammainc, gammaincinv, ndtr

from polyarm._types import FloatArray
from polyarm.errors import InvalidInput, unknown_name
from polyarm.problem import Problem

BERNOULLI, BETA, GAMMA, GAUSSIAN = LAWS = ("bernoulli", "beta", "gamma", "gaussian")

#: The keys of an instance that belong to `draw`.
BESIDE_DRAW = ("draw_std", "draw_cv", "correlation")

#: Points of a table: cells of equal probability, each with the mean of its cell, so that no tail is lost.
CELLS = 8192
#: A table's mean may differ from the stated one by this much, relative to the larger of it and 1.
_SAME_MEAN = 1e-9
#: Laws whose outcomes belong to a family of rewards; families that are not here take every law.
_OF_FAMILY = {"bernoulli": {BERNOULLI}, "poisson": {BERNOULLI}, "exponential": {BERNOULLI, BETA, GAMMA}}
#: Scales of a gamma are doubled or halved this often in the search for a mean.
_MOST_DOUBLINGS = 500


@dataclass(frozen=True)
class Draw:
    """How the outcomes of one pull are drawn; of each list the first entry is the reward's, then each row's.

    Args:
        laws: `bernoulli`, `beta`, `gamma` or `gaussian`; those of known rows are not used.
        std: Standard deviations, before outcomes are cut at their range; 0: not stated.
        cv: Standard deviations over means, so that they differ by arm; 0: not stated.
        correlation: That of the normal scores of the outcomes of one pull, from 0 to 1 (not 1 itself).
    """

    laws: tuple[str, ...]
    std: tuple[float, ...]
    cv: tuple[float, ...]
    correlation: float = 0.0


class Law(NamedTuple):
    """The distribution of one outcome: `means` (K,) after it is cut at `low` and `high`, `stds` before."""

    name: str
    means: FloatArray
    stds: FloatArray
    low: FloatArray
    high: FloatArray


def read_draw(table: dict[str, Any], n_rows: int) -> Draw | None:
    """Return what an instance's table says of its draws; None if it says nothing."""
    if "draw" not in table:
        for key in BESIDE_DRAW:
            if key in table:
                raise InvalidInput(f"{key}: belongs to `draw`, which is not given: {', '.join(LAWS)}")
        return None
    names = table["draw"] if isinstance(table["draw"], list) else [table["draw"]] * (1 + n_rows)
    if len(names) != 1 + n_rows:
        raise InvalidInput(f"draw: expected one law, or {1 + n_rows} (reward, then each row), got {names!r}")
    for name in names:
        if name not in LAWS:
            raise unknown_name("draw", str(name), LAWS)
    correlation = table.get("correlation", 0.0)
    if not _is_number(correlation) or not 0.0 <= correlation < 1.0:
        raise InvalidInput(f"correlation: expected a number from 0 to below 1, got {correlation!r}")
    std, cv = (_read_spreads(key, table.get(key, 0.0), names) for key in ("draw_std", "draw_cv"))
    return Draw(tuple(names), std, cv, float(correlation))


def _read_spreads(key: str, given: Any, names: list[str]) -> tuple[float, ...]:
    """Return one spread per outcome; one number serves all whose law has a spread."""
    spreads = given if isinstance(given, list) else [0.0 if name == BERNOULLI else given for name in names]
    if len(spreads) != len(names) or not all(_is_number(spread) and spread >= 0.0 for spread in spreads):
        raise InvalidInput(
            f"{key}: expected a number, 0 or more, or {len(names)} of them (reward, then each row), got {given!r}"
        )
    return tuple(float(spread) for spread in spreads)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def make_laws(draw: Draw, problem: Problem, mu: FloatArray, costs: FloatArray) -> list[Law | None]:
    """Return the distribution of each outcome, None for known rows; raises if there is none of that kind."""
    family = problem.reward_family
    if draw.laws[0] not in _OF_FAMILY.get(family or "", LAWS):
        fitting = " or ".join(sorted(_OF_FAMILY[family or ""]))
        raise InvalidInput(
            f"draw: rewards of family {family!r} cannot be drawn from a {draw.laws[0]}; use {fitting}, or leave `draw` "
            "out, and the family draws"
        )
    laws: list[Law | None] = [_make_law(draw, 0, "the reward", problem, problem.reward_account, mu)]
    for i, constraint in enumerate(problem.constraints):
        where = f"constraint {constraint.name!r}"
        measured = None if constraint.known else constraint.account
        laws.append(None if measured is None else _make_law(draw, 1 + i, where, problem, measured, costs[i]))
    return laws


def _make_law(draw: Draw, place: int, where: str, problem: Problem, account: Any, means: FloatArray) -> Law:
    name, std, cv = draw.laws[place], draw.std[place], draw.cv[place]
    K = problem.n_arms
    low, high = account.ends(K)
    if std > 0.0 and cv > 0.0:
        raise InvalidInput(f"draw: {where}: give draw_std or draw_cv, not both: got {std:g} and {cv:g}")
    stds = np.full(K, std) if std > 0.0 else cv * np.abs(means)
    if name == BERNOULLI and (std > 0.0 or cv > 0.0):
        raise InvalidInput(
            f"draw: {where}: a bernoulli's spread follows from its mean; leave out its draw_std and draw_cv"
        )
    if name == GAUSSIAN and std == cv == 0.0 and account.kind == "declared":
        stds = account.scale(K)
    elif name != BERNOULLI and std == cv == 0.0:
        raise InvalidInput(f"draw: {where}: a {name} needs draw_std or draw_cv above 0")
    if name == BETA:
        low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 1.0)
    law = Law(name, np.asarray(means, dtype=np.float64), stds, low, high)
    for a, arm in enumerate(problem.arms):
        complaint = _COMPLAINTS[name](*(float(x[a]) for x in law[1:]))
        if complaint is not None:
            raise InvalidInput(f"draw: {where}, arm {arm!r}: {complaint}")
    return law


def _refuse_bernoulli(mean: float, _: float, low: float, high: float) -> str | None:
    if low > 0.0 or high < 1.0:
        return f"a bernoulli gives 0 or 1, but its range is [{low:g}, {high:g}]"
    return None if 0.0 <= mean <= 1.0 else f"a bernoulli needs a mean from 0 to 1, got {mean:g}"


def _refuse_beta(mean: float, std: float, low: float, high: float) -> str | None:
    if not low < mean < high:
        return f"a beta on [{low:g}, {high:g}] needs a mean inside, got {mean:g}"
    most = float(np.sqrt((mean - low) * (high - mean)))
    if std < most:
        return None
    return f"a beta of mean {mean:g} on [{low:g}, {high:g}] needs a standard deviation below {most:.4g}, got {std:g}"


def _refuse_gamma(mean: float, std: float, low: float, high: float) -> str | None:
    if std == 0.0 and mean == 0.0 and low <= 0.0:  # by draw_cv: an arm that costs nothing
        return None
    if max(low, 0.0) < mean < high:
        return None
    least = max(low, 0.0)
    wanted = f"above {least:g}" if high == np.inf else f"between {least:g} and {high:g}, the ends of its range"
    return f"a gamma needs a mean {wanted}, got {mean:g}"


def _refuse_gaussian(mean: float, std: float, low: float, high: float) -> str | None:
    if std <= 0.0:  # by draw_cv
        return f"a gaussian needs a standard deviation above 0, got {std:g}"
    if low < mean < high:
        return None
    return f"a gaussian that is cut needs a mean between {low:g} and {high:g}, the ends of its range, got {mean:g}"


_COMPLAINTS = {BERNOULLI: _refuse_bernoulli, BETA: _refuse_beta, GAMMA: _refuse_gamma, GAUSSIAN: _refuse_gaussian}


def has_table(law: Law | None) -> bool:
    """Whether an outcome is drawn from a table of quantiles."""
    return law is not None and law.name in (BETA, GAMMA)


def make_tables(law: Law) -> FloatArray:
    """Return the quantiles of every arm (K, CELLS), cut at the range; the mean of each is the stated one."""
    make = _tabulate_beta if law.name == BETA else _tabulate_gamma
    return np.array([make(*(float(x[a]) for x in law[1:])) for a in range(law.means.size)])


@lru_cache(maxsize=1024)
def _tabulate_beta(mean: float, std: float, low: float, high: float) -> FloatArray:
    width = high - low
    place, spread = (mean - low) / width, std / width
    weight = place * (1.0 - place) / spread**2 - 1.0
    ones, zeros = place * weight, (1.0 - place) * weight
    # Each half from its own end: whole cells near 1 would be rounded to it, and the sum lose their distances from it.
    up, down = _beta_cells(ones, zeros), 1.0 - _beta_cells(zeros, ones)[::-1]
    in_lower_half = np.arange(CELLS) < CELLS * betainc(ones, zeros, 0.5)
    return _checked(np.clip(low + width * np.where(in_lower_half, up, down), low, high), mean)


def _beta_cells(a: float, b: float) -> FloatArray:
    """The cells of a beta, exact near 0."""
    edges = betaincinv(a, b, np.linspace(0.0, 1.0, CELLS + 1))
    return np.asarray(CELLS * a / (a + b) * np.diff(betainc(a + 1.0, b, edges)), dtype=np.float64)


@lru_cache(maxsize=1024)
def _tabulate_gamma(mean: float, std: float, low: float, high: float) -> FloatArray:
    if mean == 0.0:
        return np.zeros(CELLS)
    cells = _gamma_cells((mean / std) ** 2)

    def cut(scale: float) -> FloatArray:
        return np.clip(scale * cells, low, high)

    def excess(log_scale: float) -> float:
        return float(cut(np.exp(log_scale)).mean()) / mean - 1.0

    # In logarithms: the scale that a cut needs may be many times the one without.
    start = end = float(np.log(mean))
    for _ in range(_MOST_DOUBLINGS):
        if excess(start) <= 0.0:
            break
        start -= 1.0
    for _ in range(_MOST_DOUBLINGS):
        if excess(end) >= 0.0:
            break
        end += 1.0
    else:
        raise InvalidInput(
            f"draw: a gamma of mean {mean:g} and standard deviation {std:g} before the cut does not fit into a range "
            f"that ends at {high:g}: state a smaller spread, a smaller mean or a wider range"
        )
    found = start if start == end else brentq(excess, start, end, xtol=1e-15, rtol=1e-15)
    return _checked(cut(np.exp(found)), mean)


@lru_cache(maxsize=64)
def _gamma_cells(shape: float) -> FloatArray:
    """The cells of a gamma of mean 1."""
    edges = gammaincinv(shape, np.linspace(0.0, 1.0, CELLS + 1))
    return np.asarray(CELLS * np.diff(gammainc(shape + 1.0, edges)), dtype=np.float64)


def _checked(table: FloatArray, mean: float) -> FloatArray:
    # A world whose means are not the stated ones would make every judgement of a run wrong.
    assert abs(table.mean() - mean) <= _SAME_MEAN * max(1.0, abs(mean)), (table.mean(), mean)
    table.setflags(write=False)
    return table


def place_gaussian(law: Law) -> tuple[FloatArray, FloatArray]:
    """Return, for every arm, the mean before the cut that has the stated mean after it, and the std after it."""
    K = law.means.size
    if np.all(np.isinf(law.low)) and np.all(np.isinf(law.high)):
        return law.means.copy(), law.stds.copy()
    places, stds = np.empty(K), np.empty(K)
    for a, (mean, std, low, high) in enumerate(zip(*law[1:], strict=True)):

        def excess(place: float, mean: float = mean, std: float = std, low: float = low, high: float = high) -> float:
            return _cut_moments(place, std, low, high)[0] - mean

        reach = std
        while excess(mean - reach) > 0.0 or excess(mean + reach) < 0.0:
            reach *= 2.0
        places[a] = brentq(excess, mean - reach, mean + reach, xtol=1e-15 * std, rtol=1e-15)
        first, second = _cut_moments(places[a], std, low, high)
        stds[a] = np.sqrt(max(second - first**2, 0.0))
    return places, stds


def _cut_moments(place: float, std: float, low: float, high: float) -> tuple[float, float]:
    """The first two moments of a Gaussian that is cut at both ends."""
    a, b = (low - place) / std, (high - place) / std
    below, above, between = ndtr(a), ndtr(-b), ndtr(b) - ndtr(a)
    at_a, at_b = (np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) for x in (a, b))
    first = place * between + std * (at_a - at_b)
    second = (place**2 + std**2) * between + 2.0 * place * std * (at_a - at_b)
    if np.isfinite(low):
        first, second = first + low * below, second + low**2 * below + std**2 * a * at_a
    if np.isfinite(high):
        first, second = first + high * above, second + high**2 * above - std**2 * b * at_b
    return float(first), float(second)
