"""Put the tables into docs/benchmarks.md, between its markers; the prose around them is written by hand."""

from __future__ import annotations

import re
from pathlib import Path

from .ledger import LEDGER, ROOT, read
from .rows import Rows
from .tables import TABLES

PAGE = ROOT / "docs" / "benchmarks.md"
SECTION = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def renew(page: str, ledger: Path = LEDGER) -> str:
    """Return `page` with every generated section made anew from the ledger.

    Raises:
        ValueError: if a table has no section, or a section no table.
    """
    rows = Rows(read(ledger))
    named = [match[2] for match in SECTION.finditer(page)]
    if sorted(named) != sorted(TABLES):
        raise ValueError(f"sections are {', '.join(named)}; tables are {', '.join(TABLES)}")
    return SECTION.sub(lambda match: f"{match[1]}\n{TABLES[match[2]](rows)}\n\n{match[3]}", page)


def write_page(ledger: Path = LEDGER, page: Path = PAGE, check: bool = False) -> int:
    """Renew the page; with `check` write nothing and return 1 if it does not agree with the ledger."""
    before = page.read_text(encoding="utf-8")
    after = renew(before, ledger)
    if before == after:
        print(f"{page.name} agrees with the ledger")
        return 0
    if check:
        print(f"{page.name} does not agree with the ledger: python -m benchmarks report")
        return 1
    page.write_text(after, encoding="utf-8")
    print(f"{page.name} renewed")
    return 0
