"""`polyarm paper`: what is computed, how it is compared with the published numbers, and the page it makes."""

import json
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from polyarm import Instance, InvalidInput, load_instance, lower_bounds
from polyarm.engine.run import HORIZON, STOPPED, RunRecord
from polyarm.experiments.results import Cell
from polyarm.papers.das_basu_2026 import boxes, closest, figure4, guarantees
from polyarm.papers.das_basu_2026.published import STOP, VIOLATIONS, load_published, published_median
from polyarm.papers.das_basu_2026.readings import list_few_readings, list_readings, make_reading
from polyarm.papers.das_basu_2026.report import Section, Table, render, show
from polyarm.papers.das_basu_2026.scope import EXPLORERS, declare, make_scope, mu3_values, parse_figures, setup1
from polyarm.rules.registry import get_explorer
from polyarm.rules.settings import PRESETS as PRESET_SETTINGS


def make_run(seed: int, steps: int, status: str = STOPPED, feasible: bool = False, violations: int = 0) -> RunRecord:
    return RunRecord(seed, status, steps, None, feasible, feasible, violations, 0, 0.0, np.ones(2))


def make_cell(runs: list[RunRecord], explorer: str = "lagex", **changes: Any) -> Cell:
    values = {"instance": "setup1-hard", "settings": {"r": 0.1}, "horizon": 100, "us_per_step": None, **changes}
    return Cell(explorer=explorer, runs=tuple(runs), **values)


# What is computed.


@pytest.mark.parametrize(
    ("text", "wanted"), [("1-12", tuple(range(1, 13))), ("4", (4,)), ("8-10,4", (4, 8, 9, 10)), (" 5 , 5-6", (5, 6))]
)
def test_figures_are_numbers_and_ranges(text: str, wanted: tuple[int, ...]) -> None:
    assert parse_figures(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "13", "1-13", "a", "3-", "-3", "1;2", "5-4", "1-999999999", "9" * 5000])
def test_other_figures_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="figures"):
        parse_figures(text)


def test_the_grid_has_every_cell_of_the_paper() -> None:
    cells = declare(make_scope())
    counts = {kind: sum(key[0] == kind for key in cells) for kind in ("preset", "figure4", "reading", "guarantee")}
    assert counts["preset"] == 2 * 5 * 8
    assert counts["figure4"] == 2 * 21
    assert counts["guarantee"] == 5 * (2 + 8)
    published = sum(
        any(published_median(m, i, e) is not None for m in (STOP, VIOLATIONS))
        for i in ("setup1-hard", "setup1-easy", "setup2-hard", "setup2-easy", "imdb")
        for e in EXPLORERS
    )
    assert counts["reading"] == published * len(list_readings())
    for entry in cells.values():
        assert entry.prepared  # every combination of settings is one that its explorer accepts


def test_the_presets_run_as_printed_and_as_corrected() -> None:
    cells = declare(make_scope())
    for preset, settings in PRESET_SETTINGS.items():
        entry = cells["preset", preset, "imdb", "lagex"]
        in_force = entry.prepared[1].recorded_settings()
        assert {name: in_force[name] for name in settings} == settings
        assert (entry.seeds, entry.horizon, in_force["r"]) == (500, 100_000, 0.01)


def test_only_what_the_figures_need_is_run() -> None:
    assert declare(make_scope("1-3")) == {}
    assert {key[0] for key in declare(make_scope("4"))} == {"figure4"}
    assert {key[2] for key in declare(make_scope("5,8")) if key[0] == "preset"} == {"setup1-hard"}
    assert {key[1] for key in declare(make_scope("6", presets=["corrected"])) if key[0] == "preset"} == {"corrected"}


def test_equal_guarantees_are_the_certified_rule_for_all() -> None:
    for key, entry in declare(make_scope()).items():
        if key[0] == "guarantee":
            plan = entry.prepared[1]
            assert plan.settings.stops_certified()
            assert plan.problem.r == (0.3 if key[2] == "imdb" else 0.1)
            assert entry.horizon > 1_000_000


def test_an_added_instance_and_explorer_get_their_cells() -> None:
    mine = load_instance("figure2")
    cells = declare(make_scope("6", quick=True, add_instances=[mine], add_explorers=["certex"]))
    assert ("preset", "paper", "figure2", "lagex") in cells
    assert cells["preset", "paper", "setup1-easy", "certex"].settings == {}
    assert ("guarantee", "uniform", "figure2") in cells


