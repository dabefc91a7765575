"""The policy online: of the jobs that wait now, which start, at what degree, and what every option scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.engine.jobs import Long, Rows
from gangplan.simulator.engine.policy import View
from gangplan.solvers.schedule.prepare import POOL, Ints, Prepared
from gangplan.solvers.schedule.profile import Busy

from .build import Net
from .builder import Builder, plans

if TYPE_CHECKING:
    from .policy import SchedulePolicy

MOST = 32
"""Jobs that are planned; of a longer queue, those that gain most for their work. The others come after them."""
_STEPS = 24
"""Ends of running jobs that are told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """What is known at one moment: k jobs that wait, with o degrees in all, and r that run.

    Attributes:
        first: where the degrees of each job begin, int64 (k + 1,); ascending within a job.
        gpus: the degrees, int64 (o,).
        seconds: how long a job would run at each, as far as the scheduler knows, float64 (o,).
        weight: of the jobs, float64 (k,); 1 each for the mean completion time.
        total: GPUs that are up.
        held: GPUs of each running job, int64 (r,).
        until: seconds from now until each ends, as far as the scheduler knows, float64 (r,).
    """

    first: Ints
    gpus: Ints
    seconds: FloatArray
    weight: FloatArray
    total: int
    held: Ints
    until: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """What the policy makes of a queue.

    Attributes:
        score: of each degree, float64 (o,), larger is better: minus the job's place in the order of starts at the
            degree that was chosen, up to 0.9 less at its others; minus infinity if the cluster has not as many GPUs.
        option: the degree chosen for each job, an index into `gpus`, int64 (k,); -1 if it has none that fits.
        place: of each job in the order of starts, int64 (k,).
        start: seconds from now at which the plan starts each job, float64 (k,); inf if it was not planned.
    """

    score: FloatArray
    option: Ints
    place: Ints
    start: FloatArray


def ranked(queues: Sequence[Queue], policy: SchedulePolicy | None = None, samples: int = 1) -> list[Ranking]:
    """Rank the options of some queues, their networks run as one batch.

    GPUs are counted; whoever starts jobs sees to nodes. The same queue has the same ranking.

    Args:
        queues: one or more.
        policy: by default the one that comes with the package.
        samples: schedules to build of each queue, the best of which counts, see `gangplan.learned.schedule.builder`.

    Raises:
        InstanceError: if that is missing or broken.
    """
    if policy is None:
        from .policy import shipped

        policy = shipped()
    made = [_builder(queue) for queue in queues]
    some = [(builder, chosen) for builder, chosen in made if builder is not None]
    nets = iter(policy.nets([builder for builder, _ in some]) if some else [])
    found = []
    for queue, (builder, chosen) in zip(queues, made, strict=True):
        found.append(_ranking(queue, builder, chosen, *(_best(builder, next(nets), samples) if builder else ((), ()))))
    return found


def _best(builder: Builder, net: Net, samples: int) -> tuple[FloatArray, Ints]:
    """Return starts and options of the best of some schedules."""
    best, found = np.inf, (builder.start, builder.option)
    for cost, _ in zip(plans(builder, net), range(samples), strict=False):
        if cost < best:
            best, found = cost, (builder.start.copy(), builder.option.copy())
    return found


def _builder(queue: Queue) -> tuple[Builder | None, Ints]:
    """Return the jobs that are planned, as a problem in which all is released now, and which they are."""
    k, size = len(queue.weight), np.diff(queue.first)
    density = _density(queue)
    chosen = np.argsort(-density, kind="stable")[:MOST]
    chosen = np.sort(chosen[density[chosen] > 0])
    if not k or not len(chosen):
        return None, chosen
    entry = np.concatenate([np.arange(queue.first[j], queue.first[j + 1]) for j in chosen])
    owner = np.repeat(np.arange(len(chosen)), size[chosen])
    fits = queue.gpus[entry] <= queue.total
    entry, owner = entry[fits], owner[fits]
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(chosen)))]).astype(np.int64)
    n, none = len(chosen), np.zeros(0, dtype=np.int64)
    problem: Any = None  # there is no plan of it
    weight = np.maximum(queue.weight[chosen].astype(float), 1e-9)
    p = Prepared(
        problem=problem,
        kind=POOL,
        nodes=1,
        per=queue.total,
        size=none,
        block_first=np.zeros(1, dtype=np.int64),
        server=none,
        first=first,
        gpus=queue.gpus[entry].astype(np.int64),
        menu=entry,
        seconds=queue.seconds[entry].astype(float),
        owner=owner,
        release=np.zeros(n),
        deadline=np.full(n, np.inf),
        slope=weight,
        price=np.full(n, np.inf),
        constant=0.0,
        makespan=False,
    )
    return Builder(p, _busy(queue)), chosen


