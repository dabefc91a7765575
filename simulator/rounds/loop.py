"""Rounds between two allocations, compiled: who runs, on which GPUs, and how far each gets."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .place import close, place
from .state import (
    ACTIVE,
    EVER,
    GAP,
    LENGTH,
    NEXT,
    NOW,
    OVERHEAD,
    RESET,
    ROUNDS,
    RUNNING,
    STALE,
    STAMP,
    STRICT,
    TRIED,
)

ALLOCATE, DONE, MORE, STUCK = range(4)
"""Why `advance` returns: shares are due, all jobs are done, the orders are used up, or nobody can ever run."""


@kernel
def advance(s: Any, orders: Any) -> int:
    """Run rounds until something else is due; `orders` are the types in the order each try fills them, (r, k)."""
    while True:
        _admit(s)
        if s.counts[ACTIVE] == 0:
            if s.counts[NEXT] == len(s.submit):
                return DONE
            s.times[NOW] = s.submit[s.counts[NEXT]]
            continue
        due = s.counts[EVER] == 0 or s.times[NOW] - s.times[RESET] >= s.times[GAP]
        if s.counts[STALE] and due:
            return ALLOCATE
        if s.counts[TRIED] == len(orders):
            return MORE
        s.counts[TRIED] += 1
        if _choose(s, orders[s.counts[TRIED] - 1]):
            s.begins[s.counts[ROUNDS]] = s.times[NOW]
            s.counts[ROUNDS] += 1
            place(s)
            _work(s)
            continue
        for i in range(s.counts[RUNNING]):
            close(s, s.running[i])
        s.counts[RUNNING] = 0
        if s.counts[NEXT] < len(s.submit):
            s.times[NOW] = s.submit[s.counts[NEXT]]
        elif s.counts[STALE]:
            s.counts[EVER] = 0
        else:
            return STUCK


@kernel
def _admit(s: Any) -> None:
    while s.counts[NEXT] < len(s.submit) and s.submit[s.counts[NEXT]] <= s.times[NOW]:
        for j in range(len(s.room)):
            s.ranking[j, s.counts[ACTIVE]] = s.counts[NEXT]
            _rise(s, j, s.counts[ACTIVE])
        s.counts[ACTIVE] += 1
        s.counts[NEXT] += 1
        s.counts[STALE] = 1


@kernel
def _rise(s: Any, j: int, at: int) -> None:
    row = s.ranking[j]
    job = row[at]
    while at and _before(s, job, row[at - 1], j):
        row[at] = row[at - 1]
        at -= 1
    row[at] = job


@kernel
def _fall(s: Any, j: int, at: int) -> None:
    row = s.ranking[j]
    job = row[at]
    while at + 1 < s.counts[ACTIVE] and _before(s, row[at + 1], job, j):
        row[at] = row[at + 1]
        at += 1
    row[at] = job


@kernel
def _before(s: Any, one: int, other: int, j: int) -> bool:
    if s.priority[one, j] != s.priority[other, j]:
        return bool(s.priority[one, j] > s.priority[other, j])
    if s.deficit[one, j] != s.deficit[other, j]:
        return bool(s.deficit[one, j] > s.deficit[other, j])
    if s.share[one, j] != s.share[other, j]:
        return bool(s.share[one, j] > s.share[other, j])
    return one < other


@kernel
def _choose(s: Any, order: Any) -> bool:
    """Fill one type after the other by priority, jobs that do not fit passed over; return whether anybody runs."""
    s.counts[STAMP] += 1
    runs = False
    for j in order:
        free = s.room[j]
        s.many[j] = 0
        for i in range(s.counts[ACTIVE]):
            job = s.ranking[j, i]
            if free == 0 or (s.counts[STRICT] and s.priority[job, j] <= 0.0):
                break
            if s.mark[job] == s.counts[STAMP] or s.speed[job, j] == 0.0 or s.gpus[job] > free:
                continue
            free -= s.gpus[job]
            s.mark[job] = s.counts[STAMP]
            if s.known[job]:  # Gavel keeps GPUs for a job the policy has not seen, and starts it after it has
                s.chosen[j, s.many[j]] = job
                s.place[j, s.many[j]] = i
                s.many[j] += 1
                runs = True
    return runs


@kernel
def _work(s: Any) -> None:
    """Let the chosen make their steps; the round ends when the last of them is done with its own."""
    now = s.times[NOW]
    end = now
    s.counts[RUNNING] = 0
    finished = False
    for j in range(len(s.room)):
        for i in range(s.many[j]):
            job = s.chosen[j, i]
            lost = s.times[OVERHEAD] if s.open_span[job, 0] == now else 0.0
            steps = min(np.int64(s.speed[job, j] * (s.times[LENGTH] - lost)), s.left[job])
            took = lost + steps / s.speed[job, j]
            s.left[job] -= steps
            s.received[job, j] += took
            s.priority[job, j] = s.share[job, j] / s.received[job, j]
            s.busy[job] += took
            s.open_steps[job] += steps
            s.open_span[job, 1] = now + took
            end = max(end, now + took)
            if s.left[job] == 0:
                s.finish[job] = now + took
                close(s, job)
                finished = True
            else:
                s.running[s.counts[RUNNING]] = job
                s.counts[RUNNING] += 1
    s.times[NOW] = end
    for j in range(len(s.room)):
        for i in range(s.many[j] - 1, -1, -1):  # from the back, so that places in front stay as they are
            _fall(s, j, s.place[j, i])
    if finished:
        s.counts[STALE] = 1
        _drop_finished(s)


@kernel
def _drop_finished(s: Any) -> None:
    active = s.counts[ACTIVE]
    for j in range(len(s.room)):
        kept = 0
        for i in range(active):
            job = s.ranking[j, i]
            if s.left[job] > 0:
                s.ranking[j, kept] = job
                kept += 1
        s.counts[ACTIVE] = kept
