"""Storages: their tables, and many who come at once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.engine import make_url

from polyarm import InvalidInput, Session, StorageError, Study, list_studies, load_study, verify_study
from polyarm.studies import study as study_module
from polyarm.studies.sql.storage import SqlStorage
from polyarm.studies.sql.tables import REVISION, VERSION_TABLE, metadata
from polyarm.studies.storage import open_storage
from studies.worlds import World, engine_of, explore, make_problem, start


def test_the_migrations_make_the_tables_that_the_code_expects(storage: str) -> None:
    with engine_of(storage).connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert context.get_current_revision() == REVISION
        assert compare_metadata(context, metadata) == []


def test_many_may_open_an_empty_storage_at_once(storage: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: SqlStorage(storage), range(8)))
    assert all(place.list_studies() == [] for place in opened)
    for place in opened:
        place.close()


@pytest.mark.parametrize("version", ["9999", "0001"])  # 0001 had fewer tables, and was never released
def test_tables_of_another_version_are_refused(storage: str, version: str) -> None:
    with engine_of(storage).begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))
    with pytest.raises(InvalidInput, match=rf"version {version}.*newer polyarm.*upgrade"):
        SqlStorage(storage)


def test_only_one_of_many_creates_a_study(storage: str) -> None:
    def create(k: int) -> bool:
        try:
            start(storage, seed=k)
        except InvalidInput:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(create, range(8))) == 1
    assert len(list_studies(storage)) == 1


def test_threads_share_a_study(storage: str) -> None:
    study = start(storage, problem=make_problem(r=0.01))

    study.tell_many([(trial, 0.5, [0.5, 0.2]) for trial in study.ask(6)])
    working = threading.Event()
    working.set()

    def work(_: int) -> list[int]:
        numbers = []
        for _ in range(15):
            trials = study.ask(3)
            study.tell_many([(trial, 0.5, [0.5, 0.2]) for trial in trials])
            numbers += [trial.id for trial in trials]
        return numbers

    def look() -> int:
        looks = 0
        while working.is_set():
            status = study.status()
            assert status.used + status.waiting == status.told == status.asked - status.pending
            assert sum(status.pulls.values()) == status.used
            assert study.recommend().steps >= status.used
            assert study.session.steps >= status.used
            looks += 1
        return looks

    with ThreadPoolExecutor(12) as pool:
        lookers = [pool.submit(look) for _ in range(4)]
        try:
            numbers = [number for some in pool.map(work, range(8)) for number in some]
        finally:
            working.clear()
        assert all(looker.result() > 0 for looker in lookers)
    assert sorted(numbers) == list(range(7, 367))
    assert study.status().told == 366
    assert verify_study(study).valid


@pytest.mark.parametrize(
    ("look", "inner"),
    [
        (Study.recommend, (Session, "recommend")),
        (Study.certificate, (study_module, "make_certificate")),
        (Study.status, (Session, "expected_stop")),
        (lambda study: study.session, (Session, "state_dict")),
    ],
)
def test_nothing_changes_while_a_thread_looks(
    sqlite: str, monkeypatch: pytest.MonkeyPatch, look: Callable[[Study], Any], inner: tuple[Any, str]
) -> None:
    """Reading takes the explorer's decision and its scratch memory: two threads must not be in there at once."""
    study, world = start(sqlite), World()
    explore(study, world)
    looking, go_on = threading.Event(), threading.Event()
    original = getattr(*inner)

    def slow(*arguments: Any) -> Any:
        looking.set()
        assert go_on.wait(60)
        return original(*arguments)

    monkeypatch.setattr(*inner, slow)
    with ThreadPoolExecutor(2) as pool:
        looked = pool.submit(look, study)
        assert looking.wait(60)
        stopped = pool.submit(study.stop)
        went_ahead = wait([stopped], timeout=0.5).done
        go_on.set()
        assert not went_ahead
        looked.result()
        stopped.result()


def test_many_may_create_or_load_the_same_study_at_once(storage: str) -> None:
    open_storage(storage)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: start(storage, load_if_exists=True), range(8)))
    assert len({study.id for study in made}) == len(list_studies(storage)) == 1


def test_the_isolation_that_a_server_prefers_does_not_matter(postgres: Any, postgresql: str) -> None:
    study = start(postgresql)
    postgres.psql(f"ALTER DATABASE {make_url(postgresql).database} SET default_transaction_isolation='repeatable read'")
    open_storage(postgresql).close()
    handles = [load_study("test", postgresql) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        asked = list(pool.map(lambda handle: [handle.ask() for _ in range(10)], handles))
    assert sum(map(len, asked)) == study.status().asked == 40


# -- files ----------------------------------------------------------------------------------------------------------


def test_a_relative_address_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    study = start("sqlite:///x.db")
    open_storage("sqlite:///x.db").close()
    monkeypatch.chdir(tmp_path / "two")
    study.ask()
    assert list_studies("sqlite:///x.db") == [], "another folder, another file"
    assert [row["trials"] for row in list_studies(f"sqlite:///{tmp_path}/one/x.db")] == [1]
    assert open_storage("sqlite:///../one/x.db") is open_storage(f"sqlite:///{tmp_path}/one/x.db")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_taken_away_is_noticed(sqlite: str, tmp_path: Path, replaced: bool) -> None:
    study = start(sqlite)
    (trial,) = study.ask()
    other = start(f"sqlite:///{tmp_path}/other.db")
    open_storage(f"sqlite:///{tmp_path}/other.db").close()
    for file in tmp_path.glob("studies.db*"):
        file.unlink()
    if replaced:
        (tmp_path / "other.db").rename(tmp_path / "studies.db")
    for call in (lambda: study.tell(trial, 0.5, [1.0, 1.0]), study.status, study.ask):
        with pytest.raises(StorageError, match="was removed or replaced while it was open"):
            call()
    assert len(list_studies(sqlite)) == replaced, "whoever opens it anew goes on with what is there"
    assert start(sqlite, name="again").ask()
    with pytest.raises(StorageError, match="was removed or replaced"):
        study.ask()
    assert other.name == "test"


# -- upgrades -------------------------------------------------------------------------------------------------------


def test_a_study_of_older_tables_goes_on(storage: str) -> None:
    """Its snapshots hold sessions in another format."""
    study = start(storage)
    study.ask(3)
    with engine_of(storage).begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0002'"))
        connection.execute(sa.text("INSERT INTO polyarm_snapshot VALUES (1, 2, '{}')"))
    SqlStorage(storage).close()
    again = load_study("test", storage)
    assert again.status() == study.status()
    assert list(again.stored_snapshots()) == []
    assert verify_study(again).faults == ()
