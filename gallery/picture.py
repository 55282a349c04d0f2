"""What the scripts of the gallery share: their command line, their colours, and how rates and sentences are written."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from scipy.stats import beta

from polyarm.figures import COLOURS, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]

#: The same explorer has the same colour in every picture.
EXPLORER_COLOURS = {
    "certex": COLOURS[0],
    "lagex": COLOURS[1],
    "lats": COLOURS[3],
    "uniform": COLOURS[5],
}
GREY, FAINT = "#555555", "#c8c8c8"

#: Draws the pictures of one script into a folder, in quick mode or in full; returns what was found, in sentences.
Draw = Callable[[bool, Path], list[str]]


def main(draw: Draw) -> None:
    """Run a script of the gallery from its command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a few seconds: fewer runs, the same picture")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: docs/gallery, or with --quick out/gallery")
    given = parser.parse_args()
    # A quick picture never takes the place of one that is shown in the documentation.
    out = given.out or ROOT / ("out/gallery" if given.quick else "docs/gallery")
    out.mkdir(parents=True, exist_ok=True)
    for sentence in draw(given.quick, out):
        print(sentence)


def save_small(figure: "Figure", path: Path) -> None:
    """Write a PNG with a palette of 256 colours, plenty for flat ones: a repository keeps every version of it."""
    save_figure(figure, path)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def rate_interval(successes: int, runs: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of Clopper and Pearson for a probability."""
    low = 0.0 if successes == 0 else float(beta.ppf(0.025, successes, runs - successes + 1))
    high = 1.0 if successes == runs else float(beta.ppf(0.975, successes + 1, runs - successes))
    return low, high


def list_words(words: Sequence[str]) -> str:
    """Join words as a sentence does: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def plain_numbers(axis: Any) -> None:
    """Label a logarithmic axis with 1,000 rather than with powers of ten, at 1, 2 and 5 where there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415  (an optional dependency)

    low, high = sorted(axis.get_view_interval())
    subs = (1.0, 2.0, 5.0) if high / low < 1_000.0 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def clear_frame(axes: "Axes") -> None:
    """Leave only what was drawn."""
    axes.set_aspect("equal")
    axes.axis("off")
