"""The tables of a certificate, of blocks and of all outcomes: written from a session, read back and checked."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.accounts import RANGE
from polyarm.certify.block_proof import StartPlan
from polyarm.certify.blocks import MAX_STARTS, Record, make_record
from polyarm.engine.answer_proof import Case
from polyarm.errors import InvalidInput
from polyarm.estimates import Estimates, make_estimates

#: Power sums of a block, by what a document calls them: means of powers of the distance from the guess.
_POWERS = ("first", "second", "third", "fourth")
#: Sums may be off by this share of what they are made of.
_ROUND_OFF = 1e-9


def tabulate_blocks(case: Case, start: StartPlan, table: Record) -> dict[str, Any]:
    """Return the start that proved an answer and its blocks, in the user's units, as plain JSON types.

    `told_before` is the number of outcomes that were known when a start or a block was fixed.
    """
    return {
        "start": {
            "number": start.number,
            "told_before": int(start.begun),
            "anchor": start.anchor.tolist(),
            "precision": _state(case, start.precision, 2),
            "pivots": _state(case, start.pivots, 1),
            "coarse": _state(case, start.coarse.astype(np.float64), 0),
        },
        "blocks": [_tabulate_block(case, table, k) for k in range(len(table.counts))],
    }


def _tabulate_block(case: Case, table: Record, k: int) -> dict[str, Any]:
    counts = table.counts[k]
    return {
        "told_before": int(table.told[k]),
        "answer": table.answers[k].tolist(),
        "counts": counts.tolist(),
        "guesses": _state(case, table.guesses[k], 1),
        "variances": _state(case, table.variances[k], 2),
        **{name: _state(case, table.powers[k, n] / counts, n + 1) for n, name in enumerate(_POWERS)},
    }


def _units(case: Case) -> list[tuple[str | None, int, float]]:
    """The outcomes that are measured: name (None: the reward), place, and units of kernels in one of the user's."""
    problem = case.problem
    costs = [(problem.constraints[i].name, 1 + i, float(case.model.factors[i])) for i in problem.unknown]
    return [(None, 0, 1.0), *costs]


def _state(case: Case, values: FloatArray, power: int) -> dict[str, Any]:
    """Write numbers of every outcome (1 + d, K) that scale with this power of the unit."""
    stated = {name: (values[k] / unit**power).tolist() for name, k, unit in _units(case)}
    reward = stated.pop(None)
    return {"reward": reward, "costs": stated}


def tabulate_statistics(case: Case, estimates: Estimates) -> dict[str, Any]:
    """Return what all outcomes add up to, in the user's units, as plain JSON types."""
    model, unknown = case.model, case.problem.unknown
    pulls = estimates.pulls
    return {
        "pulls": pulls.tolist(),
        "reward_sums": estimates.reward_sums.tolist(),
        "cost_sums": {
            case.problem.constraints[i].name: (estimates.cost_sums[i] / model.factors[i]).tolist() for i in unknown
        },
        "wander": _state(case, estimates.wander, 2),
        "pivots": _state(case, estimates.pivots, 1),
        **{name: _state(case, estimates.totals[n] / np.maximum(pulls, 1.0), n + 1) for n, name in enumerate(_POWERS)},
    }


def read_statistics(case: Case, stated: Mapping[str, Any]) -> Estimates:
    """Read what `tabulate_statistics` wrote; raises if it is not such a table."""
    problem, model = case.problem, case.model
    estimates = make_estimates(model)
    estimates.pulls[:] = problem.check_counts("statistics.pulls", stated["pulls"])
    estimates.reward_sums[:] = problem.check_numbers("statistics.reward_sums", stated["reward_sums"])
    estimates.mu_hat[:] = estimates.reward_sums / estimates.pulls
    for i in problem.unknown:
        name = problem.constraints[i].name
        sums = problem.check_numbers(f"statistics.cost_sums.{name}", stated["cost_sums"][name])
        estimates.cost_sums[i] = sums * model.factors[i]
        estimates.columns[1 + i] = estimates.cost_sums[i] / estimates.pulls - model.bounds[i]
    means = np.vstack([estimates.mu_hat, estimates.columns[1:] + model.bounds[:, None]])
    _require_in_range(case, "statistics", means)
    estimates.wander[:] = _read(case, "statistics.wander", stated["wander"], 2)
    if np.any(estimates.wander < 0.0):
        raise InvalidInput("statistics.wander: expected sums of squares, which are not negative")
    estimates.pivots[:] = _read(case, "statistics.pivots", stated["pivots"], 1)
    moments = _read_moments(case, "statistics", stated)
    estimates.totals[:] = moments * estimates.pulls
    sums = np.vstack([estimates.reward_sums[None], estimates.cost_sums])
    measured = [k for _, k, _ in _units(case)]
    expected = (estimates.pivots + moments[0]) * estimates.pulls
    sizes = (np.abs(estimates.pivots) + np.sqrt(moments[1])) * estimates.pulls
    if np.any(np.abs(sums - expected)[measured] > _ROUND_OFF * sizes[measured]):
        raise InvalidInput("statistics: the sums are not what pivots and first say")
    return estimates


