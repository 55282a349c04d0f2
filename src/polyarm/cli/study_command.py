"""`polyarm study`: durable experiments from the command line."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyarm.cli.main import JsonOption, SetOption, app

if TYPE_CHECKING:
    from polyarm.studies.breaker import Breaker
    from polyarm.studies.study import Study

study_app = typer.Typer(help="Run a real experiment that lasts: ask, tell, recommend.", no_args_is_help=True)
app.add_typer(study_app, name="study")

NameArgument = Annotated[str, typer.Argument(help="Name of the study.", metavar="NAME")]
StorageOption = Annotated[
    str | None,
    typer.Option(
        help="Where studies live, sqlite:///FILE or postgresql://...; default: $POLYARM_STORAGE, or sqlite:///polyarm.db.",
        metavar="URL",
    ),
]
ExplorerFileOption = Annotated[
    Path | None,
    typer.Option(help="Python file of your own explorer, if the study was created with one.", metavar="FILE"),
]
CertificateOption = Annotated[
    Path | None, typer.Option(help="Write what was proved to this JSON file; check it with `polyarm verify`.")
]
OutOption = Annotated[
    Path | None, typer.Option(help="File: .csv or .parquet (a row per trial), or .json (the whole study, to move).")
]
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@study_app.callback()
def _watch(context: typer.Context) -> None:
    if "--help" not in sys.argv:
        from polyarm.cli.compiling import say_compiling

        context.with_resource(say_compiling())


@study_app.command()
def create(
    name: NameArgument,
    problem: Annotated[str, typer.Argument(help="TOML file of a problem or instance, or the name of an instance.")],
    explorer: Annotated[str, typer.Option(help="Name of an explorer, or the Python file of your own.")] = "certex",
    seed: Annotated[int | None, typer.Option(help="Seed of the explorer; default: drawn.")] = None,
    lease: Annotated[
        str | None, typer.Option(help="Give a trial up after this long: 90s, 15m, 36h, 14d.", metavar="TIME")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(help="Mix to fall back on when the sampling is proved to break a bound: A=0.5,B=0.5."),
    ] = None,
    watch: Annotated[
        list[str] | None, typer.Option(help="Constraint that the breaker watches; default: all.", metavar="CONSTRAINT")
    ] = None,
    settings: SetOption = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a study."""
    from polyarm.cli.settings import parse_settings
    from polyarm.cli.study_report import show_created
    from polyarm.engine.run import split_settings
    from polyarm.problem_file import load_problem
    from polyarm.studies.manage import create_study

    changes, own = split_settings(parse_settings(settings or []))
    study = create_study(
        load_problem(problem).replace(**changes),
        explorer,
        storage,
        name,
        seed=seed,
        lease=None if lease is None else parse_lease(lease),
        breaker=_parse_breaker(control, watch),
        **own,
    )
    show_created(study, as_json)


