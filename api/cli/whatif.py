"""`gangplan whatif` and `shadow`: play what happened once more with a `Scheduler`, and show how jobs would fare."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any

from gangplan.instances.errors import InstanceError, in_file
from gangplan.instances.intake import read_bytes
from gangplan.instances.outlet import write_whole
from gangplan.instances.quantities import alike, quantity
from gangplan.instances.readers.starts import read_waits
from gangplan.instances.readers.traces import read_trace
from gangplan.scheduler import Scheduler
from gangplan.scheduler.configure import LIVE
from gangplan.scheduler.journal.history import GroupFigures, History, compared, groups, history_of, outcome_of
from gangplan.scheduler.journal.observed import events_of, parsed_events, past_of
from gangplan.scheduler.journal.play import play
from gangplan.scheduler.journal.read import BEGIN, read_log
from gangplan.scheduler.journal.replay import Unknown

from ..plot import html as page
from ..plot.simulation import simulation_scene
from . import options
from .log import LONG, WORDS
from .output import Told, facts, progress, table, tell
from .settings import CLUSTER, Set, fleet_of, with_settings

CAVEAT = (
    "counterfactual: jobs take as long as they did wherever they are and whenever they start, and come when they came"
)
"""What a shadow cannot know."""
_KNOWN = "tell gangplan how long jobs take, which nobody knew; without, it learns from those that ended"
_FOLLOW = "look for more so often, and show it anew, until Ctrl-C or the end of stdin"


def whatif(log: options.Log, settings: Set = None, html: options.Page = None) -> Told:
    """Play LOG once more with other arguments, and show who would have waited how long.

    Jobs come, nodes fail and return, and the operator acts as in the log; jobs have as much work as they turned out to.
    """
    read = read_log(log)
    own = isinstance(read.policy, dict)
    changed = with_settings({**read.arguments, "policy": Unknown() if own else read.policy}, settings or [])
    if isinstance(changed["policy"], Unknown):
        raise InstanceError("set", "the policy was an object, of which the log has no more: name one, policy=hybrid")
    Scheduler(read.fleet, **changed)  # what is wrong with it is said at once
    with progress("reading") as bar:
        past = history_of(read, bar)
    past.fix(name for name in LIVE if changed.get(name) != read.arguments.get(name))
    label = ", ".join(settings or ["played again"])
    cut = f"{past.cut} of {len(past.took)} decisions, {LONG}; here none is"
    head = [
        ("log", f"{log}: {len(past.jobs)} jobs in {quantity(past.end - past.begin, 's')} on {past.fleet!r}"),
        ("changed", ", ".join(settings or ["nothing: a control"])),
        *(("note", note) for note in read.notes),
        ("by the clock", cut if past.cut and not own else ""),
    ]
    about = {"log": log, "set": settings or [], "notes": [*read.notes], "cut": past.cut}
    return compare(past, changed, head, ("log", label), about, html)


def shadow(
    trace: Annotated[str, "sacct --parsable2 with Start, another trace with starts, or events", "TRACE", options.READ],
    cluster: Annotated[str, CLUSTER, "NxM|FILE", "--cluster"],
    settings: Set = None,
    known: Annotated[bool, _KNOWN] = False,
    follow: Annotated[float | None, _FOLLOW, "SECONDS"] = None,
    html: options.Page = None,
) -> Told:
    """Tell what gangplan would have decided where another scheduler did, and what that would have saved or cost.

    Events are lines such as {"event": "submit", "now": 0, "job": "a", "gpus": 8, "user": "me"}, then start, stop, end
    or withdraw of the job, fail_node and repair_node of a node; - reads them from stdin.
    """
    options.require_positive(follow=follow)
    fleet, changed = fleet_of(cluster), with_settings({}, settings or [])
    Scheduler(fleet, **changed)
    label, told = ", ".join(["gangplan", *(settings or [])]), Told(0)
    for rows, notes in _batches(trace, follow):
        with in_file(trace):
            past, left_out = past_of(rows, fleet, known=known)
        if follow is not None and not past.course.finish:
            continue
        head = [
            ("trace", f"{trace}: {len(past.jobs)} jobs in {quantity(past.end - past.begin, 's')} on {fleet!r}"),
            ("told", "true durations" if known else "estimates of users if any, else what it learned"),
            *(("left out", note) for note in [*notes, *left_out[:3]]),
            ("left out", f"{len(left_out) - 3} more jobs" * (len(left_out) > 3)),
            ("caveat", CAVEAT),
        ]
        about: dict[str, Any] = {"trace": trace, "set": settings or [], "known": known, "caveat": CAVEAT}
        about["notes"] = [*notes, *left_out]
        told = compare(past, changed, head, ("as it was", label), about, html)
    return told


def _batches(trace: str, follow: float | None) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """Yield events whenever there are more, and what was left out."""
    lines, last = list[bytes](), time.monotonic()
    for line in sys.stdin.buffer if trace == "-" else ():
        lines.append(line)
        if follow is not None and time.monotonic() - last >= follow:
            yield parsed_events(b"".join(lines)), []
            last = time.monotonic()
    if trace == "-":
        yield parsed_events(b"".join(lines)), []
        return
    size = -1
    while True:
        content = read_bytes(trace)
        if content.startswith(BEGIN):
            raise InstanceError("content", "is gangplan's own log: gangplan whatif plays it once more", trace)
        if len(content) > size and content.lstrip().startswith(b"{"):
            with in_file(trace):
                yield parsed_events(content), []
        elif len(content) > size:
            read = read_trace(trace)
            notes = [f"{count} rows {reason}" for reason, count in read.left_out.items()]
            yield events_of(read.workload, read_waits(trace)), notes
        size = max(size, len(content))
        if follow is None:
            return
        time.sleep(follow)


def compare(
    past: History,
    arguments: Mapping[str, Any],
    head: Sequence[tuple[str, str]],
    labels: tuple[str, str],
    about: dict[str, Any],
    html: str | None,
) -> Told:
    """Play the past with a scheduler of these arguments, and show both.

    Args:
        head, about: what the tables and the JSON object begin with.
        labels: names of what happened, and of what is compared with it.
        html: file of a page.
    """
    with progress("playing") as bar:
        played = play(past, Scheduler(past.fleet, **arguments), bar)
    told, (both, others) = groups(past, played.course), compared(past, played.course)
    if not both:
        raise InstanceError("jobs", "none has ended in both courses: there is nothing to compare")
    lines = [*head, ("jobs", f"{len(both)} ended in both, and are compared")]
    lines += [("not compared", f"{count} {fate}: they are played, and hold GPUs") for fate, count in others.items()]
    lines += [("skipped", f"{played.skipped} calls that could not happen then")] if played.skipped else []
    if html is not None:
        outcomes = {labels[0]: outcome_of(past, past.course), labels[1]: outcome_of(past, played.course)}
        figures = [page.table(*each) for each in _tables(told, labels)]
        scene = simulation_scene(outcomes)
        write_whole({html: page.report(f"What if: {labels[1]}", "gangplan", lines, figures, "Schedules", scene)})
    data = about | {"jobs": len(both), "left_out": others, "skipped": played.skipped}
    data |= {"decisions": played.decisions, "groups": [asdict(group) for group in told]}
    return tell(data, facts(lines), *(table(*each) for each in _tables(told, labels)))


Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def _tables(told: Sequence[GroupFigures], labels: tuple[str, str]) -> list[Table]:
    """Return heads and rows: all figures of all jobs, then some of each user and queue."""
    rows = list[tuple[str, ...]]()
    for name, words in WORDS.items():
        (before, after, change), unit = _changes(told[:1], name)
        rows.append((f"{words}, {unit}" if unit else words, *before, *after, *change))
    tables: list[Table] = [(("all jobs", *labels, "change"), rows)]
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


def _changes(groups: Sequence[GroupFigures], name: str) -> tuple[list[list[str]], str]:
    """Return a figure of each group before, after and by what share it changes, and the unit of the first two."""
    before, after = [group.before[name] for group in groups], [group.after[name] for group in groups]
    unit = {"utilisation": "%", "gpu_hours": "", "stops": ""}.get(name, "s")
    shown, unit = alike([100 * x if unit == "%" else x for x in (*before, *after)], unit)
    shares = [f"{b / a - 1:+.1%}" if a else "" if b else "0" for a, b in zip(before, after, strict=True)]
    shares = ["0" if x in ("+0.0%", "-0.0%") else x for x in shares]
    return [shown[: len(before)], shown[len(before) :], shares], unit
