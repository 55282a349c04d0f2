"""Explorers of the user's own: a file in plain Python or Numba does what a shipped explorer does."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.suitable import make_instance
from parity.trajectory import follow, make_case, read_case
from polyarm import (
    Constraint,
    Explorer,
    Instance,
    InvalidInput,
    Problem,
    Session,
    Simulation,
    _compile,
    get_explorer,
    load_explorer,
    load_explorer_source,
    load_instance,
    make_certificate,
    make_explorer,
    simulate,
    verify_certificate,
)
from polyarm.engine.randomness import WORLD, make_stream
from polyarm.engine.run import Exploration, plan_run
from polyarm.engine.session import _checksum
from polyarm.environments.synthetic import sample
from polyarm.round import RUNNING
from polyarm.rules.registry import EXPLORERS

TESTS = Path(__file__).parents[1]

#: A rule with all that a rule may have: randomness, and numbers that it remembers.
PLAIN = """
import numpy as np
import polyarm

def allocate(view, rng):
    n = view.pulls.size
    recent = view.memory[:n]
    recent *= 0.9
    recent += rng.random(n)
    return recent if view.policy is None else recent / recent.sum() + view.policy

explorer = polyarm.python_explorer("plain-test", "random and mindful", allocate, memory=10)
"""

FAST = """
from typing import NamedTuple

import numpy as np
from pydantic import Field
from polyarm.rules import toolkit as kit

class Settings(kit.TrackingSettings):
    forget: float = Field(default=0.9, gt=0)

class Rule(NamedTuple):
    round: kit.RoundRule
    forget: float

@kit.struct
class State:
    round: kit.Round
    recent: np.ndarray

@kit.struct
class Work:
    round: kit.RoundWork

@kit.inlined_kernel
def renew(recent, forget, rng):
    for a in range(recent.size):
        recent[a] = recent[a] * forget + rng.random()

def init(settings, model):
    rule = Rule(kit.build_round_rule(settings, model)._replace(needs_policy=False), settings.forget)
    return rule, State(kit.make_round(model), np.zeros(model.reward_noise.size)), Work(kit.make_round_work(model))

@kit.kernel
def allocate(rule, state, model, rng, work):
    renew(state.recent, rule.forget, rng)
    total = state.recent.sum()
    for a in range(state.recent.size):
        share = state.recent[a] / total
        if state.round.now.no_policy == 0:
            share = 0.5 * (share + state.round.policy[a])
        state.round.allocation[a] = share

explorer = kit.Explorer("fast-test", "random and mindful, compiled", Settings, init, {Rule: allocate})
"""

TEXTS = {"plain-test": PLAIN, "fast-test": FAST}
both = pytest.mark.parametrize("name", TEXTS)


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Both explorers as files; whatever a test loads is forgotten after the last one."""
    folder = tmp_path_factory.mktemp("explorers")
    before = dict(EXPLORERS)
    paths = {name: folder / f"{name}.py" for name in TEXTS}
    for name, path in paths.items():
        path.write_text(TEXTS[name], "utf-8")
        load_explorer(path)
    yield paths
    EXPLORERS.clear()
    EXPLORERS.update(before)


def quick() -> Instance:
    """An instance on which every explorer stops soon, even with a proof."""
    return make_instance([2.0, 1.0, 0.0], [[1, 0, 0]], [{"name": "cap", "bound": 0.5, "std": 0.3}], r=0.5)


def lasting() -> Instance:
    return load_instance("setup1-hard")


def bits(session: Session) -> str:
    return json.dumps(session.state_dict(), allow_nan=False)


def runs(simulation: Simulation) -> list[dict[str, Any]]:
    return list(simulation.runs())


