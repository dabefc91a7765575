"""`gangplan whatif`: play the log of a scheduler once more with other arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any

from gangplan.hybrid.online import Scheduler
from gangplan.hybrid.online.configure import LIVE
from gangplan.hybrid.online.journal.history import history_of
from gangplan.hybrid.online.journal.read import read_log
from gangplan.hybrid.online.journal.replay import Unknown
from gangplan.hybrid.online.journal.write import OF_LOG
from gangplan.hybrid.online.sharing import Quota, Sharing
from gangplan.instances import InstanceError
from gangplan.instances.errors import unknown
from gangplan.instances.intake import parse_json
from gangplan.instances.quantities import quantity

from . import options
from .comparison import compare
from .log import LONG
from .options import check_page
from .output import Bar

Set = Annotated[
    list[str] | None,
    "an argument of Scheduler, such as price=600 or policy=patient; a part of one by dots; may be repeated",
    "--set",
    "NAME=VALUE",
]
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
    check_page(html, log)
    read = read_log(log)
    own = isinstance(read.policy, dict)
    changed = with_settings({**read.arguments, "policy": Unknown() if own else read.policy}, settings or [])
    if isinstance(changed["policy"], Unknown):
        raise InstanceError("set", "the policy was an object, of which the log has no more: name one, policy=hybrid")
    Scheduler(read.fleet, **changed)  # what is wrong with it is said at once
    with Bar("reading", hidden=as_json) as bar:
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
