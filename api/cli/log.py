"""`gangplan log`: what a scheduler's log tells an operator."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from gangplan.hybrid.online.journal.figures import course_figures, members, utilisation
from gangplan.hybrid.online.journal.history import ENDED, History, history_of
from gangplan.hybrid.online.journal.read import read_log
from gangplan.hybrid.online.journal.replay import replay
from gangplan.instances import InstanceError
from gangplan.instances.quantities import quantity

from . import options
from .output import Bar, emit_blocks, emit_either, facts, table

_CHECK = "also make each decision once more that no clock can have cut, and compare"


def log(
    log: Annotated[str, typer.Argument(metavar="LOG", help="what Scheduler(log=...) wrote")],
    job: Annotated[str | None, typer.Option(help="only the lines about this job")] = None,
    check: Annotated[bool, typer.Option("--check", help=_CHECK)] = False,
    as_json: options.AsJson = False,
) -> int:
    """Tell what LOG says: who got what, which rule decided, and how long decisions took."""
    read = read_log(log)
    if job is not None:
        lines = [words for _, row in read.rows if (words := _about(row, job))]
        if not lines:
            raise InstanceError("job", f"{job!r} is in no line", log)
        emit_blocks("\n".join(lines))
        return 0
    with Bar("reading", hidden=as_json) as bar:
        past = history_of(read, bar)
    if check:
        replay(read, check=True)
    took = np.array(past.took or [0.0]) * 1e3
    given = {name: value for name, value in {"policy": read.policy, **read.arguments}.items() if value is not None}
    about: dict[str, Any] = {"log": log, "version": read.version, "notes": read.notes, "lines": len(read.rows) + 1}
    about |= {"begin": past.begin, "end": past.end, "jobs": len(past.jobs), "decisions": len(past.took)}
    about |= {"cut": past.cut, "checked": check, "faults": past.notes, "utilisation": utilisation(past, past.course)}
    about |= {"p50_ms": float(np.quantile(took, 0.5)), "p99_ms": float(np.quantile(took, 0.99))}
    told = {by: _groups(past, by) for by in ("tier", "user", "queue")}
    head = [
        ("log", f"{log}: {about['lines']} lines by gangplan {read.version}"),
        ("cluster", f"{read.fleet!r}, {about['utilisation']:.1%} of its GPUs held"),
        ("arguments", ", ".join(f"{name}={value!r}" for name, value in given.items())),
        ("time", f"{quantity(past.begin, 's')} to {quantity(past.end, 's')}"),
        ("decisions", f"{about['decisions']}: p50 {about['p50_ms']:.3g} ms, p99 {about['p99_ms']:.3g} ms"),
        *([("deadlines", f"{past.cut} decisions may have been cut by theirs")] if past.cut else []),
        *([("checked", f"{len(past.took) - past.cut} decisions are made alike once more")] if check else []),
        *(("note", note) for note in read.notes),
        *(("fault", f"{note}: {count} times") for note, count in past.notes.most_common(5)),
    ]
    blocks = [_table("first start by", told["tier"])]
    blocks += [_table(by, told[by]) for by in ("user", "queue") if len(told[by]) > 1]
    emit_either(as_json, about | {"groups": told}, facts(head), *blocks)
    return 0


def _groups(past: History, by: str) -> dict[str, dict[str, float]]:
    """Return figures of the jobs of each tier, user or queue, the most GPU-hours first."""
    rows = {
        each: {"jobs": len(names), "ended": sum(past.jobs[name].fate == ENDED for name in names)}
        | course_figures(past, past.course, names)
        for each, names in members(past, past.jobs, by).items()
    }
    return dict(sorted(rows.items(), key=lambda item: -item[1]["gpu_hours"]))


def _table(title: str, rows: dict[str, dict[str, float]]) -> Any:
    cells = []
    for each, row in rows.items():
        times = (quantity(row[name], "s", 3) if name in row else "" for name in ("mean_wait", "p95_wait", "mean_jct"))
        counts = f"{row['jobs']:,}", f"{row['ended']:,}", f"{row['gpu_hours']:,.1f}"
        cells.append((each, *counts, *times, f"{row['stops']:.3g}"))
    return table((title, "jobs", "ended", "GPU-hours", "mean wait", "p95 wait", "mean JCT", "stops a job"), cells)


def _about(row: dict[str, Any], job: str) -> str:
    """Return a line about a job in words, nothing if it is about others."""
    words = list[str]()
    named = row.get("job")
    if named == job or (isinstance(named, dict) and named.get("name") == job):
        words.append(row["event"])
    for stop in row.get("stops", ()):
        if stop["job"] == job:
            words.append(f"stops for {stop['other']}, {quantity(stop['left'], 's', 3)} left")
        elif stop["other"] == job:
            words.append(f"{stop['job']} stops for it")
    for start in row.get("starts", ()):
        if start["job"] == job:
            where = ", ".join(f"{len(gpus)} on {node}" for node, gpus in start["nodes"].items())
            words.append(f"starts by {start['tier']}, {start['degree']} workers; GPUs: {where}")
    number = f", decision {row['number']}" if "number" in row else ""
    return f"{row['now']:.6g} s{number}: {'; '.join(words)}" if words else ""
