"""Draw the whole gallery and write its page: python gallery/make_page.py [--quick] [--out FOLDER]

The page is made of the scripts themselves: the docstring of each, its pictures, and the sentences that it returned,
whose numbers it has computed. It is written beside the folder of the pictures, as docs/gallery.md by default.
"""

import importlib
import inspect
import os
import time
from pathlib import Path

from picture import ROOT, main

#: In the order of the page.
SCRIPTS = (
    "simplex_animation",
    "three_explorers",
    "price_of_safety",
    "uncertified_answers",
    "scaling",
    "imdb",
)

OPENING = """# Gallery

Pictures that are drawn by short scripts, from fixed seeds: each runs by itself, as `python gallery/NAME.py`, with
`--quick` in seconds. `make gallery` draws them all and writes this page. What stands under "In this picture" was
computed by the script that drew it.
"""


def draw(quick: bool, out: Path) -> list[str]:
    """Draw everything and write the page."""
    page = out.with_name(out.name + ".md")
    # Links lead from the page to where the scripts really are, wherever it is written.
    scripts = Path(os.path.relpath(ROOT / "gallery", page.parent.resolve())).as_posix()
    parts, told = [OPENING], []
    for name in SCRIPTS:
        start = time.perf_counter()
        script = importlib.import_module(name)
        sentences = script.draw(quick, out)
        told.append(f"{name}: {time.perf_counter() - start:.0f} s")
        title, _, text = inspect.cleandoc(script.__doc__ or "").partition("\n")
        found = "\n".join(f"- {sentence}" for sentence in sentences)
        parts.append(
            f"## {title}\n\n![{title}]({out.name}/{script.NAMES[0]})\n\n{text.strip()}\n\n"
            f"In this picture:\n\n{found}\n\nDrawn by [gallery/{name}.py]({scripts}/{name}.py).\n"
        )
    page.write_text("\n".join(parts), encoding="utf-8")
    return [*told, f"written: {page}"]


if __name__ == "__main__":
    main(draw)
