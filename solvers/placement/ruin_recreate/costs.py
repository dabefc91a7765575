"""What a job costs on given rows: `gangplan.instances.placement.rate` and the goals for one job, compiled."""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import Ints2, lean
from .arrays import COMMUNICATION, FRAGMENTATION, HIERARCHICAL, RING, SERVERS, THROUGHPUT, BatchArrays, Placement


@lean
def ring(members: int, size: float) -> float:
    """Return the bytes that each member of a ring sends."""
    return 2.0 * (members - 1) / members * size


@lean
def first_level(now: Placement, rows: Ints2, count: int) -> None:
    """Put the nodes of rows into the first scratch."""
    for row in range(count):
        now.groups[0, row] = rows[row, 0]
        now.sums[0, row, 0], now.sums[0, row, 1], now.sums[0, row, 2] = rows[row, 1], rows[row, 2], rows[row, 1]


@lean
def next_level(given: BatchArrays, now: Placement, low: int, count: int) -> int:
    """Put what is above the first `count` groups of scratch `low` into the other scratch; return how many they are."""
    high, found = 1 - low, 0
    for row in range(count):
        parent = given.above[now.groups[low, row]]
        at = -1
        for known in range(found):
            if now.groups[high, known] == parent:
                at = known
                break
        if at < 0:
            at = found
            found += 1
            now.groups[high, at] = parent
            now.sums[high, at, 0] = now.sums[high, at, 1] = now.sums[high, at, 2] = 0
        now.sums[high, at, 0] += now.sums[low, row, 0]
        now.sums[high, at, 1] += now.sums[low, row, 1]
        now.sums[high, at, 2] += 1
    return found


@lean
def cross(given: BatchArrays, now: Placement, rows: Ints2, count: int, duty: float, mark: int) -> None:
    """Add a gang's duty to the links that it crosses, and `mark` to their marks."""
    if count < 2:
        return
    first_level(now, rows, count)
    low = 0
    while count > 1:
        for row in range(count):
            now.load[now.groups[low, row]] += duty
            now.mark[now.groups[low, row]] += mark
        count = next_level(given, now, low, count)
        low = 1 - low


@lean
def meets(given: BatchArrays, now: Placement, rows: Ints2, count: int) -> bool:
    """Return whether a gang crosses a link that is marked."""
    if count < 2:
        return False
    first_level(now, rows, count)
    low = 0
    while count > 1:
        for row in range(count):
            if now.mark[now.groups[low, row]]:
                return True
        count = next_level(given, now, low, count)
        low = 1 - low
    return False


@lean
def spans(given: BatchArrays, rows: Ints2, count: int) -> bool:
    """Return whether rows are in more than one rack."""
    for row in range(1, count):  # noqa: SIM110
        if given.above[rows[row, 0]] != given.above[rows[0, 0]]:
            return True
    return False


@lean
def stands(given: BatchArrays, job: int, rows: Ints2, count: int) -> bool:
    """Return whether these rows are where the job runs already."""
    if count != given.standing_rows[job]:
        return False
    for row in range(count):
        found = False
        for other in range(count):
            same = True
            for field in range(3):
                same = same and rows[row, field] == given.standing[job, other, field]
            found = found or same
        if not found:
            return False
    return True


@lean
def workers_of(rows: Ints2, count: int) -> int:
    """Return the workers of some rows."""
    total = 0
    for row in range(count):
        total += rows[row, 1]
    return total


@lean
def moving(given: BatchArrays, job: int, rows: Ints2, count: int) -> float:
    """Return what it costs that the job does not stay where it runs, 0 if it does."""
    if given.migration[job] > 0 and not stands(given, job, rows, count):
        return float(given.migration[job])
    return 0.0


@lean
def compute_seconds(given: BatchArrays, now: Placement, job: int, rows: Ints2, count: int, there: bool) -> float:
    """Return the compute of the slowest worker; `there`: whether the job is among those on the nodes."""
    model, slowest = given.model[job], 0.0
    for row in range(count):
        if rows[row, 1] > 0:
            more = now.suffer[rows[row, 0], model]
            if there:
                more += now.extra[job, row] - given.host[model, model]
            slowest = max(slowest, given.alone[job, given.kind[rows[row, 0]]] * (1.0 + more))
    return slowest


