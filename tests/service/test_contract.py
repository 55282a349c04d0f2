"""The API does what its own description says, whatever is sent to it."""

import json
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis import Case, GenerationMode, HookContext
from schemathesis.checks import negative_data_rejection, positive_data_acceptance

from polyarm import load_study
from polyarm.service import bodies
from polyarm.service.access import create_token
from polyarm.service.app import ServiceConfig, make_app
from polyarm.service.limits import Limiter
from polyarm.studies.storage import open_storage
from service.conftest import Served, Start
from service.worlds import new_study
from studies import worlds

#: Fixed: the same requests every time.
SETTINGS: dict[str, Any] = {
    "seed": 1,
    "base-url": "http://localhost",
    "generation": {
        "deterministic": True,
        "max-examples": 20,
        "no-shrink": True,
        "allow-extra-parameters": False,  # those that nobody knows are ignored, as everywhere on the web
        "with-security-parameters": False,  # the token comes with every request, and the check of it leaves it out
    },
    "phases": {"stateful": {"enabled": False}},
    # What is too long for the description may be too large for the server as well.
    "checks": {
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429"]
        }
    },
}
#: The numbers of the studies that exist: to work on, to stop and archive, and one that has its answer.
WORK, LIFE, DONE = "1", "2", "3"


def describe() -> dict[str, Any]:
    """The description of the API; no server is needed for it, only a storage."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/empty.db"
        document: dict[str, Any] = make_app(ServiceConfig(storage=url)).openapi()
        open_storage(url).close()
    return document


class Later:
    """An application that is there when the tests run: operations are needed before, to make tests of them."""

    app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


DESCRIPTION = describe()
SERVED = Later()
# Streams never end: test_streams has them.
schema = schemathesis.openapi.from_dict(
    json.loads(json.dumps(DESCRIPTION)), config=schemathesis.Config.from_dict(SETTINGS)
).exclude(path_regex="/(events|changes)$")
schema.app = SERVED


@schema.hook
def map_case(context: HookContext, case: Case[Any]) -> Case[Any]:
    """Send three of four requests to studies that exist, and of those that are right most to trials that exist."""
    verb = case.operation.path.rpartition("/")[2]
    if "study" in (case.path_parameters or {}):
        number = mix_up(case.path_parameters["study"], 4)
        if verb in ("stop", "resume", "archive"):
            chosen = (LIFE, LIFE, LIFE, None)[number]
        else:
            chosen = (WORK, WORK, None, LIFE if case.method == "POST" else DONE)[number]
        case.path_parameters["study"] = chosen or case.path_parameters["study"]
    if verb in ("tell", "observe") and case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        sent: Any = case.body
        for one in sent["tells" if verb == "tell" else "outcomes"]:
            if "trial" in one:
                one["trial"] = 1 + mix_up(one["trial"], 25)
            if "arm" in one:
                one["arm"] = ("small", "medium", "large", one["arm"])[mix_up(one["arm"], 4)]
            if one.get("costs"):
                one["costs"] = {"price": next(iter(one["costs"].values()))}
    return case


def mix_up(value: Any, below: int) -> int:
    return zlib.crc32(repr(value).encode("utf-8", "surrogatepass")) % below


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Makes the application, with tokens, on SQLite, and three studies; the token may do everything."""
    url = f"sqlite:///{tmp_path_factory.mktemp('contract')}/service.db"
    secret = create_token(open_storage(url), "admin", "admin")
    example = bodies.NewStudy.model_validate(example_of("NewStudy"))
    worlds.start(url, problem=example.problem, name="work").ask(20)
    worlds.start(url, name="life")
    worlds.explore(worlds.start(url, name="done"), worlds.World())
    SERVED.app = make_app(ServiceConfig(storage=url, rate=1e9, burst=1e9))
    SERVED.app.state.guard._failures = Limiter(1e9, 1e9)  # a wrong token goes with every other request here
    yield secret
    open_storage(url).close()


def example_of(body: str) -> dict[str, Any]:
    """The example that a request's description shows."""
    example: dict[str, Any] = DESCRIPTION["components"]["schemas"][body]["examples"][0]
    return example


# A description cannot say all that makes a request wrong (a trial that was never asked for, an arm that is unknown).
NOT_DESCRIBED = positive_data_acceptance
# Problems are read as the library reads them from Python and TOML: "0.2" is 0.2 there, and 3 arms need no names.
READ_FREELY = negative_data_rejection


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, on numbers at the end of the range
@schema.parametrize()
def test_every_operation_does_what_is_described(token: str, case: Case[Any]) -> None:
    creates = case.operation.label == "POST /studies"
    case.call_and_validate(
        headers={"Authorization": f"Bearer {token}"},
        excluded_checks=[NOT_DESCRIBED, READ_FREELY] if creates else [NOT_DESCRIBED],
    )


# -- what a description owes its readers ------------------------------------------------------------------------------

OPERATIONS = [(path, verb) for path, verbs in DESCRIPTION["paths"].items() for verb in verbs]


@pytest.mark.parametrize(("path", "verb"), OPERATIONS)
def test_every_operation_is_described(path: str, verb: str) -> None:
    operation = DESCRIPTION["paths"][path][verb]
    assert operation["summary"]
    assert operation["description"].endswith(".")
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        assert example_of(body["$ref"].rpartition("/")[2]) is not None
    for status, answer in operation["responses"].items():
        assert answer["description"], status
        if int(status) < 400 or path == "/healthz":  # which says in its own words what fails
            continue
        assert list(answer["content"]) == ["application/problem+json"]
        assert answer["content"]["application/problem+json"]["schema"] == {
            "$ref": "#/components/schemas/ProblemDocument"
        }


