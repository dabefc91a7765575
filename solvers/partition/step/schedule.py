"""From a placement and an order to a schedule: everything as early as it can, feasible whatever the order.

Serial schedule generation (Kolisch, EJOR 1996): one op after the other, each into the first gap of its device that
holds it. Ordered by the start times of an optimal plan without contention it gives an optimal plan, so a search over
placements and orders loses nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray

from ...run import never
from .busy import Busy, common_gap
from .model import Prepared

Sent = dict[tuple[int, int], float]
"""When each transfer starts, by (op, receiving device), seconds."""


class Decoder:
    """The prepared problem as plain lists, which a loop over single ops reads fastest."""

    def __init__(self, p: Prepared) -> None:
        self.p = p
        self.before = _rows(p.predecessors)
        self.after = _rows(p.successors)
        by_type = p.time.tolist()
        self.seconds: list[list[float]] = [by_type[t] for t in p.type_of.tolist()]
        # the row -1 is for level -1, one device
        self.delay: list[list[float]] = [*p.delay.tolist(), [0.0] * p.n]
        self.level: list[list[int]] = p.level.tolist()

    def order(self, priority: Sequence[float]) -> list[int]:
        """Return the ops so that every edge points forward, of those that may come next always the lowest priority."""
        waiting = list(map(len, self.before))
        ready = [(priority[v], v) for v, w in enumerate(waiting) if not w]
        heapify(ready)
        found = []
        while ready:
            v = heappop(ready)[1]
            found.append(v)
            for w in self.after[v]:
                waiting[w] -= 1
                if not waiting[w]:
                    heappush(ready, (priority[w], w))
        return found

    def times(self, device: Sequence[int], order: Sequence[int]) -> tuple[list[float], list[float], Sent]:
        """Return when each op starts and ends, and with contention when each transfer starts.

        Args:
            device: of each op, which must be able to run there.
            order: of all ops, every edge forward.
        """
        if self.p.contention:
            return self._with_links(device, order)
        start, finish = self._without_links(device, order)
        return start, finish, {}

    def makespan(self, device: Sequence[int], order: Sequence[int]) -> float:
        """Return when the last op ends."""
        return max(self.times(device, order)[1])

    def _without_links(self, device: Sequence[int], order: Sequence[int]) -> tuple[list[float], list[float]]:
        n = len(order)
        start, finish = [0.0] * n, [0.0] * n
        before, delay, level, seconds = self.before, self.delay, self.level, self.seconds
        free = [0.0] * len(level)
        gaps: list[list[tuple[float, float]]] = [[] for _ in level]
        for v in order:
            d = device[v]
            ready, far = 0.0, level[d]
            for u in before[v]:
                there = finish[u] + delay[far[device[u]]][u]
                ready = max(ready, there)
            took, end = seconds[d][v], free[d]
            if ready < end:
                ready = _first_gap(gaps[d], ready, took, end) if gaps[d] else end
            elif ready > end:
                gaps[d].append((end, ready))
            start[v] = ready
            finish[v] = ready = ready + took
            if ready > end:
                free[d] = ready
        return start, finish

    def _with_links(self, device: Sequence[int], order: Sequence[int]) -> tuple[list[float], list[float], Sent]:
        partial = Partial(self)
        for v in order:
            partial.put(v, device[v])
        return partial.start, partial.finish, partial.sent


class Partial:
    """A schedule in the making: ops go in one after the other, each into the first gap that holds it.

    Attributes:
        start, finish: of each op that is in, seconds.
        device: of each op that is in, -1 of others.
        sent: when transfers start, with contention.
        stopped: whether to give up, which who puts the ops in has to look at.
    """

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        n = len(decoder.before)
        self.start, self.finish = [0.0] * n, [0.0] * n
        self.device = [-1] * n
        self.sent = Sent()
        self.stopped: Callable[[], bool] = never
        self._busy = [Busy() for _ in decoder.level]
        self._links = [Busy() for _ in decoder.p.links.names] if decoder.p.contention else []

    def would_end(self, v: int, d: int) -> float:
        """Return when op v would end on device d; all ops before it are in."""
        ready, made = self._ready(v, d)
        for pair, way, took in made:
            for link in way:
                link.give_back(self.sent[pair], took)
            del self.sent[pair]
        took = self.decoder.seconds[d][v]
        return self._busy[d].first(ready, took) + took

    def free(self, d: int) -> float:
        """Return when device d has ended all that is in."""
        return self._busy[d].end[-1] if self._busy[d].end else 0.0

    def put(self, v: int, d: int) -> None:
        """Put op v on device d; all ops before it are in."""
        ready, took = self._ready(v, d)[0], self.decoder.seconds[d][v]
        self.device[v] = d
        self.start[v] = at = self._busy[d].first(ready, took)
        self.finish[v] = at + took
        self._busy[d].take(at, took)

    def _ready(self, v: int, d: int) -> tuple[float, list[tuple[tuple[int, int], list[Busy], float]]]:
        """Return when all inputs of op v are on device d, and the transfers that were booked for it."""
        decoder, finish, ready = self.decoder, self.finish, 0.0
        far, made = decoder.level[d], []
        # what is made first is sent first
        for u in sorted(decoder.before[v], key=finish.__getitem__):
            took = decoder.delay[far[self.device[u]]][u]
            there = finish[u]
            if took > 0 and self._links:
                if (u, d) not in self.sent:
                    way = [self._links[x] for x in decoder.p.routes[self.device[u]][d]]
                    self.sent[u, d] = at = common_gap(way, there, took)
                    for link in way:
                        link.take(at, took)
                    made.append(((u, d), way, took))
                there = self.sent[u, d]
            ready = max(ready, there + took)
        return ready, made


def decode(p: Prepared, device: IntArray, priority: FloatArray | Sequence[float]) -> StepPlan:
    """Return the plan that runs ops of low priority values first on the given devices; see `Decoder.times`.

    It is feasible whatever the priorities, if the placement is: no op on a device that cannot run it, memory and
    colocation kept.

    Args:
        p: the problem.
        device: of each op, int (n,).
        priority: of each op, (n,); an op never waits for one that it does not follow and that has a higher value.
    """
    decoder, where = Decoder(p), np.asarray(device).tolist()
    start, _, sent = decoder.times(where, decoder.order(np.asarray(priority).tolist()))
    return as_plan(p, where, start, sent)


def as_plan(p: Prepared, device: Sequence[int], start: Sequence[float], sent: Sent) -> StepPlan:
    """Return the plan of these times."""
    made = sorted(sent)
    return StepPlan(
        ops=p.problem.graph.names,
        device=np.array(device, dtype=np.int32),
        start=np.array(start),
        sent=np.array([u for u, _ in made], dtype=np.int32),
        receiver=np.array([d for _, d in made], dtype=np.int32),
        sent_at=np.array([sent[pair] for pair in made]),
    )


def _rows(csr: tuple[IntArray, IntArray]) -> list[list[int]]:
    first, index = csr[0].tolist(), csr[1].tolist()
    return [index[a:b] for a, b in pairwise(first)]


def _first_gap(gaps: list[tuple[float, float]], ready: float, took: float, end: float) -> float:
    """Return the earliest start from `ready` on in one of the gaps, which it splits, or else `end`."""
    for i in range(bisect_left(gaps, (ready, -1.0)) - 1 if gaps[0][0] < ready else 0, len(gaps)):
        low, high = gaps[i]
        at = max(low, ready)
        if at + took <= high:
            gaps[i : i + 1] = [gap for gap in ((low, at), (at + took, high)) if gap[0] < gap[1]]
            return at
    return end
