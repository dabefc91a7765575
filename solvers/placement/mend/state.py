"""A whole placement as flat arrays for compiled code: who is where, what it costs; changed one gang at a time.

The costs are those of `gangplan.solvers.placement.costs` for the goals that are about speed. Jobs that share GPUs stay
where they are: what they do to each other on a GPU is kept as it was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compiled.kernel import Bools, Bools2, Floats, Floats2, Ints, Ints2, Ints3, lean

RING, TREE, HIERARCHICAL, PS = range(4)


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

    above: Ints
    level: Ints
    bandwidth: Floats
    kind: Ints
    link: Floats
    host: Floats2
    model: Ints
    weight: Floats
    best: Floats
    gradient: Floats
    overlap: Floats
    duty: Floats
    collective: Ints
    servers: Ints
    value: Floats
    migration: Floats
    whole: Bools
    free: Bools
    need: Floats2
    alone: Floats2
    room: Ints2
    degrees: Ints2
    apart: Bools2
    stand: Ints3
    stood: Ints
    extra: Floats2
    rates: bool


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

    rows: Ints3
    count: Ints
    wide: Bools
    here: Ints3
    many: Ints
    suffer: Floats2
    left: Floats2
    guarded: Ints
    load: Floats
    compute: Floats
    sync: Floats
    cost: Floats
    record: Floats
    dirty: Bools
    other: Floats2
    changed: Ints
    trial: Ints2
    place: Ints2
    size: Ints
    least: Floats
    room: Ints
    members: Ints2
    sums: Ints3
    mark: Ints


@lean
def ring(n: int, size: float) -> float:
    """Return the bytes that each of n members of a ring sends."""
    return 2.0 * (n - 1) / n * size


@lean
def up(batch: Fixed, live: Live, a: int, n: int) -> int:
    """Put what is above the first n members of scratch a into the other scratch; return how many they are."""
    b, found = 1 - a, 0
    for x in range(n):
        parent = batch.above[live.members[a, x]]
        at = -1
        for y in range(found):
            if live.members[b, y] == parent:
                at = y
                break
        if at < 0:
            at = found
            found += 1
            live.members[b, at] = parent
            live.sums[b, at, 0] = live.sums[b, at, 1] = live.sums[b, at, 2] = 0
        live.sums[b, at, 0] += live.sums[a, x, 0]
        live.sums[b, at, 1] += live.sums[a, x, 1]
        live.sums[b, at, 2] += 1
    return found


@lean
def begin(live: Live, rows: Ints2, n: int) -> None:
    """Put the nodes of rows into the first scratch."""
    for x in range(n):
        live.members[0, x] = rows[x, 0]
        live.sums[0, x, 0], live.sums[0, x, 1], live.sums[0, x, 2] = rows[x, 1], rows[x, 2], rows[x, 1]


@lean
def cross(batch: Fixed, live: Live, rows: Ints2, n: int, duty: float, mark: int) -> None:
    """Add a gang's duty to the links that it crosses, and to their marks."""
    if n < 2:
        return
    begin(live, rows, n)
    a = 0
    while n > 1:
        for x in range(n):
            live.load[live.members[a, x]] += duty
            live.mark[live.members[a, x]] += mark
        n = up(batch, live, a, n)
        a = 1 - a


@lean
def meets(batch: Fixed, live: Live, rows: Ints2, n: int) -> bool:
    """Return whether a gang crosses a link that is marked."""
    if n < 2:
        return False
    begin(live, rows, n)
    a = 0
    while n > 1:
        for x in range(n):
            if live.mark[live.members[a, x]]:
                return True
        n = up(batch, live, a, n)
        a = 1 - a
    return False


@lean
def spans(batch: Fixed, rows: Ints2, n: int) -> bool:
    """Return whether rows are in more than one rack."""
    for x in range(1, n):  # noqa: SIM110
        if batch.above[rows[x, 0]] != batch.above[rows[0, 0]]:
            return True
    return False


@lean
def seconds(batch: Fixed, live: Live, j: int, rows: Ints2, n: int, own: float) -> float:
    """Return the synchronisation of job j on these rows; `own`: its duty if it is in the loads, else 0."""
    size, kind = batch.gradient[j], batch.collective[j]
    workers, most, local, worst = 0, 0, np.inf, 0.0
    servers = max(batch.servers[j], 1)
    for x in range(n):
        node, w, p = rows[x, 0], rows[x, 1], rows[x, 2]
        workers += w
        most = max(most, w)
        if w > 1:
            local = min(local, batch.link[node])
        worst = max(worst, size * w * p / servers / batch.link[node])
    total = ring(most, size) / local if kind == HIERARCHICAL and most > 1 else 0.0
    speed, lowest = local, local
    begin(live, rows, n)
    a = 0
    while n > 1:
        rate = np.inf
        for x in range(n):
            member = live.members[a, x]
            here = batch.bandwidth[member] / (1.0 + max(live.load[member] - own, 0.0))
            rate = min(rate, here)
            if kind == PS:
                w, p = live.sums[a, x, 0], live.sums[a, x, 1]
                worst = max(worst, size * (w * (servers - p) + p * (workers - w)) / servers / here)
        level = batch.level[live.members[a, 0]]
        lowest = min(lowest, rate)
        n = up(batch, live, a, n)
        a = 1 - a
        if kind == HIERARCHICAL:
            speed = rate if level == 0 else min(speed, rate)
            widest = 0
            for x in range(n):
                widest = max(widest, live.sums[a, x, 2])
            if widest > 1:
                total += ring(widest, size) / speed
    if kind == PS:
        return worst
    if kind == HIERARCHICAL:
        return total
    moved = ring(workers, size) if kind == RING else 2.0 * size * (workers > 1)
    return moved / lowest if moved > 0 else 0.0


@lean
def cost(batch: Fixed, j: int, compute: float, sync: float, workers: int) -> float:
    """Return what job j adds to the goal, but for moving it."""
    step = max(compute, (1.0 - batch.overlap[j]) * compute + sync)
    slowdown = batch.best[j] * step / workers
    if batch.rates:
        return float(batch.weight[j] * max(0.0, 1.0 - 1.0 / slowdown))
    return float(batch.weight[j] * slowdown)


@lean
def stands(batch: Fixed, j: int, rows: Ints2, n: int) -> bool:
    """Return whether these rows are where job j runs already."""
    if n != batch.stood[j]:
        return False
    for x in range(n):
        found = False
        for y in range(n):
            if (
                rows[x, 0] == batch.stand[j, y, 0]
                and rows[x, 1] == batch.stand[j, y, 1]
                and rows[x, 2] == batch.stand[j, y, 2]
            ):
                found = True
        if not found:
            return False
    return True


@lean
def spent(rows: Ints2, n: int) -> int:
    """Return the workers of some rows."""
    total = 0
    for x in range(n):
        total += rows[x, 1]
    return total
