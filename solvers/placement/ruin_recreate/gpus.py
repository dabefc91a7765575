"""Which jobs of a node share GPUs, how many GPUs that takes, and what is left for tasks to come; compiled."""

from __future__ import annotations

import cython
from cython import bint, declare

if not cython.compiled:
    from ...native import Float, Int
    from .arrays import FRAGMENTATION, BatchArrays, Placement

NEVER = declare(Float, float("inf"))


def renew_node(given: BatchArrays, now: Placement, node: Int) -> None:
    """Share the GPUs of a node out anew, among those who are there; note what is idle and its fragments."""
    gpus: Int = given.gpus[node] - now.whole[node]
    used: Int = 0
    if given.sharing:
        count = _sharers(given, now, node, -1)
        for one in range(now.many[node]):
            now.extra[now.here[node, one, 0], now.here[node, one, 2]] = 0.0
        if count > 0:
            fewest = _filled(given, now, node, count, gpus, -1, 0)
            used = _apart(given, now, node, count, gpus)
            if used < 0:
                used = max(0, _filled(given, now, node, count, gpus, -1, 0))
            _meetings(given, now, node, count, used)
            gpus -= fewest if fewest >= 0 else gpus  # more cunning may have packed them
    now.left[node, 0] = gpus
    if given.goal == FRAGMENTATION:
        now.fragment[node] = _fragments(given, now, node, given.gpus[node] - now.whole[node] - used, used)


def shares_room(given: BatchArrays, now: Placement, job: Int, node: Int, most: Int) -> Int:
    """Return how many workers of a job, each a share of a GPU, fit beside the shares on a node, `most` at most."""
    gpus = given.gpus[node] - now.whole[node]
    count = _sharers(given, now, node, job)
    if count == 1:
        return min(most, gpus * given.together[job])
    found: Int = 0
    while found < most and _filled(given, now, node, count, gpus, job, found + 1) >= 0:
        found += 1
    return found


def _sharers(given: BatchArrays, now: Placement, node: Int, job: Int) -> Int:
    """List the jobs on a node that share GPUs as places in `here`, large shares first, and `many` for another job."""
    count: Int = 0
    several: Int = now.many[node]
    if job >= 0:
        several += 1
    for one in range(several):
        this: Int = job
        if one < now.many[node]:
            this = now.here[node, one, 0]
            if given.together[this] == 0 or now.here[node, one, 1] == 0:
                continue
        at: Int = count
        while at > 0:
            other = now.here[node, now.order[at - 1], 0]
            if given.share[other] > given.share[this] or (given.share[other] == given.share[this] and other < this):
                break
            now.order[at] = now.order[at - 1]
            at -= 1
        now.order[at] = one
        count += 1
    return count


def _filled(given: BatchArrays, now: Placement, node: Int, count: Int, gpus: Int, job: Int, workers: Int) -> Int:
    """Put the shares, with `workers` of another job, on as few GPUs as is easy; return how many, -1 if too many."""
    used: Int = 0
    for place in range(count):
        one = now.order[place]
        this: Int = job
        tasks: Int = workers
        if one != now.many[node]:
            this, tasks = now.here[node, one, 0], now.here[node, one, 1]
        for _ in range(tasks):
            best: Int = -1
            for gpu in range(used):
                if now.bins[gpu] + given.share[this] <= 1.0 + given.tolerance and (
                    best < 0 or now.bins[gpu] > now.bins[best]
                ):
                    best = gpu
            if best < 0:
                if used >= gpus:
                    return -1
                best = used
                _open(now, best)
                used += 1
            _share(given, now, place, this, best)
    return used


