"""A real browser for the tests of the dashboard, and somebody who feeds the studies that it shows."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from service.conftest import Served

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: Milliseconds that a page gets to show what is expected; kernels may have to be compiled first.
PATIENCE = 60_000.0

#: Noise of rewards and of costs in the studies that tests feed.
REWARD_STD, COST_STD = 0.2, 0.3
#: Reward and price of each arm: under a price of at most 1 the best mix is of the last two.
WORLD = {"small": (0.2, 0.2), "medium": (0.5, 0.5), "large": (0.9, 1.6)}


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A headless Chromium; without one, what needs it is skipped, and says so."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(
            "NO BROWSER: the dashboard is NOT tested on this machine; install chromium (apt-get install chromium)"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_OPTIONS)
        yield browser
        browser.close()


class Watched:
    """A tab of the browser whose requests and complaints are written down."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.expected_failures: set[int] = set()
        self._hosts: set[str] = set()
        self._complaints: list[str] = []
        self.page.on("request", self._note_request)
        self.page.on("console", self._note_message)
        self.page.on("pageerror", lambda error: self._complaints.append(str(error)))

    def expect_failures(self, *statuses: int) -> None:
        """Allow answers with these statuses; the browser reports each as an error of the page's."""
        self.expected_failures.update(statuses)

    def check(self, url: str) -> None:
        """Raise when the page has talked to another host, complained, or broken its content security policy."""
        assert self._hosts <= {urlsplit(url).netloc}, self._hosts
        assert self._complaints == []

    def _note_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("blob", "data"):
            self._hosts.add(parts.netloc)

    def _note_message(self, message: ConsoleMessage) -> None:
        foreseen = any(f"status of {status}" in message.text for status in self.expected_failures)
        if message.type in ("error", "warning") and not foreseen:
            self._complaints.append(message.text)


class Feeder:
    """Asks a study for trials through the API and tells their outcomes."""

    def __init__(self, server: Served, study: int, world: Mapping[str, tuple[float, float]] | None = None) -> None:
        self._server, self._path = server, f"/studies/{study}"
        self._world = WORLD if world is None else world
        self._rng = np.random.default_rng(7)

    def feed(self, count: int, cost: str | None = "price") -> bool:
        """Ask for trials and tell them; False when the exploration is over."""
        answer = self._server.post(f"{self._path}/ask", {"n": count})
        if answer.status_code == 409:
            return False
        trials = answer.raise_for_status().json()["trials"]
        tells = [{"trial": trial["id"], **self._pull(trial["arm"], cost)} for trial in trials]
        self._server.post(f"{self._path}/tell", {"tells": tells}).raise_for_status()
        return True

    def finish(self) -> None:
        """Feed the study until its explorer has stopped."""
        while self.feed(20):
            pass

    def status(self) -> dict[str, Any]:
        """Return how the study stands, as the API tells."""
        status: dict[str, Any] = self._server.get(self._path).json()["status"]
        return status

    def view(self) -> dict[str, Any]:
        """Return what its page has to show."""
        view: dict[str, Any] = self._server.get(f"{self._path}/view").json()
        return view

    def _pull(self, arm: str, cost: str | None) -> dict[str, Any]:
        reward, price = self._world[arm]
        outcome: dict[str, Any] = {"reward": reward + REWARD_STD * self._rng.standard_normal()}
        if cost is not None:
            outcome["costs"] = {cost: price + COST_STD * self._rng.standard_normal()}
        return outcome


def create_study(server: Served, name: str = "router", **changes: Any) -> int:
    """Create a study that takes some two hundred outcomes; `changes` are those of its problem."""
    problem = {
        "arms": list(WORLD),
        "reward_std": REWARD_STD,
        "delta": 0.05,
        "r": 0.1,
        "constraints": [{"name": "price", "bound": 1.0, "std": COST_STD}],
        **changes,
    }
    answer = server.post("/studies", {"name": name, "problem": problem, "seed": 1})
    study: int = answer.raise_for_status().json()["id"]
    return study
