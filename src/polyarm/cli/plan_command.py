"""`polyarm plan`."""

from pathlib import Path
from typing import Annotated

import typer

from polyarm.cli.main import JsonOption, app


@app.command()
def plan(
    instance: Annotated[
        str, typer.Argument(help="Your guess of the truth: a TOML file (FILE.toml[:TABLE]) or a name.")
    ],
    r: Annotated[
        list[float] | None,
        typer.Option(help="Reward tolerance; may be given more than once. Default: multiples of the file's."),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(help="Probability of error; may be given more than once. Default: the file's, and three more."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Also simulate this many runs of certex.", metavar="N")] = 0,
    relax: Annotated[
        float | None, typer.Option(help="By how much to relax each bound to price it. Default: 5 % of it.")
    ] = None,
    draws: Annotated[
        int, typer.Option(help="If the guess has ranges: plan for this many truths drawn from them.", metavar="N")
    ] = 20,
    plot: Annotated[Path | None, typer.Option(help="Save a picture of pulls against r (PNG, PDF or SVG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast how many pulls an exploration will take, before the first one.

    The guess is an instance file: means mu, costs A and bounds b as you expect them; an entry of mu or A may be a
    range, [low, high]. The first r and the first delta are those of the simulation and of the prices.
    """
    from polyarm.cli import report
    from polyarm.cli.plan_report import show_plan
    from polyarm.experiments.plan import plan as make_plan

    if plot is not None:
        from polyarm.figures import check_target

        check_target(plot)
    with report.progress_bar("planning", quiet=as_json) as progress:
        result = make_plan(instance, r, delta, seeds=seeds, relax=relax, draws=draws, progress=progress)
    show_plan(result, as_json)
    if plot is not None:
        from polyarm.report.plots import plot_plan

        plot_plan(result, plot)
        report.note(f"picture of the plan: {plot}", as_json)
