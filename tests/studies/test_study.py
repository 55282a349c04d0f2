"""What a study promises, on both storages."""

import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from scipy.stats import binom

from polyarm import (
    Breaker,
    ExplorationOver,
    InvalidInput,
    NoFeasibleMix,
    Session,
    StorageError,
    Study,
    StudyHalted,
    create_study,
    delete_study,
    import_study,
    list_studies,
    load_study,
    make_certificate,
    make_explorer,
    verify_certificate,
    verify_study,
)
from polyarm.studies import study as study_module
from polyarm.studies.breaker import find_excess
from polyarm.studies.state import StudyState
from polyarm.studies.storage import Writer
from polyarm.studies.trial import Observed
from studies.worlds import (
    Clock,
    World,
    engine_of,
    execute,
    explore,
    infeasible_problem,
    make_problem,
    outcome,
    sequential,
    start,
    tell_prices,
    tripped_study,
)


def log_of(study: Study) -> list[str]:
    return [event.kind for event in study.events()]


def trials_of(study: Study) -> dict[int, dict[str, Any]]:
    return {trial["id"]: trial for trial in study.trials()}


def test_a_study_ends_with_a_proved_mix(storage: str) -> None:
    study = start(storage)
    explore(study, World())
    answer = study.recommend()
    assert answer.stopped
    assert any("satisfies price, latency" in claim for claim in answer.claims.proved)
    certificate = study.certificate()
    assert verify_certificate(certificate.document).proved
    assert certificate.assumptions == ()
    assert study.status().state == "answered"
    with pytest.raises(ExplorationOver, match="nothing left to ask"):
        study.ask()
    assert verify_study(study).valid


# -- tells ----------------------------------------------------------------------------------------------------------


def test_the_same_tell_twice_is_a_no_op_that_says_so(storage: str) -> None:
    study = start(storage)
    (trial,) = study.ask()
    reward, costs = outcome(0, 0)
    assert study.tell(trial, reward, costs).status == "recorded"
    before = list(study.events())
    again = load_study("test", storage).tell(trial.id, reward, costs)
    assert again.status == "duplicate"
    assert "nothing changed" in str(again)
    assert list(study.events()) == before
    assert study.status().used == 1


def test_a_different_second_tell_is_an_error_that_changes_nothing(storage: str) -> None:
    study = start(storage)
    first, second = study.ask(2)
    reward, costs = outcome(0, 0)
    study.tell(first, reward, costs)
    before = list(study.events()), trials_of(study)
    wrongs: list[dict[str, Any]] = [{"reward": reward + 1e-12}, {"costs": {"price": costs["price"] + 1.0}}]
    for wrong in wrongs:
        with pytest.raises(InvalidInput, match=r"told as .* nothing changed"):
            study.tell(first, **wrong)
        with pytest.raises(InvalidInput, match="nothing changed"):
            study.tell_many([(second, 1.0, costs), (first, wrong.get("reward"), wrong.get("costs"))])
    assert (list(study.events()), trials_of(study)) == before


def test_costs_may_come_after_the_reward(storage: str) -> None:
    study = start(storage)
    (trial,) = study.ask()
    reward, costs = outcome(0, 0)
    assert study.tell(trial, reward).missing == ("price", "latency")
    assert study.status().used == 0, "only complete outcomes reach the explorer"
    assert trials_of(study)[trial.id]["state"] == "partial"
    assert study.tell(trial, costs={"latency": costs["latency"]}).missing == ("price",)
    assert study.tell(trial, costs={"latency": costs["latency"]}).status == "duplicate"
    assert study.tell(trial, costs=costs).status == "recorded"
    assert study.status().used == 1
    assert trials_of(study)[trial.id]["costs"] == costs


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ({"reward": float("nan")}, "finite"),
        ({"reward": "much"}, "expected a number"),
        ({"reward": 1.0, "costs": {"weight": 1.0}}, "expected some of the unknown constraints"),
        ({"reward": 1.0, "costs": [1.0]}, "expected 2 numbers"),
        ({}, "nothing to tell"),
    ],
)
def test_a_bad_tell_is_refused(sqlite: str, told: dict[str, Any], complaint: str) -> None:
    study = start(sqlite)
    (trial,) = study.ask()
    before = list(study.events())
    with pytest.raises(InvalidInput, match=complaint):
        study.tell(trial, **told)
    with pytest.raises(InvalidInput, match="never asked for"):
        study.tell(99, 1.0)
    assert list(study.events()) == before


