"""The dashboard in a real browser: created in it, fed from outside, watched live, and never trusted with markup."""

import itertools
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from polyarm import verify_certificate
from polyarm.service.access import create_token
from polyarm.studies.storage import open_storage
from service.browser import PATIENCE, WORLD, Feeder, Watched, create_study, open_browser
from service.conftest import Served

expect.set_options(timeout=PATIENCE)

NASTY = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def watched(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Watched]:
    """A tab, which must not have talked to others, complained or broken its content security policy in the end."""
    locked = "locked_server" in request.fixturenames
    server: Served = request.getfixturevalue("locked_server" if locked else "server")
    context = browser.new_context(base_url=server.url, color_scheme="light", viewport={"width": 1280, "height": 900})
    tab = Watched(context)
    yield tab
    context.close()
    tab.check(server.url)


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page


def open_study(page: Page, study: int) -> None:
    page.goto(f"/#/study/{study}")
    expect(page.locator(".live")).to_have_text("Live")


def state_line(page: Page) -> str:
    return page.locator(".state-line").inner_text()


def fill_form(page: Page, name: str) -> None:
    """State the problem of `create_study` in the form."""
    page.get_by_label("Name", exact=True).first.fill(name)
    page.get_by_role("button", name="Add an arm").click()
    for number, arm in enumerate(WORLD, 1):
        page.get_by_label(f"Arm {number}", exact=True).fill(arm)
    page.get_by_label("Noise of one reward (std)").fill("0.2")
    page.get_by_role("button", name="Add a constraint").click()
    constraint = page.get_by_role("group", name="Constraint 1")
    constraint.get_by_label("Name").fill("price")
    constraint.get_by_label("Bound").fill("1")
    constraint.get_by_label("Noise of a cost (std)").fill("0.3")
    page.get_by_label("Tolerance r").fill("0.1")


def test_from_the_first_page_to_the_certificate(server: Served, page: Page, tmp_path: Path) -> None:
    page.goto("/")
    expect(page.get_by_text("no tokens: this server listens on this machine only")).to_be_visible()
    page.get_by_role("link", name="Create the first study").click()
    fill_form(page, "router")
    page.get_by_text("Advanced", exact=True).click()
    page.get_by_label("Lease of a trial").fill("2")
    page.get_by_label("Unit").select_option("days")
    page.get_by_label("Share of small, in %").fill("100")
    page.get_by_role("button", name="Create the study").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("router")
    expect(page.locator(".state-line")).to_have_text("Exploring: no outcomes yet")

    found = re.search(r"#/study/(\d+)$", page.url)
    assert found is not None
    study = int(found[1])
    statement = server.get(f"/studies/{study}").json()["statement"]
    assert statement["problem"]["arms"] == list(WORLD)
    assert statement["problem"]["constraints"][0]["bound"] == 1.0
    assert statement["lease"] == 2 * 86400
    assert statement["breaker"]["control"]["small"] == 1.0

    certificate = page.get_by_role("button", name="Download certificate")
    expect(certificate).to_be_disabled()
    page.evaluate("window.sameDocument = true")
    feeder = Feeder(server, study)
    feeder.finish()
    expect(page.locator(".state")).to_have_class(re.compile("answered"))
    assert state_line(page).startswith("Answered: proved with")
    expect(page.get_by_role("status")).to_contain_text("Answered: proved")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    assert page.evaluate("window.sameDocument"), "the page was reloaded"

    with page.expect_download() as waiting:
        certificate.click()
    waiting.value.save_as(tmp_path / "certificate.json")
    document = json.loads((tmp_path / "certificate.json").read_text())
    verdict = verify_certificate(document)
    assert verdict.valid, verdict.faults
    assert verdict.proved
    shares = feeder.view()["mix"]["shares"]
    assert document["policy"] == pytest.approx(shares)
    row = page.get_by_role("row", name=re.compile("^medium"))
    expect(row.first).to_contain_text(f"{100 * shares['medium']:.1f}%")


def test_numbers_and_charts_move_without_a_reload(server: Served, page: Page) -> None:
    study = create_study(server)
    feeder = Feeder(server, study)
    open_study(page, study)
    page.evaluate("window.sameDocument = true")
    expect(page.get_by_text("Drawn once every arm has an outcome")).to_be_visible()
    feeder.feed(60)
    expect(page.get_by_text(f"{feeder.status()['used']} outcomes used so far")).to_be_visible()
    assert re.match(r"Exploring: (up to )?about [\d,]+( to [\d,]+)? outcomes to go", state_line(page))

    reward = page.get_by_role("img", name=re.compile("^Reward by arm"))
    region = page.locator("svg polygon.optimistic")
    line = page.locator(".plot path.statistic").first
    before = {
        "reward": reward.get_attribute("aria-label"),
        "region": region.get_attribute("points"),
        "line": line.get_attribute("d"),
        "log": page.locator(".log time").first.get_attribute("datetime") or "",
    }
    # Somebody reads on meanwhile: a table is open, something has the focus, the page is scrolled.
    table = page.locator(".table-details").first
    table.locator("summary").click()
    page.evaluate("scrollTo(0, 500)")
    feeder.feed(60)
    expect(page.get_by_text(f"{feeder.status()['used']} outcomes used so far")).to_be_visible()
    expect(reward).not_to_have_attribute("aria-label", before["reward"] or "")
    expect(region).not_to_have_attribute("points", before["region"] or "")
    expect(line).not_to_have_attribute("d", before["line"] or "")
    expect(page.locator(".log time").first).not_to_have_attribute("datetime", before["log"])
    assert page.evaluate("window.sameDocument"), "the page was reloaded"
    assert page.evaluate("scrollY") == 500
    assert table.evaluate("table => table.open && document.activeElement === table.querySelector('summary')")


