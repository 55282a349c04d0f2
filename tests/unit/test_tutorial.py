"""The pages on explorers of one's own, on studies, the service and the paper, read and run in an empty folder."""

import threading
from pathlib import Path

import pytest

from polyarm import get_explorer, simulate
from unit.pages import DOCS, blocks, run_page

PAGE = DOCS / "bring-your-own.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_runs_as_it_stands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_page(PAGE, folder) == 6
    printed = capsys.readouterr().out
    for expected in ("halves", "fast-halves", "lagex", "uniform", "proof.json"):
        assert expected in printed
    report = (folder / "paper" / "report.html").read_text("utf-8")
    for expected in ("Figure 6", "Figure 9", "fast-halves", "my, sample complexity"):
        assert expected in report
    # What the page says of the two files: one rule, the same pulls.
    plain, fast = (
        [(run.steps, run.pulls.tolist()) for run in cell.runs]
        for cell in simulate("my.toml", ["my_explorer.py", "my_fast_explorer.py"], seeds=20).cells
    )
    assert plain == fast
    assert get_explorer("halves").source == (folder / "my_explorer.py").read_text("utf-8")


def test_the_page_on_the_paper_runs_as_it_stands(folder: Path) -> None:
    assert run_page(DOCS / "paper.md", folder) == 2
    assert (folder / "paper" / "report.html").exists()
    assert (folder / "results" / "runs.parquet").exists()


def test_the_page_on_studies_runs_as_it_stands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_page(DOCS / "studies.md", folder) == 7
    printed = capsys.readouterr().out
    for expected in ("day 5:", "satisfies price, latency", "faults=()", "to fill in: todo.csv", "valid: pricing"):
        assert expected in printed


def test_the_page_on_the_service_runs_as_it_stands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from polyarm.service.server import Server, make_config

    server = Server(make_config(f"sqlite:///{folder}/polyarm.db", "127.0.0.1"), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert run_page(DOCS / "service.md", folder, server.url) == 4
    finally:
        server.stop()
        thread.join()
        server.join()
    printed = capsys.readouterr().out
    for expected in ("satisfies price with confidence 0.95", "True", "pa_", "splitter"):
        assert expected in printed


def test_the_reader_types_little() -> None:
    first = blocks(PAGE)[:3]
    assert [block.file for block in first] == ["my_explorer.py", "my.toml", ""]
    assert sum(len(block.text.splitlines()) for block in first) <= 40


def test_the_page_on_applications_runs_as_it_stands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_page(DOCS / "applications.md", folder) == 0
    printed = capsys.readouterr().out
    for expected in ("satisfies toxicity", "'power'", "'Cleo'", "'young'", "exposure for", "against old", "'slow'"):
        assert expected in printed
