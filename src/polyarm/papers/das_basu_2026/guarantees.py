"""Sampling rules compared at equal guarantees: every explorer stops by the certified rule."""

from collections.abc import Mapping, Sequence
from typing import Any

from polyarm.experiments.plan import forecast_stop
from polyarm.experiments.results import Cell
from polyarm.papers.das_basu_2026.scope import CERTEX_ROWS, GUARANTEE_TOLERANCES, Key, Scope
from polyarm.rules.registry import get_explorer

#: The tolerance of the paper's experiments.
_PAPER_R = 0.01


def collect(cells: Mapping[Key, Cell]) -> list[dict[str, Any]]:
    """Return one row per explorer and instance."""
    kept = ("seeds", "horizon_hit", "mean_stop", "median_stop", "feasible_rate", "correct_rate")
    rows = []
    for key, cell in cells.items():
        if key[0] == "guarantee":
            summary = cell.summary()
            rows.append(
                {
                    "row": key[1],
                    "instance": cell.instance,
                    "r": cell.settings["r"],
                    "horizon": cell.horizon,
                    **{name: summary[name] for name in kept},
                }
            )
    return rows


def forecast(scope: Scope) -> list[dict[str, Any]]:
    """Return the joint characteristic time of the paper's instances at its own tolerance, and the pulls to expect.

    `T` is that of the best plan found; `lower_T` is proved to be below the best possible one.
    """
    shipped = [instance for instance in scope.guaranteed if instance.name in GUARANTEE_TOLERANCES]
    return [{"instance": instance.name, **forecast_stop(instance.with_problem(r=_PAPER_R))} for instance in shipped]


def describe(rows: Sequence[Mapping[str, Any]], forecasts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Compare certex with the best of the other rules, and say why the paper's tolerance is not used."""
    sentences = [_compare(instance, rows) for instance in dict.fromkeys(row["instance"] for row in rows)]
    finite = [row for row in forecasts if row["proved"] is not None]
    if finite:
        listed = "; ".join(
            f"{row['instance']} {row['T']:,.0f} (at least {row['lower_T']:,.0f}), about {row['proved']:,.0f} pulls"
            for row in finite
        )
        longest = max(row["proved"] for row in finite)
        sentences.append(
            f"At the paper's r = {_PAPER_R:g} the joint characteristic time T*, as found (and proved from below), and "
            f"the pulls that certex would take with proved thresholds are: {listed}. With up to {longest:,.0f} pulls a "
            "run, the comparison uses larger tolerances."
        )
    return sentences


def _compare(instance: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Name the fewest pulls of certex and of the other rules that estimate the constraints, by median."""
    here = [row for row in rows if row["instance"] == instance]
    ours = [row for row in here if row["row"] in CERTEX_ROWS]
    others = [row for row in here if row["row"] not in CERTEX_ROWS and not get_explorer(row["row"]).needs_known_rows]
    return (
        f"{instance}, r = {here[0]['r']:g}: fewest pulls of certex: {_describe_best(ours)}; of the other rules that "
        f"are not told the constraints: {_describe_best(others)}."
    )


def _describe_best(rows: Sequence[Mapping[str, Any]]) -> str:
    finished = [row for row in rows if row["median_stop"] is not None]
    if not finished:
        return "none stopped within the horizon in half of its runs"
    best = min(finished, key=lambda row: float(row["median_stop"]))
    return f"{best['median_stop']:,.0f} ({best['row']}, median)"
