"""What another scheduler did, told by events or by a trace, as a past that can be played again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice, require_number, require_text
from gangplan.instances.intake import decoded, parse_json
from gangplan.instances.placement import Fleet, GangJob
from gangplan.instances.workload import Workload

from ..scheduler import Scheduler
from .course import WITHDRAWN, Course, JobRun
from .history import ENDED, RAN, History, PastJob
from .read import at_line
from .write import DECIDE

EVENTS = ("submit", "start", "stop", "end", "withdraw", "fail_node", "repair_node", "configure")
"""Kinds of event: ``{"event": "submit", "now": 0, "job": "a", "gpus": 8}``, with the terms of `Scheduler.submit`, and
then ``start``, ``stop`` and ``end`` of a job; two name a ``node`` or give its number; the last changes settings."""
_NEEDS = {"submit": ("now", "job", "gpus"), "configure": ("now",)} | dict.fromkeys(
    ("fail_node", "repair_node"), ("now", "node")
)
"""Fields without which an event of this kind cannot be; others need a job."""
_SECONDS = 3600.0
"""Work of a job that has not ended where none has, seconds."""


def parsed_events(content: bytes) -> list[dict[str, Any]]:
    """Return the events that lines of JSON tell; a last line that is not whole yet is left for later."""
    rows = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        if line.strip():
            with at_line(number):
                row = parse_json(decoded(line))
                for field in ("event", "now"):
                    if field not in row:
                        raise InstanceError(field, "is missing")
                require_choice(row["event"], "event", EVENTS)
                require_number(row["now"], "now")
                rows.append(row)
    return rows


def events_of(workload: Workload, waits: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the events of a trace of jobs that ended; jobs that are not told to have started are left out."""
    rows = list[dict[str, Any]]()
    for j, name in enumerate(workload.names):
        if name not in waits:
            continue
        submit, lasts = float(workload.submit[j]), float(workload.duration[j])
        row = {"event": "submit", "now": submit, "job": name, "gpus": int(workload.gpus[j]), "model": workload.model[j]}
        terms = {"user": workload.user[j], "queue": workload.queue[j], "title": workload.title[j]}
        rows.append(row | {key: value for key, value in terms.items() if value})
        rows.append({"event": "start", "now": submit + waits[name], "job": name})
        rows.append({"event": "end", "now": submit + waits[name] + lasts, "job": name})
    return sorted(rows, key=lambda row: row["now"])  # stable: a job that takes no time ends behind its start


def past_of(rows: Iterable[Mapping[str, Any]], fleet: Fleet, *, known: bool = False) -> tuple[History, list[str]]:
    """Return the past that events tell in the order of time, and why jobs are left out.

    With `known`, a scheduler that plays it is told how long jobs take in truth, else what their users said.
    """
    reader = _Events(fleet)
    for number, row in enumerate(rows, 1):
        with at_line(number):
            reader.event(row)
    return reader.past(known), reader.left_out


class _Events:
    """Follow the events of another scheduler."""

    def __init__(self, fleet: Fleet) -> None:
        self._judge = Scheduler(fleet, "heuristic")  # which refuses jobs that never fit
        self._course = Course(self._judge)
        self._past = History(fleet, self._course)
        self._since: dict[str, float] = {}
        self._ran: dict[str, float] = {}
        self.left_out = list[str]()
        self._refused = set[str]()
        self._now: float | None = None

    def event(self, row: Mapping[str, Any]) -> None:
        """Note an event."""
        event = row["event"]
        if missing := next((x for x in _NEEDS.get(event, ("now", "job")) if x not in row), None):
            raise InstanceError(missing, f"is missing from the {event}")
        require_number(row["now"], "now")
        now = float(row["now"])
        if self._now is None:
            self._past.begin = self._now = now
        if now < self._now:
            raise InstanceError("now", f"{now!r} is before {self._now!r}: tell events in their order")
        self._now = self._past.end = now
        if event in ("fail_node", "repair_node", "configure"):
            rest = {key: value for key, value in row.items() if key not in ("event", "now")}
            getattr(self._judge, event)(**rest, now=now)
            self._course.turned()
            self._past.given.append(row)
            return
        require_text(name := row["job"], "job")
        if event == "submit":
            self._submit(name, row)
        elif name not in self._refused:
            self._change(name, event, now)

    def _submit(self, name: str, row: Mapping[str, Any]) -> None:
        rest = {key: x for key, x in row.items() if key not in ("event", "now", "job", "gpus", "model")}
        require_number(row["gpus"], "gpus", whole=True, positive=True)
        gang = GangJob(name, row.get("model") or "any", (row["gpus"],))
        try:
            self._judge.submit(gang, **rest, now=row["now"])
        except InstanceError as error:
            if error.field != "job":
                raise
            self.left_out.append(str(error))
            self._refused.add(name)
            return
        self._past.jobs[name] = PastJob(row["now"], user=rest.get("user", ""), queue=rest.get("queue", ""))
        self._past.given.append({"event": "submit", "now": row["now"], "job": gang, **rest})

    def _change(self, name: str, event: str, now: float) -> None:
        """Note that a job starts, runs no more, or is withdrawn."""
        runs, ends = name in self._since, event in ("stop", "end")
        if name not in self._past.jobs:
            raise InstanceError("job", f"{name!r} is not known: tell its submit first")
        if event != "withdraw" and runs != ends:
            raise InstanceError("job", f"{name!r} cannot {event} now: it {'runs' if runs else 'does not'}")
        if event == "start":
            self._since[name] = now
            self._course.first.setdefault(name, now)
        elif runs:
            self._end(name, event == "stop", now)
        if event == "end":
            self._past.jobs[name].fate, self._course.finish[name] = ENDED, now
        elif event == "withdraw":
            self._past.jobs[name].fate = WITHDRAWN
            self._past.given.append({"event": event, "now": now, "job": name})

    def _end(self, name: str, stopped: bool, now: float) -> None:
        """Note the end of a run."""
        began = self._since.pop(name)
        self._ran[name] = self._ran.get(name, 0.0) + now - began
        seats = {-1: tuple(range(self._judge._state.waiting[name].job.workers[0]))}  # where is not told
        self._course.runs.setdefault(name, []).append(JobRun(began, now, seats, "stop" if stopped else ""))

    def past(self, known: bool) -> History:
        """Return the past, with how long each job takes in the unit of what the scheduler is told."""
        past, state = self._past, self._judge._state
        if not past.jobs:
            raise InstanceError("events", f"there is no job that fits; {self.left_out[:1]}")
        lasts = [ran for name, ran in self._ran.items() if past.jobs[name].fate == ENDED]
        usual = sum(lasts) / len(lasts) if lasts else _SECONDS
        for name in list(self._since):
            past.jobs[name].fate = RAN
            self._end(name, False, past.end)
        for row in past.given:
            if row["event"] != "submit":
                continue
            name = row["job"].name
            job = past.jobs[name]
            ran = self._ran.get(name, 0.0) + (usual if job.fate != ENDED else 0.0)
            self._course.unit[name] = request = state.waiting[name]
            job.work = ran / (request.seconds[0] or 1.0) if job.fate != WITHDRAWN else float("inf")
            if known and isfinite(job.work):
                row["seconds"] = ran  # type: ignore[index]
        self._course.close()
        after = [row["now"] for row in past.given[1:]] + [float("inf")]
        past.given = [
            each
            for row, then in zip(past.given, after, strict=True)
            for each in ((row, {"event": DECIDE, "now": row["now"]}) if then > row["now"] else (row,))
        ]
        return past
