"""What the commands of `polyarm study` print."""

import csv
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from polyarm.cli import report
from polyarm.cli.report import console, print_json, show_rows
from polyarm.engine.run import describe_status
from polyarm.errors import InvalidInput
from polyarm.report.answer import describe
from polyarm.studies.state import CONTROL
from polyarm.studies.status import StudyStatus, describe_alarm
from polyarm.studies.study import Study, recommend_from
from polyarm.studies.tell_file import form_columns
from polyarm.studies.transfer import trial_table, write_rows
from polyarm.studies.trial import Observed, Told, Trial, write_time
from polyarm.studies.verify import StudyVerification


def show_created(study: Study, as_json: bool) -> None:
    """Report a new study."""
    if as_json:
        print_json({"name": study.name, "storage": study.storage, "statement": study.statement.document()})
    else:
        _say(f"study {study.name!r} is in {study.storage}: ask with `polyarm study ask {study.name}`")


def check_form(study: Study, path: Path) -> None:
    """Raise if a spreadsheet cannot be written, before trials are handed out: they are not taken back."""
    form_columns(study.problem)
    if path.is_dir():
        raise InvalidInput(f"{path}: expected a file name, but this is a folder")
    try:
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror}; nothing was asked") from None


def write_form(study: Study, trials: Sequence[Trial], path: Path, as_json: bool) -> None:
    """Write a spreadsheet to fill in."""
    columns = form_columns(study.problem)
    empty = [""] * (len(columns) - 2)
    write_rows(path, columns, ([trial.id, trial.arm, *empty] for trial in trials))
    report.note(f"to fill in: {path}; then: polyarm study tell {study.name} --csv {path}", as_json)


def show_trials(study: Study, trials: Sequence[Trial], as_json: bool) -> None:
    """Report what is to be pulled."""
    leases = [None if trial.lease_until is None else write_time(trial.lease_until) for trial in trials]
    if as_json:
        print_json(
            [
                {"id": trial.id, "arm": trial.arm, "lease_until": lease, "route": trial.route}
                for trial, lease in zip(trials, leases, strict=True)
            ]
        )
    else:
        table = Table(title=f"trials of {escape(study.name)}")
        for name in ("trial", "arm", "tell before", "route"):
            table.add_column(name, justify="right" if name == "trial" else "left")
        for trial, lease in zip(trials, leases, strict=True):
            table.add_row(str(trial.id), escape(trial.arm), lease or "", trial.route)
        console.print(table)
    status = study.status() if any(trial.route == CONTROL for trial in trials) else None
    if status is not None and status.alarm is not None:
        report.note(f"breaker: {describe_alarm(status.alarm)}", as_json)


def show_told(results: Sequence[Told], as_json: bool) -> None:
    """Report the results of tells."""
    if as_json:
        print_json([asdict(told) for told in results])
    elif len(results) == 1:
        _say(str(results[0]))
    else:
        counts = Counter(told.status for told in results)
        _say(
            f"{counts['recorded']} outcomes recorded, {counts['partial']} in part, {counts['duplicate']} told before "
            "(nothing changed)"
        )


def show_observed(observed: Observed, as_json: bool) -> None:
    """Report outcomes that nobody asked for."""
    if as_json:
        print_json(asdict(observed))
    else:
        _say(f"{observed}; --again counts them once more" if observed.repeated else str(observed))


def show_status(status: StudyStatus, as_json: bool) -> None:
    """Report how a study stands."""
    if as_json:
        print_json(asdict(status))
        return
    _say(f"study {status.name} ({status.explorer}): {status.state}")
    _say(
        f"{status.asked:,} asked, {status.told:,} told, {status.observed:,} observed; {status.used:,} used, "
        f"{status.waiting:,} waiting; {status.pending:,} pending, {status.overdue:,} of them overdue; "
        f"{status.expired:,} expired, {status.late:,} of them told late"
    )
    if status.statistic is not None and status.threshold is not None:
        _say(f"statistic {status.statistic:.2f}, threshold {status.threshold:.2f}")
    if status.expected_stop is not None:
        _say(f"likely to stop between {status.expected_stop[0]:,.0f} and {status.expected_stop[1]:,.0f} outcomes")
    if status.waiting_for is not None:
        _say(f"the explorer needs an outcome of {status.waiting_for!r} next")
    if status.alarm is not None:
        _say(f"breaker: {describe_alarm(status.alarm)}")
    for assumption in status.assumptions:
        _say(f"assumes: {assumption}")
    table = Table()
    table.add_column("arm")
    table.add_column("outcomes used", justify="right")
    table.add_column("share of pulls planned", justify="right")
    for arm, pulls in status.pulls.items():
        table.add_row(escape(arm), f"{pulls:,}", f"{status.allocation[arm]:.1%}")
    console.print(table)


def show_recommendation(study: Study, as_json: bool) -> None:
    """Report the mix, its estimates, and what was and was not proved."""
    with study.reading() as state:
        session, assumptions = state.session, state.assumptions()
        if session.infeasible and not as_json:
            report.show_claim(session.claim_infeasible().under(*assumptions))
        answer = None if session.infeasible and as_json else recommend_from(session, assumptions)
        if as_json or answer is None:
            head = {"study": study.name, "status": describe_status(session) if session.stopped else "EXPLORING"}
            facts = {"conflict": session.conflict, "assumptions": assumptions}
            said = report.describe_result(session, answer, *assumptions)
            print_json({**head, "steps": session.steps, **report.list_answer(session, said), **facts})
        else:
            _say(f"study {study.name} after {session.steps:,} outcomes: {report.describe_test(session)}")
            report.show_answer(session, describe(answer))


def print_trials(study: Study, as_json: bool) -> None:
    """Print every trial: a JSON array with one object per line, or CSV."""
    if not as_json:
        columns, rows = trial_table(study)
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        return
    separator = "[\n"
    for trial in study.trials():
        sys.stdout.write(separator + json.dumps(trial, allow_nan=False))
        separator = ",\n"
    sys.stdout.write("\n]\n" if separator != "[\n" else "[]\n")


def show_studies(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """List studies."""
    without = "no study yet; `polyarm study create NAME PROBLEM` makes one"
    show_rows("studies", rows, as_json, numbers={"trials", "events"}, without=without)


def show_study_verification(name: str, result: StudyVerification, as_json: bool) -> None:
    """Report whether a study is what its log says."""
    if as_json:
        print_json({"study": name, "valid": result.valid, **asdict(result)})
    elif result.valid:
        _say(
            f"valid: {name}: {result.events:,} events replayed; asks, {result.trials:,} trials, {result.snapshots} "
            "snapshots and the state in use are the same to the bit"
        )
    else:
        _say(f"not valid: {name}")
        for fault in result.faults:
            _say(f"  {fault}")


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
