"""What `gangplan simulate` shows: figures side by side, the best marked; what users, queues and sizes got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from html import escape
from statistics import fmean
from typing import Any

import numpy as np

from gangplan.instances.quantities import scale, short
from gangplan.simulator.metrics import GroupMetrics, interval

from ..plot import html
from ..plot.simulation import simulation_scene
from ..units import column, plus_minus
from .output import facts, table
from .simulation_runs import Found, Setting
from .simulation_study import VARIES, as_word

WIDEST = 80
"""Maximum number of characters of a table, unless labels alone are wider."""
MOST_GROUPS = 20
"""Maximum number of users or queues with a line of their own; others, with fewest GPU-hours, share one."""
_COSTS = {"gpu_hours": "GPU-hours held", "cost": "cost", "idle_cost": "cost of idle GPUs"}
ALONE: tuple[dict[str, str], ...] = (
    {"mean_jct": "mean JCT", "median_jct": "median", "p95_jct": "p95", "p99_jct": "p99", "mean_wait": "mean wait"},
    {"makespan": "makespan", "utilisation": "busy", "mean_slowdown": "slowdown"}
    | {"interruptions": "stops/job", "worst_rho": "worst rho", "regret": "regret"},
    _COSTS,
)
WITH_SEEDS: tuple[dict[str, str], ...] = (
    {"mean_jct": "mean JCT", "p99_jct": "p99 JCT", "makespan": "makespan"},
    {"utilisation": "busy", "mean_slowdown": "slowdown", "interruptions": "stops/job", "regret": "regret"},
    _COSTS,
)
"""Figures of each table, and their heads."""
_TIMES = ("mean_jct", "median_jct", "p95_jct", "p99_jct", "mean_wait", "makespan")
_SHARES = ("utilisation", "regret")
_UNJUDGED = ("utilisation", "gpu_hours")
"""Figures of which less is not always better: GPUs are busy with lost work too."""


def as_data(found: Found, many: bool) -> list[dict[str, Any]]:
    """Return an object for each row: its figures, or with seeds their means, margins and values."""
    rows = []
    for label, runs in found.figures.items():
        if not many:
            by = {by: [asdict(group) for group in each] for by, each in found.groups.get(label, {}).items()}
            rows.append(found.about[label] | runs[0] | ({"by": by} if by else {}))
            continue
        known: dict[str, Any] = {}
        for name in runs[0]:
            values = [run[name] for run in runs]
            if None in values:
                continue
            mean, margin = interval(np.array(values, dtype=float))
            first = [run[name] for run in next(iter(found.figures.values()))]
            apart = None if None in first else np.array(values) - first
            difference, width = (None, None) if apart is None else interval(apart)
            known[name] = {"mean": mean, "margin": margin, "difference": difference, "difference_margin": width}
            known[name]["values"] = values
        rows.append({**found.about[label], "seeds": found.seeds, "figures": known})
    return rows


def as_blocks(found: Found, setting: Setting, many: bool) -> list[Any]:
    """Return what people are shown, within 80 columns where words can be folded."""
    blocks: list[Any] = [facts(told(found, setting, many))]
    blocks += [table(head, rows, left=left) for head, rows, left in tables(found, many)]
    if many and len(found.figures) > 1:
        first, *others = found.figures
        columns = [_Column(name, words, found) for name, words in WITH_SEEDS[0].items()]
        rows = [(x, *(column.cell(found.figures[x], found.figures[first]) for column in columns)) for x in others]
        blocks.append(table((f"against {first}", *(column.head for column in columns)), rows))
    for title, head, cells in group_tables(found):
        blocks += [title, table(head, cells)]
    return blocks


def as_page(found: Found, setting: Setting, name: str, epoch: float | None, many: bool) -> bytes:
    """Return the page; the axis of time is the calendar's if the trace's time 0 has a date, seconds from 1970."""
    parts = [html.table(*one) for one in tables(found, many)]
    for title, head, rows in group_tables(found):
        parts.append(f"<details open><summary>{escape(title)}</summary>{html.table(head, rows)}</details>")
    seed = f" of seed {found.seeds[0]}" if many else ""
    scene = simulation_scene(found.outcomes, name, epoch)
    return html.report(name, "gangplan simulate", told(found, setting, many), parts, f"Schedules{seed}", scene)


def told(found: Found, setting: Setting, many: bool) -> list[tuple[str, str]]:
    """Return the facts above the tables."""
    head = list(setting.facts)
    if many:
        head.append(("seeds", ", ".join(map(str, found.seeds))))
    if found.interrupted:
        head.append(("interrupted", "what was done until then"))
    if any(cell.startswith("*") for _, rows, _ in tables(found, many) for row in rows for cell in row):
        head.append(("*", "the best of its column"))
    return head


Cells = Sequence[Sequence[str]]


def tables(found: Found, many: bool) -> list[tuple[tuple[str, ...], Cells, int]]:
    """Return each table of figures: its head, its rows, and how many of its columns are words."""
    known = next(iter(found.figures.values()))[0]
    abouts = found.about.values()
    varies = [x for x in VARIES if x == "policy" or len({about.get(x) for about in abouts}) > 1]
    labels = {name: [as_word(found.about[label].get(name, "")) for label in found.figures] for name in varies}
    made: list[tuple[tuple[str, ...], Cells, int]] = []
    for shown in WITH_SEEDS if many else ALONE:
        columns = {}
        for name, words in shown.items():
            if known.get(name) is not None:
                one = _Column(name, words, found)
                columns[one.head] = [one.marked(runs, mark=not many) for runs in found.figures.values()]
        for part in _parts(columns, sum(_wide(name, cells) for name, cells in labels.items())):
            whole = labels | {head: columns[head] for head in part}
            made.append((tuple(whole), list(zip(*whole.values(), strict=True)), len(varies)))
    return made


def _parts(columns: dict[str, list[str]], labels: int) -> Iterator[list[str]]:
    """Yield the heads of columns that are shown beside one another, beside labels that are so wide."""
    part: list[str] = []
    room = 0
    for head, cells in columns.items():
        room -= _wide(head, cells)
        if room < 0:
            yield from [part] if part else []
            part, room = [], WIDEST - labels - _wide(head, cells)
        part.append(head)
    yield from [part] if part else []


def _wide(head: str, cells: Sequence[str]) -> int:
    """Return the characters of a column and of the gap before it; heads are folded between words."""
    return max(map(len, (*cells, *head.split()))) + 2


class _Column:
    """Show a figure in a table: times of all rows in one unit, shares in percent."""

    def __init__(self, name: str, words: str, found: Found) -> None:
        self.name, self.factor, unit = name, 1.0, ""
        if name in _TIMES:
            self.factor, unit = scale(max(fmean(run[name] for run in runs) for runs in found.figures.values()), "s")
        elif name in _SHARES:
            self.factor, unit = 0.01, "%"
        self.head = f"{words}, {unit}" if unit else words
        values = {runs[0][name]: self.cell(runs) for runs in found.figures.values() if runs[0].get(name) is not None}
        judged = len({*values.values()}) > 1 and name not in _UNJUDGED
        self.best = values[min(values)] if judged else None

    def marked(self, runs: Sequence[dict[str, Any]], mark: bool) -> str:
        """Return the cell of a row, with a star if no other row has a better one."""
        return ("*" if mark and self.best == self.cell(runs) else "") + self.cell(runs)

    def cell(self, runs: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]] | None = None) -> str:
        """Return the mean of a row, or of its differences from another seed by seed, and the margin of 95%."""
        if any(run[self.name] is None for run in (*runs, *(others or ()))):
            return ""
        less = [0.0] * len(runs) if others is None else [run[self.name] for run in others]
        values = np.array([(run[self.name] - x) / self.factor for run, x in zip(runs, less, strict=True)])
        mean, margin = interval(values)
        return f"{'+' if others is not None and mean > 0 else ''}{plus_minus(mean, margin)}"


def group_tables(found: Found) -> list[tuple[str, tuple[str, ...], Cells]]:
    """Return for each row and grouping a title, a head and the rows of its table."""
    made: list[tuple[str, tuple[str, ...], Cells]] = []
    for label, tables_of in found.groups.items():
        for by, groups in tables_of.items():
            title = f"by {by}{f': {label}' if len(found.groups) > 1 else ''}"
            made.append((title, *_group_table(by, groups)))
    return made


def _group_table(by: str, groups: Sequence[GroupMetrics]) -> tuple[tuple[str, ...], Cells]:
    shown = list(groups) if len(groups) <= MOST_GROUPS + 1 else [*groups[:MOST_GROUPS], _rest(groups[MOST_GROUPS:])]
    times = ("mean_wait", "p95_wait", "mean_jct", "p95_jct")
    factor, unit = scale(max((getattr(group, name) for group in shown for name in times), default=0.0), "s")
    columns = {by: [group.name or "(none)" for group in shown], "jobs": [str(group.jobs) for group in shown]}
    for name in times:
        head = f"{name.replace('_', ' ').replace('jct', 'JCT')}, {unit}"
        columns[head] = column(getattr(group, name) / factor for group in shown)
    columns["GPU-hours"] = column(group.gpu_hours for group in shown)
    columns["of cluster, %"] = [short(100 * group.share, 3) for group in shown]
    if shown and shown[0].cost is not None:
        columns["cost"] = column(group.cost or 0.0 for group in shown)
    if any(group.rejected for group in shown):
        columns["rejected"] = [str(group.rejected) for group in shown]
    return tuple(columns), list(zip(*columns.values(), strict=True))


def _rest(groups: Sequence[GroupMetrics]) -> GroupMetrics:
    """Return groups as one; of quantiles no one can be told of them together."""
    jobs = max(1, sum(group.jobs for group in groups))
    known: dict[str, Any] = {"name": f"{len(groups)} others"}
    for field in fields(GroupMetrics)[1:]:
        values = [getattr(group, field.name) or 0.0 for group in groups]
        if field.name.startswith("mean_"):
            known[field.name] = sum(x * group.jobs for x, group in zip(values, groups, strict=True)) / jobs
        else:
            known[field.name] = float("nan") if field.name.startswith("p95_") else sum(values)
    return GroupMetrics(**known | {"cost": None if groups[0].cost is None else known["cost"]})
