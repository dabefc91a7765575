"""Where gangs fit on nodes, who may start before whom, and who must stop for whom; compiled.

The loop of traces and the engine share it: one rule of placement, one EASY backfilling, and one choice of victims. No
array is indexed by what is free: conservative reservations may have promised more than there is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Bools, Bools2, Floats, Floats2, Ints, by_reference, inner, kernel, lean
from gangplan.solvers.compiled.routines import pop, push

SLACK = 1e-9


class Gangs(NamedTuple):
    """What n jobs need.

    Attributes:
        degree: GPUs, int64 (n,).
        unit: GPUs (1), and cores and bytes if jobs name them, for each GPU, float64 (n, R).
        kind: class of the job, int64 (n,).
        span: seconds that it will run, float64 (n,).
    """

    degree: Ints
    unit: Floats2
    kind: Ints
    span: Floats


class Nodes(NamedTuple):
    """What m nodes have.

    Attributes:
        free, whole: GPUs, cores and bytes that nobody holds, and what there is at all, float64 (m, R).
        ok: nodes that are up and suit the jobs of a class, bool (classes, m).
        consolidate: whether jobs go on as few nodes as hold them.
    """

    free: Floats2
    whole: Floats2
    ok: Bools2
    biggest: int
    consolidate: bool


class Held(NamedTuple):
    """What running jobs hold: rows ``first[j]`` up to ``first[j] + count[j]``, node and GPUs, are those of job j."""

    first: Ints
    count: Ints
    node: Ints
    gpus: Ints


def nodes_of(free: Floats2, whole: Floats2, ok: Bools2, consolidate: bool) -> Nodes:
    """Return the nodes as compiled code takes them."""
    return Nodes(free, whole, ok, int(whole[:, 0].max()), consolidate)


@lean
def able(free: Floats2, unit: Floats, node: int, most: int) -> int:
    """Return for how many GPUs of a job the node has cores and memory, at most `most`."""
    for r in range(1, free.shape[1]):
        if unit[r] > 0:
            most = min(most, int(np.floor(free[node, r] / unit[r] * (1 + SLACK) + SLACK)))
    return most


@lean
def held_by_one(nodes: Nodes, unit: Floats, ok: Bools, need: int) -> bool:
    """Return whether some node would hold the whole job if it were empty; what none would goes on several."""
    most = 0
    for n in range(len(nodes.whole)):
        most = max(most, able(nodes.whole, unit, n, int(nodes.whole[n, 0])) if ok[n] else 0)
    return most >= need


@lean
def find_in(free: Floats2, nodes: Nodes, gangs: Gangs, job: int, need: int, node: Ints, gpus: Ints) -> int:
    """Do what `find` does, with `free` in the place of what is free now."""
    m, unit, ok = len(free), gangs.unit[job], nodes.ok[gangs.kind[job]]
    if nodes.consolidate and need <= nodes.biggest:
        best = -1
        for n in range(m):
            if free[n, 0] < need or not ok[n] or (best >= 0 and free[n, 0] >= free[best, 0]):
                continue
            if free.shape[1] == 1 or able(free, unit, n, int(free[n, 0])) >= need:
                best = n
        if best >= 0:
            node[0], gpus[0] = best, need
            return 1
        if free.shape[1] == 1 or held_by_one(nodes, unit, ok, need):
            return 0
    left, k = need, 0
    for n in range(m):
        if not ok[n] or free[n, 0] == 0:
            continue
        if nodes.consolidate and free[n, 0] < nodes.whole[n, 0]:
            continue
        here = able(free, unit, n, int(free[n, 0]))
        if nodes.consolidate and here < min(left, able(nodes.whole, unit, n, int(nodes.whole[n, 0]))):
            continue
        if here <= 0:
            continue
        node[k], gpus[k] = n, min(left, here)
        left -= gpus[k]
        k += 1
        if left == 0:
            return k
    return 0


@kernel
def find(nodes: Nodes, gangs: Gangs, job: int, need: int, node: Ints, gpus: Ints) -> int:
    """Write where `need` GPUs of a job go to `node` and `gpus`; return how many nodes that takes, 0 if none will do.

    Consolidated: on the node with the fewest free GPUs that fits, lowest index first; a job larger than any node on
    whole free nodes, as is one that asks for more cores or memory than any has. Otherwise on whatever is free, lowest
    index first.
    """
    return find_in(nodes.free, by_reference(nodes), by_reference(gangs), job, need, node, gpus)


@kernel
def change(free: Floats2, unit: Floats, node: Ints, gpus: Ints, sign: int) -> None:
    """Take (-1) or give back (1) the GPUs in rows, and what goes with them."""
    shift(free, unit, node, gpus, sign)


@lean
def shift(free: Floats2, unit: Floats, node: Ints, gpus: Ints, sign: int) -> None:
    """Do what `change` does, for compiled code."""
    for k in range(len(node)):
        for r in range(free.shape[1]):
            free[node[k], r] += sign * gpus[k] * unit[r]


@lean
def move(free: Floats2, gangs: Gangs, held: Held, job: int, sign: int) -> None:
    """Take or give back what a running job holds."""
    rows = slice(held.first[job], held.first[job] + held.count[job])
    shift(free, gangs.unit[job], held.node[rows], held.gpus[rows], sign)


@lean
def total_free(nodes: Nodes) -> float:
    """Return the free GPUs of all nodes."""
    total = 0.0
    for n in range(len(nodes.free)):
        total += nodes.free[n, 0]
    return total


@kernel
def reserve(job: int, running: Ints, end: Floats, gangs: Gangs, nodes: Nodes, held: Held) -> tuple[float, Floats2]:
    """Return when a job fits if nothing else starts, and what is free then; running jobs end at `end`."""
    cluster, jobs, rows = by_reference(nodes), by_reference(gangs), by_reference(held)
    later = nodes.free.copy()
    node, gpus = np.empty(len(later), dtype=np.int64), np.empty(len(later), dtype=np.int64)
    urgency, order = -end[running], np.arange(len(running))
    heap, size = np.empty(len(running), dtype=np.int64), 0
    for i in range(len(running)):
        size = push(heap, size, i, urgency, order)
    while size:
        shadow = -urgency[heap[0]]
        while size and -urgency[heap[0]] <= shadow:
            move(later, jobs, rows, running[heap[0]], 1)
            size = pop(heap, size, urgency, order)
        if find_in(later, cluster, jobs, job, gangs.degree[job], node, gpus):
            return shadow, later
    return np.inf, later


@kernel
def next_spare(
    queue: Ints, begin: int, job: int, now: float, shadow: float, later: Floats2, gangs: Gangs, nodes: Nodes
) -> int:
    """Return the first place in the queue from `begin` on whose job fits and does not delay `job`, -1 if none does.

    This is EASY backfilling (Lifka, JSSPP 1995): who fits starts if it has ended by `shadow`, when `job` starts, or if
    what is free `later`, then, is enough for both. Whoever starts a job that runs on takes it from `later`. Where
    nobody waits for anything, `shadow` is infinite: who fits is the next.
    """
    cluster, jobs = by_reference(nodes), by_reference(gangs)
    total = total_free(cluster)
    if total < 1:
        return -1
    node, gpus = np.empty(len(later), dtype=np.int64), np.empty(len(later), dtype=np.int64)
    alike = nodes.free.shape[1] == 1 and len(nodes.ok) == 1  # then jobs of a size have the same chances
    never, late = np.zeros(int(total) + 1, dtype=np.bool_), np.zeros(int(total) + 1, dtype=np.bool_)
    for i in range(begin, len(queue)):
        other = queue[i]
        need, early = gangs.degree[other], now + gangs.span[other] <= shadow
        if need > total or (alike and (never[need] or (late[need] and not early))):
            continue
        k = find_in(nodes.free, cluster, jobs, other, need, node, gpus)
        if k and (early or stands(job, other, node[:k], gpus[:k], later, jobs, cluster)):
            return i
        late[need], never[need] = True, not k
    return -1


@inner
def stands(job: int, other: int, node: Ints, gpus: Ints, later: Floats2, gangs: Gangs, nodes: Nodes) -> bool:
    """Return whether a reservation of `job` stands if `other` holds what is in rows `later`, when it begins."""
    shift(later, gangs.unit[other], node, gpus, -1)
    room, some = np.empty(len(later), dtype=np.int64), np.empty(len(later), dtype=np.int64)
    there = find_in(later, nodes, gangs, job, gangs.degree[job], room, some) > 0
    shift(later, gangs.unit[other], node, gpus, 1)
    return bool(there)


@inner
def make_room(job: int, worst: Ints, gangs: Gangs, nodes: Nodes, held: Held) -> Bools:
    """Return which of the running jobs `worst` must stop for a job to fit: bool (len(worst),), none if it never does.

    They are stopped from the first on until it fits; those of them that turn out to be in nobody's way are spared,
    the last ones first.
    """
    stop = np.zeros(len(worst), dtype=np.bool_)
    node, gpus = np.empty(len(nodes.free), dtype=np.int64), np.empty(len(nodes.free), dtype=np.int64)
    total = total_free(nodes)
    reach = total
    for other in worst:
        reach += gangs.degree[other]
    if reach < gangs.degree[job]:
        return stop
    room = nodes.free.copy()
    last = -1
    for i in range(len(worst)):
        move(room, gangs, held, worst[i], 1)
        stop[i] = True
        total += gangs.degree[worst[i]]
        if total >= gangs.degree[job] and find_in(room, nodes, gangs, job, gangs.degree[job], node, gpus):
            last = i
            break
    if last < 0:
        stop[:] = False
        return stop
    for i in range(last - 1, -1, -1):
        move(room, gangs, held, worst[i], -1)
        if find_in(room, nodes, gangs, job, gangs.degree[job], node, gpus):
            stop[i] = False
        else:
            move(room, gangs, held, worst[i], 1)
    return stop


@kernel
def next_claim(
    queue: Ints, begin: int, key: Floats, rank: Ints, victims: Ints, gangs: Gangs, nodes: Nodes, held: Held
) -> tuple[int, Bools]:
    """Return the first place in the queue from `begin` on whose job fits, or fits once some of `victims` are stopped.

    The victims are running jobs, the last in order first; a job may stop those that come after it by key and rank. The
    second thing returned is which of them it needs stopped, bool (len(victims),). The place is -1 if there is none.
    """
    cluster, jobs, rows = by_reference(nodes), by_reference(gangs), by_reference(held)
    node, gpus = np.empty(len(nodes.free), dtype=np.int64), np.empty(len(nodes.free), dtype=np.int64)
    nobody = np.zeros(len(victims), dtype=np.bool_)
    behind = len(victims)
    # where jobs of a kind and size are alike, one that comes later has no better chance
    alike = nodes.free.shape[1] == 1
    failed = np.zeros((len(nodes.ok), int(nodes.whole[:, 0].sum()) + 1 if alike else 0), dtype=np.bool_)
    for i in range(begin, len(queue)):
        job = queue[i]
        if alike:
            if failed[gangs.kind[job], gangs.degree[job]]:
                continue
            failed[gangs.kind[job], gangs.degree[job]] = True
        if find_in(nodes.free, cluster, jobs, job, gangs.degree[job], node, gpus):
            return i, nobody
        while behind:
            last = victims[behind - 1]
            if key[last] > key[job] or (key[last] == key[job] and rank[last] > rank[job]):
                break
            behind -= 1
        if behind:
            stop = make_room(job, victims[:behind], jobs, cluster, rows)
            if stop.any():
                nobody[:behind] = stop
                return i, nobody
    return -1, nobody
