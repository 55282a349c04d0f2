"""Sampling rules compared at equal guarantees: every explorer stops by the certified rule."""

from collections.abc import Mapping, Sequence
from typing import Any

from polyarm.bounds.forecast import stylised_pulls
from polyarm.bounds.lower import describe_joint
from polyarm.experiments.results import Cell
from polyarm.explorers.registry import get_explorer
from polyarm.papers.das_basu_2026.scope import CERTEX_ROWS, Key, Scope

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
    """Return T* at the paper's tolerance, and about how many pulls a certified stop would take there."""
    rows = []
    for instance in scope.guaranteed:
        problem = instance.problem.replace(r=_PAPER_R)
        time = describe_joint(problem, instance.mu, instance.A)["T"]
        pulls = None if time is None else stylised_pulls(time, problem.delta)
        rows.append({"instance": instance.name, "r": _PAPER_R, "T": time, "stylised_pulls": pulls})
    return rows


def describe(rows: Sequence[Mapping[str, Any]], forecasts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say who needs the fewest pulls where, and why the paper's tolerance is not used."""
    sentences = []
    for instance in dict.fromkeys(row["instance"] for row in rows):
        finished = [row for row in rows if row["instance"] == instance and row["mean_stop"] is not None]
        finished.sort(key=lambda row: float(row["mean_stop"]))
        names = {row["row"] for row in finished}
        others = {n for n in names if n not in CERTEX_ROWS and not get_explorer(n).needs_known_rows}
        if names & set(CERTEX_ROWS) and others:
            ours = next(row for row in finished if row["row"] in CERTEX_ROWS)
            other = next(row for row in finished if row["row"] in others)
            factor = other["mean_stop"] / ours["mean_stop"]
            sentences.append(
                f"{instance}, r = {ours['r']:g}: {ours['row']} needs {ours['mean_stop']:,.0f} pulls on average; the "
                f"best of the rules that estimate the constraints, {other['row']}, {factor:.1f} times as many."
            )
    listed = [
        f"{row['T']:,.0f} on {row['instance']} (about {row['stylised_pulls']:,.0f} pulls with stylised thresholds)"
        for row in forecasts
        if row["T"] is not None
    ]
    if listed:
        sentences.append(
            f"At the paper's r = {_PAPER_R:g} the joint characteristic time T*, below which no explorer can certify "
            f"anything at unit threshold, is {'; '.join(listed)}. Proved thresholds take two to eight times as long as "
            "stylised ones: up to millions of pulls a run, so the comparison uses larger tolerances."
        )
    return sentences
