"""Jackson's preemptive schedule on one machine."""

from __future__ import annotations

from heapq import heappop, heappush


def one_machine(jobs: list[tuple[float, float, float]]) -> float:
    """Return the least time by which one machine ends (head, time, tail) jobs if it may interrupt them, seconds.

    Jackson's preemptive schedule: of the jobs that are there, always the one with the longest tail.
    """
    jobs = sorted(jobs)
    ready: list[tuple[float, float]] = []
    now, best, i = 0.0, 0.0, 0
    while i < len(jobs) or ready:
        if not ready:
            now = max(now, jobs[i][0])
        while i < len(jobs) and jobs[i][0] <= now:
            heappush(ready, (-jobs[i][2], jobs[i][1]))
            i += 1
        tail, left = ready[0]
        until = jobs[i][0] if i < len(jobs) else float("inf")
        if now + left <= until:
            heappop(ready)
            now += left
            best = max(best, now - tail)
        else:
            ready[0] = (tail, left - (until - now))
            now = until
    return best
