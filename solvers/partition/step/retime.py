"""The exact times of a plan that somebody else has ordered, such as a solver that rounds."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray

from .model import Prepared
from .schedule import Decoder, Sent, as_plan

_Key = tuple[float, float, int, int, int]
"""Given start, duration, rank, receiver or -1 for an op, op: what takes no time goes before what starts with it."""


def retime(p: Prepared, device: IntArray, start: FloatArray, sent_at: Sent | None = None) -> StepPlan:
    """Return the plan in which every device and every link keeps its order and all is as early as it can.

    The result holds to the last digit, and no time in it is later than the given one if those were feasible.

    Args:
        p: the problem.
        device: of each op, int (n,).
        start: of each op, (n,); only the order matters.
        sent_at: of each transfer that takes time, by (op, receiver); one that is missing goes when its op ends.
            Without contention unused.
    """
    decoder, where = Decoder(p), np.asarray(device).tolist()
    keys, waiting, after = _tasks(p, decoder, where, np.asarray(start).tolist(), sent_at or {})
    first, finish, sent = [0.0] * p.n, [0.0] * p.n, Sent()
    free = [0.0] * (p.n_devices + (len(p.links.names) if p.contention else 0))
    ready = [keys[task] for task, left in waiting.items() if not left]
    heapify(ready)
    while ready:
        _, took, _, d, v = heappop(ready)
        here = where[v]
        if d < 0:
            early = max((_there(decoder, where, finish, sent, u, here) for u in decoder.before[v]), default=0.0)
            uses = [here]
        else:
            early, uses = finish[v], [p.n_devices + x for x in p.routes[here][d]]
        at = max(early, *(free[x] for x in uses))
        for x in uses:
            free[x] = at + took
        if d < 0:
            first[v], finish[v] = at, at + took
        else:
            sent[v, d] = at
        for task in after[v, d]:
            waiting[task] -= 1
            if not waiting[task]:
                heappush(ready, keys[task])
    return as_plan(p, where, first, sent)


_Task = tuple[int, int]
"""An op and the receiver of its output, or -1 for the op itself."""


def _tasks(
    p: Prepared, decoder: Decoder, device: list[int], start: list[float], sent_at: Sent
) -> tuple[dict[_Task, _Key], dict[_Task, int], dict[_Task, list[_Task]]]:
    """Return the key of each op and transfer, how many tasks it waits for, and which ones wait for it."""
    rank = np.empty(p.n, dtype=np.int64)
    rank[p.order] = np.arange(p.n)
    took = [decoder.seconds[d][v] for v, d in enumerate(device)]
    keys: dict[_Task, _Key] = {(v, -1): (start[v], took[v], int(rank[v]), -1, v) for v in range(p.n)}
    after: dict[_Task, list[_Task]] = {(v, -1): [] for v in range(p.n)}
    waiting = {(v, -1): len(decoder.before[v]) for v in range(p.n)}
    for u, row in enumerate(decoder.after):
        for v in row:
            d = device[v]
            seconds = decoder.delay[decoder.level[device[u]][d]][u] if p.contention else 0.0
            if seconds > 0 and (u, d) not in keys:
                keys[u, d] = (sent_at.get((u, d), start[u] + took[u]), seconds, int(rank[u]), d, u)
                waiting[u, d], after[u, d] = 1, []
                after[u, -1].append((u, d))
            # a consumer waits for the transfer in place of the op
            after[(u, d) if seconds > 0 else (u, -1)].append((v, -1))
    return keys, waiting, after


def _there(decoder: Decoder, device: list[int], finish: list[float], sent: Sent, u: int, d: int) -> float:
    """Return when the output of op u is on device d."""
    return sent.get((u, d), finish[u]) + decoder.delay[decoder.level[device[u]][d]][u]
