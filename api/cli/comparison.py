"""Show how the jobs of a log fared, and how they would have: tables, one JSON object, one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from gangplan.hybrid.online import Scheduler
from gangplan.hybrid.online.journal.figures import Group, compared, groups, outcome_of
from gangplan.hybrid.online.journal.history import History
from gangplan.hybrid.online.journal.play import play
from gangplan.instances import InstanceError
from gangplan.instances.outlet import write_whole
from gangplan.instances.quantities import scale
from gangplan.simulator.trace import Outcome

from .options import check_picture
from .output import Bar, emit_either, facts, table

WORDS = {
    "mean_wait": "mean wait",
    "p95_wait": "p95 wait",
    "mean_jct": "mean JCT",
    "p95_jct": "p95 JCT",
    "gpu_hours": "GPU-hours",
    "stops": "stops a job",
    "utilisation": "GPUs held",
}
"""Figures in words."""


def check_page(path: str | None, *inputs: str) -> None:
    """Refuse, before any work is done, a page that cannot be written."""
    if path is not None and not path.lower().endswith(".html"):
        raise InstanceError("html", f"{path!r} does not end in .html")
    check_picture(path, None, Outcome, *inputs)


def compare(
    past: History,
    make: Callable[[], Scheduler],
    head: Sequence[tuple[str, str]],
    labels: tuple[str, str],
    about: dict[str, Any],
    *,
    html: str | None,
    as_json: bool,
) -> None:
    """Play the past with another scheduler, and show both.

    Args:
        past: what happened.
        make: returns the scheduler.
        head: facts to begin with.
        labels: what happened in few words, and what is compared with it.
        about: what the JSON object begins with.
        html: a page to be written.
        as_json: print the object, not tables.
    """
    with Bar("playing", hidden=as_json) as bar:
        played = play(past, make(), bar)
    told, (both, others) = groups(past, played.course), compared(past, played.course)
    if not both:
        raise InstanceError("jobs", "none has ended in both courses: there is nothing to compare")
    lines = [("jobs", f"{len(both)} ended in both, and are compared")]
    lines += [("left out", f"{count} {fate}; they hold GPUs, as expected of them") for fate, count in others.items()]
    lines += [("skipped", f"{played.skipped} calls that could not happen then")] if played.skipped else []
    if html is not None:
        write_whole({html: _page([*head, *lines], told, labels, past, played.course)})
    data = about | {"jobs": len(both), "left_out": others, "skipped": played.skipped}
    data |= {"decisions": played.decisions, "groups": [asdict(group) for group in told]}
    emit_either(as_json, data, facts([*head, *lines]), *(table(*each) for each in _tables(told, labels)))


def _tables(told: Sequence[Group], labels: tuple[str, str]) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Return heads and rows: all figures of all jobs, then some of each user and queue."""
    whole = told[0]
    rows: list[tuple[str, ...]] = [
        (words, *_pair(name, whole.before[name], whole.after[name]), _share(whole.before[name], whole.after[name]))
        for name, words in WORDS.items()
    ]
    tables: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = [(("all jobs", *labels, "change"), rows)]
    for by in dict.fromkeys(group.by for group in told[1:]):
        rows = []
        for group in told:
            if group.by != by:
                continue
            cells = [group.name, f"{group.jobs:,}", f"{group.before['gpu_hours']:,.0f}"]
            for name in ("mean_wait", "mean_jct"):
                before, after = group.before[name], group.after[name]
                cells += [*_pair(name, before, after), _share(before, after)]
            rows.append(tuple(cells))
        tables.append(((by, "jobs", "GPU-hours", "mean wait", "then", "change", "mean JCT", "then", "change"), rows))
    return tables


def _pair(name: str, before: float, after: float) -> tuple[str, str]:
    """Return two figures in one unit."""
    if name == "utilisation":
        return f"{before:.1%}", f"{after:.1%}"
    if name in ("gpu_hours", "stops"):
        return f"{before:,.4g}", f"{after:,.4g}"
    factor, unit = scale(max(before, after), "s")
    return f"{before / factor:.3g} {unit}", f"{after / factor:.3g} {unit}"


def _share(before: float, after: float) -> str:
    """Return by what share a figure changes."""
    return f"{after / before - 1:+.1%}" if before else "" if after else "0"


def _page(
    head: Sequence[tuple[str, str]], told: Sequence[Group], labels: tuple[str, str], past: History, course: Any
) -> bytes:
    """Return one page that needs nothing else: facts, tables, and pictures of both courses."""
    from ..plot import render

    outcomes = dict(zip(labels, (outcome_of(past, past.course), outcome_of(past, course)), strict=True))
    page = render("page.html", outcomes, None)
    parts = ["<p>" + "<br>".join(f"<b>{escape(name)}</b> {escape(value)}" for name, value in head) + "</p>"]
    for columns, rows in _tables(told, labels):
        cells = "".join("<tr>" + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>" for row in rows)
        parts.append(f"<table><tr>{''.join(f'<th>{escape(x)}</th>' for x in columns)}</tr>{cells}</table>")
    return page.replace(b"<body>", f"<body>{_STYLE}<div class=told>{''.join(parts)}</div>".encode(), 1)


_STYLE = (
    "<style>.told{font-family:system-ui,sans-serif;margin:20px;color:CanvasText}.told td,.told th{padding:2px 14px;"
    "text-align:right}.told td:first-child,.told th:first-child{text-align:left}.told table{margin:14px 0}</style>"
)
"""Of the tables of a page: numbers to the right."""