@pytest.mark.parametrize("number", [0, -1, 2**63, 10**30, True, 1.0, "1"])
def test_a_number_that_no_trial_can_have_is_refused(storage: str, number: Any) -> None:
    study = start(storage)
    study.ask(2)
    for call in (lambda: study.tell(number, 1.0), lambda: study.expire(number)):
        with pytest.raises(InvalidInput, match="expected a Trial or its number"):
            call()


def test_a_trial_of_another_study_is_refused(sqlite: str) -> None:
    one, two = start(sqlite, name="one"), start(sqlite, "uniform", name="two", seed=8)
    pairs = [(a, b) for a, b in zip(one.ask(12), two.ask(12), strict=True) if a.arm != b.arm]
    before = list(two.events())
    with pytest.raises(InvalidInput, match=r"is one of '\w+', not of '\w+'; nothing changed"):
        two.tell(pairs[0][0], *outcome(0, 0))
    assert list(two.events()) == before
    two.tell(pairs[0][1], *outcome(0, 0))


def test_a_call_that_breaks_down_half_way_leaves_the_state_alone(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the explorer works through its queue, say."""
    study, world = start(sqlite, problem=make_problem(r=0.01)), World()
    first, *others = study.ask(12)
    study.tell_many([world.pull(trial) for trial in others])
    before = study.status()
    original = Session.tell

    def interrupted(*_: Any) -> None:
        monkeypatch.setattr(Session, "tell", original)
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "tell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.expire(first)
    assert study.status() == before
    study.tell(*world.pull(first))
    assert study.status().used == 12
    assert verify_study(study).valid


def test_the_session_that_a_study_shows_is_a_copy(sqlite: str) -> None:
    study, world = start(sqlite, problem=make_problem(r=0.01)), World()
    study.tell_many([world.pull(trial) for trial in study.ask(6)])
    session = study.session
    session.tell(session.ask(), 5.0, [3.0, 3.0])
    assert (session.steps, study.session.steps, study.status().used) == (7, 6, 6)
    study.ask(10)
    assert verify_study(study).valid


# -- leases ---------------------------------------------------------------------------------------------------------


def test_a_lease_expires_and_the_arm_is_asked_again(storage: str) -> None:
    clock = Clock()
    study, world = start(storage, lease=3600, clock=clock), World()
    lost, *others = study.ask(6)
    study.tell_many([world.pull(trial) for trial in others])
    assert study.status().pending == 1
    clock.pass_time(minutes=59)
    assert study.status().overdue == 0
    clock.pass_time(minutes=2)
    assert study.status().overdue == 1
    again = study.ask(1)[0]
    assert again.arm == lost.arm
    assert trials_of(study)[lost.id]["state"] == "expired"
    study.tell(*world.pull(again))
    assert study.status().used >= 6
    # What comes late still counts, once.
    used = study.status()
    assert study.tell(lost, *outcome(lost.arm_index, 500)).status == "recorded"
    assert study.tell(lost, *outcome(lost.arm_index, 500)).status == "duplicate"
    assert study.status().late == 1
    assert study.status().used + study.status().waiting == used.used + used.waiting + 1
    assert verify_study(study).valid


def test_a_certificate_after_lost_trials_says_what_it_assumes(sqlite: str) -> None:
    clock = Clock()
    study, world = start(sqlite, lease=60, clock=clock), World()
    while not study.stopped:
        trials = study.ask(20)
        kept = trials if study.status().expired else trials[1:]
        study.tell_many([world.pull(trial) for trial in kept])
        clock.pass_time(minutes=2)
    (assumption,) = study.certificate().assumptions
    assert "does not depend on its value (1 given up, 0 of them told late, 0 by hand)" in assumption
    assert all(claim.startswith(f"if {assumption}: ") for claim in study.recommend().claims.proved)
    assert verify_certificate(study.certificate().document).proved


def test_a_lost_trial_may_be_all_that_the_explorer_waited_for(sqlite: str) -> None:
    """Giving it up ends the exploration: that is recorded, although there is nothing more to ask."""
    alone, clock = sequential("certex"), Clock()
    study, world = start(sqlite, lease=60, clock=clock), World()
    while study.status().used < alone.steps - 12:
        study.tell_many([world.pull(trial) for trial in study.ask(1)])
    lost, *others = study.ask(60)
    study.tell_many([world.pull(trial) for trial in others])
    assert not study.stopped
    clock.pass_time(minutes=2)
    with pytest.raises(ExplorationOver):
        study.ask()
    assert study.stopped
    assert trials_of(study)[lost.id]["state"] == "expired"


def test_a_trial_may_be_given_up_by_hand(sqlite: str) -> None:
    study = start(sqlite)
    first, second = study.ask(2)
    study.expire(first)
    assert trials_of(study)[first.id]["state"] == "expired"
    for wrong in (first, 77):
        with pytest.raises(InvalidInput, match="not under way"):
            study.expire(second, wrong)
    assert study.status().pending == 1


def test_what_is_assumed_names_late_tells_and_trials_given_up_by_hand(sqlite: str) -> None:
    clock = Clock()
    study, world = start(sqlite, lease=60, clock=clock), World()
    first, second, *_ = study.ask(6)
    study.expire(first)
    clock.pass_time(minutes=2)
    assert not study.stopped
    study.tell(*world.pull(second))
    (assumption,) = study.status().assumptions
    assert assumption == (
        "whether and when an outcome was told, and whether its trial was given up, does not depend on its value "
        "(6 given up, 1 of them told late, 1 by hand)"
    )
    assert verify_study(study).valid


def test_that_no_mix_is_feasible_is_claimed_under_what_is_assumed(sqlite: str) -> None:
    study, world = start(sqlite, problem=infeasible_problem()), World()
    study.expire(*study.ask(2))
    while not study.stopped:
        tell_prices(study, world, 20)
    (assumption,) = study.certificate().assumptions
    with pytest.raises(NoFeasibleMix) as refusal:
        study.recommend()
    assert str(refusal.value).startswith(f"if {assumption}: no mix satisfies")
    with pytest.raises(ExplorationOver) as over:
        study.ask()
    assert f"proved: if {assumption}: no mix satisfies all of: price" in str(over.value)


def test_a_study_that_somebody_halts_meanwhile_gives_nothing_up(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    study = start(sqlite, lease=60, clock=clock)
    study.ask(2)
    clock.pass_time(minutes=2)
    original = StudyState.overdue

    def archived_meanwhile(state: StudyState, now: str) -> list[int]:
        monkeypatch.setattr(StudyState, "overdue", original)
        load_study("test", sqlite, clock).archive()
        return original(state, now)

    monkeypatch.setattr(StudyState, "overdue", archived_meanwhile)
    with pytest.raises(StudyHalted, match="is archived"):
        study.ask()
    assert log_of(study)[-1] == "archived"
    assert study.status().expired == 0


@pytest.mark.parametrize("lease", [0, -5, 1e10, float("inf"), float("nan"), timedelta(days=4000), "soon", True])
def test_a_lease_without_end_is_refused(sqlite: str, lease: Any) -> None:
    with pytest.raises(InvalidInput, match="lease: expected more than 0 seconds and at most ten years"):
        start(sqlite, lease=lease)
    assert start(sqlite, lease=timedelta(days=3650)).ask()


# -- outcomes that nobody asked for ---------------------------------------------------------------------------------


def test_observed_outcomes_count_and_are_flagged(sqlite: str, tmp_path: Path) -> None:
    rows = [(arm, *outcome(arm, k)) for k in range(40) for arm in range(3)]
    log = tmp_path / "log.csv"
    log.write_text(
        "arm,reward,price,latency\n"
        + "".join(f"{arm},{reward!r},{costs['price']!r},{costs['latency']!r}\n" for arm, reward, costs in rows)
    )
    study = start(sqlite)
    assert study.observe_file(log) == Observed(tuple(range(1, 121)), repeated=False)
    assert 60 < study.status().used <= 120
    explore(study, World())
    (assumption,) = study.certificate().assumptions
    assert "nobody had asked for" in assumption
    assert verify_certificate(study.certificate().document).proved
    assert verify_study(study).valid
    with pytest.raises(InvalidInput, match="observed, not asked for"):
        study.tell(1, 0.0)


def test_what_comes_after_the_stop_is_kept_but_not_used(sqlite: str) -> None:
    study, world = start(sqlite), World()
    explore(study, world)
    before = json.dumps(study.session.state_dict())
    study.observe("small", *outcome(0, 0))
    assert json.dumps(study.session.state_dict()) == before
    assert study.certificate().assumptions == ()
    assert make_certificate(sequential("certex")).policy == study.certificate().policy


# -- breaker --------------------------------------------------------------------------------------------------------


def test_the_breaker_routes_to_the_control_mix(storage: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "polyarm"):
        study, _ = tripped_study(storage)
    assert "proved: the sampling breaks price" in caplog.text
    assert study.status().state == "tripped"
    assert log_of(study).count("tripped") == 1
    arms = [trial.arm for trial in study.ask(40)]
    assert (arms.count("small"), arms.count("medium"), arms.count("large")) == (30, 10, 0)
    assert {trial.route for trial in study.ask(3)} == {"control"}
    for halt in (study.stop, study.archive):
        halt()
        study.resume()
        assert study.ask(1)[0].route == "control", "letting it run again is no word on the alarm"
    study.resume()
    assert study.ask(1)[0].route == "plan", "whoever resumes a running study has seen the alarm"
    count = study.status().events
    study.resume()
    assert study.status().events == count
    assert verify_study(study).valid


def test_a_halted_study_is_not_halted_twice(sqlite: str) -> None:
    study, _ = tripped_study(sqlite)
    for halt in (study.stop, study.archive):
        halt()
        count = study.status().events
        halt()
        assert study.status().events == count


def test_an_alarm_is_claimed_under_what_is_assumed_and_once_it_is_recorded(
    sqlite: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_problem(r=0.01, constraints=[{"name": "price", "bound": 0.4, "std": 0.3}])
    study, world = start(sqlite, "uniform", problem, breaker=Breaker(control={"small": 1.0})), World()
    study.expire(*study.ask(2))
    original = Writer.save

    def fail(writer: Writer) -> None:
        raise RuntimeError

    while study.status().tripped is None:
        with study.reading() as state:
            due = bool(state.alarm())
        if due:
            monkeypatch.setattr(Writer, "save", fail)
            with pytest.raises(RuntimeError):
                study.ask()
            assert not caplog.records, "what was not recorded did not happen"
            monkeypatch.setattr(Writer, "save", original)
        tell_prices(study, world, 10)
    (assumption,) = study.status().assumptions
    (record,) = caplog.records
    assert f"proved: if {assumption}: the sampling breaks price" in record.getMessage()


def test_false_alarms_are_rarer_than_delta() -> None:
    """On the edge: the uniform allocation costs exactly the bound, so that every alarm is false."""
    problem = make_problem(delta=0.2, r=0.2, constraints=[{"name": "price", "bound": 1.0, "std": 0.3}])
    runs, alarms = 200, 0
    for seed in range(runs):
        session, noise = make_explorer("uniform", problem, seed=seed), np.random.default_rng([7, seed])
        for pull in range(150):
            if session.stopped:
                break
            arm = session.ask()
            session.tell(arm, 0.5, [[0.2, 0.8, 2.0][arm] + 0.3 * noise.standard_normal()])
            if pull % 5 == 0 and find_excess(session, {"price"}):
                alarms += 1
                break
    assert alarms <= binom.ppf(0.999, runs, problem.delta)


@pytest.mark.parametrize(
    ("breaker", "changes", "complaint"),
    [
        (Breaker(control={"huge": 1.0}), {}, "unknown arm"),
        (Breaker(control={"small": 0.5}), {}, "sum to 1"),
        (Breaker(control={"small": 1.0}, constraints=("weight",)), {}, "^breaker: no unknown constraint 'weight'"),
        (Breaker(control={"small": 1.0}), {"constraints": []}, "no unknown constraint"),
    ],
)
def test_a_bad_breaker_is_refused(sqlite: str, breaker: Breaker, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        start(sqlite, problem=make_problem(**changes), breaker=breaker)
    assert list_studies(sqlite) == []


# -- life -----------------------------------------------------------------------------------------------------------


def test_stop_resume_archive(storage: str) -> None:
    study = start(storage)
    (trial,) = study.ask()
    study.stop("holidays")
    assert study.status().state == "stopped"
    with pytest.raises(StudyHalted, match="is stopped; resume"):
        study.ask()
    assert study.tell(trial, *outcome(0, 0)).status == "recorded", "outcomes are still taken"
    study.archive()
    for forbidden in (study.ask, lambda: study.observe(0, *outcome(0, 1))):
        with pytest.raises(StudyHalted, match="is archived"):
            forbidden()
    study.resume()
    assert study.ask()
    assert verify_study(study).valid


def test_creating_loading_listing_deleting(storage: str) -> None:
    start(storage, name="one")
    start(storage, name="two", explorer="uniform")
    assert [(row["name"], row["explorer"]) for row in list_studies(storage)] == [("one", "certex"), ("two", "uniform")]
    with pytest.raises(InvalidInput, match="exists already"):
        start(storage, name="one")
    assert start(storage, name="one", load_if_exists=True).name == "one"
    with pytest.raises(InvalidInput, match=r"created with another .*lease"):
        start(storage, name="one", load_if_exists=True, lease=5)
    held = load_study("one", storage)
    held.ask()
    delete_study("one", storage)
    with pytest.raises(InvalidInput, match="may have been deleted"):
        held.ask()
    with pytest.raises(InvalidInput, match=r"no study 'one'.*there are: two"):
        load_study("one", storage)


@pytest.mark.parametrize("url", ["mysql://here/there", "nonsense", "sqlite://", "sqlite:////no/such/folder/x.db"])
def test_a_bad_storage_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="storage"):
        create_study(make_problem(), storage=url)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "two"])
def test_a_bad_number_of_trials_is_refused(sqlite: str, n: Any) -> None:
    with pytest.raises(InvalidInput, match="n: expected a whole number"):
        start(sqlite).ask(n)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql//somebody:secret@host/studies",
        "postgresql:/somebody:secret@host/studies",
        "postgresql://somebody:secret@host:port/studies",
        "postgresql://somebody:a@secret@host/studies",
        "oracle://somebody:secret@host/studies",
        "secret@",
    ],
)
def test_a_bad_storage_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput, match="storage: expected") as error:
        load_study("x", url)
    assert "secret" not in str(error.value)


def test_an_unreachable_server_is_a_storage_error_without_the_password() -> None:
    for url in ("postgresql://somebody:secret@127.0.0.1:1/no", "postgresql://127.0.0.1:1/no?user=me&password=secret"):
        with pytest.raises(StorageError) as error:
            load_study("x", url)
        assert "secret" not in str(error.value)


# -- snapshots, replay, damage --------------------------------------------------------------------------------------


def test_a_study_opened_from_a_snapshot_is_the_replayed_one(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_module, "SNAPSHOT_EVERY", 50)
    study, world = start(storage, problem=make_problem(r=0.05)), World()
    for _ in range(20):
        study.tell_many([world.pull(trial) for trial in study.ask(10)])
    study.status()
    applied: list[int] = []
    original = StudyState.apply

    def counting(self: StudyState, event: Any) -> None:
        applied.append(event.seq)
        original(self, event)

    monkeypatch.setattr(StudyState, "apply", counting)
    again = load_study("test", storage)
    assert again.status() == study.status()
    assert len(applied) <= 50, "only what came after the snapshot is replayed"
    result = verify_study(again)
    assert result.valid
    assert result.snapshots == 2


def test_a_snapshot_that_cannot_be_read_is_done_without(
    sqlite: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(study_module, "SNAPSHOT_EVERY", 20)
    study = start(sqlite)
    study.tell_many([World().pull(trial) for trial in study.ask(6)])
    study.ask(20)
    expected = study.status()
    execute(sqlite, "UPDATE polyarm_snapshot SET state = replace(state, '\"seq\"', '\"sequel\"')")
    assert load_study("test", sqlite).status() == expected
    assert "cannot be used" in caplog.text


def test_a_snapshot_that_cannot_be_kept_is_done_without(
    sqlite: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(study_module, "SNAPSHOT_EVERY", 20)
    study, world = start(sqlite), World()
    study.tell_many([world.pull(trial) for trial in study.ask(12)])
    with engine_of(sqlite).begin() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")  # the connection is the pool's only one
    assert study.status().used == 12
    assert study.recommend().steps == 12
    assert caplog.text.count("was not kept") == 1, "it is tried again when another is due, not at every look"


def snapshots_of(study: Study) -> list[int]:
    return [seq for seq, _ in study.stored_snapshots()]


def test_who_only_tells_leaves_a_snapshot(sqlite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = start(sqlite)
    study.ask()
    monkeypatch.setattr(study_module, "SNAPSHOT_EVERY", 30)
    teller = load_study("test", sqlite)
    for k in range(12):
        teller.observe_many([(arm, *outcome(arm, k)) for arm in range(3)])
    assert snapshots_of(study) == [30]
    study.export(tmp_path / "study.json")
    assert snapshots_of(import_study(tmp_path / "study.json", sqlite, "copy")) == [38]


def test_a_lost_trial_makes_snapshots_rarer(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold all that waits for it: taken at every so many events they would grow as the square of the log."""
    monkeypatch.setattr(study_module, "SNAPSHOT_EVERY", 10)
    monkeypatch.setattr(study_module, "_SNAPSHOT_SHARE", 1.0)
    written: list[int] = []
    original = StudyState.write

    def noting(state: StudyState) -> str:
        written.append(state.seq)
        return original(state)

    monkeypatch.setattr(StudyState, "write", noting)
    study = start(sqlite)
    study.ask()
    for k in range(100):
        study.observe_many([(arm, *outcome(arm, k)) for arm in range(3)])
        study.status()
    assert study.status().waiting == 300
    assert len(written) <= 7, "each when the log has doubled"


def test_a_full_disk_loses_nothing(sqlite: str) -> None:
    study, world = start(sqlite), World()
    study.tell_many([world.pull(trial) for trial in study.ask(6)])
    trials = study.ask(6)
    before = list(study.events())
    engine = engine_of(sqlite)
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")  # the connection is the pool's only one
    with pytest.raises(StorageError, match="full"):
        study.ask(5000)
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    assert [*study.events()][: len(before)] == before
    study.tell_many([world.pull(trial) for trial in trials])
    assert verify_study(study).valid


def test_asking_and_telling_cost_no_more_as_a_study_grows(sqlite: str) -> None:
    study, world = start(sqlite, problem=make_problem(r=0.01)), World()
    statements: list[str] = []
    sa.event.listen(engine_of(sqlite), "before_cursor_execute", lambda *call: statements.append(call[2]))

    def count() -> int:
        statements.clear()
        study.tell(*world.pull(study.ask()[0]))
        return len(statements)

    count()
    first = count()
    for _ in range(15):
        study.tell_many([world.pull(trial) for trial in study.ask(100)])
    study.status()
    assert count() == first <= 16


# -- moving ---------------------------------------------------------------------------------------------------------


def test_a_study_moves_from_sqlite_to_postgresql(sqlite: str, postgresql: str, tmp_path: Path) -> None:
    study, world = start(sqlite, lease=3600), World()
    for _ in range(5):
        study.tell_many([world.pull(trial) for trial in study.ask(15)])
    trials = study.ask(4)
    study.tell_many([world.pull(trial) for trial in trials[1:]])
    study.observe("small", *outcome(0, 900))
    study.expire(trials[0])
    study.export(tmp_path / "study.json")
    moved = import_study(tmp_path / "study.json", postgresql)
    assert moved.recommend().policy.tolist() == study.recommend().policy.tolist()
    assert list(moved.events()) == list(study.events())
    assert list(moved.trials()) == list(study.trials())
    assert verify_study(moved).valid
    assert [trial.arm for trial in moved.ask(5)] == [trial.arm for trial in study.ask(5)]
    with pytest.raises(InvalidInput, match="exists already"):
        import_study(tmp_path / "study.json", postgresql)


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t[:-40],
        lambda t: t.replace('"reward": 0', '"reward": 1', 1),
        lambda t: t.replace("study-1", "study-9"),
    ],
)
def test_a_damaged_export_is_refused_and_leaves_nothing(sqlite: str, tmp_path: Path, damage: Any) -> None:
    study, file = start(sqlite), tmp_path / "study.json"
    study.tell_many([World().pull(trial) for trial in study.ask(6)])
    study.export(file)
    file.write_text(damage(file.read_text()))
    with pytest.raises(InvalidInput):
        import_study(file, sqlite, "copy")
    assert [row["name"] for row in list_studies(sqlite)] == ["test"]


def test_tables_have_a_row_per_trial(sqlite: str, tmp_path: Path) -> None:
    from pyarrow import parquet

    study = start(sqlite)
    study.tell(*World().pull(study.ask(3)[0]))
    study.export(tmp_path / "t.csv")
    study.export(tmp_path / "t.parquet")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "id,arm,state,reward,price,latency,asked_at,told_at"
    assert len(lines) == 4
    rows = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert [row["state"] for row in rows] == ["complete", "pending", "pending"]
    with pytest.raises(InvalidInput, match=r"ends in \.csv"):
        study.export(tmp_path / "t.xlsx")
