"""Read the events and their fields off the methods of `Scheduler`, for checks and for OpenAPI."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import brief, unknown
from gangplan.scheduler import Scheduler, Terms

QUESTIONS = {
    "explain": "Say why a decision is as it is, why a job waits, or where it runs.",
    "whatif": "Say what explain would of a job, were it submitted now.",
    "defragment": "Propose moves of running jobs that make room; `apply` carries them out.",
    "state": "Say who runs where and who waits.",
    "snapshot": "Return the whole state; `restore` takes it back.",
    "decisions": "Return the log's lines of the decisions after a number: after a crash, what was decided last.",
}
"""Events that change nothing; the others are the lines of a scheduler's log."""
EVENTS = tuple(name for name in dir(Scheduler) if hasattr(getattr(Scheduler, name), "recorded"))
KNOWN = (*EVENTS, *QUESTIONS)
_KINDS: dict[str, tuple[tuple[type, ...], str, str]] = {
    "str": ((str,), "text", "string"),
    "float": ((int, float), "a number", "number"),
    "int": ((int,), "a whole number", "integer"),
    "bool": ((bool,), "true or false", "boolean"),
}
"""Types of values, words and JSON Schema, by the name of a type."""


@dataclass(frozen=True, slots=True)
class EventField:
    """Hold a field of an event.

    Attributes:
        kinds: names of the plain types that it may have, none if the call itself checks it.
        optional: whether it may be left out, or null.
    """

    kinds: tuple[str, ...]
    optional: bool

    def check(self, value: Any, field: str) -> None:
        """Raise unless a value is of its kinds."""
        if not self.kinds or (value is None and self.optional):
            return
        right = any(isinstance(value, _KINDS[kind][0]) for kind in self.kinds)
        if not right or (isinstance(value, bool) and "bool" not in self.kinds):
            raise InstanceError(field, f"{brief(value)} is not {' or '.join(_KINDS[x][1] for x in self.kinds)}")

    def schema(self) -> dict[str, Any]:
        """Return what JSON Schema says of it."""
        names = [_KINDS[kind][2] for kind in self.kinds] + (["null"] if self.optional else [])
        return {"type": names} if self.kinds else {}


@cache
def parts_of(event: str) -> Mapping[str, EventField]:
    """Return the fields of an event, with those of a job's terms if it takes them."""
    if event == "decisions":
        return {"after": EventField(("int",), True)}
    if event not in KNOWN:
        raise InstanceError("event", unknown(event, KNOWN))
    if event == "state":
        return {}
    found: dict[str, EventField] = {}
    for x in list(inspect.signature(getattr(Scheduler, event)).parameters.values())[1:]:
        if x.kind is x.VAR_KEYWORD:
            found |= {f.name: EventField((), True) for f in fields(Terms) if f.name != "array"}
            continue
        words = [word.strip() for word in str(x.annotation).split("|")]
        kinds = tuple(word for word in words if word != "None")
        found[x.name] = EventField(kinds if all(kind in _KINDS for kind in kinds) else (), x.default is not x.empty)
    return found


def event_schema(event: str) -> dict[str, Any]:
    """Return the JSON Schema of an event."""
    parts = parts_of(event)
    about = QUESTIONS.get(event) or (inspect.getdoc(getattr(Scheduler, event)) or "").partition("\n")[0]
    properties = {name: part.schema() for name, part in parts.items()}
    if event in ("submit", "whatif", "submit_array"):
        properties |= {"gpus": {"description": "of a job given by its name: its number of workers, or several"}}
        properties |= {"model": {"type": "string"}}
    return {
        "type": "object",
        "title": event,
        "description": about,
        "properties": {"event": {"const": event}, "id": {}, **properties},
        "required": ["event", *(name for name, part in parts.items() if not part.optional)],
        "additionalProperties": False,
    }
