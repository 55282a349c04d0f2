"""A client of the service, for programs: it retries, and never counts twice.

Every request that changes something carries a key of its own: repeated after a lost answer, it changes nothing and gets
that answer.
"""

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import httpx
from pydantic import TypeAdapter

from polyarm.errors import Conflict, InvalidInput, PolyarmError, ServiceError, UnknownStudy
from polyarm.problem import Problem
from polyarm.service.bodies import KINDS, RecommendationBody
from polyarm.studies.breaker import Breaker
from polyarm.studies.status import StudyStatus
from polyarm.studies.trial import Told, Trial

#: Temporary failures: another try may succeed.
_PASSING = frozenset({429, 502, 503, 504})
#: What was raised on the server, by the title of the problem.
_RAISED: dict[str, type[PolyarmError]] = {title: kind for kind, _, title in KINDS}
_STATUS = TypeAdapter(StudyStatus)


class Client:
    """A server of studies: `Client("http://127.0.0.1:8765", token="pa_...")`.

    Requests have keys of their own, so that a repeated one is never counted twice.

    Args:
        url: The address of a server, or of several with the same storage: if one fails, the next is tried.
        token: What `polyarm token create` printed; None for a server without tokens.
        patience: Seconds to try a request before giving up.
        timeout: Seconds to wait for one server if there are others.
        transport: How requests travel, for tests.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        token: str | None = None,
        *,
        patience: float = 300.0,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._urls = [one.rstrip("/") for one in ([url] if isinstance(url, str) else url)]
        if not self._urls:
            raise InvalidInput("url: expected the address of a server, or of several, got none")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(headers=headers, transport=transport)
        self._timeout = timeout
        self._turn = 0  # which of them answered last
        self._patience = patience

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def list_studies(self) -> list[dict[str, Any]]:
        """Return the studies of the server, by name."""
        found: list[dict[str, Any]] = self.request("GET", "/studies")["studies"]
        return found

    def create_study(
        self,
        problem: Problem,
        explorer: str = "certex",
        name: str | None = None,
        *,
        seed: int | None = None,
        lease: float | None = None,
        breaker: Breaker | None = None,
        **settings: Any,
    ) -> "RemoteStudy":
        """Create a study on the server.

        Name and seed are drawn here if they are not given: a repetition after a lost answer is recognised by them.

        Args:
            problem: The problem to explore.
            explorer: The name of an explorer that the server knows.
            name: The study's name on the server; drawn by default.
            seed: The seed of the explorer; drawn by default.
            lease: Seconds after which a trial that was not told is given up and its arm asked again; by default no
                trial is.
            breaker: When to fall back on a mix that is known to be safe; by default never.
            settings: The explorer's settings.
        """
        body = {
            "name": name or f"study-{secrets.token_hex(4)}",
            "problem": problem.model_dump(mode="json"),
            "explorer": explorer,
            "settings": settings,
            "seed": secrets.randbits(63) if seed is None else seed,
            "lease": lease,
            "breaker": None if breaker is None else breaker.model_dump(mode="json"),
        }
        tries = _Tries(self._patience)
        try:
            made = self._send("POST", "/studies", body, tries)
        except Conflict:
            found = None if tries.lost == 0 else self._find(body["name"])
            if found is None or not _is_as_stated(found["statement"], body):
                raise
            made = found  # an earlier try of ours went through; only its answer was lost
        return RemoteStudy(self, made["id"], made["name"])

    def load_study(self, name: str) -> "RemoteStudy":
        """Return a study by its name; raises `UnknownStudy` if there is none.

        Args:
            name: The study's name on the server.
        """
        found = self._find(name)
        if found is None:
            names = ", ".join(study["name"] for study in self.list_studies()[:20])
            raise UnknownStudy(f"no study {name!r} at {self._urls[0]}; there are: {names or 'none at all'}")
        return RemoteStudy(self, found["id"], found["name"])

    def _find(self, name: Any) -> dict[str, Any] | None:
        for study in self.list_studies():
            if study["name"] == name:
                found: dict[str, Any] = self.request("GET", f"/studies/{study['id']}")
                return found
        return None

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request until it is answered; raises what the server raised.

        Args:
            method: The HTTP method: GET, POST or DELETE.
            path: The path on the server, from the slash on: `/studies`.
            body: What to send, in plain JSON types; by default nothing.
        """
        return self._send(method, path, body, _Tries(self._patience))

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, tries: "_Tries") -> Any:
        headers = {"Idempotency-Key": secrets.token_urlsafe(16)} if method == "POST" else {}
        for _ in tries:
            turn = self._turn
            url = self._urls[turn % len(self._urls)] + path
            try:
                answer = self._http.request(
                    method, url, json=body, headers=headers, timeout=self._limit(tries.remaining)
                )
            except httpx.TransportError as error:
                tries.failed(f"{type(error).__name__}: {error}", lost=not isinstance(error, httpx.ConnectError))
            else:
                if answer.status_code not in _PASSING:
                    return _read(answer)
                tries.failed(_explain(answer)[1], lost=answer.status_code != 429, wait=_retry_after(answer))
            self._turn = turn + 1
        raise ServiceError(f"{method} {url} was not answered within {self._patience:g} s: {tries.reason}")

    def _limit(self, remaining: float) -> httpx.Timeout:
        """How long one try may take: all that is left, unless there are other servers to turn to."""
        others = len(self._urls) - 1
        longest = min(self._timeout, remaining / (1 + others)) if others else remaining
        return httpx.Timeout(max(longest, 1.0), connect=min(10.0, max(longest, 1.0)))


