"""Certificates: what is in them, and that nothing in them can be changed unnoticed."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.suitable import make_instance
from polyarm import InvalidInput, NoFeasibleMix, load_instance, make_certificate, make_explorer, verify_certificate
from polyarm.engine.certificate import _checksum, read_certificate
from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.instances import Instance

ROWS: list[dict[str, Any]] = [{"name": "price", "bound": 0.5, "std": 1.0}, {"name": "size", "bound": 0.5, "std": 0.5}]


def explore(instance: Instance, explorer: str = "certex", limit: int = 200_000, **settings: Any) -> Exploration:
    exploration = Exploration(*plan_run(instance, explorer, settings, allow_infeasible=True), seed=4)
    exploration.advance_to(limit)
    return exploration


@pytest.fixture(scope="module", params=["averaged", "pooled"])
def finished(request: pytest.FixtureRequest) -> Exploration:
    return explore(load_instance("setup2-easy"), r=0.3, delta=0.1, certificate=request.param)


@pytest.fixture(scope="module")
def document(finished: Exploration) -> dict[str, Any]:
    return make_certificate(finished.session).document


def test_a_certificate_holds_and_says_what_was_proved(finished: Exploration, document: dict[str, Any]) -> None:
    result = verify_certificate(document)
    assert result.faults == ()
    assert result.proved
    assert document["verdict"] == "POLICY"
    assert document["certificate"] == document["settings"]["certificate"]
    assert document["steps"] == finished.session.steps
    assert sum(document["policy"].values()) == pytest.approx(1.0)
    assert all(row["slack_low"] > 0.0 for row in document["constraints"])
    assert document["reward_test"]["statistic_low"] >= document["thresholds"]["reward"]
    assert document["reward_test"]["witness_value"] >= document["reward_test"]["statistic_low"]
    assert document["value"]["low"] < document["value"]["estimate"] < document["value"]["high"]


def test_it_survives_a_file(document: dict[str, Any], finished: Exploration, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    make_certificate(finished.session).write(path)
    assert read_certificate(path) == document
    assert verify_certificate(read_certificate(path)).valid
    assert [p.name for p in tmp_path.iterdir()] == ["certificate.json"]


def numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document that holds a number, a truth value or a text."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in numbers(item, (*path, key))]
    if isinstance(value, list):
        return [found for key, item in enumerate(value) for found in numbers(item, (*path, key))]
    return [path]


def change(document: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    value = place[path[-1]]
    if isinstance(value, bool):
        place[path[-1]] = not value
    elif isinstance(value, int | float):
        place[path[-1]] = value * 1.05 + 0.01
    else:
        place[path[-1]] = "something else"
    return changed


def sampled(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Every place, but of the blocks only some."""
    return [path for k, path in enumerate(numbers(document)) if path[0] != "blocks" or k % 17 == 0]


def test_any_change_is_noticed(document: dict[str, Any]) -> None:
    for path in sampled(document):
        assert not verify_certificate(change(document, path)).valid, path


COMPUTED = [
    "certificate",
    "confidence",
    "r",
    "proved",
    "steps",
    "thresholds",
    "policy",
    "passed",
    "value",
    "constraints",
    "reward_test",
]


def test_a_change_under_a_new_checksum_is_noticed_too(document: dict[str, Any]) -> None:
    """Whatever follows from the statistics is recomputed: a matching checksum does not help a forger."""
    for path in sampled(document):
        if path[0] in COMPUTED or path[-1] == "told_before" or "counts" in path:
            forged = change(document, path)
            forged["checksum"] = _checksum(forged)
            assert not verify_certificate(forged).valid, path


@pytest.mark.parametrize("name", ["pulls", "reward_sums"])
def test_forged_statistics_do_not_match_the_rest(document: dict[str, Any], name: str) -> None:
    forged = copy.deepcopy(document)
    forged["statistics"][name][0] += 50
    forged["checksum"] = _checksum(forged)
    assert not verify_certificate(forged).valid


def test_a_mix_that_the_statistics_do_not_support_is_refused(document: dict[str, Any]) -> None:
    forged = copy.deepcopy(document)
    arms = list(forged["policy"])
    forged["policy"] = {arm: float(arm == arms[0]) for arm in arms}
    forged["checksum"] = _checksum(forged)
    says = "policy.arm" if document["certificate"] == "averaged" else "do not pass the test"
    assert any(says in fault for fault in verify_certificate(forged).faults)


