"""Jobs, cluster and state as arrays, for compiled code: gangs on GPUs that are never shared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.solvers.compiled.kernel import Floats, Ints, inner

NOW = 0
"""Of `State.clock`."""
ARRIVED, WAITING, RUNNING = range(3)
"""Of `State.count`."""


class Jobs(NamedTuple):
    """n jobs in the order of their submission.

    Attributes:
        submit: seconds, float64 (n,).
        work: seconds at rate 1, float64 (n,).
        expected: what policies are told of `work`, float64 (n,).
        gpus: int64 (n,).
        intensity: of communication, float64 (n,).
        first: where the GPUs of each job begin in `State.held`, int64 (n + 1,).
    """

    submit: Floats
    work: Floats
    expected: Floats
    gpus: Ints
    intensity: Floats
    first: Ints


class Cluster(NamedTuple):
    """m nodes; those of a rack follow one another.

    Attributes:
        rack: of each node, int64 (m,).
        begin: the first node of each rack, and m, int64 (racks + 1,).
        first: the first GPU of each node, and the number of GPUs, int64 (m + 1,).
        weight: of links in a node, in a rack, between racks, float64 (3,).
        node: of each GPU, int64 (GPUs,).
    """

    rack: Ints
    begin: Ints
    first: Ints
    weight: Floats
    node: Ints


class State(NamedTuple):
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
    """

    clock: Floats
    count: Ints
    queue: Ints
    running: Ints
    free: Ints
    holder: Ints
    held: Ints
    start: Floats
    finish: Floats
    urgency: Floats
    cost: Floats


def order_of(workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the jobs of a workload in the order of `Jobs`."""
    return np.argsort(np.asarray(workload.submit), kind="stable")


def intensity_of(workload: Workload, proximity: Proximity) -> FloatArray:
    """Return how intense the communication of each job is, float64 (n,)."""
    return np.array([proximity.intensity.get(model, 1.0) for model in workload.model])


def first_jobs(jobs: Jobs, n: int) -> Jobs:
    """Return the first n jobs."""
    return Jobs(*(x[: n + (x is jobs.first)] for x in jobs))


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


def cluster_of(fleet: Fleet, proximity: Proximity) -> Cluster:
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
    weight = np.array([proximity.node, proximity.rack, proximity.cluster])
    return Cluster(rack, begin, first, weight, np.repeat(np.arange(len(rack)), fleet.gpus))


def begin(jobs: Jobs, cluster: Cluster) -> State:
    """Return the state before the first job arrives."""
    gpus = int(cluster.first[-1])
    if len(jobs.gpus) and int(jobs.gpus.max()) > gpus:
        i = int(np.argmax(jobs.gpus > gpus))
        raise InstanceError(f"gpus[{i}]", f"{jobs.gpus[i]} are more than the {gpus} of the cluster")
    return empty(jobs, cluster)


def empty(jobs: Jobs, cluster: Cluster) -> State:
    """Return an idle cluster of which no job knows yet, whether or not it holds them all."""
    n, gpus = len(jobs.submit), int(cluster.first[-1])
    return State(
        np.zeros(1), np.zeros(3, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64),
        np.diff(cluster.first), np.full(gpus, -1, dtype=np.int64), np.zeros(int(jobs.first[-1]), dtype=np.int64),
        np.full(n, np.inf), np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n),
    )  # fmt: skip


@inner
def copy(x: State) -> State:
    """Return a state that can be changed without changing this one."""
    return State(
        x.clock.copy(), x.count.copy(), x.queue.copy(), x.running.copy(), x.free.copy(), x.holder.copy(),
        x.held.copy(), x.start.copy(), x.finish.copy(), x.urgency.copy(), x.cost.copy(),
    )  # fmt: skip
