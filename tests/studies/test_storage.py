"""Storages: their tables, and many who come at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from polyarm import InvalidInput, list_studies, verify_study
from polyarm.studies.schema import REVISION, VERSION_TABLE, metadata
from polyarm.studies.storage import Storage, open_storage
from studies.worlds import make_problem, start


def test_the_migrations_make_the_tables_that_the_code_expects(storage: str) -> None:
    with open_storage(storage).engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert context.get_current_revision() == REVISION
        assert compare_metadata(context, metadata) == []


def test_many_may_open_an_empty_storage_at_once(storage: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: Storage(storage), range(8)))
    assert all(place.list_studies() == [] for place in opened)
    for place in opened:
        place.close()


def test_tables_of_a_newer_version_are_refused(storage: str) -> None:
    with open_storage(storage).engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(InvalidInput, match=r"newer polyarm.*upgrade"):
        Storage(storage)


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

    def work(_: int) -> list[int]:
        numbers = []
        for _ in range(15):
            trials = study.ask(3)
            study.tell_many([(trial, 0.5, [0.5, 0.2]) for trial in trials])
            numbers += [trial.id for trial in trials]
        return numbers

    with ThreadPoolExecutor(8) as pool:
        numbers = [number for some in pool.map(work, range(8)) for number in some]
    assert sorted(numbers) == list(range(1, 361))
    assert study.status().told == 360
    assert verify_study(study).valid
