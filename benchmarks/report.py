"""Put tables into pages, between their markers; the prose around them is written by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

SECTION = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def renew(page: Path, tables: Mapping[str, Callable[[], str]], command: str, *, check: bool = False) -> int:
    """Make every generated section of a page anew; with `check` write nothing and return 1 if it does not agree.

    Args:
        page: what has the text and the sections.
        tables: what makes each section.
        command: that renews the page.
        check: see above.

    Raises:
        ValueError: if a table has no section, or a section no table.
    """
    before = page.read_text(encoding="utf-8")
    named = [match[2] for match in SECTION.finditer(before)]
    if sorted(named) != sorted(tables):
        raise ValueError(f"sections are {', '.join(named)}; tables are {', '.join(tables)}")
    after = SECTION.sub(lambda match: f"{match[1]}\n{tables[match[2]]()}\n\n{match[3]}", before)
    if check and before != after:
        print(f"{page.name} does not agree with its rows: python -m benchmarks {command}")
        return 1
    if before != after:
        page.write_text(after, encoding="utf-8")
    print(f"{page.name} {'agrees with its rows' if before == after else 'renewed'}")
    return 0
