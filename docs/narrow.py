"""Let code in a line of text break after a dot, a slash or an underscore, so that narrow screens cut no words."""

from __future__ import annotations

import re
from typing import Any

CODE = re.compile(r"<pre.*?</pre>|(?<=<code>)[^<]+(?=</code>)", re.DOTALL)
SIGN = re.compile(r"(?<=[\w\])])([./_]|::)(?=\w)")


def on_page_content(content: str, **_: Any) -> str:
    """Mark where code may break (mkdocs hook)."""
    return CODE.sub(lambda found: found[0] if found[0].startswith("<pre") else SIGN.sub(r"\1<wbr>", found[0]), content)
