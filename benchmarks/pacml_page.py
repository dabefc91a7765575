"""Put the tables into docs/pacml-results.md, between its markers; the prose around them is written by hand."""

from __future__ import annotations

from pathlib import Path

from .ledger import ROOT
from .pacml_found import Found
from .pacml_rows import PACML, read
from .pacml_tables import TABLES
from .report import SECTION

PAGE = ROOT / "docs" / "pacml-results.md"


def renew(page: str, found: Found) -> str:
    """Return `page` with every generated section made anew.

    Raises:
        ValueError: if a table has no section, or a section no table.
    """
    named = [match[2] for match in SECTION.finditer(page)]
    if sorted(named) != sorted(TABLES):
        raise ValueError(f"sections are {', '.join(named)}; tables are {', '.join(TABLES)}")
    return SECTION.sub(lambda match: f"{match[1]}\n{TABLES[match[2]](found)}\n\n{match[3]}", page)


def write_page(path: Path = PACML, page: Path = PAGE, check: bool = False) -> int:
    """Renew the page; with `check` write nothing and return 1 if it does not agree with the rows."""
    before = page.read_text(encoding="utf-8")
    after = renew(before, Found(read(path)))
    if before == after:
        print(f"{page.name} agrees with {path.name}")
        return 0
    if check:
        print(f"{page.name} does not agree with {path.name}: python -m benchmarks pacml --page")
        return 1
    page.write_text(after, encoding="utf-8")
    print(f"{page.name} renewed")
    return 0
