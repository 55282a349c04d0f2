"""The client: it repeats what was lost, and nothing is counted twice."""

import socket
from collections.abc import Callable

import httpx
import pytest

from polyarm import Breaker, Client, Conflict, InvalidInput, ServiceError, load_study
from service.conftest import Served
from studies.worlds import World, make_problem, outcome


class Unreliable(httpx.BaseTransport):
    """A network that loses requests, loses answers, or answers in the server's place, as told."""

    def __init__(self, fate: Callable[[int, httpx.Request], str]) -> None:
        self._inner, self._fate, self.sent, self.lost = httpx.HTTPTransport(), fate, 0, 0

    def lose(self, request: httpx.Request, path: str) -> bool:
        """Whether this is the first request to a path: its answer is to get lost."""
        first = self.lost == 0 and request.url.path.endswith(path)
        self.lost += first
        return first

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        fate = self._fate(self.sent, request)
        if fate == "request lost":
            raise httpx.ConnectError("no route", request=request)
        if fate.isdigit():
            return httpx.Response(int(fate), headers={"Retry-After": "0"}, text="a proxy's page", request=request)
        answer = self._inner.handle_request(request)
        if fate == "answer lost":
            answer.read()
            answer.close()
            raise httpx.ReadError("reset", request=request)
        return answer

    def close(self) -> None:
        self._inner.close()


def odd_ones(fate: str) -> Callable[[int, httpx.Request], str]:
    return lambda sent, _: fate if sent % 2 else "fine"


@pytest.mark.parametrize("fate", ["answer lost", "request lost", "503", "502", "429"])
def test_what_is_lost_is_sent_again_and_counts_once(server: Served, fate: str) -> None:
    network = Unreliable(odd_ones(fate))
    with server.client(transport=network) as client:
        study = client.create_study(make_problem(), name="lossy", seed=5)
        world = World()
        for _ in range(4):
            trials = study.ask(3)
            assert {told.status for told in study.tell_many([world.pull(trial) for trial in trials])} == {"recorded"}
        study.observe_many([("large", *outcome(2, 99))])
        study.stop("enough")
        status = study.status()
    assert (status.asked, status.told, status.observed) == (12, 12, 1)
    assert status.pending == 0, "an ask whose answer was lost must not leave trials behind"
    kinds = [event.kind for event in load_study("lossy", server.storage).events()]
    assert kinds.count("stopped") == 1
    assert network.sent > 20


def test_a_lost_answer_does_not_acknowledge_the_breakers_alarm(server: Served) -> None:
    """The first resume lets the study run, a second would switch the alarm off: a repetition must not be a second."""
    problem = make_problem(r=0.001, constraints=[{"name": "price", "bound": 0.5, "std": 0.05}])
    with server.client() as client:
        study = client.create_study(problem, name="careful", seed=5, breaker=Breaker(control={"small": 1.0}))
        while study.status().tripped is None:
            study.tell_many([(t, 0.5, {"price": [0.4, 0.9, 0.9][t.arm_index]}) for t in study.ask(50)])
        study.stop("holidays")
    lossy = Unreliable(lambda _, request: "answer lost" if lossy.lose(request, "/resume") else "fine")
    with server.client(transport=lossy) as client:
        study = client.load_study("careful")
        study.resume()
        assert study.status().state == "tripped"
    assert lossy.lost == 1


def test_a_study_of_somebody_else_is_not_taken_for_ones_own(server: Served) -> None:
    with server.client() as client:
        client.create_study(make_problem(), name="same", seed=0)
    network = Unreliable(odd_ones("answer lost"))
    with server.client(transport=network) as client, pytest.raises(Conflict, match="exists already"):
        client.create_study(make_problem(r=0.3), name="same", seed=0)


def test_a_server_that_hangs_is_left_for_the_next(server: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client([url, server.url], patience=6.0) as client:
            assert client.list_studies() == []


def test_a_name_that_is_taken_by_somebody_else_is_an_error(server: Served) -> None:
    with server.client() as client:
        client.create_study(make_problem(), name="mine", seed=1)
    network = Unreliable(odd_ones("answer lost"))
    with server.client(transport=network) as client, pytest.raises(Conflict, match="exists already"):
        client.create_study(make_problem(), name="mine", seed=2)


def test_patience_ends(server: Served) -> None:
    dead, ill = Unreliable(lambda *_: "request lost"), Unreliable(lambda *_: "502")
    says = r"GET http://127.*/studies was not answered within 0.5 s: ConnectError"
    with Client(server.url, patience=0.5, transport=dead) as client, pytest.raises(ServiceError, match=says):
        client.list_studies()
    with Client(server.url, patience=0.3, transport=ill) as client, pytest.raises(ServiceError, match="proxy's page"):
        client.list_studies()


def test_a_mistake_is_raised_as_what_it_is_and_not_repeated(locked_server: Served) -> None:
    network = Unreliable(lambda *_: "fine")
    with locked_server.client(transport=network) as client:
        study = client.create_study(make_problem(), seed=5)
        before = network.sent
        with pytest.raises(InvalidInput, match="was never asked for"):
            study.tell(99, 0.5)
        assert network.sent == before + 1
    with Client(locked_server.url, "pa_wrong") as client, pytest.raises(ServiceError, match="token is unknown"):
        client.list_studies()
