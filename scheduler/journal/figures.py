"""Figures of a course of things, of all jobs, by user and by queue; and the course as an outcome of a simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.instances.workload import Workload
from gangplan.simulator.metrics import available_gpus, held_gpus
from gangplan.simulator.outcome import Outcome

from .course import Course
from .history import ENDED, History

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
