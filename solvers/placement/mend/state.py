"""A whole placement as flat arrays for compiled code: who is where, what it costs; changed one gang at a time.

The costs are those of `gangplan.solvers.placement.costs` for the goals that are about speed. Jobs that share GPUs stay
where they are: what they do to each other on a GPU is kept as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit

RING, TREE, HIERARCHICAL, PS = range(4)
_F = TypeVar("_F", bound=Callable[..., Any])


def inner(function: _F) -> _F:
    """Compile for compiled callers only: unpacking so many arrays from Python would double what there is to compile."""
    compiler: Any = njit
    compiled: _F = compiler(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")(function)
    return compiled


class Fixed(NamedTuple):
    """What a batch is: J jobs, m nodes, q kinds of them, K models, M members of all levels, D degrees, R rows at most.

    Attributes:
        above: of each member of a level, node, rack, ..., that which it is in, one level up, (M,).
        level: of each member, (M,); bandwidth of its link, (M,).
        kind, link: of each node, (m,).
        host: what a model adds to another's compute, (K, K).
        model, weight, best, gradient, overlap, duty, collective, servers, value, migration, whole, free: of each job,
            (J,): `value` inf if it must be placed, `free` whether it may be moved.
        need: GPUs, cores, bytes and NIC of a worker and of a server, (J, 7).
        alone: seconds of compute, inf where it may not be, (J, q).
        room: workers on an empty node, (J, q).
        degrees: numbers of workers, the largest first, then 0, (J, D).
        apart: pairs of jobs that may share no node, (J, J); one row for all if there are none.
        stand: rows where it runs, (J, R, 3), and how many, (J,).
        extra: what a job that shares a GPU adds to the compute of a row, as a share, (J, R).
        rates: whether the goal is the throughput.
    """

    above: Any
    level: Any
    bandwidth: Any
    kind: Any
    link: Any
    host: Any
    model: Any
    weight: Any
    best: Any
    gradient: Any
    overlap: Any
    duty: Any
    collective: Any
    servers: Any
    value: Any
    migration: Any
    whole: Any
    free: Any
    need: Any
    alone: Any
    room: Any
    degrees: Any
    apart: Any
    stand: Any
    stood: Any
    extra: Any
    rates: Any


class Live(NamedTuple):
    """Where all jobs are; all of it is written to.

    Attributes:
        rows: node, workers and servers, (J, R, 3); count: of rows, (J,); wide: whether they are in several racks, (J,).
        here: jobs on each node, workers of each, and which of its rows that is, (m, A, 3); many: how many, (m,).
        suffer: what those on a node add to each model's compute, (m, K).
        left: GPUs, cores, bytes and NIC, (m, 4); guarded: jobs there that want the node for themselves, (m,).
        load: duties of the gangs that cross a member's link, (M,).
        compute, sync, cost: of each job, (J,).
        record: the least cost of all so far, (1,).
        dirty: jobs whose cost is to be renewed, (J,).
        other: compute and synchronisation that a candidate would leave to each job, (J, 2); changed: which, (J,).
        trial, place, size, least: rows of a place that is looked at, those of the best so far, (R, 3), how many they
            are and what that place costs, (1,); room: of the gang on each node, (m,).
        members, sums: of one level and the next, workers, servers and parts of each, scratch, (2, R) and (2, R, 3).
        mark: members that a candidate crosses, 0 between two of them, (M,).
    """

    rows: Any
    count: Any
    wide: Any
    here: Any
    many: Any
    suffer: Any
    left: Any
    guarded: Any
    load: Any
    compute: Any
    sync: Any
    cost: Any
    record: Any
    dirty: Any
    other: Any
    changed: Any
    trial: Any
    place: Any
    size: Any
    least: Any
    room: Any
    members: Any
    sums: Any
    mark: Any


@inner
def ring(n: Any, size: Any) -> Any:
    """Return the bytes that each of n members of a ring sends."""
    return 2.0 * (n - 1) / n * size


@inner
def up(f: Any, s: Any, a: Any, n: Any) -> Any:
    """Put what is above the first n members of scratch a into the other scratch; return how many they are."""
    b, found = 1 - a, 0
    for x in range(n):
        parent = f.above[s.members[a, x]]
        at = -1
        for y in range(found):
            if s.members[b, y] == parent:
                at = y
                break
        if at < 0:
            at = found
            found += 1
            s.members[b, at] = parent
            s.sums[b, at, 0] = s.sums[b, at, 1] = s.sums[b, at, 2] = 0
        s.sums[b, at, 0] += s.sums[a, x, 0]
        s.sums[b, at, 1] += s.sums[a, x, 1]
        s.sums[b, at, 2] += 1
    return found


@inner
def begin(s: Any, rows: Any, n: Any) -> None:
    """Put the nodes of rows into the first scratch."""
    for x in range(n):
        s.members[0, x] = rows[x, 0]
        s.sums[0, x, 0], s.sums[0, x, 1], s.sums[0, x, 2] = rows[x, 1], rows[x, 2], rows[x, 1]


@inner
def cross(f: Any, s: Any, rows: Any, n: Any, duty: Any, mark: Any) -> None:
    """Add a gang's duty to the links that it crosses, and to their marks."""
    if n < 2:
        return
    begin(s, rows, n)
    a = 0
    while n > 1:
        for x in range(n):
            s.load[s.members[a, x]] += duty
            s.mark[s.members[a, x]] += mark
        n = up(f, s, a, n)
        a = 1 - a


