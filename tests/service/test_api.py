"""The API: what it answers, what it refuses and in which words, and that nothing is counted twice."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from polyarm import Conflict, ExplorationOver, NotYet, UnknownStudy, import_study, load_study, verify_study
from polyarm.engine.certificate import verify_certificate
from polyarm.service.shelf import Shelf
from polyarm.studies.storage import open_storage
from service.conftest import Served, Start
from service.worlds import explore, new_study
from studies.worlds import World, make_problem, outcome, sequential


def create(server: Served, **changes: Any) -> int:
    answer = server.post("/studies", new_study(**changes))
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["id"]
    return number


def test_a_study_from_beginning_to_end(storage: str, start: Start, tmp_path: Path) -> None:
    server = start(storage)
    with server.client() as client:
        study = client.create_study(make_problem(), name="router", seed=5)
        with pytest.raises(NotYet, match="not stopped"):
            study.certificate()
        assert study.recommend().kind == "none"
        explore(study, World())
        with pytest.raises(ExplorationOver, match="finished after"):
            study.ask()
        answer, status = study.recommend(), study.status()
        assert (answer.kind, status.state, status.pending) == ("answer", "answered", 0)
        assert answer.shares is not None
        assert list(answer.shares.values()) == sequential("certex").recommend().policy.tolist()
        document = study.certificate()
    assert verify_certificate(document).valid
    assert document["study"]["name"] == "router"
    # What came through the service is a study like any other.
    stored = load_study("router", storage)
    assert verify_study(stored).valid
    assert stored.status().told == status.told
    whole = server.get("/studies/router/export", params={"format": "json"})
    assert 'filename="router.json"' in whole.headers["Content-Disposition"]
    (tmp_path / "whole.json").write_bytes(whole.content)
    assert import_study(tmp_path / "whole.json", storage, "copy").recommend().policy.tolist() == list(
        answer.shares.values()
    )
    table = server.get("/studies/router/export").text.splitlines()
    assert table[0] == "id,arm,state,reward,price,latency,asked_at,told_at"
    assert len(table) == status.asked + 1
    assert server.get("/studies/router/export", params={"format": "parquet"}).content[:4] == b"PAR1"


def test_a_study_is_found_by_number_and_by_name(server: Served) -> None:
    number = create(server, name="a b/ü")
    create(server, name="77")
    assert server.get(f"/studies/{number}").json()["name"] == "a b/ü"
    assert server.get("/studies/77").status_code == 404, "a number is a number, never a name"
    create(server, name="plain")
    assert server.get("/studies/plain").json()["name"] == "plain"
    listed = server.get("/studies").json()["studies"]
    assert [study["name"] for study in listed] == ["77", "a b/ü", "plain"]
    with server.client() as client:
        assert client.load_study("77").status().name == "77"
        with pytest.raises(UnknownStudy, match=r"no study 'nope'.*there are: 77"):
            client.load_study("nope")


def test_a_request_that_is_repeated_with_its_key_counts_once(storage: str, start: Start) -> None:
    server = start(storage)
    number = create(server)
    path = f"/studies/{number}"

    def twice(verb: str, body: Any, key: str) -> Any:
        answers = [server.post(f"{path}/{verb}", body, headers={"Idempotency-Key": key}) for _ in range(2)]
        assert answers[0].status_code == 200, answers[0].text
        assert answers[0].json() == answers[1].json()
        other = {"ask": {"n": 9}, "tell": {"tells": [{"trial": 2, "reward": 0.5}]}}.get(
            verb, {"outcomes": [{"arm": "small", "reward": 9.0, "costs": {"price": 1, "latency": 1}}]}
        )
        refused = server.post(f"{path}/{verb}", other, headers={"Idempotency-Key": key})
        assert (refused.status_code, refused.json()["title"]) == (409, "Contradicts what is stored")
        return answers[0].json()

    trials = twice("ask", {"n": 3}, "k1")["trials"]
    assert [trial["id"] for trial in trials] == [1, 2, 3]
    told = twice("tell", {"tells": [{"trial": 1, "reward": 0.5, "costs": {"price": 0.2, "latency": 0.4}}]}, "k2")
    assert told["results"] == [{"trial": 1, "status": "recorded", "missing": []}]
    seen = {"arm": "large", "reward": 0.9, "costs": {"price": 2.0, "latency": 0.3}}
    assert twice("observe", {"outcomes": [seen]}, "k3") == {"trials": [4]}
    status = server.get(path).json()["status"]
    assert (status["asked"], status["told"], status["observed"]) == (3, 1, 1)
    # Without a key: more trials, the same tell changes nothing, and an observation is another one.
    assert server.post(f"{path}/ask", {"n": 1}).json()["trials"][0]["id"] == 5
    again = server.post(
        f"{path}/tell", {"tells": [{"trial": 1, "reward": 0.5, "costs": {"price": 0.2, "latency": 0.4}}]}
    )
    assert again.json()["results"][0]["status"] == "duplicate"
    assert server.post(f"{path}/observe", {"outcomes": [seen]}).json() == {"trials": [6]}


def test_two_servers_on_one_storage_behave_as_one(storage: str, start: Start) -> None:
    first, second = start(storage), start(storage)
    world = World()
    with first.client() as one, second.client() as two:
        here = one.create_study(make_problem(), name="shared", seed=5)
        there = two.load_study("shared")
        while not here.stopped:
            for trial in here.ask(10):
                there.tell(*world.pull(trial))
            here, there = there, here
        assert here.recommend() == there.recommend()
    other = {"trial": 1, "reward": 0.123, "costs": {"price": 0.2}}
    assert [s.post("/studies/shared/tell", {"tells": [other]}).status_code for s in (first, second)] == [409, 409]
    assert verify_study(load_study("shared", storage)).valid


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("GET", "/studies/9999", None, 404, "no such study"),
        ("GET", "/studies/nobody", None, 404, "no study 'nobody'"),
        ("GET", "/nowhere", None, 404, "Not Found"),
        ("PUT", "/studies", None, 405, "Method Not Allowed"),
        ("POST", "/studies", new_study(), 409, "exists already"),
        ("POST", "/studies", {"name": "x"}, 422, "problem: Field required"),
        ("POST", "/studies", new_study("x", extra=1), 422, "extra: Extra inputs"),
        ("POST", "/studies", new_study("x", explorer="nope"), 422, "unknown explorer 'nope'"),
        ("POST", "/studies", new_study("x", explorer="/etc/passwd.py"), 422, "unknown explorer"),
        ("POST", "/studies", new_study("x", settings={"storage": "sqlite:///evil.db"}), 422, "has no setting"),
        ("POST", "/studies", new_study("x", settings={"nope": 1}), 422, "nope"),
        ("POST", "/studies", new_study("x", lease=-1), 422, "lease"),
        ("POST", "/studies", new_study("x", problem={"arms": 2_000, "delta": 0.1, "r": 1}), 422, "problem"),
        (
            "POST",
            "/studies",
            new_study("x", problem={"arms": 201, "reward_std": 1, "delta": 0.1, "r": 1}),
            422,
            "at most 200 arms",
        ),
        ("POST", "/studies/test/ask", {"n": 0}, 422, "n: Input should be greater"),
        ("POST", "/studies/test/ask", {"n": 10**9}, 422, "n: Input should be less"),
        ("POST", "/studies/test/tell", {"tells": []}, 422, "tells"),
        ("POST", "/studies/test/tell", {"tells": [{"trial": 77, "reward": 1}]}, 422, "was never asked for"),
        ("POST", "/studies/test/tell", {"tells": [{"trial": 10**30, "reward": 1}]}, 422, "tells.0.trial"),
        ("POST", "/studies/test/tell", {"tells": [{"trial": 1}]}, 422, "nothing to tell"),
        ("POST", "/studies/test/tell", {"tells": [{"trial": 1, "reward": "x"}]}, 422, "tells.0.reward"),
        ("POST", "/studies/test/tell", {"tells": [{"trial": 1, "costs": {"nope": 1}}]}, 422, "'price', 'latency'"),
        ("POST", "/studies/test/observe", {"outcomes": [{"arm": "tiny", "reward": 1}]}, 422, "unknown arm 'tiny'"),
        ("GET", "/studies/test/certificate", None, 409, "has not stopped"),
        ("GET", "/studies/test/export?format=xls", None, 422, "format"),
        ("GET", "/studies/test/log?last=0", None, 422, "last"),
    ],
)
def test_a_mistake_is_a_problem_document_and_changes_nothing(
    shared_server: Served, method: str, path: str, body: Any, status: int, says: str
) -> None:
    before = shared_server.get("/studies").json()
    answer = shared_server.request(method, path, json=body)
    document = answer.json()
    assert (answer.status_code, document["status"]) == (status, status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert says in document["detail"]
    assert document["type"].startswith("urn:polyarm:problem:")
    assert shared_server.get("/studies").json() == before


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b'{"tells": [{"trial": 1, "reward": NaN}]}', b'"text"'])
def test_what_is_not_json_is_refused(shared_server: Served, body: bytes) -> None:
    answer = shared_server.request(
        "POST", "/studies/test/tell", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_batch_with_one_mistake_is_refused_whole(server: Served) -> None:
    number = create(server)
    trials = server.post(f"/studies/{number}/ask", {"n": 2}).json()["trials"]
    reward, costs = outcome(trials[0]["arm_index"], 0)
    good = {"trial": trials[0]["id"], "reward": reward, "costs": costs}
    answer = server.post(f"/studies/{number}/tell", {"tells": [good, {"trial": 99, "reward": 1.0}]})
    assert answer.status_code == 422
    assert server.get(f"/studies/{number}").json()["status"]["told"] == 0


def test_stop_resume_archive(server: Served) -> None:
    with server.client() as client:
        study = client.create_study(make_problem(), seed=5)
        trial = study.ask()[0]
        study.stop("holidays")
        assert study.status().state == "stopped"
        answer = server.post(f"/studies/{study.id}/ask", {"n": 1})
        assert (answer.status_code, answer.json()["title"]) == (409, "The study is halted")
        study.tell(trial, *outcome(trial.arm_index, 0))
        study.archive()
        study.resume()
        with pytest.raises(Conflict, match="told as"):
            study.tell(trial, 99.0)
        assert study.status().state == "exploring"
    kinds = [event["kind"] for event in server.get(f"/studies/{study.id}/log").json()["events"]]
    assert kinds == ["created", "asked", "stopped", "told", "archived", "resumed"]


def test_the_view_has_all_that_a_page_shows(server: Served) -> None:
    with server.client() as client:
        study = client.create_study(make_problem(), seed=5)
        empty = server.get(f"/studies/{study.id}/view").json()
        assert empty["mix"]["kind"] == "none"
        assert empty["region"] is None
        assert empty["intervals"]["reward"] == {"small": None, "medium": None, "large": None}
        assert empty["trace"]["steps"] == []
        world = World()
        study.tell_many([world.pull(trial) for trial in study.ask(60)])
        half = server.get(f"/studies/{study.id}/view").json()
        explore(study, world)
    view = server.get(f"/studies/{study.id}/view").json()
    assert half["trace"]["steps"] == view["trace"]["steps"][: len(half["trace"]["steps"])]
    assert view["trace"]["steps"][-1] == view["status"]["used"]
    assert view["trace"]["statistic"][-1] > view["trace"]["threshold"][-1]
    assert {len(column) for name, column in view["trace"].items() if name != "slack"} == {len(view["trace"]["steps"])}
    for name in ("small", "medium", "large"):
        interval = view["intervals"]["reward"][name]
        assert interval["low"] < interval["mean"] < interval["high"]
    assert len(view["region"]["optimistic"]) >= 3
    assert sum(view["mix"]["shares"].values()) == pytest.approx(1.0)
    assert set(view["prices"]) == {"price", "latency"}
    assert view["mix"]["kind"] == "answer"


def test_a_long_read_holds_up_neither_asks_nor_health(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many who read at once wait for each other, not the rest for them."""
    create(server)
    begun, over = threading.Event(), threading.Event()

    def slowly(*_: Any) -> dict[str, Any]:
        begun.set()
        assert over.wait(60.0)
        raise RuntimeError("enough")

    monkeypatch.setattr("polyarm.service.shelf.view_study", slowly)
    with ThreadPoolExecutor(60) as pool:
        readers = [pool.submit(server.get, "/studies/test/recommendation") for _ in range(60)]
        try:
            assert begun.wait(60.0)
            assert server.post("/studies/test/ask", {"n": 5}).status_code == 200
            assert server.get("/healthz").status_code == 200
        finally:
            over.set()
        assert {reader.result().status_code for reader in readers} == {500}


