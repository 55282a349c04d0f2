"""`polyarm warm`."""

from typing import Annotated

import typer

from polyarm.cli.main import JsonOption, app


@app.command()
def warm(
    only: Annotated[
        list[str] | None,
        typer.Option(help="Compile for this explorer or command only; may be given more than once.", metavar="NAME"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compile ahead what the other commands need, in two processes at once; what is cached is left alone.

    Names are those of explorers, and `bound` and `plan`; with -curved for Bernoulli, Poisson and exponential rewards.
    """
    from polyarm.cli import report
    from polyarm.cli.compiling import show_warming
    from polyarm.warm import JOBS, find_jobs, missing

    chosen = find_jobs(only or JOBS)
    left = missing(chosen)
    seconds = show_warming(left, quiet=as_json) if left else {}
    if as_json:
        report.print_json({"compiled": seconds, "cached": [job.name for job in chosen if job.name not in seconds]})
    elif not seconds:
        report.console.print("every kernel is compiled already", highlight=False)
