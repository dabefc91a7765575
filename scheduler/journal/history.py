"""Read the past off a log: jobs with the seconds that they truly took, what came from outside, and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload
from gangplan.simulator.metrics import available_gpus, held_gpus
from gangplan.simulator.outcome import Outcome

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


_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Hold the figures of jobs of a user or queue, or with neither of all.

    Attributes:
        by, name: ``user``, ``queue`` or ``""``, and which.
        jobs: number of jobs.
        before, after: figures by name, those that the group has: seconds, hours, stops per job, and of all jobs the
            share of GPUs held during the log.
    """

    by: str
    name: str
    jobs: int
    before: Mapping[str, float]
    after: Mapping[str, float]


def compared(past: History, course: Course) -> tuple[list[str], dict[str, int]]:
    """Return the jobs that ended both in the log and in another course, and the number of others by their fate.

    Means are of those that ended, since it is not known how long the others take.
    """
    both = {name: None for name, job in past.jobs.items() if job.fate == ENDED and name in course.finish}
    fates = Counter(job.fate for name, job in past.jobs.items() if name not in both)
    return [*both], {"ended, and never do now" if fate == ENDED else fate: count for fate, count in fates.items()}


def groups(past: History, course: Course) -> list[GroupFigures]:
    """Return all jobs, and those of each user and queue if there are several, the most GPU-hours first."""
    names, _ = compared(past, course)
    courses = past.course, course
    held = [course_figures(past, each, names) | {"utilisation": utilisation(past, each)} for each in courses]
    told = [GroupFigures("", "", len(names), *held)]
    for by in ("user", "queue"):
        rows = []
        for name, own in members(past, names, by).items():
            rows.append(GroupFigures(by, name, len(own), *(course_figures(past, each, own) for each in courses)))
        told += sorted(rows, key=lambda row: -row.before["gpu_hours"]) if len(rows) > 1 else []
    return told


def members(past: History, names: Iterable[str], by: str) -> dict[str, list[str]]:
    """Return jobs by user, queue or tier."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(getattr(past.jobs[name], by) or "(none)", []).append(name)
    return groups


def course_figures(past: History, course: Course, names: Sequence[str]) -> dict[str, float]:
    """Return the figures of some jobs: waits of those that started, completion times of those that ended."""
    figures = dict[str, float]()
    for word, times in (("wait", course.first), ("jct", course.finish)):
        lasts = np.array([times[name] - past.jobs[name].submit for name in names if name in times])
        if len(lasts):
            figures |= {f"mean_{word}": float(lasts.mean()), f"p95_{word}": float(np.quantile(lasts, 0.95))}
    runs = [run for name in names for run in course.runs.get(name, ())]
    held = sum((run.end - run.start) * sum(run.gpus.values()) for run in runs)
    return figures | {"gpu_hours": held / _HOUR, "stops": sum(run.stopped for run in runs) / max(1, len(names))}


def stops_by(past: History, by: str) -> dict[str, Counter[str]]:
    """Return how often runs were cut short, by cause, of all jobs under "" and of each user or queue; if any was."""
    counts = {"": Counter[str]()}
    for group, names in members(past, past.jobs, by).items():
        own = Counter(run.cause for name in names for run in past.course.runs.get(name, ()) if run.cause)
        counts[""] += own
        counts |= {group: own} if own else {}
    return counts if counts[""] else {}


def utilisation(past: History, course: Course) -> float:
    """Return the share of the GPUs there were that jobs held during the log."""
    outcome = outcome_of(past, course)
    span = np.array([past.begin, past.end])
    there = float(np.diff(available_gpus(outcome).integral(span))[0])
    return float(np.diff(held_gpus(outcome).integral(span))[0]) / there if there > 0 else 0.0


def outcome_of(past: History, course: Course) -> Outcome:
    """Return a course as a simulator would, for its figures and pictures: jobs that have not ended are not admitted."""
    names = [name for name in past.jobs if name in course.unit]
    number = {name: j for j, name in enumerate(names)}
    gangs = [course.unit[name].job for name in names]
    rows = [
        (number[name], node, gpus, run.start, run.end)
        for name in names
        for run in course.runs.get(name, ())
        for node, gpus in run.gpus.items()
    ]
    job, node, gpus, start, end = np.array(rows, dtype=float).reshape(-1, 5).T
    some = [past.jobs[name] for name in names]
    work = np.array([each.work for each in some])
    lasts = work * [course.seconds(gang.name, gang.workers[-1]) for gang in gangs]
    workload = Workload(
        names=tuple(names),
        submit=np.array([each.submit for each in some]),
        gpus=np.array([max(1, gang.workers[-1] * gang.worker.grants) for gang in gangs]),
        duration=np.where(np.isfinite(work), lasts, 0.0),
        queue=tuple(each.queue for each in some),
        user=tuple(each.user for each in some),
    )
    down = np.array(course.down, dtype=float).reshape(-1, 3)
    one, none = np.ones(len(rows)), np.full(len(rows), -1, dtype=np.int32)
    first, last = (np.array([times.get(name, np.inf) for name in names]) for times in (course.first, course.finish))
    whole = [x.astype(np.int32) for x in (np.array(course.gpus), job, node, gpus, down[:, 0])]
    return Outcome(
        workload, whole[0], first, last, whole[1], whole[2], none, whole[3], one, start, end, one,
        whole[4], down[:, 1], down[:, 2],
    )  # fmt: skip
