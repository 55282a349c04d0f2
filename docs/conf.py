"""How the site is built: `make docs`. Nothing is fetched, and the pages ask no other host for anything."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))

import api_page  # noqa: E402
import cli_page  # noqa: E402
import http_page  # noqa: E402
import mathml  # noqa: E402

import polyarm  # noqa: E402

project = "polyarm"
author = "the polyarm developers"
copyright = author
version = release = polyarm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_site"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
default_role = "literal"  # docstrings put names between single backticks

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = "polyarm"
html_static_path = ["_site/static"]
html_css_files = ["polyarm.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

#: Pages whose text, but for its beginning, is made from the code: the marker is replaced.
MARKER = "<!-- generated -->"
GENERATED = {"reference/api": api_page.write, "reference/cli": cli_page.write, "reference/http": http_page.write}

#: The text of a file, "```python my.py" on any page, gets the name of the file as its caption.
_FILE = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def prepare(app: Sphinx, page: str, source: list[str]) -> None:
    """Complete the source of a page before it is read."""
    text = source[0]
    if page in GENERATED:
        text = text.replace(MARKER, GENERATED[page]())
    source[0] = _FILE.sub(r"```{code-block} \1\n:caption: \2\n\n\3```", text)


def setup(app: Sphinx) -> None:
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (mathml.visit_inline, None), (mathml.visit_block, None))
    app.connect("source-read", prepare)
    app.connect("autodoc-skip-member", api_page.skip)
