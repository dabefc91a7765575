"""The event loop, compiled. Times are compared exactly: two that the trace gives as equal are one instant."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.compiled.kernel import Floats, Ints, Ints2, inner, kernel
from gangplan.solvers.compiled.routines import pop, push

from ..fit import Gangs, Held, Nodes, find_in, move, next_fit, next_spare, reserve

HEAD, OVERTAKE, EASY = range(3)


@kernel
def run(  # noqa: PLR0912, one loop read from top to bottom
    submit: Floats, arrivals: Ints, rank: Ints, gangs: Gangs, nodes: Nodes, discipline: int
) -> tuple[Floats, Ints2]:
    """Run to the end; return the start of each job, float64 (n,), and rows (job, node, GPUs), int64 (3, r).

    Args:
        submit: seconds, float64 (n,).
        arrivals: the jobs by submit time, int64 (n,).
        rank: place of each job in the order of the queue, int64 (n,).
        gangs, nodes: the jobs and the cluster.
        discipline: `HEAD`, `OVERTAKE` or `EASY`.
    """
    n, most = len(submit), len(nodes.free)
    total = 0
    for job in range(n):
        total += (gangs.degree[job] + nodes.biggest - 1) // nodes.biggest
    rows = np.empty((3, total + most), dtype=np.int64)
    held = Held(np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), rows[1], rows[2])
    queue, waiting = np.empty(n, dtype=np.int64), 0
    running, n_running = np.empty(n, dtype=np.int64), 0
    start, finish, urgency = np.full(n, np.inf), np.full(n, np.inf), np.zeros(n)
    nxt, used = 0, 0
    while nxt < n or n_running:
        now = finish[running[0]] if n_running else np.inf
        if nxt < n and submit[arrivals[nxt]] < now:
            now = submit[arrivals[nxt]]
        while n_running and finish[running[0]] <= now:
            move(nodes.free, gangs, held, running[0], 1)
            n_running = pop(running, n_running, urgency, rank)
        while nxt < n and submit[arrivals[nxt]] <= now:
            _insert(queue, waiting, arrivals[nxt], rank)
            waiting += 1
            nxt += 1
        at, blocked, shadow, later = 0, -1, np.inf, nodes.free
        while 0 <= at < waiting:
            job = queue[at]
            k = find_in(nodes.free, nodes, gangs, job, gangs.degree[job], rows[1, used:], rows[2, used:])
            if k:
                rows[0, used : used + k] = job
                held.first[job], held.count[job] = used, k
                used += k
                move(nodes.free, gangs, held, job, -1)
                start[job], finish[job] = now, now + gangs.span[job]
                urgency[job] = -finish[job]
                n_running = push(running, n_running, job, urgency, rank)
                if blocked >= 0 and finish[job] > shadow:
                    move(later, gangs, held, job, -1)
                for i in range(at + 1, waiting):
                    queue[i - 1] = queue[i]
                waiting -= 1
            elif discipline == HEAD:
                break
            elif discipline == EASY:
                blocked = job
                shadow, later = reserve(job, running[:n_running], finish, gangs, nodes, held)
                at += 1
            else:
                at += 1
            if blocked >= 0:
                at = next_spare(queue[:waiting], at, blocked, now, shadow, later, gangs, nodes)
            elif at and at < waiting:
                at = next_fit(queue[:waiting], at, gangs, nodes)
    return start, rows[:, :used]


@inner
def _insert(queue: Ints, waiting: int, job: int, rank: Ints) -> None:
    """Put a job into the queue, which is sorted by rank."""
    at = waiting
    while at > 0 and rank[queue[at - 1]] > rank[job]:
        queue[at] = queue[at - 1]
        at -= 1
    queue[at] = job