def _busy(queue: Queue) -> Busy:
    """Return the running jobs, those that end at nearly the same time as one."""
    order = np.argsort(queue.until, kind="stable")
    held, until = queue.held[order].astype(np.int64), np.maximum(queue.until[order].astype(float), 0.0)
    if len(order) > _STEPS:
        part = np.linspace(0, len(order), _STEPS + 1).astype(int)[:-1]
        held, until = np.add.reduceat(held, part), np.maximum.reduceat(until, part)
    return Busy(np.zeros(len(held), dtype=np.int64), held, until)


def _density(queue: Queue) -> FloatArray:
    """Return weight over fewest GPU-seconds of each job; 0 if the cluster has not as many GPUs."""
    work = np.where(queue.gpus <= queue.total, np.maximum(queue.gpus * queue.seconds, 1e-9), np.inf)
    some = np.diff(queue.first) > 0
    least = np.full(len(queue.weight), np.inf)
    if len(work):
        least[some] = np.minimum.reduceat(work, queue.first[:-1][some])
    return np.asarray(np.maximum(queue.weight, 1e-9) / least)


def _ranking(queue: Queue, builder: Builder | None, chosen: Ints, starts: Any, options: Any) -> Ranking:
    k = len(queue.weight)
    owner = np.repeat(np.arange(k), np.diff(queue.first))
    start, key = np.full(k, np.inf), -_density(queue)
    work = np.where(queue.gpus <= queue.total, queue.gpus * queue.seconds, np.inf)
    option = np.full(k, -1, dtype=np.int64)
    for o in np.lexsort((-work, owner)).tolist():  # the least work of each job is written last
        if work[o] < np.inf:
            option[owner[o]] = o
    if builder is not None:
        start[chosen] = starts
        option[chosen] = builder.p.menu[options]
    order = np.lexsort((key, start))
    place = np.empty(k, dtype=np.int64)
    place[order] = np.arange(k)
    apart = np.abs(np.log2(queue.gpus / np.maximum(queue.gpus[option[owner]], 1))) if len(owner) else np.zeros(0)
    score = -place[owner] - 0.9 * apart / (1 + apart)
    return Ranking(np.where(queue.gpus <= queue.total, score, -np.inf), option, place, start)


class Learned:
    """Order and degrees by `gangplan.learned.schedule.online.ranked`; it needs to know durations and degrees.

    A job that the plan starts later waits, though it may fit now, as long as anything runs.

    Args:
        policy: by default the one that comes with the package.
    """

    preemptive = False
    steady = False

    def __init__(self, policy: SchedulePolicy | None = None) -> None:
        self._policy = policy
        self._degree: dict[int, int] = {}
        self._later: set[int] = set()

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by the plan's starts."""
        found = ranked([queue_of(view, jobs)], self._policy)[0]
        gpus = _entries(view, jobs)[1]
        some = found.option >= 0
        degree = np.where(some, gpus[np.maximum(found.option, 0)], gpus.max(initial=1))
        self._degree = dict(zip(jobs.tolist(), degree.tolist(), strict=True))
        self._later = set(jobs[~(found.start <= 0)].tolist()) if len(view.running) else set()
        return found.place.astype(float)

    def degree(self, job: int, view: View) -> int:
        """Return the degree that the plan chose."""
        return self._degree.get(job, int(view.options.degrees(job)[0]))

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Start what the plan starts now."""
        return None if job in self._later else view.find(job, degree)


def queue_of(view: View, jobs: Long) -> Queue:
    """Return what the policy is told of the jobs that wait and of those that run."""
    first, gpus, seconds = _entries(view, jobs)
    whole = view.workload.duration[jobs]
    share = np.divide(view.left(jobs), whole, out=np.ones(len(jobs)), where=whole > 0)
    running = view.running
    rate = view.rate[running]
    until = np.divide(view.left(running), rate, out=np.full(len(running), 1e9), where=rate > 0)
    return Queue(
        *(first, gpus, seconds * np.repeat(share, np.diff(first)), np.ones(len(jobs))),
        *(int(view.fleet.gpus[view.up].sum()), view.degree[running], until),
    )


def _entries(view: View, jobs: Long) -> tuple[Long, Long, FloatArray]:
    """Return the options of some jobs, one after the other."""
    menu = view.options
    size = (menu.first[jobs + 1] - menu.first[jobs]).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    entry = np.repeat(menu.first[jobs] - first[:-1], size) + np.arange(first[-1])
    return first, menu.gpus[entry].astype(np.int64), menu.duration[entry]
