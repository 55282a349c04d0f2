"""`plan`: before the first pull, how many pulls an exploration will take, from a guess of the truth."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.bounds.joint import JointSearch, JointTime, Plan, joint_time
from polyarm.environments.instances import Guess, Instance, load_guess
from polyarm.errors import InvalidInput
from polyarm.experiments.simulate import simulate
from polyarm.model import Model, build_model
from polyarm.planner.forecast import forecast_pulls, stylised_pulls
from polyarm.problem import Problem
from polyarm.problem_file import load_problem
from polyarm.rules.certex import CertexSettings
from polyarm.stops.planned import START_AT, expected_pricing
from polyarm.stops.settings import check_certifiable

Progress = Callable[[int, int], None]

#: Without a choice of r the plan is made for these multiples of the problem's own.
_TOLERANCES = (1.0, 2.0, 4.0, 8.0)
_DELTAS = (0.1, 0.05, 0.01)
#: Without a choice a budget is relaxed by this share of itself.
_RELAXATION = 0.05
#: Simulated runs give up after this many times the forecast.
_PATIENCE = 4.0
_LONGEST_RUN = 20_000_000
#: The averaged certificate takes about this many times the pulls that it would take with exact estimates: its answer is
#: an average, and the first blocks know little (`docs/plan.md` has the measurement).
_LEARNING = 1.6
#: The search for a number of pulls begins here if nothing is known of it.
_SOME_PULLS = 1e4
#: Truths drawn from ranges are summarised by these quantiles.
QUANTILES = (0.1, 0.5, 0.9)
_DRAWS = 20
_DRAWING_SEED = 0


def plan(
    guess: str | Path | Instance | Problem,
    r: float | Iterable[float] | None = None,
    delta: float | Iterable[float] | None = None,
    *,
    mu: Sequence[float] | FloatArray | None = None,
    costs: Mapping[str, Any] | Sequence[Any] | FloatArray | None = None,
    seeds: int = 0,
    relax: float | None = None,
    draws: int = _DRAWS,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return what an exploration of a guessed truth will cost, as plain JSON types; what is infinite is None.

    Args:
        guess: The name of a shipped instance, the TOML file of one, an `Instance`, or a `Problem`. In a file entries of
            mu and A may be ranges, [low, high]: the plan is for the middle guess, and the forecasts at the first delta
            are made again for truths from the ranges.
        r: Tolerances to plan for, one or several; default: multiples of the problem's. The first one is that of the
            simulation and of the prices.
        delta: Error probabilities to plan for, one or several; default: the problem's, 0.1, 0.05 and 0.01. The first
            one is that of the simulation and of the prices.
        mu: For a `Problem` without a guess of its own: the mean reward that you expect of each arm.
        costs: Beside `mu`: the mean costs of each measured constraint, one number per arm; by name, or in their order.
        seeds: How many runs of `certex` to simulate.
        relax: By how much to relax each bound, in its own units, to see what that does to the pulls; default: 5 %.
        draws: How many truths to draw from the ranges; always the same ones.
        progress: Called with (done, total) as the work goes on.

    Keys: instance, r, delta, value, optimal_policy, allocation, answer, simulated, constraints, ranges, forecasts (one
    per r and delta: T, certified_T, lower_T, and the pulls until `certex` stops, with stylised and proved thresholds).
    """
    expected = _find_guess(guess, mu, costs)
    instance = expected.middle()
    tolerances, deltas = _choose(instance.problem, r, delta)
    seeds, draws = _check_count("seeds", seeds), _check_count("draws", draws)
    instance = _change(instance, r=tolerances[0], delta=deltas[0])
    relaxed = [_relax(instance, i, relax) for i in range(instance.problem.n_constraints)]
    drawn = expected.draw(draws, _DRAWING_SEED) if expected.has_ranges else []
    feasible = [truth for truth in drawn if truth.optimum() is not None]
    best = instance.optimum()
    if best is None:
        _require_a_feasible_draw(instance, len(drawn), len(feasible), seeds)
    _check_plannable(instance.problem, tolerances, deltas)
    work = _Work(len(tolerances) * (1 + len(feasible)) + len(relaxed) + seeds, progress)
    first, forecasts = _forecast_all(instance, tolerances, deltas, work.advance)
    here = forecasts[0]["proved"]
    return {
        "instance": instance.name,
        "r": tolerances[0],
        "delta": deltas[0],
        "value": None if best is None else best.value,
        "optimal_policy": None if best is None else best.policy.tolist(),
        "allocation": None if first is None else first.allocation.tolist(),
        "answer": None if first is None else first.answer.tolist(),
        "forecasts": forecasts,
        "constraints": [_price(instance, i, change, here, work.advance) for i, change in enumerate(relaxed)],
        "ranges": _survey(drawn, feasible, tolerances, deltas[0], work.advance) if drawn else None,
        "simulated": _simulate(instance, seeds, here, work.advance) if seeds else None,
    }