def test_the_charts_show_what_the_api_says(server: Served, page: Page) -> None:
    study = create_study(server)
    feeder = Feeder(server, study)
    feeder.feed(90)
    open_study(page, study)
    view = feeder.view()
    # The mix lies in the triangle where its shares put it.
    corners = np.array(
        page.locator("svg polygon.axis").evaluate("node => [...node.points].map(({x, y}) => [x, y])"), dtype=float
    )
    shares = np.array([view["mix"]["shares"][arm] for arm in view["problem"]["arms"]])
    point = page.locator("svg .mix circle.mix-point").evaluate("node => [node.cx.baseVal.value, node.cy.baseVal.value]")
    assert np.allclose(point, shares @ corners, atol=0.05)
    # So do the sets: their corners, no more and no less.
    for name in ("optimistic", "estimated", "pessimistic"):
        expected = np.array(view["region"][name]) @ corners
        drawn = page.locator(f"svg polygon.{name}").evaluate("node => [...node.points].map(({x, y}) => [x, y])")
        apart = np.abs(np.array(drawn)[:, None] - expected[None]).max(axis=2)
        assert apart.min(axis=1).max() < 0.05
    label = page.get_by_role("img", name=re.compile("^Cost price by arm")).get_attribute("aria-label")
    assert label is not None
    assert "Bound: ≤ 1." in label
    for arm, interval in view["intervals"]["costs"]["price"].items():
        numbers = re.search(rf"{arm}: about (\S+), between (\S+) and (\S+) \(95%\)[;.]", label)
        assert numbers is not None, label
        shown = [float(text.replace("\N{MINUS SIGN}", "-")) for text in numbers.groups()]
        assert shown == pytest.approx([interval["mean"], interval["low"], interval["high"]], rel=1e-3)
    slack = page.get_by_role("row", name=re.compile("^price ≤ 1"))
    expect(slack).to_contain_text(f"{view['mix']['slack']['price']:.4g}")


#: Draws a chart alone on the page, at a width of 600, from what `update` takes.
_DRAW = """async ([options, data]) => {
  const { makeLineChart } = await import("/static/js/charts/line_chart.js");
  const chart = makeLineChart(options);
  const frame = document.createElement("div");
  frame.id = "drawn";
  frame.style.width = "600px";
  frame.append(chart.node);
  document.querySelector("main").replaceChildren(frame);
  chart.update(data);
  window.chart = chart;
}"""
_TWO_LINES: dict[str, Any] = {
    "name": "Two lines",
    "series": [{"label": "first", "look": "series-1"}, {"label": "second", "look": "series-2 dash-1"}],
    "bands": [{"from": 0, "to": 1, "look": "series-1"}],
    "height": 200,
}
#: What stands for a missing value.
UNKNOWN = "\N{EN DASH}"
_STEPS = [10, 20, 30, 40, 50, 60]
_FIRST = [1.0, 2.0, None, 3.0, None, 5.0]
_SECOND = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
_DATA: dict[str, Any] = {
    "steps": _STEPS,
    "lines": [_FIRST, _SECOND],
    "range": {"x": [0, 60], "y": [0, 6]},
    "shade": [45, 90],
    "label": "Two lines, in words.",
}


def draw_lines(page: Page, **changes: Any) -> Locator:
    """Draw two lines of six values, some of them missing."""
    page.goto("/")
    expect(page.get_by_role("link", name="Create the first study")).to_be_visible()
    page.evaluate(_DRAW, [_TWO_LINES, _DATA | changes])
    chart = page.locator("#drawn")
    expect(chart.locator("path.series-1").first).to_be_attached()
    return chart


def points_of(path: Locator) -> list[list[list[float]]]:
    """The points of a path, piece by piece."""
    pieces = (path.get_attribute("d") or "").split("M")[1:]
    return [[[float(part) for part in point.split(",")] for point in piece.split("L")] for piece in pieces]


