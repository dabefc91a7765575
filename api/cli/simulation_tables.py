"""What `gangplan simulate` shows: figures side by side, the best marked; what users, queues and sizes got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from html import escape
from statistics import fmean
from typing import Any

import numpy as np

from gangplan.instances.quantities import scale, short
from gangplan.simulator.metrics import GroupMetrics, interval
from gangplan.simulator.outcome import Outcome

from ..plot import html, picture
from ..units import column, in_unit, plus_minus
from .output import facts, table_of
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


@dataclass
class StudyRows:
    """Hold what was simulated.

    Attributes:
        facts, about: of the trace and the clusters, for people; of each row, for machines.
        seeds, many: those that were simulated, and whether means over them are shown.
        epoch: seconds from 1970 of the trace's time 0, `None` if it has no date.
        figures, outcomes, groups: of each row the figures of each seed; of the first the outcome, and what groups got.
    """

    facts: list[tuple[str, str]]
    about: dict[str, dict[str, Any]]
    seeds: list[int]
    epoch: float | None
    many: bool
    figures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    groups: dict[str, dict[str, list[GroupMetrics]]] = field(default_factory=dict)
    interrupted: bool = False


def as_data(found: StudyRows) -> list[dict[str, Any]]:
    """Return an object for each row: its figures, or with seeds their means, margins and values."""
    rows = []
    for label, runs in found.figures.items():
        if not found.many:
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


def as_blocks(found: StudyRows) -> list[Any]:
    """Return what people are shown, within 80 columns where words can be folded."""
    blocks: list[Any] = [facts(_told(found))]
    for title, columns, words in _tables(found):
        blocks += [title, table_of(columns, words)]
    if found.many and len(found.figures) > 1:
        first, *others = found.figures
        figures = [_Metric(name, words, found) for name, words in WITH_SEEDS[0].items()]
        against = {x.head: [x.cell(found.figures[y], found.figures[first]) for y in others] for x in figures}
        blocks.append(table_of({f"against {first}": others, **against}))
    return blocks


def as_page(found: StudyRows, name: str) -> bytes:
    """Return the page; the axis of time is the calendar's if the trace's time 0 has a date."""
    parts = []
    for title, columns, words in _tables(found):
        part = html.table([*columns], zip(*columns.values(), strict=True), words)
        parts.append(f"<details open><summary>{escape(title)}</summary>{part}</details>" if title else part)
    seed = f" of seed {found.seeds[0]}" if found.many else ""
    scene = picture(found.outcomes, name=name, epoch=found.epoch)
    return html.report(name, "gangplan simulate", _told(found), parts, f"Schedules{seed}", scene)


def _told(found: StudyRows) -> list[tuple[str, str]]:
    """Return the facts above the tables."""
    cells = (cell for _, columns, _ in _tables(found) for column in columns.values() for cell in column)
    return [
        *found.facts,
        ("seeds", ", ".join(map(str, found.seeds)) if found.many else ""),
        ("interrupted", "what was done until then" if found.interrupted else ""),
        ("*", "the best of its column" if any(cell.startswith("*") for cell in cells) else ""),
    ]


def _tables(found: StudyRows) -> Iterator[tuple[str, dict[str, list[str]], int]]:
    """Yield each table, of figures and of groups: a title, cells by column, and how many columns are words.

    Tables of figures have as many columns beside the labels of their rows as there is room for.
    """
    known, abouts = next(iter(found.figures.values()))[0], found.about.values()
    varies = [x for x in VARIES if x == "policy" or len({about.get(x) for about in abouts}) > 1]
    labels = {name: [as_word(found.about[label].get(name, "")) for label in found.figures] for name in varies}
    for shown in WITH_SEEDS if found.many else ALONE:
        part, room = dict[str, list[str]](), 0
        for figure in [_Metric(name, words, found) for name, words in shown.items() if known.get(name) is not None]:
            cells = [figure.marked(runs, mark=not found.many) for runs in found.figures.values()]
            if _wide(figure.head, cells) > room:
                if part:
                    yield "", part, len(labels)
                part, room = dict(labels), WIDEST - sum(_wide(*each) for each in labels.items())
            part[figure.head] = cells
            room -= _wide(figure.head, cells)
        if part:
            yield "", part, len(labels)
    for label, tables in found.groups.items():
        for by, groups in tables.items():
            yield f"by {by}{f': {label}' if len(found.groups) > 1 else ''}", _group_table(by, groups), 1


def _wide(head: str, cells: Sequence[str]) -> int:
    """Return the characters of a column and of the gap before it; heads are folded between words."""
    return max(map(len, (*cells, *head.split()))) + 2


class _Metric:
    """Show a figure in a table: times of all rows in one unit, shares in percent."""

    def __init__(self, name: str, words: str, found: StudyRows) -> None:
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


def _group_table(by: str, groups: Sequence[GroupMetrics]) -> dict[str, list[str]]:
    shown = list(groups) if len(groups) <= MOST_GROUPS + 1 else [*groups[:MOST_GROUPS], _rest(groups[MOST_GROUPS:])]
    heads = {"mean wait": "mean_wait", "p95 wait": "p95_wait", "mean JCT": "mean_jct", "p95 JCT": "p95_jct"}
    times = {head: [getattr(group, name) for group in shown] for head, name in heads.items()}
    costs, rejected = [group.cost for group in shown], [group.rejected for group in shown]
    columns = {
        by: [group.name or "(none)" for group in shown],
        "jobs": [str(group.jobs) for group in shown],
        **in_unit(times, "s", max((x for of in times.values() for x in of), default=0.0)),
        "GPU-hours": column(group.gpu_hours for group in shown),
        "of cluster, %": [short(100 * group.share, 3) for group in shown],
        "cost": [] if None in costs else column(x or 0.0 for x in costs),
        "rejected": [str(x) for x in rejected] if any(rejected) else [],
    }
    return {head: cells for head, cells in columns.items() if cells}


def _rest(groups: Sequence[GroupMetrics]) -> GroupMetrics:
    """Return groups as one; of quantiles no one can be told of them together."""
    jobs = max(1, sum(group.jobs for group in groups))
    known: dict[str, Any] = {"name": f"{len(groups)} others"}
    for each in fields(GroupMetrics)[1:]:
        values = [getattr(group, each.name) or 0.0 for group in groups]
        if each.name.startswith("mean_"):
            known[each.name] = sum(x * group.jobs for x, group in zip(values, groups, strict=True)) / jobs
        else:
            known[each.name] = float("nan") if each.name.startswith("p95_") else sum(values)
    return GroupMetrics(**known | {"cost": None if groups[0].cost is None else known["cost"]})