class _Work:
    """Counts the steps done, and reports them."""

    def __init__(self, steps: int, progress: Progress | None) -> None:
        self._steps = steps
        self._progress = progress
        self._done = 0

    def advance(self, by: int) -> None:
        self._done += by
        if self._progress is not None:
            self._progress(self._done, self._steps)


def _forecast_all(
    instance: Instance, tolerances: list[float], deltas: list[float], advance: Callable[[int], None]
) -> tuple[JointTime | None, list[dict[str, Any]]]:
    """Return the joint time at the first tolerance, and a forecast for every tolerance and level."""
    found, forecasts = [], []
    for tolerance in tolerances:
        changed = _change(instance, r=tolerance)
        found.append(_find_time(changed))
        forecasts += [_forecast(_change(changed, delta=level), found[-1]) for level in deltas]
        advance(1)
    return found[0], forecasts


def _require_a_feasible_draw(instance: Instance, draws: int, feasible: int, seeds: int) -> None:
    """Refuse a guess whose middle is infeasible, unless some of the truths drawn from its ranges are not."""
    nothing = f"instance {instance.name!r}: no mix satisfies the constraints as guessed"
    if not draws:
        raise InvalidInput(f"{nothing}: nothing to plan for")
    if not feasible:
        raise InvalidInput(f"{nothing}, neither in the middle of the ranges nor in {draws} draws: nothing to plan for")
    if seeds:
        raise InvalidInput(f"seeds: nothing to simulate; {nothing} in the middle of the ranges")


def _check_plannable(problem: Problem, tolerances: list[float], deltas: list[float]) -> None:
    for tolerance in tolerances:
        if tolerance == 0.0:
            raise InvalidInput("r = 0: nothing can be certified without a tolerance; choose r > 0")
        check_certifiable(problem.replace(r=tolerance))
    for level in deltas:
        problem.replace(delta=level)  # raises if it is not a probability


def _find_guess(guess: Any, mu: Any, costs: Any) -> Guess:
    """Return the guess that a plan is made for, in whatever form it was given."""
    if isinstance(guess, Problem):
        instance = _guess_problem(guess, mu, costs)
        return Guess(instance, instance, has_ranges=False)
    if mu is not None or costs is not None:
        raise InvalidInput("mu, costs: belong to a Problem; a file or an instance has a guess of its own")
    if isinstance(guess, Instance):
        return Guess(guess, guess, has_ranges=False)
    if not isinstance(guess, str | Path):
        raise InvalidInput(
            f"guess: expected the name of an instance, its file, an Instance or a Problem, got {type(guess).__name__}"
        )
    return _load_guess(guess)


