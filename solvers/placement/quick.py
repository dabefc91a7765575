"""A first plan in milliseconds: first fit over plain lists, where the limit leaves no time for a policy."""

from __future__ import annotations

from collections.abc import Collection
from math import floor, inf

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import TOLERANCE

from ..run import Run
from .build import order_of
from .gpu_assignment import as_plan
from .prepare import PreparedBatch, Rows

FIRST_FIT = "first_fit"
Need = list[tuple[tuple[float, ...], list[tuple[list[float], float]]]]
"""Cores, bytes and bytes/s that a task of each job occupies, and those above 0 beside what is free on the nodes."""
_FULL = 1 + TOLERANCE
"""Of a GPU, what shares may take."""
_TRIES = 3
"""Orders of the jobs that are tried, from the second on with shares beside others even where GPUs are idle."""


def quick(run: Run, batch: PreparedBatch) -> None:
    """Offer the plan that first fit finds, if it finds one: whatever the clock says, since it is the only one."""
    order = order_of(batch)
    for attempt in range(_TRIES):
        nodes = _FreeNodes(batch, dense=attempt > 0)
        if not all(nodes.rows[j] for j in batch.pinned):
            return
        failed = next((j for j in order if not nodes.place(j) and batch.jobs[j].value is None), None)
        if failed is None:
            run.offer(as_plan(batch, nodes.rows, nodes.held.__getitem__), FIRST_FIT)
            return
        if failed == order[0] and attempt:
            return
        order.remove(failed)
        order.insert(0, failed)