def test_an_added_instance_that_nothing_can_certify_is_left_out_of_that_comparison() -> None:
    exact = load_instance("figure2").with_problem(r=0.0)
    cells = declare(make_scope("6", quick=True, add_instances=[exact]))
    assert ("preset", "paper", "figure2", "lagex") in cells
    assert not any(key[0] == "guarantee" and key[2] == "figure2" for key in cells)


def test_an_added_instance_needs_a_name_of_its_own() -> None:
    with pytest.raises(InvalidInput, match="another name"):
        make_scope(add_instances=[load_instance("imdb")])


def test_readings_are_different_and_few_are_some_of_all() -> None:
    names = [reading.name for reading in list_readings()]
    assert len(set(names)) == len(names) == 27
    assert {reading.name for reading in list_few_readings()} <= set(names)


def test_no_reading_is_the_text_as_printed_which_is_a_preset() -> None:
    assert not any(reading.is_printed for reading in list_readings())
    assert make_reading(policy="optimistic", beta="paper").is_printed


def test_a_reading_changes_only_what_concerns_the_explorer() -> None:
    reading = make_reading(policy="empirical", gamma="slater", tracking="d", delta=0.1)
    assert reading.settings(get_explorer("uniform")) == {"preset": "paper", "policy": "empirical", "delta": 0.1}
    assert reading.settings(get_explorer("ctns")) == {"preset": "paper", "tracking": "d", "delta": 0.1}


def test_figure_4_is_setup_1_along_the_third_mean() -> None:
    for mu3, name in ((0.5, "setup1-hard"), (1.3, "setup1-easy")):
        assert setup1(mu3).mu.tolist() == load_instance(name).mu.tolist()
    assert len(mu3_values()) == len(load_published()["figure4"]["known_lower_bound"]) == 21


# How it is compared.


def test_boxes_say_what_the_runs_say() -> None:
    runs = [make_run(s, 10 * (s + 1), feasible=s == 0, violations=s) for s in range(4)]
    runs.append(make_run(4, 100, HORIZON, violations=90))
    cells = {("preset", "paper", "setup1-hard", "lagex"): make_cell(runs)}
    rows = boxes.collect(cells, load_instance("setup1-hard"), STOP)
    (summary,) = boxes.summarise(rows, STOP)
    assert summary["median"] == 30.0
    assert summary["published"] == 13474
    assert summary["ratio"] == 30.0 / 13474
    assert (summary["horizon_hit"], summary["feasible_rate"], summary["seeds"]) == (1, 0.2, 5)
    assert rows[0]["known_bound"] == lower_bounds("setup1-hard", r=0.0)["bounds"]["known"]["samples"]
    (violations,) = boxes.summarise(boxes.collect(cells, load_instance("setup1-hard"), VIOLATIONS), VIOLATIONS)
    assert violations["median"] == 2.0
    assert violations["published"] == 9170


def test_explorers_that_know_the_constraints_have_no_violations() -> None:
    cells = {("preset", "paper", "setup1-hard", "ctns"): make_cell([make_run(0, 10)], "ctns")}
    assert boxes.collect(cells, load_instance("setup1-hard"), VIOLATIONS) == []


def test_a_median_beyond_the_horizon_is_no_number() -> None:
    runs = [make_run(0, 50), make_run(1, 100, HORIZON), make_run(2, 100, HORIZON)]
    cells = {("preset", "paper", "setup1-hard", "lagex"): make_cell(runs)}
    rows = boxes.collect(cells, load_instance("setup1-hard"), STOP)
    (summary,) = boxes.summarise(rows, STOP)
    assert summary["median"] is None
    assert summary["ratio"] is None
    boxes.draw(rows, STOP)


def test_the_closest_reading_is_that_with_the_ratio_nearest_to_one() -> None:
    near, far = make_reading(beta="log"), make_reading(beta="theory")
    cells = {
        ("reading", near, "setup1-hard", "lagex"): make_cell([make_run(0, 13_000, violations=100)]),
        ("reading", far, "setup1-hard", "lagex"): make_cell([make_run(0, 30_000, violations=9_000)]),
    }
    rows = closest.collect(cells)
    best = {row["measure"]: row["reading"] for row in closest.find_closest(rows)}
    assert best == {STOP: "beta=log", VIOLATIONS: "beta=theory"}
    ranked = closest.rank_readings(rows)
    assert [row["reading"] for row in ranked] == ["beta=theory", "beta=log"]
    assert ranked[0]["within"] == 1
    assert ranked[0]["factor"] == pytest.approx((30_000 / 13_474 * 9_170 / 9_000) ** 0.5)


