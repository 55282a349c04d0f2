"""Certificates: what is in them, and that nothing in them can be changed unnoticed."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.suitable import make_instance
from polyarm import InvalidInput, NoFeasibleMix, load_instance, make_certificate, make_explorer, verify_certificate
from polyarm.certify.block_proof import weigh_blocks
from polyarm.engine.certificate import _checksum, read_certificate
from polyarm.engine.run import Exploration, plan_run
from polyarm.environments.instances import Instance

ROWS: list[dict[str, Any]] = [{"name": "price", "bound": 0.5, "std": 1.0}, {"name": "size", "bound": 0.5, "std": 0.5}]


def explore(instance: Instance, explorer: str = "certex", limit: int = 200_000, **settings: Any) -> Exploration:
    exploration = Exploration(*plan_run(instance, explorer, settings, allow_infeasible=True), seed=4)
    exploration.advance_to(limit)
    return exploration


def bounded(**changes: Any) -> Instance:
    """Outcomes in a range; or, for the explorer, of which nothing is declared."""
    instance = load_instance("router-bounded")
    rows = [{**row.model_dump(), **changes} for row in instance.problem.constraints]
    told = {f"reward_{name}": value for name, value in changes.items()}
    return replace(instance, problem=instance.problem.replace(constraints=rows, **told))


#: A finished exploration for each certificate, and for each way in which variances are known.
EXPLORATIONS: dict[str, Callable[[], Exploration]] = {
    "declared": lambda: explore(load_instance("setup2-easy"), r=0.3, delta=0.1),
    "range": lambda: explore(bounded(), r=0.3, delta=0.1),
    "estimated": lambda: explore(bounded(range=None), r=0.2, delta=0.1),
    "pooled": lambda: explore(load_instance("setup2-easy"), r=0.3, delta=0.1, certificate="pooled"),
}


@pytest.fixture(scope="module", params=EXPLORATIONS)
def finished(request: pytest.FixtureRequest) -> Exploration:
    return EXPLORATIONS[request.param]()


@pytest.fixture(scope="module")
def document(finished: Exploration) -> dict[str, Any]:
    return make_certificate(finished.session).document


def test_a_certificate_holds_and_says_what_was_proved(finished: Exploration, document: dict[str, Any]) -> None:
    result = verify_certificate(document)
    assert result.faults == ()
    estimated = finished.session.problem.reward_account.kind == "estimated"
    assert document["kind"] == result.kind == ("asymptotic" if estimated else "proved")
    assert result.proved == (not estimated)
    assert document["verdict"] == "POLICY"
    assert document["certificate"] == document["settings"]["certificate"]
    assert document["steps"] == finished.session.steps
    assert sum(document["policy"].values()) == pytest.approx(1.0)
    assert all(row["slack_low"] > 0.0 for row in document["constraints"])
    assert all(row["statistic"] >= document["thresholds"]["answer"] for row in document["constraints"])
    assert document["reward_test"]["statistic_low"] >= 1.0
    assert document["reward_test"]["witness_value"] >= document["reward_test"]["statistic_low"]
    assert document["value"]["low"] < document["value"]["estimate"] < document["value"]["high"]


def test_slack_is_as_low_as_the_evidence_at_the_answer_allows(finished: Exploration, document: dict[str, Any]) -> None:
    """The largest slack that the evidence supports: a little more, and it would not suffice."""
    session = finished.session
    assert session.stop is not None
    table = session.stop.winning_blocks()
    if table is None:
        pytest.skip("no blocks")
    blocks = weigh_blocks(session.plan.model, session.case.terms.blocks_delta, *table)
    level = document["thresholds"]["answer"]
    for i, row in enumerate(document["constraints"]):
        unit = abs(session.plan.model.factors[i])
        low = blocks.slack_low(i)
        assert 0.0 < low / unit <= row["slack_low"] * (1.0 + 1e-9) < row["slack"]
        assert blocks.answer_evidence(i, low) >= level
        assert blocks.answer_evidence(i, low * (1.0 + 1e-6)) < level


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


def test_any_change_is_noticed(document: dict[str, Any]) -> None:
    # Every place, but of the blocks only some.
    paths = [path for k, path in enumerate(numbers(document)) if path[0] != "blocks" or k % 13 == 0]
    assert len(paths) > 200
    for path in paths:
        assert _checksum(change(document, path)) != document["checksum"] or path == ("checksum",), path
    for path in paths[:: len(paths) // 25]:
        assert any(fault.startswith("checksum") for fault in verify_certificate(change(document, path)).faults), path


COMPUTED = [
    "certificate",
    "confidence",
    "r",
    "kind",
    "steps",
    "thresholds",
    "policy",
    "passed",
    "value",
    "constraints",
    "reward_test",
]


def forge(document: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """Change a place, and write a checksum that matches."""
    forged = change(document, path)
    forged["checksum"] = _checksum(forged)
    return forged


def test_a_change_under_a_new_checksum_is_noticed_too(document: dict[str, Any]) -> None:
    """Whatever follows from the statistics is recomputed: a matching checksum does not help a forger."""
    paths = [path for path in numbers(document) if path[0] in COMPUTED or path[-1] == "told_before"]
    assert len(paths) > 25
    for path in paths:
        assert not verify_certificate(forge(document, path)).valid, path


def test_forged_statistics_contradict_each_other_or_the_rest(document: dict[str, Any]) -> None:
    """Sums must be what the mean distances from the pivots say, and the rest is computed from them."""
    statistics = document["statistics"]
    for name in ("pulls", "reward_sums", "cost_sums", "pivots", "first"):
        for path in numbers(statistics[name], ("statistics", name)):
            assert not verify_certificate(forge(document, path)).valid, path


def test_moments_that_no_outcomes_have_are_refused(document: dict[str, Any]) -> None:
    places: list[tuple[Any, ...]] = [("statistics",), *([("blocks", 1)] if "blocks" in document else [])]
    for place in places:
        for name, value in (("second", 0.0), ("fourth", 0.0), ("third", 1e9), ("third", -1e9)):
            forged = copy.deepcopy(document)
            table: Any = forged
            for key in place:
                table = table[key]
            table[name]["costs"]["constraint 1" if "constraint 1" in table[name]["costs"] else "price"][0] = value
            forged["checksum"] = _checksum(forged)
            assert any("no outcomes can give" in fault for fault in verify_certificate(forged).faults), (place, name)


def matters(document: dict[str, Any], path: tuple[Any, ...]) -> bool:
    """Whether a number of the tables decides something that the certificate states, for a row at the answer at least.

    What is fixed but never met, such as precisions of claims that are far from deciding, may be anything.
    """
    if path[0] == "start":
        arm = path[-1] if isinstance(path[-1], int) else 0
        weighty = document["start"]["anchor"][arm] > 0.05
        return path[1] in ("number", "told_before") or (
            weighty and path[1:3] in (("anchor", arm), ("precision", "costs"))
        )
    block = document["blocks"][path[1]]
    if path[2] in ("told_before", "counts"):
        return True
    if not isinstance(path[-1], int) or block["answer"][path[-1]] < 0.05:
        return False
    learned = document["problem"]["reward_std"] is None
    return path[2] == "answer" or (path[3] == "costs" and path[2] in ("guesses", "first", *(["second"] * learned)))


def test_forged_tables_do_not_match_what_is_stated(document: dict[str, Any]) -> None:
    if "blocks" not in document:
        pytest.skip("no blocks")
    places = {name: numbers(document[name], (name,)) for name in ("start", "blocks")}
    chosen = [path for name in places for path in places[name] if matters(document, path)]
    assert len(chosen) > 100
    for path in [*chosen[:20], *chosen[20::7]]:
        assert not verify_certificate(forge(document, path)).valid, path


def test_worse_rewards_of_the_blocks_prove_nothing(document: dict[str, Any]) -> None:
    """The reward of single arms may decide nothing that is stated; that of the answer does."""
    if "blocks" not in document:
        pytest.skip("no blocks")
    worse, noisier = copy.deepcopy(document), copy.deepcopy(document)
    for block in worse["blocks"]:
        guesses = block["guesses"]["reward"]  # so much worse that means stay within a declared range
        block["guesses"]["reward"] = [x - 0.3 * share for x, share in zip(guesses, block["answer"], strict=True)]
    for block in noisier["blocks"]:
        block["second"]["reward"] = [x + 100.0 for x in block["second"]["reward"]]
        block["fourth"]["reward"] = [x + 1e5 for x in block["fourth"]["reward"]]
    for forged in (worse, noisier):
        forged["checksum"] = _checksum(forged)
    assert any("do not pass the test" in fault for fault in verify_certificate(worse).faults)
    if document["problem"]["reward_std"] is None:  # otherwise what was measured of the variance does not matter
        assert any("do not pass the test" in fault for fault in verify_certificate(noisier).faults)


def test_means_outside_a_declared_range_are_refused(document: dict[str, Any]) -> None:
    if "blocks" not in document or document["problem"]["reward_range"] is None:
        pytest.skip("no range")
    forged = copy.deepcopy(document)
    forged["blocks"][1]["guesses"]["reward"][0] -= 1.0
    forged["checksum"] = _checksum(forged)
    says = "blocks.1: mean rewards outside their declared range, which no outcomes can give"
    assert says in verify_certificate(forged).faults


def test_a_mix_that_the_statistics_do_not_support_is_refused(document: dict[str, Any]) -> None:
    forged = copy.deepcopy(document)
    arms = list(forged["policy"])
    forged["policy"] = {arm: float(arm == arms[0]) for arm in arms}
    forged["checksum"] = _checksum(forged)
    says = "policy.arm" if "blocks" in document else "do not pass the test"
    assert any(says in fault for fault in verify_certificate(forged).faults)


def test_a_block_planned_with_its_own_outcomes_is_refused(document: dict[str, Any]) -> None:
    if "blocks" not in document:
        pytest.skip("no blocks")
    forged = copy.deepcopy(document)
    forged["blocks"][3]["told_before"] += 1
    forged["checksum"] = _checksum(forged)
    assert any("fixed after these and before its own" in fault for fault in verify_certificate(forged).faults)


def test_blocks_left_out_are_noticed(document: dict[str, Any]) -> None:
    """The blocks of a start are all or nothing: leaving out those that look bad would be choosing by outcome."""
    if "blocks" not in document:
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
    assert (result.kind, result.proved) == ("stylised", False)
    assert session.recommend().claims.proved == ()


def test_old_certificates_are_refused_by_their_format(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps({**document, "format": "polyarm-certificate-4"}))
    with pytest.raises(InvalidInput, match="expected format 'polyarm-certificate-5', got 'polyarm-certificate-4'"):
        read_certificate(path)


def test_there_is_no_certificate_without_a_certified_stop() -> None:
    with pytest.raises(InvalidInput, match="has not stopped"):
        make_certificate(explore(load_instance("setup2-easy"), limit=50).session)
    with pytest.raises(InvalidInput, match="stopping=certified"):
        make_certificate(explore(load_instance("setup2-easy"), "uniform", limit=50).session)


def test_an_infeasible_problem_is_proved_so_and_a_hint_says_which_rows_are_suspected() -> None:
    rows = [*ROWS, {"name": "idle", "bound": 5.0, "std": 1.0}]
    costs = [[1.0, 0.2, 0.3], [0.1, 1.0, 0.9], [0.0, 0.0, 0.0]]  # price + size is at least 1.1 for every arm
    instance = make_instance([1.0, 0.5, 0.2], costs, rows)
    run = explore(instance)
    assert run.record().status == "INFEASIBLE"
    assert run.record().correct
    certificate = make_certificate(run.session)
    assert certificate.verdict == "INFEASIBLE"
    assert certificate.policy is None
    assert set(certificate.document["suspected_conflict"]) == {"price", "size"}
    claim = run.session.claim_infeasible()
    assert claim.proved
    assert all(name in claim.text for name in ("price", "size", "idle")), "only all together are proved to contradict"
    assert run.session.hint_conflict() == "hint (estimated, not proved): no mix seems to satisfy all of: price, size"
    shown = certificate._repr_html_()
    assert "no mix satisfies all of: price, size, idle" in shown
    assert "hint (estimated, not proved): no mix seems to satisfy all of: price, size" in shown
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
def test_outcomes_without_a_scale_are_estimated_or_refused(family: str) -> None:
    problem = make_instance([1.0, 2.0], [[1.0, 0.0]], ROWS[:1], family=family, reward_std=None).problem
    session = make_explorer("certex", problem)
    assert session.certificate == "blocks"
    refused: list[tuple[str, Any]] = [("certex", {"certificate": "pooled"}), ("uniform", {"stopping": "certified"})]
    for explorer, settings in refused:
        with pytest.raises(
            InvalidInput, match="the reward: no variance is declared, which the pooled certificate needs"
        ):
            make_explorer(explorer, problem, **settings)
    rows = [{**ROWS[0], "std": None}, ROWS[1]]
    problem = make_instance(
        [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], rows, reward_range=(0.0, 3.0), reward_std=None
    ).problem
    with pytest.raises(InvalidInput, match=r"^constraint 'price': no variance is declared"):
        make_explorer("certex", problem, certificate="pooled")


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
    forged["constants"]["blocks_delta"] *= 1.5
    forged["checksum"] = _checksum(forged)
    assert any("more than delta" in fault for fault in verify_certificate(forged).faults)


def test_verification_asks_for_no_explorer(document: dict[str, Any]) -> None:
    forged = {**document, "explorer": "one that nobody has", "settings": {}}
    forged["checksum"] = _checksum(forged)
    assert verify_certificate(forged).valid


def test_an_answer_scaled_within_the_tolerance_of_a_mix_gains_nothing(document: dict[str, Any]) -> None:
    """Statistics are linear in the answers, and with large rewards a millionth more of each would be worth a lot."""
    if "blocks" not in document:
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
        (("start", "number"), 6),
        (("start", "precision"), None),
        (("start", "precision", "reward", 0), "abc"),
        (("start", "precision", "reward", 0), 10**400),
        (("start", "precision", "reward", 0), 0.0),
        (("start", "precision", "costs"), {}),
        (("start", "coarse", "reward", 0), 0.5),
        (("start", "pivots", "costs"), []),
        (("start", "anchor"), ["x"] * 3),
        (("start", "anchor", 0), 10**400),
        (("start", "told_before"), 10**400),
        (("blocks",), "none"),
        (("blocks", 0), None),
        (("blocks", 0, "answer"), [[1.0], 2.0]),
        (("blocks", 0, "counts", 0), 10**400),
        (("statistics", "pulls", 0), 10**400),
        (("blocks", 0, "guesses"), {"reward": None, "costs": {}}),
        (("blocks", 0, "second"), 3.0),
        (("blocks", 0, "variances", "reward"), ["x"] * 5),
        (("statistics", "reward_sums"), None),
        (("statistics", "wander"), {}),
        (("statistics", "wander", "reward", 0), -1.0),
        (("statistics", "first"), None),
        (("constants",), "abc"),
        (("constants", "lam"), -1.0),
        (("constants", "certificate"), "other"),
        (("constants", "constants"), {}),
        (("constants", "constants", "precision"), 0.5),
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
