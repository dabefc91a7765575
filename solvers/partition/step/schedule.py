"""From a placement and an order to a schedule: everything as early as it can, feasible whatever the order.

Serial schedule generation (Kolisch, EJOR 1996): one op after the other, each into the first gap of its device that
holds it. Ordered by the start times of an optimal plan without contention it gives an optimal plan, so a search over
placements and orders loses nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.graph import topological_order

from .model import Prepared, rows

Sent = dict[tuple[int, int], float]
"""When each transfer starts, by (op, receiving device), seconds."""


class OpDecoder:
    """The prepared problem as plain lists, which a loop over single ops reads fastest."""

    def __init__(self, p: Prepared) -> None:
        self.p = p
        self.before, self.after = rows(p.predecessors), rows(p.successors)
        by_type = p.time.tolist()
        self.seconds: list[list[float]] = [by_type[t] for t in p.type_of.tolist()]
        # the row -1 is for level -1, one device
        self.delay: list[list[float]] = [*p.delay.tolist(), [0.0] * p.n]
        self.level: list[list[int]] = p.level.tolist()

    def times(self, device: Sequence[int], order: Sequence[int]) -> tuple[list[float], list[float], Sent]:
        """Return when each op starts and ends, and with contention each transfer; every edge is forward in `order`."""
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
    """

    def __init__(self, decoder: OpDecoder) -> None:
        self.decoder = decoder
        n = len(decoder.before)
        self.start, self.finish = [0.0] * n, [0.0] * n
        self.device = [-1] * n
        self.sent = Sent()
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

    def put(self, v: int, d: int) -> None:
        """Put op v on device d; all ops before it are in."""
        ready, took = self._ready(v, d)[0], self.decoder.seconds[d][v]
        self.device[v] = d
        self.start[v] = at = self._busy[d].first(ready, took)
        self.finish[v] = at + took
        self._busy[d].take(at, took)

    def _ready(self, v: int, d: int) -> tuple[float, list[tuple[tuple[int, int], list[Busy], float]]]:
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


def as_plan(p: Prepared, device: Sequence[int], start: Sequence[float], sent: Sent) -> StepPlan:
    """Return the plan of these times."""
    made = sorted(sent)
    op, receiver = np.array(made, dtype=np.int32).reshape(-1, 2).T
    at = np.array([sent[pair] for pair in made])
    return StepPlan(p.problem.graph.names, np.array(device, np.int32), np.array(start), op, receiver, at)


def sent_of(plan: StepPlan) -> Sent:
    """Return when each transfer of a plan starts."""
    pairs = zip(plan.sent.tolist(), plan.receiver.tolist(), strict=True)
    return dict(zip(pairs, plan.sent_at.tolist(), strict=True))


class Busy:
    """The stretches in which a device or a link is taken, in order."""

    __slots__ = ("end", "start")

    def __init__(self) -> None:
        self.start: list[float] = []
        self.end: list[float] = []

    def first(self, ready: float, took: float) -> float:
        """Return the earliest start from `ready` on."""
        start, end = self.start, self.end
        for i in range(bisect_right(end, ready), len(start)):
            if ready + took <= start[i]:
                return ready
            ready = max(ready, end[i])
        return ready

    def take(self, at: float, took: float) -> None:
        """Book the time; nothing may run across what takes none."""
        i = bisect_right(self.start, at)
        first, last = at, at + took
        if first == last and i and self.start[i - 1] == at:
            return
        low, high = i, i
        if i and self.end[i - 1] == first:
            low, first = i - 1, self.start[i - 1]
        if i < len(self.start) and self.start[i] == last:
            high, last = i + 1, self.end[i]
        self.start[low:high], self.end[low:high] = [first], [last]

    def give_back(self, at: float, took: float) -> None:
        """Undo `take`; of several that begin at once and are too short to move the clock, the first undoes all."""
        i = bisect_right(self.start, at) - 1
        if i < 0 or self.end[i] < at:
            return
        rest = [(a, b) for a, b in ((self.start[i], at), (at + took, self.end[i])) if a < b]
        self.start[i : i + 1], self.end[i : i + 1] = [a for a, _ in rest], [b for _, b in rest]


def common_gap(way: list[Busy], ready: float, took: float) -> float:
    """Return the earliest start from `ready` on at which all links of a way are free."""
    while True:
        before = ready
        for link in way:
            ready = link.first(ready, took)
        if ready == before:
            return ready


