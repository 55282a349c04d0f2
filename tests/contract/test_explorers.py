"""What every explorer promises: the same suite for all that are registered."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from contract.suitable import ALL_EXPLORERS, CERTIFYING, make_instance, single_changes, suit, tell_rows
from oracle.records import leaves, spoil
from polyarm import Constraint, ExplorationOver, Instance, InvalidInput, Problem, Session, load_instance, make_explorer
from polyarm.tolerances import TRUTH

every_explorer = pytest.mark.parametrize("explorer", ALL_EXPLORERS)
every_choice = pytest.mark.parametrize(
    ("explorer", "settings"),
    [
        pytest.param(name, given, id="-".join([name, *map(str, given.values())]))
        for name in ALL_EXPLORERS
        for given in single_changes(name)
    ],
)

Saved = dict[str, Any]


def outcome(instance: Instance, step: int, arm: int) -> tuple[float, list[float]]:
    """What pulling an arm at a step gives: a function of both, so that two sessions can see the same world."""

    def std(of: Any) -> float:
        return float(of[arm] if isinstance(of, tuple) else of)

    problem = instance.problem
    noise = np.random.default_rng([step, arm]).standard_normal(1 + problem.n_constraints)
    reward = instance.mu[arm] + std(problem.reward_std) * noise[0]
    costs = [instance.A[i, arm] + std(problem.constraints[i].std) * noise[1 + i] for i in problem.unknown]
    return float(reward), [float(cost) for cost in costs]


def play(session: Session, instance: Instance, pulls: int) -> list[int]:
    """Drive a session by hand for some pulls, or until it stops; return the arms."""
    arms: list[int] = []
    while len(arms) < pulls and not session.stopped:
        arm = session.ask()
        session.tell(arm, *outcome(instance, session.steps, arm))
        arms.append(arm)
    return arms


def start(explorer: str, instance: Instance, pulls: int = 0, **settings: Any) -> Session:
    session = make_explorer(explorer, instance.problem, seed=11, **settings)
    play(session, instance, pulls)
    return session


def bits(session: Session) -> str:
    """Everything a session holds, such that equal text means equal bits."""
    return json.dumps(session.state_dict(), allow_nan=False)


def kept(session: Session) -> list[Any]:
    """Everything that a session saves: the explorer's state, and the stop's."""
    return [session.state] if session.stop is None else [session.state, session.stop.saved]


def with_constraints(instance: Instance, **changes: Any) -> Instance:
    """Change fields of every constraint."""
    constraints = [{**c.model_dump(), **changes} for c in instance.problem.constraints]
    return instance.with_problem(constraints=constraints)


def hard(explorer: str) -> Instance:
    """Return an instance that no explorer finishes within a few hundred pulls, though its costs are soon clear."""
    return suit(explorer, with_constraints(load_instance("setup1-hard"), std=0.05))


def easy(explorer: str) -> Instance:
    """Return an instance that every explorer finishes soon."""
    constraint = {"name": "cap", "bound": 0.5, "std": 0.1}
    return suit(explorer, make_instance([5.0, 1.0, 0.0], [[1, 0, 0]], [constraint], r=1.0))


def suits_measured_costs(explorer: str) -> bool:
    return len(hard(explorer).problem.unknown) > 0


def played_out(explorer: str) -> Session:
    session = start(explorer, easy(explorer), pulls=5000)
    assert session.stopped, "the easy instance should not need 5000 pulls"
    return session


# Asking.


@every_explorer
@pytest.mark.parametrize("pulls", [0, 3, 6, 7, 8, 60])
def test_asking_again_changes_nothing(explorer: str, pulls: int) -> None:
    session = start(explorer, hard(explorer), pulls)
    arm, before = session.ask(), bits(session)
    assert [session.ask() for _ in range(3)] == [arm] * 3
    assert bits(session) == before


@every_explorer
def test_reading_a_session_never_changes_what_it_asks(explorer: str) -> None:
    quiet, watched = start(explorer, hard(explorer)), start(explorer, hard(explorer))
    for _ in range(60):
        play(quiet, hard(explorer), 1)
        play(watched, hard(explorer), 1)
        _ = (watched.stopped, watched.statistic, watched.threshold, watched.policy, watched.settings)
        if watched.policy is not None:
            watched.recommend()
    quiet.ask()
    watched.ask()
    assert bits(watched) == bits(quiet)


@every_explorer
def test_every_arm_is_asked_for_once_before_any_is_asked_again(explorer: str) -> None:
    instance = hard(explorer)
    assert sorted(play(start(explorer, instance), instance, 7)) == list(range(7))


@every_explorer
def test_what_is_asked_for_is_an_arm(explorer: str) -> None:
    instance = hard(explorer)
    arms = play(start(explorer, instance), instance, 300)
    assert {type(arm) for arm in arms} == {int}
    assert set(arms) == set(range(7)), "300 pulls of a hard instance leave no arm aside"


@every_explorer
def test_a_seed_decides_everything(explorer: str) -> None:
    instance = hard(explorer)
    assert bits(start(explorer, instance, 100)) == bits(start(explorer, instance, 100))


@every_explorer
@pytest.mark.parametrize("seed", [-1, 1.0, "7", True, np.nan, [1]])
def test_a_bad_seed_is_refused(explorer: str, seed: Any) -> None:
    with pytest.raises(InvalidInput, match="seed: expected a whole number, 0 or more") as caught:
        make_explorer(explorer, hard(explorer).problem, seed=seed)
    assert repr(seed) in str(caught.value)


@every_explorer
def test_without_a_seed_one_is_drawn_and_recorded(explorer: str) -> None:
    instance = hard(explorer)
    first, second = (make_explorer(explorer, instance.problem) for _ in range(2))
    assert first.seed != second.seed
    again = make_explorer(explorer, instance.problem, seed=first.state_dict()["seed"])
    play(first, instance, 60)
    play(again, instance, 60)
    assert bits(again) == bits(first)


@every_explorer
def test_numpy_integers_are_seeds(explorer: str) -> None:
    seed: Any = np.int64(11)
    session = make_explorer(explorer, hard(explorer).problem, seed=seed)
    assert bits(session) == bits(start(explorer, hard(explorer)))


@every_choice
def test_the_types_of_a_state_never_change(explorer: str, settings: dict[str, Any]) -> None:
    def types() -> dict[str, Any]:
        return {name: describe(value) for record in kept(session) for name, value in leaves(record)}

    def describe(value: Any) -> Any:
        return (id(value), value.dtype, value.shape, value.flags.c_contiguous) if value.shape else value.dtype

    instance = hard(explorer)
    session = start(explorer, instance, **settings)
    before = types()
    for pulls in (6, 1, 1, 60):
        play(session, instance, pulls)
        assert types() == before


# Telling.


@every_explorer
@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf, "much", None, 1j, [1.0, 2.0]])
def test_a_reward_that_is_no_number_is_refused(explorer: str, reward: Any) -> None:
    session = start(explorer, hard(explorer), 20)
    arm = session.ask()
    _, costs = outcome(hard(explorer), 0, arm)
    before = bits(session)
    with pytest.raises(InvalidInput, match="reward: expected a"):
        session.tell(arm, reward, costs)
    assert bits(session) == before


NAMES = ("constraint 1", "constraint 2")
BAD_COSTS: list[Any] = [
    [],
    [1.0],
    [1.0, 2.0, 3.0],
    None,
    5.0,
    "ab",
    [[1.0, 2.0]],
    [1.0, np.nan],
    [np.inf, 1.0],
    [1.0, "much"],
    [None, 1.0],
    {},
    {NAMES[0]: 1.0},
    {NAMES[0]: 1.0, "price": 1.0},
    {NAMES[0]: 1.0, NAMES[1]: 1.0, "price": 1.0},
    {NAMES[0]: 1.0, NAMES[1]: np.nan},
    {NAMES[0]: 1.0, NAMES[1]: None},
]


@every_explorer
@pytest.mark.parametrize("costs", BAD_COSTS, ids=str)
def test_bad_costs_are_refused(explorer: str, costs: Any) -> None:
    if not suits_measured_costs(explorer):
        pytest.skip("this explorer measures no costs")
    session = start(explorer, hard(explorer), 20)
    arm, before = session.ask(), bits(session)
    with pytest.raises(InvalidInput, match=r"cost.*expected"):
        session.tell(arm, 1.0, costs)
    assert bits(session) == before


@every_explorer
def test_costs_of_known_constraints_are_not_wanted(explorer: str) -> None:
    instance = tell_rows(hard(explorer))
    session = start(explorer, instance, 20)
    arm, before = session.ask(), bits(session)
    with pytest.raises(InvalidInput, match="costs: expected 0 numbers"):
        session.tell(arm, 1.0, [1.0, 1.0])
    assert bits(session) == before


@every_explorer
@pytest.mark.parametrize("arm", [-1, 7, "arm 8", None, 1.5, True])
def test_telling_an_arm_that_does_not_exist_is_refused(explorer: str, arm: Any) -> None:
    session = start(explorer, hard(explorer), 20)
    _, costs = outcome(hard(explorer), 0, session.ask())
    before = bits(session)
    with pytest.raises(InvalidInput, match="arm"):
        session.tell(arm, 1.0, costs)
    assert bits(session) == before


@every_explorer
@pytest.mark.parametrize("pulls", [2, 20])
def test_telling_another_arm_than_was_asked_is_refused(explorer: str, pulls: int) -> None:
    session = start(explorer, hard(explorer), pulls)
    asked = session.ask()
    _, costs = outcome(hard(explorer), 0, asked)
    before = bits(session)
    for other in set(range(7)) - {asked}:
        with pytest.raises(InvalidInput, match=f"'arm {asked + 1}' was asked"):
            session.tell(other, 1.0, costs)
    assert bits(session) == before


@every_explorer
@pytest.mark.parametrize("pulls", [0, 1, 20])
def test_telling_without_asking_is_refused(explorer: str, pulls: int) -> None:
    session = start(explorer, hard(explorer), pulls)
    arm = 0 if pulls == 0 else Session.from_state_dict(session.state_dict()).ask()
    _, costs = outcome(hard(explorer), 0, arm)
    before = bits(session)
    with pytest.raises(InvalidInput, match="not waiting for an outcome"):
        session.tell(arm, 1.0, costs)
    assert bits(session) == before


@every_explorer
def test_telling_twice_is_refused(explorer: str) -> None:
    session = start(explorer, hard(explorer), 20)
    arm = session.ask()
    result = outcome(hard(explorer), 20, arm)
    session.tell(arm, *result)
    before = bits(session)
    with pytest.raises(InvalidInput, match="told already"):
        session.tell(arm, *result)
    assert bits(session) == before


@every_explorer
def test_a_refused_outcome_leaves_no_trace_in_what_follows(explorer: str) -> None:
    instance = hard(explorer)
    clean, bothered = start(explorer, instance), start(explorer, instance)
    for _ in range(60):
        arm = bothered.ask()
        for wrong in ((arm, np.nan, ()), ((arm + 1) % 7, 0.0, ()), (arm, 0.0, [1.0] * 9)):
            with pytest.raises(InvalidInput):
                bothered.tell(*wrong)
        assert play(bothered, instance, 1) == play(clean, instance, 1)
    assert bits(bothered) == bits(clean)


@every_explorer
def test_arms_and_costs_by_name_are_the_same_as_by_position(explorer: str) -> None:
    instance = hard(explorer)
    by_place, by_name = start(explorer, instance), start(explorer, instance)
    names = [instance.problem.constraints[i].name for i in instance.problem.unknown]
    for step in range(60):
        arm = by_place.ask()
        reward, costs = outcome(instance, step, arm)
        by_place.tell(arm, reward, costs)
        named = dict(zip(reversed(names), reversed(costs), strict=True))
        by_name.tell(instance.problem.arms[by_name.ask()], reward, named)
    assert bits(by_name) == bits(by_place)


@every_explorer
def test_costs_may_be_an_array(explorer: str) -> None:
    instance = hard(explorer)
    session = start(explorer, instance)
    for step in range(30):
        arm = session.ask()
        reward, costs = outcome(instance, step, arm)
        values: Any = np.array(costs)
        session.tell(arm, np.float64(reward), values)
    assert bits(session) == bits(start(explorer, instance, 30))


# Stopping and recommending.


@every_explorer
def test_after_stopping_nothing_is_asked_and_nothing_is_taken(explorer: str) -> None:
    session = played_out(explorer)
    before = bits(session)
    with pytest.raises(ExplorationOver, match=f"stopped after {session.steps} pulls"):
        session.ask()
    with pytest.raises(InvalidInput, match="not waiting for an outcome"):
        session.tell(0, 1.0, [0.5])
    assert session.stopped
    assert session.statistic > session.threshold
    assert bits(session) == before


@every_explorer
def test_the_answer_after_stopping_is_the_current_mix(explorer: str) -> None:
    session = played_out(explorer)
    answer = session.recommend()
    assert answer.stopped
    assert answer.steps == session.steps
    assert answer.policy.sum() == pytest.approx(1.0, abs=1e-12)
    assert answer.policy.min() >= 0.0
    assert session.policy is not None
    assert answer.policy.tolist() == session.policy.tolist()
    assert answer.value == pytest.approx(float(session.round.estimates.mu_hat @ answer.policy))
    assert set(answer.slack) == {"cap"}
    assert answer.slack["cap"] > -TRUTH
    assert list(answer.shares(session.problem)) == ["arm 1", "arm 2", "arm 3"]


@every_explorer
def test_an_answer_cannot_reach_back_into_the_session(explorer: str) -> None:
    session = start(explorer, tell_rows(hard(explorer)), 30)
    session.ask()
    before = bits(session)
    session.recommend().policy[:] = np.nan
    policy = session.policy
    assert policy is not None
    policy[:] = np.nan
    assert bits(session) == before


@every_explorer
@pytest.mark.parametrize("pulls", [0, 1, 6])
def test_nothing_is_recommended_before_every_arm_was_pulled(explorer: str, pulls: int) -> None:
    session = start(explorer, hard(explorer), pulls)
    assert session.policy is None
    assert not session.stopped
    with pytest.raises(InvalidInput, match=f"{7 - pulls} arms have not been pulled"):
        session.recommend()


@every_explorer
def test_nothing_is_recommended_and_nothing_stops_while_no_mix_fits_the_estimates(explorer: str) -> None:
    if not suits_measured_costs(explorer):
        pytest.skip("this explorer measures no costs")
    if explorer in CERTIFYING:
        pytest.skip("this explorer proves that no mix fits: see test_certificate.py")
    instance = make_instance([3.0, 2.0, 1.0], [[9, 9, 9]], [{"name": "cap", "bound": 1.0, "std": 0.1}])
    session = start(explorer, instance, 300)
    assert session.steps == 300
    assert not session.stopped
    assert session.policy is None
    with pytest.raises(InvalidInput, match="no mix satisfies the constraints as estimated"):
        session.recommend()
    assert session.ask() in range(3)
    assert session.round.estimates.pulls.min() > 50, "it keeps learning about every arm"


# Saving.


def round_trip(saved: Saved) -> Saved:
    restored: Saved = json.loads(json.dumps(saved, allow_nan=False))
    return restored


def spoil_scratch(session: Session, number: float = np.nan) -> None:
    """Overwrite with nonsense what a session neither saves nor may rely on."""
    for record in scratch(session):
        spoil(record, number, whole=1)


def scratch(session: Session) -> Iterator[Any]:
    """Yield what steps and looks write only for themselves."""
    yield session.work
    stop: Any = session.stop
    if stop is None:
        return
    work, planner = stop.work, getattr(stop, "_planner", None)
    yield from (work.worth, work.evidence, work.witness, work.scene.memory, work.plan, work.search)
    yield from (getattr(stop, name) for name in ("_average", "_dusted") if hasattr(stop, name))
    if planner is not None:
        yield from (planner.scene.memory, planner._other, planner._evidence, planner._witness)
        yield from (getattr(planner, name) for name in ("_worth", "_pulls") if hasattr(planner, name))


def as_is(session: Session) -> None:
    """Leave the scratch of a fresh session: zeros."""


@every_explorer
@pytest.mark.parametrize("pulls", [0, 1, 6, 7, 8, 40])
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("disturb", [as_is, spoil_scratch])
def test_a_saved_session_continues_bit_for_bit(
    explorer: str, pulls: int, pending: bool, disturb: Callable[[Session], None]
) -> None:
    instance = hard(explorer)
    session = make_explorer(explorer, instance.problem, seed=11)
    for _ in range(pulls):  # not `play`: it looks at `stopped`, which takes the next decision
        arm = session.ask()
        session.tell(arm, *outcome(instance, session.steps, arm))
    if pending:
        session.ask()
    restored = Session.from_state_dict(round_trip(session.state_dict()))
    assert bits(restored) == bits(session)
    disturb(restored)
    for _ in range(60):
        assert play(restored, instance, 1) == play(session, instance, 1)
        assert bits(restored) == bits(session)


@every_explorer
@pytest.mark.parametrize("r", [0.2, 0.5])
def test_a_session_restored_before_every_pull_stops_where_an_undisturbed_one_does(explorer: str, r: float) -> None:
    """Near the end the stop test takes paths that the pulls before never do."""
    base = with_constraints(load_instance("setup1-easy").with_problem(r=r, delta=0.1), std=0.05)
    instance = suit(explorer, base)
    undisturbed, interrupted = start(explorer, instance), start(explorer, instance)
    for _ in range(2000):
        if undisturbed.stopped:
            break
        interrupted = Session.from_state_dict(round_trip(interrupted.state_dict()))
        spoil_scratch(interrupted)
        assert play(interrupted, instance, 1) == play(undisturbed, instance, 1)
    assert undisturbed.stopped
    assert interrupted.stopped
    assert interrupted.statistic == undisturbed.statistic
    assert interrupted.recommend().policy.tolist() == undisturbed.recommend().policy.tolist()
    assert interrupted.recommend().slack == undisturbed.recommend().slack


@pytest.mark.parametrize(
    ("explorer", "settings"),
    [
        pytest.param(
            name,
            given,
            id="-".join([name, *given.values()]),
        )
        for name in ALL_EXPLORERS
        for given in single_changes(name)
    ],
)
def test_nothing_in_the_scratch_outlives_a_step(explorer: str, settings: dict[str, Any]) -> None:
    instance = hard(explorer)
    clean, spoilt, odd = (start(explorer, instance, **settings) for _ in range(3))
    for _ in range(60):
        spoil_scratch(spoilt)
        spoil_scratch(odd, number=7.5)
        assert play(clean, instance, 1) == play(spoilt, instance, 1) == play(odd, instance, 1)
    assert bits(clean) == bits(spoilt) == bits(odd)


@every_choice
def test_settings_are_saved_with_the_session(explorer: str, settings: dict[str, Any]) -> None:
    instance = hard(explorer)
    session = start(explorer, instance, 20, **settings)
    restored = Session.from_state_dict(round_trip(session.state_dict()))
    assert restored.settings == session.settings
    assert play(restored, instance, 30) == play(session, instance, 30)
    assert bits(restored) == bits(session)


@every_explorer
def test_a_stopped_session_stays_stopped_when_restored(explorer: str) -> None:
    session = played_out(explorer)
    restored = Session.from_state_dict(round_trip(session.state_dict()))
    assert restored.stopped
    assert restored.recommend().policy.tolist() == session.recommend().policy.tolist()
    with pytest.raises(ExplorationOver):
        restored.ask()


@every_explorer
def test_a_saved_session_survives_pickle(explorer: str) -> None:
    instance = hard(explorer)
    session = start(explorer, instance, 20)
    restored = Session.from_state_dict(pickle.loads(pickle.dumps(session.state_dict())))
    assert play(restored, instance, 60) == play(session, instance, 60)
    assert bits(restored) == bits(session)


@every_explorer
def test_a_session_is_copied_and_pickled_whole(explorer: str) -> None:
    instance = hard(explorer)
    session = start(explorer, instance, 20)
    copies = [copy.deepcopy(session), pickle.loads(pickle.dumps(session))]
    played = play(session, instance, 60)
    for other in copies:
        assert play(other, instance, 60) == played
        assert bits(other) == bits(session)


@every_explorer
def test_a_saved_session_is_a_copy(explorer: str) -> None:
    instance = hard(explorer)
    session = start(explorer, instance, 20)
    saved = session.state_dict()
    before = json.dumps(saved)
    play(session, instance, 20)
    assert json.dumps(saved) == before
    Session.from_state_dict(saved)
    assert json.dumps(saved) == before


def change(*path: str, to: Any) -> Callable[[Saved], None]:
    def apply(saved: Saved) -> None:
        for key in path[:-1]:
            saved = saved[key]
        saved[path[-1]] = to

    return apply


def drop(*path: str) -> Callable[[Saved], None]:
    def apply(saved: Saved) -> None:
        for key in path[:-1]:
            saved = saved[key]
        del saved[path[-1]]

    return apply


DAMAGE: dict[str, Callable[[Saved], None]] = {
    **{f"no {key}": drop(key) for key in ("format", "problem", "explorer", "settings", "seed", "rng", "state")},
    "another format": change("format", to=99),
    "problem is text": change("problem", to="x"),
    "invalid problem": change("problem", "delta", to=5),
    "fewer arms": change("problem", "arms", to=["a", "b"]),
    "unknown explorer": change("explorer", to="x"),
    "explorer is a list": change("explorer", to=[]),
    "settings is text": change("settings", to="x"),
    "unknown setting": change("settings", "colour", to="red"),
    "negative seed": change("seed", to=-1),
    "fractional seed": change("seed", to=1.5),
    "rng is text": change("rng", to="x"),
    "rng without state": drop("rng", "state"),
    "another generator": change("rng", "bit_generator", to="MT19937"),
    "rng state is text": change("rng", "state", to={"state": "x", "inc": 1}),
    "state is text": change("state", to="x"),
    "no round": drop("state", "round"),
    "no estimates": drop("state", "round", "estimates"),
    "no pulls": drop("state", "round", "estimates", "pulls"),
    "a field too many": change("state", "round", "colour", to=[1.0]),
    "pulls too short": change("state", "round", "estimates", "pulls", to=[1.0]),
    "pulls are text": change("state", "round", "estimates", "pulls", to=["many"] * 7),
    "pulls are ragged": change("state", "round", "estimates", "pulls", to=[[1.0], 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
    "no stop": drop("stop"),
    "no steps": drop("state", "round", "now", "steps"),
    "numbers without names": change("state", "round", "now", to=[0] * 9),
    "numbers are text": change("state", "round", "now", to="x"),
}


@every_explorer
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_save_is_refused(explorer: str, damage: Callable[[Saved], None]) -> None:
    saved = round_trip(start(explorer, hard(explorer), 20).state_dict())
    damage(saved)
    with pytest.raises(InvalidInput):
        Session.from_state_dict(saved)


@pytest.mark.parametrize("saved", [None, [], "x", {}, 3])
def test_what_is_no_save_at_all_is_refused(saved: Any) -> None:
    with pytest.raises(InvalidInput, match="state: expected a session saved in format"):
        Session.from_state_dict(saved)


# Constraints in all their forms.


def change_constraints(instance: Instance, change: Callable[[Constraint], dict[str, Any]]) -> Instance:
    return instance.with_problem(constraints=[{**c.model_dump(), **change(c)} for c in instance.problem.constraints])


def play_restated(explorer: str, plain: Instance, restated: Instance, unit: float) -> tuple[Session, Session]:
    """Show 200 outcomes of one world to two sessions, to the second with every cost times `unit`."""
    one, other = start(explorer, plain), start(explorer, restated)
    for step in range(200):
        arm = one.ask()
        assert other.ask() == arm
        reward, costs = outcome(plain, step, arm)
        one.tell(arm, reward, costs)
        other.tell(arm, reward, [unit * cost for cost in costs])
    return one, other


@every_explorer
@pytest.mark.parametrize("known", [False, True])
def test_at_least_is_at_most_negated(explorer: str, known: bool) -> None:
    plain = hard(explorer)
    if known:
        plain = tell_rows(plain)
    negated = change_constraints(
        plain, lambda c: {"sense": ">=", "bound": -c.bound, "row": None if c.row is None else [-x for x in c.row]}
    )
    one, other = play_restated(explorer, plain, negated, -1.0)
    # An explorer that plans in blocks may have made no test yet: nan in both.
    assert other.statistic == pytest.approx(one.statistic, rel=0.0, abs=0.0, nan_ok=True)
    assert other.threshold == pytest.approx(one.threshold, rel=0.0, abs=0.0, nan_ok=True)
    assert one.policy is not None
    assert other.policy is not None
    assert other.policy.tolist() == one.policy.tolist()
    assert other.recommend().slack == one.recommend().slack


@every_explorer
@pytest.mark.parametrize("std", [0.5, [0.5, 0.25, 0.5, 0.125, 0.5, 0.25, 0.5]])
@pytest.mark.parametrize("unit", [1024.0, 1000.0, 0.001])
def test_the_units_of_a_cost_do_not_matter(explorer: str, unit: float, std: Any) -> None:
    if explorer in CERTIFYING and unit != 1024.0:
        pytest.skip("this explorer climbs step by step, and a last digit may decide whether a step is taken")
    plain = suit(explorer, with_constraints(load_instance("setup1-hard"), std=std))
    scaled = change_constraints(
        plain,
        lambda c: {
            "bound": unit * c.bound,
            "std": (unit * np.asarray(c.std)).tolist(),
            "row": None if c.row is None else [unit * x for x in c.row],
        },
    )
    one, other = play_restated(explorer, plain, scaled, unit)
    exact = unit == 1024.0  # a power of two changes no digit
    tolerance = 0.0 if exact else 1e-9
    assert other.statistic == pytest.approx(one.statistic, rel=tolerance, abs=0.0, nan_ok=True)
    assert one.policy is not None
    assert other.policy is not None
    assert other.policy.tolist() == pytest.approx(one.policy.tolist(), rel=0.0, abs=tolerance)
    for name, slack in one.recommend().slack.items():
        assert other.recommend().slack[name] == pytest.approx(unit * slack, abs=unit * 1e-12)


@every_explorer
@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)])
def test_the_mix_satisfies_known_rows_at_every_step(explorer: str, which: tuple[int, ...]) -> None:
    base = suit(explorer, load_instance("setup1-easy"))
    known = base.with_problem(
        constraints=[
            {**c.model_dump(), "row": base.A[i].tolist() if i in which or c.known else None}
            for i, c in enumerate(base.problem.constraints)
        ]
    )
    session = start(explorer, known)
    seen = 0
    for _ in range(200):
        play(session, known, 1)
        policy = session.policy
        if policy is not None:
            seen += 1
            assert (base.true_rows[list(which)] @ policy).max() <= TRUTH
            if seen % 20 != 1:
                continue  # a recommendation takes a hundred linear programs where a safe mix is looked for
            answer = session.recommend()
            for i in which:
                slack = -float(base.true_rows[i] @ answer.policy)
                assert answer.slack[f"constraint {i + 1}"] == pytest.approx(slack, abs=1e-12)
    assert seen > 50


@every_explorer
def test_rows_that_are_known_need_no_noise(explorer: str) -> None:
    bare = with_constraints(tell_rows(load_instance("setup1-easy")), std=None)
    session = start(explorer, bare, 60)
    assert session.steps == 60 or session.stopped
    assert session.policy is not None
    assert (bare.true_rows @ session.policy).max() <= TRUTH


@every_explorer
def test_a_problem_without_constraints_finds_the_best_arm(explorer: str) -> None:
    instance = suit(explorer, make_instance([0.0, 3.0, 1.0], [], []))
    session = start(explorer, instance, 5000)
    assert session.stopped
    if explorer in CERTIFYING:
        assert session.recommend().policy @ instance.mu >= 3.0 - 0.1
    else:
        assert session.recommend().policy.tolist() == [0.0, 1.0, 0.0]
    assert session.recommend().slack == {}
    restored = Session.from_state_dict(round_trip(session.state_dict()))
    assert bits(restored) == bits(session)


@every_explorer
def test_two_arms_are_enough(explorer: str) -> None:
    instance = suit(explorer, make_instance([3.0, 0.0], [[1, 0]], [{"name": "cap", "bound": 0.25, "std": 0.001}]))
    session = start(explorer, instance, 5000)
    assert session.stopped
    kept = 0.1 / 3.0 if explorer in CERTIFYING else 0.005  # what r = 0.1 may cost at 3 a share
    assert session.recommend().policy.tolist() == pytest.approx([0.25, 0.75], abs=kept)


@every_explorer
def test_a_set_of_a_single_mix_is_answered_soon(explorer: str) -> None:
    rows = [{"name": f"cap {i}", "row": np.eye(3)[i].tolist(), "bound": 1 / 3} for i in range(3)]
    session = start(explorer, make_instance([3.0, 2.0, 1.0], np.eye(3).tolist(), rows), 30)
    assert session.stopped
    assert session.recommend().policy.tolist() == pytest.approx([1 / 3] * 3, abs=TRUTH)


@every_explorer
def test_noise_may_differ_by_arm(explorer: str) -> None:
    instance = suit(
        explorer,
        make_instance(
            [3.0, 1.0, 0.0],
            [[1, 0, 0]],
            [{"name": "cap", "bound": 0.5, "std": [0.001, 0.002, 0.003]}],
            reward_std=[0.5, 1.0, 2.0],
        ),
    )
    session = start(explorer, instance, 5000)
    assert session.stopped
    assert session.recommend().policy.tolist() == pytest.approx([0.5, 0.5, 0.0], abs=0.005)


def test_problems_of_every_shape_are_accepted() -> None:
    """Shapes are data to the compiled code: no size is special."""
    for explorer in ALL_EXPLORERS:
        for n_arms, n_constraints in [(2, 1), (2, 3), (3, 0), (5, 5), (12, 4)]:
            rng = np.random.default_rng([n_arms, n_constraints])
            rows = rng.uniform(size=(n_constraints, n_arms)).tolist()
            instance = make_instance(
                rng.uniform(size=n_arms).tolist(),
                rows,
                [{"name": f"row {i}", "bound": 0.9, "std": 0.2} for i in range(n_constraints)],
                r=0.01,
            )
            session = start(explorer, suit(explorer, instance), 60)
            assert session.steps == 60 or session.stopped


def test_a_problem_is_what_the_user_stated() -> None:
    for explorer in ALL_EXPLORERS:
        problem = hard(explorer).problem
        session = make_explorer(explorer, problem, seed=0)
        assert session.problem is problem
        assert Problem(**session.state_dict()["problem"]) == problem
