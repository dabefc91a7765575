"""`gangplan whatif`: play the log of a scheduler once more with other arguments, and show how its jobs would fare."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from gangplan.instances.errors import InstanceError, unknown
from gangplan.instances.intake import parse_json
from gangplan.instances.outlet import write_whole
from gangplan.instances.placement import Fleet
from gangplan.instances.quantities import alike, quantity
from gangplan.scheduler import Scheduler
from gangplan.scheduler.configure import LIVE
from gangplan.scheduler.described import has_begun, reopened
from gangplan.scheduler.journal.figures import GroupFigures, compared, groups, outcome_of
from gangplan.scheduler.journal.history import History, history_of
from gangplan.scheduler.journal.play import play
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import Unknown
from gangplan.scheduler.journal.write import OF_LOG
from gangplan.scheduler.queueing.sharing import Quota, Sharing

from ..plot import html as page
from ..plot.simulation import simulation_scene
from . import options
from .log import LONG, WORDS
from .output import emit_either, facts, progress, table

Cells = list[tuple[str, ...]]
Set = Annotated[
    list[str] | None,
    "an argument of Scheduler, such as price=600 or policy=patient; a part of one by dots; may be repeated",
    "--set",
    "NAME=VALUE",
]
LOG = "append each event and decision to this file, and go on with it if it is there"
Page = Annotated[str | None, "write one page with tables and pictures", "FILE.html"]


def whatif(
    log: Annotated[str, "what Scheduler(log=...) wrote", "LOG"],
    settings: Set = None,
    html: Page = None,
    as_json: options.AsJson = False,
) -> int:
    """Play LOG once more with other arguments, and show who would have waited how long.

    Jobs come, nodes fail and return, and the operator acts as in the log; jobs have as much work as they turned out to.
    """
    options.check_page(html, log)
    read = read_log(log)
    own = isinstance(read.policy, dict)
    changed = with_settings({**read.arguments, "policy": Unknown() if own else read.policy}, settings or [])
    if isinstance(changed["policy"], Unknown):
        raise InstanceError("set", "the policy was an object, of which the log has no more: name one, policy=hybrid")
    Scheduler(read.fleet, **changed)  # what is wrong with it is said at once
    with progress("reading", hidden=as_json) as bar:
        past = history_of(read, bar)
    past.fix(name for name in LIVE if changed.get(name) != read.arguments.get(name))
    label = ", ".join(settings or ["played again"])
    head = [
        ("log", f"{log}: {len(past.jobs)} jobs in {quantity(past.end - past.begin, 's')} on {past.fleet!r}"),
        ("changed", ", ".join(settings or ["nothing: a control"])),
        *(("note", note) for note in read.notes),
    ]
    if past.cut and not own:
        head.append(("by the clock", f"{past.cut} of {len(past.took)} decisions, {LONG}; here none is"))
    about = {"log": log, "set": settings or [], "notes": [*read.notes], "cut": past.cut}
    compare(past, changed, head, ("log", label), about, html=html, as_json=as_json)
    return 0


def scheduler_with(settings: Sequence[str], fleet: Fleet | None, log: str | None, *, sync: bool = False) -> Scheduler:
    """Go on with the scheduler of a log that has begun, or begin one of a cluster, with these settings."""
    if log is not None and has_begun(Path(log)):
        return reopened(Path(log), lambda known: with_settings(known, settings), sync=sync)
    if fleet is None:
        raise InstanceError("cluster", "is missing: write --cluster 20x8")
    return Scheduler(fleet, **with_settings({}, settings), log=log, sync=sync)


def with_settings(given: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return arguments of `Scheduler` with those changed that texts like ``price=600`` say.

    Fields of `Sharing` are set as ``queue.a.share=.4``, without its name.
    """
    known = [x for x in inspect.signature(Scheduler).parameters if x not in ("cluster", *OF_LOG)]
    shared = [field.name for field in fields(Sharing)]
    changed, seen = dict(given), set[str]()
    for text in settings:
        path, equals, value = text.partition("=")
        name, *parts = path.strip().split(".")
        if not equals or not all((name, *parts)) or path in seen:
            raise InstanceError("set", f"{text!r} is {'there twice' if path in seen else 'not NAME=VALUE'}")
        seen.add(path)
        if field := next((x for x in (name, f"{name}s") if x in shared), None):
            name, parts = "sharing", [field, *parts]
        if name not in known:
            raise InstanceError("set", unknown(name, [*known, *shared]))
        whole = Sharing.of(changed.get(name)) if name == "sharing" else changed.get(name)
        *queue, last = parts[1:] or [""]
        declared = Sharing.of(changed.get("sharing")).queues
        if field == "queues" and hasattr(Quota, last) and (whose := ".".join(queue)) not in declared:
            raise InstanceError("set", f"{text!r}: {whose!r} is no queue; there are {', '.join(declared) or 'none'}")
        try:
            changed[name] = _put(whole, parts, _value(value.strip()), text)
        except InstanceError as error:
            raise error if error.field == "set" else InstanceError(f"set {path}", error.problem) from None
    return changed


