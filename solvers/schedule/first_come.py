"""A schedule in the order of releases, in O(n log n): the plan that comes back whatever the limit."""

from __future__ import annotations

import heapq

import numpy as np

from gangplan.instances.arrays import FloatArray

from .prepare import NODES, POOL, Ints, PreparedJobs

BY = "first_come"
Held = list[tuple[int, int]]
"""(node, GPUs) that a job holds."""


def first_come(p: PreparedJobs) -> tuple[Ints, FloatArray, Ints] | None:
    """Return (option, start, rows) of jobs that start one after the other as they come; `None` if one is late.

    A job waits until its GPUs are free, and all behind it wait too. It takes the option that holds fewest GPU-seconds,
    its own wait included; if that ends too late, the one that is over first; then it is left out.
    """
    room = _FirstComeRoom(p)
    cost = p.gpus * p.seconds + p.total / 8 * p.seconds
    option, start = np.full(p.n, -1), np.zeros(p.n)
    rows: list[tuple[int, int, int]] = []
    release, due, price = p.release.tolist(), p.due.tolist(), p.price.tolist()
    seconds, gpus, costs = p.seconds.tolist(), p.gpus.tolist(), cost.tolist()
    now = 0.0
    for j in np.lexsort((p.deadline, p.release)).tolist():
        mine = sorted(p.options(j), key=costs.__getitem__)
        fastest = min(mine, key=seconds.__getitem__, default=None)
        for o in dict.fromkeys([*mine[:1], *([] if fastest is None else [fastest])]):
            at = room.free_at(gpus[o], max(now, release[j]), seconds[o])
            finish = at + seconds[o]
            if finish > due[o] or (not p.makespan and price[j] < p.slope[j] * finish):
                room.back()
                continue
            now = at if seconds[o] > 0 else now
            option[j], start[j] = o, at
            rows += [(j, v, amount) for v, amount in room.take(gpus[o], at, finish)]
            break
        else:
            if price[j] == float("inf"):
                return None
    return option, start, np.array(rows, dtype=np.int64).reshape(-1, 3).T


class _FirstComeRoom:
    """What is free now, and what runs, by its end; jobs are taken in the order of their starts."""

    def __init__(self, p: PreparedJobs) -> None:
        self.kind, self.per, self.free, self.nodes = p.kind, p.per, p.total, p.nodes
        self.running: list[tuple[float, int, Held]] = []
        self.ended: list[tuple[float, int, Held]] = []
        self.count = 0
        # of NODES: nodes by how many GPUs they have free, and that of each; a node may be listed where it no longer is
        self.idle: list[list[int]] = [[] for _ in range(p.per + 1)] if p.kind == NODES else []
        if p.kind == NODES:
            self.idle[p.per] = list(range(p.nodes))
            self.left = [p.per] * p.nodes
        self.blocks: dict[int, list[tuple[int, list[int]]]] = {}
        for b in range(len(p.size)):
            servers = p.server[p.block_first[b] : p.block_first[b + 1]].tolist()
            self.blocks.setdefault(int(p.size[b]), []).append((sum(1 << v for v in servers), servers))
        self.busy = 0

    def free_at(self, need: int, at: float, seconds: float) -> float:
        """Return when `need` GPUs are free, not before `at`; what ends until then is no longer held."""
        self.ended = []
        if seconds <= 0:
            return at
        while self.running and self.running[0][0] <= at:
            self._end()
        while not self._fits(need):
            at = max(at, self.running[0][0])
            self._end()
        while self.running and self.running[0][0] <= at:
            self._end()
        return at

    def take(self, need: int, at: float, end: float) -> Held:
        """Hold GPUs until `end` and return where; a job of no time is where it would fit on an idle cluster."""
        if end <= at:
            return self._anywhere(need)
        held = self._seat(need)
        self.count += 1
        heapq.heappush(self.running, (end, self.count, held))
        return [] if self.kind == POOL else held

    def back(self) -> None:
        for end, count, held in self.ended:
            for v, amount in held:
                self.free -= amount
                if self.kind == NODES:
                    self._list(v, self.left[v] - amount)
                elif self.kind != POOL:
                    self.busy |= 1 << v
            heapq.heappush(self.running, (end, count, held))

    def _fits(self, need: int) -> bool:
        if self.kind == POOL:
            return need <= self.free
        if self.kind != NODES:
            return any(not mask & self.busy for mask, _ in self.blocks[need])
        full, rest = divmod(need, self.per)
        whole = len(self._listed(self.per)) if full else 0
        if whole < full:
            return False
        return not rest or whole > full or any(self._any(amount) for amount in range(rest, self.per + (not full)))

    def _seat(self, need: int) -> Held:
        if self.kind == POOL:
            held = [(0, need)]
        elif self.kind == NODES:
            full, rest = divmod(need, self.per)
            held = [(self._pop(self.per), self.per) for _ in range(full)]
            had = [self.per] * full
            if rest:
                had.append(next(x for x in range(rest, self.per + 1) if self._any(x)))
                held.append((self._pop(had[-1]), rest))
            for (v, amount), before in zip(held, had, strict=True):
                self._list(v, before - amount)
        else:
            mask, servers = next(block for block in self.blocks[need] if not block[0] & self.busy)
            self.busy |= mask
            held = [(v, 1) for v in servers]
        self.free -= need
        return held

    def _end(self) -> None:
        self.ended.append(heapq.heappop(self.running))
        for v, amount in self.ended[-1][2]:
            self.free += amount
            if self.kind == NODES:
                self._list(v, self.left[v] + amount)
            elif self.kind != POOL:
                self.busy &= ~(1 << v)

    def _anywhere(self, need: int) -> Held:
        if self.kind == POOL:
            return []
        if self.kind != NODES:
            return [(v, 1) for v in self.blocks[need][0][1]]
        full, rest = divmod(need, self.per)
        return [(v, self.per) for v in range(full)] + ([(full, rest)] if rest else [])

    def _list(self, v: int, amount: int) -> None:
        self.left[v] = amount
        self.idle[amount].append(v)

    def _listed(self, amount: int) -> list[int]:
        self.idle[amount] = list(dict.fromkeys(v for v in self.idle[amount] if self.left[v] == amount))
        return self.idle[amount]

    def _any(self, amount: int) -> bool:
        while self.idle[amount] and self.left[self.idle[amount][-1]] != amount:
            self.idle[amount].pop()
        return bool(self.idle[amount])

    def _pop(self, amount: int) -> int:
        self._any(amount)
        v = self.idle[amount].pop()
        self.left[v] = -1  # listed anew by whoever takes it
        return v
