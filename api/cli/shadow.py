"""`gangplan shadow`: what gangplan would have decided beside another scheduler, from its log or its events."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from gangplan.instances.errors import InstanceError, in_file
from gangplan.instances.intake import read_bytes, read_json
from gangplan.instances.placement import Fleet
from gangplan.instances.quantities import quantity
from gangplan.instances.readers.starts import read_waits
from gangplan.instances.readers.traces import read_trace
from gangplan.scheduler import Scheduler
from gangplan.scheduler.described import cluster_of
from gangplan.scheduler.journal.observed import events_of, parsed_events, past_of
from gangplan.scheduler.journal.read import BEGIN

from . import options
from .whatif import Page, Set, compare, with_settings

CAVEAT = (
    "counterfactual: jobs take as long as they did wherever they are and whenever they start, and come when they came"
)
"""What a shadow cannot know."""
CLUSTER = "20x8: 20 nodes of 8 GPUs; 4x8x8: racks first; or a JSON file of the arguments of Fleet or Fleet.regular"
_KNOWN = "tell gangplan how long jobs take, which nobody knew; without, it learns from those that ended"
_FOLLOW = "look for more so often, and show it anew, until Ctrl-C or the end of stdin"


def shadow(
    trace: Annotated[str, "sacct --parsable2 with Start, another trace with starts, or events", "TRACE"],
    cluster: Annotated[str, CLUSTER, "NxM|FILE", "--cluster"],
    settings: Set = None,
    known: Annotated[bool, _KNOWN] = False,
    follow: Annotated[float | None, _FOLLOW, "SECONDS"] = None,
    html: Page = None,
    as_json: options.AsJson = False,
) -> int:
    """Tell what gangplan would have decided where another scheduler did, and what that would have saved or cost.

    Events are lines such as {"event": "submit", "now": 0, "job": "a", "gpus": 8, "user": "me"}, then start, stop, end
    or withdraw of the job, fail_node and repair_node of a node; - reads them from stdin.
    """
    options.check_page(html, trace)
    options.require_positive(follow=follow)
    fleet, changed = fleet_of(cluster), with_settings({}, settings or [])
    Scheduler(fleet, **changed)
    label = ", ".join(["gangplan", *(settings or [])])
    for rows, notes in _batches(trace, follow):
        with in_file(trace):
            past, left_out = past_of(rows, fleet, known=known)
        if follow is not None and not past.course.finish:
            continue
        head = [
            ("trace", f"{trace}: {len(past.jobs)} jobs in {quantity(past.end - past.begin, 's')} on {fleet!r}"),
            ("told", "true durations" if known else "estimates of users if any, else what it learned"),
            *(("left out", note) for note in [*notes, *left_out[:3]]),
            *([("left out", f"{len(left_out) - 3} more jobs")] if len(left_out) > 3 else []),
            ("caveat", CAVEAT),
        ]
        about: dict[str, Any] = {"trace": trace, "set": settings or [], "known": known, "caveat": CAVEAT}
        about["notes"] = [*notes, *left_out]
        compare(past, changed, head, ("as it was", label), about, html=html, as_json=as_json)
    return 0


def fleet_of(text: str) -> Fleet:
    """Return the cluster that a text like ``20x8`` says, or a file."""
    if not Path(text).suffix and not Path(text).exists():
        return cluster_of(text)
    data = read_json(text)
    with in_file(text):
        return cluster_of(data)


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
        if len(content) > size:
            size = len(content)
            yield _events(trace, content)
        if follow is None:
            return
        time.sleep(follow)


def _events(trace: str, content: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    if content.startswith(BEGIN):
        raise InstanceError("content", "is gangplan's own log: gangplan whatif plays it once more", trace)
    if content.lstrip().startswith(b"{"):
        with in_file(trace):
            return parsed_events(content), []
    read = read_trace(trace)
    notes = [f"{count} rows {reason}" for reason, count in read.left_out.items()]
    return events_of(read.workload, read_waits(trace)), notes
