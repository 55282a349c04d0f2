"""The tutorial for explorers of one's own, read from the page and run in an empty folder."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from polyarm import get_explorer, simulate
from polyarm.cli.main import main
from polyarm.explorers.registry import EXPLORERS

PAGE = Path(__file__).parents[2] / "docs" / "bring-your-own.md"
#: Commands that this test leaves to others: they take minutes.
ELSEWHERE = "polyarm paper "


class Block(NamedTuple):
    """A block of code: its language, the file it is the text of (or nothing), and the text."""

    language: str
    file: str
    text: str


def blocks() -> list[Block]:
    fenced = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [Block(*found) for found in fenced.findall(PAGE.read_text("utf-8"))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; explorers that were loaded there are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    before = dict(EXPLORERS)
    yield tmp_path
    EXPLORERS.clear()
    EXPLORERS.update(before)


def run_command(line: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "polyarm"
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0, line


def test_the_page_runs_as_it_stands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = 0
    for block in blocks():
        if block.file:
            (folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "sh":
            for line in block.text.splitlines():
                if not line.startswith(ELSEWHERE):
                    run_command(line)
                    commands += 1
        else:
            assert block.language == "python"
            exec(compile(block.text, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out
    assert commands == 5
    for expected in ("halves", "fast-halves", "lagex", "uniform", "proof.json"):
        assert expected in printed
    # What the page says of the two files: one rule, the same pulls.
    plain, fast = (
        [(run.steps, run.pulls.tolist()) for run in cell.runs]
        for cell in simulate("my.toml", ["my_explorer.py", "my_fast_explorer.py"], seeds=20).cells
    )
    assert plain == fast
    assert get_explorer("halves").source == (folder / "my_explorer.py").read_text("utf-8")


def test_the_reader_types_little() -> None:
    first = blocks()[:3]
    assert [block.file for block in first] == ["my_explorer.py", "my.toml", ""]
    assert sum(len(block.text.splitlines()) for block in first) <= 40
