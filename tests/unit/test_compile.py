"""The cache of compiled kernels: one folder per version of the sources, shared by all processes."""

import errno
import fcntl
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import pytest

import polyarm
from polyarm import _compile

SOURCES = Path(polyarm.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, to be edited."""
    target = tmp_path / "polyarm"
    shutil.copytree(SOURCES, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def folder_of(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Load the package's own `_compile` and return the cache folder that it chooses."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(package.parent / "cache"))
    spec = importlib.util.spec_from_file_location("copy_of_compile", package / "_compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(module.CACHE_FOLDER, str)
    return Path(module.CACHE_FOLDER)


def append(path: Path) -> None:
    path.write_text(path.read_text("utf-8") + "\n# changed\n", "utf-8")


def test_the_folder_is_where_the_user_wants_it(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(copy, monkeypatch)
    assert folder.parent == copy.parent / "cache"
    assert folder.is_dir()


def test_equal_sources_share_a_folder(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_of(copy, monkeypatch) == folder_of(copy, monkeypatch)
    assert _compile.CACHE_FOLDER is not None
    assert folder_of(copy, monkeypatch).name == Path(_compile.CACHE_FOLDER).name


@pytest.mark.parametrize(
    "name",
    [
        "tolerances.py",
        "_compile.py",
        "_structs.py",
        "problem.py",
        "model.py",
        "round.py",
        "estimates.py",
        "polytope/lp.py",
        "families/gaussian.py",
        "certify/evidence.py",
        "planner/objective.py",
        "bounds/maxmin.py",
        "stops/own.py",
        "rules/lagex.py",
        "environments/synthetic.py",
        "engine/loop.py",
    ],
)
def test_an_edited_source_has_a_folder_of_its_own(copy: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = folder_of(copy, monkeypatch)
    append(copy / name)
    assert folder_of(copy, monkeypatch).name != before.name


def test_a_new_or_moved_source_counts_too(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = folder_of(copy, monkeypatch)
    (copy / "polytope" / "linear_extra.py").write_text("")
    added = folder_of(copy, monkeypatch)
    (copy / "polytope" / "linear_extra.py").rename(copy / "families" / "linear_extra.py")
    assert len({before, added, folder_of(copy, monkeypatch)}) == 3


@pytest.mark.parametrize("name", ["cli/report.py", "report/plots.py", "experiments/simulate.py"])
def test_what_no_kernel_can_contain_costs_no_compilation(
    copy: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = folder_of(copy, monkeypatch)
    append(copy / name)
    assert folder_of(copy, monkeypatch) == before


def test_without_a_writable_folder_there_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(file / "below"))
    assert _compile._cache_folder() is None


def test_the_next_best_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = _compile._cache_folder()
    assert folder is not None
    assert Path(folder).is_relative_to(tmp_path)


def test_other_users_of_numba_keep_their_own_folder() -> None:
    config: Any = numba.config  # its attributes are made at run time
    before = config.CACHE_DIR
    _compile.kernel(lambda x: x + 1)
    assert before == config.CACHE_DIR
    assert before != _compile.CACHE_FOLDER


#: Plays every explorer through both drivers and reports what had to be compiled for it.
PLAY = """
import json, sys
from dataclasses import replace
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        pass
    def on_end(self, event):
        compiled.append(str(event.data["dispatcher"]))

event.register("numba:compile", Listener())

import polyarm
from polyarm.engine.run import Exploration, plan_run
from polyarm.rules.registry import EXPLORERS

name, preset = sys.argv[1:]
for explorer, known in EXPLORERS.items():
    instance = polyarm.load_instance(name)
    if getattr(known, "needs_known_rows", False):
        instance = replace(instance, problem=instance.problem.with_known_rows(instance.A))
    own = {"preset": preset} if "preset" in known.settings.model_fields else {}
    exploration = Exploration(*plan_run(instance, explorer, own), seed=0)
    exploration.advance_to(40)
    session = polyarm.make_explorer(explorer, instance.problem, seed=0, **own)
    for _ in range(15):
        session.tell(session.ask(), 0.5, [0.1] * len(instance.problem.unknown))
print(json.dumps(compiled))
"""


def compiled_by(*arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PLAY, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names: list[str] = json.loads(done.stdout)
    return names


def test_a_second_process_compiles_nothing() -> None:
    compiled_by("setup1-easy", "corrected")  # the first may have to
    assert compiled_by("setup1-easy", "corrected") == []
    assert compiled_by("imdb", "paper") == [], "other sizes and settings run the same code"


def test_the_listener_hears_a_compilation() -> None:
    noisy = PLAY.replace("print(", "import numba; numba.njit(lambda x: x)(1); print(")
    done = subprocess.run(
        [sys.executable, "-c", noisy, "figure2", "corrected"], capture_output=True, text=True, check=False
    )
    assert len(json.loads(done.stdout)) >= 1


def test_no_kernel_is_left_out_of_the_hash() -> None:
    hashed = set(_compile.kernel_sources())
    for path in SOURCES.rglob("*.py"):
        if re.search(r"^@(inlined_)?kernel|^@struct|\(Scalars\):", path.read_text("utf-8"), re.MULTILINE):
            assert path.relative_to(SOURCES) in hashed, path


def test_a_file_system_without_locks_keeps_kernels_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    saved: list[Any] = []
    kept = SimpleNamespace(save_overload=lambda *given: saved.append(given))
    _compile._save_one_at_a_time(kept)
    monkeypatch.setattr(fcntl, "flock", refuse)
    kept.save_overload("signature", "code")
    assert saved == [("signature", "code")]