def test_lines_have_gaps_where_values_are_missing(server: Served, page: Page) -> None:
    chart = draw_lines(page)
    expect(chart.get_by_role("img")).to_have_accessible_name("Two lines, in words.")
    (whole,) = points_of(chart.locator("path.series-2"))
    (piece,) = points_of(chart.locator("path.series-1"))
    dots = chart.locator("circle.series-1").evaluate_all(
        "nodes => nodes.map(({ cx, cy }) => [cx.baseVal.value, cy.baseVal.value])"
    )
    assert (len(whole), len(piece), len(dots)) == (6, 2, 2)
    # One straight scale for either axis fits all that is drawn.
    across, up = np.polyfit(_STEPS, [x for x, _ in whole], 1), np.polyfit(_SECOND, [y for _, y in whole], 1)
    assert across[0] > 0
    assert up[0] < 0
    expected = [(step, value) for step, value in zip(_STEPS, _FIRST, strict=True) if value is not None]
    for (step, value), (x, y) in zip(expected, [*piece, *dots], strict=True):
        assert x == pytest.approx(np.polyval(across, step), abs=0.11)
        assert y == pytest.approx(np.polyval(up, value), abs=0.11)
    areas = chart.locator("polygon.band").evaluate_all("nodes => nodes.map((node) => node.points.length)")
    assert areas == [4, 2, 2]
    # The shade ends with the axis, and the ticks are where the lines say they are.
    left, width = chart.locator("rect.eta").evaluate("({ x, width }) => [x.baseVal.value, width.baseVal.value]")
    assert left == pytest.approx(np.polyval(across, 45), abs=0.11)
    assert left + width == pytest.approx(np.polyval(across, 60), abs=0.11)
    ticks = chart.locator("text.tick[text-anchor=middle]").evaluate_all(
        "nodes => nodes.map((node) => [Number(node.textContent), node.x.baseVal[0].value])"
    )
    assert [value for value, _ in ticks] == [0, 10, 20, 30, 40, 50, 60]
    assert [x for _, x in ticks] == pytest.approx([np.polyval(across, value) for value, _ in ticks], abs=0.11)
    levels = chart.locator("text.tick[text-anchor=end]").evaluate_all(
        "nodes => nodes.map((node) => [Number(node.textContent), node.y.baseVal[0].value])"
    )
    assert len(levels) >= 3
    assert [y for _, y in levels] == pytest.approx([np.polyval(up, value) for value, _ in levels], abs=0.11)


#: The chart's left, right, top and bottom, and the same of its ticks, those of either axis for themselves.
_TICKS = """() => {
  const edges = (node) => {
    const { left, right, top, bottom } = node.getBoundingClientRect();
    return [left, right, top, bottom];
  };
  const ticks = (anchor) => [...document.querySelectorAll(`#drawn text.tick[text-anchor=${anchor}]`)].map(edges);
  return [edges(document.querySelector("#drawn .plot")), ticks("middle"), ticks("end")];
}"""


def test_ticks_stay_apart_and_inside_at_any_size(server: Served, page: Page) -> None:
    for most, top in ((1, 1e-9), (3, 0.00042), (9_999, 31.4), (1_000_000, 123_456.0), (40_000_000, 2e9)):
        ranges = {"x": [0, most], "y": [0, top]}
        chart = draw_lines(page, steps=[most], lines=[[top], [None]], range=ranges)
        for width in (600, 300):
            chart.evaluate("(node, width) => { node.style.width = `${width}px`; }", width)
            page.wait_for_function(_FITS)
            (left, right, upper, lower), columns, levels = page.evaluate(_TICKS)
            for box in columns + levels:
                assert left - 0.5 <= box[0] < box[1] <= right + 0.5, (most, width)
                assert upper - 0.5 <= box[2] < box[3] <= lower + 0.5, (most, width)
            assert min(len(columns), len(levels)) >= 2, (most, width)
            assert all(here[1] + 4 < after[0] for here, after in itertools.pairwise(columns)), (most, width)
            assert all(above[3] < here[2] for here, above in itertools.pairwise(levels)), (most, width)


def test_values_are_read_with_keys(server: Served, page: Page) -> None:
    chart = draw_lines(page)
    slider = chart.get_by_role("slider", name="Two lines: read values")
    said = "after {} outcomes: first {}, second {}"
    expect(slider).to_have_attribute("aria-valuetext", said.format(60, 5, 2.5))
    assert chart.locator(".marker > *").count() == 0
    page.keyboard.press("Tab")
    while not slider.evaluate("node => node === document.activeElement"):
        page.keyboard.press("Tab")
    for key, step, first, second in (
        ("ArrowLeft", 50, "unknown", 2),
        ("ArrowDown", 40, 3, 1.5),
        ("Home", 10, 1, 0),
        ("ArrowLeft", 10, 1, 0),
        ("ArrowRight", 20, 2, 0.5),
        ("ArrowUp", 30, "unknown", 1),
        ("PageUp", 60, 5, 2.5),
        ("PageDown", 10, 1, 0),
        ("End", 60, 5, 2.5),
        ("ArrowLeft", 50, "unknown", 2),
    ):
        page.keyboard.press(key)
        expect(slider).to_have_attribute("aria-valuetext", said.format(step, first, second))
        expect(slider).to_have_attribute("aria-valuenow", str(step))
    assert page.evaluate("scrollY") == 0
    expect(chart.locator(".legend")).to_have_text(f"first{UNKNOWN}second2after 50 outcomes")
    expect(chart.locator(".marker circle")).to_have_count(1)
    # News leave the reader where it looks.
    page.evaluate("data => window.chart.update(data)", _DATA | {"lines": [_FIRST, [value + 1 for value in _SECOND]]})
    expect(slider).to_be_focused()
    expect(slider).to_have_attribute("aria-valuetext", said.format(50, "unknown", 3))
    slider.evaluate("node => node.blur()")
    expect(slider).to_have_attribute("aria-valuetext", said.format(60, 5, 3.5))
    assert chart.locator(".marker > *").count() == 0


