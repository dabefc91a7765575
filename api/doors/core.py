"""One event in, one answer out: what JSON lines and HTTP share, over a `Scheduler` and its log."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.errors import brief, did_you_mean, printable
from gangplan.instances.intake import decoded, parse_json, read_bytes
from gangplan.instances.placement import GangJob
from gangplan.scheduler import Scheduler
from gangplan.scheduler.described import cluster_of, only_known
from gangplan.scheduler.journal.replay import call
from gangplan.scheduler.journal.values import decode, encode, pairs

from .schema import QUESTIONS, parts_of

FAULTS = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, AssertionError)
"""Errors that a value of the wrong kind raises deep inside."""
_JOBS = ("submit", "submit_array", "whatif")
_EPOCH, _AHEAD = 1e9, 86400.0
"""Seconds since 1970 from which on a time is one of these; seconds that a caller's clock may be ahead of this one."""


Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Most:
    """Limit what one event may ask for.

    Attributes:
        jobs: that run and wait.
        seconds: of a decision's deadline, and of a search for moves.
    """

    jobs: int = 100_000
    seconds: float = 60.0


class Core:
    """Answer events by a scheduler.

    Args:
        scheduler: that decides.
        log: the file of its log, if it has one.
        most: see `Most`.
        clock: seconds since 1970, for callers who give no `now`; without one it is then as before.
    """

    def __init__(
        self, scheduler: Scheduler, log: Path | None = None, most: Most | None = None, clock: Clock | None = None
    ) -> None:
        self.scheduler, self.log, self.most, self._clock = scheduler, log, most or Most(), clock
        self._theirs = scheduler.now < _EPOCH and (scheduler._count > 0 or scheduler._state.serial > 0)

    @property
    def now(self) -> float:
        """The time: of the clock if there is one, unless callers have said another."""
        now = self.scheduler.now
        return now if self._clock is None or self._theirs else max(now, self._clock())

    def reply(self, event: object) -> dict[str, Any]:
        """Answer an event, a bad one by what is wrong with it."""
        head = {key: event[key] for key in ("event", "id") if key in event} if isinstance(event, Mapping) else {}
        try:
            return head | self.answer(event)
        except InstanceError as error:
            return head | {"error": error_of(_as_written(error, event) if head else error)}

    def answer(self, event: object) -> dict[str, Any]:
        """Answer an event.

        Raises:
            InstanceError: naming the field that is wrong; nothing has changed then.
        """
        name, row = checked(event, self.most)
        said, asks = row["now"], name in QUESTIONS
        if self._clock is not None:
            self._set_time(row)
        with self.at(row["now"]) if asks and name != "snapshot" else nullcontext():
            answer, more = self._guarded(lambda: self._told(name, row), name)
            found = {"now": self.scheduler.now, "answer": as_json(answer), **more}
        self._theirs = self._theirs or (not asks and (said == 0 or 0 < self.scheduler.now < _EPOCH))
        return found

    @contextmanager
    def at(self, now: float | None = None) -> Iterator[None]:
        """Have questions see the state as of a time, by default `now`, and nothing change by that."""
        state = self.scheduler._state
        before, state._now = state._now, state.at(self.now if now is None else now)  # aging nobody: it is set back
        try:
            yield
        finally:
            state._now = before

    def _set_time(self, row: dict[str, Any]) -> None:
        """Enter the time of an event that says none, and refuse one that no clock will show before tomorrow."""
        assert self._clock is not None
        now = row["now"] = self.now if row["now"] is None else row["now"]
        require_number(now, "now")
        if now > self._clock() + _AHEAD:
            words = f"{now!r} is more than a day ahead of the clock here, {self._clock():.0f} s since 1970"
            raise InstanceError("now", words + "; are these milliseconds?" * (now > 100 * _EPOCH))

    def _told(self, name: str, row: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return what an event is answered by, and what is beside the answer."""
        if name == "decide":
            data = call(self.scheduler, row).as_dict()
            return data, {"seconds": data.pop("seconds")}
        if name not in QUESTIONS:
            if name in _JOBS:
                self._room(row.get("count", 1))
            return call(self.scheduler, row), {}
        told = {key: decode(value) for key, value in row.items() if key not in ("event", "now")}
        if name == "decisions":
            return self._decisions(told.get("after") or 0), {}
        if name == "state":
            return self._state(), {}
        answer = getattr(self.scheduler, name)(**told)
        text = {} if answer is None or name == "snapshot" else {"text": printable(str(answer))}
        return parse_json(json.dumps(answer, default=encode)) if name == "defragment" else answer, text

    def _guarded(self, act: Callable[[], Any], name: str) -> Any:
        """Do it; what goes wrong inside is an error of the event, and undone where there is a log."""
        try:
            return act()
        except InstanceError:
            raise
        except FAULTS as error:
            words = f"cannot be done: {type(error).__name__}: {error}"
            if self.log is not None and name not in QUESTIONS:
                error.__traceback__ = None  # whose frames hold the log
                policy, sync = self.scheduler._policy, self.scheduler._journal.sync  # type: ignore[union-attr]
                self.scheduler = None  # type: ignore[assignment]
                self.scheduler = Scheduler.open(self.log, None if isinstance(policy, str) else policy, sync=sync)
            raise InstanceError(name, words) from None

    def _room(self, count: Any) -> None:
        there = len(self.scheduler.running) + len(self.scheduler.waiting)
        if isinstance(count, int) and there + count > self.most.jobs:
            raise InstanceError("job", f"{count} more than the {there} that are here are over {self.most.jobs}")

    def _state(self) -> dict[str, Any]:
        scheduler, state = self.scheduler, self.scheduler._state
        return {
            "now": scheduler.now,
            "decisions": scheduler._count,
            "idle": scheduler.idle,
            "wake": scheduler.wake,
            "running": [scheduler.explain(name) for name in scheduler.running],
            "waiting": scheduler.waiting,
            "down": [name for name, up in zip(state.fleet.names, state.up, strict=True) if not up],
            "windows": scheduler.windows,
        }

    def _decisions(self, after: int) -> list[Any]:
        if self.log is None:
            raise InstanceError("event", "'decisions' are those of a log, and there is none")
        lines = read_bytes(self.log).split(b"\n")[:-1]
        rows = (parse_json(decoded(line)) for line in lines if line.startswith(b'{"event":"decide"'))
        return [row for row in rows if row.get("number", after) > after]


def checked(event: object, most: Most) -> tuple[str, dict[str, Any]]:
    """Return the name of an event and what the log would say of it.

    Raises:
        InstanceError: naming the field that is missing, unknown or of another kind.
    """
    if not isinstance(event, Mapping):
        raise InstanceError("event", f"{brief(event)} is no object")
    if not isinstance(name := event.get("event"), str):
        raise InstanceError("event", "is missing" if name is None else f"{brief(name)} is no name of an event")
    parts = parts_of(name)
    row = {key: value for key, value in event.items() if key != "id"}
    only_known(row)
    if name in _JOBS and "job" in row:
        row["job"] = _job(row, row.pop("gpus", None), row.pop("model", None))
    if name == "defragment" and isinstance(row.get("gang"), dict):
        row["gang"] = _described(row["gang"])
    for key in row:
        if key not in ("event", "now") and key not in parts:
            known = did_you_mean(key, parts) or f"; there are {', '.join(parts) or 'none'}"
            raise InstanceError(key, f"is no field of {name}{known}")
    for key, part in parts.items():
        if key in row:
            part.check(row[key], key)
        elif not part.optional:
            raise InstanceError(key, f"is missing from the {name}")
    for key in ("deadline", "seconds") if name in ("decide", "defragment") else ():
        if isinstance(row.get(key), int | float) and row[key] > most.seconds:
            raise InstanceError(key, f"{row[key]!r} is more than {most.seconds:g} seconds")
    if name == "resize":
        row["fleet"] = encoded(cluster_of(row["fleet"], "fleet"))
    row.setdefault("now", None)
    return name, row


def _job(row: Mapping[str, Any], gpus: Any, model: Any) -> Any:
    """Return a job as the log has it, given so, without types, or by its name and the number of its GPUs."""
    job = row["job"]
    if isinstance(job, dict):
        if gpus is not None or model is not None:
            raise InstanceError("gpus" if gpus is not None else "model", "is said in the job")
        return _described(job)
    if gpus is None:
        raise InstanceError("gpus", f"is missing: how many has {brief(job)}?")
    workers = gpus if isinstance(gpus, list) else [gpus]
    try:
        return encoded(GangJob(job, "any" if model is None else model, tuple(workers)))
    except InstanceError as error:
        raise InstanceError(error.field.replace("workers", "gpus"), error.problem) from None


def _described(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job as the log has it of one without types."""
    parts = {k: {"type": "Demand"} | job[k] for k in ("worker", "server") if isinstance(job.get(k), dict)}
    return {"type": "GangJob", "model": "any"} | job | parts


def encoded(value: Any) -> Any:
    """Return a value as lines of a log have it."""
    return parse_json(json.dumps(value, default=encode))


_WRITTEN = {"GangJob": "job gang", "job": "what gang", "name": "job", "node": "nodes domain", "cluster": "fleet"}
"""Fields of events by what the methods that are called for them name in errors."""


def _as_written(error: InstanceError, event: Any) -> InstanceError:
    """Return the same error with the field that is in the event."""
    head = re.split(r"[.\[]", error.field, maxsplit=1)[0]
    field = next((x for x in _WRITTEN.get(head, "").split() if x in event and head not in event), head)
    return InstanceError(field + error.field[len(head) :], error.problem)


_IN_PYTHON = re.compile(r"""('[^']*'|"[^"]*")|\b(?:np\.)?(None|True|False)_?\b""")


def error_of(error: InstanceError) -> dict[str, str]:
    """Return an error as JSON: its field, and what is wrong with the value there, in JSON's words but for texts."""
    problem = _IN_PYTHON.sub(lambda x: x[1] or x[2].lower().replace("none", "null"), error.problem)
    return {"field": error.field, "problem": problem}


def as_json(value: Any) -> Any:
    """Return what JSON has for an answer; what is infinite is null."""
    if hasattr(value, "as_dict"):
        return as_json(value.as_dict())
    if value is None or isinstance(value, str | int | float):
        return value if not isinstance(value, float) or isfinite(value) else None
    if isinstance(value, Mapping):
        flat = pairs(value)
        return {key: as_json(x) for key, x in value.items()} if flat is value else as_json(flat["items"])
    if isinstance(value, list | tuple):
        return [as_json(x) for x in value]
    if is_dataclass(value):
        return {x.name: as_json(getattr(value, x.name)) for x in fields(value)}
    return as_json(encode(value))


def text_of(answer: Any) -> str:
    """Return an answer as one line of JSON, the same through every door."""
    return json.dumps(answer, separators=(",", ":"), allow_nan=False)


LONGEST = 2**24
"""Maximum number of bytes of a line: a snapshot of a large cluster has less."""


def answer_lines(core: Core, lines: BinaryIO, write: Callable[[bytes], object], longest: int = LONGEST) -> None:
    """Answer each line that is not blank, until there are no more."""
    number = 0
    while line := lines.readline(longest + 1):
        number += 1
        if len(line) > longest and not line.endswith(b"\n"):
            while (rest := lines.readline(longest)) and not rest.endswith(b"\n"):
                pass
            answer: dict[str, Any] = {"error": {"field": "line", "problem": f"has more than {longest} bytes"}}
        elif not line.strip():
            continue
        else:
            try:
                answer = core.reply(parse_json(decoded(line)))
            except InstanceError as error:
                answer = {"error": error_of(error)}
        if "error" in answer:
            answer["line"] = number
        write(text_of(answer).encode() + b"\n")
