"""Reading the pages of the documentation and running what they show."""

import io
import runpy
import shlex
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt

from polyarm.cli.main import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Where the page on the service expects a server.
SERVED = "http://127.0.0.1:8765"

#: What is shown to be read: formulas and output.
NOT_CODE = {"text"}
#: Commands that are not run here, by their beginning, and why.
NOT_RUN = {
    "make ": "`make test` is what runs this; the other targets install, or take minutes",
    ". .venv/": "changes the reader's shell",
    "export ": "the same",
    "docker ": "needs Docker",
    "dask ": "runs until it is stopped",
    "polyarm serve": "runs until it is stopped; tests/unit/test_serve_cli.py and tests/service run it",
    "polyarm demo": "runs until it is stopped; tests/unit/test_serve_cli.py runs it",
    "polyarm sweep grid.toml --out results --cluster tcp:": "needs a cluster; tests/unit/test_cluster.py starts one",
    "polyarm paper --cluster local": "the same",
}
#: The pages show runs worth looking at; these, by their beginning, are made smaller.
SMALLER = {
    "polyarm paper ": "--seeds 2",
    "polyarm run router --certificate": "--set r=0.05",
    "polyarm simulate setup1-easy imdb": "--seeds 2",
    "polyarm plan guess.toml --r 0.03": "--seeds 2",
    "polyarm plan ranges.toml": "--draws 3",
    "polyarm warm": "--only certex",
}


class Block(NamedTuple):
    """A block of code: its language, the file it is the text of (or nothing), and the text."""

    language: str
    file: str
    text: str


def all_pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page; one without a language holds commands. Directives of the site are left out."""
    found = []
    for token in MarkdownIt("commonmark").parse(page.read_text("utf-8")):
        assert token.type != "code_block", f"{page.name}: put a fence around the indented block {token.content!r}"
        if token.type == "fence" and not token.info.startswith("{"):
            language, _, file = token.info.strip().partition(" ")
            found.append(Block(language or "sh", file, token.content))
    return found


def commands_of(block: Block, elsewhere: Sequence[str] = ()) -> Iterator[str]:
    """The commands of a block that are run here, in the size in which they are."""
    for line in block.text.splitlines():
        command = shlex.join(shlex.split(line, comments=True))
        if command and not f"{command} ".startswith((*NOT_RUN, *elsewhere)):
            more = [size for beginning, size in SMALLER.items() if f"{command} ".startswith(beginning)]
            yield " ".join([command, *more])


def run_command(line: str) -> None:
    program, *arguments = shlex.split(line)
    if program == "python":
        runpy.run_path(arguments[0], run_name="__main__")
        return
    assert program == "polyarm", f"{line!r} is neither run nor listed in NOT_RUN"
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0, line


def run_transcript(block: Block) -> int:
    """Run the commands of a transcript, the lines behind a $, and expect the other lines in what they print."""
    lines = block.text.splitlines()
    printed, commands = io.StringIO(), [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    with redirect_stdout(printed):
        for command in commands:
            run_command(command)
    for line in lines:
        assert line.startswith("$ ") or line == "..." or line in printed.getvalue(), line
    return len(commands)


def run_page(page: Path, folder: Path, served: str = "", elsewhere: Sequence[str] = ()) -> int:
    """Write the files of a page and run its commands and its Python, from top to bottom; return how many commands ran.

    `served` takes the place of the address where the page expects a server. Commands that begin like one of `elsewhere`
    are run by another test.
    """
    commands = 0
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.file:  # the text of a file
            (folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "sh":
            for command in commands_of(block, elsewhere):
                run_command(command)
                commands += 1
        elif block.language == "console":
            commands += run_transcript(block)
        elif block.language not in NOT_CODE:
            assert block.language == "python", f"{page.name}: who runs a block of {block.language!r}?"
            exec(compile(block.text.replace(SERVED, served or SERVED), str(page), "exec"), names)
    return commands
