"""One machine that may interrupt jobs: the relaxation behind bounds of ops that share a device."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import Any


def one_machine(jobs: list[tuple[Any, Any, Any]]) -> Any:
    """Return the least time by which one machine ends (head, time, tail) jobs if it may interrupt them.

    Jackson's preemptive schedule: of the jobs that are there, always the one with the longest tail.
    """
    jobs, ready = sorted(jobs), list[tuple[Any, Any]]()
    now: Any = 0
    best, i = now, 0
    while i < len(jobs) or ready:
        now = now if ready else max(now, jobs[i][0])
        while i < len(jobs) and jobs[i][0] <= now:
            heappush(ready, (-jobs[i][2], jobs[i][1]))
            i += 1
        tail, left = ready[0]
        until = jobs[i][0] if i < len(jobs) else inf
        if now + left <= until:
            heappop(ready)
            now += left
            best = max(best, now - tail)
        else:
            ready[0] = (tail, left - (until - now))
            now = until
    return best
