"""What is released: a wheel and an sdist with everything in them, and one version everywhere."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import polyarm

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    return folder


def test_there_is_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert {project["version"], citation["version"], newest[1]} == {polyarm.__version__}


def test_the_wheel_runs_without_the_sources(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    sources = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.is_file()}
    missing = {path for path in sources if "__pycache__" not in path.parts and not (site / path).exists()}
    assert not missing
    program = (
        "import polyarm, pathlib; "
        "assert pathlib.Path(polyarm.__file__).is_relative_to(pathlib.Path('site').resolve()), polyarm.__file__; "
        "from polyarm.cli.main import main; main()"
    )

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "router" in run("instances")
    assert "first" in run("study", "create", "first", "setup1-easy", "--storage", "sqlite:///s.db")  # migrations ship
    assert '"first"' in run("study", "list", "--json", "--storage", "sqlite:///s.db")


def test_no_code_of_others_is_shipped(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert [name for name in names if re.search(r"vendor|third_party|node_modules|\.min\.", name)] == []
    licences = [name for name in names if Path(name).name.upper().startswith(("LICEN", "COPYING", "NOTICE"))]
    assert len(licences) == 1, licences


def test_the_sdist_has_what_is_needed_to_build_and_test(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {Path(*Path(name).parts[1:]).as_posix() for name in archive.getnames()}
    for needed in (
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "src/polyarm/service/static/index.html",
        "docs/service.md",
    ):
        assert needed in names
    assert any(name.startswith("tests/unit/") for name in names)


def test_the_workflow_runs_what_ci_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    steps = workflow["jobs"]["test"]["steps"]
    assert any(step.get("run") == "bash .ci/run" for step in steps)
    assert "make test" in (ROOT / ".ci/run").read_text("utf-8")


@pytest.mark.parametrize("file", ["compose.yaml", ".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml"])
def test_settings_for_others_can_be_read(file: str) -> None:
    assert isinstance(yaml.safe_load((ROOT / file).read_text("utf-8")), dict)
