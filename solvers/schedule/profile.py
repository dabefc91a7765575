"""When and where a job fits beside those already placed, compiled. A profile a node: free GPUs between break points.

A pool of counted GPUs is one node; a server of a RAMP cluster is a node of one GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def new(nodes: int, gpus: int, most: int) -> Any:
    """Return profiles of idle nodes with room for `most` rows: (break points, free GPUs from each on, how many)."""
    times = np.full((nodes, 2 * most + 2), np.inf)
    free = np.full((nodes, 2 * most + 2), gpus, dtype=np.int64)
    times[:, 0] = -np.inf
    return times, free, np.ones(nodes, dtype=np.int64)


@njit(cache=True)
def clear(free: Any, count: Any, gpus: int) -> None:
    """Empty the profiles."""
    for v in range(len(count)):
        count[v] = 1
        free[v, 0] = gpus


@njit(cache=True)
def _at(times: Any, count: int, at: float) -> int:
    """Return the last break point not after `at`."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high + 1) // 2
        if times[middle] <= at:
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True)
def earliest(times: Any, free: Any, count: int, after: float, need: int, seconds: float) -> float:
    """Return when a node first has `need` GPUs free for so many seconds, not before `after`."""
    if seconds <= 0:
        return after
    at, k = after, _at(times, count, after)
    while k < count and times[k] < at + seconds:
        if free[k] < need:
            if k + 1 == count:
                return np.inf
            at = times[k + 1]
        k += 1
    return at


@njit(cache=True)
def occupy(times: Any, free: Any, count: Any, v: int, start: float, end: float, need: int) -> None:
    """Take GPUs of node v from `start` to `end`."""
    if end <= start:
        return
    a = _split(times[v], free[v], count, v, start)
    b = _split(times[v], free[v], count, v, end)
    for k in range(a, b):
        free[v, k] -= need


@njit(cache=True)
def _split(times: Any, free: Any, count: Any, v: int, at: float) -> int:
    """Return the index of the break point at `at`, made if there is none."""
    n = count[v]
    low = _at(times, n, at)
    if times[low] == at:
        return low
    for k in range(n, low + 1, -1):
        times[k] = times[k - 1]
        free[k] = free[k - 1]
    times[low + 1] = at
    free[low + 1] = free[low]
    count[v] = n + 1
    return low + 1


@njit(cache=True)
def find(
    kind: int,
    per: int,
    times: Any,
    free: Any,
    count: Any,
    block_size: Any,
    block_first: Any,
    block_server: Any,
    after: float,
    need: int,
    seconds: float,
    chosen: Any,
) -> Any:
    """Return (start, nodes) where a job of `need` GPUs fits first; write its nodes to `chosen`, a part node last.

    Of nodes that are as early, a job on one takes that with the fewest free GPUs; of blocks the first.
    """
    if kind == 2:
        return _block(times, free, count, block_size, block_first, block_server, after, need, seconds, chosen)
    if need <= per:
        best, tight = np.inf, 0
        for v in range(len(count)):
            at = earliest(times[v], free[v], count[v], after, need, seconds)
            if at < best or (at == best and at < np.inf):
                left = free[v, _at(times[v], count[v], at)]
                if at < best or left < tight:
                    best, tight, chosen[0] = at, left, v
        return best, 1
    return _several(per, times, free, count, after, need, seconds, chosen)


@njit(cache=True)
def _several(per: int, times: Any, free: Any, count: Any, after: float, need: int, seconds: float, chosen: Any) -> Any:
    """Place a job on full nodes and the rest on one more."""
    full, rest = need // per, need % per
    nodes = len(count)
    whole, part = np.empty(nodes), np.empty(nodes)
    at = after
    while True:
        for v in range(nodes):
            whole[v] = earliest(times[v], free[v], count[v], at, per, seconds)
            part[v] = earliest(times[v], free[v], count[v], at, rest, seconds) if rest else 0.0
        later = np.sort(whole)[full - 1]
        if rest:
            later = max(later, np.sort(part)[full])
        if later <= at or later == np.inf:
            break
        at = later
    if later == np.inf:
        return np.inf, 0
    used, last, tight = 0, -1, per + 1
    if rest:
        # the part goes where least is free, and never on a node that has to be full
        spare = int((whole <= at).sum()) - full
        for v in range(nodes):
            if part[v] <= at and (whole[v] > at or spare > 0):
                left = free[v, _at(times[v], count[v], at)]
                if left < tight:
                    last, tight = v, left
    for v in range(nodes):
        if whole[v] <= at and v != last and used < full:
            chosen[used] = v
            used += 1
    if rest:
        chosen[used] = last
        used += 1
    return at, used


@njit(cache=True)
def _block(
    times: Any,
    free: Any,
    count: Any,
    size: Any,
    first: Any,
    server: Any,
    after: float,
    need: int,
    seconds: float,
    chosen: Any,
) -> Any:
    nodes = len(count)
    once = np.empty(nodes)
    for v in range(nodes):
        once[v] = earliest(times[v], free[v], count[v], after, 1, seconds)
    best, which = np.inf, -1
    for b in range(len(size)):
        if size[b] != need:
            continue
        at = after
        for i in range(first[b], first[b + 1]):
            at = max(at, once[server[i]])
        moved = True
        while moved and at < best:
            moved = False
            for i in range(first[b], first[b + 1]):
                v = server[i]
                later = earliest(times[v], free[v], count[v], at, 1, seconds)
                if later > at:
                    at, moved = later, True
        if at < best:
            best, which = at, b
    if which < 0:
        return np.inf, 0
    for i in range(need):
        chosen[i] = server[first[which] + i]
    return best, need