def rule(name: str, body: str, **arguments: Any) -> str:
    """The text of a plain Python explorer with this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    extra = "".join(f", {key}={value}" for key, value in arguments.items())
    return (
        f"import numpy as np\nimport polyarm\n\nSEEN = []\n\ndef allocate(view, rng):\n{lines}\n\n"
        f"explorer = polyarm.python_explorer({name!r}, 'test', allocate{extra})\n"
    )


# The same runs, however they are driven.


@both
def test_the_runs_of_a_file_do_not_depend_on_the_number_of_workers(name: str, files: dict[str, Path]) -> None:
    alone = runs(simulate(quick(), files[name], seeds=6, workers=1, horizon=400))
    assert len({str(run["pulls"]) for run in alone}) > 3
    assert {run["status"] for run in alone} >= {"STOPPED"}
    assert {run["explorer"] for run in alone} == {name}
    assert runs(simulate(quick(), str(files[name]), seeds=6, workers=2, horizon=400)) == alone
    assert runs(simulate(quick(), name, seeds=6, workers=2, horizon=400)) == alone


@both
@pytest.mark.parametrize("instance", [quick(), lasting()], ids=["stops", "lasts"])
def test_a_session_is_the_same_as_a_run_in_bulk(name: str, instance: Instance) -> None:
    whole, pulls = read_case(make_case(instance, name, {}, seed=3, pulls=150))
    whole.advance_to(pulls)
    session = make_explorer(name, instance.problem, seed=3)
    world, rng = instance.world(), make_stream(3, WORLD)
    costs = np.zeros(instance.problem.n_constraints)
    while session.steps < pulls and not session.stopped:
        arm = session.ask()
        reward = sample(world, arm, rng, costs)
        session.tell(arm, reward, costs[list(instance.problem.unknown)].tolist())
    assert session.stopped == whole.session.stopped == (instance.name != lasting().name)
    assert bits(session) == bits(whole.session)


@both
def test_a_saved_session_continues_bit_for_bit(name: str) -> None:
    case = make_case(lasting(), name, {}, seed=5, pulls=120)
    whole, broken = read_case(case)[0], read_case(case)[0]
    broken.advance_to(60)
    own = "memory" if name == "plain-test" else "recent"
    assert any(broken.session.state_dict()["state"][own]), "there is something to remember"
    broken.session = Session.from_state_dict(json.loads(json.dumps(broken.session.state_dict())))
    for exploration in (whole, broken):
        exploration.advance_to(120)
    assert bits(broken.session) == bits(whole.session)


#: Follows a case in a process of its own, after loading a file.
FOLLOW = """
import json, sys
import polyarm
from parity.trajectory import follow
polyarm.load_explorer(sys.argv[1])
json.dump(follow(json.load(sys.stdin)), sys.stdout)
"""


def run_elsewhere(program: str, *arguments: str, given: str = "", **environment: str) -> str:
    paths = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=given,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@both
def test_without_compilation_the_arms_are_the_same(name: str, files: dict[str, Path]) -> None:
    case = make_case(lasting(), name, {}, seed=5, pulls=40)
    plain = json.loads(run_elsewhere(FOLLOW, str(files[name]), given=json.dumps(case), NUMBA_DISABLE_JIT="1"))
    here = follow(case)
    assert plain["arms"] == here["arms"]
    assert plain["saved"]["rng"] == here["saved"]["rng"]


def test_a_process_without_the_file_still_reads_the_shared_cache(files: dict[str, Path]) -> None:
    exploration, pulls = read_case(make_case(lasting(), "fast-test", {}, seed=1, pulls=20))
    exploration.advance_to(pulls)
    session = make_explorer("fast-test", lasting().problem, seed=1)
    for _ in range(8):
        session.tell(session.ask(), 0.0, [0.0, 0.0])
    assert _compile.CACHE_FOLDER is not None
    indices = list(Path(_compile.CACHE_FOLDER).rglob("*.nbi"))
    assert indices
    assert [path for path in indices if b"polyarm_explorer_" in path.read_bytes()] == []
    shipped = "import polyarm; print(polyarm.simulate('figure2', 'uniform', seeds=3, horizon=30).table()[0]['seeds'])"
    assert int(run_elsewhere(shipped)) == 3


# Settings, certificates, and what else a shipped explorer can do.


def test_the_certified_rule_stops_a_plain_explorer_with_a_proof() -> None:
    instance = quick()
    cell = simulate(instance, "plain-test", seeds=3, horizon=3000, settings={"stopping": "certified"}).cells[0]
    assert [run.status for run in cell.runs] == ["STOPPED"] * 3
    assert all(run.correct for run in cell.runs)


def test_a_certificate_is_checked_where_its_explorer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    exploration, pulls = read_case(make_case(quick(), "plain-test", {"stopping": "certified"}, seed=1, pulls=3000))
    exploration.advance_to(pulls)
    document = make_certificate(exploration.session).document
    assert document["explorer"] == "plain-test"
    assert verify_certificate(document).proved
    monkeypatch.delitem(EXPLORERS, "plain-test")
    assert verify_certificate(document).proved
    sums = [document["statistics"]["reward_sums"][0] + 100.0, *document["statistics"]["reward_sums"][1:]]
    forged = {**document, "statistics": {**document["statistics"], "reward_sums": sums}}
    assert not verify_certificate(forged).valid


STOPS_ITSELF = """
from typing import NamedTuple

