"""`gangplan log`: what a scheduler's log tells an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.quantities import alike, moment, quantity
from gangplan.scheduler.configure import LIVE
from gangplan.scheduler.journal.history import ENDED, course_figures, history_of, members, stops_by, utilisation
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay
from gangplan.scheduler.journal.values import decode
from gangplan.scheduler.journal.write import CALM
from gangplan.scheduler.settings import Sharing

from . import options
from .output import Told, facts, progress, table, table_of, tell

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
_COLUMNS = ("jobs", "ended", "gpu_hours", "mean_wait", "p95_wait", "mean_jct", "stops")
"""Figures of the tables."""
LONG = f"which took more than {CALM:.0%} of their deadline or asked a policy of your own"
"""Which decisions another computer might make otherwise."""


def log(
    log: options.Log,
    job: Annotated[str | None, "only the lines about this job"] = None,
    check: Annotated[bool, "also make each decision once more that no clock can have cut, and compare"] = False,
) -> Told:
    """Tell what LOG says: who got what, which rule decided, and how long decisions took."""
    read = read_log(log)
    if job is not None:
        lines = [(row["now"], words) for _, row in read.rows if (words := _about(row, job))]
        if not lines:
            raise InstanceError("job", f"{job!r} is in no line", log)
        data = {"log": log, "job": job, "lines": [{"now": now, "words": words} for now, words in lines]}
        return tell(data, "\n".join(words for _, words in lines))
    with progress("reading") as bar:
        past = history_of(read, bar)
    if check:
        replay(read, check=True)
    took = np.array(past.took or [0.0]) * 1e3
    given = {name: value for name, value in {"policy": read.policy, **read.arguments}.items() if value is not None}
    about: dict[str, Any] = {"log": log, "version": read.version, "notes": read.notes, "lines": len(read.rows) + 1}
    about |= {"begin": past.begin, "end": past.end, "jobs": len(past.jobs), "decisions": len(past.took)}
    about |= {"cut": past.cut, "checked": check, "faults": past.notes, "utilisation": utilisation(past, past.course)}
    about |= {"p50_ms": float(np.quantile(took, 0.5)), "p99_ms": float(np.quantile(took, 0.99))}
    head = [
        ("log", f"{log}: {about['lines']} lines by gangplan {read.version}"),
        ("cluster", f"{read.fleet!r}, {about['utilisation']:.1%} of its GPUs held"),
        *_arguments(given),
        *_changes([row for _, row in read.rows]),
        ("time", f"{moment(past.begin)} to {moment(past.end)}, {quantity(past.end - past.begin, 's', 3)}"),
        ("decisions", f"{about['decisions']}: p50 {about['p50_ms']:.3g} ms, p99 {about['p99_ms']:.3g} ms"),
        ("by the clock", f"{past.cut} decisions, {LONG}: --check leaves them out" * (past.cut > 0)),
        ("checked", f"{len(past.took) - past.cut} decisions are made alike once more" * check),
        *(("note", note) for note in read.notes),
        *(("fault", f"{note}: {count} times") for note, count in past.notes.most_common(5)),
    ]
    told, blocks = dict[str, Any](), list[Any]()
    for by, title in ("tier", "first started by"), ("user", "user"), ("queue", "queue"):
        rows = {
            each: {"jobs": len(names), "ended": sum(past.jobs[name].fate == ENDED for name in names)}
            | course_figures(past, past.course, names)
            for each, names in members(past, past.jobs, by).items()
        }
        told[by] = dict(sorted(rows.items(), key=lambda item: -item[1]["gpu_hours"]))
        if by == "tier" or len(rows) > 1:
            blocks.append(_table(title, told[by]))
    if causes := stops_by(past, "queue"):
        kinds = [cause for cause in causes[""] if cause]
        cut = [(queue or "all", *(f"{row[cause]:,}" for cause in kinds)) for queue, row in causes.items()]
        about["stops"] = causes
        blocks.append(table(("cut short by", *kinds), cut if len(cut) > 2 else cut[:1]))
    return tell(about | {"groups": told}, facts(head), *blocks)


def _table(title: str, rows: dict[str, dict[str, float]]) -> Any:
    """Return figures of the jobs of each tier, user or queue."""
    columns = {title: [*rows]}
    for name in _COLUMNS:
        words, base = WORDS.get(name, name), "s" * name.endswith(("wait", "jct"))
        cells, unit = alike([row.get(name) for row in rows.values()], base)
        cells = [f"{int(row[name]):,}" for row in rows.values()] if name in ("jobs", "ended") else cells
        columns[f"{words}, {unit}" if unit else words] = cells
    return table_of(columns)


def _arguments(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield arguments of a scheduler, a row each; of how the cluster is shared, those that are not as usual."""
    for name, value in given.items():
        if name != "sharing":
            yield name, str(value)
            continue
        sharing, usual = Sharing.of(value), Sharing()
        for each in fields(sharing):
            part = getattr(sharing, each.name)
            if isinstance(part, Mapping):
                for key, of in part.items():
                    held = ((f.name, getattr(of, f.name), f.default) for f in fields(of))
                    yield f"{each.name[:-1]} {key}", ", ".join(f"{f} {x:g}" for f, x, d in held if x != d) or "as usual"
            elif part != getattr(usual, each.name):
                yield each.name, str(part)


def _changes(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield when settings changed, and to what; a restart has no time of its own, and lies between two events."""
    for i, row in enumerate(rows):
        if row["event"] == "configure":
            words = "; ".join(map(" ".join, _arguments({x: decode(row[x]) for x in row if x in LIVE})))
            dated = not i or rows[i - 1]["now"] < row["now"]
            later = (f", by {moment(x['now'])}" for x in rows[i:] if x["now"] > row["now"])
            yield f"{'from' if dated else 'after'} {moment(row['now'])}", words + ("" if dated else next(later, ""))


def _about(row: dict[str, Any], job: str) -> str:
    """Return a line about a job in words, nothing if it is about others."""
    words = list[str]()
    named = row.get("job")
    if named == job or (isinstance(named, dict) and named.get("name") == job):
        words.append(row["event"])
    stops = [("stops", "left", "stops for {other}, {time} left", stop) for stop in row.get("stops", ())]
    stops += [
        ("is told to stop", "seconds", "is told to stop within {time} for {other}", x) for x in row.get("stopping", ())
    ]
    for verb, time, text, stop in stops:
        if stop["job"] == job:
            words.append(text.format(other=stop["other"], time=quantity(stop[time], "s", 3)))
        elif stop["other"] == job:
            words.append(f"{stop['job']} {verb} for it")
    for start in row.get("starts", ()):
        if start["job"] == job:
            where = ", ".join(f"{len(gpus)} on {node}" for node, gpus in start["nodes"].items())
            words.append(f"starts by {start['tier']}, {start['degree']} workers; GPUs: {where}")
    number = f", decision {row['number']}" if "number" in row else ""
    return f"{moment(row['now'])}{number}: {'; '.join(words)}" if words else ""