def test_every_example_is_accepted(start: Start, sqlite: str) -> None:
    secret = create_token(open_storage(sqlite), "admin", "admin")
    server = start(sqlite, secret)
    sent = set()

    def send(path: str, **known: str) -> dict[str, Any]:
        body = DESCRIPTION["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        sent.add(path)
        answer = server.post(path.format(study=1), {**example_of(body.rpartition("/")[2]), **known})
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document

    assert send("/studies")["id"] == 1
    assert send("/studies/{study}/ask")["trials"][0]["id"] == 1
    assert send("/studies/{study}/tell")["results"][0]["status"] == "recorded"
    assert send("/studies/{study}/observe")["trials"]
    assert send("/studies/{study}/stop")["status"]["state"] == "stopped"
    assert send("/session", token=secret)["signed_in"], "the one in the example is nobody's"
    wanting = {path for path, verb in OPERATIONS if "requestBody" in DESCRIPTION["paths"][path][verb]}
    assert sent == wanting


# -- what has gone wrong before, on both storages ---------------------------------------------------------------------


def send_text(server: Served, path: str, body: str) -> int:
    """Send a body letter by letter: what JSON can say and Python's own encoder would not."""
    answer = server.request("POST", path, content=body.encode(), headers={"Content-Type": "application/json"})
    if answer.status_code >= 400:
        assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    return answer.status_code


def test_odd_requests_are_refused_in_words(start: Start, storage: str) -> None:
    server = start(storage)
    assert server.post("/studies", new_study()).status_code == 201
    half, nul = r"\ud800", r"\u0000"
    for name in (half, nul, "", "\\n"):
        assert send_text(server, "/studies", json.dumps(new_study("?")).replace("?", name)) == 422
    assert send_text(server, "/studies", json.dumps(new_study("half")).replace("medium", half)) == 422
    assert send_text(server, "/studies", json.dumps(new_study("nul")).replace("medium", nul)) == 201, "odd, but text"
    few = json.dumps(new_study("few", problem={"arms": 3, "reward_std": 1, "delta": 0.1, "r": 1}))
    assert send_text(server, "/studies", few.replace("3", "3000000000000000000", 1)) == 422
    many = new_study("many", problem={**new_study()["problem"], "arms": ["a"] * 200_000})
    assert send_text(server, "/studies", json.dumps(many)) == 422
    assert send_text(server, "/studies/test/stop", f'{{"reason": "{half}"}}') == 422
    for what in (f'"costs": {{"{half}": 1}}', f'"{half}": 1', '"reward": true', '"reward": "0.5"', '"reward": 1e999'):
        assert send_text(server, "/studies/test/tell", f'{{"tells": [{{"trial": 1, {what}}}]}}') == 422
    huge = '{"tells": [{"trial": 1, "reward": 1' + 400 * "0" + "}]}"
    assert send_text(server, "/studies/test/tell", huge) == 422
    assert send_text(server, "/studies/test/ask", 100_000 * "[") == 400
    assert send_text(server, "/studies/test/ask", '{"n": ' + 10_000 * "9" + "}") == 400
    for path in ("/studies/%00", "/studies/%ff", "/studies/%0a", "/studies/99999999999999999999", "/studies/-1"):
        answer = server.get(path)
        assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json"), path
    assert server.post("/studies/nul/ask", {"n": 3}).json()["trials"][1]["arm"] == "\0"
    assert server.get("/studies/nul/view").status_code == 200
    assert [study["name"] for study in server.get("/studies").json()["studies"]] == ["nul", "test"]


def test_outcomes_at_the_end_of_the_range_leave_a_study_readable(start: Start, storage: str) -> None:
    server = start(storage)
    assert server.post("/studies", new_study()).status_code == 201
    trials = server.post("/studies/1/ask", {"n": 60}).json()["trials"]
    extremes = (1e100, -1e100, 5e-324, -0.0)
    tells = [
        {
            "trial": trial["id"],
            "reward": extremes[k % 4],
            "costs": {"price": extremes[k % 3], "latency": extremes[k % 4]},
        }
        for k, trial in enumerate(trials)
    ]
    assert server.post("/studies/1/tell", {"tells": tells}).status_code == 200
    for path in ("", "/view", "/recommendation", "/log", "/export", "/export?format=json"):
        answer = server.get(f"/studies/1{path}")
        assert answer.status_code == 200, (path, answer.text)
    told = {trial["id"]: trial for trial in load_study("test", storage).trials()}
    assert [told[tell["trial"]]["reward"] for tell in tells] == [tell["reward"] for tell in tells]


def test_a_wrong_method_is_told_the_right_ones(server: Served) -> None:
    answer = server.request("PUT", "/studies")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, POST")
    assert server.request("PUT", "/session").headers["Allow"] == "DELETE, GET, POST"


def test_made_up_methods_are_counted_together(server: Served) -> None:
    for name in ("BREW", "WHISK", "SIP"):
        assert server.request(name, "/studies").status_code == 405
    counted = server.get("/metrics").text
    assert 'method="other"' in counted
    assert "WHISK" not in counted
