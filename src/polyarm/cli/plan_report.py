"""What `polyarm plan` prints."""

from typing import Any

from rich.table import Table

from polyarm.cli.report import console, number, print_json


def show_plan(result: dict[str, Any], as_json: bool) -> None:
    """Report a plan."""
    if as_json:
        print_json(result)
        return
    if result["value"] is None:
        console.print(
            f"[bold]{result['instance']}[/bold]: no mix satisfies the constraints in the middle of the ranges; the "
            "forecasts are for truths drawn from them",
            highlight=False,
            soft_wrap=True,
        )
    else:
        _show_forecasts(result)
    if result["ranges"] is not None:
        _show_ranges(result)
    if result["simulated"] is not None:
        _show_simulated(result)
    if result["constraints"]:
        _show_prices(result)


def _show_forecasts(result: dict[str, Any]) -> None:
    guess = "guess" if result["ranges"] is None else "middle of the ranges"
    console.print(
        f"[bold]{result['instance']}[/bold]: best value {result['value']:.4f} if the {guess} is right",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(title="pulls until certex stops, as forecast")
    for name in ("r", "delta", "T*", "proved: T* at most", "stylised thresholds", "proved thresholds"):
        table.add_column(name, justify="right")
    for row in result["forecasts"]:
        table.add_row(
            f"{row['r']:g}",
            f"{row['delta']:g}",
            number(row["T"], 1),
            number(row["certified_T"], 1),
            number(row["stylised"]),
            number(row["proved"]),
        )
    console.print(table)
    console.print(
        "T* is the joint characteristic time, as found. These are forecasts, not bounds: runs scatter around them "
        "(--seeds simulates). Stylised thresholds come without a guarantee.",
        style="dim",
        highlight=False,
    )


def _show_ranges(result: dict[str, Any]) -> None:
    ranges = result["ranges"]
    quantiles = " / ".join(f"{100 * q:g}" for q in ranges["quantiles"]) + " %"
    table = Table(title=f"over truths drawn from the ranges (delta = {result['delta']:g}): quantiles {quantiles}")
    for name in ("r", "T*", "stylised thresholds", "proved thresholds", "draws without an end"):
        table.add_column(name, justify="right")
    for row in ranges["forecasts"]:
        table.add_row(
            f"{row['r']:g}",
            " / ".join(number(value, 1) for value in row["T"]),
            " / ".join(number(value) for value in row["stylised"]),
            " / ".join(number(value) for value in row["proved"]),
            f"{row['without_forecast']}",
        )
    console.print(table)
    console.print(
        f"{ranges['draws']} draws, less {ranges['infeasible']} without a feasible mix. Draws without an end, in "
        "which no certificate is ever due, count as infinite.",
        style="dim",
        highlight=False,
        soft_wrap=True,
    )


def _show_simulated(result: dict[str, Any]) -> None:
    runs = result["simulated"]
    text = (
        f"simulated, r = {result['r']:g}, delta = {result['delta']:g}, proved thresholds, {runs['seeds']} seeds: "
        f"median {number(runs['median_stop'])} pulls, quartiles {number(runs['q25_stop'])} to "
        f"{number(runs['q75_stop'])}; {runs['correct_rate']:.0%} of the final mixes feasible and within r"
    )
    if runs["horizon_hit"]:
        text += f"; {runs['horizon_hit']} runs were cut off after {number(runs['horizon'])} pulls"
    console.print(text, highlight=False, soft_wrap=True)


def _show_prices(result: dict[str, Any]) -> None:
    table = Table(title=f"what relaxing a bound changes (r = {result['r']:g}, delta = {result['delta']:g}, proved)")
    for name in ("constraint", "relaxed by", "pulls then", "pulls saved", "reward gained"):
        table.add_column(name, justify="left" if name == "constraint" else "right")
    for row in result["constraints"]:
        table.add_row(
            f"{row['name']} {row['sense']} {row['bound']:g}",
            f"{row['relaxed_by']:g}",
            number(row["pulls"]),
            "-" if row["saved"] is None else f"{row['saved']:+,.0f}",
            "-" if row["reward_gained"] is None else f"{row['reward_gained']:.4f}",
        )
    console.print(table)