import numpy as np

from polyarm.rules import toolkit as kit
from polyarm.stops.settings import CertifiedSettings


class Rule(NamedTuple):
    patience: int


@kit.struct
class State:
    round: kit.Round


def init(settings, model):
    return Rule(20), State(kit.make_round(model)), None


def choose(rule, state, model, rng, work):
    steps = int(state.round.now.steps)
    return steps % model.reward_noise.size if steps < rule.patience else kit.STOP


explorer = kit.Explorer("hasty", "test", CertifiedSettings, init, {}, {Rule: choose}, compiled=False)
"""


def test_only_the_certified_stop_may_end_an_exploration_that_it_proves() -> None:
    load_explorer_source(STOPS_ITSELF)
    exploration = Exploration(*plan_run(lasting(), "hasty", {}), seed=0)
    with pytest.raises(InvalidInput, match="'hasty' returned no arm after 20 pulls"):
        exploration.advance_to(100)
    session = exploration.session
    for look in (session.ask, session.recommend):
        with pytest.raises(InvalidInput, match="must always return an arm"):
            look()
    assert session.round.now.status == RUNNING


def test_settings_reach_the_explorer() -> None:
    problem = lasting().problem
    assert make_explorer("fast-test", problem, seed=0, forget=0.5).rule.forget == 0.5
    with pytest.raises(InvalidInput, match="'fast-test' has no setting 'remember'"):
        make_explorer("fast-test", problem, remember=1)
    with pytest.raises(InvalidInput, match="forget: Input should be greater than 0"):
        make_explorer("fast-test", problem, forget=-1)

    def pulls(**settings: Any) -> list[float]:
        cell = simulate(lasting(), "plain-test", seeds=1, horizon=300, settings=settings).cells[0]
        return cell.runs[0].pulls.tolist()  # type: ignore[no-any-return]

    assert len({str(pulls()), str(pulls(tracking="d")), str(pulls(exploration="anytime"))}) == 3


# What a plain rule sees.


def test_the_view_is_in_the_units_of_the_user() -> None:
    load_explorer_source(rule("seer", "SEEN.append(view)\nview.memory[0] += 1\nreturn np.ones(2)", memory=3))
    problem = Problem(
        arms=("a", "b"),
        reward_std=(0.5, 2.0),
        delta=0.1,
        r=0.25,
        constraints=(
            Constraint(name="floor", sense=">=", bound=3.0, std=(0.5, 4.0)),
            Constraint(name="cap", bound=6.0, row=(2.0, 8.0)),
        ),
    )
    session = make_explorer("seer", problem, seed=0)
    for reward, cost in ((1.0, 4.0), (2.0, 2.5), (3.0, 8.0)):
        session.tell(session.ask(), reward, [cost])
    assert session.ask() in (0, 1)
    first, view = session.rule.allocate.__globals__["SEEN"]
    pulled = int(view.pulls[1] == 2.0)  # the arm of the third pull
    means, costs = [[2.0, 2.0], [1.0, 2.5]][pulled], [[6.0, 2.5], [4.0, 5.25]][pulled]
    assert (first.steps, view.steps, view.delta, view.r) == (2, 3, 0.1, 0.25)
    np.testing.assert_allclose(view.mu_hat, means)
    np.testing.assert_allclose(view.cost_hat, [[3.0 - c for c in costs], [2.0 - 6.0, 8.0 - 6.0]])
    np.testing.assert_allclose(view.reward_std, [0.5, 2.0])
    np.testing.assert_allclose(view.cost_std, [[0.5, 4.0], [0.0, 0.0]])
    assert session.policy is not None
    np.testing.assert_allclose(view.policy, session.policy)
    assert first.pulls.tolist() == [1.0, 1.0], "an old view does not change"
    assert session.state_dict()["state"]["memory"] == [2.0, 0.0, 0.0]


def test_while_no_mix_fits_the_policy_is_none() -> None:
    load_explorer_source(rule("none-seer", "SEEN.append(view.policy)\nreturn np.ones(2)"))
    cap = Constraint(name="cap", bound=0.0, std=1.0)
    problem = Problem(arms=("a", "b"), reward_std=1.0, delta=0.1, r=0.1, constraints=(cap,))
    session = make_explorer("none-seer", problem, seed=0)
    for _ in range(3):
        session.tell(session.ask(), 0.0, [1.0])
    assert session.policy is None
    assert session.rule.allocate.__globals__["SEEN"] == [None, None]


def test_a_rule_cannot_harm_the_state() -> None:
    innocent = "return np.arange(1.0, 8.0)"
    vandal = """
