"""Local search on plans: move one group at a time off the busiest devices."""

from __future__ import annotations

import numpy as np

from gangplan.instances import PartitionPlan, verify

from ...run import Run
from .evaluate import Loads, StageLoad
from .quotient import Quotient


def local_search(run: Run, q: Quotient, rounds: int = 200) -> None:
    """Improve the best plan by single moves until no move helps; do nothing if there is none.

    A move takes a group from the busiest device to one where both devices end below the old maximum. After
    a dead end, some random moves restart the search from the best plan; `rounds` such restarts at most.
    """
    if run.plan is None:
        return
    rng = np.random.default_rng(run.seed)
    search = _Search(q, run.plan)
    best = search.device.copy()
    for _ in range(rounds):
        while not run.stopped and search.improve():
            pass
        if run.stopped:
            return
        plan = search.plan()
        if verify(run.problem, plan).ok and run.offer(plan, "local search"):
            best = search.device.copy()
        search = _Search(q, plan, best)
        search.shake(rng)


class _Search:
    def __init__(self, q: Quotient, plan: PartitionPlan, device: np.ndarray | None = None) -> None:
        self.q = q
        cluster = q.problem.cluster
        first = np.unique(q.group_of, return_index=True)[1]
        self.device = plan.device[first].astype(int) if device is None else device.copy()
        self.stage_of = dict(zip(plan.device.tolist(), plan.stage.tolist(), strict=True))
        loads = Loads(q)
        self.kind = cluster.type_of.tolist()
        self.devices: list[StageLoad] = [loads.stage(t) for t in self.kind]
        for g, d in enumerate(self.device.tolist()):
            self.devices[d].add(g)
        self.members: list[set[int]] = [set(np.flatnonzero(self.device == d).tolist()) for d in range(len(self.kind))]

    def plan(self) -> PartitionPlan:
        """Return the plan; devices in use are stages, in the order of the pipeline they came from."""
        used = sorted(set(self.device.tolist()), key=lambda d: (self.stage_of.get(d, len(self.kind)), d))
        rank = {d: s for s, d in enumerate(used)}
        device = self.device.astype(np.int32)[self.q.group_of]
        stage = np.array([rank[d] for d in device.tolist()], dtype=np.int32)
        return PartitionPlan(self.q.problem.graph.names, device, stage)

    def improve(self) -> bool:
        """Make the move off the busiest device that leaves the lower of both loads; return whether there was one."""
        top = max(range(len(self.devices)), key=lambda d: self.devices[d].load)
        peak = self.devices[top].load
        best: tuple[float, int, int] | None = None
        for g in sorted(self.members[top]):
            rest = self.devices[top].after(g, -1)
            if rest >= peak * (1 - 1e-12):
                continue
            for d in self._targets(g):
                worst = max(rest, self.devices[d].after(g, 1))
                if worst < peak * (1 - 1e-12) and (best is None or worst < best[0]):
                    best = (worst, g, d)
        if best is not None:
            self._move(best[1], best[2])
        return best is not None

    def shake(self, rng: np.random.Generator) -> None:
        """Make a few random legal moves."""
        for _ in range(int(rng.integers(1, 5))):
            g = int(rng.integers(self.q.n_groups))
            targets = self._targets(g)
            if targets:
                self._move(g, targets[int(rng.integers(len(targets)))])

    def _move(self, g: int, d: int) -> None:
        old = int(self.device[g])
        self.devices[old].remove(g)
        self.members[old].discard(g)
        self.devices[d].add(g)
        self.members[d].add(g)
        self.device[g] = d

    def _targets(self, g: int) -> list[int]:
        """Return the devices g may move to; all variants but ``free`` keep to its neighbours' stages."""
        q = self.q
        here = int(self.device[g])
        if q.problem.variant == "free":
            candidates = list(range(len(self.devices)))
        else:
            before, after = q.neighbours
            stage = self.stage_of
            low = max((stage.get(int(self.device[a]), 0) for a in before[g]), default=0)
            high = min((stage.get(int(self.device[b]), 0) for b in after[g]), default=len(stage))
            candidates = [d for d, s in stage.items() if low <= s <= high]
        return [
            d
            for d in candidates
            if d != here
            and np.isfinite(q.time[self.kind[d], g])
            and self.devices[d].memory + q.memory[g] <= q.capacity[self.kind[d]]
        ]
