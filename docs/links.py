"""Check every link of the built site: pages, pictures and anchors are there, addresses of others are well formed.

Nothing that a page shows or runs may be fetched from elsewhere: the site is read offline too.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page can be linked at, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.targets: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's `id` and what it leads to."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given["id"]} if "id" in given else set()
        self.targets |= {given[x] for x in ("href", "src") if x in given}
        self.fetched |= {given[x] for x in ("href", "src") if x in given and tag in ("img", "link", "script")}


def broken(site: Path) -> list[str]:
    """Return "page: link: what is wrong" for every bad link of the HTML files in `site`; nothing is fetched."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for target in sorted(page.targets):
            elsewhere = target in page.fetched and urlsplit(target).scheme in ("http", "https")
            if problem := "fetched from elsewhere" if elsewhere else _problem(target, path, site, pages):
                found.append(f"{path.relative_to(site)}: {target}: {problem}")
    return found


def _problem(target: str, path: Path, site: Path, pages: dict[Path, _Page]) -> str:
    link = urlsplit(target)
    if link.scheme in ("http", "https"):
        host = link.hostname or ""
        return "" if "." in host and not set(target) & set(' <>"') else "no address"
    if link.scheme or target.startswith("//"):
        return "" if link.scheme in ("data", "mailto") else "no address"
    start = site if link.path.startswith("/") else path.parent
    to = (start / unquote(link.path).lstrip("/")).resolve() if link.path else path
    to = to / "index.html" if to.is_dir() else to
    if not to.is_file() or not to.is_relative_to(site):
        return "no such file"
    return "" if to not in pages or unquote(link.fragment) in pages[to].anchors else "no such anchor"


def on_post_build(config: Any, **_: Any) -> None:
    """Fail the build if a link is broken (mkdocs hook)."""
    from mkdocs.exceptions import PluginError

    if found := broken(Path(config.site_dir).resolve()):
        raise PluginError("broken links:\n" + "\n".join(found))