@inner
def meets(f: Any, s: Any, rows: Any, n: Any) -> Any:
    """Return whether a gang crosses a link that is marked."""
    if n < 2:
        return False
    begin(s, rows, n)
    a = 0
    while n > 1:
        for x in range(n):
            if s.mark[s.members[a, x]]:
                return True
        n = up(f, s, a, n)
        a = 1 - a
    return False


@inner
def spans(f: Any, rows: Any, n: Any) -> Any:
    """Return whether rows are in more than one rack."""
    for x in range(1, n):  # noqa: SIM110
        if f.above[rows[x, 0]] != f.above[rows[0, 0]]:
            return True
    return False


@inner
def seconds(f: Any, s: Any, j: Any, rows: Any, n: Any, own: Any) -> Any:
    """Return the synchronisation of job j on these rows; `own`: its duty if it is in the loads, else 0."""
    size, kind = f.gradient[j], f.collective[j]
    workers, most, local, worst = 0, 0, np.inf, 0.0
    servers = max(f.servers[j], 1)
    for x in range(n):
        node, w, p = rows[x, 0], rows[x, 1], rows[x, 2]
        workers += w
        most = max(most, w)
        if w > 1:
            local = min(local, f.link[node])
        worst = max(worst, size * w * p / servers / f.link[node])
    total = ring(most, size) / local if kind == HIERARCHICAL and most > 1 else 0.0
    speed, lowest = local, local
    begin(s, rows, n)
    a = 0
    while n > 1:
        rate = np.inf
        for x in range(n):
            member = s.members[a, x]
            here = f.bandwidth[member] / (1.0 + max(s.load[member] - own, 0.0))
            rate = min(rate, here)
            if kind == PS:
                w, p = s.sums[a, x, 0], s.sums[a, x, 1]
                worst = max(worst, size * (w * (servers - p) + p * (workers - w)) / servers / here)
        level = f.level[s.members[a, 0]]
        lowest = min(lowest, rate)
        n = up(f, s, a, n)
        a = 1 - a
        if kind == HIERARCHICAL:
            speed = rate if level == 0 else min(speed, rate)
            widest = 0
            for x in range(n):
                widest = max(widest, s.sums[a, x, 2])
            if widest > 1:
                total += ring(widest, size) / speed
    if kind == PS:
        return worst
    if kind == HIERARCHICAL:
        return total
    moved = ring(workers, size) if kind == RING else 2.0 * size * (workers > 1)
    return moved / lowest if moved > 0 else 0.0


@inner
def cost(f: Any, j: Any, compute: Any, sync: Any, workers: Any) -> Any:
    """Return what job j adds to the goal, but for moving it."""
    step = max(compute, (1.0 - f.overlap[j]) * compute + sync)
    slowdown = f.best[j] * step / workers
    if f.rates:
        return f.weight[j] * max(0.0, 1.0 - 1.0 / slowdown)
    return f.weight[j] * slowdown


@inner
def stands(f: Any, j: Any, rows: Any, n: Any) -> Any:
    """Return whether these rows are where job j runs already."""
    if n != f.stood[j]:
        return False
    for x in range(n):
        found = False
        for y in range(n):
            if rows[x, 0] == f.stand[j, y, 0] and rows[x, 1] == f.stand[j, y, 1] and rows[x, 2] == f.stand[j, y, 2]:
                found = True
        if not found:
            return False
    return True


@inner
def spent(rows: Any, n: Any) -> Any:
    """Return the workers of some rows."""
    total = 0
    for x in range(n):
        total += rows[x, 1]
    return total
