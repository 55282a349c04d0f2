"""How figures are made, look and are saved. Needs matplotlib: pip install 'polyarm[plot]'."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyarm.errors import InvalidInput
from polyarm.files import check_place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, told apart by colour-blind readers too: blue, vermilion, green, orange, sky, pink, black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000")
_ENDINGS = (".png", ".pdf", ".svg")
#: Metadata that would date a file: the same figure must give the same bytes.
_UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def check_target(path: Path) -> None:
    """Raise, before any work is done, when a picture cannot be written there."""
    if path.suffix.lower() not in _ENDINGS:
        raise InvalidInput(f"picture {path}: expected a file name ending in {', '.join(_ENDINGS)}")
    check_place(path, "picture")
    require_plots()


def require_plots() -> None:
    """Raise when nothing can be drawn at all."""
    try:
        import matplotlib  # noqa: F401, PLC0415  (an optional dependency)
    except ImportError:
        raise InvalidInput("pictures need matplotlib: pip install 'polyarm[plot]'") from None


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of this size in inches, drawn without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  (an optional dependency)
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: "Axes") -> None:
    """Remove what carries no information, and add a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure; the same figure gives the same bytes."""
    from matplotlib import rc_context  # noqa: PLC0415

    try:
        with rc_context({"svg.hashsalt": "polyarm"}):
            figure.savefig(path, dpi=120, metadata=_UNDATED.get(path.suffix.lower()))
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error}") from None


def finish_figure(figure: "Figure", path: str | Path | None) -> "Figure":
    """Return a figure for a notebook to show, after writing it to the file if one is named."""
    if path is not None:
        check_target(Path(path))
        save_figure(figure, Path(path))
    return figure
