"""Entry point: `polyarm`."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

app = typer.Typer(
    name="polyarm",
    help="Find the mix of options with the best expected reward inside budgets that you can only measure.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override delta, r, noise or a setting of the explorer; may be given more than once.",
    ),
]
HorizonOption = Annotated[int, typer.Option(help="Give up after this many pulls.", metavar="N")]
InfeasibleOption = Annotated[
    bool, typer.Option("--allow-infeasible", help="Run even if no mix satisfies the true constraints.")
]


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from polyarm import __version__

        typer.echo(f"polyarm {__version__}")
        raise typer.Exit


@app.command()
def instances(as_json: JsonOption = False) -> None:
    """List the instances that ship with polyarm."""
    from polyarm.cli import report
    from polyarm.environments.instances import instance_names, load_instance

    report.show_instances([load_instance(name) for name in instance_names()], as_json)


@app.command()
def run(
    instance: Annotated[str, typer.Argument(help="Name of an instance, or a TOML file (FILE.toml[:TABLE]).")],
    explorer: Annotated[str, typer.Option(help="Name of an explorer, or the Python file of your own.")] = "certex",
    seed: Annotated[int, typer.Option(help="Seed of the simulated noise and of the explorer.")] = 0,
    horizon: HorizonOption = 100_000,
    settings: SetOption = None,
    plot: Annotated[Path | None, typer.Option(help="Save a picture of the run (PNG, PDF or SVG).")] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write what was proved to this JSON file; check it with `polyarm verify`.")
    ] = None,
    allow_infeasible: InfeasibleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Explore one instance and print the recommended mix."""
    from polyarm.cli import report
    from polyarm.cli.compiling import prepare
    from polyarm.cli.live import explore_live
    from polyarm.cli.settings import parse_settings
    from polyarm.engine.run import Exploration, check_horizon, plan_run
    from polyarm.environments.instances import load_instance
    from polyarm.errors import InvalidInput
    from polyarm.files import check_place
    from polyarm.warm import jobs_for

    if plot is not None:
        from polyarm.figures import check_target

        check_target(plot)
    chosen, plan = plan_run(load_instance(instance), explorer, parse_settings(settings or []), allow_infeasible)
    if certificate is not None and not plan.settings.stops_certified():
        raise InvalidInput(
            f"--certificate: {explorer} stops by a rule that proves nothing; add --set stopping=certified, or use "
            "certex"
        )
    if certificate is not None:
        check_place(certificate, "certificate")
    prepare(jobs_for(plan))
    exploration = Exploration(chosen, plan, seed)
    trace = explore_live(exploration, check_horizon(horizon), quiet=as_json)
    stopped = exploration.session.stopped
    if certificate is not None and stopped:
        from polyarm.engine.certificate import write_certificate

        write_certificate(exploration.session, certificate)  # first: only what it confirms is called proved
    report.show_run(exploration, as_json)
    if plot is not None:
        from polyarm.report.plots import plot_run

        session = exploration.session
        title = f"{session.plan.explorer.name} on {chosen.name}, {session.steps:,} pulls"
        plot_run(title, session.problem.arms, session.round.estimates.pulls, trace, plot)
        report.note(f"picture of the run: {plot}", as_json)
    if certificate is not None:
        none = "no certificate: the horizon came before a proof; raise --horizon"
        report.note(f"certificate, written and verified: {certificate}" if stopped else none, as_json)
        if not stopped:
            raise typer.Exit(1)


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="A certificate written by `polyarm run --certificate`.")],
    as_json: JsonOption = False,
) -> None:
    """Recompute every number of a certificate from its statistics; exit code 1 if it does not hold."""
    from polyarm.cli import report
    from polyarm.cli.compiling import say_compiling
    from polyarm.engine.certificate import Certificate, read_certificate, verify_certificate

    document = read_certificate(certificate)
    with say_compiling():
        result = verify_certificate(document)
    report.show_verification(result, str(certificate), Certificate(document).assumptions, as_json)
    if not result.valid:
        raise typer.Exit(1)