def _put(whole: Any, parts: Sequence[str], value: Any, text: str) -> Any:
    """Return a value with the part changed that a path leads to: of a mapping, or a field of a dataclass."""
    if not parts:
        return value
    if isinstance(whole, Mapping) or whole is None:  # names may have dots themselves, as those of queues
        known = whole or {}
        cut = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in known), 1)
        name = ".".join(parts[:cut])
        return {**known, name: _put(known.get(name), parts[cut:], value, text)}
    first, *rest = parts
    if is_dataclass(whole) and not isinstance(whole, type) and hasattr(whole, first):
        return replace(whole, **{first: _put(getattr(whole, first), rest, value, text)})
    raise InstanceError("set", f"{text!r}: {first!r} is no part of {whole!r}")


def _value(text: str) -> Any:
    """Return the number, the flag or the list that a text is, or the text itself."""
    if text.lower() in ("none", "null", ""):
        return None
    try:
        return float(text) if text.lstrip("+-").startswith(".") else parse_json(text.lower())
    except (InstanceError, ValueError):
        return text


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
    with progress("playing", hidden=as_json) as bar:
        played = play(past, Scheduler(past.fleet, **arguments), bar)
    told, (both, others) = groups(past, played.course), compared(past, played.course)
    if not both:
        raise InstanceError("jobs", "none has ended in both courses: there is nothing to compare")
    lines = [("jobs", f"{len(both)} ended in both, and are compared")]
    lines += [("not compared", f"{count} {fate}: they are played, and hold GPUs") for fate, count in others.items()]
    lines += [("skipped", f"{played.skipped} calls that could not happen then")] if played.skipped else []
    if html is not None:
        outcomes = {labels[0]: outcome_of(past, past.course), labels[1]: outcome_of(past, played.course)}
        figures = [page.table(*each) for each in _tables(told, labels)]
        scene = simulation_scene(outcomes)
        write_whole(
            {html: page.report(f"What if: {labels[1]}", "gangplan", [*head, *lines], figures, "Schedules", scene)}
        )
    data = about | {"jobs": len(both), "left_out": others, "skipped": played.skipped}
    data |= {"decisions": played.decisions, "groups": [asdict(group) for group in told]}
    emit_either(as_json, data, facts([*head, *lines]), *(table(*each) for each in _tables(told, labels)))


def _tables(told: Sequence[GroupFigures], labels: tuple[str, str]) -> list[tuple[tuple[str, ...], Cells]]:
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


def _changes(groups: Sequence[GroupFigures], name: str) -> tuple[list[list[str]], str]:
    """Return a figure of each group before, after and by what share it changes, and the unit of the first two."""
    before, after = [group.before[name] for group in groups], [group.after[name] for group in groups]
    unit = {"utilisation": "%", "gpu_hours": "", "stops": ""}.get(name, "s")
    shown, unit = alike([100 * x if unit == "%" else x for x in (*before, *after)], unit)
    shares = [f"{b / a - 1:+.1%}" if a else "" if b else "0" for a, b in zip(before, after, strict=True)]
    shares = ["0" if x in ("+0.0%", "-0.0%") else x for x in shares]
    return [shown[: len(before)], shown[len(before) :], shares], unit