def _guess_problem(problem: Problem, mu: Any, costs: Any) -> Instance:
    """Return a problem with its guessed truth, given here or to its template."""
    if mu is not None:
        problem = problem.with_guess(mu, () if costs is None else costs)
    elif costs is not None:
        raise InvalidInput("mu: required beside costs, the mean reward that you expect of each arm")
    if problem.guess is None:
        names = [problem.constraints[i].name for i in problem.unknown]
        missing = ", ".join(f"{name!r}: [...]" for name in names)
        also = f", and costs={{{missing}}}, the mean costs of each measured constraint" if names else ""
        raise InvalidInput(
            f"a Problem has no guess of its means: give mu=[...], the mean reward of each arm{also}; or give "
            "its template a guess"
        )
    expected = problem.guess
    rows = [expected.costs[c.name] if c.row is None else c.row for c in problem.constraints]
    A = np.array(rows, dtype=np.float64).reshape(problem.n_constraints, problem.n_arms)
    return Instance("your guess", "", problem, np.array(expected.mu), A)


def _load_guess(guess: str | Path) -> Guess:
    try:
        return load_guess(guess)
    except InvalidInput:
        try:
            load_problem(guess)
        except InvalidInput:
            pass
        else:
            raise InvalidInput(
                f"{guess} states a problem without a guess of its truth: add mu, the mean rewards, and A and b, the "
                "costs and their bounds, as in an instance file"
            ) from None
        raise


def _choose(
    problem: Problem, r: float | Iterable[float] | None, delta: float | Iterable[float] | None
) -> tuple[list[float], list[float]]:
    """Return the tolerances and the error probabilities to plan for, each without repetition."""
    if r is not None:
        tolerances = _numbers("r", r)
    elif problem.r > 0.0:
        tolerances = [round(problem.r * factor, 12) for factor in _TOLERANCES]
    else:
        tolerances = [problem.r]
    deltas = _numbers("delta", delta) if delta is not None else [problem.delta, *_DELTAS]
    return list(dict.fromkeys(tolerances)), list(dict.fromkeys(deltas))


def _numbers(field: str, values: Any) -> list[float]:
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    if not listed:
        raise InvalidInput(f"{field}: expected at least one value")
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise InvalidInput(f"{field}: expected numbers, got {value!r}")
    return [float(value) for value in listed]


def _check_count(field: str, count: Any) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise InvalidInput(f"{field}: expected a whole number, 0 or more, got {count!r}")
    return int(count)


def _change(instance: Instance, **changes: Any) -> Instance:
    return instance.with_problem(**changes)


def _relax(instance: Instance, row: int, amount: float | None) -> tuple[float, Instance]:
    """Return by how much a bound is relaxed, in its own units, and the instance with that bound."""
    constraint = instance.problem.constraints[row]
    if amount is None:
        scale = abs(constraint.bound) or float(np.abs(instance.A[row]).max()) or 1.0
        amount = _RELAXATION * scale
    if not amount > 0.0 or not math.isfinite(amount):
        raise InvalidInput(f"relax: expected a positive number, got {amount!r}")
    constraints = list(instance.problem.constraints)
    constraints[row] = constraint.model_copy(update={"bound": constraint.bound + constraint.sign * amount})
    return amount, _change(instance, constraints=[c.model_dump() for c in constraints])


def _kernel_view(instance: Instance) -> tuple[Model, Any, Any]:
    model = build_model(instance.problem)
    return model, instance.mu, instance.A * model.factors[:, None] - model.bounds[:, None]


def _find_time(instance: Instance) -> JointTime | None:
    return joint_time(*_kernel_view(instance), uniform=False)


def forecast_stop(instance: Instance) -> dict[str, Any]:
    """Return one entry of a plan's `forecasts`, at an instance's own r and delta."""
    return _forecast(instance, _find_time(instance))


def _forecast(instance: Instance, found: JointTime | None) -> dict[str, Any]:
    """Return the pulls to expect at an instance's r and delta, whose T has been found."""
    entry: dict[str, Any] = {"r": instance.problem.r, "delta": instance.problem.delta}
    if found is None:
        return entry | dict.fromkeys(("T", "certified_T", "lower_T", "stylised", "proved"))
    entry |= {
        "T": found.time,
        "certified_T": found.certified if math.isfinite(found.certified) else None,
        "lower_T": found.lower,
    }
    stylised = max(stylised_pulls(found.time, instance.problem.delta), float(instance.problem.n_arms))
    proved = _proved_pulls(instance, Plan(found.allocation, found.answer, 0.0), stylised)
    return {**entry, "stylised": stylised, "proved": proved}


