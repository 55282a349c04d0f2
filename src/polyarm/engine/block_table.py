"""The table of blocks in a certificate: written from a session, read back and checked."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyarm._types import FloatArray
from polyarm.certify.block_proof import StartPlan
from polyarm.certify.blocks import MAX_STARTS, Record, make_record
from polyarm.engine.answer_proof import Case
from polyarm.errors import InvalidInput


def tabulate_blocks(case: Case, start: StartPlan, table: Record) -> dict[str, Any]:
    """Return the start that proved an answer and its blocks, in the user's units, as plain JSON types.

    `told_before` is the number of outcomes that were known when a start or a block was fixed.
    """
    problem, model = case.problem, case.model
    costs = {
        problem.constraints[i].name: (table.rows[:, i] + model.bounds[i]) / model.factors[i] for i in problem.unknown
    }
    return {
        "start": {
            "number": start.number,
            "told_before": int(start.begun),
            "lam": start.lam.tolist(),
            "anchor": start.anchor.tolist(),
        },
        "blocks": [
            {
                "told_before": int(table.told[k]),
                "answer": table.answers[k].tolist(),
                "counts": table.counts[k].tolist(),
                "mean_rewards": table.means[k].tolist(),
                "mean_costs": {name: means[k].tolist() for name, means in costs.items()},
            }
            for k in range(len(table.counts))
        ],
    }


def read_blocks(case: Case, stated: Mapping[str, Any], pulls: FloatArray) -> tuple[StartPlan, Record]:
    """Read what `tabulate_blocks` wrote; raises if it is not such a table, or does not fit the `pulls` made."""
    start = _read_start(case, stated["start"])
    blocks = stated["blocks"]
    if not isinstance(blocks, list) or not blocks:
        raise InvalidInput("blocks: expected a list of at least one block")
    table = make_record(len(blocks), case.problem.n_arms, case.problem.n_constraints)
    table.rows[:] = case.model.known_rows
    told = start.begun
    for k, block in enumerate(blocks):
        _read_block(case, block, k, told, table)
        told += table.counts[k].sum()
    # Every arm was pulled before the first start, too.
    if told != pulls.sum() or np.any(table.counts.sum(axis=0) >= pulls):
        raise InvalidInput("blocks: their counts and the pulls before them do not add up to statistics.pulls")
    return start, table


def _read_start(case: Case, stated: Mapping[str, Any]) -> StartPlan:
    problem = case.problem
    number = _whole("start.number", stated["number"], MAX_STARTS - 1)
    begun = _whole("start.told_before", stated["told_before"])
    lam = problem.check_numbers("start.lam", stated["lam"])
    if np.any(lam <= 0.0):
        raise InvalidInput(f"start.lam: expected positive numbers, got {lam.tolist()}")
    return StartPlan(number, float(begun), lam, problem.check_policy(stated["anchor"]))


def _whole(field: str, value: Any, most: int = 10**15) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InvalidInput(f"{field}: expected a whole number, 0 to {most}, got {value!r}")
    return value


def _read_block(case: Case, stated: Mapping[str, Any], k: int, told: float, table_out: Record) -> None:
    problem, model, where = case.problem, case.model, f"blocks.{k}"
    table_out.answers[k] = problem.check_policy(stated["answer"])
    table_out.counts[k] = problem.check_counts(f"{where}.counts", stated["counts"])
    table_out.means[k] = problem.check_numbers(f"{where}.mean_rewards", stated["mean_rewards"])
    for i in problem.unknown:
        name = problem.constraints[i].name
        costs = problem.check_numbers(f"{where}.mean_costs.{name}", stated["mean_costs"][name])
        table_out.rows[k, i] = costs * model.factors[i] - model.bounds[i]
    table_out.told[k] = _whole(f"{where}.told_before", stated["told_before"])
    if table_out.told[k] != told:
        raise InvalidInput(
            f"{where}.told_before: stated {stated['told_before']!r}, but {told:g} outcomes came before the block; its "
            "answer and counts must be fixed after these and before its own"
        )
