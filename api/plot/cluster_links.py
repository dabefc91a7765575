"""How busy the links of a cluster are under a placement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.placement.rate import Rates, model_of, ring_bytes

from .layout import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Flows:
    """What gangs send over links, f flows.

    The links of level 0 are those of the nodes, of level l those of the groups of level l - 1.

    Attributes:
        members: per level, which of its links each node lies under, numbered from 0, int (m,).
        level, member, job: of each flow its link and its gang, int (f,).
        rate: bytes/s in one direction, float (f,).
        bandwidth: bytes/s of the links of each level.
    """

    members: tuple[IntArray, ...]
    level: IntArray
    member: IntArray
    job: IntArray
    rate: FloatArray
    bandwidth: tuple[float, ...]

    def count(self, level: int) -> int:
        """Return how many links a level has."""
        return int(self.members[level].max()) + 1

    def gangs(self, level: int) -> IntArray:
        """Return how many gangs cross each link of a level."""
        return np.bincount(self.member[self.level == level], minlength=self.count(level))

    def busy(self, level: int) -> FloatArray:
        """Return the share of the time that each link of a level is busy, from 0 to 1."""
        mine = self.level == level
        rate = np.bincount(self.member[mine], weights=self.rate[mine], minlength=self.count(level))
        return rate / self.bandwidth[level]


def flows(problem: PlacementProblem, plan: PlacementPlan, found: Rates) -> Flows:
    """Return what every gang sends over every link it crosses.

    Bytes of a step are those of the cost model (`gangplan.instances.placement.rate`), here over the seconds of a step.
    A gang waits at least as long as they take at its fair share of the link, so that no link is busy for more than all
    of the time. The model does not say which member of a group leads a hierarchical all-reduce: each sends what it
    would have to as the leader.

    Args:
        problem, plan: a feasible plan and what it answers.
        found: how fast the jobs run under it.
    """
    topology = problem.fleet.topology
    nodes = np.arange(problem.fleet.n_nodes)
    members = (nodes, *(np.unique(group, return_inverse=True)[1] for group in topology.group))
    gradient = problem.speeds.gradient[model_of(problem)]
    parts: list[tuple[int, IntArray, int, FloatArray]] = []
    for j in np.unique(plan.job).tolist():
        rows = np.flatnonzero(plan.job == j)
        workers, servers = plan.workers[rows], plan.servers[rows]
        job, size, total = problem.jobs[j], float(gradient[j]), int(workers.sum())
        under = [members[level][plan.node[rows]] for level in range(len(members))]
        passed = 0.0  # what a hierarchy's leader sends for the levels above
        for level in reversed(range(len(topology.levels))):
            here, inverse = np.unique(under[level], return_inverse=True)
            if len(here) == 1:
                continue
            if job.collective == "ps":
                w, p = (np.bincount(inverse, weights=x) for x in (workers, servers))
                sent = size * (w * (job.servers - p) + p * (total - w)) / job.servers
            elif job.collective == "hierarchical":
                above = np.unique(np.stack([under[level + 1], inverse]), axis=1)[0]
                passed += ring_bytes(int(np.bincount(above).max()), size)
                sent = np.full(len(here), passed)
            else:
                sent = np.full(len(here), ring_bytes(total, size) if job.collective == "ring" else 2 * size)
            parts.append((level, here, j, sent / float(found.step[j])))
    return Flows(
        members=members,
        level=np.repeat([p[0] for p in parts], [len(p[1]) for p in parts]).astype(np.int64),
        member=np.concatenate([np.zeros(0, dtype=np.int64), *(p[1] for p in parts)]),
        job=np.repeat([p[2] for p in parts], [len(p[1]) for p in parts]).astype(np.int64),
        rate=np.concatenate([np.zeros(0), *(p[3] for p in parts)]),
        bandwidth=tuple(level.bandwidth for level in topology.levels),
    )
