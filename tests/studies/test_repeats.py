"""Calls whose answer was lost on the way: what may be repeated, and what counts once."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from polyarm import Conflict, InvalidInput, StorageError, Study, load_study, verify_study
from studies.worlds import Clock, engine_of, outcome, start

LOG = "arm,reward,price,latency\nsmall,0.5,0.2,0.4\nlarge,0.9,2.0,0.3\n"


def lose_the_answer(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next commit of a change go through, and cut the connection before it says so."""
    engine = engine_of(storage)
    original, changes = engine.dialect.do_commit, []

    def note(connection: sa.Connection) -> None:
        changes.append(connection.get_execution_options().get("polyarm_writes", False))

    def commit(connection: Any) -> None:
        original(connection)
        if changes[-1]:
            monkeypatch.setattr(engine.dialect, "do_commit", original)
            raise sqlite3.OperationalError("connection lost")

    sa.event.listen(engine, "commit", note)
    monkeypatch.setattr(engine.dialect, "do_commit", commit)


def test_what_has_a_key_may_be_repeated(sqlite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = start(sqlite)
    (first,) = study.ask()
    (tmp_path / "log.csv").write_text(LOG)
    calls: list[Callable[[], object]] = [
        lambda: study.ask(2, key="ask"),
        lambda: study.tell(first, *outcome(0, 0)),
        lambda: study.tell_many([(first, *outcome(0, 0))], key="tell"),
        lambda: study.observe_many([("small", *outcome(0, 1))], key="observe"),
        lambda: study.observe_file(tmp_path / "log.csv"),
    ]
    for call in calls:
        lose_the_answer(sqlite, monkeypatch)
        with pytest.raises(StorageError, match=r"recorded whole or not at all.*never counts twice"):
            call()
        before = list(study.events())
        call()
        assert list(study.events()) == before
    status = study.status()
    assert (status.asked, status.told, status.observed) == (3, 1, 3)
    assert verify_study(study).valid


def test_the_same_file_counts_once_and_says_so(storage: str, tmp_path: Path) -> None:
    study, log = start(storage), tmp_path / "log.csv"
    log.write_text(LOG)
    first = study.observe_file(log)
    assert not first.repeated
    log.rename(tmp_path / "copy.csv")
    again = load_study("test", storage).observe_file(tmp_path / "copy.csv")
    assert (again.trials, again.repeated) == (first.trials, True)
    assert "recorded before" in str(again)
    assert study.status().observed == 2
    assert not study.observe_file(tmp_path / "copy.csv", again=True).repeated
    log.write_text(LOG + "small,0.1,0.1,0.1\n")
    assert len(study.observe_file(log).trials) == 3
    assert study.status().observed == 7


def keys_of(study: Study, clock: Clock) -> None:
    study.ask(1, key="ask")
    study.observe_many([("small", *outcome(0, 0))], key="observe")
    clock.pass_time(days=30)
    study.ask(1, key="later")  # forgets what is outdated


def test_what_was_observed_is_never_forgotten(storage: str) -> None:
    clock = Clock()
    study = start(storage, clock=clock)
    keys_of(study, clock)
    assert study.observe_many([("small", *outcome(0, 0))], key="observe") == [2]
    with pytest.raises(Conflict, match="another request"):
        study.observe_many([("small", *outcome(0, 1))], key="observe")
    assert study.status().observed == 1
    assert [trial.id for trial in study.ask(1, key="ask")] == [4], "asks are forgotten after some days"


@pytest.mark.parametrize("key", ["", "x" * 201, "two\nlines", 7])
def test_a_bad_key_is_refused(sqlite: str, key: Any) -> None:
    with pytest.raises(InvalidInput, match="key: expected 1 to 200 printable characters"):
        start(sqlite).ask(1, key=key)