@lean
def sync_seconds(given: BatchArrays, now: Placement, job: int, rows: Ints2, count: int, own: float) -> float:
    """Return the synchronisation of a job on these rows; `own`: its duty if it is in the loads, else 0."""
    size, collective = given.gradient[job], given.collective[job]
    workers, most, local, worst = 0, 0, np.inf, 0.0
    servers = max(given.servers[job], 1)
    for row in range(count):
        node, here, beside = rows[row, 0], rows[row, 1], rows[row, 2]
        workers += here
        most = max(most, here)
        if here > 1:
            local = min(local, given.link[node])
        worst = max(worst, size * here * beside / servers / given.link[node])
    total = ring(most, size) / local if collective == HIERARCHICAL and most > 1 else 0.0
    speed, lowest = local, local
    first_level(now, rows, count)
    low = 0
    while count > 1:
        rate = np.inf
        for row in range(count):
            group = now.groups[low, row]
            share = given.bandwidth[group] / (1.0 + max(now.load[group] - own, 0.0))
            rate = min(rate, share)
            if collective == SERVERS:
                here, beside = now.sums[low, row, 0], now.sums[low, row, 1]
                through = here * (servers - beside) + beside * (workers - here)
                worst = max(worst, size * through / servers / share)
        level = given.level[now.groups[low, 0]]
        lowest = min(lowest, rate)
        count = next_level(given, now, low, count)
        low = 1 - low
        if collective == HIERARCHICAL:
            speed = rate if level == 0 else min(speed, rate)
            widest = 0
            for row in range(count):
                widest = max(widest, now.sums[low, row, 2])
            if widest > 1:
                total += ring(widest, size) / speed
    if collective == SERVERS:
        return worst
    if collective == HIERARCHICAL:
        return total
    moved = ring(workers, size) if collective == RING else 2.0 * size * (workers > 1)
    return moved / lowest if moved > 0 else 0.0


@lean
def timed_cost(given: BatchArrays, job: int, compute: float, sync: float, workers: int) -> float:
    """Return what a job adds to the goal with such seconds, but for moving it."""
    step = max(compute, (1.0 - given.overlap[job]) * compute + sync)
    slowdown = given.best[job] * step / workers
    if given.goal == THROUGHPUT:
        return float(given.weight[job] * max(0.0, 1.0 - 1.0 / slowdown))
    return float(given.weight[job] * slowdown)


@lean
def communication_cost(given: BatchArrays, now: Placement, job: int, rows: Ints2, count: int) -> float:
    """Return the weighted seconds of a gigabyte between all pairs of GPUs of a job."""
    gpus, total, below = given.need[job, 0] if given.together[job] == 0 else 1.0, 0.0, 0.0
    for row in range(count):
        held = rows[row, 1] * gpus
        total += held * (held - 1.0) / 2.0 * given.inside[rows[row, 0]]
        below += held * (held - 1.0) / 2.0
    first_level(now, rows, count)
    low, level = 0, 0
    while count > 1:
        count = next_level(given, now, low, count)
        low = 1 - low
        within = 0.0
        for row in range(count):
            held = now.sums[low, row, 0] * gpus
            within += held * (held - 1.0) / 2.0
        total += given.across[level] * (within - below)
        below = within
        level += 1
    return float(given.weight[job] * total) if below > 0.0 else 0.0


@lean
def job_cost(given: BatchArrays, now: Placement, job: int) -> float:
    """Return what a job costs as it is, its seconds noted; one that is nowhere costs what leaving it out does."""
    count, rows = now.count[job], now.rows[job]
    if count == 0:
        return float(given.value[job] + given.migration[job])
    moved = moving(given, job, rows, count)
    if given.goal == FRAGMENTATION:
        return moved
    if given.goal == COMMUNICATION:
        return moved + communication_cost(given, now, job, rows, count)
    now.compute[job] = compute_seconds(given, now, job, rows, count, True)
    now.sync[job] = sync_seconds(given, now, job, rows, count, given.duty[job])
    return moved + timed_cost(given, job, now.compute[job], now.sync[job], workers_of(rows, count))