def test_values_are_read_with_the_pointer(server: Served, page: Page) -> None:
    chart = draw_lines(page)
    box = chart.locator(".plot").bounding_box()
    assert box is not None
    (line,) = points_of(chart.locator("path.series-2"))
    for step, first, second, (x, _) in zip(_STEPS, _FIRST, _SECOND, line, strict=True):
        page.mouse.move(box["x"] + x + 4, box["y"] + 50)
        shown = UNKNOWN if first is None else f"{first:g}"
        expect(chart.locator(".legend")).to_have_text(f"first{shown}second{second:g}after {step} outcomes")
        mark = chart.locator(".marker line")
        assert mark.evaluate("node => node.x1.baseVal.value") == pytest.approx(x, abs=0.11)
        expect(chart.locator(".marker circle")).to_have_count(1 if first is None else 2)
    page.mouse.move(box["x"] + line[1][0], box["y"] + 50)
    page.mouse.move(box["x"] + 50, box["y"] + box["height"] + 200)
    expect(chart.locator(".legend")).to_have_text("first5second2.5after 60 outcomes")
    expect(chart.locator(".marker > *")).to_have_count(0)


def test_a_chart_without_values_has_nothing_to_read(server: Served, page: Page) -> None:
    chart = draw_lines(page, steps=[], lines=[[], []], shade=None)
    expect(chart.get_by_role("slider")).to_have_count(0)
    expect(chart.locator(".legend")).to_have_text(f"first{UNKNOWN}second{UNKNOWN}")
    page.evaluate("data => window.chart.update(data)", _DATA)
    expect(chart.get_by_role("slider")).to_have_count(1)


#: The colours of lines, and of what lies below them, as red, green and blue.
_COLOURS = """() => {
  const read = (node, name) => getComputedStyle(node)[name].match(/[0-9.]+/g).slice(0, 3).map(Number);
  const line = document.querySelector("#drawn path.line");
  const looks = ["statistic", "threshold", "eta", ...[1, 2, 3, 4, 5, 6].map((i) => `series-${i}`)];
  const colours = looks.map((look) => {
    line.setAttribute("class", `line ${look}`);
    return [look, read(line, "stroke")];
  });
  const ground = document.createElement("div");
  ground.className = "panel";
  document.querySelector("main").append(ground);
  return [read(ground, "backgroundColor"), colours];
}"""


