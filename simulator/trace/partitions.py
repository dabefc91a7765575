"""Virtual clusters: each queue of a trace on nodes of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import IntArray
from gangplan.instances.workload import Workload

from .outcome import Outcome


def by_queue(workload: Workload, run: Callable[[Workload], Outcome]) -> Outcome:
    """Return the schedule of all queues, each run by itself; their nodes are numbered one queue after the other.

    Args:
        workload: the jobs of all queues.
        run: simulates those of one, on its nodes.

    Raises:
        InstanceError: if a schedule has degrees to choose from.
    """
    names, member = np.unique(np.array(workload.queue), return_inverse=True)
    jobs = [np.flatnonzero(member == k) for k in range(len(names))]
    parts = [run(workload.take(index)) for index in jobs]
    if any(part.menu is not None for part in parts):
        raise InstanceError("menu", "is of one queue, and cannot be put together")
    counted = any((part.row_node < 0).any() for part in parts)
    first = np.cumsum([0, *(1 if counted else len(part.room) for part in parts)])
    start, finish = np.empty(workload.n_jobs), np.empty(workload.n_jobs)
    for index, part in zip(jobs, parts, strict=True):
        start[index], finish[index] = part.start, part.finish

    def together(field: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, field) for part in parts])

    def renumbered(field: str) -> IntArray:
        shifted = [np.maximum(getattr(part, field), 0) + k for part, k in zip(parts, first, strict=False)]
        return np.concatenate(shifted).astype(np.int32)

    row_job = [index[part.row_job] for index, part in zip(jobs, parts, strict=True)]
    rooms = [np.array([part.n_gpus], dtype=np.int32) if counted else part.room for part in parts]
    return Outcome(
        workload=workload,
        room=np.concatenate(rooms),
        start=start,
        finish=finish,
        row_job=np.concatenate(row_job).astype(np.int32),
        row_node=renumbered("row_node"),
        row_gpu=together("row_gpu"),
        row_gpus=together("row_gpus"),
        row_share=together("row_share"),
        row_start=together("row_start"),
        row_end=together("row_end"),
        row_rate=together("row_rate"),
        down_node=renumbered("down_node"),
        down_start=together("down_start"),
        down_end=together("down_end"),
        cost=parts[0].cost,
        interval=parts[0].interval,
    )