def _proved_pulls(instance: Instance, start: Plan | None, guess: float) -> float | None:
    """Return the pulls until proved thresholds are reached, from a start if there is one and from all others."""
    model, means, rows = _kernel_view(instance)
    pricing = expected_pricing(CertexSettings().make_terms(model), model)
    starts = [None] if start is None else [None, start]
    found = [forecast_pulls(JointSearch(model, means, rows, pricing), plan, guess) for plan in starts]
    pulls = [_LEARNING * (1.0 + START_AT) * due[0] for due in found if due is not None]
    return max(min(pulls), float(means.size)) if pulls else None


def _price(
    instance: Instance, row: int, change: tuple[float, Instance], pulls: float | None, advance: Callable[[int], None]
) -> dict[str, Any]:
    """Return what relaxing one bound brings: pulls saved (negative: more are needed) and reward gained."""
    amount, relaxed = change
    before, best = instance.optimum(), relaxed.optimum()
    relaxed_pulls = _proved_pulls(relaxed, None, pulls or _SOME_PULLS)
    advance(1)
    constraint = instance.problem.constraints[row]
    return {
        "name": constraint.name,
        "sense": constraint.sense,
        "bound": constraint.bound,
        "relaxed_by": amount,
        "pulls": relaxed_pulls,
        "saved": None if pulls is None or relaxed_pulls is None else pulls - relaxed_pulls,
        "reward_gained": None if before is None or best is None else max(best.value - before.value, 0.0),
    }


def _survey(
    drawn: list[Instance],
    feasible: list[Instance],
    tolerances: list[float],
    delta: float,
    advance: Callable[[int], None],
) -> dict[str, Any]:
    """Forecast for every feasible truth drawn from the ranges, and summarise by quantiles."""
    surveyed = []
    for tolerance in tolerances:
        rows = []
        for truth in feasible:
            changed = _change(truth, r=tolerance, delta=delta)
            rows.append(_forecast(changed, _find_time(changed)))
            advance(1)
        summary = {name: _quantiles([row[name] for row in rows]) for name in ("T", "stylised", "proved")}
        endless = sum(row["proved"] is None for row in rows)
        surveyed.append({"r": tolerance, "delta": delta, "without_forecast": endless, **summary})
    return {
        "draws": len(drawn),
        "infeasible": len(drawn) - len(feasible),
        "quantiles": list(QUANTILES),
        "forecasts": surveyed,
    }


def _quantiles(values: list[float | None]) -> list[float | None]:
    """Return quantiles of these values, never between two of them: one may be infinite (None)."""
    if not values:
        return [None] * len(QUANTILES)
    numbers = [math.inf if value is None else value for value in values]
    found = np.quantile(numbers, QUANTILES, method="inverted_cdf")
    return [float(value) if math.isfinite(value) else None for value in found]


def _simulate(instance: Instance, seeds: int, forecast: float | None, advance: Callable[[int], None]) -> dict[str, Any]:
    """Run `certex` with proved thresholds on the guess and summarise when it stopped."""
    if forecast is None:
        raise InvalidInput("seeds: nothing to simulate, as no certificate is due in finite time at the first r")
    horizon = int(min(max(_PATIENCE * forecast, 1000.0), _LONGEST_RUN))
    told = 0

    def tell(done: int, _: int) -> None:
        nonlocal told
        if done > told:
            advance(done - told)
            told = done

    result = simulate(instance, "certex", seeds=seeds, horizon=horizon, progress=tell)
    row = result.table()[0]
    kept = ("seeds", "horizon_hit", "q25_stop", "median_stop", "q75_stop", "mean_stop", "feasible_rate", "correct_rate")
    return {"explorer": "certex", "thresholds": "proved", "horizon": horizon, **{name: row[name] for name in kept}}