@study_app.command()
def ask(
    name: NameArgument,
    n: Annotated[int, typer.Option("-n", help="How many trials.")] = 1,
    csv: Annotated[Path | None, typer.Option(help="Also write a spreadsheet to fill in, for `tell --csv`.")] = None,
    storage: StorageOption = None,
    explorer: ExplorerFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hand out trials: pull each one's arm and tell what it gave."""
    from polyarm.cli.study_report import check_form, show_trials, write_form

    study = _load(name, storage, explorer)
    if csv is not None:
        check_form(study, csv)
    trials = study.ask(n)
    show_trials(study, trials, as_json)
    if csv is not None:
        write_form(study, trials, csv, as_json)


@study_app.command()
def tell(
    name: NameArgument,
    trial: Annotated[int | None, typer.Argument(help="Number of the trial.")] = None,
    reward: Annotated[float | None, typer.Option(help="Its reward, if known.")] = None,
    cost: Annotated[
        list[str] | None, typer.Option(help="A cost, if known; may be given more than once.", metavar="CONSTRAINT=COST")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Tell a whole file (.csv, .parquet): id, reward, one column per constraint.")
    ] = None,
    storage: StorageOption = None,
    explorer: ExplorerFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record outcomes, whole or in parts; of a file all rows, or none when one is wrong."""
    from polyarm.cli.settings import parse_settings
    from polyarm.cli.study_report import show_told
    from polyarm.engine.outcomes import check_outcome
    from polyarm.errors import InvalidInput

    study = _load(name, storage, explorer)
    if (trial is None) == (csv is None) or (csv is not None and (reward is not None or cost)):
        raise InvalidInput("tell: give a trial with --reward and --cost, or a file with --csv")
    if csv is not None:
        show_told(study.tell_file(csv), as_json)
    elif trial is not None:
        costs = {
            key: check_outcome(f"cost {key!r}", text) for key, text in parse_settings(cost or [], "--cost").items()
        }
        show_told([study.tell(trial, reward, costs)], as_json)


@study_app.command()
def observe(
    name: NameArgument,
    log: Annotated[Path, typer.Argument(help="CSV or Parquet file: columns arm, reward, and the constraints'.")],
    again: Annotated[bool, typer.Option("--again", help="Count a file that was recorded before once more.")] = False,
    storage: StorageOption = None,
    explorer: ExplorerFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record outcomes that nobody asked for: logged data, to start warm. The certificate will say so.

    The same file a second time changes nothing, and that is said.
    """
    from polyarm.cli.study_report import show_observed

    show_observed(_load(name, storage, explorer).observe_file(log, again), as_json)


@study_app.command()
def status(
    name: NameArgument, storage: StorageOption = None, explorer: ExplorerFileOption = None, as_json: JsonOption = False
) -> None:
    """Print how a study stands."""
    from polyarm.cli.study_report import show_status

    show_status(_load(name, storage, explorer).status(), as_json)


@study_app.command()
def recommend(
    name: NameArgument,
    certificate: CertificateOption = None,
    storage: StorageOption = None,
    explorer: ExplorerFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the mix to choose now, and what is proved of it."""
    from polyarm.cli import report
    from polyarm.cli.study_report import show_recommendation

    study = _load(name, storage, explorer)
    show_recommendation(study, as_json)
    if certificate is not None:
        study.certificate().write(certificate)
        report.note(f"certificate: {certificate}", as_json)


@study_app.command()
def export(
    name: NameArgument,
    out: OutOption = None,
    storage: StorageOption = None,
    explorer: ExplorerFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the trials, or the whole study, to a file; without --out the trials go to standard output."""
    from polyarm.cli import report
    from polyarm.cli.study_report import print_trials

    study = _load(name, storage, explorer)
    if out is not None:
        study.export(out)
        report.note(f"study {name}: {out}", as_json)
    if out is None or as_json:
        print_trials(study, as_json)


@study_app.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="JSON file that `export --out` wrote.")],
    name: Annotated[str | None, typer.Option(help="Another name for the study.")] = None,
    storage: StorageOption = None,
    explorer: ExplorerFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a whole study back, into this storage or another."""
    from polyarm.cli.study_report import show_created
    from polyarm.studies.transfer import import_study

    _load_explorer(explorer)
    show_created(import_study(file, storage, name), as_json)


@study_app.command(name="list")
def list_(
    everything: Annotated[bool, typer.Option("--all", help="Archived ones, too.")] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the studies of a storage."""
    from polyarm.cli.study_report import show_studies
    from polyarm.studies.manage import list_studies

    show_studies([row for row in list_studies(storage) if everything or row["lifecycle"] != "archived"], as_json)


@study_app.command()
def delete(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a study with all its trials, for good."""
    from polyarm.cli import report
    from polyarm.errors import InvalidInput
    from polyarm.studies.manage import delete_study

    _load(name, storage)
    if not yes and not sys.stdin.isatty():
        raise InvalidInput(f"delete: no terminal to confirm on; add --yes to remove study {name!r} for good")
    if not yes:
        typer.confirm(f"Remove study {name!r} with all its trials, for good?", abort=True)
    delete_study(name, storage)
    report.note(f"study {name} is gone", as_json)


@study_app.command()
def stop(
    name: NameArgument,
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    storage: StorageOption = None,
    explorer: ExplorerFileOption = None,
) -> None:
    """Hand out no more trials until `resume`; outcomes are still taken."""
    _load(name, storage, explorer).stop(reason)


@study_app.command()
def resume(name: NameArgument, storage: StorageOption = None, explorer: ExplorerFileOption = None) -> None:
    """Go on after `stop` or `archive`; of a study that is running, acknowledge the breaker's alarm.

    Constraints whose alarm was acknowledged will not trip the breaker again. A study that was stopped or archived while
    it was tripped stays so: resume it once more to acknowledge.
    """
    _load(name, storage, explorer).resume()


@study_app.command()
def archive(name: NameArgument, storage: StorageOption = None, explorer: ExplorerFileOption = None) -> None:
    """Close a study: no trial, no outcome, until `resume`."""
    _load(name, storage, explorer).archive()


@study_app.command()
def expire(
    name: NameArgument,
    trials: Annotated[list[int], typer.Argument(help="Numbers of the trials.")],
    storage: StorageOption = None,
    explorer: ExplorerFileOption = None,
) -> None:
    """Give trials up by hand, as if their lease had run out."""
    _load(name, storage, explorer).expire(*trials)


@study_app.command()
def verify(
    name: NameArgument, storage: StorageOption = None, explorer: ExplorerFileOption = None, as_json: JsonOption = False
) -> None:
    """Replay the log and compare it with all that is stored; exit code 1 if anything differs."""
    from polyarm.cli import report
    from polyarm.cli.study_report import show_study_verification
    from polyarm.studies.verify import verify_study

    study = _load(name, storage, explorer)
    with report.progress_bar("replaying", quiet=as_json) as progress:
        result = verify_study(study, progress)
    show_study_verification(name, result, as_json)
    if not result.valid:
        raise typer.Exit(1)


def _load(name: str, storage: str | None, explorer: Path | None = None) -> "Study":
    from polyarm.studies.manage import load_study

    _load_explorer(explorer)
    return load_study(name, storage)


def _load_explorer(file: Path | None) -> None:
    if file is not None:
        from polyarm.rules.registry import load_explorer

        load_explorer(file)


def parse_lease(text: str) -> float:
    """Return a duration in seconds."""
    from polyarm.errors import InvalidInput

    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([smhd]?)", text.strip())
    if found is None or float(found[1]) <= 0.0:
        raise InvalidInput(f"--lease: expected a duration such as 90s, 15m, 36h or 14d, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def _parse_breaker(control: str | None, watch: list[str] | None) -> "Breaker | None":
    from polyarm.cli.settings import parse_settings
    from polyarm.engine.outcomes import check_outcome
    from polyarm.errors import InvalidInput
    from polyarm.studies.breaker import Breaker

    if control is None:
        if watch:
            raise InvalidInput("--watch: needs --control, the mix to fall back on")
        return None
    shares = parse_settings(control.split(","), "--control")
    mix = {arm: check_outcome(f"--control: share of {arm!r}", share) for arm, share in shares.items()}
    return Breaker(control=mix, constraints=tuple(watch) if watch else None)
