"""What studies may expect of a storage: every backend passes these."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest

from polyarm.errors import Conflict, InvalidInput, UnknownStudy
from polyarm.studies import events
from polyarm.studies.events import GENESIS, make_event, write_payload
from polyarm.studies.projection import ARCHIVED, COMPLETE, EXPIRED, OBSERVED, PARTIAL, PENDING, RUNNING, STOPPED
from polyarm.studies.storage import Storage, Writer, open_storage

EARLY, NOW, LATE = (f"2026-03-01T{hour}:00:00.000000Z" for hour in ("10", "12", "14"))
FEW = {"n": 1, "text": 'héllo "x"'}


@pytest.fixture
def place(storage: str) -> Storage:
    """An empty storage."""
    return open_storage(storage)


@pytest.fixture
def study(place: Storage) -> int:
    """The number of a study with nothing but its first event."""
    return add(place, "test")


def add(place: Storage, name: str) -> int:
    with place.create(name, EARLY, FEW) as writer:
        writer.append(events.CREATED, FEW)
    return writer.study.id


def ask(writer: Writer, arm: int = 0) -> int:
    number = writer.study.last_trial + 1
    writer.append(events.ASKED, {"trial": number, "arm": arm, "lease_until": None, "route": "plan"})
    return number


def tell(writer: Writer, trial: int, reward: float | None, complete: bool) -> None:
    said = {"trial": trial, "arm": 0, "reward": reward, "costs": {"price": 0.1}, "complete": complete}
    writer.append(events.TOLD, said)


def states(place: Storage, study: int) -> list[str]:
    return [row.state for row in place.trials(study)]


# -- studies --------------------------------------------------------------------------------------------------------


def test_a_study_is_found_by_name_and_by_number(place: Storage, study: int) -> None:
    row = place.find_study("test")
    assert row == place.read_study(study)
    assert (row.id, row.name, row.created_at, row.statement) == (study, "test", EARLY, write_payload(FEW))
    assert (row.lifecycle, row.last_seq, row.last_trial) == (RUNNING, 1, 0)
    assert row.last_digest == make_event(GENESIS, 1, EARLY, events.CREATED, FEW).digest


def test_studies_are_listed_by_name(place: Storage) -> None:
    assert place.list_studies() == []
    numbers = {name: add(place, name) for name in ("b", "c", "a")}
    assert [(row.name, row.id) for row in place.list_studies()] == sorted(numbers.items())
    assert place.last_events([*numbers.values(), 999]) == dict.fromkeys(numbers.values(), 1)


def test_what_is_not_there_is_said(place: Storage, study: int) -> None:
    with pytest.raises(UnknownStudy, match="there are: test"):
        place.find_study("tset")
    with pytest.raises(UnknownStudy):
        place.read_study(study + 1)
    with pytest.raises(UnknownStudy), place.write(study + 1, NOW):
        pass


def test_a_name_is_taken_once(place: Storage, study: int) -> None:
    with pytest.raises(Conflict, match="exists already"):
        add(place, "test")
    assert [row.id for row in place.list_studies()] == [study]


def test_a_deleted_study_leaves_nothing_and_its_number_is_not_given_again(place: Storage, study: int) -> None:
    with place.write(study, NOW) as writer:
        ask(writer)
        writer.add_snapshot("{}")
        writer.remember("key", "request", "reply", EARLY)
    place.delete_study(study)
    place.delete_study(study)
    assert (place.list_studies(), place.last_events([study])) == ([], {})
    assert [list(left) for left in (place.events(study), place.trials(study), place.snapshots(study))] == [[], [], []]
    assert add(place, "test") != study
    place.add_snapshot(study, 1, "{}")
    assert list(place.snapshots(study)) == []


def fail_in(block: AbstractContextManager[Writer]) -> None:
    with block as writer:
        ask(writer)
        writer.remember("key", "request", "reply", EARLY)
        raise ArithmeticError


# -- all or nothing -------------------------------------------------------------------------------------------------


def test_a_block_that_fails_stores_nothing(place: Storage, study: int) -> None:
    before = place.read_study(study)
    for block in (place.write(study, NOW), place.create("other", NOW, FEW)):
        with pytest.raises(ArithmeticError):
            fail_in(block)
    assert place.list_studies() == [before]
    assert states(place, study) == []
    with place.write(study, NOW) as writer:
        assert writer.recall("key", "request") is None


def test_a_reader_sees_all_of_a_block_or_nothing(place: Storage, study: int) -> None:
    with place.write(study, NOW) as writer:
        ask(writer)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(states, place, study).result() == []
    assert states(place, study) == [PENDING]


def test_writers_wait_for_each_other(place: Storage, study: int) -> None:
    def work(_: int) -> None:
        with place.write(study, NOW) as writer:
            ask(writer)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))
    log = [event.read() for event in place.events(study)]
    assert [event.seq for event in log] == list(range(1, 26))
    assert [event.payload["trial"] for event in log[1:]] == list(range(1, 25))
    assert place.read_study(study).last_trial == 24


# -- the log and what follows from it -------------------------------------------------------------------------------


def test_events_are_read_in_part(place: Storage, study: int) -> None:
    with place.write(study, NOW) as writer:
        added = [writer.append(events.ASKED, payload) for payload in asks(5)]
        assert list(writer.events_after(0)) == [*place.events(study)], "its own are not among them"
    assert [event.read() for event in place.events(study, after=1)] == added
    assert [event.seq for event in place.events(study, after=2, last=4)] == [3, 4]
    assert list(place.events(study, after=6)) == []
    with place.write(study, LATE) as writer:
        assert [event.read() for event in writer.events_after(1)] == added


def asks(n: int) -> Iterator[dict[str, Any]]:
    for trial in range(1, n + 1):
        yield {"trial": trial, "arm": trial % 2, "lease_until": None, "route": "plan"}


def test_floats_come_back_bit_for_bit(place: Storage, study: int) -> None:
    odd = [0.1 + 0.2, 5e-324, -1 / 3, 1.7976931348623157e308]
    with place.write(study, NOW) as writer:
        for reward in odd:
            tell(writer, ask(writer), reward, complete=True)
    assert [repr(row.reward) for row in place.trials(study)] == list(map(repr, odd))


def test_trials_follow_from_the_events(place: Storage, study: int) -> None:
    with place.write(study, EARLY) as writer:
        first, second, third = ask(writer), ask(writer, 1), ask(writer)
        writer.append(events.OBSERVED, {"trial": 4, "arm": 2, "reward": 1.5, "costs": {}})
        tell(writer, first, None, complete=False)
    assert states(place, study) == [PARTIAL, PENDING, PENDING, OBSERVED]
    with place.write(study, NOW) as writer:
        writer.load_trials([second, third, 99])
        for trial in (first, second, third):
            writer.append(events.EXPIRED, {"trial": trial, "by": "hand"})
        tell(writer, first, None, complete=False)
        tell(writer, second, 0.5, complete=True)
        told = writer.trial(second)
        assert writer.trial(99) is None
    assert states(place, study) == [EXPIRED, COMPLETE, EXPIRED, OBSERVED]
    rows = list(place.trials(study))
    assert rows[1] == told
    assert (told.reward, told.costs, told.asked_at, told.told_at) == (0.5, {"price": 0.1}, EARLY, NOW)
    with place.write(study, LATE) as writer:
        assert list(writer.stored_trials()) == [row.store() for row in rows]


def test_a_trial_that_nobody_asked_for_cannot_be_told(place: Storage, study: int) -> None:
    with pytest.raises(InvalidInput, match="there is no trial 7"), place.write(study, NOW) as writer:
        tell(writer, 7, 0.5, complete=True)
    assert place.read_study(study).last_seq == 1


@pytest.mark.parametrize(
    ("kinds", "lifecycle"),
    [
        ([events.STOPPED], STOPPED),
        ([events.STOPPED, events.RESUMED], RUNNING),
        ([events.STOPPED, events.ARCHIVED], ARCHIVED),
    ],
)
def test_the_lifecycle_follows_from_the_events(place: Storage, study: int, kinds: list[str], lifecycle: str) -> None:
    with place.write(study, NOW) as writer:
        for kind in kinds:
            writer.append(kind, {})
        assert writer.study.lifecycle == lifecycle
    assert place.read_study(study) == writer.study


def test_an_event_with_a_seal_is_stored_as_it_is(place: Storage, study: int) -> None:
    before = place.read_study(study)
    sealed = make_event(before.last_digest, 2, LATE, events.STOPPED, {"reason": ""})
    with place.write(study, NOW) as writer:
        assert writer.add(sealed) == sealed.read()
    assert list(place.events(study, after=1)) == [sealed]


def test_many_rows_are_read_in_chunks(place: Storage, study: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyarm.studies.sql.storage._CHUNK", 3)
    monkeypatch.setattr("polyarm.studies.sql.storage._LOOKUP", 2)
    with place.write(study, NOW) as writer:
        for _ in range(6):
            ask(writer)
    assert [event.seq for event in place.events(study)] == list(range(1, 8))
    assert [event.seq for event in place.events(study, last=6)] == list(range(1, 7))
    assert [row.id for row in place.trials(study)] == list(range(1, 7))
    with place.write(study, NOW) as writer:
        writer.load_trials(range(1, 8))
        assert [writer.trial(number) is not None for number in range(1, 8)] == [True] * 6 + [False]


# -- snapshots, keys, tokens ----------------------------------------------------------------------------------------


def test_the_two_newest_snapshots_are_kept(place: Storage, study: int) -> None:
    for seq in (5, 9, 7, 9, 12):
        place.add_snapshot(study, seq, f"state {seq}")
    assert list(place.snapshots(study)) == [(12, "state 12"), (9, "state 9")]
    with place.write(study, NOW) as writer:
        for _ in range(15):
            ask(writer)
        writer.add_snapshot("now")
    assert [seq for seq, _ in place.snapshots(study)] == [16, 12]


def test_a_key_keeps_its_answer_for_its_study(place: Storage, study: int) -> None:
    other = add(place, "other")
    with place.write(study, NOW) as writer:
        assert writer.recall("key", "request") is None
        writer.remember("key", "request", {"trials": [1]}, EARLY)
    with place.write(study, LATE) as writer:
        assert writer.recall("key", "request") == {"trials": [1]}
        with pytest.raises(Conflict, match="another request"):
            writer.recall("key", "something else")
    with place.write(other, LATE) as writer:
        assert writer.recall("key", "request") is None


def test_old_answers_are_forgotten_but_for_lasting_ones(place: Storage, study: int) -> None:
    with place.write(study, EARLY) as writer:
        writer.remember("short", "request", 1, EARLY)
        writer.remember("long", "request", 2, EARLY, lasting=True)
    with place.write(study, LATE) as writer:
        writer.remember("new", "request", 3, forget_before=NOW)
        assert [writer.recall(key, "request") for key in ("short", "long", "new")] == [None, 2, 3]


def test_tokens_are_found_until_they_are_revoked(place: Storage) -> None:
    assert place.tokens.list() == []
    for name in ("one", "two"):
        place.tokens.add(name, f"hash of {name}", "read,write", EARLY)
    with pytest.raises(Conflict, match="exists already"):
        place.tokens.add("one", "other hash", "read", NOW)
    found = place.tokens.find("hash of one")
    assert found is not None
    assert found[1:] == ("one", "read,write", EARLY, None)
    place.tokens.revoke("one", NOW)
    assert place.tokens.find("hash of one") is None
    assert place.tokens.find("other hash") is None
    assert [(token.name, token.revoked_at) for token in place.tokens.list()] == [("one", NOW), ("two", None)]
    for name in ("one", "three"):
        with pytest.raises(InvalidInput):
            place.tokens.revoke(name, LATE)


def test_logins_end(place: Storage) -> None:
    tokens = place.tokens
    tokens.add("one", "hash", "read", EARLY)
    token = tokens.find("hash")
    assert token is not None
    tokens.sign_in(token.id, "first", EARLY, NOW, most=2)
    assert tokens.find_signed_in("first", EARLY) == token
    assert tokens.find_signed_in("first", LATE) is None, "its time is over"
    for k in range(3):
        tokens.sign_in(token.id, f"login {k}", EARLY, f"{LATE}{k}", most=2)
    assert [tokens.find_signed_in(f"login {k}", EARLY) is None for k in range(3)] == [True, False, False]
    tokens.sign_out("login 1")
    assert tokens.find_signed_in("login 1", EARLY) is None
    tokens.revoke("one", NOW)
    assert tokens.find_signed_in("login 2", EARLY) is None


def test_a_storage_answers_and_hides_its_password(place: Storage) -> None:
    place.check()
    assert "://" in place.address
    place.close()
    place.check()
