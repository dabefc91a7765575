"""A cluster manager of a day: 64 nodes of two types, queues, classes, limits that are too long, failures, a drain.

Replace the simulated events by those of your cluster: what it hears, and what it does with a decision, stay the same.
"""

import heapq
import math
import random
from collections import Counter, deque

from gangplan import Scheduler
from gangplan.hybrid.online import Quota, Sharing
from gangplan.instances.placement import Fleet, GangJob

DAY, HOUR = 86400.0, 3600.0
QUEUES = {"research": 0.5, "research.vision": 0.2, "research.nlp": 0.3, "prod": Quota(0.3, most=0.6)}


class Cluster:
    """Keeps a scheduler informed, and carries out what it decides."""

    def __init__(self) -> None:
        fleet = Fleet.regular(racks=4, nodes=16, gpus=8, gpu_type={"A100": 12, "H100": 4})
        sharing = Sharing(QUEUES, limits={"*": 128}, fair_users=True, halflife=DAY, least_run=600.0)
        self.scheduler = Scheduler(fleet, price=60.0, durations="history", sharing=sharing)
        self.events: list[tuple[float, int, str, str]] = []
        self.left: dict[str, float] = {}  # seconds that a job truly needs still; the scheduler is not told
        self.began: dict[str, float] = {}
        self.lives, self.causes, self.waits = Counter[str](), Counter[str](), deque[float]()
        self.came: dict[str, float] = {}
        self.now, self.number, self.wake = 0.0, 0, math.inf

    def at(self, time: float, what: str, who: str = "") -> None:
        """Have something happen at a time."""
        self.number += 1
        heapq.heappush(self.events, (time, self.number, what, who))

    def submit(self, name: str, rng: random.Random) -> None:
        """Queue a job whose user asks for far more time than it needs."""
        queue = rng.choice(("research.vision", "research.nlp", "prod"))
        self.left[name], self.came[name] = rng.lognormvariate(7.5, 1.2), self.now
        limit = self.left[name] * rng.lognormvariate(1.1, 0.8) + 60.0
        job = GangJob(name, "llm", (rng.choice((1, 2, 4, 8, 16)),), gpu_types=("A100", "H100"))
        self.scheduler.submit(
            job, now=self.now, queue=queue, user=f"{queue}-{rng.randrange(5)}", priority=rng.choice((0, 0, 1)),
            limit=limit, title=f"train-{rng.randrange(9)}",
        )  # fmt: skip

    def stop(self, name: str, saved: bool = True) -> None:
        """Free a job's GPUs, after its state was saved or lost."""
        began = self.began.pop(name)
        self.left[name] -= min(self.left[name] - 1.0, self.now - began) if saved else 0.0
        self.lives[name] += 1  # its end, which is planned, is none

    def decide(self) -> None:
        """Ask for a decision, and carry it out: first stops, then starts."""
        decision = self.scheduler.decide(deadline=0.05, now=self.now)
        for stop in decision.stops:
            self.causes[stop.cause] += 1
            self.stop(stop.job)
        for start in decision.starts:
            self.began[start.job] = self.now
            if start.job in self.came:
                self.waits.append(self.now - self.came.pop(start.job))
            self.at(self.now + self.left[start.job], "end", f"{start.job}:{self.lives[start.job]}")
        if decision.more:
            self.decide()
        self.wake = self.scheduler.wake or math.inf  # when to ask again if nothing happens

    def run(self, until: float) -> None:
        """Hear events one after the other, and decide after each."""
        rng = random.Random(1)
        while self.events and min(self.events[0][0], self.wake) <= until:
            if self.wake < self.events[0][0]:
                self.now, what, who = self.wake, "nothing", ""
            else:
                self.now, _, what, who = heapq.heappop(self.events)
            if what == "job":
                self.submit(who, rng)
            elif what == "end":
                name, life = who.split(":")
                if name not in self.began or self.lives[name] != int(life):
                    continue
                del self.began[name]
                self.scheduler.finish(name, now=self.now)
            elif what == "fail":
                for name in self.scheduler.fail_node(who, replace=True, now=self.now):
                    self.stop(name, saved=False)
            elif what == "repair":
                self.scheduler.repair_node(who, now=self.now)
            self.decide()


def main(jobs: int = 1600) -> Cluster:
    """Play a day."""
    cluster, rng = Cluster(), random.Random(0)
    for i in range(jobs):
        cluster.at(rng.uniform(0, 0.8 * DAY), "job", f"job{i}")
    for node in rng.sample(range(64), 6):
        cluster.at(moment := rng.uniform(0, 0.8 * DAY), "fail", f"node{node}")
        cluster.at(moment + HOUR, "repair", f"node{node}")
    cluster.scheduler.drain("node7", at=0.5 * DAY, until=0.6 * DAY)
    cluster.run(DAY)
    waits = sorted(cluster.waits)
    mean, late = sum(waits) / len(waits), waits[19 * len(waits) // 20]
    print(f"{len(waits)} jobs started, mean wait {mean:.0f} s, 95% within {late:.0f} s")
    print("stops:", dict(cluster.causes), "; now:", cluster.scheduler)
    if cluster.scheduler.waiting:
        print(cluster.scheduler.explain(cluster.scheduler.waiting[0]))
    return cluster


if __name__ == "__main__":
    main()
