"""The event loops, compiled. Times are compared exactly: two that the trace gives as equal are one instant.

Jobs of one size fit or do not fit alike, so only the first of each size can start: the queue is a heap a size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .heaps import pop, push
from .nodes import change, fits, new, take


@kernel
def run_ordered(
    arrivals: Any,
    submit: Any,
    need: Any,
    duration: Any,
    rank: Any,
    nodes: int,
    gpus: int,
    consolidate: bool,
    head: bool,
) -> Any:
    """Run to the end; return the start of each job, float64 (n,), and rows (job, node, GPUs), int64 (3, r)."""
    n = len(submit)
    sizes = np.unique(need)
    size_of = np.searchsorted(sizes, need)
    offset = np.zeros(len(sizes) + 1, dtype=np.int64)
    for j in range(n):
        offset[size_of[j] + 1] += 1
    offset = np.cumsum(offset)
    queue, waiting = np.empty(n, dtype=np.int64), np.zeros(len(sizes), dtype=np.int64)
    running, n_running = np.empty(n, dtype=np.int64), 0
    start, finish = np.full(n, np.inf), np.full(n, np.inf)
    free, words, count = new(nodes, gpus)
    left = nodes * gpus
    rows, first, n_rows = _rows(need, gpus, consolidate)
    nxt = 0
    while nxt < n or n_running:
        now = finish[running[0]] if n_running else np.inf
        if nxt < n and submit[arrivals[nxt]] < now:
            now = submit[arrivals[nxt]]
        while n_running and finish[running[0]] <= now:
            job = pop(running, 0, n_running, finish)
            n_running -= 1
            left += need[job]
            _free(job, rows, first, need, gpus, consolidate, free, words, count)
        while nxt < n and submit[arrivals[nxt]] <= now:
            job = arrivals[nxt]
            push(queue, offset[size_of[job]], waiting[size_of[job]], job, rank)
            waiting[size_of[job]] += 1
            nxt += 1
        while True:
            best = -1
            for s in range(len(sizes)):
                if waiting[s] and (head or _room(sizes[s], left, gpus, consolidate, free, words, count)):
                    top = queue[offset[s]]
                    if best < 0 or rank[top] < rank[best]:
                        best = top
            if best < 0 or (head and not _room(need[best], left, gpus, consolidate, free, words, count)):
                break
            s = size_of[best]
            pop(queue, offset[s], waiting[s], rank)
            waiting[s] -= 1
            left -= need[best]
            n_rows = _take(best, rows, first, n_rows, need, gpus, consolidate, free, words, count)
            start[best] = now
            finish[best] = now + duration[best]
            push(running, 0, n_running, best, finish)
            n_running += 1
    return start, rows[:, :n_rows]


@kernel
def run_easy(  # noqa: PLR0915, one loop read from top to bottom
    arrivals: Any,
    submit: Any,
    need: Any,
    duration: Any,
    rank: Any,
    nodes: int,
    gpus: int,
    consolidate: bool,
) -> Any:
    """Run with EASY backfilling; see `run_ordered`. The queue is an array sorted by rank."""
    n = len(submit)
    queue, n_waiting = np.empty(n, dtype=np.int64), 0
    running, n_running = np.empty(n, dtype=np.int64), 0
    start, finish = np.full(n, np.inf), np.full(n, np.inf)
    free, words, count = new(nodes, gpus)
    left = nodes * gpus
    rows, first, n_rows = _rows(need, gpus, consolidate)
    nxt = 0
    while nxt < n or n_running:
        now = finish[running[0]] if n_running else np.inf
        if nxt < n and submit[arrivals[nxt]] < now:
            now = submit[arrivals[nxt]]
        while n_running and finish[running[0]] <= now:
            job = pop(running, 0, n_running, finish)
            n_running -= 1
            left += need[job]
            _free(job, rows, first, need, gpus, consolidate, free, words, count)
        while nxt < n and submit[arrivals[nxt]] <= now:
            job = arrivals[nxt]
            at = n_waiting
            while at > 0 and rank[queue[at - 1]] > rank[job]:
                queue[at] = queue[at - 1]
                at -= 1
            queue[at] = job
            n_waiting += 1
            nxt += 1
        # the reservation of the first that does not fit: when, and what will be free then
        held, shadow = -1, np.inf
        later, later_words, later_count = free, words, count
        later_left = 0
        kept = 0
        for q in range(n_waiting):
            job = queue[q]
            starts = _room(need[job], left, gpus, consolidate, free, words, count)
            if starts and held >= 0 and now + duration[job] > shadow:
                starts = _spares(
                    job, held, need, gpus, consolidate, free, words, count, later, later_words, later_count, later_left
                )
            if not starts:
                queue[kept] = job
                kept += 1
                if held < 0:
                    held = job
                    shadow, later, later_words, later_count, later_left = _reserve(
                        held, now, need, finish, running[:n_running], rows, first, gpus, consolidate, free, left
                    )
                continue
            left -= need[job]
            before = n_rows
            n_rows = _take(job, rows, first, n_rows, need, gpus, consolidate, free, words, count)
            if held >= 0 and now + duration[job] > shadow:
                later_left -= need[job]
                for r in range(before, n_rows):
                    change(later, later_words, later_count, rows[1, r], -rows[2, r])
            start[job] = now
            finish[job] = now + duration[job]
            push(running, 0, n_running, job, finish)
            n_running += 1
        n_waiting = kept
    return start, rows[:, :n_rows]


@kernel
def _rows(need: Any, gpus: int, consolidate: bool) -> Any:
    """Return room for all rows, the first row of each job, and 0 rows in use."""
    total = 0
    if consolidate:
        for j in range(len(need)):
            total += (need[j] + gpus - 1) // gpus
    return np.empty((3, total), dtype=np.int64), np.zeros(len(need), dtype=np.int64), 0


@kernel
def _room(need: int, left: int, gpus: int, consolidate: bool, free: Any, words: Any, count: Any) -> bool:
    return need <= left and (not consolidate or fits(free, words, count, need, gpus))


@kernel
def _take(
    job: int,
    rows: Any,
    first: Any,
    n_rows: int,
    need: Any,
    gpus: int,
    consolidate: bool,
    free: Any,
    words: Any,
    count: Any,
) -> int:
    """Give the job its nodes and write its rows; return how many rows there are now."""
    if not consolidate:
        return n_rows
    first[job] = n_rows
    used = take(free, words, count, need[job], gpus, rows[1, n_rows:])
    last = need[job]
    for r in range(n_rows, n_rows + used):
        rows[0, r] = job
        rows[2, r] = min(last, gpus)
        last -= gpus
    return n_rows + used


@kernel
def _free(
    job: int, rows: Any, first: Any, need: Any, gpus: int, consolidate: bool, free: Any, words: Any, count: Any
) -> None:
    if consolidate:
        for r in range(first[job], first[job] + (need[job] + gpus - 1) // gpus):
            change(free, words, count, rows[1, r], rows[2, r])


@kernel
def _reserve(
    held: int,
    now: float,
    need: Any,
    finish: Any,
    running: Any,
    rows: Any,
    first: Any,
    gpus: int,
    consolidate: bool,
    free: Any,
    left: int,
) -> Any:
    """Return when `held` fits if nothing else starts, and the free GPUs then."""
    later, words, count = new(len(free), gpus)
    for node in range(len(free)):
        if free[node] != gpus:
            change(later, words, count, node, free[node] - gpus)
    ends = running[np.argsort(finish[running])]
    i = 0
    shadow = now
    while i < len(ends):
        shadow = finish[ends[i]]
        while i < len(ends) and finish[ends[i]] <= shadow:
            left += need[ends[i]]
            _free(ends[i], rows, first, need, gpus, consolidate, later, words, count)
            i += 1
        if _room(need[held], left, gpus, consolidate, later, words, count):
            break
    return shadow, later, words, count, left


@kernel
def _spares(
    job: int,
    held: int,
    need: Any,
    gpus: int,
    consolidate: bool,
    free: Any,
    words: Any,
    count: Any,
    later: Any,
    later_words: Any,
    later_count: Any,
    later_left: int,
) -> bool:
    """Return whether the reservation stands if the job, still running then, starts now."""
    if need[job] + need[held] > later_left:
        return False
    if not consolidate:
        return True
    chosen = np.empty((need[job] + gpus - 1) // gpus, dtype=np.int64)
    used = take(free, words, count, need[job], gpus, chosen)
    amount = need[job]
    for i in range(used):
        change(later, later_words, later_count, chosen[i], -min(amount, gpus))
        change(free, words, count, chosen[i], min(amount, gpus))
        amount -= gpus
    stands = fits(later, later_words, later_count, need[held], gpus)
    amount = need[job]
    for i in range(used):
        change(later, later_words, later_count, chosen[i], min(amount, gpus))
        amount -= gpus
    return stands
