"""Write formulas as MathML, which browsers draw themselves: no script, nothing to fetch."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace what arithmatex marked (mkdocs hook)."""
    return FORMULA.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    display = "inline" if found[2] == "(" else "block"
    formula = html.unescape(found[3]).strip()
    result = convert(formula, display=display)
    # what the converter does not know it copies: an environment's `&`, a command with its backslash
    if "<mi>&</mi>" in result or "<mi>\\" in result:
        raise PluginError(f"no MathML for {formula}; of environments there are align*, array, cases, matrices")
    return result if display == "inline" else f'<div class="formula">{result}</div>'  # scrolls where it is too wide