def test_a_view_stays_as_it_was_seen(server: Served) -> None:
    shelf = Shelf(open_storage(server.storage))
    create(server)
    study, world = load_study("test", server.storage), World()
    study.tell_many([world.pull(trial) for trial in study.ask(40)])
    view = shelf.view("test")
    before = json.dumps(view)
    shelf.find("test").tell_many([world.pull(trial) for trial in study.ask(40)])
    assert shelf.view("test")["trace"]["steps"] != view["trace"]["steps"]
    assert json.dumps(view) == before


def test_an_infeasible_study_says_so_everywhere(server: Served) -> None:
    problem = make_problem(constraints=[{"name": "price", "bound": -5.0, "std": 0.3}])
    with server.client() as client:
        study = client.create_study(problem, seed=5)
        while not study.stopped:
            study.tell_many([(trial, 0.5, {"price": 1.0}) for trial in study.ask(5)])
        view = server.get(f"/studies/{study.id}/view").json()
        assert view["status"]["state"] == "infeasible"
        assert view["conflict"] == ["price"]
        assert "no mix" in view["mix"]["why"]
        assert verify_certificate(study.certificate()).verdict == "INFEASIBLE"


def test_stylised_thresholds_bound_nothing(server: Served) -> None:
    with server.client() as client:
        study = client.create_study(make_problem(), seed=5, certificate="pooled", thresholds="stylised")
        explore(study, World())
        answer = study.recommend()
    assert (answer.kind, answer.slack_low, answer.value_interval, answer.proved) == ("answer", None, None, ())
    assert {(claim.about, claim.kind) for claim in answer.claims} == {
        ("feasible", "stylised"),
        ("near-optimal", "stylised"),
    }


