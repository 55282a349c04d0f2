"""What `polyarm bound` prints."""

from typing import Any

from rich.table import Table

from polyarm.cli.report import console, number, print_json


def show_bounds(result: dict[str, Any], as_json: bool) -> None:
    """Report the bounds of an instance."""
    if as_json:
        print_json(result)
        return
    console.print(
        f"[bold]{result['instance']}[/bold], delta = {result['delta']:g}, r = {result['r']:g}: best value "
        f"{result['value']:.4f} at {_mix(result['optimal_policy'])}",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(title="characteristic times: no explorer with error at most delta expects fewer samples")
    for name in ("bound", "T", "samples", "T at pi*", "allocation"):
        table.add_column(name, justify="left" if name in {"bound", "allocation"} else "right")
    for name, bound in result["bounds"].items():
        if name == "joint":
            continue
        at_optimum = bound.get("T_at_optimum", bound["T"])
        table.add_row(
            name, number(bound["T"], 1), number(bound["samples"]), number(at_optimum, 1), _mix(bound["allocation"])
        )
    joint = result["bounds"]["joint"]
    if joint["T"] is not None:
        table.add_row("joint", number(joint["T"], 1), number(joint["samples"]), "-", _mix(joint["allocation"]))
    console.print(table)
    console.print(_explain_joint(joint), style="dim", highlight=False)
    if result["r"] > 0:
        console.print(
            "r > 0: T of bai and known is the smallest found over r-optimal answers; lagrangian rows are at pi* only.",
            style="dim",
            highlight=False,
        )
    prices = Table(title="what each constraint costs")
    for name in ("constraint", "slack", "reward per unit of budget", "T per unit of budget"):
        prices.add_column(name, justify="left" if name == "constraint" else "right")
    for row in result["constraints"]:
        change = row["T_per_unit"]
        prices.add_row(
            row["name"],
            f"{row['slack']:.4f}",
            f"{row['reward_per_unit']:.4f}",
            "jumps" if change is None else f"{change:,.1f}",
        )
    if result["constraints"]:
        console.print(prices)
    corollary, upper = result["corollary"], result["upper_bounds"]
    lines = {
        "shadow price (max slack / min slack)": result["shadow_price"],
        "Corollary 1, repaired: lower bound on T at r = 0": corollary["lower"],
        "Corollary 1, repaired: upper bound on T at r = 0": corollary["upper"],
        "condition-number bound on T at r = 0": corollary["condition_bound"],
        "LATS, asymptotic upper bound on samples": upper["lats"],
        "LAGEX, asymptotic upper bound on samples": upper["lagex"],
        "mean violation per step, upper bound": upper["violation_per_step"],
    }
    for name, value in lines.items():
        console.print(f"{name}: {'undefined' if value is None else f'{value:,.4g}'}", highlight=False)


def _explain_joint(joint: dict[str, Any]) -> str:
    if joint["T"] is None:
        return f"joint (rewards and unknown costs together): none, as {joint['reason']}."
    text = (
        "joint (rewards and unknown costs together): T is attained by this allocation with the answer "
        f"{_mix(joint['answer'])}; proved: {joint['lower_T']:,.1f} <= T* "
    )
    if joint["certified_T"] is not None:
        text += f"<= {joint['certified_T']:,.1f}"
    if joint["T_uniform"] is not None:
        text += f"; if all arms are pulled equally, T is {joint['T_uniform']:,.1f}"
    return text + ". Its samples are a lower bound only if T is the smallest possible."


def _mix(shares: list[float]) -> str:
    return r"\[" + " ".join(f"{share:.3f}".rstrip("0").rstrip(".") for share in shares) + "]"
