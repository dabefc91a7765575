"""A scheduler loop of one's own, around `gangplan.Scheduler`: 16 nodes of eight GPUs, an hour of jobs."""

import numpy as np

import gangplan
from gangplan.instances.placement import Fleet, GangJob

scheduler = gangplan.Scheduler(Fleet.regular(racks=2, nodes=8), price=60.0)  # a stop costs a minute
rng, ends = np.random.default_rng(0), {}
jobs = [(at, f"job{i}", int(rng.choice([1, 2, 4, 8, 16]))) for i, at in enumerate(np.sort(rng.uniform(0, 3600, 200)))]
while jobs or ends:
    if jobs and jobs[0][0] <= min(ends.values(), default=np.inf):
        now, name, gpus = jobs.pop(0)
        scheduler.submit(GangJob(name, "any", (gpus,)), seconds=float(rng.lognormal(7, 1.5)), now=float(now))
    else:
        name = min(ends, key=ends.get)
        now = ends.pop(name)
        scheduler.finish(name, now=now)
    more, deadline = True, 0.05
    while more:
        decision = scheduler.decide(deadline)
        for stop in decision.stops:  # here you would save its state and end it
            del ends[stop.job]
        for start in decision.starts:  # and here launch it on start.nodes
            ends[start.job] = now + start.seconds
        more, deadline = decision.more, 2 * deadline  # the deadline cut it: the rest gets more time
print(scheduler.explain(decision))