class _FreeNodes:
    """What is free on each node, which only gets less; a GPU holds `together` workers of one job."""

    def __init__(self, batch: PreparedBatch, *, dense: bool) -> None:
        self.batch, self.dense = batch, dense
        fleet = batch.problem.fleet
        self.gpus = fleet.gpus.tolist()
        self.free = (batch.amounts * (1 + TOLERANCE)).tolist()
        self.worker, self.server = self._need(batch.worker), self._need(batch.server)
        self.kind = batch.kind.tolist()
        self.each, self.share = batch.each.tolist(), batch.share.tolist()
        self.together = [
            floor((1 + TOLERANCE) / x) if x < 1 and n else 1 for x, n in zip(self.share, self.each, strict=True)
        ]
        self.used: dict[int, list[float]] = {}
        self.held: dict[int, list[dict[int, int]]] = {}
        self.rows: list[Rows] = [{} for _ in batch.jobs]
        self.at: list[set[int]] = [set() for _ in range(batch.n_nodes)]
        self.guarded = [False] * batch.n_nodes
        self.able: dict[object, list[int]] = {}
        self.room = [batch.room[j].tolist() for j in range(len(batch.jobs))]
        for j, rows in (*batch.pinned.items(), *((j, rows) for j, (rows, _) in batch.standing.items())):
            self._stay(j, rows)

    def _need(self, tasks: FloatArray) -> Need:
        rows = [*map(tuple, tasks.T.tolist())]
        kinds = {
            row: (row, [(a, x) for a, x in zip(self.free, row, strict=True) if x > 0]) for row in dict.fromkeys(rows)
        }
        return [kinds[row] for row in rows]

    def place(self, j: int) -> bool:
        if self.rows[j]:
            return True
        job = self.batch.jobs[j]
        found = self._open(j, job.workers[-1], self.worker)
        left = max((d for d in job.workers if d <= sum(found.values())), default=0)
        for node, room in found.items():
            if left:
                self._use(j, node, min(room, left), 0)
                left -= min(room, left)
        return bool(self.rows[j]) and self._serve(j)

    def _part(self, j: int) -> bool:
        return bool(self.each[j]) and self.share[j] < 1

    def _beside(self, j: int, node: int) -> list[int]:
        """Return how many workers of job j go beside the shares on each GPU of a node."""
        share = self.share[j]
        return [int((_FULL - x) / share) if x < _FULL else 0 for x in self.used.get(node, ())]

    def _deal(self, j: int, node: int, w: int) -> None:
        """Put w workers on idle GPUs, then beside others, if `dense` on no more idle ones than needed; or all off."""
        gpus = int(self.batch.problem.fleet.gpus[node])
        if node not in self.used:
            self.used[node], self.held[node] = [inf] * gpus, [{} for _ in range(gpus)]
        used, held = self.used[node], self.held[node]
        for card in range(gpus if w < 0 else 0):
            used[card] -= held[card].pop(j, 0) * self.share[j]
            if not held[card] and used[card] < inf:
                used[card] = inf
                self.gpus[node] += 1
        short = max(0, w - sum(self._beside(j, node)) if self.dense else w)
        most = max(0, min(self.gpus[node], -(-short // self.together[j])))
        idle = [card for card, x in enumerate(used) if x == inf][:most]
        for card in idle:
            used[card] = 0.0
        self.gpus[node] -= len(idle)
        room = self._beside(j, node)
        for card in (*idle, *(card for card, x in enumerate(room) if x)):
            count = min(w, room[card])
            if count > 0:
                held[card][j] = held[card].get(j, 0) + count
                used[card] += count * self.share[j]
                w -= count
                room[card] -= count

    def _serve(self, j: int) -> bool:
        """Put the servers of job j on its own nodes, then on others; take the job off if that fails."""
        left = self.batch.jobs[j].servers
        if left:
            own = {node: self._count(j, node, self.server) for node in self.rows[j]}
            for node, room in (own | self._open(j, left, self.server, own)).items():
                if room and left:
                    self._use(j, node, 0, min(room, left))
                    left -= min(room, left)
        if left:
            self._off(j)
        return not left

    def _open(self, j: int, most: int, need: Need, but: Collection[int] = ()) -> dict[int, int]:
        """Return nodes and their room, in order, until that is `most` tasks; one alone if it has it; none of `but`."""
        job = self.batch.jobs[j]
        cards = need is self.server or (self.each[j], self.share[j], tuple(self.room[j]))
        key = job.whole_nodes, job.where, need[j][0], cards
        if key not in self.able:
            self.able[key] = list(range(self.batch.n_nodes))
        able = self.able[key]
        found: dict[int, int] = {}
        kept: list[int] = []
        looked = total = 0
        for node in able:
            looked += 1
            room = self._count(j, node, need)
            if not room:
                continue
            kept.append(node)
            if node in but or not self.at[node].isdisjoint(self.batch.apart[j]):
                continue
            found[node] = room
            total += room
            if total >= most:
                found = {node: room} if room >= most else found
                break
        able[:looked] = kept
        return found

    def _count(self, j: int, node: int, need: Need) -> int:
        """Return how many workers, or servers, of job j the node has room for, not looking at who it is kept from."""
        workers = need is self.worker
        part = workers and self._part(j)
        if workers and not part and self.gpus[node] < self.each[j]:
            return 0
        here = self.at[node]
        if here and j not in here and (self.guarded[node] or self.batch.jobs[j].whole_nodes):
            return 0
        kind = self.kind[node]
        if workers:
            count: int = self.room[j][kind]
            if count and self.each[j]:
                beside = sum(self._beside(j, node)) if part else 0
                count = min(count, max(0, self.gpus[node]) // self.each[j] * self.together[j] + beside)
        else:
            count = self.batch.jobs[j].servers if self.batch.allowed[j, kind] else 0
        for free, x in need[j][1] if count else ():
            count = min(count, max(0, floor(free[node] / x)))
        return count

    def _stay(self, j: int, rows: Rows) -> None:
        for node, (w, p) in rows.items():
            able = self.at[node].isdisjoint(self.batch.apart[j]) and self._count(j, node, self.worker) >= w
            self._use(j, node, w, 0)
            able = able and self._count(j, node, self.server) >= p
            self._use(j, node, 0, p)
            if not able:
                self._off(j)
                return

    def _off(self, j: int) -> None:
        for node, (w, p) in list(self.rows[j].items()):
            self._use(j, node, -w, -p)

    def _use(self, j: int, node: int, w: int, p: int) -> None:
        """Put w workers and p servers of job j on a node; take all that it has there off if they are negative."""
        if self._part(j):
            self._deal(j, node, w)
        else:
            self.gpus[node] -= w * self.each[j]
        for count, need in ((w, self.worker), (p, self.server)):
            for free, x in need[j][1] if count else ():
                free[node] -= count * x
        if w < 0 or p < 0:
            del self.rows[j][node]
            self.at[node].discard(j)
        elif w or p:
            before = self.rows[j].get(node, (0, 0))
            self.rows[j][node] = before[0] + w, before[1] + p
            self.at[node].add(j)
        if self.batch.jobs[j].whole_nodes:
            self.guarded[node] = j in self.at[node]
