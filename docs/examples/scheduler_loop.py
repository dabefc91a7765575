"""A scheduler loop of one's own, around `gangplan.Scheduler`: 16 nodes of eight GPUs, an hour of jobs."""

import heapq

import numpy as np

import gangplan
from gangplan.instances.placement import Fleet, GangJob

scheduler = gangplan.Scheduler(Fleet.regular(racks=2, nodes=8), seed=0)
rng, events, waited = np.random.default_rng(0), [], []
for i in range(200):
    job = GangJob(f"job{i}", "any", (int(rng.choice([1, 2, 4, 8, 16])),))
    heapq.heappush(events, (float(rng.uniform(0, 3600)), i, "submit", job, float(rng.lognormal(7, 1.5))))
while events:
    now, i, what, job, seconds = heapq.heappop(events)
    if what == "submit":
        scheduler.submit(job, seconds, now=now)
        waited.append(now)
    else:
        scheduler.finish(job.name, now=now)
    decision = scheduler.decide(deadline=0.05)
    for start in decision.starts:  # here you would launch it on start.nodes
        number = int(start.job.removeprefix("job"))
        heapq.heappush(events, (now + start.seconds, number, "finish", GangJob(start.job, "any", (1,)), 0.0))
print(scheduler.explain(decision))
