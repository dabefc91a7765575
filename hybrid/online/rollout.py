"""The future played through, compiled: jobs that run end, sampled ones come, whoever may start does."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numba import njit

from gangplan.simulator.trace.nodes import change, fits, new, take


@njit(cache=True)
def rollout(  # noqa: PLR0912, PLR0915, one loop read from top to bottom
    now: float,
    free: Any,
    size: int,
    row_end: Any,
    row_node: Any,
    row_gpus: Any,
    row_class: Any,
    waiting: int,
    arrive: Any,
    need: Any,
    lasts: Any,
    length: Any,
    key: Any,
    caps: Any,
    counted: int,
) -> float:
    """Return the sum of the times that jobs are there from `now` on, seconds; nothing is reserved.

    A job of at most `size` GPUs runs on the node with the fewest free ones that fits, a larger one on whole nodes.

    Args:
        now: seconds.
        free: free GPUs of each node, int64 (m,), 0 where it is down.
        size: GPUs of a node.
        row_end, row_node, row_gpus, row_class: of the parts of running jobs: end, node, GPUs, class.
        waiting: so many of the jobs wait now, they come first; the others arrive later, ascending.
        arrive, need, lasts, length, key: of the n jobs: when they arrive, GPUs, seconds, class, place in the order.
        caps: GPUs that jobs of each class and above may hold, int64 (K + 1,).
        counted: the first so many jobs count; those behind only keep the cluster busy.
    """
    n, top = len(need), len(caps)
    state, words, count = new(len(free), size)
    for node in range(len(free)):
        if free[node] != size:
            change(state, words, count, node, free[node] - size)
    used = np.zeros(top, dtype=np.int64)
    heap = [(np.inf, -1, 0)]  # end, node, GPUs with the class
    for r in range(len(row_end)):
        heapq.heappush(heap, (max(now, row_end[r]), row_node[r], row_gpus[r] * 16 + row_class[r]))
        for k in range(row_class[r] + 1):
            used[k] += row_gpus[r]
    queue, queued = np.empty(n, dtype=np.int64), 0
    chosen = np.empty(len(free) + 1, dtype=np.int64)
    total, left, arrived = 0.0, counted, 0
    while left:
        at = heap[0][0]
        if arrived < waiting:
            at = now
        elif arrived < n and arrive[arrived] < at:
            at = arrive[arrived]
        if at == np.inf:
            break
        while heap[0][0] <= at:
            _, node, packed = heapq.heappop(heap)
            change(state, words, count, node, packed // 16)
            for k in range(packed % 16 + 1):
                used[k] -= packed // 16
        while arrived < n and (arrived < waiting or arrive[arrived] <= at):
            place = queued
            while place > 0 and key[queue[place - 1]] > key[arrived]:
                queue[place] = queue[place - 1]
                place -= 1
            queue[place] = arrived
            queued += 1
            arrived += 1
        kept, closed = 0, 2**31
        for q in range(queued):
            j = queue[q]
            starts = need[j] < closed
            if starts:
                for k in range(1, length[j] + 1):
                    if used[k] and used[k] + need[j] > caps[k]:
                        starts = False
                if starts and not fits(state, words, count, need[j], size):
                    starts, closed = False, need[j]
            if not starts:
                queue[kept] = j
                kept += 1
                continue
            parts = take(state, words, count, need[j], size, chosen)
            rest = need[j]
            for i in range(parts):
                here = min(rest, size)
                rest -= here
                heapq.heappush(heap, (at + lasts[j], chosen[i], here * 16 + length[j]))
            for k in range(length[j] + 1):
                used[k] += need[j]
            if j < counted:
                total += at + lasts[j] - max(now, arrive[j])
                left -= 1
        queued = kept
    return total
