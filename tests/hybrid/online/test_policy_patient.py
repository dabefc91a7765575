"""A rule that waits for close GPUs, as a policy of `Scheduler`: it can make jobs wait, and that is worth it."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from gangplan.hybrid.online import Scheduler, View
from gangplan.instances.placement import GangJob
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.systems.topdrl.allocate import CLOSEST, allocate
from gangplan.systems.topdrl.arrays import cluster_of
from gangplan.systems.topdrl.rules import Patient
from gangplan.systems.topdrl.simulate import simulate
from gangplan.systems.topdrl.step import least_cost
from gangplan.systems.topdrl.suites import TRAINING, Suite, suite


class PatientPolicy:
    """The rule of `Patient`, in words for `Scheduler`: a job starts where it is little slower than at its best."""

    def __init__(self, ground: Suite) -> None:
        self._rule, self._proximity = Patient(), ground.proximity
        self._cluster = cluster_of(ground.fleet, ground.proximity)
        self._least = 1 + least_cost(self._cluster)

    def propose(self, view: View) -> Any:
        """Yield who starts where; others wait."""
        rule, free, least = self._rule, view.free, self._least
        idle = [set(range(count)) for count in view.fleet.gpus.tolist()]
        for job in view.running.values():
            for node, gpus in job.nodes.items():
                idle[node] -= {*gpus}

        def key(request: Any) -> tuple[float, int]:
            (gpus,) = request.job.workers
            score = np.log(request.seconds[0]) + rule.gpus * np.log(gpus) + rule.slowdown * np.log(least[gpus])
            return float(score), request.serial

        busy = bool(view.running)
        for request in sorted(view.waiting, key=key):
            (gpus,), take = request.job.workers, np.zeros(len(free), dtype=np.int64)
            if not allocate(CLOSEST, gpus, self._cluster, free, take):
                continue
            nodes = np.flatnonzero(take).tolist()
            slow = 1 + self._proximity.cost(view.fleet, nodes, take[nodes].tolist())
            if busy and slow > least[gpus] * np.exp(rule.patience) + 1e-9:
                continue
            where = {node: tuple(sorted(idle[node]))[: int(take[node])] for node in nodes}
            for node, held in where.items():
                idle[node] -= {*held}
            free, busy = free - take, True
            yield request.name, gpus, where


def mean_jct(ground: Suite, work: Workload, scheduler: Scheduler) -> float:
    """Return the mean JCT of a workload that a scheduler decides, GPUs far apart being slow."""
    arrivals = sorted(range(work.n_jobs), key=lambda i: (work.submit[i], i))
    proximity, ends, total = Proximity(), list[tuple[float, int]](), 0.0
    while arrivals or ends:
        now = min(x for x in ([float(work.submit[i]) for i in arrivals[:1]] + [end for end, _ in ends[:1]]))
        while ends and ends[0][0] <= now:
            _, job = heapq.heappop(ends)
            scheduler.finish(str(job), now=now)
            total += now - float(work.submit[job])
        while arrivals and work.submit[arrivals[0]] <= now:
            job = arrivals.pop(0)
            scheduler.submit(GangJob(str(job), "any", (int(work.gpus[job]),)), float(work.duration[job]), now=now)
        for start in scheduler.decide(60.0, now=now).starts:
            nodes = [ground.fleet.names.index(name) for name in start.nodes]
            cost = proximity.cost(ground.fleet, nodes, [len(gpus) for gpus in start.nodes.values()])
            heapq.heappush(ends, (now + float(work.duration[int(start.job)]) * (1 + cost), int(start.job)))
    return total / work.n_jobs


def test_a_policy_that_waits_is_worth_it() -> None:
    """On TopDRL's cluster it has a tenth less mean JCT than the heuristic, and no more than its own simulator finds."""
    ground, ratio, same = suite("small"), [], []
    for seed in range(TRAINING, TRAINING + 3):
        work, _ = ground.draw(seed)
        patient = mean_jct(ground, work, Scheduler(ground.fleet, PatientPolicy(ground), together=False))
        usual = mean_jct(ground, work, Scheduler(ground.fleet))
        alone = simulate(work, ground.fleet, Patient())
        own = float((alone.finish - work.submit).mean())
        ratio.append(patient / usual)
        same.append(patient / own)
    assert np.mean(ratio) < 0.9
    assert np.mean(same) < 1.02
