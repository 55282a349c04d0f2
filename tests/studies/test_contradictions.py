"""Outcomes outside what is declared of them: refused on every way into a study, logged, and resolved."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyarm import (
    Breaker,
    Constraint,
    InvalidInput,
    NotYet,
    OutsideDeclaration,
    Problem,
    Study,
    Trial,
    export_study,
    import_study,
    list_studies,
    load_study,
    verify_study,
)
from polyarm.cli.main import app
from polyarm.studies import study as study_module
from polyarm.studies.projection import COMPLETE, EXPIRED, PENDING
from studies.worlds import Clock, execute, make_problem, ranged, start

ALLOWED = (0.5, {"price": 3.0, "latency": 0.2})


def begin(storage: str, explorer: str = "uniform", problem: Problem | None = None, **options: Any) -> Study:
    return start(storage, explorer, problem or ranged(), **options)


def one_of_each(study: Study) -> list[Trial]:
    """Trials of small, medium and large, whose outcomes the explorer takes first."""
    first: dict[str, Trial] = {}
    for trial in study.ask(9):
        first.setdefault(trial.arm, trial)
    return [first[arm] for arm in study.problem.arms]


def kinds(study: Study) -> list[str]:
    return [event.kind for event in study.events()]


def state_of(study: Study) -> str:
    return study.status().state


def refuse(study: Study, *told: Any, **by: Any) -> str:
    with pytest.raises(OutsideDeclaration) as caught:
        study.tell_many([told], **by)
    return str(caught.value)


def test_an_outcome_outside_is_refused_logged_and_keeps_its_trial_open(storage: str) -> None:
    study = begin(storage)
    first, second = study.ask(2)
    message = refuse(study, first, 50.0, {"price": 900.0, "latency": 0.2}, by="the crawler")
    assert "trial 1: reward: 50 is above 1, the largest value declared for arm 'small'" in message
    assert "reward_cap=True" in message
    assert "cost 'price': 900 is above 20" in message
    assert "nothing was recorded" in message
    assert "polyarm study cap" in message
    (refusal,) = [event for event in study.events() if event.kind == "refused"]
    assert refusal.payload["trial"] == 1
    assert refusal.payload["by"] == "the crawler"
    assert (refusal.payload["reward"], refusal.payload["costs"]) == (50.0, {"price": 900.0, "latency": 0.2})
    assert (refusal.payload["outside_reward"], refusal.payload["outside_costs"]) == (True, ["price"])
    status = study.status()
    assert (status.state, status.lifecycle, status.pending, status.told) == ("contradicted", "running", 2, 0)
    (sentence,) = status.contradictions
    assert sentence.startswith("trial 1 of 'small': reward: 50 is above 1")
    assert [row["contradicted"] for row in list_studies(storage)] == [1]
    assert [trial["state"] for trial in study.trials()] == [PENDING, PENDING]
    assert verify_study(study).faults == ()
    study.tell(second, *ALLOWED)
    assert state_of(study) == "contradicted", "another trial resolves nothing"

    study.tell(first, *ALLOWED)
    assert state_of(study) == "exploring"
    assert [row["contradicted"] for row in list_studies(storage)] == [0]
    assert [trial["state"] for trial in study.trials()] == [COMPLETE, COMPLETE]
    assert (study.status().told, study.status().used) == (2, 1)
    assert verify_study(study).faults == ()


def test_the_same_refusal_is_logged_once(sqlite: str) -> None:
    study = begin(sqlite)
    (trial,) = study.ask()
    for _ in range(3):
        refuse(study, trial, 50.0, None)
    assert kinds(study).count("refused") == 1
    refuse(study, trial, 60.0, None)
    assert kinds(study).count("refused") == 2
    refuse(study, trial, None, {"price": 21.0})
    last = list(study.events())[-1].payload
    assert (last["reward"], last["costs"]) == (60.0, {"price": 21.0}), "what was refused before is still open"
    assert last["by"] is None
    assert [row["contradicted"] for row in list_studies(sqlite)] == [1]


def test_a_correction_in_part_resolves_its_part(sqlite: str) -> None:
    study = begin(sqlite)
    (trial,) = study.ask()
    refuse(study, trial, 50.0, {"price": 900.0})
    study.tell(trial, 0.5)
    assert state_of(study) == "contradicted"
    study.tell(trial, costs={"latency": 0.1})
    assert state_of(study) == "contradicted"
    study.tell(trial, costs={"price": 9.0})
    assert state_of(study) == "exploring"
    assert verify_study(study).faults == ()


def test_what_is_only_missing_contradicts_nothing(sqlite: str) -> None:
    study = begin(sqlite)
    (trial,) = study.ask()
    refuse(study, trial, 50.0, None)
    study.tell(trial, 0.5)
    assert state_of(study) == "exploring", "costs are still to come"
    assert study.status().pending == 1


def test_of_a_batch_nothing_is_recorded_and_every_refusal_is_logged(sqlite: str) -> None:
    study = begin(sqlite)
    trials = study.ask(3)
    with pytest.raises(OutsideDeclaration) as caught:
        study.tell_many([(trials[0], 50.0, None), (trials[1], *ALLOWED), (trials[2], None, {"price": -1.0})])
    assert "trial 1: reward: 50" in str(caught.value)
    assert "trial 3: cost 'price': -1 is below 0, the least value declared" in str(caught.value)
    assert [event.payload["trial"] for event in study.events() if event.kind == "refused"] == [1, 3]
    assert study.status().told == 0
    assert len(study.status().contradictions) == 2
    with pytest.raises(InvalidInput, match="never asked for"):
        study.tell_many([(trials[0], 51.0, None), (99, *ALLOWED)])
    assert kinds(study).count("refused") == 2, "a batch with another mistake is not looked at further"


@pytest.mark.parametrize(
    ("changes", "reward", "complaint"),
    [
        (
            {"family": "bernoulli", "reward_range": None},
            0.6,
            "0.6 is no outcome of family 'bernoulli', which has 0 and 1",
        ),
        ({"family": "poisson", "reward_range": None}, -2.0, "-2 is no outcome of family 'poisson', which has 0, 1, 2"),
        ({"family": "poisson", "reward_range": None}, 1.5, "1.5 is no outcome of family 'poisson'"),
        ({"family": "exponential", "reward_range": None}, -0.5, "-0.5 is no outcome of family 'exponential'"),
        ({}, -0.1, "-0.1 is below 0"),
        ({"reward_range": ((0.0, 0.4), (0.0, 1.0), (0.0, 1.0))}, 0.5, "0.5 is above 0.4, the largest value declared"),
    ],
)
def test_families_and_ranges_by_arm(sqlite: str, changes: dict[str, Any], reward: float, complaint: str) -> None:
    study = begin(sqlite, problem=ranged(**changes))
    (trial,) = study.ask()
    assert complaint in refuse(study, trial, reward, None)
    assert state_of(study) == "contradicted"


def test_a_refused_trial_outlives_its_lease_and_cannot_be_given_up(storage: str) -> None:
    clock = Clock()
    study = begin(storage, lease=60.0, clock=clock)
    first, _ = study.ask(2)
    refuse(study, first, 50.0, None)
    clock.pass_time(hours=1)
    study.ask()
    assert [trial["state"] for trial in study.trials()] == [PENDING, EXPIRED, PENDING]
    assert study.status().overdue == 0
    with pytest.raises(InvalidInput, match="trial 1 cannot be given up: its outcome was refused"):
        study.expire(first)
    study.tell(first, *ALLOWED)
    assert study.status().used == 1
    assert study.status().assumptions[0].endswith("(1 given up, 0 of them told late, 0 by hand)")
    assert verify_study(study).faults == ()


def test_a_late_outcome_that_is_refused_must_be_resolved_too(sqlite: str) -> None:
    clock = Clock()
    study = begin(sqlite, lease=60.0, clock=clock)
    (first,) = study.ask()
    clock.pass_time(hours=1)
    study.ask()
    refuse(study, first, 50.0, None)
    assert state_of(study) == "contradicted"
    study.tell(first, *ALLOWED)
    assert (state_of(study), study.status().late) == ("exploring", 1)
    assert verify_study(study).faults == ()


def test_a_cap_records_what_was_refused_and_counts_what_it_cuts(storage: str) -> None:
    study = begin(storage)
    first, second, third = one_of_each(study)
    refuse(study, first, 0.5, {"price": 900.0, "latency": 0.2})
    refuse(study, second, 50.0, {"price": 30.0, "latency": 0.2})
    study.cap(costs=["price"])
    told = next(study.trials())
    assert told["state"] == COMPLETE
    assert told["costs"] == {"price": 900.0, "latency": 0.2}, "the log keeps what came"
    (still,) = study.status().contradictions
    assert "reward: 50" in still
    assert "price" not in still
    study.tell(third, 1.0, {"price": 20.5, "latency": 0.1})
    study.tell(second, 0.75, {"price": 30.0, "latency": 0.2})
    status = study.status()
    assert (status.state, status.used) == ("exploring", 3)
    assert status.capped == {"cost 'price'": {"small": 1, "medium": 1, "large": 1}}
    assert study.session.capped.tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
    prices = study.session.round.estimates.columns[1] * 20.0 + 4.0
    assert prices.tolist() == pytest.approx([20.0, 20.0, 20.0])
    assert study.session.problem.constraints[0].cap
    assert not study.problem.constraints[0].cap, "what the study was stated to be stays"
    assert verify_study(study).faults == ()
    assert [row["contradicted"] for row in list_studies(storage)] == [0]


def test_a_cap_survives_snapshots_exports_and_other_processes(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_module, "SNAPSHOT_EVERY", 4)
    study = begin(sqlite)
    first, second, third = one_of_each(study)
    refuse(study, first, 0.5, {"price": 900.0})
    refuse(study, second, 0.5, {"price": 30.0, "latency": 0.2})
    study.status()
    again = load_study("test", sqlite)
    assert again.status() == study.status()
    assert state_of(again) == "contradicted"
    again.cap(costs=["price"], key="once")
    again.cap(costs=["price"], key="once")
    again.cap(costs=["price"])
    assert kinds(study).count("capped") == 1
    assert study.status().used == 0, "trial 1 waits for its latency; its price is told"
    study.tell(first, costs={"latency": 0.1})
    study.tell(third, 0.1, {"price": 25.0, "latency": 0.1})
    assert study.status().capped == {"cost 'price'": {"small": 1, "medium": 1, "large": 1}}
    assert load_study("test", sqlite).status() == study.status()
    assert verify_study(study).faults == ()
    export_study(study, tmp_path / "study.json")
    copy = import_study(tmp_path / "study.json", sqlite, "copy")
    assert copy.status().capped == study.status().capped
    (trial,) = copy.ask()
    copy.tell(trial, 0.3, {"price": 100.0, "latency": 0.0})
    assert verify_study(copy).faults == ()


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ({}, "name the outcomes to cut"),
        ({"costs": ["latency"]}, "'latency': `cap` cuts values at the end of the range; give `range`"),
        ({"costs": ["colour"]}, "unknown measured constraint 'colour'; known: latency, price"),
    ],
)
def test_a_cap_of_nothing_is_refused(sqlite: str, what: dict[str, Any], complaint: str) -> None:
    study = begin(sqlite)
    with pytest.raises(InvalidInput, match=complaint.replace("(", r"\(")):
        study.cap(**what)
    coins = begin(sqlite, problem=ranged(family="bernoulli", reward_range=None), name="coins")
    with pytest.raises(InvalidInput, match="there is nothing to cut"):
        coins.cap(reward=True)
    assert "capped" not in kinds(study) + kinds(coins)


def test_a_range_that_is_capped_from_the_start_refuses_only_what_is_below_it(sqlite: str) -> None:
    rows = [{"name": "price", "bound": 4.0, "range": (1.0, 20.0), "cap": True}]
    study = begin(sqlite, problem=ranged(constraints=rows))
    first, second = study.ask(2)
    study.tell(first, 0.5, {"price": 900.0})
    assert study.status().capped == {"cost 'price'": {"small": 1}}
    assert "cost 'price': 0 is below 1" in refuse(study, second, 0.5, {"price": 0.0})
    assert state_of(study) == "contradicted"
    study.cap(costs=["price"])
    assert state_of(study) == "contradicted", "a cap cuts larger values only"


def test_observed_outcomes_are_refused_and_change_nothing(sqlite: str, tmp_path: Path) -> None:
    study = begin(sqlite)
    with pytest.raises(OutsideDeclaration, match=r"^reward: 50 is above 1.*; nothing was recorded$"):
        study.observe("small", 50.0, ALLOWED[1])
    with pytest.raises(OutsideDeclaration, match=r"^outcome 2: cost 'price': 21 is above 20"):
        study.observe_many([("small", *ALLOWED), ("large", 0.5, [21.0, 0.1])])
    log = tmp_path / "log.csv"
    log.write_text("arm,reward,price,latency\nsmall,0.5,1,0.1\nlarge,0.5,20.5,0.1\n")
    with pytest.raises(OutsideDeclaration, match=r"log\.csv, row 2: cost 'price': 20\.5 is above 20"):
        study.observe_file(log)
    assert kinds(study) == ["created"]
    study.cap(costs=["price"])
    assert len(study.observe_file(log).trials) == 2
    assert state_of(study) == "exploring"


def test_a_row_of_a_file_is_named(sqlite: str, tmp_path: Path) -> None:
    study = begin(sqlite)
    study.ask(2)
    table = tmp_path / "told.csv"
    table.write_text("id,reward,price,latency\n1,0.5,1,0.1\n2,1.5,1,0.1\n")
    with pytest.raises(OutsideDeclaration, match=r"told\.csv, row 2: trial 2: reward: 1\.5 is above 1"):
        study.tell_file(table)
    assert study.status().told == 0
    assert list(study.events())[-1].payload["by"] == "file told.csv"


def answer(study: Study) -> None:
    """Tell allowed outcomes that have no noise, until the explorer stops."""
    means = {"small": (0.2, 1.0), "medium": (0.9, 2.0), "large": (0.1, 3.0)}
    while not study.stopped:
        told = [(trial, means[trial.arm][0], {"price": means[trial.arm][1]}) for trial in study.ask(50)]
        study.tell_many(told)


def test_while_something_is_contradicted_nothing_is_proved(sqlite: str) -> None:
    rows = [{"name": "price", "bound": 15.0, "range": (0.0, 20.0)}, {"name": "k", "bound": 1.0, "row": (1.0, 0.0, 1.0)}]
    clock = Clock()
    study = begin(sqlite, "certex", ranged(constraints=rows, r=0.5, delta=0.3), lease=60.0, clock=clock)
    (spare,) = study.ask()
    clock.pass_time(hours=1)  # it is given up, and another asked in its place
    answer(study)
    assert state_of(study) == "answered"
    assert study.recommend().claims.proved
    assert study.certificate().document
    refuse(study, spare, 50.0, None)
    assert state_of(study) == "contradicted"
    recommended = study.recommend()
    assert recommended.claims.proved == ()
    assert recommended.bounds == "none"
    why = "the outcome of trial 1: outside what is declared"
    assert all(why in claim.sentence for claim in recommended.claims.all if claim.about != "assumption")
    with pytest.raises(NotYet, match="is contradicted, and nothing is certified: the outcome of trial 1:"):
        study.certificate()
    study.tell(spare, 0.5, {"price": 1.0})
    assert state_of(study) == "answered"
    assert study.recommend().claims.proved
    assert study.certificate().document


@pytest.mark.parametrize(
    ("declared", "label"),
    [
        ({"std": 0.3}, "proved"),
        ({"range": (0.0, 3.0)}, "proved"),
        ({"range": (0.0, 3.0), "cap": True}, "proved"),  # what exceeds the bound after the cut does so before it
        ({}, "asymptotic"),
    ],
)
def test_an_alarm_claims_no_more_than_its_account(sqlite: str, declared: dict[str, Any], label: str) -> None:
    price = Constraint(name="price", bound=0.4, **declared)
    breaker = Breaker(control={"small": 0.75, "medium": 0.25})
    study, costs = start(sqlite, "certex", make_problem(r=1e-3, constraints=[price]), breaker=breaker), [0.0, 0.9, 2.2]
    for _ in range(150):
        if study.status().tripped is not None:
            break
        told = [(trial, 0.5, [costs[trial.arm_index] + 0.1 * (trial.id % 7)]) for trial in study.ask(20)]
        study.tell_many(told)
    alarm = study.status().alarm
    assert alarm is not None
    assert alarm.label == label


def test_an_alarm_is_not_proved_while_something_is_contradicted(sqlite: str) -> None:
    problem = ranged(constraints=[{"name": "price", "bound": 1.0, "range": (0.0, 20.0)}])
    study = begin(sqlite, problem=problem, breaker=Breaker(control={"small": 1.0}))
    while study.status().tripped is None:
        study.tell_many([(trial, 0.5, {"price": 15.0}) for trial in study.ask(20)])
    alarm = study.status().alarm
    assert alarm is not None
    assert alarm.proved
    (trial,) = study.ask()
    refuse(study, trial, -1.0, None)
    alarm = study.status().alarm
    assert alarm is not None
    assert not alarm.proved
    assert alarm.why is not None


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("UPDATE polyarm_study SET contradicted = 0", "says that 0 trials contradict what is declared"),
        ("UPDATE polyarm_study SET capped = '[]'", "caps:"),
        ("UPDATE polyarm_trial SET refused = NULL", "trial 1: stored as"),
    ],
)
def test_damage_is_found(sqlite: str, damage: str, complaint: str) -> None:
    study = begin(sqlite)
    (trial,) = study.ask()
    refuse(study, trial, 50.0, None)
    execute(sqlite, damage)
    assert complaint in "\n".join(verify_study(load_study("test", sqlite)).faults)


def test_a_log_that_gives_a_refused_trial_up_is_a_fault(sqlite: str) -> None:
    study = begin(sqlite)
    (trial,) = study.ask()
    refuse(study, trial, 50.0, None)
    with study.held() as writer:
        writer.append("expired", {"trial": trial.id, "by": "hand"})
    assert "gives up trial 1, whose outcome was refused" in "\n".join(verify_study(study).faults)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_command_line_shows_and_resolves_it(sqlite: str, tmp_path: Path) -> None:
    study = begin(sqlite)
    study.ask(2)
    told = run("study", "tell", "test", "1", "--reward", "0.5", "--cost", "price=900", "--cost", "latency=0.1",
               "--storage", sqlite)  # fmt: skip
    assert isinstance(told.exception, OutsideDeclaration)
    shown = " ".join(run("study", "status", "test", "--storage", sqlite).output.split())
    assert "test (uniform): contradicted" in shown
    assert "contradicted: trial 1 of 'small': cost 'price': 900 is above 20" in shown
    assert "polyarm study cap test" in shown
    listed = json.loads(run("study", "list", "--json", "--storage", sqlite).output)
    assert listed[0]["contradicted"] == 1
    assert "contradicted" in run("study", "list", "--storage", sqlite).output
    assert run("study", "cap", "test", "--cost", "price", "--storage", sqlite).exit_code == 0
    shown = run("study", "status", "test", "--storage", sqlite).output
    assert "test (uniform): exploring" in shown
    assert "cost 'price': larger values cut: 1 of small" in shown
