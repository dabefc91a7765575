"""Conservative backfilling, compiled: every waiting job holds a reservation, and starts when it is due."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .ground import change, find


@njit(cache=True)
def due_now(
    queue: Any,
    now: float,
    span: Any,
    degree: Any,
    unit: Any,
    kind: Any,
    free: Any,
    whole: Any,
    ok: Any,
    consolidate: bool,
    ends: Any,
    running: Any,
    first: Any,
    count: Any,
    log_node: Any,
    log_gpus: Any,
) -> Any:
    """Return the places in the queue of the jobs whose reservations begin now, and their rows (place, node, GPUs).

    Reservations are made in the order of the queue, each at the earliest time at which the job fits, from start to end,
    beside what runs and what was reserved before it (Feitelson and Weil, IPPS 1998). `running` is by its ends.
    """
    m, resources = free.shape
    size = len(running) + 2 * len(queue) + 2
    time = np.empty(size)  # from time[i] on, there[i] is free
    there = np.empty((size, m, resources))
    time[0], there[0], steps = now, free, 1
    for i in range(len(running)):
        j = running[i]
        if ends[i] > time[steps - 1]:
            time[steps] = ends[i]
            there[steps] = there[steps - 1]
            steps += 1
        rows = slice(first[j], first[j] + count[j])
        change(there[steps - 1], unit[j], log_node[rows], log_gpus[rows], 1)
    node, gpus = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    places = np.empty(len(queue), dtype=np.int64)
    rows_out = np.empty((3, len(queue) * m if len(queue) < 64 else 64 * m + len(queue)), dtype=np.int64)
    found, n_rows = 0, 0
    low = np.empty((m, resources))
    for i in range(len(queue)):
        j = queue[i]
        k, at, past = 0, 0, 0
        while at < steps:
            end = time[at] + span[j]
            low[:] = there[at]
            past = at + 1
            while past < steps and time[past] < end:
                for n in range(m):
                    for r in range(resources):
                        low[n, r] = min(low[n, r], there[past, n, r])
                past += 1
            k = find(low, whole, ok[kind[j]], unit[j], degree[j], consolidate, node, gpus)
            if k:
                break
            at += 1
        if not k:
            continue  # not while nodes are down
        if at == 0:
            places[found] = i
            found += 1
            if n_rows + k > rows_out.shape[1]:
                wider = np.empty((3, 2 * rows_out.shape[1] + k), dtype=np.int64)
                wider[:, :n_rows] = rows_out[:, :n_rows]
                rows_out = wider
            rows_out[0, n_rows : n_rows + k] = i
            rows_out[1, n_rows : n_rows + k] = node[:k]
            rows_out[2, n_rows : n_rows + k] = gpus[:k]
            n_rows += k
        end = time[at] + span[j]
        if past == steps or time[past] > end:  # a step where the reservation ends, be it of no time
            for s in range(steps, past, -1):
                time[s] = time[s - 1]
                there[s] = there[s - 1]
            time[past] = end
            there[past] = there[past - 1]
            steps += 1
        for s in range(at, past):
            change(there[s], unit[j], node[:k], gpus[:k], -1)
    return places[:found], rows_out[:, :n_rows]
