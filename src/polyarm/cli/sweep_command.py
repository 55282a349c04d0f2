"""`polyarm sweep`."""

from pathlib import Path
from typing import Annotated

import typer

from polyarm.cli.main import JsonOption, app

WorkersOption = Annotated[int | None, typer.Option(help="Threads; default: one per core.", metavar="W")]
ClusterOption = Annotated[
    str | None,
    typer.Option(help="Run on a Dask cluster: its address (tcp://HOST:PORT), or `local` to start one here."),
]


@app.command()
def sweep(
    grid: Annotated[Path, typer.Argument(help="TOML file with instances, explorers, settings, seeds, horizon.")],
    out: Annotated[Path, typer.Option(help="Folder for the results; run again with the same one to continue.")],
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a declared grid of explorations; a killed sweep goes on where it was.

    Writes OUT/runs.parquet, one row per seed. Finished pieces are kept in OUT/pieces as they end.
    """
    from polyarm.cli import report
    from polyarm.experiments.results import check_parquet_target
    from polyarm.experiments.store import hold_folder
    from polyarm.experiments.sweep import choose_runner, run_sweep
    from polyarm.experiments.sweep_file import load_sweep

    entries = load_sweep(grid)
    runner = choose_runner(workers, cluster)
    target = out / "runs.parquet"
    with hold_folder(out):
        check_parquet_target(target)
        with report.progress_bar("sweeping", quiet=as_json) as progress:
            outcome = run_sweep(entries, out / "pieces", runner=runner, progress=progress)
        outcome.simulation.to_parquet(target)
    report.show_simulation(outcome.simulation, as_json)
    report.note(f"{report.describe_speed(outcome)}; one row per seed: {target}", as_json)
