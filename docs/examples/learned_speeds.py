"""Two models halve each other's speed on a node: a scheduler learns it from what jobs report."""

import random

import gangplan
from gangplan.instances.placement import Fleet, GangJob


def main(jobs: int = 400) -> gangplan.Scheduler:
    """Submit jobs of both models, have each report its speed, and finish one at a time at random."""
    scheduler, rng, where = gangplan.Scheduler(Fleet.regular(racks=1, nodes=4, gpus=2)), random.Random(0), {}
    for i in range(jobs):
        model = rng.choice(["vgg", "lstm"])
        scheduler.submit(GangJob(f"{model}{i}", model, (1,)), 600.0, now=100.0 * i)
        for start in scheduler.decide().starts:
            where[start.job] = [*start.nodes]
        for job, nodes in where.items():
            beside = {other[0] for other in where if where[other] == nodes}
            scheduler.report(job, 0.5 if len(beside) == 2 else 1.0)
        if len(where) > 5:
            job = rng.choice([*where])
            scheduler.finish(job)
            del where[job]
    return scheduler


if __name__ == "__main__":
    print(main().learned)
