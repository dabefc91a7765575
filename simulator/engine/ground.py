"""Where gangs fit on nodes, compiled: free GPUs, cores and memory of any mix of nodes.

`free` and `whole` are float64 (m, R): GPUs, and cores and bytes where jobs name them; `unit` float64 (n, R) is what a
job needs of them for each of its GPUs. `ok` is bool (classes, m): nodes that are up and suit the jobs of a class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

_SLACK = 1e-9


@kernel
def able(free: Any, unit: Any, node: int) -> int:
    """Return for how many GPUs of a job the node has room."""
    most = int(free[node, 0])
    for r in range(1, free.shape[1]):
        if unit[r] > 0:
            most = min(most, int(np.floor(free[node, r] / unit[r] * (1 + _SLACK) + _SLACK)))
    return most


@kernel
def find(free: Any, whole: Any, ok: Any, unit: Any, need: int, consolidate: bool, node: Any, gpus: Any) -> int:
    """Write where `need` GPUs go to `node` and `gpus`, and return how many nodes that takes, 0 if they fit nowhere.

    Consolidated: on the node with the fewest free GPUs that fits, lowest index first; a job larger than any node on
    whole free nodes. Otherwise on whatever is free, lowest index first.
    """
    m = len(free)
    if consolidate:
        biggest = whole[:, 0].max()
        if need <= biggest:
            best = -1
            for n in range(m):
                if free[n, 0] < need or not ok[n] or (best >= 0 and free[n, 0] >= free[best, 0]):
                    continue
                if free.shape[1] == 1 or able(free, unit, n) >= need:
                    best = n
            if best < 0:
                return 0
            node[0], gpus[0] = best, need
            return 1
    left, k = need, 0
    for n in range(m):
        if not ok[n] or free[n, 0] == 0:
            continue
        if consolidate and free[n, 0] < whole[n, 0]:
            continue
        here = able(free, unit, n)
        if consolidate and here < min(left, whole[n, 0]):
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
def change(free: Any, unit: Any, node: Any, gpus: Any, sign: int) -> None:
    """Take (-1) or give back (1) the GPUs in rows, and what goes with them."""
    for k in range(len(node)):
        for r in range(free.shape[1]):
            free[node[k], r] += sign * gpus[k] * unit[r]


@kernel
def next_fit(
    queue: Any, begin: int, degree: Any, unit: Any, kind: Any, free: Any, whole: Any, ok: Any, consolidate: bool
) -> int:
    """Return the first place in the queue from `begin` on whose job fits, -1 if there is none."""
    total = 0.0
    for n in range(len(free)):
        total += free[n, 0]
    node, gpus = np.empty(len(free), dtype=np.int64), np.empty(len(free), dtype=np.int64)
    alike = free.shape[1] == 1 and len(ok) == 1
    failed = np.zeros(int(total) + 1, dtype=np.bool_)  # sizes that do not fit, where jobs of a size are alike
    for i in range(begin, len(queue)):
        j = queue[i]
        need = degree[j]
        if need > total or (alike and failed[need]):
            continue
        if find(free, whole, ok[kind[j]], unit[j], need, consolidate, node, gpus):
            return i
        failed[need] = True
    return -1


@kernel
def reserve(
    held: int,
    degree: Any,
    unit: Any,
    kind: Any,
    free: Any,
    whole: Any,
    ok: Any,
    consolidate: bool,
    ends: Any,
    running: Any,
    first: Any,
    count: Any,
    log_node: Any,
    log_gpus: Any,
) -> Any:
    """Return when job `held` fits if nothing else starts, and what is free then; `running` by its ends, ascending."""
    later = free.copy()
    node, gpus = np.empty(len(free), dtype=np.int64), np.empty(len(free), dtype=np.int64)
    i = 0
    while i < len(running):
        shadow = ends[i]
        while i < len(running) and ends[i] <= shadow:
            j = running[i]
            rows = slice(first[j], first[j] + count[j])
            change(later, unit[j], log_node[rows], log_gpus[rows], 1)
            i += 1
        if find(later, whole, ok[kind[held]], unit[held], degree[held], consolidate, node, gpus):
            return shadow, later
    return np.inf, later


@kernel
def next_spare(
    queue: Any,
    begin: int,
    held: int,
    span: Any,
    now: float,
    shadow: float,
    later: Any,
    degree: Any,
    unit: Any,
    kind: Any,
    free: Any,
    whole: Any,
    ok: Any,
    consolidate: bool,
) -> int:
    """Return the first place in the queue from `begin` on whose job fits and does not delay `held`, -1 if none does."""
    total = 0.0
    for n in range(len(free)):
        total += free[n, 0]
    node, gpus = np.empty(len(free), dtype=np.int64), np.empty(len(free), dtype=np.int64)
    more, some = np.empty(len(free), dtype=np.int64), np.empty(len(free), dtype=np.int64)
    for i in range(begin, len(queue)):
        j = queue[i]
        if degree[j] > total:
            continue
        k = find(free, whole, ok[kind[j]], unit[j], degree[j], consolidate, node, gpus)
        if not k:
            continue
        if now + span[j] <= shadow:
            return i
        change(later, unit[j], node[:k], gpus[:k], -1)
        stands = find(later, whole, ok[kind[held]], unit[held], degree[held], consolidate, more, some)
        change(later, unit[j], node[:k], gpus[:k], 1)
        if stands:
            return i
    return -1


@kernel
def make_room(
    job: int,
    worst: Any,
    degree: Any,
    unit: Any,
    kind: Any,
    free: Any,
    whole: Any,
    ok: Any,
    consolidate: bool,
    first: Any,
    count: Any,
    log_node: Any,
    log_gpus: Any,
) -> Any:
    """Return which of the running jobs `worst` must stop for a job to fit: bool (len(worst),), none if it never does.

    They are stopped from the first on until it fits; those of them that turn out to be in nobody's way are spared,
    the last ones first.
    """
    stop = np.zeros(len(worst), dtype=np.bool_)
    node, gpus = np.empty(len(free), dtype=np.int64), np.empty(len(free), dtype=np.int64)
    total = 0.0
    for n in range(len(free)):
        total += free[n, 0]
    reach = total
    for j in worst:
        reach += degree[j]
    if reach < degree[job]:
        return stop
    room = free.copy()
    fits = False
    last = -1
    for i in range(len(worst)):
        j = worst[i]
        rows = slice(first[j], first[j] + count[j])
        change(room, unit[j], log_node[rows], log_gpus[rows], 1)
        stop[i] = True
        total += degree[j]
        if total >= degree[job] and find(room, whole, ok[kind[job]], unit[job], degree[job], consolidate, node, gpus):
            fits, last = True, i
            break
    if not fits:
        stop[:] = False
        return stop
    for i in range(last - 1, -1, -1):
        j = worst[i]
        rows = slice(first[j], first[j] + count[j])
        change(room, unit[j], log_node[rows], log_gpus[rows], -1)
        if find(room, whole, ok[kind[job]], unit[job], degree[job], consolidate, node, gpus):
            stop[i] = False
        else:
            change(room, unit[j], log_node[rows], log_gpus[rows], 1)
    return stop


@kernel
def next_claim(
    queue: Any,
    begin: int,
    key: Any,
    rank: Any,
    ladder: Any,
    degree: Any,
    unit: Any,
    kind: Any,
    free: Any,
    whole: Any,
    ok: Any,
    consolidate: bool,
    first: Any,
    count: Any,
    log_node: Any,
    log_gpus: Any,
) -> Any:
    """Return the first place in the queue from `begin` on whose job fits, or fits once jobs of `ladder` are stopped.

    The ladder has running jobs, the last in order first; a job may stop those that come after it by key and rank. The
    second thing returned is which of them it needs stopped, bool (len(ladder),). The place is -1 if there is none.
    """
    node, gpus = np.empty(len(free), dtype=np.int64), np.empty(len(free), dtype=np.int64)
    nobody = np.zeros(len(ladder), dtype=np.bool_)
    behind = len(ladder)
    # where jobs of a kind and size are alike, one that comes later has no better chance
    failed = np.zeros((len(ok), int(whole[:, 0].sum()) + 1 if free.shape[1] == 1 else 0), dtype=np.bool_)
    for i in range(begin, len(queue)):
        j = queue[i]
        if free.shape[1] == 1:
            if failed[kind[j], degree[j]]:
                continue
            failed[kind[j], degree[j]] = True
        if find(free, whole, ok[kind[j]], unit[j], degree[j], consolidate, node, gpus):
            return i, nobody
        while behind:
            last = ladder[behind - 1]
            if key[last] > key[j] or (key[last] == key[j] and rank[last] > rank[j]):
                break
            behind -= 1
        if behind:
            stop = make_room(
                j, ladder[:behind], degree, unit, kind, free, whole, ok, consolidate, first, count, log_node, log_gpus
            )
            if stop.any():
                nobody[:behind] = stop
                return i, nobody
    return -1, nobody
