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
from gangplan.instances.quantities import alike

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
    lines += [("not compared", f"{count} {fate}: they are played, and hold GPUs") for fate, count in others.items()]
    lines += [("skipped", f"{played.skipped} calls that could not happen then")] if played.skipped else []
    if html is not None:
        from ..plot.html import table as html_table
        from ..plot.simulation import simulation_scene
        from .simulation_report import page

        outcomes = {labels[0]: outcome_of(past, past.course), labels[1]: outcome_of(past, played.course)}
        figures = [html_table(*each) for each in _tables(told, labels)]
        scene = simulation_scene(outcomes)
        write_whole({html: page(f"What if: {labels[1]}", "gangplan", [*head, *lines], figures, "Schedules", scene)})
    data = about | {"jobs": len(both), "left_out": others, "skipped": played.skipped}
    data |= {"decisions": played.decisions, "groups": [asdict(group) for group in told]}
    emit_either(as_json, data, facts([*head, *lines]), *(table(*each) for each in _tables(told, labels)))


def _tables(told: Sequence[Group], labels: tuple[str, str]) -> list[tuple[tuple[str, ...], Cells]]:
    """Return heads and rows: all figures of all jobs, then some of each user and queue."""
    rows: Cells = []
    for name, words in WORDS.items():
        (before, after, change), unit = _changes(told[:1], name)
        rows.append((f"{words}, {unit}" if unit else words, *before, *after, *change))
    tables: list[tuple[tuple[str, ...], Cells]] = [(("all jobs", *labels, "change"), rows)]
    for by, some in groupby(told[1:], attrgetter("by")):
        each = [*some]
        hours, _ = alike([group.before["gpu_hours"] for group in each])
        columns, head = [[group.name for group in each], [f"{group.jobs:,}" for group in each], hours], [by]
        head += ["jobs", "GPU-hours"]
        for name in ("mean_wait", "mean_jct"):
            changes, unit = _changes(each, name)
            columns += changes
            head += [f"{WORDS[name]}, {unit}", "then", "change"]
        tables.append((tuple(head), [*zip(*columns, strict=True)]))
    return tables


def _changes(groups: Sequence[Group], name: str) -> tuple[list[list[str]], str]:
    """Return a figure of each group before, after and by what share it changes, and the unit of the first two."""
    before, after = [group.before[name] for group in groups], [group.after[name] for group in groups]
    unit = {"utilisation": "%", "gpu_hours": "", "stops": ""}.get(name, "s")
    shown, unit = alike([100 * x if unit == "%" else x for x in (*before, *after)], unit)
    shares = [f"{b / a - 1:+.1%}" if a else "" if b else "0" for a, b in zip(before, after, strict=True)]
    shares = ["0" if x in ("+0.0%", "-0.0%") else x for x in shares]
    return [shown[: len(before)], shown[len(before) :], shares], unit
