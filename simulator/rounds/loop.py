"""Rounds between two allocations, compiled: who runs, on which GPUs, and how far each gets."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.compiled.kernel import Bools, Ints, Ints2, by_reference, inner, kernel

from .state import (
    ACTIVE,
    ENDED,
    GAP,
    HELD,
    LEASES,
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
    Rounds,
)

ALLOCATE, DONE, MORE, STUCK = range(4)
"""Why `advance` returns: shares are due, all jobs are done, the orders are used up, or nobody can ever run."""


@kernel
def advance(rounds: Rounds, orders: Ints2) -> int:
    """Run rounds until something else is due; `orders` are the types in the order each try fills them, (r, k)."""
    s = by_reference(rounds)
    while True:
        _admit(s)
        if s.counts[ACTIVE] == 0 and s.counts[NEXT] == len(s.submit):
            return DONE
        due = s.times[RESET] == 0.0 or s.times[NOW] - s.times[RESET] >= s.times[GAP]
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
            s.times[RESET] = 0.0
        else:
            return STUCK


@inner
def _admit(s: Rounds) -> None:
    while s.counts[NEXT] < len(s.submit) and s.submit[s.counts[NEXT]] <= s.times[NOW]:
        for j in range(len(s.room)):
            s.ranking[j, s.counts[ACTIVE]] = s.counts[NEXT]
            _rise(s, j, s.counts[ACTIVE])
        s.counts[ACTIVE] += 1
        s.counts[NEXT] += 1
        s.counts[STALE] = 1


@inner
def _rise(s: Rounds, j: int, at: int) -> None:
    row = s.ranking[j]
    job = row[at]
    while at and _before(s, job, row[at - 1], j):
        row[at] = row[at - 1]
        at -= 1
    row[at] = job


@inner
def _fall(s: Rounds, j: int, at: int) -> None:
    row = s.ranking[j]
    job = row[at]
    while at + 1 < s.counts[ACTIVE] and _before(s, row[at + 1], job, j):
        row[at] = row[at + 1]
        at += 1
    row[at] = job


@inner
def _before(s: Rounds, one: int, other: int, j: int) -> bool:
    if s.priority[one, j] != s.priority[other, j]:
        return bool(s.priority[one, j] > s.priority[other, j])
    if s.deficit[one, j] != s.deficit[other, j]:
        return bool(s.deficit[one, j] > s.deficit[other, j])
    if s.share[one, j] != s.share[other, j]:
        return bool(s.share[one, j] > s.share[other, j])
    return one < other


@inner
def _choose(s: Rounds, order: Ints) -> bool:
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


@inner
def _work(s: Rounds) -> None:
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
            s.received[job, j] += now + took - s.times[ENDED]
            s.priority[job, j] = s.share[job, j] / s.received[job, j]
            s.open_span[job, 2] += took
            s.open_steps[job] += steps
            s.open_span[job, 1] = now + took
            end = max(end, now + took)
            if s.left[job] == 0:
                close(s, job)
                finished = True
            else:
                s.running[s.counts[RUNNING]] = job
                s.counts[RUNNING] += 1
    s.times[NOW] = s.times[ENDED] = end
    for j in range(len(s.room)):
        for i in range(s.many[j] - 1, -1, -1):  # from the back, so that places in front stay as they are
            _fall(s, j, s.place[j, i])
    if finished:
        s.counts[STALE] = 1
        _drop_finished(s)


@inner
def _drop_finished(s: Rounds) -> None:
    active = s.counts[ACTIVE]
    for j in range(len(s.room)):
        kept = 0
        for i in range(active):
            job = s.ranking[j, i]
            if s.left[job] > 0:
                s.ranking[j, kept] = job
                kept += 1
        s.counts[ACTIVE] = kept


@inner
def place(s: Rounds) -> None:
    """Give the chosen of each type their GPUs, extending leases; end the leases of all others."""
    for i in range(s.counts[RUNNING]):
        if s.mark[s.running[i]] != s.counts[STAMP]:
            close(s, s.running[i])
    first = 0
    for j in range(len(s.room)):
        row = s.chosen[j, : s.many[j]].copy()
        _largest_first(row, s.gpus)
        taken = np.zeros(s.room[j], dtype=np.bool_)
        free, i = 0, 0
        while i < len(row):
            upto = i
            while upto < len(row) and s.gpus[row[upto]] == s.gpus[row[i]]:
                if s.kind[row[upto]] >= 0 and (s.kind[row[upto]] != j or not _extend(s, row[upto], taken, first)):
                    close(s, row[upto])
                upto += 1
            for at in range(i, upto):
                if s.kind[row[at]] < 0:
                    free = _start(s, row[at], j, taken, free, first)
            i = upto
        first += s.room[j]


@inner
def _largest_first(row: Ints, gpus: Ints) -> None:
    for i in range(1, len(row)):
        job, at = row[i], i
        while at and gpus[row[at - 1]] < gpus[job]:
            row[at] = row[at - 1]
            at -= 1
        row[at] = job


@inner
def _extend(s: Rounds, job: int, taken: Bools, first: int) -> bool:
    """Keep a job's GPUs unless a larger one has got one of them."""
    at = s.own_at[job]
    for i in range(at, at + s.gpus[job]):
        if taken[s.own[i] - first]:
            return False
    for i in range(at, at + s.gpus[job]):
        taken[s.own[i] - first] = True
    return True


@inner
def _start(s: Rounds, job: int, kind: int, taken: Bools, free: int, first: int) -> int:
    """Open a lease on the lowest free GPUs of a type; return where to look for more."""
    at = s.own_at[job]
    for i in range(at, at + s.gpus[job]):
        while taken[free]:
            free += 1
        taken[free] = True
        s.own[i] = first + free
    s.kind[job] = kind
    s.open_steps[job] = 0
    s.open_span[job, 0], s.open_span[job, 2] = s.times[NOW], 0.0
    return free


@inner
def close(s: Rounds, job: int) -> None:
    """Write the open lease of a job, if it has one."""
    if s.kind[job] < 0:
        return
    row, held, at = s.counts[LEASES], s.counts[HELD], s.own_at[job]
    s.lease[row, 0], s.lease[row, 1], s.lease[row, 2] = job, s.kind[job], s.open_steps[job]
    s.span[row] = s.open_span[job]
    for i in range(s.gpus[job]):
        s.held[held + i] = s.own[at + i]
    s.counts[LEASES] += 1
    s.counts[HELD] += s.gpus[job]
    s.kind[job] = -1
