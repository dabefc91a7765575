"""A cluster manager of a day: 64 nodes of two types, queues, classes, limits that are too long, failures, a drain.

Replace the simulated events by those of your cluster: what it hears, and what it does with a decision, stay the same.
"""

import heapq
import math
import random
from collections import Counter

from gangplan import Scheduler
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Quota, Sharing

DAY, HOUR = 86400.0, 3600.0
PRICE = 60.0
"""What a stop costs: its GPUs are held without getting on when the job runs again, seconds."""
QUEUES = {"research": 0.5, "research.vision": 0.2, "research.nlp": 0.3, "prod": Quota(0.3, most=0.6)}


class Cluster:
    """Keeps a scheduler informed, and carries out what it decides."""

    def __init__(self, log: str | None) -> None:
        fleet = Fleet.regular(racks=4, nodes=16, gpus=8, gpu_type={"A100": 12, "H100": 4})
        sharing = Sharing(QUEUES, limits={"*": 128}, fair_users=True, halflife=DAY, least_run=600.0)
        self.scheduler = Scheduler(fleet, price=PRICE, durations="history", sharing=sharing, log=log)
        self.events: list[tuple[float, int, str, str]] = []
        self.left: dict[str, float] = {}  # seconds that a job truly needs still; the scheduler is not told
        self.began: dict[str, float] = {}
        self.lives, self.causes = Counter[str](), Counter[str]()
        self.came: dict[str, tuple[float, str]] = {}
        self.waits: dict[str, list[float]] = {}
        self.now, self.number, self.wake = 0.0, 0, math.inf

    def at(self, time: float, what: str, who: str = "") -> None:
        """Have something happen at a time."""
        self.number += 1
        heapq.heappush(self.events, (time, self.number, what, who))

    def submit(self, name: str, rng: random.Random) -> None:
        """Queue a job whose user asks for far more time than it needs."""
        queue = rng.choice(("research.vision", "research.nlp", "prod"))
        self.left[name], self.came[name] = rng.lognormvariate(7.5, 1.2), (self.now, queue)
        limit = self.left[name] * rng.lognormvariate(1.1, 0.8) + 60.0
        job = GangJob(name, "llm", (rng.choice((1, 2, 4, 8, 16)),), gpu_types=("A100", "H100"))
        self.scheduler.submit(
            job, now=self.now, queue=queue, user=f"{queue}-{rng.randrange(5)}", priority=rng.choice((0, 0, 1)),
            limit=limit, title=f"train-{rng.randrange(9)}",
        )  # fmt: skip

    def stop(self, name: str, saved: bool = True) -> None:
        """Free a job's GPUs, after its state was saved or lost."""
        got_on = max(0.0, self.now - self.began.pop(name))
        self.left[name] -= min(self.left[name] - 1.0, got_on) if saved else 0.0
        self.lives[name] += 1  # its end, which is planned, is none

    def decide(self) -> None:
        """Ask for a decision, and carry it out: first stops, then starts."""
        decision = self.scheduler.decide(deadline=0.05, now=self.now)
        for stop in decision.stops:
            self.causes[stop.cause] += 1
            self.stop(stop.job)
        for start in decision.starts:
            begins = self.began[start.job] = self.now + (PRICE if self.lives[start.job] else 0.0)
            if start.job in self.came:
                came, queue = self.came.pop(start.job)
                self.waits.setdefault(queue, []).append(self.now - came)
            self.at(begins + self.left[start.job], "end", f"{start.job}:{self.lives[start.job]}")
        if decision.more and (decision.starts or decision.stops):
            self.decide()
        wake = self.scheduler.wake  # when to ask again if nothing happens, or None
        self.wake = math.inf if wake is None else wake

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
            elif what == "drain":  # told ahead: who would run into it starts elsewhere
                self.scheduler.drain(who, at=self.now + HOUR, until=self.now + 3 * HOUR, now=self.now)
            self.decide()


def main(jobs: int = 1600, log: str | None = None) -> Cluster:
    """Play a day, and with a log let `gangplan log` and `gangplan whatif` read it."""
    cluster, rng = Cluster(log), random.Random(0)
    for i in range(jobs):
        cluster.at(rng.uniform(0, 0.8 * DAY), "job", f"job{i}")
    for node in rng.sample(range(64), 6):
        cluster.at(moment := rng.uniform(0, 0.8 * DAY), "fail", f"node{node}")
        cluster.at(moment + HOUR, "repair", f"node{node}")
    cluster.at(0.5 * DAY, "drain", "node7")
    cluster.run(DAY)
    for queue, waits in sorted(cluster.waits.items()):
        print(f"{queue}: {len(waits)} jobs started, mean wait {sum(waits) / len(waits):.0f} s")
    print("stops:", dict(cluster.causes), "; now:", cluster.scheduler)
    print(cluster.scheduler.whatif(GangJob("next", "llm", (64,)), 3600.0, queue="prod", user="prod-0"))
    for name in cluster.scheduler.waiting[:1]:
        print(cluster.scheduler.explain(name))
    return cluster


if __name__ == "__main__":
    main()