def test_a_block_planned_with_its_own_outcomes_is_refused(document: dict[str, Any]) -> None:
    if document["certificate"] != "averaged":
        pytest.skip("no blocks")
    forged = copy.deepcopy(document)
    forged["blocks"][3]["told_before"] += 1
    forged["checksum"] = _checksum(forged)
    assert any("fixed after these and before its own" in fault for fault in verify_certificate(forged).faults)


def test_blocks_left_out_are_noticed(document: dict[str, Any]) -> None:
    """The blocks of a start are all or nothing: leaving out those that look bad would be choosing by outcome."""
    if document["certificate"] != "averaged":
        pytest.skip("no blocks")
    for left_out in (0, 2, -1):
        forged = copy.deepcopy(document)
        del forged["blocks"][left_out]
        forged["checksum"] = _checksum(forged)
        assert any("blocks" in fault for fault in verify_certificate(forged).faults)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ({"verdict": "MAYBE"}, "verdict"),
        ({"statistics": {}}, "incomplete"),
        ({"problem": {}}, "required"),
        ({"constants": {"speed": 3}}, "speed"),
        ({"policy": None}, "policy"),
        ({"policy": {"arm 1": 1.0}}, "incomplete"),
    ],
)
def test_a_damaged_document_is_told_from_a_wrong_one(
    document: dict[str, Any], damage: dict[str, Any], says: str
) -> None:
    result = verify_certificate({**document, **damage})
    assert not result.valid
    assert any(says in fault for fault in result.faults), result.faults


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"format": "else"}))
    with pytest.raises(InvalidInput, match="not a certificate"):
        read_certificate(path)
    path.write_text("{")
    with pytest.raises(InvalidInput, match="not a JSON document"):
        read_certificate(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_certificate(tmp_path / "missing.json")


def test_stylised_thresholds_prove_nothing() -> None:
    session = explore(load_instance("setup2-easy"), r=0.3, thresholds="stylised").session
    result = verify_certificate(make_certificate(session).document)
    assert result.valid
    assert not result.proved
    assert session.recommend().claims.proved == ()


def test_there_is_no_certificate_without_a_certified_stop() -> None:
    with pytest.raises(InvalidInput, match="has not stopped"):
        make_certificate(explore(load_instance("setup2-easy"), limit=50).session)
    with pytest.raises(InvalidInput, match="stopping=certified"):
        make_certificate(explore(load_instance("setup2-easy"), "uniform", limit=50).session)


def test_an_infeasible_problem_is_proved_so_and_the_rows_in_conflict_are_named() -> None:
    rows = [*ROWS, {"name": "idle", "bound": 5.0, "std": 1.0}]
    costs = [[1.0, 0.2, 0.3], [0.1, 1.0, 0.9], [0.0, 0.0, 0.0]]  # price + size is at least 1.1 for every arm
    instance = make_instance([1.0, 0.5, 0.2], costs, rows, noise="independent")
    run = explore(instance)
    assert run.record().status == "INFEASIBLE"
    assert run.record().correct
    certificate = make_certificate(run.session)
    assert certificate.verdict == "INFEASIBLE"
    assert certificate.policy is None
    assert set(certificate.document["conflict"]) == {"price", "size"}
    assert verify_certificate(certificate.document).proved
    with pytest.raises(NoFeasibleMix, match="no mix satisfies"):
        run.session.recommend()
    forged = {**certificate.document, "statistics": {**certificate.document["statistics"], "pulls": [2.0, 2.0, 2.0]}}
    forged["checksum"] = _checksum(forged)
    assert not verify_certificate(forged).valid


def test_known_rows_and_units_do_not_matter_to_validity() -> None:
    """A known row, a >= row, cents instead of units, per-arm noise: the certificate still holds."""
    rows: list[dict[str, Any]] = [
        {"name": "cents", "bound": 60.0, "std": (40.0, 20.0, 30.0)},
        {"name": "share", "bound": 0.1, "sense": ">=", "row": (0.0, 0.0, 1.0)},
    ]
    instance = make_instance([1.0, 0.2, 0.0], [[100.0, 20.0, 10.0], [0.0, 0.0, 1.0]], rows, r=0.2)
    run = explore(instance)
    certificate = make_certificate(run.session)
    assert verify_certificate(certificate.document).faults == ()
    assert certificate.policy is not None
    assert certificate.policy["arm 3"] >= 0.1 - 1e-9
    assert run.record().correct


def test_at_the_horizon_the_best_safe_mix_is_offered() -> None:
    instance = load_instance("setup2-easy").with_problem(r=0.02)
    run = explore(instance, limit=12_000)
    record = run.record()
    assert record.status == "HORIZON"
    answer = run.session.recommend()
    assert answer.slack_low is not None
    assert min(answer.slack_low.values()) >= -1e-9
    assert record.feasible
    np.testing.assert_array_equal(record.policy, answer.policy)
    assert any("satisfies" in sentence for sentence in answer.claims.proved)
    assert any("has not stopped" in sentence for sentence in answer.claims.not_proved)


@pytest.mark.parametrize("family", ["poisson", "exponential"])
def test_families_without_a_scale_are_refused(family: str) -> None:
    problem = make_instance([1.0, 2.0], [[1.0, 0.0]], ROWS[:1], family=family, reward_std=None).problem
    with pytest.raises(InvalidInput, match="sub-Gaussian"):
        make_explorer("certex", problem)
    with pytest.raises(InvalidInput, match="sub-Gaussian"):
        make_explorer("uniform", problem, stopping="certified")


def test_no_tolerance_with_an_unknown_row_is_refused() -> None:
    problem = make_instance([1.0, 2.0], [[1.0, 0.0]], ROWS[:1], r=0.0).problem
    with pytest.raises(InvalidInput, match="choose r > 0"):
        make_explorer("certex", problem)


def test_an_assumed_noise_cannot_be_certified() -> None:
    problem = make_instance([1.0, 2.0], [[1.0, 0.0]], ROWS[:1]).problem
    with pytest.raises(InvalidInput, match="declared reward noise"):
        make_explorer("lagex", problem, stopping="certified", preset="paper")


def test_a_run_says_about_when_it_will_stop() -> None:
    instance = load_instance("setup2-easy").with_problem(r=0.2)
    early = explore(instance, limit=3)
    assert early.session.expected_stop() is None
    run = explore(instance, limit=150)
    expected = run.session.expected_stop()
    assert expected is not None
    assert 150 <= expected[0] < expected[1]
    run.advance_to(200_000)
    assert run.session.expected_stop() is None
    assert expected[0] / 4 < run.session.steps < 4 * expected[1]


def test_no_more_than_delta_can_be_spent(document: dict[str, Any]) -> None:
    forged = copy.deepcopy(document)
    forged["constants"]["pooled_delta"] *= 1.5
    forged["constants"]["averaged_delta"] *= 1.5
    forged["checksum"] = _checksum(forged)
    assert any("more than delta" in fault for fault in verify_certificate(forged).faults)


def test_verification_asks_for_no_explorer(document: dict[str, Any]) -> None:
    forged = {**document, "explorer": "one that nobody has", "settings": {}}
    forged["checksum"] = _checksum(forged)
    assert verify_certificate(forged).proved


def test_an_answer_scaled_within_the_tolerance_of_a_mix_gains_nothing(document: dict[str, Any]) -> None:
    """Statistics are linear in the answers, and with large rewards a millionth more of each would be worth a lot."""
    if document["certificate"] != "averaged":
        pytest.skip("no blocks")
    forged = copy.deepcopy(document)
    for block in forged["blocks"]:
        block["answer"] = [share * (1.0 + 9e-7) for share in block["answer"]]
    forged["checksum"] = _checksum(forged)
    assert verify_certificate(forged).faults == (), "the same mixes: shares are read as such"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("start", "number"), True),
        (("start", "number"), 1.0),
        (("start", "lam", 0), "abc"),
        (("start", "lam", 0), 10**400),
        (("start", "anchor"), ["x"] * 3),
        (("start", "anchor", 0), 10**400),
        (("start", "told_before"), 10**400),
        (("blocks",), "none"),
        (("blocks", 0), None),
        (("blocks", 0, "answer"), [[1.0], 2.0]),
        (("blocks", 0, "counts", 0), 10**400),
        (("statistics", "pulls", 0), 10**400),
        (("statistics", "reward_sums"), None),
        (("constants",), "abc"),
        (("constants", "lam"), -1.0),
        (("constants", "certificate"), "other"),
        (("problem",), []),
    ],
)
def test_nonsense_is_a_fault_and_never_a_traceback(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    if path[0] not in document:
        pytest.skip("no blocks")
    forged = copy.deepcopy(document)
    place: Any = forged
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    forged["checksum"] = _checksum(forged)
    assert verify_certificate(forged).faults