def luminance(colour: list[float]) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    shares = [value / 255 for value in colour]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_stand_out_from_the_page(server: Served, page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    draw_lines(page)
    ground, colours = page.evaluate(_COLOURS)
    assert (luminance(ground) > 0.5) == (scheme == "light")
    for look, colour in colours:
        low, high = sorted([luminance(ground), luminance(colour)])
        assert (high + 0.05) / (low + 0.05) >= 3.0, (look, colour)
    series = [tuple(colour) for look, colour in colours if look.startswith("series")]
    assert len(set(series)) == len(series)


def test_studies_of_other_shapes(server: Served, watched: Watched) -> None:
    page = watched.page
    two = create_study(server, "two", arms=["a", "b"], constraints=[])
    Feeder(server, two, {"a": (0.5, 0.0), "b": (0.45, 0.0)}).feed(8, cost=None)
    many = create_study(server, "many", arms=[f"arm {i}" for i in range(20)], r=0.5)
    Feeder(server, many, {f"arm {i}": (0.1 * i, 0.1 * i) for i in range(20)}).feed(60)
    empty = create_study(server, "empty", constraints=[{"name": "weight", "bound": 0.5, "row": [0.1, 0.4, 0.9]}])
    impossible = create_study(server, "impossible", constraints=[{"name": "price", "bound": -1.0, "std": 0.3}])
    Feeder(server, impossible).finish()

    open_study(page, two)
    expect(page.locator("svg path.mix-line, svg rect.optimistic").first).to_be_visible()
    expect(page.get_by_role("heading", name="Slack and prices")).to_have_count(0)
    open_study(page, many)
    expect(page.get_by_role("img", name=re.compile("^Reward by arm")).locator("circle")).to_have_count(20)
    open_study(page, empty)
    expect(page.get_by_text("Drawn once every arm has an outcome")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Cost weight by arm"))).to_be_visible()
    open_study(page, impossible)
    assert state_line(page).startswith("Infeasible: proved")
    expect(page.get_by_role("button", name="Download certificate")).to_be_enabled()
    watched.expect_failures(404)
    page.goto("/#/study/999")
    expect(page.get_by_role("heading", level=1)).to_have_text("No such study")


LEASES = "outcomes come in time whatever their value"


def claim(kind: str, text: str = "the mix is fine", why: str | None = None, **changes: Any) -> dict[str, Any]:
    """A claim as the server tells it."""
    about, confidence = "feasible", None
    return {
        "about": about,
        "kind": kind,
        "text": text,
        "confidence": confidence,
        "assumptions": [],
        "why": why,
    } | changes


ALARM = claim("proved", "the sampling breaks price by at least 0.125", confidence=0.95)
#: What the server may say of a study, and how the page puts it.
STATES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"expected_stop": [29.4, 1234.0]}, {}, "Exploring: up to about 1,200 outcomes to go", "used so far."),
    ({"expected_stop": None}, {}, "Exploring: too early to say how long", "used so far."),
    (
        {"state": "tripped", "tripped": {"price": 0.125}, "alarm": ALARM},
        {},
        "Circuit breaker tripped: trials follow the control mix",
        "Proved: the sampling breaks price by at least 0.125 with confidence 95%.",
    ),
    (
        {"state": "tripped", "tripped": {"price": 0.125}, "alarm": ALARM, "assumptions": [LEASES]},
        {},
        "Circuit breaker tripped: trials follow the control mix",
        "price by at least 0.125 with confidence 95%, if what is assumed holds.",
    ),
    (
        {"state": "infeasible", "assumptions": [LEASES]},
        {"kind": "none", "shares": None, "claims": [claim("proved", "no mix is feasible", assumptions=[LEASES])]},
        "Infeasible: proved with 30 outcomes that no mix satisfies every constraint",
        "If what is assumed below holds.",
    ),
    (
        {"state": "answered", "assumptions": [LEASES]},
        {"claims": [claim("proved", assumptions=[LEASES]), claim("none", LEASES, "unknown", about="assumption")]},
        "Answered: proved with 30 outcomes",
        "Proved, if what is assumed below holds: the mix is fine.",
    ),
    (
        {"state": "answered"},
        {"claims": [claim("proved", "the known constraints hold"), claim("none", why="an estimate")]},
        "Answered with 30 outcomes, but not proved",
        "Not proved: the mix is fine: an estimate.",
    ),
    (
        {"state": "archived", "statistic": None, "threshold": None, "waiting_for": None},
        {"shares": None, "value": None, "value_interval": None, "slack": None, "slack_low": None, "kind": "none"},
        "Archived: no trials, no outcomes",
        "Resume to open it again.",
    ),
]


def answer_with(said: dict[str, Any], route: Route) -> None:
    route.fulfill(json=said)


def show_view(page: Page, study: int, view: dict[str, Any]) -> None:
    """Open the page of a study as if the server had said this of it."""
    page.unroute("**/view")
    page.route("**/view", partial(answer_with, view))
    open_study(page, study)
    page.reload()
    expect(page.locator(".live")).to_have_text("Live")


def view_after(server: Served, outcomes: int, **stated: Any) -> tuple[int, dict[str, Any]]:
    """Feed a new study and return what the server says of it."""
    study = create_study(server, **stated)
    feeder = Feeder(server, study)
    feeder.feed(outcomes)
    return study, feeder.view()


def test_every_state_is_put_in_words(server: Served, page: Page) -> None:
    study = create_study(server)
    feeder = Feeder(server, study)
    feeder.feed(30)
    for status, mix, headline, detail in STATES:
        view = feeder.view()
        view["status"] |= {"used": 30, **status}
        view["mix"] |= mix
        show_view(page, study, view)
        expect(page.locator(".state-line")).to_have_text(headline)
        expect(page.locator(".state-detail")).to_contain_text(detail)


#: Words that nothing but a proof without conditions could bear.
OVERSTATED = re.compile("surely|certain|no mix can be|set the data allow", re.IGNORECASE)
PROVED: dict[str, Any] = {"claims": [claim("proved")], "bounds": "proved"}
UNPROVED: dict[str, Any] = {"claims": [claim("stylised", why="no proof")], "bounds": "stylised"}
NO_MIX: dict[str, Any] = {
    **dict.fromkeys(("shares", "value", "value_interval", "slack", "slack_low"), None),
    **{"kind": "none", "claims": [], "bounds": "none"},
}
#: State, mix and sets that are empty, and what the page says beside the sets.
GAPS: list[tuple[str, dict[str, Any], tuple[str, ...], str]] = [
    (
        "answered",
        {"kind": "answer", **PROVED},
        ("pessimistic",),
        "At worst, the intervals leave no mix; the explorer's own proof is sharper and has found one.",
    ),
    (
        "exploring",
        {"kind": "safe", "claims": [claim("proved"), claim("none", "the best", "not stopped", about="near-optimal")]},
        ("pessimistic",),
        "At worst, the intervals leave no mix; the explorer's own proof is sharper and has found one.",
    ),
    ("answered", {"kind": "answer", **UNPROVED}, ("pessimistic",), "At worst, the intervals leave no mix."),
    ("exploring", {"kind": "candidate", **PROVED}, ("pessimistic",), "At worst, the intervals leave no mix."),
    (
        "exploring",
        NO_MIX,
        ("pessimistic", "estimated", "optimistic"),
        "The intervals leave no mix (99.9%); the explorer has not finished its own proof.",
    ),
    (
        "exploring",
        {"kind": "safe", **PROVED},
        ("pessimistic", "estimated", "optimistic"),
        "The intervals leave no mix (99.9%), though the explorer has found one.",
    ),
    (
        "infeasible",
        {**NO_MIX, "claims": [claim("proved", "no mix is feasible", about="infeasible")]},
        ("pessimistic", "estimated"),
        "The explorer's own proof is sharper than these sets: it leaves no mix.",
    ),
    (
        "archived",
        {**NO_MIX, "claims": [claim("proved", "no mix is feasible", about="infeasible")]},
        ("pessimistic", "estimated", "optimistic"),
        "The intervals leave no mix (99.9%).",
    ),
    ("exploring", {"kind": "candidate", **PROVED}, (), ""),
]


