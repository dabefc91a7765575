"""All work squashed on one preemptive machine as fast as all GPUs together: what no schedule beats."""

from __future__ import annotations

import heapq
from typing import Any


def flows(release: Any, work: Any, gain: Any, order: Any, shrinks: bool) -> Any:
    """Return, in sums of `gain` times seconds after release: (completions, mean times at which work is done).

    Who waits with the least left, or with the most gain a work, goes first, and gives way to who comes with less. Each
    turn of the loop ends a job or begins one, so rounding cannot hold it up; and the seconds are counted from when the
    machine was last idle, so that late times cost no digits. A job without work is done when it is released.

    Args:
        release, work, gain: of each job, seconds; no gain is negative.
        order: the jobs by their releases.
        shrinks: whether the key is what is left of the work (shortest remaining time), else it is work over gain.
    """
    left = work.copy()
    waiting = [(float("inf"), -1)]
    since, spent, ended, busy, i, n = 0.0, 0.0, 0.0, 0.0, 0, len(order)
    while i < n or len(waiting) > 1:
        if len(waiting) == 1:
            since, spent = release[order[i]], 0.0
        while i < n and release[order[i]] - since <= spent:
            j = order[i]
            i += 1
            if work[j] > 0:
                key = work[j] if shrinks else work[j] / gain[j] if gain[j] > 0 else 1e308
                heapq.heappush(waiting, (key, j))
        if len(waiting) == 1:
            continue
        _, j = heapq.heappop(waiting)
        over = i == n or spent + left[j] <= release[order[i]] - since
        done = left[j] if over else release[order[i]] - since - spent
        begun = since - release[j] + spent
        busy += gain[j] * (done / work[j]) * (begun + done / 2)
        if over:
            spent += done
            ended += gain[j] * (begun + done)
        else:
            spent = release[order[i]] - since
            left[j] = max(left[j] - done, 0.0)
            key = left[j] if shrinks else work[j] / gain[j] if gain[j] > 0 else 1e308
            heapq.heappush(waiting, (key, j))
    return ended, busy
