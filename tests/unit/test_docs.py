"""The documentation: every block of code runs, and the site builds without a warning, from this host alone."""

import random
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from polyarm.problem_file import load_problem
from unit.pages import DOCS, NOT_CODE, NOT_RUN, ROOT, SMALLER, all_pages, blocks, run_page

#: Pages that tests/unit/test_tutorial.py runs, and looks at what they print.
TUTORIALS = set(re.findall(r'DOCS / "([\w/-]+\.md)"', (Path(__file__).parent / "test_tutorial.py").read_text("utf-8")))
#: Files that the README's commands take for granted, and the pages that show them.
README_FILES = {
    "my.toml": "bring-your-own.md",
    "guess.toml": "plan.md",
    "problem.toml": "replay.md",
    "grid.toml": "paper.md",
}


def page_name(page: Path) -> str:
    return page.name if page.parent == ROOT else str(page.relative_to(DOCS))


PAGES = {page_name(page): page for page in all_pages()}
RUN_HERE = [
    name
    for name, page in PAGES.items()
    if name not in TUTORIALS and any(block.language not in NOT_CODE for block in blocks(page))
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, but for what the README takes for granted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLYARM_STORAGE", raising=False)
    return tmp_path


@pytest.fixture
def readme_files(folder: Path) -> None:
    for file, page in README_FILES.items():
        (text,) = (block.text for block in blocks(DOCS / page) if block.file == file)
        (folder / file).write_text(text, "utf-8")
    arms, rng = load_problem("problem.toml").arms, random.Random(1)
    rows = [f"{rng.choice(arms)},{rng.gauss(0.7, 0.2)},{rng.gauss(0.8, 0.3)}" for _ in range(1000)]
    (folder / "log.csv").write_text("\n".join(["arm,reward,price", *rows]), "utf-8")


@pytest.mark.parametrize("name", RUN_HERE)
def test_the_page_runs_as_it_stands(name: str, folder: Path, request: pytest.FixtureRequest) -> None:
    if name == "README.md":
        request.getfixturevalue("readme_files")
        run_page(PAGES[name], folder, elsewhere=("polyarm paper ",))  # the page on the paper runs the same command
    else:
        run_page(PAGES[name], folder)


def test_every_page_with_code_is_run_by_a_test() -> None:
    assert len(TUTORIALS) > 3
    assert set(PAGES) >= TUTORIALS
    assert {"README.md", "start.md", "guarantee.md", "how-to/late-data.md"} <= set(RUN_HERE)


@pytest.mark.parametrize("name", PAGES)
def test_a_block_is_run_or_says_that_it_is_no_code(name: str) -> None:
    for block in blocks(PAGES[name]):
        runs = block.language in {"python", "sh", "console"} and not block.file
        assert runs or block.file or block.language in NOT_CODE, block


def test_what_is_not_run_or_made_smaller_is_still_on_a_page() -> None:
    lines = [line for page in all_pages() for block in blocks(page) for line in block.text.splitlines()]
    for beginning in (*NOT_RUN, *SMALLER):
        assert any(f"{line} ".startswith(beginning) for line in lines), beginning


def test_the_links_of_the_readme_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text("utf-8"))
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


def test_every_room_of_the_sources_is_on_the_page_about_them() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    source = ROOT / "src" / "polyarm"
    rooms = [f"{path.name}/" if path.is_dir() else path.name for path in source.iterdir() if path.name[0] not in "._"]
    for room in rooms:
        assert room in {"py.typed"} or f"`{room}`" in page, f"docs/architecture.md: say what {room} is for"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built."""
    if find_spec("sphinx") is None or find_spec("furo") is None or find_spec("myst_parser") is None:
        pytest.skip("NO SPHINX: the documentation is not built; pip install 'polyarm[docs]'")
    target = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(target / "trees")]
    done = subprocess.run([*build, str(DOCS), str(target / "html")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target / "html"


def test_the_site_builds_without_a_warning(site: Path) -> None:
    for name in PAGES:
        if name != "README.md":
            assert (site / name).with_suffix(".html").exists()


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href|srcset)=["']((?:https?:)?//[^"']*)"""
    )
    imports = re.compile(r"""(?:@import\s+|url\(\s*)["']?((?:https?:)?//[^"')]*)""")
    for page in site.rglob("*.html"):
        assert not loads.findall(page.read_text("utf-8")), page.name
    for sheet in site.rglob("*.css"):
        assert not imports.findall(sheet.read_text("utf-8")), sheet.name


def test_the_reference_has_every_public_name_command_and_request(site: Path) -> None:
    import typer

    import polyarm
    from polyarm.cli.main import app

    names = (site / "reference" / "api.html").read_text("utf-8")
    for name in polyarm.__all__:
        assert name.startswith("_") or f'id="polyarm.{name}"' in names or f'id="module-polyarm.{name}"' in names, name
    commands = (site / "reference" / "cli.html").read_text("utf-8")
    for word in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
        assert f'id="polyarm-{word}"' in commands, word
    assert "--certificate" in commands
    requests = (site / "reference" / "http.html").read_text("utf-8")
    for part in (">/studies/{study}/tell<", "Idempotency-Key", "ProblemDocument"):
        assert part in requests, part


def test_pictures_are_small_and_shown() -> None:
    text = "".join(page.read_text("utf-8") for page in all_pages())
    pictures = list((DOCS / "pictures").iterdir())
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 80_000, picture.name
        assert f"pictures/{picture.name}" in text, picture.name
