"""Reservations, compiled: when and where jobs fit, from start to end, beside what runs and what is promised."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .ground import change, find


@kernel
def reserve_in_turn(
    jobs: Any,
    now: float,
    span: Any,
    degree: Any,
    unit: Any,
    kind: Any,
    free: Any,
    whole: Any,
    ok: Any,
    consolidate: bool,
    holder: Any,
    begin: Any,
    end: Any,
    first: Any,
    node: Any,
    gpus: Any,
) -> Any:
    """Return when each of `jobs` starts, float64, and its rows: where they begin, and their nodes and GPUs.

    Each gets the earliest time at which it fits to its end, those before it having theirs. The holders run (they begin
    at minus infinity) or hold reservations; the rows of holder i are first[i] to first[i + 1].
    """
    m, resources = free.shape
    size = 2 * len(holder) + 2 * len(jobs) + 1
    time = np.empty(size)  # from time[i] on, room[i] is free
    room = np.empty((size, m, resources))
    steps = _promises(now, free, unit, holder, begin, end, first, node, gpus, time, room)
    start = np.full(len(jobs), np.inf)
    row = np.zeros(len(jobs) + 1, dtype=np.int64)
    nodes, counts = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    out = np.empty((2, 4 * len(jobs) + m), dtype=np.int64)
    low = np.empty((m, resources))
    for i in range(len(jobs)):
        j = jobs[i]
        k, at, past = 0, 0, 0
        while at < steps and not k:
            low[:] = room[at]
            past = at + 1
            while past < steps and time[past] < time[at] + span[j]:
                low[:] = np.minimum(low, room[past])
                past += 1
            k = find(low, whole, ok[kind[j]], unit[j], degree[j], consolidate, nodes, counts)
            at += not k
        row[i + 1] = row[i] + k
        if not k:
            continue  # not while nodes are down
        start[i] = time[at]
        if row[i + 1] > out.shape[1]:
            wider = np.empty((2, 2 * row[i + 1]), dtype=np.int64)
            wider[:, : row[i]] = out[:, : row[i]]
            out = wider
        out[0, row[i] : row[i + 1]], out[1, row[i] : row[i + 1]] = nodes[:k], counts[:k]
        # a job of no time takes a step of no time: who comes next may have the one after it, but not run across it
        if past == steps or time[past] > time[at] + span[j]:
            time[past + 1 : steps + 1] = time[past:steps].copy()
            room[past + 1 : steps + 1] = room[past:steps].copy()
            time[past], room[past] = time[at] + span[j], room[past - 1]
            steps += 1
        for s in range(at, past):
            change(room[s], unit[j], nodes[:k], counts[:k], -1)
    return start, row, out[0], out[1]


@kernel
def _promises(
    now: float,
    free: Any,
    unit: Any,
    holder: Any,
    begin: Any,
    end: Any,
    first: Any,
    node: Any,
    gpus: Any,
    time: Any,
    room: Any,
) -> int:
    """Write what is free over time, given what holders have and will have; return the number of steps."""
    marks = np.unique(np.concatenate((np.array([now]), begin[begin > now], end[end > now])))
    moments = np.maximum(begin[(end <= begin) | (end <= now)], now)  # of jobs of no time: a step of their own
    steps = 0
    for mark in marks[np.isfinite(marks)]:
        for _ in range(2 if (moments == mark).any() else 1):
            time[steps] = mark
            room[steps] = free
            steps += 1
    for i in range(len(holder)):
        rows = slice(first[i], first[i + 1])
        if begin[i] == -np.inf:  # it holds its GPUs now: they are free from its end on
            for s in range(np.searchsorted(time[:steps], end[i]), steps):
                change(room[s], unit[holder[i]], node[rows], gpus[rows], 1)
        elif begin[i] < np.inf:
            start = np.searchsorted(time[:steps], max(begin[i], now))
            stop = max(np.searchsorted(time[:steps], end[i]), start + 1)
            for s in range(start, stop):
                change(room[s], unit[holder[i]], node[rows], gpus[rows], -1)
    return steps