def _read_moments(case: Case, where: str, stated: Mapping[str, Any]) -> FloatArray:
    """Read mean powers (4, 1 + d, K); raises if no outcomes can have them."""
    moments = np.array([_read(case, f"{where}.{name}", stated[name], n + 1) for n, name in enumerate(_POWERS)])
    first, second, third, fourth = moments
    room = 1.0 + _ROUND_OFF
    for fails, name in (
        (second * room < first**2, f"{where}.second: smaller than the square of {where}.first"),
        (fourth * room < second**2, f"{where}.fourth: smaller than the square of {where}.second"),
        (second * fourth * room < third**2, f"{where}.third: its square is larger than {where}.second times fourth"),
    ):
        if np.any(fails):
            raise InvalidInput(f"{name}, which no outcomes can give")
    return moments


def read_blocks(case: Case, stated: Mapping[str, Any], pulls: FloatArray) -> tuple[StartPlan, Record]:
    """Read what `tabulate_blocks` wrote; raises if it is not such a table, or does not fit the `pulls` made."""
    start = _read_start(case, stated["start"])
    blocks = stated["blocks"]
    if not isinstance(blocks, list) or not blocks:
        raise InvalidInput("blocks: expected a list of at least one block")
    table = make_record(len(blocks), case.problem.n_arms, case.problem.n_constraints)
    told = start.begun
    for k, block in enumerate(blocks):
        _read_block(case, block, k, told, table)
        told += table.counts[k].sum()
    # Every arm was pulled before the first start, too; where a larger r was accepted,
    # a block that is not complete may come after the last one.
    missing = told > pulls.sum() if case.r != case.problem.r else told != pulls.sum()
    if missing or np.any(table.counts.sum(axis=0) >= pulls):
        raise InvalidInput("blocks: their counts and the pulls before them do not add up to statistics.pulls")
    return start, table


def _read_start(case: Case, stated: Mapping[str, Any]) -> StartPlan:
    problem = case.problem
    number = _whole("start.number", stated["number"], MAX_STARTS - 1)
    begun = _whole("start.told_before", stated["told_before"])
    precision = _read(case, "start.precision", stated["precision"], 2)
    if np.any(precision[[k for _, k, _ in _units(case)]] <= 0.0):
        raise InvalidInput("start.precision: expected positive numbers")
    coarse = _read(case, "start.coarse", stated["coarse"], 0)
    if np.any((coarse != 0.0) & (coarse != 1.0)):
        raise InvalidInput("start.coarse: expected zeros and ones")
    return StartPlan(
        number=number,
        begun=float(begun),
        anchor=problem.check_policy(stated["anchor"]),
        precision=precision,
        pivots=_read(case, "start.pivots", stated["pivots"], 1),
        coarse=coarse.astype(np.int64),
    )


def _read(case: Case, field: str, stated: Mapping[str, Any], power: int) -> FloatArray:
    """Read what `_state` wrote."""
    values = np.zeros((1 + case.problem.n_constraints, case.problem.n_arms))
    for name, k, unit in _units(case):
        where = f"{field}.reward" if name is None else f"{field}.costs.{name}"
        values[k] = case.problem.check_numbers(where, stated["reward"] if name is None else stated["costs"][name])
        values[k] *= unit**power
    return values


def _require_in_range(case: Case, where: str, means: FloatArray) -> None:
    """Raise for means (1 + d, K), in units of kernels, that no outcomes in the declared ranges can have."""
    model = case.model
    for name, k, _ in _units(case):
        if model.accounts[k] == RANGE:
            room = 1e-9 * (model.high[k] - model.low[k])
            if np.any(means[k] < model.low[k] - room) or np.any(means[k] > model.high[k] + room):
                outcome = "rewards" if name is None else f"costs {name!r}"
                raise InvalidInput(f"{where}: mean {outcome} outside their declared range, which no outcomes can give")


def _whole(field: str, value: Any, most: int = 10**15) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InvalidInput(f"{field}: expected a whole number, 0 to {most}, got {value!r}")
    return value


def _read_block(case: Case, stated: Mapping[str, Any], k: int, told: float, table_out: Record) -> None:
    problem, where = case.problem, f"blocks.{k}"
    table_out.answers[k] = problem.check_policy(stated["answer"])
    table_out.counts[k] = problem.check_counts(f"{where}.counts", stated["counts"])
    table_out.guesses[k] = _read(case, f"{where}.guesses", stated["guesses"], 1)
    table_out.variances[k] = _read(case, f"{where}.variances", stated["variances"], 2)
    table_out.powers[k] = _read_moments(case, where, stated) * table_out.counts[k]
    _require_in_range(case, where, table_out.guesses[k] + table_out.powers[k, 0] / table_out.counts[k])
    _require_in_range(case, f"{where}.guesses", table_out.guesses[k])
    table_out.told[k] = _whole(f"{where}.told_before", stated["told_before"])
    if table_out.told[k] != told:
        raise InvalidInput(
            f"{where}.told_before: stated {stated['told_before']!r}, but {told:g} outcomes came before the block; its "
            "answer and counts must be fixed after these and before its own"
        )
