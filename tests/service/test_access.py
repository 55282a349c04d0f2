"""Who may come in: tokens, scopes, people signed in, and what an open server refuses all the same."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from polyarm import InvalidInput
from polyarm.errors import Conflict
from polyarm.service.access import create_token, list_tokens, revoke_token
from polyarm.service.guard import COOKIE, CSRF_HEADER, is_loopback
from polyarm.service.limits import Limiter
from polyarm.service.problems import Refusal
from polyarm.service.server import Server, make_config
from polyarm.studies.storage import open_storage
from service.conftest import Served, Start
from service.worlds import new_study


@contextmanager
def sign_in(server: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url) as browser:
        answer = browser.post("/session", json={"token": server.token})
        assert answer.status_code == 200, answer.text
        yield browser


def test_only_a_hash_of_a_token_is_kept(locked_server: Served) -> None:
    secret = locked_server.token
    assert secret is not None
    file = locked_server.storage.removeprefix("sqlite:///")
    with sign_in(locked_server) as browser:
        login = browser.cookies[COOKIE]
    connection = sqlite3.connect(file)
    stored = "\n".join(connection.iterdump())
    connection.close()
    assert "admin" in stored
    for text in (secret, secret.removeprefix("pa_"), login):
        assert text not in stored


@pytest.mark.parametrize(
    ("scope", "may"),
    [("read", ["look"]), ("write", ["look", "work"]), ("admin", ["look", "work", "run"])],
)
def test_a_token_may_do_what_its_scope_says(locked_server: Served, scope: str, may: list[str]) -> None:
    assert locked_server.post("/studies", new_study()).status_code == 201
    token = create_token(open_storage(locked_server.storage), f"may {scope}", scope)
    tries = {
        "look": [("GET", "/studies"), ("GET", "/studies/test/view"), ("GET", "/metrics"), ("GET", "/explorers")],
        "work": [("POST", "/studies/test/ask")],
        "run": [("POST", "/studies"), ("POST", "/studies/test/archive"), ("POST", "/studies/test/resume")],
    }
    for what, requests in tries.items():
        for method, path in requests:
            body = new_study("another") if path == "/studies" and method == "POST" else {} if method == "POST" else None
            answer = locked_server.request(method, path, token=token, json=body)
            assert (answer.status_code < 300) == (what in may), (scope, path, answer.text)
            if what not in may:
                assert answer.status_code == 403
                assert "this needs" in answer.json()["detail"]


def test_without_a_token_a_locked_server_tells_nothing(locked_server: Served) -> None:
    for path in ("/studies", "/studies/1", "/studies/1/view", "/studies/1/events", "/metrics", "/explorers"):
        answer = httpx.get(locked_server.url + path)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    session = httpx.get(locked_server.url + "/session").json()
    assert (session["open"], session["signed_in"], session["scopes"], session["storage"]) == (False, False, [], None)
    assert httpx.get(locked_server.url + "/healthz").status_code == 200
    assert httpx.get(locked_server.url + "/").status_code == 200


def test_a_revoked_token_is_useless_at_once_and_does_not_open_the_doors(locked_server: Served) -> None:
    storage = open_storage(locked_server.storage)
    with sign_in(locked_server) as browser:
        assert browser.get("/studies").status_code == 200
        revoke_token(storage, "admin")
        assert browser.get("/studies").status_code == 401
    assert locked_server.get("/studies").status_code == 401
    assert httpx.get(locked_server.url + "/studies").status_code == 401
    with pytest.raises(InvalidInput, match="revoked already"):
        revoke_token(storage, "admin")
    with pytest.raises(InvalidInput, match="unknown token 'nobody'"):
        revoke_token(storage, "nobody")
    assert [(row["name"], row["revoked_at"] is None) for row in list_tokens(storage)] == [("admin", False)]


def test_names_of_tokens_are_taken_once_and_scopes_are_known(locked_server: Served) -> None:
    storage = open_storage(locked_server.storage)
    with pytest.raises(Conflict, match="exists already"):
        create_token(storage, "admin", "read")
    with pytest.raises(InvalidInput, match="unknown scope 'root'"):
        create_token(storage, "x", "root")


def test_the_first_token_closes_an_open_server(server: Served) -> None:
    assert server.get("/studies").status_code == 200
    token = create_token(open_storage(server.storage), "first", "read")
    assert server.get("/studies").status_code == 401
    assert server.get("/studies", token=token).status_code == 200


def test_many_wrong_tokens_are_slowed_down(locked_server: Served) -> None:
    answers = [locked_server.get("/studies", token="pa_wrong").status_code for _ in range(30)]
    assert set(answers) == {401, 429}
    assert locked_server.get("/studies").status_code == 200, "who has a token is not held up by who has none"


# -- people -----------------------------------------------------------------------------------------------------------


def test_who_signed_in_needs_the_csrf_text_for_every_change(locked_server: Served) -> None:
    with sign_in(locked_server) as browser:
        session = browser.get("/session").json()
        assert (session["signed_in"], session["name"]) == (True, "admin")
        assert browser.get("/studies").status_code == 200
        for headers in ({}, {CSRF_HEADER: "wrong"}, {CSRF_HEADER: "ü".encode()}):
            assert browser.post("/studies", json=new_study(), headers=headers).status_code == 403  # type: ignore[arg-type]
        mine = {CSRF_HEADER: session["csrf"]}
        elsewhere = {**mine, "Origin": "https://evil.example"}
        assert browser.post("/studies", json=new_study(), headers=elsewhere).status_code == 403
        ours = {**mine, "Origin": locked_server.url}
        assert browser.post("/studies", json=new_study(), headers=ours).status_code == 201
        assert browser.delete("/session").status_code == 403
        login = browser.cookies[COOKIE]
        assert browser.delete("/session", headers=mine).status_code == 204
        old = {"Cookie": f"{COOKIE}={login}"}
        assert browser.get("/studies", headers=old).status_code == 401, "what was signed out must not work again"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_pages(locked_server: Served, start: Start) -> None:
    answer = httpx.post(locked_server.url + "/session", json={"token": locked_server.token})
    cookie = answer.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie, "over plain HTTP a browser would not send it back"
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
    told = httpx.post(locked_server.url + "/session", json={"token": locked_server.token}, headers=forwarded)
    assert "secure" not in told.headers["Set-Cookie"].lower(), "anybody can say that"
    behind_tls = start(locked_server.storage, trusted_proxies=("127.0.0.1",))
    told = httpx.post(behind_tls.url + "/session", json={"token": locked_server.token}, headers=forwarded)
    assert "secure" in told.headers["Set-Cookie"].lower()


def test_one_token_does_not_fill_the_storage_with_logins(locked_server: Served) -> None:
    with sign_in(locked_server) as first:
        assert first.get("/studies").status_code == 200
        for _ in range(51):
            locked_server.post("/session", {"token": locked_server.token})
        assert first.get("/studies").status_code == 401, "who came first is signed out"
    connection = sqlite3.connect(locked_server.storage.removeprefix("sqlite:///"))
    (count,) = connection.execute("SELECT count(*) FROM polyarm_login").fetchone()
    connection.close()
    assert count == 50


def test_another_hosts_page_cannot_sign_a_visitor_in(locked_server: Served) -> None:
    answer = locked_server.post("/session", {"token": locked_server.token}, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403


def test_strangers_are_limited_too(sqlite: str, start: Start) -> None:
    create_token(open_storage(sqlite), "some", "read")
    server = start(sqlite, rate=1.0, burst=5.0)
    assert 429 in [httpx.get(server.url + "/session").status_code for _ in range(8)]
    flood = {"token": "x", **{str(k): 1 for k in range(2_000)}}
    assert httpx.post(server.url + "/session", json=flood).status_code == 413


def test_a_flood_of_mistakes_is_answered_briefly(shared_server: Served) -> None:
    tells = {"tells": [{"trial": 0, "reward": "x"}] * 3_000}
    answer = shared_server.post("/studies/test/tell", tells)
    assert (answer.status_code, len(answer.content) < 10_000) == (422, True)
    assert "5980 more" in answer.text
    costs = {"tells": [{"trial": 1, "costs": {str(k): "x" for k in range(5_000)}}]}
    assert "at most 50 costs" in shared_server.post("/studies/test/tell", costs).json()["detail"]
    fields = {"tells": [], **{str(k): 1 for k in range(5_000)}}
    assert "at most 50 fields" in shared_server.post("/studies/test/tell", fields).json()["detail"]
    problem = {"arms": ["a", "b"], "delta": 0.1, "r": 1, **{str(k): 1 for k in range(5_000)}}
    assert "at most 200 entries" in shared_server.post("/studies", new_study("x", problem=problem)).json()["detail"]


def test_a_wrong_token_does_not_sign_in(locked_server: Served) -> None:
    answer = httpx.post(locked_server.url + "/session", json={"token": "pa_wrong"})
    assert (answer.status_code, "token is unknown" in answer.json()["detail"]) == (401, True)
    assert "Set-Cookie" not in answer.headers


# -- an open server ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},  # a name that was rebound to this machine
        {"Host": "192.168.0.7:8765"},
        {"Host": "[oops"},
        {"X-Forwarded-For": "203.0.113.7"},  # a proxy that lets others in
        {"X-Real-IP": "203.0.113.7"},
        {"Via": "1.1 proxy"},
        {"Forwarded": "for=203.0.113.7"},
    ],
)
def test_an_open_server_answers_its_own_machine_only(shared_server: Served, headers: dict[str, str]) -> None:
    answer = shared_server.get("/studies", headers=headers)
    assert (answer.status_code, "token" in answer.json()["detail"]) == (403, True)


def test_other_pages_may_not_change_an_open_server(shared_server: Served) -> None:
    body: dict[str, Any] = {"reason": "evil"}
    answer = shared_server.post("/studies/test/stop", body, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    hidden = shared_server.post("/studies/test/stop", body, headers={"Sec-Fetch-Site": "cross-site"})
    assert hidden.status_code == 403
    # A form of another page can be sent without asking first, but not as JSON.
    form = shared_server.request(
        "POST", "/studies/test/stop", content=json.dumps(body), headers={"Content-Type": "text/plain"}
    )
    assert form.status_code == 422
    assert shared_server.get("/studies/test").json()["status"]["state"] == "exploring"


def test_without_a_token_a_server_listens_on_loopback_only(sqlite: str) -> None:
    with pytest.raises(InvalidInput, match=r"loopback only.*polyarm token create"):
        Server(make_config(sqlite, "0.0.0.0"), "0.0.0.0", 0)
    create_token(open_storage(sqlite), "gone", "admin")
    revoke_token(open_storage(sqlite), "gone")
    with pytest.raises(InvalidInput, match="loopback only"):
        Server(make_config(sqlite, "0.0.0.0"), "0.0.0.0", 0)


def test_with_a_token_it_listens_everywhere_and_wants_it(sqlite: str, start: Start) -> None:
    token = create_token(open_storage(sqlite), "all", "read")
    server = start(sqlite, host="0.0.0.0")
    url = server.url.replace("0.0.0.0", "127.0.0.1")
    assert httpx.get(url + "/studies").status_code == 401
    assert httpx.get(url + "/studies", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_what_is_loopback() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"]))
    assert not any(map(is_loopback, ["", "0.0.0.0", "10.0.0.1", "localhost.evil.example", "::", "1"]))


# -- browsers ---------------------------------------------------------------------------------------------------------


def test_every_answer_carries_the_security_headers(shared_server: Served) -> None:
    for path in ("/", "/static/icon.svg", "/studies", "/nowhere", "/healthz"):
        headers = shared_server.get(path).headers
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"


def test_other_hosts_pages_are_let_in_only_where_configured(sqlite: str, start: Start, shared_server: Served) -> None:
    ask = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    assert "Access-Control-Allow-Origin" not in shared_server.request("OPTIONS", "/studies", headers=ask).headers
    token = create_token(open_storage(sqlite), "page", "admin")
    server = start(sqlite, token, cors_origins=("https://app.example",))
    answer = server.request("OPTIONS", "/studies", headers=ask)
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert "Access-Control-Allow-Credentials" not in answer.headers, "other pages come with a token, never a cookie"
    other = {**ask, "Origin": "https://evil.example"}
    assert "Access-Control-Allow-Origin" not in server.request("OPTIONS", "/studies", headers=other).headers


def test_a_caller_who_waits_is_served_again() -> None:
    now = [0.0]
    limiter = Limiter(rate=2.0, burst=3.0, clock=lambda: now[0])
    for _ in range(3):
        limiter.take("a")
    with pytest.raises(Refusal) as refused:
        limiter.take("a")
    assert refused.value.headers == {"Retry-After": "1"}
    limiter.take("b")
    now[0] = 0.5
    limiter.take("a")
    with pytest.raises(Refusal):
        limiter.take("a")
