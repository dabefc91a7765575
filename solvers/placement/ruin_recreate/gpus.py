"""Which jobs of a node share GPUs, how many GPUs that takes, and what is left for tasks to come; compiled."""

from __future__ import annotations

import numpy as np

from gangplan.instances.verify import TOLERANCE

from ...compiled.kernel import lean
from .arrays import FRAGMENTATION, BatchArrays, Placement


@lean
def renew_node(given: BatchArrays, now: Placement, node: int) -> None:
    """Share the GPUs of a node out anew, among those who are there; note what is idle and its fragments."""
    gpus = given.gpus[node] - now.whole[node]
    used = 0
    if given.sharing:
        count = _sharers(given, now, node, -1)
        for one in range(now.many[node]):
            now.extra[now.here[node, one, 0], now.here[node, one, 2]] = 0.0
        if count:
            fewest = _filled(given, now, node, count, gpus, -1, 0)
            used = _apart(given, now, node, count, gpus)
            if used < 0:
                used = max(0, _filled(given, now, node, count, gpus, -1, 0))
            _meetings(given, now, node, count, used)
            gpus -= fewest if fewest >= 0 else gpus  # more cunning may have packed them
    now.left[node, 0] = gpus
    if given.goal == FRAGMENTATION:
        now.fragment[node] = _fragments(given, now, node, given.gpus[node] - now.whole[node] - used, used)


@lean
def shares_room(given: BatchArrays, now: Placement, job: int, node: int, most: int) -> int:
    """Return how many workers of a job, each a share of a GPU, fit beside the shares on a node, `most` at most."""
    gpus = given.gpus[node] - now.whole[node]
    count = _sharers(given, now, node, job)
    if count == 1:
        return int(min(most, gpus * given.together[job]))
    found = 0
    while found < most and _filled(given, now, node, count, gpus, job, found + 1) >= 0:
        found += 1
    return found


@lean
def _sharers(given: BatchArrays, now: Placement, node: int, job: int) -> int:
    """List the jobs on a node that share GPUs as places in `here`, large shares first, and `many` for another job."""
    count = 0
    for one in range(now.many[node] + (job >= 0)):
        if one < now.many[node]:
            this = now.here[node, one, 0]
            if given.together[this] == 0 or now.here[node, one, 1] == 0:
                continue
        else:
            this = job
        at = count
        while at > 0:
            other = now.here[node, now.order[at - 1], 0]
            if given.share[other] > given.share[this] or (given.share[other] == given.share[this] and other < this):
                break
            now.order[at] = now.order[at - 1]
            at -= 1
        now.order[at] = one
        count += 1
    return count


@lean
def _filled(given: BatchArrays, now: Placement, node: int, count: int, gpus: int, job: int, workers: int) -> int:
    """Put the shares, with `workers` of another job, on as few GPUs as is easy; return how many, -1 if too many."""
    used = 0
    for place in range(count):
        one = now.order[place]
        other = one == now.many[node]
        this = job if other else now.here[node, one, 0]
        for _ in range(workers if other else now.here[node, one, 1]):
            best = -1
            for gpu in range(used):
                if now.bins[gpu] + given.share[this] <= 1.0 + TOLERANCE and (
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


@lean
def _apart(given: BatchArrays, now: Placement, node: int, count: int, gpus: int) -> int:
    """Put each job's shares on GPUs of its own, then where jobs interfere least; return how many GPUs, -1 if none."""
    used = 0
    for place in range(count):
        this = now.here[node, now.order[place], 0]
        for _ in range(now.here[node, now.order[place], 1]):
            best, least = -1, np.inf
            for gpu in range(used):
                if now.bins[gpu] + given.share[this] > 1.0 + TOLERANCE:
                    continue
                lost, before = 0.0, -1
                if not _has(now, gpu, place):
                    for at in range(now.filled[gpu]):
                        other = now.inside[gpu, at]
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


@lean
def _open(now: Placement, gpu: int) -> None:
    now.bins[gpu], now.filled[gpu] = 0.0, 0


@lean
def _share(given: BatchArrays, now: Placement, place: int, job: int, gpu: int) -> None:
    now.inside[gpu, now.filled[gpu]] = place
    now.bins[gpu] += given.share[job]
    now.filled[gpu] += 1


@lean
def _has(now: Placement, gpu: int, place: int) -> bool:
    """Return whether a task of a job is on a GPU, jobs that come later not being on any."""
    return bool(now.filled[gpu] > 0 and now.inside[gpu, now.filled[gpu] - 1] == place)


@lean
def _dislike(given: BatchArrays, job: int, other: int) -> float:
    """Return what it costs two jobs to share a GPU rather than a node, alone and at best."""
    one, two = given.model[job], given.model[other]
    more = given.weight[job] * (given.gpu[one, two] - given.host[one, two])
    more += given.weight[other] * (given.gpu[two, one] - given.host[two, one])
    return float(max(0.0, more))


@lean
def _meetings(given: BatchArrays, now: Placement, node: int, count: int, used: int) -> None:
    for place in range(count):
        now.met[place] = -1
    for place in range(count):
        for gpu in range(used):
            shared = False
            for at in range(now.filled[gpu]):
                shared = shared or now.inside[gpu, at] == place
            for at in range(now.filled[gpu] if shared else 0):
                now.met[now.inside[gpu, at]] = place
        for other in range(place):
            if now.met[other] == place:
                for one, two in ((now.order[place], now.order[other]), (now.order[other], now.order[place])):
                    job, model = now.here[node, one, 0], given.model[now.here[node, two, 0]]
                    more = given.gpu[given.model[job], model] - given.host[given.model[job], model]
                    now.extra[job, now.here[node, one, 2]] += more


@lean
def _fragments(given: BatchArrays, now: Placement, node: int, idle: int, used: int) -> float:
    """Return the expected fragments of a node with so many idle GPUs and `used` that are shared, see the verifier's."""
    free, total = idle * 1.0, 0.0
    if not given.usable[given.kind[node]]:
        return 0.0
    for gpu in range(used):
        free += max(0.0, 1.0 - now.bins[gpu])
    for task in range(len(given.chance)):
        enough = bool(given.accepts[task, given.kind[node]])
        for resource in range(3):
            has = now.left[node, 1 + resource] + TOLERANCE * given.amounts[node, resource]
            enough = enough and given.expected[task, 2 + resource] <= has
        useful, count, share = 0.0, idle, given.expected[task, 1]
        for gpu in range(used):
            rest = max(0.0, 1.0 - now.bins[gpu])
            if rest >= share - TOLERANCE:
                useful += rest
                count += 1
        if not enough or count < given.expected[task, 0]:
            total += given.chance[task] * free
        else:
            total += given.chance[task] * (free - useful - idle)
    return total
