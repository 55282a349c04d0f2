"""Creating, finding and removing studies."""

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

from polyarm.errors import Conflict, InvalidInput
from polyarm.problem import Problem
from polyarm.studies import events
from polyarm.studies.breaker import Breaker
from polyarm.studies.projection import StudyRow
from polyarm.studies.statement import Statement, read_stated, state_study
from polyarm.studies.storage import Storage, open_storage, storage_url
from polyarm.studies.study import Clock, Study, utc_now
from polyarm.studies.trial import write_time


def create_study(
    problem: Problem,
    explorer: str | Path = "certex",
    storage: str | None = None,
    name: str | None = None,
    *,
    seed: int | None = None,
    lease: float | timedelta | None = None,
    breaker: Breaker | None = None,
    load_if_exists: bool = False,
    clock: Clock = utc_now,
    **settings: Any,
) -> Study:
    """Create a study in a storage.

    Args:
        problem: The problem to explore.
        explorer: The name of an explorer, or the Python file of your own.
        storage: `sqlite:///file.db` or `postgresql://user:password@host/database`; by default what the environment
            variable POLYARM_STORAGE names, or else `polyarm.db` in this folder.
        name: The study's name in the storage; drawn by default.
        seed: The seed of the explorer; drawn by default.
        lease: Seconds, or a timedelta, after which a trial that was not told is given up and its arm asked again; by
            default no trial is.
        breaker: When to fall back on a mix that is known to be safe; by default never.
        load_if_exists: Load the study of that name if there is one that was created with the same.
        clock: Returns the time, for leases and the log.
        settings: The explorer's settings.
    """
    statement = state_study(problem, explorer, settings, seed=seed, lease=lease, breaker=breaker)
    place = open_storage(storage_url(storage))
    title = name or f"study-{secrets.token_hex(4)}"
    try:
        return add_study(place, title, statement, clock)
    except Conflict:
        if not load_if_exists:
            raise
        return _load_alike(load_study(title, storage, clock), statement, seed)


def add_study(place: Storage, name: str, statement: Statement, clock: Clock = utc_now) -> Study:
    """Add a study to a storage; raises `Conflict` if the name is taken."""
    document = statement.document()
    with place.create(check_name(name), write_time(clock()), document) as writer:
        writer.append(events.CREATED, document)
    return Study(place, writer.study, clock)


def load_study(name: str, storage: str | None = None, clock: Clock = utc_now) -> Study:
    """Return an existing study, to continue it; raises `UnknownStudy` if there is none.

    Args:
        name: The study's name in the storage.
        storage: `sqlite:///file.db` or `postgresql://user:password@host/database`; by default what the environment
            variable POLYARM_STORAGE names, or else `polyarm.db` in this folder.
        clock: Returns the time, for leases and the log.
    """
    place = open_storage(storage_url(storage))
    return Study(place, place.find_study(name), clock)


def list_studies(storage: str | None = None) -> list[dict[str, Any]]:
    """Return the studies of a storage, each with its lifecycle: running, stopped or archived.

    Args:
        storage: `sqlite:///file.db` or `postgresql://user:password@host/database`; by default what the environment
            variable POLYARM_STORAGE names, or else `polyarm.db` in this folder.
    """
    return [describe_row(row) for row in open_storage(storage_url(storage)).list_studies()]


def describe_row(row: StudyRow) -> dict[str, Any]:
    """Return a study's entry in a list."""
    return {
        "name": row.name,
        "lifecycle": row.lifecycle,
        "created_at": row.created_at,
        "explorer": _name_explorer(row),
        "trials": row.last_trial,
        "events": row.last_seq,
    }


def _name_explorer(row: StudyRow) -> str:
    try:
        return str(read_stated(row.statement)["explorer"])
    except (InvalidInput, KeyError):
        return "(damaged)"  # the list still shows the others


def delete_study(name: str, storage: str | None = None) -> None:
    """Remove a study with all its trials, for good.

    Args:
        name: The study's name in the storage.
        storage: `sqlite:///file.db` or `postgresql://user:password@host/database`; by default what the environment
            variable POLYARM_STORAGE names, or else `polyarm.db` in this folder.
    """
    place = open_storage(storage_url(storage))
    place.delete_study(place.find_study(name).id)


def check_name(name: str) -> str:
    """Return a study's name, or raise if it is empty, too long or does not fit on one line."""
    if not isinstance(name, str) or not name.strip() or len(name) > 200 or not name.isprintable():
        raise InvalidInput(f"name: expected 1 to 200 printable characters, got {name!r}")
    return name


def _load_alike(study: Study, stated: Statement, seed: int | None) -> Study:
    """Return an existing study, or raise if it was created with something else."""
    before, now = study.statement.document(), stated.document()
    ignored = {"version", *(["seed"] if seed is None else [])}
    differ = [field for field in now if field not in ignored and before[field] != now[field]]
    if differ:
        raise InvalidInput(
            f"study {study.name!r} exists, but was created with another {', '.join(differ)}; choose another name, or "
            "create it with the same"
        )
    return study