def panel_of(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


def said_aloud(page: Page) -> str:
    """Everything that the page says, to those who see it, hear it or point at it."""
    labels: list[str] = page.locator("main [aria-label]").evaluate_all("nodes => nodes.map(n => n.ariaLabel)")
    titles: list[str] = page.locator("main [title]").evaluate_all("nodes => nodes.map(n => n.title)")
    text = page.locator("main").evaluate("node => node.textContent")
    return " ".join([text, *labels, *titles])


def test_the_sets_claim_no_more_than_the_intervals(server: Served, page: Page) -> None:
    study, view = view_after(server, 90, delta=0.001)
    assert view["status"]["assumptions"] == []
    for state, mix, empty, words in GAPS:
        said = view | {
            "status": view["status"] | {"state": state},
            "mix": view["mix"] | mix,
            "region": view["region"] | {name: [] for name in empty},
        }
        show_view(page, study, said)
        region = panel_of(page, "Feasible mixes")
        expect(region.locator("p.muted").first).to_have_text(words)
        assert OVERSTATED.search(said_aloud(page)) is None
        if len(empty) < 3:
            for label in ("feasible at best", "by the estimates", "feasible at worst"):
                expect(region.locator(".legend")).to_contain_text(label)
            expect(region).to_contain_text("with confidence 99.9%. An explorer's own proof is often sharper")


def test_what_is_assumed_is_said_wherever_it_matters(server: Served, page: Page) -> None:
    study, view = view_after(server, 120)
    view["mix"] |= {"kind": "safe", **PROVED}
    rested = {
        "Mix and allocation": 2,
        "Feasible mixes": 1,
        "Reward of each arm": 1 + 1 + len(WORLD),
        "Cost of each arm": 1 + 1 + len(WORLD),
        "Slack and prices": 1,
    }
    place = "(listed under “What is proved”)"
    for assumptions in ([], [LEASES]):
        view["status"]["assumptions"] = assumptions
        show_view(page, study, view)
        mix = panel_of(page, "Mix and allocation")
        trust = "95%, if what is assumed holds" if assumptions else "95%"
        expect(mix).to_contain_text(f"The best mix so far that is proved feasible ({trust})")
        expect(mix.locator(".mix-value")).to_have_text(re.compile(rf"about \S+, between \S+ and \S+ \({trust}\)\.$"))
        expect(panel_of(page, "Reward of each arm")).to_contain_text(
            f"hold at once, at all times, with confidence {trust}{f' {place}' if assumptions else ''}."
        )
        expect(page.get_by_role("img", name=re.compile("^Cost price by arm"))).to_be_visible()
        for title, count in rested.items():
            text = panel_of(page, title).evaluate("node => node.textContent")
            assert text.count("95%") >= 1, title
            assert text.count("if what is assumed holds") == (count if assumptions else 0), title
        listed = panel_of(page, "What is proved").get_by_role("heading", name="Assumed", exact=True)
        expect(listed).to_have_count(len(assumptions))
        assert OVERSTATED.search(said_aloud(page)) is None


def test_bounds_without_a_proof_are_called_so(server: Served, page: Page) -> None:
    study, view = view_after(server, 90)
    view["mix"] |= {"kind": "safe", **UNPROVED}
    show_view(page, study, view)
    mix = panel_of(page, "Mix and allocation")
    expect(mix).to_contain_text("The best mix so far that seems feasible (not proved)")
    expect(mix.locator(".mix-value")).to_contain_text("(not proved).")
    expect(panel_of(page, "Slack and prices")).to_contain_text("the least that it may be (not proved)")


@pytest.mark.parametrize("kind", ["proved", "asymptotic", "stylised", "none"])
def test_proved_is_said_exactly_where_the_kind_is_proved(server: Served, page: Page, kind: str) -> None:
    study, view = view_after(server, 90)
    proved = kind == "proved"
    # Words that look like a proof, or like none, decide nothing.
    said = claim(kind, "the mix: stylised thresholds, without a proof", None if proved else "proved", confidence=0.95)
    for mix_kind, state, found in (("answer", "answered", "proved with 30"), ("safe", "exploring", "proved feasible")):
        view["status"] |= {"state": state, "used": 30}
        view["mix"] |= {"kind": mix_kind, "claims": [said], "bounds": kind}
        show_view(page, study, view)
        expect(page.locator(f".claims.{'proved' if proved else 'missing'} li")).to_have_count(1)
        expect(page.locator(f".claims.{'missing' if proved else 'proved'} li")).to_have_count(0)
        shown = page.locator("main").evaluate("node => node.textContent")
        assert (found in shown) == proved
        assert f"with confidence 95%{', as outcomes become many' if kind == 'asymptotic' else ''}" in shown, shown
        trust = {"proved": "(95%)", "asymptotic": "(95%, as outcomes become many)"}.get(kind, "(not proved)")
        expect(page.locator(".mix-value")).to_contain_text(trust)


def test_a_confidence_is_never_rounded_up(server: Served, page: Page) -> None:
    page.goto("/")
    shown = page.evaluate(
        "async deltas => deltas.map((await import('/static/js/format.js')).formatConfidence)",
        [0.05, 0.07, 0.1, 0.001, 1e-5, 0.00004, 0.29],
    )
    assert shown == ["95%", "93%", "90%", "99.9%", "99.999%", "99.996%", "71%"]


def test_names_are_text(server: Served, page: Page) -> None:
    arms = [NASTY, '"><svg onload="window.hacked=1">', "x" * 200]
    study = create_study(server, NASTY, arms=arms, constraints=[{"name": NASTY, "bound": 1.0, "std": 0.3}])
    Feeder(server, study, dict.fromkeys(arms, (0.5, 0.5))).feed(30, cost=NASTY)
    server.post(f"/studies/{study}/stop", {"reason": NASTY}).raise_for_status()
    page.goto("/")
    expect(page.get_by_role("link", name=NASTY, exact=True)).to_be_visible()
    open_study(page, study)
    expect(page.get_by_role("heading", level=1)).to_have_text(NASTY)
    expect(page.locator(".log")).to_contain_text(f"Stopped by hand: {NASTY}")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img, main b").count() == 0
    page.set_viewport_size({"width": 360, "height": 740})
    assert not overflows(page)


def test_the_form_says_what_to_fix(server: Served, watched: Watched) -> None:
    page = watched.page
    create_study(server, "taken")
    page.goto("/#/new")
    submit = page.get_by_role("button", name="Create the study")
    submit.click()
    name = page.get_by_label("Name", exact=True).first
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("alert")).to_contain_text("Give the study a name.")
    fill_form(page, "taken")
    page.get_by_label("Arm 2", exact=True).fill("small")
    page.get_by_label("Error probability delta").fill("1.5")
    page.get_by_label("Tolerance r").fill("0")
    page.get_by_label("Noise of one reward (std)").fill("0.2, 0.3")
    submit.click()
    for field, fault in {
        "Arm 2": "“small” stands above already; names must differ.",
        "Error probability delta": "A number between 0 and 1, like 0.05.",
        "Tolerance r": "certex proves its answers, which needs r larger than 0.",
        "Noise of one reward (std)": "There are 3 arms, but 2 numbers here.",
    }.items():
        expect(page.get_by_label(field, exact=True)).to_have_accessible_description(re.compile(re.escape(fault)))
    assert len(server.get("/studies").json()["studies"]) == 1, "nothing wrong was sent"

    # What only the server knows: the name is taken; known costs contradict each other.
    page.get_by_label("Arm 2", exact=True).fill("medium")
    page.get_by_label("Error probability delta").fill("0.05")
    page.get_by_label("Tolerance r").fill("0.1")
    page.get_by_label("Noise of one reward (std)").fill("0.2")
    watched.expect_failures(409, 422)
    submit.click()
    expect(name).to_have_accessible_description(re.compile("taken"))
    name.fill("new")
    constraint = page.get_by_role("group", name="Constraint 1")
    constraint.get_by_label("Costs are").select_option("row")
    constraint.get_by_label("Costs, one per arm").fill("2, 3, 4")
    submit.click()
    expect(page.get_by_role("alert")).to_contain_text("the known rows contradict each other")
    page.get_by_role("button", name="Remove constraint 1").click()
    page.get_by_label("Rewards are").select_option("bernoulli")
    submit.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("new")