def test_figure_4_bounds_follow_the_published_curve() -> None:
    run = make_cell([make_run(0, 500)], instance="setup1")
    rows = figure4.collect({("figure4", "paper", mu3): run for mu3 in (0.5, 1.3, 1.5)})
    for row in rows:
        assert row["known_bound"] == pytest.approx(row["known_published"], rel=0.06)
    assert rows[2]["bai_bound"] is None  # a tie
    assert any("mu_3 = 1.5" in sentence for sentence in figure4.describe(rows))


def test_guarantees_compare_certex_with_those_that_know_as_little() -> None:
    cells = {
        ("guarantee", name, "setup1-hard"): make_cell([make_run(0, steps)], name)
        for name, steps in (("certex, averaged", 100), ("uniform", 300), ("lagex", 250), ("ctns", 10))
    }
    (sentence,) = guarantees.describe(guarantees.collect(cells), [])
    assert "100 (certex, averaged, median)" in sentence
    assert "250 (lagex, median)" in sentence


def test_a_rule_that_hardly_ever_stops_is_not_the_best() -> None:
    late = [make_run(0, 5), *(make_run(seed, 100, HORIZON) for seed in (1, 2))]
    cells = {
        ("guarantee", "certex, averaged", "setup1-hard"): make_cell([make_run(0, 90)], "certex"),
        ("guarantee", "lats", "setup1-hard"): make_cell(late, "lats"),
    }
    (sentence,) = guarantees.describe(guarantees.collect(cells), [])
    assert "lats" not in sentence
    assert "none stopped" in sentence


def test_what_the_paper_s_tolerance_would_take_is_told_with_its_bounds() -> None:
    scope = make_scope("11", quick=True)
    (row,) = guarantees.forecast(scope)
    assert row["instance"] == "setup2-easy"
    assert row["lower_T"] < row["T"] < row["stylised"] < row["proved"]
    assert f"{row['proved']:,.0f} pulls" in guarantees.describe([], [row])[0]


def test_without_the_preset_the_text_as_printed_is_a_reading() -> None:
    names = [reading.name for reading in make_scope(presets=["corrected"]).readings]
    assert names.count("as printed") == 1
    assert "as printed" not in [reading.name for reading in make_scope().readings]


def test_a_figure_of_runs_that_did_not_stop_says_so() -> None:
    late = [make_run(seed, 100, HORIZON) for seed in range(3)]
    cells = {("preset", "paper", "setup1-hard", name): make_cell(late, name) for name in ("lagex", "uniform")}
    rows = boxes.collect(cells, load_instance("setup1-hard"), STOP)
    assert any("lagex, uniform did not stop" in sentence for sentence in boxes.describe(rows, STOP))
    boxes.draw(rows, STOP)
    readings = {("reading", make_reading(beta="log"), "setup1-hard", "lagex"): make_cell(late)}
    found = closest.collect(readings)
    assert [row["measure"] for row in closest.find_closest(found)] == []
    closest.describe(found)


def test_two_files_with_one_explorer_are_refused(tmp_path: Path) -> None:
    files = []
    for name, shift in (("a.py", 1), ("b.py", 2)):
        files.append(str(tmp_path / name))
        (tmp_path / name).write_text(
            "import polyarm\n"
            f"def allocate(view, rng):\n    return view.pulls * 0 + {shift}\n"
            "explorer = polyarm.python_explorer('even', 'every arm alike', allocate)\n"
        )
    with pytest.raises(InvalidInput, match="rename one"):
        make_scope(add_explorers=files)


def test_an_infeasible_instance_is_refused() -> None:
    base = load_instance("figure2")
    never = Instance("never", "", base.problem, base.mu, np.array([[-1.0, -1.0, -1.0]]))
    with pytest.raises(InvalidInput, match="no mix satisfies"):
        make_scope(add_instances=[never])


# The page.


