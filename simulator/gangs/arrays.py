"""Jobs, cluster and state as arrays, for compiled code: gangs on GPUs that are never shared."""

from __future__ import annotations

from typing import Any, Self

import cython
import numpy as np
from cython import cclass, final
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.solvers.native import Heap

if not cython.compiled:
    from gangplan.solvers.native import Int

    NOW = 0
    """Of `State.clock`."""
    ARRIVED, WAITING, RUNNING = range(3)
    """Of `State.count`."""


@cclass
class Arrays:
    """Arrays that compiled code reads as fields and Python as attributes, in the same memory.

    An attribute is written to, never set: compiled code would keep the old array.
    """

    def own(self, names: tuple[str, ...], arrays: tuple[NDArray[Any], ...], *sizes: int) -> None:
        """Give arrays their names in Python; raise `ValueError` if they have not so many entries."""
        for x, size in zip(arrays, sizes, strict=True):
            if len(x) != size:
                raise ValueError(f"{names} have {[len(x) for x in arrays]} entries, not {sizes}")
        vars(self).update(zip(names, arrays, strict=True))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, in the order in which they are given."""
        return {name: x for name, x in vars(self).items() if isinstance(x, np.ndarray)}

    def replace(self, **arrays: NDArray[Any]) -> Self:
        """Return the same with other arrays of these names."""
        return type(self)(*(self.arrays() | arrays).values())

    def copy(self) -> Self:
        """Return what can be changed without changing this one."""
        return type(self)(*[x.copy() for x in self.arrays().values()])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.arrays().values())


@final
@cclass
class Jobs(Arrays):
    """n jobs in the order of their submission.

    Attributes:
        submit: seconds, float64 (n,).
        work: seconds at rate 1, float64 (n,).
        expected: what policies are told of `work`, float64 (n,).
        gpus: int64 (n,).
        intensity: of communication, float64 (n,).
        first: where the GPUs of each job begin in `State.held`, int64 (n + 1,).
    """

    def __init__(self, *arrays: Any) -> None:
        self.submit, self.work, self.expected, self.gpus, self.intensity, self.first = arrays
        n = len(arrays[0])
        names = "submit", "work", "expected", "gpus", "intensity", "first"
        self.own(names, arrays, n, n, n, n, n, n + 1)


@final
@cclass
class GpuRacks(Arrays):
    """m nodes; those of a rack follow one another.

    Attributes:
        rack: of each node, int64 (m,).
        begin: the first node of each rack, and m, int64 (racks + 1,).
        first: the first GPU of each node, and the number of GPUs, int64 (m + 1,).
        weight: of links in a node, in a rack, between racks, float64 (3,).
        node: of each GPU, int64 (GPUs,).
    """

    def __init__(self, *arrays: Any) -> None:
        self.rack, self.begin, self.first, self.weight, self.node = rack, begin, first, _, node = arrays
        m, racks = len(rack), len(begin) - 1
        self.own(("rack", "begin", "first", "weight", "node"), arrays, m, racks + 1, m + 1, 3, int(first[m]))
        for index, size in ((rack, racks), (node, m), (begin, m + 1)):
            if len(index) and not 0 <= index.min() <= index.max() < size:
                raise ValueError(f"{index} are not below {size}: {m} nodes of {racks} racks")


@final
@cclass
class State(Arrays):
    """Who waits and who runs where.

    Attributes:
        clock: `NOW`, float64 (1,).
        count: `ARRIVED` jobs, those `WAITING`, those `RUNNING`, int64 (3,).
        queue: the first `WAITING` entries are the jobs that wait, in the order of submission, int64 (n,).
        running: a heap of the jobs that run, the next to end on top, int64 (n,).
        free: idle GPUs of each node, int64 (m,).
        holder: the job on each GPU, -1 if it is idle, int64 (GPUs,).
        held: the GPUs of each started job, see `Jobs.first`, int64.
        start, finish: seconds, infinite if not yet known, float64 (n,).
        urgency: minus `finish`, by which `running` is ordered, float64 (n,).
        cost: of communication, float64 (n,).
        ends: `running` as a heap, of those that end at one time the first submitted on top; see `push` and `pop`.
    """

    def __init__(self, *arrays: Any) -> None:
        self.clock, self.count, self.queue, self.running, self.free, self.holder, self.held, *rest = arrays
        self.start, self.finish, self.urgency, self.cost = rest
        n, (m, gpus, held) = len(rest[0]), map(len, arrays[4:7])
        names = "clock", "count", "queue", "running", "free", "holder", "held"
        sizes = (1, 3, n, n, m, gpus, held, n, n, n, n)
        self.own((*names, "start", "finish", "urgency", "cost"), arrays, *sizes)
        self.ends = Heap(rest[2], None, arrays[3])

    def push(self, job: Int) -> None:
        """Enter a job into those that run."""
        self.ends.size = self.count[RUNNING]
        self.ends.push(job)
        self.count[RUNNING] += 1

    def pop(self) -> Int:
        """Take the job that ends next out of those that run, and return it."""
        self.ends.size = self.count[RUNNING]
        self.count[RUNNING] -= 1
        return self.ends.pop()

    def require(self, jobs: Jobs, cluster: GpuRacks) -> None:
        """Raise `ValueError` if it is not of these jobs, or some behind them too, on this cluster."""
        n: Int = len(jobs.submit)
        live: Int = self.count[WAITING] + self.count[RUNNING]
        if not (
            len(self.start) >= n >= self.count[ARRIVED] >= live >= self.count[WAITING] >= 0 <= self.count[RUNNING]
            and len(self.held) >= jobs.first[n]
            and len(self.free) == len(cluster.rack)
            and len(self.holder) == len(cluster.node)
        ):
            counts = [self.count[i] for i in range(3)]
            raise ValueError(
                f"{counts} of {n} jobs on {len(self.free)} nodes are no state of {len(cluster.rack)} nodes"
            )


def order_of(workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the jobs of a workload in the order of `Jobs`."""
    return np.argsort(np.asarray(workload.submit), kind="stable")


