"""Show how the jobs of a log fared, and how they would have: tables, one JSON object, one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from typing import Any

from gangplan.hybrid.online import Scheduler
from gangplan.hybrid.online.journal.figures import Group, compared, groups, outcome_of
from gangplan.hybrid.online.journal.history import History
from gangplan.hybrid.online.journal.play import play
from gangplan.instances import InstanceError
from gangplan.instances.outlet import write_whole
from gangplan.instances.quantities import scale

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
Cells = list[tuple[str, ...]]


def compare(
    past: History,
    arguments: Mapping[str, Any],
    head: Sequence[tuple[str, str]],
    labels: tuple[str, str],
    about: dict[str, Any],
    *,
    html: str | None,
    as_json: bool,
) -> None:
    """Play the past with a scheduler of these arguments, and show both.

    Args:
        head, about: what the tables and the JSON object begin with.
        labels: names of what happened, and of what is compared with it.
        html: file of a page.
    """
    with Bar("playing", hidden=as_json) as bar:
        played = play(past, Scheduler(past.fleet, **arguments), bar)
    told, (both, others) = groups(past, played.course), compared(past, played.course)
    if not both:
        raise InstanceError("jobs", "none has ended in both courses: there is nothing to compare")
    lines = [("jobs", f"{len(both)} ended in both, and are compared")]
    lines += [("left out", f"{count} {fate}; they hold GPUs, as expected of them") for fate, count in others.items()]
    lines += [("skipped", f"{played.skipped} calls that could not happen then")] if played.skipped else []
    if html is not None:
        from ..plot.simulation import simulation_scene
        from .simulation_report import html_table, page

        outcomes = {labels[0]: outcome_of(past, past.course), labels[1]: outcome_of(past, played.course)}
        figures = [html_table(*each) for each in _tables(told, labels)]
        scene = simulation_scene(outcomes)
        write_whole({html: page(labels[1], "gangplan", [*head, *lines], figures, "Schedules", scene)})
    data = about | {"jobs": len(both), "left_out": others, "skipped": played.skipped}
    data |= {"decisions": played.decisions, "groups": [asdict(group) for group in told]}
    emit_either(as_json, data, facts([*head, *lines]), *(table(*each) for each in _tables(told, labels)))


def _tables(told: Sequence[Group], labels: tuple[str, str]) -> list[tuple[tuple[str, ...], Cells]]:
    """Return heads and rows: all figures of all jobs, then some of each user and queue."""
    rows: Cells = [(words, *_change(told[0], name)) for name, words in WORDS.items()]
    tables: list[tuple[tuple[str, ...], Cells]] = [(("all jobs", *labels, "change"), rows)]
    head = "jobs", "GPU-hours", "mean wait", "then", "change", "mean JCT", "then", "change"
    for by, some in groupby(told[1:], attrgetter("by")):
        rows = []
        for group in some:
            cells = group.name, f"{group.jobs:,}", f"{group.before['gpu_hours']:,.0f}"
            rows.append((*cells, *_change(group, "mean_wait"), *_change(group, "mean_jct")))
        tables.append(((by, *head), rows))
    return tables


def _change(group: Group, name: str) -> tuple[str, str, str]:
    """Return a figure before and after in one unit, and by what share it changes."""
    before, after = group.before[name], group.after[name]
    share = f"{after / before - 1:+.1%}" if before else "" if after else "0"
    if name == "utilisation":
        return f"{before:.1%}", f"{after:.1%}", share
    if name in ("gpu_hours", "stops"):
        return f"{before:,.4g}", f"{after:,.4g}", share
    factor, unit = scale(max(before, after), "s")
    return f"{before / factor:.3g} {unit}", f"{after / factor:.3g} {unit}", share
