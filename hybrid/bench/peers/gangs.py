"""What the plain formulations of placement share: the batch in lists, and the plan of a solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.placement.rate import best_rate, model_of


@dataclass(frozen=True, slots=True)
class Gangs:
    """A batch of rigid gangs of whole GPUs in lists, job j, node n, level l of the network.

    Attributes:
        problem: as it was.
        workers, servers: tasks of each job.
        collective: of each job.
        price: what a second of its step costs: weight times best rate over workers.
        most: most[j][n], the most workers of j that n may hold, by GPUs, labels and the limit on a node; 0 where it
            cannot run. open: open[j][n], whether servers may be there.
        seconds: seconds[j][n] of compute alone; infinite where it cannot run.
        needs: (what each node has, what a worker of each job needs, what a server needs): GPUs, cores, bytes, NIC.
        added: added[j][i], what i adds to the compute of j on a node, as a share of it.
        size, overlap: of each job, bytes and share.
        link: bytes/s inside each node. bandwidth: bytes/s of a member's link, by level.
        member: member[l][n]; one level more than there are links, the last being one for all.
        apart: (i, j) that share no node, those with whole nodes among them.
    """

    problem: PlacementProblem
    workers: list[int]
    servers: list[int]
    collective: list[str]
    price: list[float]
    most: list[list[int]]
    open: list[list[bool]]
    seconds: list[list[float]]
    needs: list[tuple[list[float], list[float], list[float]]]
    added: list[list[float]]
    size: list[float]
    overlap: list[float]
    link: list[float]
    bandwidth: list[float]
    member: list[list[int]]
    apart: list[tuple[int, int]]

    @classmethod
    def of(cls, problem: PlacementProblem) -> Gangs:
        """Lay out `problem`.

        Raises:
            NotImplementedError: for what these formulations leave out, naming it.
        """
        fleet, jobs, speeds = problem.fleet, problem.jobs, problem.speeds
        if problem.goal != "slowdown":
            raise NotImplementedError(f"goal: {problem.goal!r} has no plain formulation here")
        if problem.running:
            raise NotImplementedError("running: jobs that run already have no plain formulation here")
        for i, job in enumerate(jobs):
            if len(job.workers) > 1 or job.value is not None or job.worker.gpu not in (1, int(job.worker.gpu)):
                raise NotImplementedError(
                    f"jobs[{i}]: menus, optional jobs and shares of GPUs have no plain formulation here"
                )
        model, seconds = model_of(problem), problem.compute()
        allowed = [
            np.asarray(fleet.usable) & fleet.labelled[[fleet.labels.index(x) for x in job.requires]].all(axis=0)
            for job in jobs
        ]
        most = [
            np.where(
                ok & np.isfinite(seconds[j]),
                np.minimum(
                    fleet.gpus // int(job.worker.gpu) if job.worker.gpu else job.gang,
                    min(job.gang, job.most_per_node or job.gang),
                ),
                0,
            )
            for j, (job, ok) in enumerate(zip(jobs, allowed, strict=True))
        ]
        index = {job.name: j for j, job in enumerate(jobs)}
        apart = {(min(j, index[x]), max(j, index[x])) for j, job in enumerate(jobs) for x in job.apart}
        apart |= {
            (min(i, j), max(i, j)) for j, job in enumerate(jobs) if job.whole_nodes for i in range(len(jobs)) if i != j
        }
        topology = fleet.topology
        fields = (("gpu", fleet.gpus), ("cpu", fleet.cpu), ("memory", fleet.memory), ("nic", fleet.nic))
        return cls(
            problem=problem,
            workers=[job.gang for job in jobs],
            servers=[job.servers for job in jobs],
            collective=[job.collective for job in jobs],
            price=[job.weight * float(b) / job.gang for job, b in zip(jobs, best_rate(problem), strict=True)],
            most=[row.tolist() for row in most],
            open=[row.tolist() for row in allowed],
            seconds=seconds.tolist(),
            needs=[
                (
                    has.tolist(),
                    [float(getattr(job.worker, field)) for job in jobs],
                    [float(getattr(job.server, field)) for job in jobs],
                )
                for field, has in fields
            ],
            added=speeds.host[np.ix_(model, model)].tolist(),
            size=speeds.gradient[model].tolist(),
            overlap=speeds.overlap[model].tolist(),
            link=fleet.link.tolist(),
            bandwidth=[level.bandwidth for level in topology.levels],
            member=[list(range(fleet.n_nodes)), *(row.tolist() for row in topology.group)],
            apart=sorted(apart),
        )

    @property
    def jobs(self) -> range:
        """All jobs."""
        return range(len(self.workers))

    @property
    def nodes(self) -> range:
        """All nodes."""
        return range(len(self.link))

    def within(self, level: int, j: int) -> dict[int, list[int]]:
        """Return the nodes that j may use in each member of a level."""
        found: dict[int, list[int]] = {}
        for n in self.nodes:
            if self.open[j][n]:
                found.setdefault(self.member[level][n], []).append(n)
        return found

    def longest(self, j: int) -> float:
        """Return seconds that neither compute nor synchronisation of j exceeds."""
        compute = max((s for s in self.seconds[j] if np.isfinite(s)), default=0.0) * (1 + sum(self.added[j]))
        slowest = 1 / min(self.link) + sum(len(self.workers) / b for b in self.bandwidth)
        return max(compute, 2 * max(2, self.workers[j]) * self.size[j] * slowest)

    def plan(self, workers: list[list[int]], servers: list[list[int]]) -> PlacementPlan:
        """Return the plan with so many tasks of each job on each node; GPUs are given out in order."""
        rows = [(j, n, workers[j][n], servers[j][n]) for j in self.jobs for n in self.nodes]
        rows = [row for row in rows if row[2] or row[3]]
        used = [0] * len(self.nodes)
        grants = []
        for r, (j, n, count, _) in enumerate(rows):
            for _ in range(count * int(self.problem.jobs[j].worker.gpu)):
                grants.append((r, used[n]))
                used[n] += 1
        job, node, w, p = (np.array([row[i] for row in rows], dtype=np.int32) for i in range(4))
        held = np.array(grants, dtype=np.int32).reshape(-1, 2).T
        return PlacementPlan(tuple(job.name for job in self.problem.jobs), job, node, w, p, held[0], held[1])
