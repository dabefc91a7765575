"""What a job costs on given rows: `gangplan.instances.placement.rate` and the goals for one job, compiled.

`place` says whose rows are meant: a job's, or one of the others that a `Placement` has.
"""

from __future__ import annotations

import cython
from cython import bint, declare

if not cython.compiled:
    from ...native import Float, Int
    from .arrays import COMMUNICATION, FRAGMENTATION, HIERARCHICAL, RING, SERVERS, THROUGHPUT, BatchArrays, Placement

NEVER = declare(Float, float("inf"))


def ring(members: Int, size: Float) -> Float:
    """Return the bytes that each member of a ring sends."""
    return 2.0 * (members - 1) / members * size


def first_level(now: Placement, place: Int, count: Int) -> None:
    """Put the nodes of rows into the first scratch."""
    for row in range(count):
        now.groups[0, row] = now.rows[place, row, 0]
        now.sums[0, row, 0], now.sums[0, row, 1] = now.rows[place, row, 1], now.rows[place, row, 2]
        now.sums[0, row, 2] = now.rows[place, row, 1]


def next_level(given: BatchArrays, now: Placement, low: Int, count: Int) -> Int:
    """Put what is above the first `count` groups of scratch `low` into the other scratch; return how many they are."""
    high: Int = 1 - low
    found: Int = 0
    for row in range(count):
        parent = given.above[now.groups[low, row]]
        at: Int = -1
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


def cross(given: BatchArrays, now: Placement, place: Int, count: Int, duty: Float, mark: Int) -> None:
    """Add a gang's duty to the links that it crosses, and `mark` to their marks."""
    if count < 2:
        return
    first_level(now, place, count)
    low: Int = 0
    while count > 1:
        for row in range(count):
            now.load[now.groups[low, row]] += duty
            now.mark[now.groups[low, row]] += mark
        count = next_level(given, now, low, count)
        low = 1 - low


def meets(given: BatchArrays, now: Placement, place: Int, count: Int) -> bool:
    """Return whether a gang crosses a link that is marked."""
    if count < 2:
        return False
    first_level(now, place, count)
    low: Int = 0
    while count > 1:
        for row in range(count):
            if now.mark[now.groups[low, row]]:
                return True
        count = next_level(given, now, low, count)
        low = 1 - low
    return False


def spans(given: BatchArrays, now: Placement, place: Int, count: Int) -> bool:
    """Return whether rows are in more than one rack."""
    for row in range(1, count):  # noqa: SIM110
        if given.above[now.rows[place, row, 0]] != given.above[now.rows[place, 0, 0]]:
            return True
    return False


def stands(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int) -> bool:
    """Return whether these rows are where the job runs already."""
    if count != given.standing_rows[job]:
        return False
    for row in range(count):
        found: bint = False
        for other in range(count):
            same: bint = True
            for field in range(3):
                if now.rows[place, row, field] != given.standing[job, other, field]:
                    same = False
            if same:
                found = True
        if not found:
            return False
    return True


def workers_of(now: Placement, place: Int, count: Int) -> Int:
    """Return the workers of some rows."""
    total: Int = 0
    for row in range(count):
        total += now.rows[place, row, 1]
    return total


def moving(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int) -> Float:
    """Return what it costs that the job does not stay where it runs, 0 if it does."""
    if given.migration[job] > 0 and not stands(given, now, job, place, count):
        return given.migration[job]
    return 0.0


def compute_seconds(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int, there: bint) -> Float:
    """Return the compute of the slowest worker; `there`: whether the job is among those on the nodes."""
    model = given.model[job]
    slowest: Float = 0.0
    for row in range(count):
        if now.rows[place, row, 1] > 0:
            node = now.rows[place, row, 0]
            more: Float = now.suffer[node, model]
            if there:
                more += now.extra[job, row] - given.host[model, model]
            slowest = max(slowest, given.alone[job, given.kind[node]] * (1.0 + more))
    return slowest


def sync_seconds(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int, own: Float) -> Float:
    """Return the synchronisation of a job on these rows; `own`: its duty if it is in the loads, else 0."""
    size, collective = given.gradient[job], given.collective[job]
    workers: Int = 0
    most: Int = 0
    local: Float = NEVER
    worst: Float = 0.0
    servers: Int = max(given.servers[job], 1)
    for row in range(count):
        link = given.link[now.rows[place, row, 0]]
        here, beside = now.rows[place, row, 1], now.rows[place, row, 2]
        workers += here
        most = max(most, here)
        if here > 1:
            local = min(local, link)
        worst = max(worst, size * here * beside / servers / link)
    total: Float = ring(most, size) / local if collective == HIERARCHICAL and most > 1 else 0.0
    speed: Float = local
    lowest: Float = local
    first_level(now, place, count)
    low: Int = 0
    while count > 1:
        rate: Float = NEVER
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
            widest: Int = 0
            for row in range(count):
                widest = max(widest, now.sums[low, row, 2])
            if widest > 1:
                total += ring(widest, size) / speed
    if collective == SERVERS:
        return worst
    if collective == HIERARCHICAL:
        return total
    moved: Float = ring(workers, size) if collective == RING else 2.0 * size if workers > 1 else 0.0
    return moved / lowest if moved > 0 else 0.0


def timed_cost(given: BatchArrays, job: Int, compute: Float, sync: Float, workers: Int) -> Float:
    """Return what a job adds to the goal with such seconds, but for moving it."""
    step = max(compute, (1.0 - given.overlap[job]) * compute + sync)
    slowdown = given.best[job] * step / workers
    if given.goal == THROUGHPUT:
        return given.weight[job] * max(0.0, 1.0 - 1.0 / slowdown)
    return given.weight[job] * slowdown


def communication_cost(given: BatchArrays, now: Placement, job: Int, place: Int, count: Int) -> Float:
    """Return the weighted seconds of a gigabyte between all pairs of GPUs of a job."""
    gpus: Float = given.need[job, 0] if given.together[job] == 0 else 1.0
    total: Float = 0.0
    below: Float = 0.0
    for row in range(count):
        held = now.rows[place, row, 1] * gpus
        total += held * (held - 1.0) / 2.0 * given.inside[now.rows[place, row, 0]]
        below += held * (held - 1.0) / 2.0
    first_level(now, place, count)
    low: Int = 0
    level: Int = 0
    while count > 1:
        count = next_level(given, now, low, count)
        low = 1 - low
        within: Float = 0.0
        for row in range(count):
            held = now.sums[low, row, 0] * gpus
            within += held * (held - 1.0) / 2.0
        total += given.across[level] * (within - below)
        below = within
        level += 1
    return given.weight[job] * total if below > 0.0 else 0.0


def job_cost(given: BatchArrays, now: Placement, job: Int) -> Float:
    """Return what a job costs as it is, its seconds noted; one that is nowhere costs what leaving it out does."""
    count = now.count[job]
    if count == 0:
        return given.value[job] + given.migration[job]
    moved = moving(given, now, job, job, count)
    if given.goal == FRAGMENTATION:
        return moved
    if given.goal == COMMUNICATION:
        return moved + communication_cost(given, now, job, job, count)
    now.compute[job] = compute_seconds(given, now, job, job, count, True)
    now.sync[job] = sync_seconds(given, now, job, job, count, given.duty[job])
    return moved + timed_cost(given, job, now.compute[job], now.sync[job], workers_of(now, job, count))
