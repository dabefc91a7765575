"""A placement under construction: what is free, who meets whom, what each job costs; changed one gang at a time."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from gangplan.instances.arrays import IntArray
from gangplan.instances.placement import PlacementPlan
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.placement import Fragmentation

from .costs import Costs
from .gpu_assignment import as_plan, dislike, fewest, meeting, pack
from .prepare import PreparedBatch, Rows, fits, gpu_room


class PlacementState:
    """Rows of every job, with the goal kept up to date: a change touches only the jobs that meet it.

    Attributes:
        rows: of each job, empty while it is not placed.
        at: node -> job -> (workers, servers), of nodes in use.
        free_gpu: int (m,), idle GPUs, those counted that packing the shares leaves.
        free: cores, bytes and bytes/s of NICs, float64 (3, m).
        present: int (m, K), jobs of each model with workers on the node.
        taken, crossing: int (m,), jobs on the node, and those that use its NIC.
        cost: of each job, in the unit of the goal; for fragmentation that of its nodes, in equal parts with the others
            there.
        fragment: expected fragments of each node, float64 (m,); 0 unless they are the goal.
    """

    def __init__(self, batch: PreparedBatch) -> None:
        self.batch = batch
        fleet, jobs = batch.problem.fleet, batch.jobs
        self.free_gpu = fleet.gpus.astype(float)
        self.free = batch.amounts.copy()
        self.present = np.zeros((fleet.n_nodes, len(batch.problem.speeds.models)), dtype=np.int32)
        self.taken = np.zeros(fleet.n_nodes, dtype=np.int32)
        self.crossing = np.zeros(fleet.n_nodes, dtype=np.int32)
        self.guarded = np.zeros(fleet.n_nodes, dtype=np.int32)
        self.held: dict[int, list[dict[int, int]]] = {}
        self._gpus, self._amounts = fleet.gpus.tolist(), batch.amounts.T.tolist()
        needs = batch.each, batch.share, batch.worker.T, batch.server.T
        self._need = list(zip(*(x.tolist() for x in needs), strict=True))
        self._model = batch.model.tolist()
        self.fragment = np.zeros(fleet.n_nodes)
        self._measure: Fragmentation | None = None
        self._costs = costs = Costs(batch, self.fragment)
        self.rows, self.at = costs.rows, costs.at
        self.cost = [costs.cost(j) for j in range(len(jobs))]
        if batch.problem.goal == "fragmentation":
            self._measure = Fragmentation(batch.problem)
            self._loose = [True] * fleet.n_nodes
            for node in range(fleet.n_nodes):
                self._fragment(node)
        self.total = self._sum()

    def add(self, j: int, rows: Rows) -> None:
        """Place job j, which is not placed, on `rows`; call `settle` before the next look at costs."""
        self._costs.enter(j, rows)
        self._count(j, rows, 1)

    def remove(self, j: int) -> Rows:
        """Take job j off its nodes and return where it was; call `settle` before the next look at costs."""
        rows = self._costs.leave(j)
        self._count(j, rows, -1)
        return rows

    def _count(self, j: int, rows: Rows, sign: int) -> None:
        """Bring what nodes have up to date where job j came or went."""
        guard = sign * self.batch.jobs[j].whole_nodes
        for node, task in rows.items():
            self.taken[node] += sign
            self.guarded[node] += guard
            if task[0]:
                self.present[node, self._model[j]] += sign
            self._refresh(node)
        if len(rows) > 1:  # node by node they are the members of the lowest level
            self.crossing[list(rows)] += sign

    def settle(self) -> float:
        """Bring the costs up to date and return their sum."""
        coarse = False
        for j in self._costs.settle():
            before, self.cost[j] = self.cost[j], self._costs.cost(j)
            self.total += self.cost[j] - before
            coarse = coarse or max(before, self.cost[j]) >= self._costs.unplaced
        if coarse:
            self.total = self._sum()  # the large figure swallowed the last digits
        return self.total

    def exact(self) -> float:
        """Return the sum of costs, added up afresh: running sums drift in the last digits."""
        self.settle()
        self.total = self._sum()
        return self.total

    def room(self, j: int) -> IntArray:
        """Return how many workers of job j, which is not placed, each node could take now, (m,)."""
        batch = self.batch
        room = np.minimum(batch.room[j][batch.kind], gpu_room(self.free_gpu, batch.each[j], batch.share[j]))
        for free, has, need in zip(self.free, batch.amounts, batch.worker[:, j], strict=True):
            if need:
                room = np.minimum(room, fits(free, need, has))
        if batch.share[j] < 1 and batch.each[j]:
            for node in self.held:
                room[node] = min(self._share_room(j, node), batch.room[j][batch.kind[node]])
        return self._open(j, np.asarray(room, dtype=np.int32))

    def server_room(self, j: int, workers: Rows) -> IntArray:
        """Return how many servers of job j each node could take beside `workers`, its own rows to be, (m,)."""
        batch = self.batch
        left = self.free.copy()
        for node, (w, _) in workers.items():
            left[:, node] -= w * batch.worker[:, j]
        room = fits(left, batch.server[:, j, None], batch.amounts).min(axis=0)
        room = np.where(batch.allowed[j][batch.kind], np.minimum(room, batch.jobs[j].servers), 0.0)
        return self._open(j, np.asarray(room, dtype=np.int32))

    def holds(self, j: int, node: int, workers: int, servers: int) -> bool:
        """Return whether a node could take so many tasks of job j, which is not placed: `room` for one node."""
        batch, job, kind = self.batch, self.batch.jobs[j], self.batch.kind[node]
        if self.guarded[node] or (job.whole_nodes and self.taken[node]):
            return False
        if any(node in self.rows[other] for other in batch.apart[j]) or servers > job.servers:
            return False
        if workers > batch.room[j][kind] or (servers and not batch.allowed[j][kind]):
            return False
        each, share, *needs = self._need[j]
        for left, whole, one, other in zip(self.left(node), self._amounts[node], *needs, strict=True):
            taken = workers * one + servers * other
            if taken > 0 and taken > left + TOLERANCE * whole:
                return False
        if not workers or not each:
            return True
        return self._share_room(j, node) >= workers if share < 1 else workers * each <= self.free_gpu[node]

    def plan(self) -> PlacementPlan:
        """Return the placement as a plan."""
        return as_plan(self.batch, self.rows, lambda node: self.held[node])

    def snapshot(self) -> list[Rows]:
        """Return the rows of all jobs, to come back to by `restore`."""
        return list(self.rows)

    def restore(self, rows: list[Rows]) -> None:
        """Go back to a snapshot."""
        changed = [j for j, row in enumerate(rows) if row is not self.rows[j] and row != self.rows[j]]
        for j in changed:
            self.remove(j)
        for j in changed:
            if rows[j]:
                self.add(j, rows[j])
        self.settle()

    def complete(self) -> bool:
        """Return whether all jobs are placed, or may be left out."""
        return all(rows or job.value is not None for rows, job in zip(self.rows, self.batch.jobs, strict=True))

    def _open(self, j: int, room: IntArray) -> IntArray:
        room[self.guarded > 0] = 0
        if self.batch.jobs[j].whole_nodes:
            room[self.taken > 0] = 0
        for other in self.batch.apart[j]:
            room[list(self.rows[other])] = 0
        return np.maximum(room, 0)

    def _refresh(self, node: int) -> None:
        here = self.at[node]
        cpu = memory = nic = 0.0
        for j, (w, p) in here.items():
            _, _, worker, server = self._need[j]
            cpu += w * worker[0] + p * server[0]
            memory += w * worker[1] + p * server[1]
            nic += w * worker[2] + p * server[2]
        has = self._amounts[node]
        self.free[:, node] = has[0] - cpu, has[1] - memory, has[2] - nic
        if node in self.held:
            del self.held[node], self._costs.meets[node]
        shares, left = self.shares(node)
        if shares:
            held = pack(sorted(shares), left, lambda a, b: dislike(self.batch, a, b))  # whatever order they came in
            assert held is not None, "the shares on a node were checked to fit before they came"
            self.held[node] = held
            self._costs.meets[node] = meeting(held)
            left -= fewest(shares, left) or 0
        self.free_gpu[node] = left
        if self._measure is not None:
            if self._loose[node]:
                self.total -= float(self.fragment[node])
            self._fragment(node)
            self._loose[node] = not here
            if not here:
                self.total += float(self.fragment[node])

    def _fragment(self, node: int) -> None:
        assert self._measure is not None
        self.fragment[node] = self._measure(node, self.idle(node), self.left(node))

    def left(self, node: int) -> tuple[float, float, float]:
        """Return cores, bytes and bytes/s of the NIC that are free on a node."""
        cpu, memory, nic = self.free[:, node].tolist()
        return cpu, memory, nic

    def idle(self, node: int) -> list[float]:
        """Return what is free of each GPU of a node that is not taken as a whole, the emptiest first."""
        held = [
            sum(float(self.batch.share[j]) * n for j, n in card.items()) for card in self.held.get(node, []) if card
        ]
        empty = self.shares(node)[1] - len(held)
        return [*[1.0] * empty, *sorted((max(0.0, 1 - x) for x in held), reverse=True)]

    def _sum(self) -> float:
        return sum(self.cost) + (float(self.fragment[self.taken == 0].sum()) if self._measure is not None else 0.0)

    def _share_room(self, j: int, node: int) -> int:
        """Return how many tasks of job j, each a share of a GPU, fit beside the shares on the node."""
        batch = self.batch
        room = fits(self.free[:, node], batch.worker[:, j], batch.amounts[:, node])
        most = min(int(room.min()), batch.jobs[j].workers[-1])

        def full(count: int) -> bool:
            return pack(*self.shares(node, j, count + 1), lambda a, b: 0.0) is None

        return bisect_left(range(most), True, key=full)

    def shares(self, node: int, j: int = -1, workers: int = 0) -> tuple[list[tuple[int, float, int]], int]:
        """Return what shares GPUs on a node with so many workers of job j there too, and the GPUs left for it."""
        items, left = list[tuple[int, float, int]](), self._gpus[node]
        for i, (w, _) in [*self.at[node].items(), *([(j, (workers, 0))] if workers else [])]:
            each, share, *_ = self._need[i]
            if share < 1 and each and w:
                items.append((i, share, w))
            elif share == 1:
                left -= w * each
        return items, left
