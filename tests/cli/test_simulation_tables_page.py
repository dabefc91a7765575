"""The page of a simulation."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any


class Page(HTMLParser):
    """Reads the tags and the words of a page; fails where tags do not match or something is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[tuple[str, str]] = []
        self.best = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        if tag not in ("meta", "br"):
            self.open.append(tag)
        assert not {"src", "href"} & {name for name, _ in attrs}, tag
        self.best += ("class", "best") in attrs

    def handle_endtag(self, tag: str) -> None:
        """Compare a tag with what is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the words of cells and heads."""
        if self.open and self.open[-1] not in ("style", "script"):
            self.cells.append((self.open[-1], data))


def test_report(tmp_path: Path, cli: Any) -> None:
    """One page has the facts, the tables with the best marked, each user, and the calendar; names are escaped."""
    trace, page = tmp_path / "a <b>.csv", tmp_path / "page.html"
    rows = "".join(f"j{i},{1 + i % 2},{3600 * i},{9000 + 700 * (60 - i)},<i>u{i % 3}\n" for i in range(60))
    trace.write_text(f"job_id,num_gpu,submit_time,duration,user\n{rows}")
    asked = ("simulate", trace, "--cluster", "1x4", "--policy", "fifo,sjf", "--by", "user", "--html", page)
    done = cli(*asked, "--epoch", "2026-01-05T06:00Z")
    assert done.code == 0, done.err
    text = page.read_text()
    found = Page()
    found.feed(text)
    assert not found.open and found.best >= 3
    for cell in (("h1", "a <b>.csv"), ("td", "<i>u1"), ("th", "GPU-hours"), ("td", "sjf"), ("summary", "by user: sjf")):
        assert cell in found.cells
    assert "Tue 6 Jan" in text and "Monday 05 January 2026 06:00" in text
    assert cli(*asked).code == 0  # without dates the axis is that of the trace's clock
    assert "time since the first submission" in page.read_text() and "Tue 6 Jan" not in page.read_text()


def test_own_dates(tmp_path: Path, cli: Any) -> None:
    """A trace that has dates needs no --epoch."""
    trace, page = tmp_path / "jobs.csv", tmp_path / "page.html"
    trace.write_text("job_id,num_gpu,submit_time,duration\na,1,2024-02-28 12:00:00,172800\nb,1,2024-02-29,60\n")
    assert cli("simulate", trace, "--cluster", "1x4", "--html", page).code == 0
    assert "Thu 29 Feb" in page.read_text()