for array in (view.pulls, view.mu_hat, view.cost_hat, view.policy):
    if array is not None:
        array[...] = -7.0
for array in (view.reward_std, view.cost_std):
    try:
        array[...] = -7.0
    except ValueError:
        SEEN.append("read-only")
view.memory.shape = (2, 2)
"""
    for name, body in (("harmless", innocent), ("vandal", vandal + innocent)):
        load_explorer_source(rule(name, body, memory=4))
    states = []
    for name in ("harmless", "vandal"):
        exploration, pulls = read_case(make_case(lasting(), name, {}, seed=1, pulls=30))
        exploration.advance_to(pulls)
        states.append(exploration.session.state_dict()["state"])
    assert states[0] == states[1]
    # Two for every call: one call after each pull from the seventh, the decision that is still pending included.
    assert exploration.session.rule.allocate.__globals__["SEEN"] == ["read-only"] * 2 * (30 - 7 + 1)


# What may go wrong.

BAD_ANSWERS = {
    "nothing": "return None",
    "a number": "return 1.0",
    "too few": "return [1.0, 2.0]",
    "too many": "return np.ones((7, 7))",
    "negative": "return [-1.0] + [1.0] * 6",
    "all zero": "return np.zeros(7)",
    "nan": "return [float('nan')] + [1.0] * 6",
    "infinite": "return [float('inf')] + [1.0] * 6",
    "overflowing": "return [1e308] * 7",
    "text": "return ['1'] * 7",
    "complex": "return np.ones(7) * 1j",
    "ragged": "return [[1.0], 2.0]",
}


@pytest.mark.parametrize("body", BAD_ANSWERS.values(), ids=BAD_ANSWERS.keys())
def test_an_answer_that_is_no_allocation_is_refused(body: str) -> None:
    load_explorer_source(rule("bad-answer", body))
    with pytest.raises(InvalidInput, match=r"explorer 'bad-answer': allocate returned .*; expected 7 finite numbers"):
        simulate(lasting(), "bad-answer", seeds=1, workers=1, horizon=20)


@pytest.mark.parametrize("body", ["return [0, 0, 1, 2, 0, 0, 0]", "return np.eye(7, dtype=bool)[2] * 1e300"])
def test_an_answer_need_not_be_normalised(body: str) -> None:
    load_explorer_source(rule("unscaled", body))
    session = make_explorer("unscaled", lasting().problem, seed=0)
    for _ in range(9):
        session.tell(session.ask(), 0.0, [0.0, 0.0])
    session.ask()
    assert session.round.allocation.sum() == pytest.approx(1.0)
    assert session.round.allocation[2] > 0.3


def test_an_error_of_the_rule_comes_out_as_it_is() -> None:
    load_explorer_source(rule("broken", "raise LookupError('my own mistake')"))
    for workers in (1, 2):
        with pytest.raises(LookupError, match="my own mistake"):
            simulate(lasting(), "broken", seeds=3, workers=workers, horizon=20)
    session = make_explorer("broken", lasting().problem, seed=0)
    for _ in range(7):
        session.tell(session.ask(), 0.0, [0.0, 0.0])
    with pytest.raises(LookupError, match="my own mistake"):
        session.ask()


BAD_FILES = {
    "syntax": ("x = 1\ndef f(:\n", r"bad\.py: line 2: invalid syntax"),
    "null": ("x = 1\0\n", r"bad\.py: line 1: .*null bytes"),
    "import": ("import polyarm\n\nimport no_such_module\n", r"bad\.py: line 3: ModuleNotFoundError: .*no_such_module"),
    "exception": ("def f():\n    return 1 / 0\n\nf()\n", r"bad\.py: line 2: ZeroDivisionError"),
    "exit": ("import sys\nsys.exit(3)\n", r"bad\.py: line 2: SystemExit: 3"),
    "no explorer": ("x = 1\n", r"bad\.py: defines no variable `explorer`"),
    "a function": ("def explorer(): pass\n", r"bad\.py: explorer: expected a polyarm.Explorer, got function"),
    "shipped name": (rule("lagex", "return 1"), r"bad\.py: the name 'lagex' belongs to a shipped explorer"),
    "upper case": (rule("Mine", "return 1"), r"bad\.py: explorer name 'Mine': expected lowercase words"),
    "underscore": (rule("my_rule", "return 1"), r"bad\.py: explorer name 'my_rule'"),
    "file name": (rule("rule.py", "return 1"), r"bad\.py: explorer name 'rule.py'"),
    "empty name": (rule("", "return 1"), r"bad\.py: explorer name ''"),
    "no function": (
        "import polyarm\nexplorer = polyarm.python_explorer('a', 'b', 3)\n",
        r"line 2: .*allocate: expected a",
    ),
    "bad memory": (
        rule("mine", "return 1", memory=-1),
        r"line 9: .*memory: expected a whole number, 0 or more, got -1",
    ),
    "settings": (
        FAST.replace("Settings, init", "dict, init"),
        "settings: expected a class that extends RoundSettings",
    ),
    "init": (FAST.replace("Settings, init", "Settings, None"), "init: expected a function of"),
    "allocate": (FAST.replace("{Rule: allocate}", "allocate"), "allocate: expected a function for each class of rules"),
    "no rule": (FAST.replace("{Rule: allocate}", "{}"), "allocate: expected a function for each class of rules"),
    "taken rule": (
        "from polyarm.rules.uniform import UniformRule\n" + FAST.replace("{Rule: allocate}", "{UniformRule: allocate}"),
        "UniformRule.* already belongs to another explorer; define a class of your own",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_defines_no_explorer_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text, "utf-8")
    known = dict(EXPLORERS)
    for _ in range(2):  # a failure leaves nothing behind that a second attempt could take for a success
        with pytest.raises(InvalidInput, match=message):
            get_explorer(str(path))
    assert known == EXPLORERS


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), (b"\xff\xfe\x00", "not Python source"), (b"# coding: klingon\n", "not Python source")],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "lost.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"lost\.py: .*{message}"):
        get_explorer(path)
    with pytest.raises(InvalidInput, match=message):
        simulate(quick(), str(path), seeds=1)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(InvalidInput, match=r"folder\.py: cannot be read"):
        get_explorer(tmp_path / "folder.py")


def test_an_unknown_name_says_that_files_can_be_loaded() -> None:
    with pytest.raises(InvalidInput, match=r"unknown explorer 'mine'.*polyarm\.load_explorer\('my_explorer\.py'\)"):
        get_explorer("mine")


# Versions.


def test_the_same_text_is_the_same_record_and_changed_text_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(rule("version", "return np.ones(7)"), "utf-8")
    first = load_explorer(path)
    assert first is load_explorer(path) is get_explorer(str(path)) is get_explorer("version")
    assert first is load_explorer_source(path.read_text("utf-8"), "elsewhere.py")
    assert first.source == path.read_text("utf-8")
    before = runs(simulate(lasting(), "version", seeds=1, horizon=50))
    old = make_explorer("version", lasting().problem, seed=0)
    path.write_text(rule("version", "return np.arange(1.0, 8.0)"), "utf-8")
    second = load_explorer(path)
    assert get_explorer("version") is second
    assert second.source_hash != first.source_hash
    assert isinstance(second, Explorer)
    assert runs(simulate(lasting(), "version", seeds=1, horizon=50)) != before
    for _ in range(9):  # a session goes on with the version that it began with
        old.tell(old.ask(), 0.0, [0.0, 0.0])
    old.ask()
    np.testing.assert_allclose(old.round.allocation, 1.0 / 7.0)
    assert load_explorer_source(first.source or "") is first
    assert runs(simulate(lasting(), "version", seeds=1, horizon=50)) == before


def test_changed_kernels_are_compiled_anew() -> None:
    """Also where the classes of both versions have the same names and fields, which Numba's dispatch confuses."""
    before = runs(simulate(lasting(), "fast-test", seeds=1, horizon=100))
    load_explorer_source(FAST.replace("0.5 * (share + state.round.policy[a])", "share * share"), "edited.py")
    edited = runs(simulate(lasting(), "fast-test", seeds=1, horizon=100))
    load_explorer_source(FAST)
    assert runs(simulate(lasting(), "fast-test", seeds=1, horizon=100)) == before
    assert [run["pulls"] for run in edited] != [run["pulls"] for run in before]