class RemoteStudy:
    """A study on a server: what `Study` does, over HTTP. Get one from `Client.create_study` or `Client.load_study`."""

    def __init__(self, client: Client, number: int, name: str) -> None:
        self._client, self.id, self.name = client, number, name

    def __repr__(self) -> str:
        return f"<RemoteStudy {self.name!r}>"

    def ask(self, n: int = 1) -> list[Trial]:
        """Hand out trials: pull each one's arm and tell its outcome, in any order, whenever it is known.

        Args:
            n: How many trials, 1 or more.
        """
        return [Trial.from_document(trial) for trial in self._post("ask", {"n": n})["trials"]]

    def tell(self, trial: Trial | int, reward: float | None = None, costs: Mapping[str, float] | None = None) -> Told:
        """Record the outcome of a trial, whole or in parts; the same again changes nothing and says so.

        Args:
            trial: The trial, or its number.
            reward: Its reward; None if it is not known yet.
            costs: Its costs by name of the unknown constraint, as far as they are known.
        """
        return self.tell_many([(trial, reward, costs)])[0]

    def tell_many(self, tells: Iterable[tuple[Trial | int, float | None, Mapping[str, float] | None]]) -> list[Told]:
        """Record many outcomes at once: all of them, or none if one is wrong.

        Args:
            tells: One `(trial, reward, costs)` per outcome, as for `tell`.
        """
        body = [
            {"trial": trial.id if isinstance(trial, Trial) else trial, "reward": reward, "costs": costs}
            for trial, reward, costs in tells
        ]
        return [Told.from_document(told) for told in self._post("tell", {"tells": body})["results"]]

    def observe_many(self, rows: Iterable[tuple[str, float, Mapping[str, float]]]) -> list[int]:
        """Record outcomes that nobody asked for: all of them, or none if one is wrong.

        Args:
            rows: One `(arm, reward, costs)` per outcome: the arm's name, the reward, the costs by name.
        """
        body = [{"arm": arm, "reward": reward, "costs": costs} for arm, reward, costs in rows]
        numbers: list[int] = self._post("observe", {"outcomes": body})["trials"]
        return numbers

    @property
    def stopped(self) -> bool:
        """Whether the explorer has finished: with an answer, or with a proof that there is none."""
        return self.status().stopped

    def status(self) -> StudyStatus:
        """Return the status of the study."""
        return _STATUS.validate_python(self._get("")["status"])

    def recommend(self) -> RecommendationBody:
        """Return the mix to choose now, and what is proved of it."""
        return RecommendationBody(**self._get("/recommendation"))

    def certificate(self) -> dict[str, Any]:
        """Return what was proved, with every number needed to check it: see `verify_certificate`."""
        document: dict[str, Any] = self._get("/certificate")
        return document

    def stop(self, reason: str = "") -> None:
        """Hand out no more trials until `resume`; outcomes are still taken.

        Args:
            reason: Why, for the log; by default nothing.
        """
        self._post("stop", {"reason": reason})

    def resume(self) -> None:
        """Go on after `stop`, `archive`, or the breaker."""
        self._post("resume")

    def archive(self) -> None:
        """Close the study until `resume`."""
        self._post("archive")

    def _get(self, path: str) -> Any:
        return self._client.request("GET", f"/studies/{self.id}{path}")

    def _post(self, verb: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._client.request("POST", f"/studies/{self.id}/{verb}", body)


class _Tries:
    """One request's tries: waits longer after each, and ends when patience does."""

    def __init__(self, patience: float) -> None:
        self._end = time.monotonic() + patience
        self._pause = 0.1
        self.reason = ""
        self.lost = 0  # tries that may have gone through, though their answer did not come

    @property
    def remaining(self) -> float:
        """Seconds until patience ends."""
        return max(self._end - time.monotonic(), 0.0)

    def __iter__(self) -> Iterator[None]:
        yield
        while time.monotonic() + self._pause < self._end:
            # Clients that failed together must not come back together.
            time.sleep(self._pause * (0.5 + secrets.randbelow(1000) / 1000))
            self._pause = min(2.0 * self._pause, 5.0)
            yield

    def failed(self, reason: str, lost: bool, wait: float = 0.0) -> None:
        """Note why a try failed, and how long the server asks to wait."""
        self.reason, self.lost, self._pause = reason, self.lost + lost, max(self._pause, wait)


def _is_as_stated(statement: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether a study was created by this very request."""
    same = all(statement[name] == body[name] for name in ("problem", "explorer", "seed", "lease", "breaker"))
    return same and all(statement["settings"].get(name) == value for name, value in body["settings"].items())


def _read(answer: httpx.Response) -> Any:
    if answer.is_success:
        return answer.json() if answer.content else None
    title, detail = _explain(answer)
    raise _RAISED.get(title, ServiceError)(detail)


def _explain(answer: httpx.Response) -> tuple[str, str]:
    """The title and the sentence of an error."""
    try:
        document = answer.json()
        return str(document["title"]), str(document["detail"])
    except (ValueError, KeyError, TypeError):  # not from our server: a proxy's page
        return "", f"status {answer.status_code}: {answer.text[:200]}"


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), 60.0) if text.isdigit() else 0.0
