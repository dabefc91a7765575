"""Make a `Scheduler` of options: its cluster, its settings as ``price=600``, its log."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from gangplan.instances.errors import InstanceError, brief, in_file, unknown
from gangplan.instances.intake import parse_json, read_json
from gangplan.instances.placement import Fleet
from gangplan.scheduler import Scheduler
from gangplan.scheduler.described import cluster_of, has_begun, reopened
from gangplan.scheduler.journal.write import OF_LOG
from gangplan.scheduler.settings import Quota, Sharing

from .output import note

CLUSTER = "20x8: 20 nodes of 8 GPUs; 4x8x8: racks first; or a JSON file of the arguments of Fleet or Fleet.regular"
LOG = "append each event and decision to this file, and go on with it if it is there"
_SET = "an argument of Scheduler, such as price=600 or policy=patient; a part of one by dots; may be repeated"
Set = Annotated[list[str] | None, _SET, "--set", "NAME=VALUE"]


def fleet_of(text: str) -> Fleet:
    """Return the cluster that a text like ``20x8`` says, or a file."""
    if not Path(text).suffix and not Path(text).exists():
        return cluster_of(text)
    data = read_json(text)
    with in_file(text):
        return cluster_of(data)


def scheduler_with(settings: Sequence[str], fleet: Fleet | None, log: str | None, *, sync: bool = False) -> Scheduler:
    """Go on with the scheduler of a log that has begun, or begin one of a cluster, with these settings."""
    if log is not None and has_begun(Path(log)):
        return reopened(Path(log), partial(_instead, settings), sync=sync)
    if fleet is None:
        raise InstanceError("cluster", "is missing: write --cluster 20x8")
    return Scheduler(fleet, **with_settings({}, settings), log=log, sync=sync)


def _instead(settings: Sequence[str], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a log with those that are set, and say which were others by then."""
    named = with_settings(known, settings)
    for name in (x for x in named if named[x] != known.get(x)):
        note(f"{name} was {brief(known.get(name))} by the log, and is {brief(named[name])} as --set says")
    return named


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
            inside = error.field.partition(f"{path.rpartition('.')[2]}.")[2]
            where = f"set {path}{'.' * bool(inside)}{inside}"
            raise error if error.field == "set" else InstanceError(where, error.problem) from None
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