def intensity_of(workload: Workload, proximity: Proximity) -> FloatArray:
    """Return how intense the communication of each job is, float64 (n,)."""
    return np.array([proximity.intensity.get(model, 1.0) for model in workload.model], np.float64)


def first_jobs(jobs: Jobs, n: int) -> Jobs:
    """Return the first n jobs."""
    return Jobs(*(x[: n + (name == "first")] for name, x in jobs.arrays().items()))


def jobs_of(workload: Workload, proximity: Proximity, expected: FloatArray | None = None) -> Jobs:
    """Return the jobs of a workload.

    Args:
        workload, proximity: the jobs, and how intense the communication of each is.
        expected: the durations that policies are told, float64 (n,), by default the true ones.

    Raises:
        InstanceError: if a job asks for a share of a GPU.
    """
    share = np.asarray(workload.share)
    require(share == 1, share, "share", "is not 1: GPUs are not shared here")
    order = order_of(workload)
    gpus = workload.gpus.astype(np.int64)[order]
    intensity = intensity_of(workload, proximity)[order]
    told = workload.duration if expected is None else expected
    return Jobs(
        np.array(workload.submit[order]), np.array(workload.duration[order]), np.array(told[order], dtype=np.float64),
        gpus, intensity, np.append(0, np.cumsum(gpus)),
    )  # fmt: skip


def cluster_of(fleet: Fleet, proximity: Proximity) -> GpuRacks:
    """Return the nodes of a fleet; racks are the groups of its lowest level.

    Raises:
        InstanceError: if the nodes of a rack do not follow one another, or a node is not usable.
    """
    rack = np.unique(fleet.topology.group[0], return_inverse=True)[1].astype(np.int64)
    if (np.diff(rack) < 0).any():
        raise InstanceError("topology", "the nodes of a rack do not follow one another")
    usable = np.asarray(fleet.usable)
    require(usable, usable, "usable", "is false, and every node is used here")
    begin = np.append(np.flatnonzero(np.diff(rack, prepend=-1)), len(rack))
    first = np.append(0, np.cumsum(fleet.gpus.astype(np.int64)))
    weight = np.array([proximity.node, proximity.rack, proximity.cluster], np.float64)
    return GpuRacks(rack, begin, first, weight, np.repeat(np.arange(len(rack)), fleet.gpus))


def begin(jobs: Jobs, cluster: GpuRacks) -> State:
    """Return the state before the first job arrives."""
    for i in range(len(jobs.gpus)):
        if jobs.gpus[i] > len(cluster.node):
            raise InstanceError(f"gpus[{i}]", f"{jobs.gpus[i]} are more than the {len(cluster.node)} of the cluster")
    return empty(jobs, cluster)


def empty(jobs: Jobs, cluster: GpuRacks) -> State:
    """Return an idle cluster of which no job knows yet, whether or not it holds them all."""
    n = len(jobs.submit)
    times, queues = np.zeros((4, n)), np.zeros((2, n), np.int64)
    times[:2], times[2] = np.inf, -np.inf
    free, holder = np.diff(cluster.arrays()["first"]), -np.ones(len(cluster.node), np.int64)
    return State(np.zeros(1), np.zeros(3, np.int64), *queues, free, holder, np.zeros(jobs.first[n], np.int64), *times)
