"""Formulas as MathML, which browsers draw by themselves: no script, no font of another host."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_LOG = logging.getLogger(__name__)
#: An index behind an accented letter would be written below it: an empty group in between takes it.
_ACCENTED = re.compile(r"(\\(?:hat|tilde|bar)\s*(?:\{[^{}]*\}|\\[A-Za-z]+|[A-Za-z]))(?=[_^])")


def _convert(node: nodes.Element, as_block: bool) -> str:
    try:
        return tex2mathml(_ACCENTED.sub(r"\1{}", node.astext()), as_block=as_block)
    except MathError as error:
        _LOG.warning("formula %r: %s", node.astext(), error, location=node)
        return f"<code>{node.astext()}</code>"


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(_convert(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="math">{_convert(node, as_block=True)}</div>')
    raise nodes.SkipNode