def test_the_status_is_the_librarys(server: Served) -> None:
    with server.client() as client:
        study = client.create_study(make_problem(), name="router", seed=5)
        study.tell_many([World().pull(trial) for trial in study.ask(3)])
        assert study.status() == load_study("router", server.storage).status()


def test_an_explorer_that_proves_nothing_has_no_certificate(server: Served) -> None:
    number = create(server, explorer="uniform")
    answer = server.get(f"/studies/{number}/certificate")
    assert (answer.status_code, "proves no certificate" in answer.json()["detail"]) == (409, True)


def test_bodies_have_a_limit_whether_or_not_they_state_their_size(start: Start, tmp_path: Path) -> None:
    server = start(f"sqlite:///{tmp_path}/small.db", max_body=2_000)
    create(server)
    large = json.dumps({"tells": [{"trial": 1, "reward": 0.5}] * 200}).encode()

    def in_parts() -> Any:
        for k in range(0, len(large), 500):
            yield large[k : k + 500]

    for content in (large, in_parts()):
        answer = server.request(
            "POST", "/studies/test/tell", content=content, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["title"]) == (413, "Too large")


def test_requests_have_a_limit(start: Start, tmp_path: Path) -> None:
    server = start(f"sqlite:///{tmp_path}/slow.db", rate=1.0, burst=5.0)
    answers = [server.get("/studies") for _ in range(8)]
    assert [answer.status_code for answer in answers[:5]] == [200] * 5
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert server.get("/healthz").status_code == 200