def test_a_save_needs_its_explorer_in_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    load_explorer_source(rule("saver", "return np.ones(7)"))
    saved = make_explorer("saver", lasting().problem, seed=0).state_dict()
    load_explorer_source(rule("saver", "return np.arange(1.0, 8.0)"))
    with pytest.raises(InvalidInput, match="saved by another version of explorer 'saver'"):
        Session.from_state_dict(saved)
    monkeypatch.delitem(EXPLORERS, "saver")
    with pytest.raises(InvalidInput, match=r"unknown explorer 'saver'.*polyarm\.load_explorer"):
        Session.from_state_dict(saved)


def test_documents_never_run_a_file(tmp_path: Path) -> None:
    path = tmp_path / "trap.py"
    path.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n", "utf-8")
    saved = make_explorer("plain-test", lasting().problem, seed=0).state_dict()
    forged = {key: value for key, value in saved.items() if key != "checksum"} | {"explorer": str(path)}
    with pytest.raises(InvalidInput, match="unknown explorer"):
        Session.from_state_dict({**forged, "checksum": _checksum(forged)})
    exploration, pulls = read_case(make_case(quick(), "plain-test", {"stopping": "certified"}, seed=1, pulls=3000))
    exploration.advance_to(pulls)
    verify_certificate({**make_certificate(exploration.session).document, "explorer": str(path)})
    assert not (tmp_path / "sprung").exists()


def test_two_files_with_one_name_are_not_compared(tmp_path: Path) -> None:
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for path, body in zip(paths, ("return np.ones(7)", "return np.arange(1.0, 8.0)"), strict=True):
        path.write_text(rule("twin", body), "utf-8")
    with pytest.raises(InvalidInput, match="two different files name their explorer 'twin'"):
        simulate(lasting(), paths, seeds=1, horizon=20)
    assert simulate(lasting(), [paths[0], paths[0]], seeds=1, horizon=20).cells[1].explorer == "twin"
