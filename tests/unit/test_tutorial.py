"""The pages on explorers of one's own, on studies, the service and the paper, read and run in an empty folder."""

import re
import shlex
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from polyarm import get_explorer, simulate
from polyarm.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "bring-your-own.md"
#: The pages show runs worth looking at; here two seeds have to do.
EVALUATION = "polyarm paper "
#: Where the page on the service expects a server.
SERVED = "http://127.0.0.1:8765"


class Block(NamedTuple):
    """A block of code: its language, the file it is the text of (or nothing), and the text."""

    language: str
    file: str
    text: str


def blocks(page: Path = PAGE) -> list[Block]:
    fenced = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [Block(*found) for found in fenced.findall(page.read_text("utf-8"))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_command(line: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "polyarm"
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0, line


def run_page(page: Path, folder: Path, served: str = "") -> int:
    """Write the files of a page and run its commands and its Python; return the number of commands.

    `served` takes the place of the address where the page expects a server.
    """
    commands = 0
    for block in blocks(page):
        if block.file:  # the text of a file
            (folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "sh":
            for line in block.text.splitlines():
                run_command(f"{line} --seeds 2" if line.startswith(EVALUATION) else line)
                commands += 1
        else:
            assert block.language == "python"
            exec(compile(block.text.replace(SERVED, served), str(page), "exec"), {})
    return commands


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
    first = blocks()[:3]
    assert [block.file for block in first] == ["my_explorer.py", "my.toml", ""]
    assert sum(len(block.text.splitlines()) for block in first) <= 40


def test_the_page_on_applications_runs_as_it_stands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_page(DOCS / "applications.md", folder) == 0
    printed = capsys.readouterr().out
    for expected in ("satisfies toxicity", "'power'", "'Cleo'", "'young'", "exposure for", "against old", "'slow'"):
        assert expected in printed
