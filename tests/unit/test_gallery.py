"""Every picture of the gallery is drawn in its quick mode, shows something, and stands on the page."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

GALLERY = Path(__file__).parents[2] / "gallery"
DOCS = GALLERY.parent / "docs"
HELPERS = {"picture", "make_page"}
SCRIPTS = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem not in HELPERS)
#: Of committed pictures, in bytes; animations may be larger.
LARGEST, LARGEST_ANIMATION = 150_000, 1_500_000


def run_script(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Run a script as its command line does; returns its names."""
    monkeypatch.setattr(sys, "path", [str(GALLERY), *sys.path])
    monkeypatch.setattr(sys, "argv", [name, "--quick", "--out", str(folder)])
    return runpy.run_path(str(GALLERY / f"{name}.py"), run_name="__main__")


def is_blank(path: Path) -> bool:
    """Whether next to nothing is drawn: fewer than one pixel in a hundred differs from the background."""
    from PIL import Image

    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.int64)
    return bool(np.mean(np.abs(pixels - pixels[0, 0]).sum(axis=2) > 30) < 0.01)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_script_draws(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run_script(script, tmp_path / "new", monkeypatch)["NAMES"]
    assert isinstance(names, tuple)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(names)
    for name in names:
        assert not is_blank(tmp_path / "new" / name)
    printed = capsys.readouterr().out
    assert printed.strip()
    assert "NOT" not in printed  # how the scripts say that an answer is wrong, or a certificate is not valid
    assert "nan" not in printed


def test_the_animation_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    script = run_script("simplex_animation", tmp_path, monkeypatch)
    with Image.open(tmp_path / "simplex.gif") as animation:
        assert getattr(animation, "n_frames", 1) == script["QUICK_FRAMES"]


def test_the_same_picture_comes_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("first", "second"):
        run_script("simplex_animation", tmp_path / folder, monkeypatch)
        run_script("uncertified_answers", tmp_path / folder, monkeypatch)
    for name in ("simplex.gif", "simplex.png", "uncertified-answers.png"):
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("first", "second"))
        assert first == second


def test_a_blank_picture_is_caught(tmp_path: Path) -> None:
    from polyarm.figures import new_figure, save_figure

    figure = new_figure(4, 3)
    save_figure(figure, tmp_path / "blank.png")
    assert is_blank(tmp_path / "blank.png")


def test_every_script_and_picture_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(GALLERY), *sys.path])
    listed = runpy.run_path(str(GALLERY / "make_page.py"))["SCRIPTS"]
    assert sorted(listed) == SCRIPTS
    page = (DOCS / "gallery.md").read_text("utf-8")
    assert page.startswith("# Gallery\n")
    for script in SCRIPTS:
        path = GALLERY / f"{script}.py"
        assert f"(../gallery/{script}.py)" in page
        spoken = runpy.run_path(str(path))
        title = spoken["__doc__"].partition("\n")[0]
        assert f"## {title}\n" in page, "make gallery"
        assert f"(gallery/{spoken['NAMES'][0]})" in page
        for name in spoken["NAMES"]:
            picture = DOCS / "gallery" / name
            assert not is_blank(picture)
            assert picture.stat().st_size < (LARGEST_ANIMATION if picture.suffix == ".gif" else LARGEST)
