"""What a schedule has to respect, one requirement at a time, for `conflict`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.instances.schedule.capacity import total

from .conflict import Requirement

Change = Callable[[MoldableJob], MoldableJob]


def requirements(problem: ScheduleProblem) -> list[Requirement]:
    """Return what a plan has to respect: the GPUs there are, deadlines, and that jobs run."""
    parts = [Requirement(f"GPUs: there are {total(problem.capacity)}", _ample)]
    for j, job in enumerate(problem.jobs):
        if problem.price(j) is not None:
            continue
        menu = " or ".join(map(str, job.degrees))
        parts.append(Requirement(f"run: job {job.name} must run, on {menu} GPUs", _with_job(j, _optional)))
        if job.deadline is not None:
            words = f"deadline: job {job.name} is due {job.deadline - job.release:.6g} s after its release"
            parts.append(Requirement(words, _with_job(j, _patient)))
    return parts


def _ample(problem: ScheduleProblem) -> ScheduleProblem:
    return replace(problem, capacity=Pool(sum(job.degrees[-1] for job in problem.jobs)))


def _optional(job: MoldableJob) -> MoldableJob:
    return replace(job, value=0.0)


def _patient(job: MoldableJob) -> MoldableJob:
    return replace(job, deadline=None)


def _with_job(j: int, change: Change) -> Callable[[ScheduleProblem], ScheduleProblem]:
    return partial(_changed, j=j, change=change)


def _changed(problem: ScheduleProblem, j: int, change: Change) -> ScheduleProblem:
    return replace(problem, jobs=(*problem.jobs[:j], change(problem.jobs[j]), *problem.jobs[j + 1 :]))
