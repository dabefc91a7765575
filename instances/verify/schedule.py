"""The verifier of schedules: gangs within their times, on GPUs that nobody else holds."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, distinct, sums
from ..cluster import RampTopology
from ..ramp import is_block
from ..schedule import MoldableJob, NodePool, Pool, SchedulePlan, ScheduleProblem, total
from .verdict import Judgement, in_order, time_slack

_SHOWN = 5
"""Overfull nodes that are named."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScheduleVerdict(Judgement):
    """What the verifier found.

    Attributes:
        finish: completion of each job, seconds, float64 (n,), nan where it is left out.
    """

    finish: FloatArray


def verify_schedule(problem: ScheduleProblem, plan: SchedulePlan) -> ScheduleVerdict:
    """Check `plan` against every constraint of `problem` and recompute the goal.

    Times may be off by a billionth of the seconds that the job runs, and by four units in the last place of the clock.
    """
    n = len(problem.jobs)
    words = _shape(problem, plan)
    if words:
        return ScheduleVerdict(tuple(words), None, np.full(n, np.nan))
    runs = plan.degree >= 0
    chosen = list(zip(problem.jobs, plan.degree.tolist(), strict=True))
    seconds = np.array([job.durations[d] if d >= 0 else np.nan for job, d in chosen])
    finish = np.where(runs, plan.start + seconds, np.nan)
    held = np.array([job.degrees[d] if d >= 0 else 0 for job, d in chosen])
    over = finish - time_slack(seconds, finish)
    words = [
        *_times(problem, plan, finish, seconds),
        *_places(problem, plan, held),
        *_capacity(problem, plan, over, held),
    ]
    if words:
        return ScheduleVerdict(tuple(words), None, finish)
    return ScheduleVerdict((), goal(problem, finish, seconds), finish)


def goal(problem: ScheduleProblem, finish: FloatArray, seconds: FloatArray) -> float:
    """Return what `problem` minimises: see `ScheduleProblem.goal`."""
    lost = fsum(problem.price(j) or 0.0 for j in np.flatnonzero(np.isnan(finish)).tolist())
    run = np.flatnonzero(~np.isnan(finish)).tolist()
    jobs, ends = problem.jobs, finish.tolist()
    if problem.goal == "makespan":
        return float(max((ends[j] for j in run), default=0.0) + lost)
    if problem.goal == "mean_jct":
        # on a coarse clock a job may end a little before its release; that is worth no less than nothing
        return fsum([*(max(0.0, ends[j] - jobs[j].release) for j in run), lost]) / len(jobs)
    if problem.goal == "weighted_completion":
        return fsum([*(jobs[j].weight * ends[j] for j in run), lost])
    if problem.goal == "throughput":
        assert problem.horizon is not None
        late = is_late(finish, problem.horizon, seconds)
        lost = fsum([lost, *(jobs[j].weight for j in run if late[j])])
    return lost


def is_late(finish: Any, due: Any, seconds: Any) -> Any:
    """Return whether jobs that run for `seconds` and end at `finish` miss the time `due`, see `verify_schedule`."""
    return finish > due + time_slack(seconds, due)


def _shape(problem: ScheduleProblem, plan: SchedulePlan) -> list[str]:
    names = tuple(job.name for job in problem.jobs)
    if words := in_order("job", plan.jobs, "problem", names):
        return words
    words = [
        f"job {name} has degree {d} of a menu of {len(job.degrees)}: {_index(d, job)}"
        for name, d, job in zip(names, plan.degree.tolist(), problem.jobs, strict=True)
        if d >= len(job.degrees)
    ]
    count = _machines(problem)
    words += [
        f"job {names[plan.job[r]]} is on node {plan.node[r]} of {count}" for r in np.flatnonzero(plan.node >= count)
    ]
    (jobs, nodes), _, times = distinct(plan.job, plan.node)
    words += [f"job {names[jobs[i]]} is on node {nodes[i]} twice" for i in np.flatnonzero(times > 1)]
    return words


def _index(degree: int, job: MoldableJob) -> str:
    """Return what a plan has to say instead of a number of GPUs that is no index."""
    if degree in job.degrees:
        return f"write its index, {job.degrees.index(degree)}, for {degree} GPUs"
    return f"indices are from 0 to {len(job.degrees) - 1}, or -1 to leave it out"


def _machines(problem: ScheduleProblem) -> int:
    capacity = problem.capacity
    if isinstance(capacity, Pool):
        return 0
    return capacity.nodes if isinstance(capacity, NodePool) else capacity.n_devices


def _times(problem: ScheduleProblem, plan: SchedulePlan, finish: FloatArray, seconds: FloatArray) -> list[str]:
    jobs, runs = problem.jobs, plan.degree >= 0
    release = np.array([job.release for job in jobs])
    due = np.array([np.inf if job.deadline is None else job.deadline for job in jobs])
    early = runs & (plan.start < release - time_slack(seconds, release))
    late = runs & np.isfinite(due)
    late[late] = is_late(finish[late], due[late], seconds[late])
    words = []
    for j in np.flatnonzero(~runs | early | late).tolist():
        job = jobs[j]
        if not runs[j] and problem.price(j) is None:
            words.append(f"run: job {job.name} is left out, and it must run")
        if early[j]:
            words.append(f"release: job {job.name} starts at {plan.start[j]:.9g} s, released at {job.release:.9g} s")
        if late[j]:
            words.append(f"deadline: job {job.name} ends at {finish[j]:.9g} s, due at {job.deadline:.9g} s")
    return words


