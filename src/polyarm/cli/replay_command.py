"""`polyarm replay`."""

from typing import Annotated

import typer

from polyarm.cli.main import JsonOption, SetOption, app


@app.command()
def replay(
    problem: Annotated[str, typer.Argument(help="TOML file of a problem or instance, or the name of an instance.")],
    log: Annotated[str, typer.Argument(help="CSV or Parquet file: columns arm, reward, and the constraints'.")],
    explorer: Annotated[str, typer.Option(help="Name of an explorer, or the Python file of your own.")] = "lagex",
    seed: Annotated[int, typer.Option(help="Seed of the explorer.")] = 0,
    horizon: Annotated[int | None, typer.Option(help="Give up after this many rows.", metavar="N")] = None,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explore with logged outcomes, each row used at most once, and print the recommended mix.

    Valid only if the logged outcomes are independent given their arm, and none was logged or left out by a policy
    that saw it first.
    """
    from polyarm.cli import report
    from polyarm.cli.compiling import say_compiling
    from polyarm.cli.settings import parse_settings
    from polyarm.engine.replay import replay as run_replay
    from polyarm.problem_file import load_problem

    with say_compiling():
        result = run_replay(load_problem(problem), log, explorer, seed, horizon, parse_settings(settings or []))
    report.show_replay(result, problem, log, as_json)
