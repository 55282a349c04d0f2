"""`polyarm paper`."""

from pathlib import Path
from typing import Annotated

import typer

from polyarm.cli.main import JsonOption, app
from polyarm.cli.sweep_command import ClusterOption, WorkersOption


@app.command()
def paper(
    seeds: Annotated[int | None, typer.Option(help="Seeds per cell; default: 500, or 50 with --quick.")] = None,
    figures: Annotated[str, typer.Option(help="Which figures, as in 1-12 or 4,8-10.")] = "1-12",
    out: Annotated[Path, typer.Option(help="Folder for the results; run again with it to continue.")] = Path("paper"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: fewer seeds and readings, part of the comparison.")
    ] = False,
    preset: Annotated[str, typer.Option(help="paper (as printed), corrected, or both.")] = "both",
    add_explorer: Annotated[
        list[str] | None, typer.Option(help="Your explorer, by name or FILE.py, in every table; may be repeated.")
    ] = None,
    add_instance: Annotated[
        list[str] | None, typer.Option(help="Your instance, FILE.toml[:TABLE], in figures of its own; may be repeated.")
    ] = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute the evaluation of Das and Basu (AISTATS 2026) and compare it with the published numbers.

    Writes every figure as PNG and PDF, the Parquet behind it, and OUT/report.html. A killed run goes on where it was.
    """
    from polyarm.cli import report
    from polyarm.environments.instances import load_instance
    from polyarm.errors import unknown_name
    from polyarm.experiments.store import hold_folder
    from polyarm.experiments.sweep import choose_runner
    from polyarm.papers.das_basu_2026.readings import PRESETS
    from polyarm.papers.das_basu_2026.reproduce import evaluate, write_report
    from polyarm.papers.das_basu_2026.scope import make_scope

    if preset not in {*PRESETS, "both"}:
        raise unknown_name("preset", preset, {*PRESETS, "both"})
    scope = make_scope(
        figures,
        seeds,
        quick,
        PRESETS if preset == "both" else (preset,),
        add_explorer or (),
        [load_instance(name) for name in add_instance or ()],
    )
    runner = choose_runner(workers, cluster)
    command = f"polyarm paper --seeds {scope.seeds} --figures {figures} --preset {preset}" + " --quick" * quick
    command += "".join(f" --add-explorer {name}" for name in add_explorer or ())
    command += "".join(f" --add-instance {name}" for name in add_instance or ())
    with hold_folder(out):
        with report.progress_bar("simulating", quiet=as_json) as progress:
            evaluation = evaluate(scope, out, runner, progress)
        with report.progress_bar("drawing", quiet=as_json) as progress:
            page = write_report(scope, evaluation.cells, out, command, progress)
    if as_json:
        report.print_json(evaluation.outcome.simulation.table())
    report.note(f"{report.describe_speed(evaluation.outcome)}", as_json)
    report.note(f"report: {page}", as_json)
