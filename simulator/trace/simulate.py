"""The front of the simulator of traces: arguments checked, arrays prepared, the loop run, the schedule checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require, require_choice, require_number
from gangplan.instances.workload import Workload

from ..check import assert_sound, check
from ..fit import Nodes
from ..outcome import Outcome
from .loop import run

DISCIPLINES = ("head", "overtake", "easy")

ORDERS: dict[str, Callable[[Workload], FloatArray]] = {
    "fifo": lambda workload: workload.submit,
    "sjf": lambda workload: workload.duration,
    "ljf": lambda workload: -workload.duration,
    "smallest": lambda workload: workload.gpus.astype(float),
    "least_work": lambda workload: workload.gpus * workload.duration,
}
"""By name: what the queue is ordered by, float64 (n,), the least first; ties by submit time, then as in the trace."""


def simulate(
    workload: Workload,
    nodes: int,
    gpus: int = 8,
    *,
    policy: str = "fifo",
    discipline: str = "head",
    consolidate: bool = False,
    order: FloatArray | None = None,
) -> Outcome:
    """Run `workload` on `nodes` equal nodes of `gpus` GPUs each, exclusive and without preemption.

    The queue is looked at when jobs arrive or end; of one instant, all that end are freed before any arrives.

    Args:
        policy: a name of `ORDERS`: who is first in the queue.
        discipline: ``head`` (who is first blocks the others), ``overtake`` (whoever fits starts, in order) or ``easy``
            (whoever fits starts unless that would delay the first beyond when it could start otherwise; Lifka 1995).
        consolidate: a job of at most `gpus` GPUs runs on one node, that with the fewest free GPUs that fits, lowest
            index first; a larger one on whole free nodes, the last of which it need not fill. Otherwise GPUs are only
            counted.
        order: what the queue is ordered by instead, float64 (n,), the least first.
    """
    require_number(nodes, "nodes", positive=True, whole=True)
    require_number(gpus, "gpus", positive=True, whole=True)
    require_choice(policy, "policy", ORDERS)
    require_choice(discipline, "discipline", DISCIPLINES)
    share, room = np.asarray(workload.share), nodes * gpus
    require(share == 1, share, "share", "is not 1: GPUs are not shared here")
    if (workload.gpus > room).any():
        i = int(np.argmax(workload.gpus > room))
        raise InstanceError(f"gpus[{i}]", f"job {workload.names[i]} needs {workload.gpus[i]}, the cluster has {room}")
    n = workload.n_jobs
    whole = np.full((nodes, 1), float(gpus)) if consolidate else np.full((1, 1), float(room))
    jobs = (workload.gpus.astype(np.int64), np.ones((n, 1)), np.zeros(n, dtype=np.int64), np.array(workload.duration))
    cluster = Nodes(*jobs, whole.copy(), whole, np.ones((1, len(whole)), dtype=bool), consolidate)
    arrivals = np.argsort(workload.submit, kind="stable")
    keys = ORDERS[policy](workload) if order is None else order
    queue = arrivals[np.argsort(keys[arrivals], kind="stable")]
    start, rows = run(np.array(workload.submit), arrivals, queue, cluster, DISCIPLINES.index(discipline))
    rooms, finish = np.full(nodes, gpus, dtype=np.int32), start + workload.duration
    if consolidate:
        outcome = Outcome.unbroken(workload, rooms, start, finish, rows[1], rows[2], rows[0])
    else:
        outcome = Outcome.unbroken(workload, rooms, start, finish, -1, workload.gpus)
    assert_sound(check(outcome))
    return outcome


def by_queue(workload: Workload, run: Callable[[Workload], Outcome]) -> Outcome:
    """Return the schedule of all queues, each run by itself; their nodes are numbered one queue after the other.

    Schedules with degrees to choose from are refused.
    """
    names, member = np.unique(np.array(workload.queue), return_inverse=True)
    jobs = [np.flatnonzero(member == k) for k in range(len(names))]
    parts = [run(workload.take(index)) for index in jobs]
    if any(part.options is not None for part in parts):
        raise InstanceError("options", "is of one queue, and cannot be put together")
    counted = any((part.row_node < 0).any() for part in parts)
    rooms = [np.array([part.n_gpus], dtype=np.int32) if counted else part.room for part in parts]
    first = np.cumsum([0, *map(len, rooms)])
    whole: dict[str, Any] = {"start": np.empty(workload.n_jobs), "finish": np.empty(workload.n_jobs)}
    for index, part in zip(jobs, parts, strict=True):
        whole["start"][index], whole["finish"][index] = part.start, part.finish
    for name in (field.name for field in fields(Outcome)):
        if name.startswith(("row_", "down_")):
            columns = [getattr(part, name) for part in parts]
            if name == "row_job":
                columns = [index[column] for index, column in zip(jobs, columns, strict=True)]
            elif name.endswith("_node"):  # all GPUs of a queue are one node where they are only counted
                columns = [np.maximum(column, 0) + k for column, k in zip(columns, first, strict=False)]
            whole[name] = np.concatenate(columns).astype(getattr(parts[0], name).dtype)
    if not counted:
        whole["beside"] = np.concatenate([part.beside for part in parts])
    return Outcome(workload, np.concatenate(rooms), cost=parts[0].cost, interval=parts[0].interval, **whole)