@app.command()
def simulate(
    instances: Annotated[list[str], typer.Argument(help="Names of instances, or TOML files.")],
    explorer: Annotated[
        str, typer.Option(help="One explorer, or several: A,B; names, or Python files.")
    ] = "certex,lagex,uniform",
    seeds: Annotated[int, typer.Option(help="Number of seeds.", metavar="N")] = 100,
    first_seed: Annotated[int, typer.Option(help="The first seed.", metavar="N")] = 0,
    workers: Annotated[int | None, typer.Option(help="Threads; default: one per core.", metavar="W")] = None,
    horizon: HorizonOption = 100_000,
    settings: SetOption = None,
    out: Annotated[Path | None, typer.Option(help="Write one row per seed to this Parquet file.")] = None,
    allow_infeasible: InfeasibleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run explorers on instances over many seeds and compare them.

    Runs that hit the horizon count as infinity in quantiles (null in JSON) and are left out of the mean. Feasible
    and correct (feasible and r-optimal) judge the mix held at the end of every run against the truth.
    """
    from polyarm.cli import report
    from polyarm.cli.settings import parse_settings
    from polyarm.experiments.results import check_parquet_target
    from polyarm.experiments.simulate import simulate as run_simulation

    if out is not None:
        check_parquet_target(out)
    with report.progress_bar("simulating", quiet=as_json) as progress:
        result = run_simulation(
            instances,
            [name.strip() for name in explorer.split(",")],
            seeds=seeds,
            first_seed=first_seed,
            workers=workers,
            horizon=horizon,
            settings=parse_settings(settings or []),
            allow_infeasible=allow_infeasible,
            progress=progress,
        )
    if out is not None:
        result.to_parquet(out)
    report.show_simulation(result, as_json)
    if out is not None:
        report.note(f"one row per seed: {out}", as_json)


from polyarm.cli import (  # noqa: E402  (they add their commands to the app)
    paper_command,  # noqa: F401
    plan_command,  # noqa: F401
    replay_command,  # noqa: F401
    serve_command,  # noqa: F401
    study_command,  # noqa: F401
    sweep_command,  # noqa: F401
    warm_command,  # noqa: F401
)


@app.command()
def bound(
    instance: Annotated[str, typer.Argument(help="Name of an instance, or a TOML file (FILE.toml[:TABLE]).")],
    delta: Annotated[float | None, typer.Option(help="Probability of error; default: the instance's.")] = None,
    r: Annotated[float | None, typer.Option(help="Reward tolerance; default: the instance's.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print how many samples any explorer needs, and what each constraint costs."""
    from polyarm.cli.bound_report import show_bounds
    from polyarm.cli.compiling import say_compiling
    from polyarm.experiments.bounds import lower_bounds

    with say_compiling():
        bounds = lower_bounds(instance, delta, r)
    show_bounds(bounds, as_json)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; a user's mistake is one message and exit code 2, never a traceback."""
    try:
        code: Any = app(arguments, standalone_mode=False)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output is gone: there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:  # noqa: BLE001  (told apart below; anything unexpected is raised again)
        _explain(error)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> NoReturn:
    describe = getattr(error, "format_message", None)  # a usage error of the command-line parser
    if describe is not None:
        message, context = " ".join(describe().split()), getattr(error, "ctx", None)
        if message:  # otherwise no command was given, and the help has been printed
            hint = "" if context is None else f"; see {context.command_path} --help"
            print(f"polyarm: {message.rstrip('.')}{hint}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 2))
    if error.__class__.__name__ == "Abort":
        print("aborted", file=sys.stderr)
        sys.exit(1)
    from polyarm.errors import PolyarmError, StorageError

    if isinstance(error, PolyarmError) and not isinstance(error, StorageError):
        print(f"polyarm: {error}", file=sys.stderr)
        sys.exit(2)
    if isinstance(error, OSError | StorageError):  # a full disk, an output that cannot be written
        print(f"polyarm: {error}", file=sys.stderr)
        sys.exit(1)
    raise error
