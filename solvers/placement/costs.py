"""What a job costs where it is: `rate.rates` and the goals for one job of a placement under construction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.rate import pair_seconds, pairs, ring_bytes

from .prepare import Batch, Rows


class Costs:
    """Reads the rows and links that a `State` keeps.

    Args:
        at: node -> job -> (workers, servers).
        meets: node -> job -> GPUs that it shares.
        crossers: for each level, member -> jobs that cross it there.
        touched: for each job and each level that it crosses, the members it is in.
        fragment: expected fragments of each node, if they are the goal.
    """

    def __init__(
        self,
        batch: Batch,
        rows: list[Rows],
        at: Mapping[int, Rows],
        meets: Mapping[int, Mapping[int, set[int]]],
        crossers: list[defaultdict[int, set[int]]],
        touched: list[list[set[int]]],
        fragment: FloatArray | None = None,
    ) -> None:
        self.batch, self.rows, self.at, self.meets = batch, rows, at, meets
        self.crossers, self.touched = crossers, touched
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

    def cost(self, j: int, compute: float, sync: float) -> float:
        """Return what job j adds to the goal with these seconds of compute and synchronisation, or left out."""
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
        step = max(compute, (1 - self._overlap[j]) * compute + sync)
        slowdown: float = self._best[j] * step / sum(w for w, _ in rows.values())
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


def most_communication(batch: Batch) -> float:
    """Return no less than the communication of any placement: all pairs of GPUs where that takes longest."""
    inside, across = pair_seconds(batch.problem.fleet)
    gpus = batch.each * np.array([job.workers[-1] for job in batch.jobs])
    return float(batch.weight @ pairs(gpus)) * max(float(inside.max()), float(across.max()))
