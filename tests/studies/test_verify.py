"""Verification finds what does not follow from the log, and never falls over it."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from polyarm import Study, import_study, list_studies, load_study, verify_study
from polyarm.studies import statement as statement_module
from polyarm.studies import study as study_module
from polyarm.studies import transfer as transfer_module
from polyarm.studies import verify as verify_module
from studies.worlds import World, engine_of, execute, explore, reseal, start, tell_prices, tripped_study


def faults(study: Study) -> str:
    result = verify_study(study)
    assert not result.valid
    return "\n".join(result.faults)


EVENT = "UPDATE polyarm_event SET"
STUDY = "UPDATE polyarm_study SET"


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (f"{EVENT} payload = replace(payload, '0.', '1.') WHERE seq = 8", "event 8: its seal is broken"),
        (f"{EVENT} at = '2020' WHERE seq = 8", "event 8: its seal is broken"),
        (f"{EVENT} kind = 'foo' WHERE seq = 8", "event 8 cannot be replayed: event 8: unknown kind 'foo'"),
        (f"{EVENT} payload = '{{' WHERE seq = 8", "event 8 cannot be replayed: event 8 is damaged"),
        (f"{EVENT} payload = '{{}}' WHERE seq = 8", "event 8 cannot be replayed: KeyError('trial')"),
        (f"{EVENT} payload = '[1]' WHERE seq = 8", "event 8 cannot be replayed: TypeError"),
        (f'{EVENT} payload = replace(payload, \'"arm"\', \'"arm":7,"x"\') WHERE seq = 3', "event 3 cannot be replayed"),
        (f'{EVENT} payload = replace(payload, \'"reward"\', \'"reward":"a","x"\') WHERE seq = 9', "event 9"),
        (f"{EVENT} payload = '{{}}' WHERE seq = 1", "event 1 does not state the study"),
        (f"{EVENT} payload = replace(payload, 'certex', 'vortex') WHERE seq = 1", "event 1 does not state the study"),
        ("DELETE FROM polyarm_event WHERE seq = 8", "event 8 is missing"),
        ("DELETE FROM polyarm_event WHERE seq = 13", "says that it has 13 events, the log ends at 12"),
        ("DELETE FROM polyarm_event", "says that it has 13 events, the log ends at 0"),
        (f"{STUDY} last_seq = 5", "says that it has 5 events, the log ends at 13"),
        (f"{STUDY} last_trial = 2", "says that it has 2 trials, the log has 6"),
        (f"{STUDY} lifecycle = 'stopped'", "says that it is stopped"),
        (f"{STUDY} statement = '{{}}'", "statement is not the one"),
        (f"{STUDY} statement = '{{'", "statement is not the one"),
        (f"{STUDY} created_at = 'yesterday'", "statement is not the one"),
        ("UPDATE polyarm_trial SET reward = reward + 1 WHERE id = 2", "trial 2: stored as"),
        ("UPDATE polyarm_trial SET state = 'pending' WHERE id = 2", "trial 2: stored as"),
        ("UPDATE polyarm_trial SET costs = '{' WHERE id = 2", "trial 2: stored as"),
        ("DELETE FROM polyarm_trial WHERE id = 3", "trial 3: in the log, but not stored"),
        ("UPDATE polyarm_snapshot SET state = replace(state, '\"asked\":6', '\"asked\":7')", "snapshot at event 13"),
        ("UPDATE polyarm_snapshot SET seq = 14", "snapshot at event 14: the log has no such event"),
    ],
)
def test_damage_is_a_fault(sqlite: str, monkeypatch: pytest.MonkeyPatch, damage: str, complaint: str) -> None:
    monkeypatch.setattr(study_module, "SNAPSHOT_EVERY", 13)
    study, world = start(sqlite), World()
    study.tell_many([world.pull(trial) for trial in study.ask(6)])
    assert study.status().events == 13
    assert verify_study(study).valid
    execute(sqlite, damage.replace(":", r"\:"))
    assert complaint in faults(study)
    assert complaint in faults(load_study("test", sqlite))
    assert [row["name"] for row in list_studies(sqlite)] == ["test"]


def test_a_state_that_went_astray_is_a_fault(sqlite: str) -> None:
    study, world = start(sqlite), World()
    study.tell_many([world.pull(trial) for trial in study.ask(6)])
    with study.reading() as state:
        state.tallies.told += 1
    assert "the state in use: differs" in faults(study)
    assert verify_study(load_study("test", sqlite)).valid


@pytest.mark.parametrize(
    ("forgery", "complaint"),
    [
        (f"{EVENT} payload = '{{\"excess\":{{\"price\":0.5}}}}' WHERE kind = 'tripped'", "tripped by {'price': 0.5}"),
        (f"{EVENT} kind = 'stopped', payload = '{{}}' WHERE kind = 'tripped'", "should have tripped before"),
        (f"{EVENT} kind = 'tripped', payload = '{{\"excess\":{{\"price\":1}}}}' WHERE kind = 'archived'", "gives {}"),
    ],
)
def test_the_breaker_trips_when_the_log_says_and_no_sooner(sqlite: str, forgery: str, complaint: str) -> None:
    study, world = tripped_study(sqlite)
    tell_prices(study, world, 3)
    study.archive()
    study.resume()
    assert verify_study(study).valid
    execute(sqlite, forgery.replace(":", r"\:"))
    reseal(sqlite)
    assert complaint in faults(load_study("test", sqlite))


def test_a_trial_told_twice_in_the_log_is_a_fault(sqlite: str) -> None:
    study, world = start(sqlite), World()
    study.tell_many([world.pull(trial) for trial in study.ask(6)])
    execute(
        sqlite, "UPDATE polyarm_event SET payload = (SELECT payload FROM polyarm_event WHERE seq = 8) WHERE seq = 9"
    )
    reseal(sqlite)
    assert "event 9: tells trial 1, which is complete" in faults(load_study("test", sqlite))


def test_verification_never_needs_a_second_connection(storage: str) -> None:
    """It holds the study's lock: those who wait for it may have taken all other connections."""
    study, world = start(storage), World()
    study.tell_many([world.pull(trial) for trial in study.ask(6)])
    engine, taken = engine_of(storage), [0, 0]

    def take(*_: Any) -> None:
        taken[0] += 1
        taken[1] = max(taken)

    def give_back(*_: Any) -> None:
        taken[0] -= 1

    sa.event.listen(engine, "checkout", take)
    sa.event.listen(engine, "checkin", give_back)
    assert verify_study(study).valid
    assert taken == [0, 1]


def test_a_field_that_a_later_version_adds_changes_no_old_study(
    sqlite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    study = start(sqlite)
    explore(study, World(), 40)
    study.export(tmp_path / "study.json")

    class Later(statement_module.Statement):
        colour: str | None = None

    for module in (study_module, transfer_module, verify_module):
        monkeypatch.setattr(module, "Statement", Later)
    assert verify_study(load_study("test", sqlite)).valid
    copy = import_study(tmp_path / "study.json", sqlite, "copy")
    assert verify_study(copy).valid
    copy.export(tmp_path / "copy.json")
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("study", "copy"))
    assert {**first, "name": "copy"} == second