def _apart(given: BatchArrays, now: Placement, node: Int, count: Int, gpus: Int) -> Int:
    """Put each job's shares on GPUs of its own, then where jobs interfere least; return how many GPUs, -1 if none."""
    used: Int = 0
    for place in range(count):
        this = now.here[node, now.order[place], 0]
        for _ in range(now.here[node, now.order[place], 1]):
            best: Int = -1
            least: Float = NEVER
            for gpu in range(used):
                if now.bins[gpu] + given.share[this] > 1.0 + given.tolerance:
                    continue
                lost: Float = 0.0
                before: Int = -1
                if not _has(now, gpu, place):
                    for at in range(now.filled[gpu]):
                        other = now.tasks[gpu, at]
                        if other != before:  # tasks of a job are side by side
                            lost += 1e-9 + _dislike(given, this, now.here[node, now.order[other], 0])
                        before = other
                if lost < least:
                    best, least = gpu, lost
            if least > 0.0 and used < gpus:
                best = used
                _open(now, best)
                used += 1
            if best < 0:
                return -1
            _share(given, now, place, this, best)
    return used


def _open(now: Placement, gpu: Int) -> None:
    now.bins[gpu], now.filled[gpu] = 0.0, 0


def _share(given: BatchArrays, now: Placement, place: Int, job: Int, gpu: Int) -> None:
    now.tasks[gpu, now.filled[gpu]] = place
    now.bins[gpu] += given.share[job]
    now.filled[gpu] += 1


def _has(now: Placement, gpu: Int, place: Int) -> bool:
    """Return whether a task of a job is on a GPU, jobs that come later not being on any."""
    return now.filled[gpu] > 0 and now.tasks[gpu, now.filled[gpu] - 1] == place


def _dislike(given: BatchArrays, job: Int, other: Int) -> Float:
    """Return what it costs two jobs to share a GPU rather than a node, alone and at best."""
    one, two = given.model[job], given.model[other]
    more: Float = given.weight[job] * (given.gpu[one, two] - given.host[one, two])
    more += given.weight[other] * (given.gpu[two, one] - given.host[two, one])
    return max(0.0, more)


def _meetings(given: BatchArrays, now: Placement, node: Int, count: Int, used: Int) -> None:
    for place in range(count):
        now.met[place] = -1
    for place in range(count):
        for gpu in range(used):
            shared: bint = False
            for at in range(now.filled[gpu]):
                if now.tasks[gpu, at] == place:
                    shared = True
            if shared:
                for at in range(now.filled[gpu]):
                    now.met[now.tasks[gpu, at]] = place
        for other in range(place):
            if now.met[other] == place:
                _meet(given, now, node, now.order[place], now.order[other])
                _meet(given, now, node, now.order[other], now.order[place])


def _meet(given: BatchArrays, now: Placement, node: Int, one: Int, two: Int) -> None:
    """Let one job on a node suffer from another on its GPUs."""
    job, model = now.here[node, one, 0], given.model[now.here[node, two, 0]]
    own = given.model[job]
    now.extra[job, now.here[node, one, 2]] += given.gpu[own, model] - given.host[own, model]


def _fragments(given: BatchArrays, now: Placement, node: Int, idle: Int, used: Int) -> Float:
    """Return the expected fragments of a node with so many idle GPUs and `used` that are shared, see the verifier's."""
    kind = given.kind[node]
    free: Float = idle
    total: Float = 0.0
    if not given.usable[kind]:
        return 0.0
    for gpu in range(used):
        free += max(0.0, 1.0 - now.bins[gpu])
    for task in range(len(given.chance)):
        enough: bint = given.accepts[task, kind]
        for resource in range(3):
            has = now.left[node, 1 + resource] + given.tolerance * given.amounts[node, resource]
            if given.expected[task, 2 + resource] > has:
                enough = False
        useful: Float = 0.0
        count: Int = idle
        for gpu in range(used):
            rest = max(0.0, 1.0 - now.bins[gpu])
            if rest >= given.expected[task, 1] - given.tolerance:
                useful += rest
                count += 1
        if not enough or count < given.expected[task, 0]:
            total += given.chance[task] * free
        else:
            total += given.chance[task] * (free - useful - idle)
    return total