class Collector(HTMLParser):
    """Collects what a page would fetch, and checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in {"src", "srcset", "data"}]
        if tag == "link":
            self.fetched.append("link")
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(text: str) -> None:
    page = Collector()
    page.feed(text)
    assert page.open == []
    assert all(source.startswith("data:image/png;base64,") for source in page.fetched)
    assert "url(" not in text
    assert "nan" not in re.findall(r"[a-z]+", text.lower())


def test_the_page_escapes_what_it_shows() -> None:
    section = Section("<b>", ["a < b & c"], tables=[Table("t", {"x": "<i>"}, [{"x": "<script>"}])])
    text = render("<title>", ["<p>"], [section])
    check_page(text)
    assert "<script>" not in text
    assert "a &lt; b &amp; c" in text


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("median", 13474.0, "13,474"),
        ("ratio", 0.5, "0.50"),
        ("feasible_rate", 0.256, "26%"),
        ("mu3", 0.5, "0.5"),
        ("median", None, "-"),
        ("explorer", "a&b", "a&amp;b"),
    ],
)
def test_numbers_are_shown_by_what_they_are(name: str, value: Any, wanted: str) -> None:
    assert show(name, value) == wanted


def run_paper(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polyarm", "paper", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evaluation with two seeds, with an explorer of ours and an instance of ours beside the paper's."""
    folder = tmp_path_factory.mktemp("paper")
    (folder / "odd.toml").write_text(
        '["$x^$ [/y] a/b <i>"]\n'
        "mu = [0.2, 0.9, 0.5]\nA = [[0.1, 1.5, 0.4]]\nb = [0.6]\n"
        "reward_std = 0.3\ncost_std = 0.3\ndelta = 0.1\nr = 0.2\n"
    )
    done = run_paper(*ARGUMENTS, "--add-instance", str(folder / "odd.toml"), "--out", str(folder / "whole"))
    assert done.returncode == 0, done.stderr
    assert "steps in" in done.stdout
    return folder


ARGUMENTS = ("--quick", "--seeds", "2", "--figures", "1-5,8,11")


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file() and path.suffix}


def test_every_figure_has_its_files_and_stands_on_the_page(whole: Path) -> None:
    names = set(tables(whole / "whole"))
    stems = [f"figure-{n:02d}" for n in (1, 2, 3, 4, 5, 8, 11)]
    stems += ["added-x-y-a-b-i-sample-complexity", "added-x-y-a-b-i-constraint-violations"]
    assert {f"{stem}{ending}" for stem in stems for ending in (".png", ".pdf", ".parquet")} <= names
    assert {"runs.parquet", "readings.parquet", "guarantees.parquet", "report.html"} <= names
    text = (whole / "whole" / "report.html").read_text("utf-8")
    check_page(text)
    for wanted in (
        "Figure 1:",
        "Figure 11:",
        "a/b &lt;i&gt;, sample complexity: an added instance",
        "13,474",
        "closest",
        "certex, averaged",
    ):
        assert wanted in text


def test_the_tables_hold_every_run(whole: Path) -> None:
    rows = pq.read_table(whole / "whole" / "figure-05.parquet").to_pylist()
    assert {(row["preset"], row["explorer"], row["seed"]) for row in rows} == {
        (preset, explorer, seed) for preset in ("paper", "corrected") for explorer in EXPLORERS for seed in (0, 1)
    }


def test_a_killed_run_goes_on_and_equals_an_uninterrupted_one(whole: Path) -> None:
    """Every table, picture and the page, byte for byte."""
    cut = whole / "cut"
    arguments = [*ARGUMENTS, "--add-instance", str(whole / "odd.toml"), "--out", str(cut)]
    kills = 0
    for pieces in (5, 60):
        child = subprocess.Popen(
            [sys.executable, "-m", "polyarm", "paper", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while child.poll() is None and len(list(cut.glob("pieces/*/*.parquet"))) < pieces:
            time.sleep(0.01)
        kills += child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert kills >= 1
    assert not (cut / "report.html").exists()
    done = run_paper(*arguments)
    assert done.returncode == 0, done.stderr
    assert "were there already" in done.stdout
    assert tables(cut) == tables(whole / "whole")


def test_for_programs_it_prints_the_table(whole: Path) -> None:
    done = run_paper("--figures", "1", "--json", "--out", str(whole / "one"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figures", "13"], "from 1 to 12"),
        (["--seeds", "0"], "seeds: expected a whole number, 1 or more"),
        (["--preset", "printed"], "unknown preset 'printed'"),
        (["--add-explorer", "lagx"], "Did you mean 'lagex'"),
        (["--add-instance", "none.toml"], "no such instance file"),
        (["--cluster", "here"], "expected 'local'"),
        (["--workers", "0"], "workers: expected"),
    ],
)
def test_mistakes_are_one_message(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = run_paper(*arguments, "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
