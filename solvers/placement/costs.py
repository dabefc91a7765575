"""What a job costs where it is, `rate.rates` and the goals for one job, as gangs come and go one at a time."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.rate import pair_seconds, pairs, ring_bytes

from .prepare import PreparedBatch, Rows


class Costs:
    """Who meets whom: a change touches only the jobs on its nodes and links.

    Attributes:
        rows: of each job, empty while it is nowhere.
        at: node -> job -> (workers, servers).
        meets: node -> job -> GPUs that it shares, which others keep.
        crossers: for each level, member -> jobs that cross it there.
        touched: for each job and each level that it crosses, the members it is in.

    Args:
        fragment: expected fragments of each node, if they are the goal.
    """

    def __init__(self, batch: PreparedBatch, fragment: FloatArray | None = None) -> None:
        self.batch, self.rows = batch, [Rows() for _ in batch.jobs]
        self.at: defaultdict[int, Rows] = defaultdict(dict)
        self.meets: dict[int, dict[int, set[int]]] = {}
        self.crossers: list[defaultdict[int, set[int]]] = [defaultdict(set) for _ in batch.bandwidth]
        self.touched: list[list[set[int]]] = [[] for _ in batch.jobs]
        self._compute, self._sync = [0.0] * len(batch.jobs), [0.0] * len(batch.jobs)
        self._slower, self._later = set[int](), set[int]()
        self._timed = batch.problem.goal in ("slowdown", "throughput")
        self.fragment = np.zeros(batch.n_nodes) if fragment is None else fragment
        self._kind, self._model = batch.kind.tolist(), batch.model.tolist()
        self._alone = batch.alone.tolist()
        self._host, self._gpu = batch.problem.speeds.host.tolist(), batch.problem.speeds.gpu.tolist()
        self._gradient, self._overlap = batch.gradient.tolist(), batch.overlap.tolist()
        self._best, self._duty = batch.best.tolist(), batch.duty.tolist()
        self._parent = [
            dict(zip(low, high, strict=True)) for low, high in zip(batch.members, batch.members[1:], strict=False)
        ]
        # leaving out a job that must be placed: more than any place costs, as far as unfinished placements compare
        self.unplaced = 1e6 * max(1.0, float(batch.weight.sum()))
        if batch.problem.goal == "communication":
            self.unplaced = 2 * max(self.unplaced, most_communication(batch))
        self._each = batch.each.tolist()
        inside, across = pair_seconds(batch.problem.fleet)
        self._inside, self._across = inside.tolist(), across.tolist()

    def enter(self, j: int, rows: Rows) -> None:
        """Have job j, which is nowhere, on `rows`; call `settle` before the next look at costs."""
        self.rows[j] = rows
        for node, task in rows.items():
            here = self.at[node]
            self._slower.update(here)
            here[j] = task
        for level, members in enumerate(self.batch.members[:-1]):
            touched = {members[node] for node in rows}
            if len(touched) == 1:
                break
            self.touched[j].append(touched)
            for member in touched:
                self._later |= self.crossers[level][member]
                self.crossers[level][member].add(j)
        self._slower.add(j)
        self._later.add(j)

    def leave(self, j: int) -> Rows:
        """Take job j off its nodes and return where it was; call `settle` before the next look at costs."""
        rows, self.rows[j] = self.rows[j], {}
        for node in rows:
            del self.at[node][j]
            self._slower.update(self.at[node])
        for level, touched in enumerate(self.touched[j]):
            for member in touched:
                self.crossers[level][member].discard(j)
                self._later |= self.crossers[level][member]
        self.touched[j] = []
        self._slower.add(j)
        return rows

    def settle(self) -> set[int]:
        """Bring the seconds of jobs up to date, and return those for which they may have changed."""
        if self._timed:
            for j in self._slower:
                self._compute[j] = self.compute(j)
            for j in self._later:
                self._sync[j] = self.sync(j) if self.rows[j] else 0.0
        changed = self._slower | self._later
        self._slower.clear()
        self._later.clear()
        return changed

    def step(self, j: int) -> float:
        """Return the seconds of a step of job j."""
        compute = self._compute[j]
        seconds: float = max(compute, (1 - self._overlap[j]) * compute + self._sync[j])
        return seconds

    def cost(self, j: int) -> float:
        """Return what job j adds to the goal where it is, or left out."""
        job, rows = self.batch.jobs[j], self.rows[j]
        moved = 0.0
        if j in self.batch.standing:
            standing, migration = self.batch.standing[j]
            moved = migration if rows != standing else 0.0
        if not rows:
            return moved + (self.unplaced if job.value is None else job.value)
        if self.batch.problem.goal == "communication":
            return moved + job.weight * self.communication(j)
        if self.batch.problem.goal == "fragmentation":
            return moved + sum(float(self.fragment[node]) / len(self.at[node]) for node in rows)
        slowdown: float = self._best[j] * self.step(j) / sum(w for w, _ in rows.values())
        if self.batch.problem.goal == "slowdown":
            return moved + job.weight * slowdown
        return moved + job.weight * max(0.0, 1 - 1 / slowdown)

    def communication(self, j: int) -> float:
        """Return the communication cost of job j, as `gangplan.instances.placement.rate.communication` does."""
        each = self._each[j]
        held = {node: w * each for node, (w, _) in self.rows[j].items() if w and each}
        total: float = sum(n * (n - 1) / 2 * self._inside[node] for node, n in held.items())
        below = sum(n * (n - 1) / 2 for n in held.values())
        for level, seconds in enumerate(self._across):
            if len(held) < 2:
                break
            groups: defaultdict[int, int] = defaultdict(int)
            for member, n in held.items():
                groups[self._parent[level][member]] += n
            within = sum(n * (n - 1) / 2 for n in groups.values())
            total += seconds * (within - below)
            held, below = groups, within
        return total

    def compute(self, j: int) -> float:
        """Return the seconds of compute of the slowest worker of job j."""
        alone, model, worst = self._alone[j], self._model[j], 0.0
        host, gpu = self._host[model], self._gpu[model]
        for node, (w, _) in self.rows[j].items():
            if not w:
                continue
            slower, here = 1.0, self.at[node]
            if len(here) > 1:
                meets = self.meets.get(node, {})
                cards = meets.get(j, set())
                for i, (workers, _) in here.items():
                    if i != j and workers:
                        slower += (host if cards.isdisjoint(meets.get(i, ())) else gpu)[self._model[i]]
            worst = max(worst, alone[self._kind[node]] * slower)
        return worst

    def sync(self, j: int) -> float:
        """Return what `rate.rates` calls the synchronisation of job j."""
        batch, rows = self.batch, self.rows[j]
        size, job = self._gradient[j], batch.jobs[j]
        rate = [
            batch.bandwidth[level] / max(self._gangs(j, level, member) for member in touched)
            for level, touched in enumerate(self.touched[j])
        ]
        if job.collective == "ps":
            return self._through(j)
        local, workers, most = float("inf"), 0, 0
        for node, (w, _) in rows.items():
            workers += w
            most = max(most, w)
            if w > 1 and batch.link[node] < local:
                local = batch.link[node]
        if job.collective == "hierarchical":
            seconds = ring_bytes(most, size) / local if most > 1 else 0.0
            speed = local
            for level, touched in enumerate(self.touched[j]):
                parents: defaultdict[int, int] = defaultdict(int)
                for member in touched:
                    parents[self._parent[level][member]] += 1
                # the slowest link so far holds up every later phase, but not that of the nodes
                speed = rate[level] if level == 0 else min(speed, rate[level])
                n = max(parents.values())
                seconds += ring_bytes(n, size) / speed if n > 1 else 0.0
            return seconds
        moved = ring_bytes(workers, size) if job.collective == "ring" else 2 * size * (workers > 1)
        return moved / min([local, *rate])

    def _gangs(self, j: int, level: int, member: int) -> float:
        """Return by how many gangs a link that job j crosses is shared: itself and the duties of the others."""
        crossers = self.crossers[level][member]
        if self.batch.even:
            return len(crossers)
        others: float = sum(self._duty[i] for i in crossers if i != j)
        return 1 + others

    def _through(self, j: int) -> float:
        batch, rows = self.batch, self.rows[j]
        size, servers = self._gradient[j], batch.jobs[j].servers
        workers = sum(w for w, _ in rows.values())
        worst: float = max(size * w * p / servers / batch.link[node] for node, (w, p) in rows.items())
        for level in range(len(self.touched[j])):
            here: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
            members = batch.members[level]
            for node, (w, p) in rows.items():
                entry = here[members[node]]
                entry[0] += w
                entry[1] += p
            bandwidth = batch.bandwidth[level]
            for member, (w, p) in here.items():
                moved = size * (w * (servers - p) + p * (workers - w)) / servers
                worst = max(worst, moved * self._gangs(j, level, member) / bandwidth)
        return worst


def most_communication(batch: PreparedBatch) -> float:
    """Return no less than the communication of any placement: all pairs of GPUs where that takes longest."""
    inside, across = pair_seconds(batch.problem.fleet)
    gpus = batch.each * np.array([job.workers[-1] for job in batch.jobs])
    return float(batch.weight @ pairs(gpus)) * max(float(inside.max()), float(across.max()))
