"""Output of the commands: tables for people on standard output, or JSON for programs."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from polyarm._json import finite
from polyarm.claims import Claim
from polyarm.cli.compiling import after_a_moment, say_compiling
from polyarm.engine.certificate import Verification
from polyarm.engine.replay import EXHAUSTED, INDEPENDENT, ReplayResult
from polyarm.engine.run import HORIZON, INFEASIBLE, STOPPED, Exploration
from polyarm.engine.session import Session
from polyarm.environments.instances import Instance
from polyarm.experiments.results import Simulation
from polyarm.experiments.sweep import SweepOutcome
from polyarm.report.answer import Description, Recommendation, describe
from polyarm.warm import watch_compiling

#: Piped output is not a terminal of 80 columns.
console = Console() if Console().is_terminal else Console(width=120)


def print_json(value: Any) -> None:
    """Print strict JSON: what is undefined is null, never NaN or Infinity."""
    print(json.dumps(value, indent=2, allow_nan=False))


def note(text: str, as_json: bool) -> None:
    """Tell people something beside the result; programs get it on standard error."""
    Console(stderr=as_json).print(text, highlight=False, soft_wrap=True)


def number(value: float | None, digits: int = 0) -> str:
    """Format a count or mean; None is infinite: the horizon came first."""
    return "inf" if value is None else f"{value:,.{digits}f}"


def show_rows(
    title: str, rows: Sequence[Mapping[str, Any]], as_json: bool, *, numbers: Collection[str] = (), without: str = ""
) -> None:
    """List rows of the same fields, or say `without` if there are none; `numbers` are the fields to align right."""
    if as_json:
        print_json(list(rows))
    elif not rows:
        note(without, as_json)
    else:
        table = Table(title=title)
        for name in rows[0]:
            table.add_column(name, justify="right" if name in numbers else "left")
        for row in rows:
            table.add_row(*(escape(str(value)) for value in row.values()))
        console.print(table)


def show_instances(instances: list[Instance], as_json: bool) -> None:
    """List instances."""
    rows = [
        {
            "name": i.name,
            "arms": i.problem.n_arms,
            "constraints": i.problem.n_constraints,
            "family": i.problem.family,
            "delta": i.problem.delta,
            "r": i.problem.r,
            "source": i.source,
        }
        for i in instances
    ]
    show_rows("instances", rows, as_json, numbers={"arms", "constraints", "delta", "r"})


#: How a run or replay ended, in words.
_ENDINGS = {STOPPED: "stopped", INFEASIBLE: "stopped", HORIZON: "reached the horizon"}


def show_run(exploration: Exploration, as_json: bool) -> None:
    """Report one exploration: the mix, its estimates, and what was and was not proved."""
    session = exploration.session
    record = exploration.record()
    answer = None if record.policy is None else session.recommend()
    if as_json:
        print_json(
            {
                "instance": exploration.instance.name,
                "explorer": session.plan.explorer.name,
                "seed": session.seed,
                "status": record.status,
                "steps": record.steps,
                **list_answer(session, describe_result(session, answer)),
                "pulls": dict(zip(session.problem.arms, record.pulls.tolist(), strict=True)),
                "conflict": session.conflict,
                "truth": {"feasible": record.feasible, "correct": record.correct},
                "settings": session.plan.recorded_settings(),
            }
        )
        return
    who = f"[bold]{session.plan.explorer.name}[/bold] on [bold]{exploration.instance.name}[/bold] (seed {session.seed})"
    if answer is None and record.status == HORIZON:
        console.print(
            f"{who}: no mix after {record.steps:,} pulls; either some arm was never pulled or no mix satisfies the "
            "constraints as estimated so far. Raise --horizon.",
            highlight=False,
            soft_wrap=True,
        )
        return
    console.print(
        f"{who} {_ENDINGS[record.status]} after {record.steps:,} pulls: {describe_test(session)}",
        highlight=False,
        soft_wrap=True,
    )
    if answer is not None:
        show_answer(session, describe(answer))
        truth = _truth(record.feasible, record.correct)
    else:
        show_claim(session.claim_infeasible())
        truth = "no mix is feasible" if record.correct else "there is a feasible mix"
    console.print(f"in truth (this is a simulation): {truth}", highlight=False, soft_wrap=True)


def describe_result(session: Session, answer: Recommendation | None, *assumptions: str) -> Description:
    """Describe an answer, or why there is none; that, too, rests on `assumptions`."""
    if answer is not None:
        return describe(answer)
    return Description(claims=(session.claim_infeasible().under(*assumptions),) if session.infeasible else ())


def list_answer(session: Session, said: Description) -> dict[str, Any]:
    """List an answer for programs; the same keys whether there is one or not."""
    fields = asdict(said)
    return {
        "certificate": session.certificate,
        "statistic": finite(session.statistic),
        "threshold": finite(session.threshold),
        "policy": fields.pop("shares"),
        **fields,
    }


def describe_test(session: Session) -> str:
    """Say how the stopping test stands, and which certificate it would give."""
    test = "no test yet"
    if not math.isnan(session.statistic):
        test = f"statistic {session.statistic:.2f}, threshold {session.threshold:.2f}"
    return test if session.certificate is None else f"{test} ({session.certificate} certificate)"


def show_claim(claim: Claim) -> None:
    """Print a claim, and whether it is proved."""
    colour = "green" if claim.proved else "yellow"
    console.print(f"[{colour}]{claim.label}:[/{colour}] {escape(claim.sentence)}", highlight=False, soft_wrap=True)


def show_verification(result: Verification, path: str, assumptions: tuple[str, ...], as_json: bool) -> None:
    """Report whether a certificate holds, and what it assumes beyond what every certificate does."""
    if as_json:
        print_json(
            {"certificate": path, "valid": result.valid, "proved": result.proved, "verdict": result.verdict}
            | {"faults": list(result.faults), "assumptions": list(assumptions)}
        )
        return
    if not result.valid:
        console.print(f"[red]not valid:[/red] {path}", highlight=False, soft_wrap=True)
        for fault in result.faults:
            console.print(f"  {fault}", markup=False, highlight=False, soft_wrap=True)
    elif result.proved:
        console.print(f"[green]valid:[/green] {path} ({result.verdict}, proved)", highlight=False, soft_wrap=True)
    else:
        console.print(
            f"[yellow]valid, but no proof:[/yellow] {path} ({result.verdict}): its thresholds are stylised",
            highlight=False,
            soft_wrap=True,
        )
    for assumption in assumptions:
        console.print(f"assumes: {assumption}", markup=False, highlight=False, soft_wrap=True)


def show_answer(session: Session, said: Description, rows_left: Mapping[str, int] | None = None) -> None:
    """Print a mix, its estimates, and what was and was not proved."""
    shares, pulls, rewards, slack = said.shares or {}, said.pulls or {}, said.rewards or {}, said.slack or {}
    mix = Table(title="recommended mix")
    mix.add_column("arm")
    mix.add_column("share", justify="right")
    mix.add_column("pulls", justify="right")
    mix.add_column("estimated reward", justify="right")
    if rows_left is not None:
        mix.add_column("rows left", justify="right")
    for arm, share in shares.items():
        cells = [escape(arm), f"{share:.1%}", f"{pulls[arm]:,}", f"{rewards[arm]:.3f}"]
        if rows_left is not None:
            cells.append(f"{rows_left[arm]:,}")
        mix.add_row(*cells, style="bold" if share > 0 else "dim")
    console.print(mix)
    title = f"estimated value {said.value:.4f}"
    if said.value_interval is not None:
        title += f", between {said.value_interval[0]:.4f} and {said.value_interval[1]:.4f}"
    budget = Table(title=title)
    budget.add_column("constraint")
    budget.add_column("estimated slack", justify="right")
    if said.slack_low is not None:
        budget.add_column("at least", justify="right")
    for constraint in session.problem.constraints:
        cells = [f"{round(slack[constraint.name], 4) + 0.0:+.4f}"]
        if said.slack_low is not None:
            cells.append(f"{round(said.slack_low[constraint.name], 4) + 0.0:+.4f}")
        budget.add_row(escape(str(constraint)), *cells)
    if session.problem.constraints:
        console.print(budget)
    for claim in said.claims:
        show_claim(claim)


def show_replay(result: ReplayResult, problem: str, log: str, as_json: bool) -> None:
    """Report a replay: how it ended, the mix, and the rows used and left."""
    session, answer = result.session, result.recommendation
    name = session.plan.explorer.name
    if as_json:
        print_json(
            {
                "problem": problem,
                "log": log,
                "explorer": name,
                "seed": session.seed,
                "status": result.status,
                "exhausted_arm": result.exhausted_arm,
                "steps": result.steps,
                **list_answer(session, describe_result(session, answer, INDEPENDENT)),
                "rows_used": result.rows_used,
                "rows_left": result.rows_left,
                "settings": result.settings,
            }
        )
        return
    how = f"asked for {result.exhausted_arm!r}, which has no rows left,"
    if result.status != EXHAUSTED:
        how = _ENDINGS[result.status]
    if answer is None:
        found = "no mix, as some arm has no outcome yet or no mix satisfies the constraints as estimated so far"
    else:
        found = describe_test(session)
    text = f"{name} on {log} (seed {session.seed}) {how} after {result.steps:,} rows: {found}"
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    if answer is not None:
        show_answer(session, describe(answer), result.rows_left)
    elif result.status == INFEASIBLE:
        show_claim(session.claim_infeasible().under(INDEPENDENT))


def _truth(feasible: bool, correct: bool) -> str:
    if correct:
        return "the mix is feasible and within r of the best"
    return "the mix is feasible, but not within r of the best" if feasible else "the mix breaks a constraint"


def show_simulation(simulation: Simulation, as_json: bool) -> None:
    """Report a simulation, one row per (instance, explorer)."""
    rows = simulation.table()
    if as_json:
        print_json(rows)
        return
    several = any(row["given"] != rows[0]["given"] for row in rows)
    table = Table(title="pulls until the explorer stopped")
    for name in ("instance", "explorer", *(["settings"] if several else [])):
        table.add_column(name)
    for name in (
        "seeds",
        "horizon hit",
        "q25",
        "median",
        "q75",
        "mean*",
        "feasible",
        "correct",
        "violations",
        *([] if rows[0]["us_per_step"] is None else ["us/step"]),
    ):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            escape(row["instance"]),
            row["explorer"],
            *([escape(" ".join(f"{name}={value}" for name, value in row["given"].items()))] if several else []),
            number(row["seeds"]),
            number(row["horizon_hit"]),
            number(row["q25_stop"]),
            number(row["median_stop"]),
            number(row["q75_stop"]),
            number(row["mean_stop"]),
            f"{row['feasible_rate']:.1%}",
            f"{row['correct_rate']:.1%}",
            number(row["median_violations"]),
            *([] if row["us_per_step"] is None else [number(row["us_per_step"], 2)]),
        )
    console.print(table)
    console.print(
        "* mean over the runs that stopped; quantiles count a run that hit the horizon as infinite.\n"
        "feasible, correct: share of runs whose final mix truly satisfies the constraints, and is also within r.\n"
        "violations: median number of steps at which the current mix broke a true constraint.",
        style="dim",
        highlight=False,
        soft_wrap=True,
    )


def describe_speed(outcome: SweepOutcome) -> str:
    """Say what a sweep computed, and how fast."""
    if not outcome.steps:
        return "nothing to simulate" if not outcome.reused else f"all {outcome.reused:,} runs were there already"
    speed = f"{outcome.steps:,} steps in {outcome.seconds:,.0f} s, {outcome.steps / outcome.seconds:,.0f} a second"
    return speed + (f"; {outcome.reused:,} runs were there already" if outcome.reused else "")


@contextmanager
def progress_bar(title: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show progress on standard error while a loop calls the yielded function with (done, total)."""
    stderr = Console(stderr=True)
    if quiet or not stderr.is_terminal:
        with say_compiling():
            yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description=title)

        with watch_compiling(after_a_moment(lambda kernel: bar.update(task, description=f"compiling {kernel}"))):
            yield update