def _places(problem: ScheduleProblem, plan: SchedulePlan, held: NDArray[np.int_]) -> list[str]:
    """Check the rows of each job alone: as many GPUs as it holds, consolidated, or a block."""
    capacity, n = problem.capacity, len(plan.jobs)
    if isinstance(capacity, Pool):
        return []
    count, rows = sums(plan.job, plan.gpus, n), sums(plan.job, np.ones(len(plan.job)), n)
    wrong, spread = count != held, np.zeros(n, dtype=bool)
    if isinstance(capacity, NodePool):
        less, more = (sums(plan.job, x, n) for x in (plan.gpus < capacity.gpus, plan.gpus > capacity.gpus))
        spread = (less > 1) | ((more > 0) & (rows > 1))
    order = np.argsort(plan.job, kind="stable")
    first = np.searchsorted(plan.job[order], np.arange(n + 1))
    words = []
    for j in np.flatnonzero(wrong | spread | (held > 0 if isinstance(capacity, RampTopology) else False)).tolist():
        name, mine = plan.jobs[j], order[first[j] : first[j + 1]]
        if wrong[j]:
            words.append(f"gang: job {name} holds {count[j]:.0f} GPUs in its rows, it runs on {held[j]}")
        elif spread[j]:
            words.append(f"consolidation: job {name} of {held[j]} GPUs fills not all of its nodes but one")
        elif isinstance(capacity, RampTopology):
            words += _block(capacity, name, plan.node[mine], plan.gpus[mine])
    return words


def _block(topology: RampTopology, name: str, servers: NDArray[np.int32], gpus: NDArray[np.int32]) -> list[str]:
    if (gpus != 1).any():
        return [f"block: job {name} holds {gpus.max()} GPUs of a server that has one"]
    if not is_block(topology, servers):
        return [f"block: the {len(servers)} servers of job {name} are no block of a shape that RAMP knows"]
    return []


def _capacity(problem: ScheduleProblem, plan: SchedulePlan, over: FloatArray, held: NDArray[np.int_]) -> list[str]:
    """Sweep over the starts and ends on each machine, ends first; a rounding error is no overlap."""
    capacity = problem.capacity
    if isinstance(capacity, Pool):
        who: NDArray[Any] = np.flatnonzero(held)
        machine: NDArray[Any] = np.zeros(len(who), dtype=int)
        amount: NDArray[Any] = held[who]
        room = total(capacity)
    else:
        who, machine, amount = plan.job, plan.node, plan.gpus
        room = capacity.gpus if isinstance(capacity, NodePool) else 1
    start, end = plan.start[who], over[who]
    busy = end > start
    start, end, machine, amount = start[busy], end[busy], machine[busy], amount[busy]
    time, where = np.concatenate([start, end]), np.concatenate([machine, machine])
    change = np.concatenate([amount, -amount])
    order = np.lexsort((change, time, where))
    used = np.cumsum(change[order])  # what a machine holds comes back to 0 before the next one's turn
    name = "the cluster" if isinstance(capacity, Pool) else "node"
    return [
        f"capacity: {name}{'' if isinstance(capacity, Pool) else f' {where[order[i]]}'} has {used[i]} GPUs in use at "
        f"{time[order[i]]:.9g} s, of {room}"
        for i in np.flatnonzero(used > room)[:_SHOWN]
    ]


def first_release(problem: ScheduleProblem) -> float:
    """Return the seconds by which all times of `problem` can be moved, so that the first release is at 0.

    It is 0 if goals would then not differ by the same amount for all plans: where all jobs may be left out, the
    makespan of none is 0 on any clock; and where the horizon is before the first release, nobody is done in time.
    """
    zero = min(job.release for job in problem.jobs)
    late = problem.horizon is not None and problem.horizon < zero
    optional = problem.goal == "makespan" and all(problem.price(j) is not None for j in range(len(problem.jobs)))
    return 0.0 if late or optional else zero


def clock_cost(problem: Any) -> float:
    """Return what any plan costs at least because the clock does not start at the first release.

    Gaps are shares of what an objective is above that: at Unix times any plan is within a millionth of any other. A job
    pays its weight for each second before the first release, or its value if that is less. It is 0 of all that is no
    schedule problem.
    """
    if problem.objective != "schedule" or problem.goal not in ("makespan", "weighted_completion"):
        return 0.0
    zero = first_release(problem)
    if problem.goal == "makespan" or not zero:
        return zero
    paid = ((job.weight * zero, job.value) for job in problem.jobs)
    return fsum(waits if value is None else min(waits, value) for waits, value in paid)