_Key = tuple[float, float, int, int, int]
"""Given start, duration, rank, receiver or -1 for an op, op: what takes no time goes before what starts with it."""


def retime(p: Prepared, device: IntArray, start: FloatArray, sent_at: Sent | None = None) -> StepPlan:
    """Return the plan in which every device and every link keeps its order and all is as early as it can.

    The result holds to the last digit, and no time in it is later than the given one if those were feasible.

    Args:
        start: of each op, (n,); only the order matters.
        sent_at: of each transfer that takes time, by (op, receiver); one that is missing goes when its op ends.
            Without contention unused.
    """
    decoder, where = OpDecoder(p), np.asarray(device).tolist()
    tasks = _tasks(p, decoder, where, np.asarray(start).tolist(), sent_at or {})
    first, finish, sent = [0.0] * p.n, [0.0] * p.n, Sent()
    free = [0.0] * (p.n_devices + (len(p.links.names) if p.contention else 0))
    for _, took, _, d, v in tasks:
        here = where[v]
        if d < 0:
            came = ((u, decoder.delay[decoder.level[where[u]][here]][u]) for u in decoder.before[v])
            early = max((sent.get((u, here), finish[u]) + delay for u, delay in came), default=0.0)
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
    return as_plan(p, where, first, sent)


def _tasks(p: Prepared, decoder: OpDecoder, device: list[int], start: list[float], sent_at: Sent) -> list[_Key]:
    """Return the keys of ops and transfers in an order in which each comes after what it waits for, else the least."""
    rank = p.rank.tolist()
    took = [decoder.seconds[d][v] for v, d in enumerate(device)]
    # by op and receiver of its output, or -1 for the op itself
    keys: dict[tuple[int, int], _Key] = {(v, -1): (start[v], took[v], rank[v], -1, v) for v in range(p.n)}
    edges = []
    for u, row in enumerate(decoder.after):
        for v in row:
            d = device[v]
            seconds = decoder.delay[decoder.level[device[u]][d]][u] if p.contention else 0.0
            if seconds > 0 and (u, d) not in keys:
                keys[u, d] = (sent_at.get((u, d), start[u] + took[u]), seconds, rank[u], d, u)
                edges.append(((u, -1), (u, d)))
            # a consumer waits for the transfer in place of the op
            edges.append(((u, d) if seconds > 0 else (u, -1), (v, -1)))
    tasks = sorted(keys.values())
    number = {(v, d): i for i, (_, _, _, d, v) in enumerate(tasks)}
    ends = np.array([(number[a], number[b]) for a, b in edges], dtype=np.int32).reshape(-1, 2)
    return [tasks[i] for i in topological_order(len(tasks), ends[:, 0], ends[:, 1]).tolist()]


def mean_rank(p: Prepared) -> list[float]:
    """Return HEFT's upward rank in seconds (Topcuoglu, Hariri, Wu, IEEE TPDS 2002, Eq. 3): mean times, mean delays."""
    able = p.time < float("inf")
    count = np.bincount(p.type_of, minlength=len(p.time)).astype(float)
    took = ((count @ np.where(able, p.time, 0.0)) / (count @ able).clip(min=1.0)).tolist()
    return _upward(p, took, _mean_delay(p).tolist())


def _mean_delay(p: Prepared) -> FloatArray:
    if not len(p.used_levels):
        return p.fastest * 0.0
    pairs = [(p.level == x).sum() for x in p.used_levels]
    total = sum(n * p.delay[x] for n, x in zip(pairs, p.used_levels.tolist(), strict=True))
    return total / p.n_devices**2  # type: ignore[no-any-return]


def _upward(p: Prepared, took: Sequence[float], delay: Sequence[float]) -> list[float]:
    rank = list(took)
    first, index = p.successors[0].tolist(), p.successors[1].tolist()
    for v in p.order[::-1].tolist():
        if first[v] < first[v + 1]:
            rank[v] += delay[v] + max([rank[w] for w in index[first[v] : first[v + 1]]])
    return rank


def ranked(p: Prepared, rank: Sequence[float]) -> list[int]:
    """Return the ops by falling rank, every edge forward; ties in topological order."""
    return sorted(p.order.tolist(), key=rank.__getitem__, reverse=True)