def test_stop_resume_and_archive_ask_first(server: Served, page: Page) -> None:
    study = create_study(server)
    open_study(page, study)
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert server.get(f"/studies/{study}").json()["status"]["state"] == "exploring"
    page.get_by_role("button", name="Stop").click()
    dialog = page.get_by_role("dialog", name="Stop this study?")
    dialog.get_by_label("Reason, for the log (optional)").fill("the budget is spent")
    dialog.get_by_role("button", name="Stop").click()
    expect(page.locator(".state-line")).to_contain_text("Stopped by hand")
    expect(page.locator(".log")).to_contain_text("Stopped by hand: the budget is spent")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator(".state-line")).to_contain_text("Exploring")
    page.get_by_role("button", name="Archive").click()
    page.get_by_role("dialog").get_by_role("button", name="Archive").click()
    expect(page.locator(".state-line")).to_contain_text("Archived")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Export as csv").click()
    assert waiting.value.suggested_filename == "router.csv"


def test_signing_in_and_out(locked_server: Served, watched: Watched) -> None:
    page = watched.page
    study = create_study(locked_server)
    reader = create_token(open_storage(locked_server.storage), "reader", "read")
    assert locked_server.token is not None
    page.goto(f"/#/study/{study}")
    token = page.get_by_label("API token")
    watched.expect_failures(401)
    token.fill("pa_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("This token does not work")
    token.fill(locked_server.token)
    token.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("router")
    expect(page.get_by_text("signed in as admin")).to_be_visible()
    page.get_by_role("button", name="Archive").click()
    page.get_by_role("dialog").get_by_role("button", name="Archive").click()
    expect(page.locator(".state-line")).to_contain_text("Archived")
    assert locked_server.token not in page.content()
    assert page.evaluate("document.cookie") == "", "scripts can read the session"

    page.get_by_role("button", name="Sign out").click()
    expect(token).to_be_visible()
    token.fill(reader)
    token.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("router")
    expect(page.get_by_role("button", name="Resume")).to_be_hidden()
    expect(page.get_by_role("link", name="New study")).to_be_hidden()
    expect(page.locator(".live")).to_have_text("Live")
    # The session ends somewhere else: the page notices at the next change.
    page.context.clear_cookies()
    locked_server.post(f"/studies/{study}/resume", {}).raise_for_status()
    expect(token).to_be_visible()


def test_a_lost_connection_is_shown_and_found_again(server: Served, page: Page, watched: Watched) -> None:
    study = create_study(server)
    watched.expect_failures(503)
    page.route("**/changes", lambda route: route.fulfill(status=503))
    page.goto(f"/#/study/{study}")
    expect(page.locator(".live")).to_have_text("Offline: trying again")
    page.unroute("**/changes")
    expect(page.locator(".live")).to_have_text("Live")
    feeder = Feeder(server, study)
    feeder.feed(20)
    expect(page.get_by_text(f"{feeder.status()['used']} outcomes used so far")).to_be_visible()


def overflows(page: Page) -> bool:
    wider: bool = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return wider


def test_a_phone_shows_one_column(server: Served, page: Page) -> None:
    study = create_study(server)
    Feeder(server, study).feed(60)
    page.set_viewport_size({"width": 360, "height": 740})
    for address in ("/", "/#/new"):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert not overflows(page), address
    page.get_by_role("button", name="Add a constraint").click()
    assert not overflows(page)
    open_study(page, study)
    assert not overflows(page)
    lefts = page.locator(".panel").evaluate_all("nodes => nodes.filter(n => !n.hidden).map(n => n.offsetLeft)")
    assert len(set(lefts)) == 1, lefts
    # Turned on its side and back, the charts fit again.
    for width in (740, 360):
        page.set_viewport_size({"width": width, "height": 740})
        page.wait_for_function(_FITS)
        assert not overflows(page)


#: Whether every chart that can be seen is as wide as what it stands in.
_FITS = """() => [...document.querySelectorAll(".plot .chart")].every((figure) =>
  figure.clientWidth === 0 || figure.querySelector("svg").width.baseVal.value === figure.clientWidth)"""

_FOCUSED = """() => {
  const node = document.activeElement, style = getComputedStyle(node);
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return [node.getAttribute("aria-label") || node.textContent.trim() || node.id, ring];
}"""


def test_everything_is_reached_by_keyboard(server: Served, page: Page) -> None:
    study = create_study(server)
    Feeder(server, study).feed(30)
    open_study(page, study)
    reached: list[str] = []
    for _ in range(20):
        page.keyboard.press("Tab")
        name, ring = page.evaluate(_FOCUSED)
        if name in reached or page.evaluate("document.activeElement === document.body"):
            break
        assert ring, f"no visible focus on {name!r}"
        reached.append(name)
    controls = ["Skip to the content", "polyarm", "Studies", "New study", "All studies", "Stop", "Archive"]
    exports = [f"Export as {kind}" for kind in ("csv", "json", "parquet")]
    assert reached[: len(controls) + 3] == controls + exports
    assert "As a table" in reached

    page.reload()
    expect(page.locator(".live")).to_have_text("Live")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert page.url.endswith(f"#/study/{study}")
    page.get_by_role("button", name="Stop").press("Enter")
    expect(page.get_by_label("Reason, for the log (optional)")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Stop")).to_be_focused()
    page.get_by_role("link", name="New study").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_dark_mode_colours_the_charts_too(server: Served, page: Page) -> None:
    study = create_study(server)
    Feeder(server, study).feed(90)
    open_study(page, study)
    looks = """() => [
      getComputedStyle(document.body).backgroundColor,
      getComputedStyle(document.querySelector("svg .whisker")).stroke,
      getComputedStyle(document.querySelector(".plot path.statistic")).stroke,
    ]"""
    light = page.evaluate(looks)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(looks)
    assert all(before != after for before, after in zip(light, dark, strict=True))
    red, green, blue = map(int, re.findall(r"\d+", dark[0])[:3])
    assert max(red, green, blue) < 64
