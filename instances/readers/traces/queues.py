"""A workload by queue."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...workload import Workload


def queues(workload: Workload) -> Iterator[tuple[str, Workload]]:
    """Yield each queue's name and jobs, in the order of their first jobs."""
    index: dict[str, list[int]] = {}
    for i, name in enumerate(workload.queue):
        index.setdefault(name, []).append(i)
    for name, rows in index.items():
        yield name, workload.take(np.array(rows))
