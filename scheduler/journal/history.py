"""Read the past off a log: the jobs with the seconds that they truly took, and what came from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet

from ..scheduler import Scheduler
from .course import FAILURE, WITHDRAWN, Course
from .read import ReadLog
from .replay import replay, scheduler_of
from .write import DECIDE, RESTORE

ENDED, RAN, WAITED = "ended", "ran at the end", "waited at the end"
"""What became of a job, if it was not `WITHDRAWN`."""


@dataclass(slots=True)
class PastJob:
    """Hold a job of the past.

    Attributes:
        fate: what became of it by the end of the log.
        work: its true seconds over its first estimate; expected ones if it had not ended, infinite if it was withdrawn.
        tier: the tier that started it first, if one did.
        lag: seconds from its end to the next decision, if one followed.
    """

    submit: float
    fate: str = WAITED
    work: float = 0.0
    user: str = ""
    queue: str = ""
    tier: str = ""
    lag: float | None = None


@dataclass(slots=True)
class History:
    """Hold what happened.

    Attributes:
        jobs: by name.
        given: lines of what came from outside, in their order: jobs, failures, what the operator did, and the decisions
            that followed, or that the clock alone asked for.
        begin, end: of the log, seconds.
        lag: median seconds from the end of a job to the next decision.
        state: snapshot with which it began, `None` if nothing was there.
        notes: how often each was made.
        took: seconds of each decision.
        cut: number of decisions that another clock might have made otherwise.
    """

    fleet: Fleet
    course: Course
    state: Mapping[str, Any] | None = None
    jobs: dict[str, PastJob] = field(default_factory=dict)
    given: list[Mapping[str, Any]] = field(default_factory=list)
    begin: float = 0.0
    end: float = 0.0
    lag: float = 0.0
    notes: Counter[str] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)
    cut: int = 0

    def fix(self, names: Iterable[str]) -> None:
        """Have settings of these names be in a play what they are from the beginning, whatever was configured."""
        fixed = {*names}
        for i, row in enumerate(self.given):
            if row["event"] == "configure":
                self.given[i] = {name: value for name, value in row.items() if name not in fixed}


_OWN = ("finish", "report", "stopped", RESTORE)
"""Events that another course does not have, or has at other times."""


def history_of(log: ReadLog, progress: Callable[[float], None] = lambda share: None) -> History:
    """Return the past that a log tells, by playing what it says was decided."""
    scheduler = scheduler_of(log)
    past = History(log.fleet, Course(scheduler), begin=log.rows[0][1].get("now", 0.0) if log.rows else 0.0)
    reader = _Reader(log, past, progress)
    replay(log, after=reader.line, scheduler=scheduler)
    return reader.finished(scheduler)


class _Reader:
    """Follow the replay of a log line by line."""

    def __init__(self, log: ReadLog, past: History, progress: Callable[[float], None]) -> None:
        self._log, self._past, self._progress, self._at = log, past, progress, 0
        self._told_why = dict[str, str]()  # why jobs were told to stop
        self._ended, self._told = list[str](), False  # since the last decision: who, and whether anything else came

    def line(self, scheduler: Scheduler, row: Mapping[str, Any]) -> None:
        """Note what a line did."""
        past, course, event = self._past, self._past.course, row["event"]
        self._at += 1
        if self._at % 256 == 0:
            self._progress(self._at / len(self._log.rows))
        if event == RESTORE:
            return self._restored(scheduler, row)
        if event == DECIDE:
            return self._decided(row)
        if event in ("submit", "submit_array"):
            name, count = row["job"]["name"], row.get("count")
            self._known([name] if count is None else [f"{name}[{i}]" for i in range(count)], scheduler)
        elif event == "finish":
            course.note((row["job"],), finished=row["job"])
            past.jobs[row["job"]].fate = ENDED
            self._ended.append(row["job"])
        elif event == "stopped":
            course.note((row["job"],), {row["job"]: self._told_why.pop(row["job"], "gain")})
        elif event == "apply":
            course.note(None, {move["job"]: "move" for move in row["moves"]["moves"]})
        elif event != "report":
            if event == "withdraw":
                past.jobs[row["job"]].fate, past.jobs[row["job"]].work = WITHDRAWN, np.inf
            course.note(cause=WITHDRAWN if event == "withdraw" else FAILURE)
            course.turned()
        if event not in _OWN:
            past.given.append(row)
            self._told = True

    def _decided(self, row: Mapping[str, Any]) -> None:
        past = self._past
        starts = row.get("starts", ())
        stops = {stop["job"]: stop["cause"] for stop in row.get("stops", ())}
        self._told_why |= {told["job"]: told["cause"] for told in row.get("stopping", ())}
        past.course.note([*stops, *(start["job"] for start in starts)], stops)
        for start in starts:
            past.jobs[start["job"]].tier = past.jobs[start["job"]].tier or start["tier"]
        past.notes.update(note.split(":")[0] for note in row.get("notes", ()))
        past.took.append(row["seconds"])
        past.cut += bool(row.get("cut"))
        if self._told or not self._ended:
            past.given.append({"event": DECIDE, "now": row["now"]})
        for name in self._ended:
            past.jobs[name].lag = row["now"] - past.course.finish[name]
        self._told, self._ended = False, []

    def _restored(self, scheduler: Scheduler, row: Mapping[str, Any]) -> None:
        """Take over a state: the log's own, or that with which it begins."""
        past = self._past
        past.course.follow(scheduler)
        if new := [name for name in (*scheduler.running, *scheduler.waiting) if name not in past.jobs]:
            if past.given:
                raise InstanceError("snapshot", f"has {new[0]}, of which the log does not tell")
            past.state, past.begin = row["snapshot"], scheduler.now
            self._known(new, scheduler)

    def _known(self, names: Iterable[str], scheduler: Scheduler) -> None:
        """Note jobs that came, which may not wait yet."""
        state = scheduler._state
        for name in names:
            job = state.running.get(name)
            request = job.request if job else state.later.request(state, name)
            self._past.course.unit.setdefault(name, request)
            self._past.jobs[name] = PastJob(request.submit, user=request.terms.user, queue=request.terms.queue)

    def finished(self, scheduler: Scheduler) -> History:
        """Return the past, once how long jobs take is known as far as it is."""
        past = self._past
        if not past.jobs:
            raise InstanceError("content", "no job was submitted", self._log.path)
        state, course, past.end = scheduler._state, past.course, scheduler.now
        past.lag = median([job.lag for job in past.jobs.values() if job.lag is not None] or [0.0])
        if self._told:
            past.given.append({"event": DECIDE, "now": past.end + past.lag})
        for name, job in past.jobs.items():
            if job.fate == WITHDRAWN:
                continue
            job.work = course.done.get(name, 0.0)
            if name in state.running:
                runs, job.fate = state.running[name], RAN
                job.work += course.work(runs, runs.ran(past.end) + runs.left(past.end) / runs.slower)
            elif name in state.waiting or name in state.later.held:
                job.work += state.later.request(state, name).left
        course.close()
        return past
