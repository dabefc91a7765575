"""How little time one unit of a series can take, by best-first search over its placements."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import numpy as np

from .delays import delayed_length
from .model import Prepared
from .one_machine import one_machine
from .series import Half, Unit

INFINITE = float("inf")


class UnitSearch:
    """Lower bounds on the seconds of a unit, joints left out, that grow with the work spent.

    A node is a device for each of the first groups; its bound is, for each half, the longest path with the delays
    between groups that are placed, and for each device the preemptive one-machine bound of the ops on it (Jackson;
    Carlier, EJOR 1982). The least bound of all open nodes holds for every placement.

    Args:
        p: the problem; delays, device types and colocation count, memory does not.
        unit: of a series.
        spans: whether a placement is wanted, given the devices in use; others are left out.
    """

    def __init__(self, p: Prepared, unit: Unit, spans: Callable[[set[int]], bool]) -> None:
        self.unit, self.spans = unit, spans
        self.level = p.level.tolist()
        self.delay = [*p.delay.tolist(), [0.0] * p.n]
        self.seconds = [p.time[t].tolist() for t in p.type_of.tolist()]
        self.fastest = p.fastest.tolist()
        self.allowed = p.allowed
        self.alike = _alike(p)
        self.place = {g: i for i, g in enumerate(unit.groups)}
        self.group = [[self.place[int(p.group_of[v])] for v in half.ops] for half in unit.halves]
        self.tick, self.opened = count(), 0
        self.open: list[tuple[float, int, int, tuple[int, ...]]] = [(self._bound(()), 0, 0, ())]
        self.done = False
        # no placement at all is needed for this one
        self.floor = sum(delayed_length(p, half) for half in unit.halves)

    @property
    def bound(self) -> float:
        """No placement takes less, seconds; infinite if there is none."""
        return max(self.floor, self.open[0][0]) if self.open else INFINITE

    def work(self, nodes: int) -> None:
        """Open so many nodes more, or as many as it takes until the bound is that of a whole placement."""
        for _ in range(nodes):
            if self.done or not self.open:
                self.done = True
                return
            _, _, _, where = self.open[0]
            if len(where) == len(self.unit.groups):
                self.done = True
                return
            heappop(self.open)
            self.opened += 1
            g = self.unit.groups[len(where)]
            for d in self._choices(where):
                if not self.allowed[g, d]:
                    continue
                child = (*where, d)
                if len(child) == len(self.unit.groups) and not self.spans(set(child)):
                    continue
                value = self._bound(child)
                if value < INFINITE:
                    # of equals the one that is furthest
                    heappush(self.open, (value, -len(child), next(self.tick), child))

    def _choices(self, where: tuple[int, ...]) -> list[int]:
        """Return the devices in use, and of those that are alike the first."""
        used, found = set(where), []
        seen: set[tuple[object, ...]] = set()
        # a server that is in use is unlike one that is not
        busy = {self.alike[d][0] for d in used}
        for d, (server, twin, kind) in enumerate(self.alike):
            key = ("device", server, twin) if server in busy else ("server", *kind)
            if d in used or key not in seen:
                found.append(d)
            if d not in used:
                seen.add(key)
        return found

    def _bound(self, where: tuple[int, ...]) -> float:
        return sum(self._half(half, group, where) for half, group in zip(self.unit.halves, self.group, strict=True))

    def _half(self, half: Half, group: list[int], where: tuple[int, ...]) -> float:
        n, placed = len(half.ops), len(where)
        device = [where[g] if g < placed else -1 for g in group]
        took = [self.fastest[v] if d < 0 else self.seconds[d][v] for v, d in zip(half.ops, device, strict=True)]
        took[0] = took[-1] = 0.0
        if max(took) == INFINITE:
            return INFINITE
        head, tail = [0.0] * n, [0.0] * n
        edges = []
        for u, w in half.edges:
            a, b = device[u], device[w]
            away = 0.0 if a == b or a < 0 or b < 0 else self.delay[self.level[a][b]][half.ops[u]]
            edges.append((u, w, away))
            head[w] = max(head[w], head[u] + took[u] + away)
        for u, w, away in reversed(edges):
            tail[u] = max(tail[u], away + took[w] + tail[w])
        best = head[-1]
        for d in set(where):
            jobs = [(head[i], took[i], tail[i]) for i in range(n) if device[i] == d and took[i] > 0]
            if len(jobs) > 1:
                best = max(best, one_machine(jobs))
        return best


def _alike(p: Prepared) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return the server, the twin class, and what an idle device is alike to: another in an equal idle server.

    In a tree of at most two levels whole servers of equal devices may be swapped; elsewhere only twins.
    """
    near = p.used_levels[:1]
    server = np.arange(p.n_devices)
    if len(near):
        server = np.where((p.level == near[0]) | (p.level < 0), np.arange(p.n_devices), p.n_devices).min(axis=1)
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for d in range(p.n_devices):
        kind: tuple[int, ...] = (-1, int(server[d]), int(p.twins[d]))
        if len(p.delay) <= 2:
            kind = (int(p.type_of[d]), *sorted(p.type_of[server == server[d]].tolist()))
        found.append((int(server[d]), int(p.twins[d]), kind))
    return found
