"""How busy the links of a cluster are under a placement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.placement.rate import Rates, model_of, ring_bytes

from ..units import quantity
from .cluster_layout import Layout
from .cluster_words import counted
from .scene import FloatArray, IntArray

MOST_NAMED = 6
"""Gangs of a link that are named."""


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


def link_lines(
    problem: PlacementProblem, flow: Flows, level: int, layout: Layout, names: list[tuple[str, ...]]
) -> tuple[FloatArray, FloatArray, IntArray, tuple[str, ...]]:
    """Return the lines of all links, how busy they are, how many gangs cross them, and what to say.

    Where units stand for groups of nodes, a line along the left side of each follows, for the busiest link inside it.
    """
    levels = range(level, len(flow.bandwidth))
    lines, busy = list(layout.links), [flow.busy(i) for i in levels]
    gangs = [flow.gangs(i) for i in levels]
    texts = [link_texts(problem, flow, i, names[i - level]) for i in levels]
    if level:
        top, below = layout.units[:, :2], layout.units[:, :2] + layout.units[:, 3:] * [0, 1]
        lines.append(np.stack([top, below], axis=1))
        inside, text = flow.busy(0), link_texts(problem, flow, 0, problem.fleet.names)
        order = np.lexsort((-inside, flow.members[level]))
        most = order[np.unique(flow.members[level][order], return_index=True)[1]]
        busy.append(inside[most])
        gangs.append(flow.gangs(0)[most])
        texts.append(tuple(f"busiest node inside {u}<br>{text[i]}" for u, i in zip(names[0], most, strict=True)))
    return np.concatenate(lines), np.concatenate(busy), np.concatenate(gangs), tuple(t for part in texts for t in part)


def link_texts(problem: PlacementProblem, found: Flows, level: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what crosses each link of a level, whose members have these `names`."""
    busy, gangs = found.busy(level), found.gangs(level)
    mine = np.flatnonzero(found.level == level)
    mine = mine[np.lexsort((-found.rate[mine], found.member[mine]))]
    who = np.split(found.job[mine], np.cumsum(gangs)[:-1])
    bandwidth = found.bandwidth[level]
    texts = []
    for name, share, these in zip(names, busy.tolist(), who, strict=True):
        told = [problem.jobs[j].name for j in these[:MOST_NAMED].tolist()]
        more = [f"{len(these) - MOST_NAMED} more"] if len(these) > MOST_NAMED else []
        rate = f"{quantity(share * bandwidth, 'B')}/s of {quantity(bandwidth, 'B')}/s"
        text = f"link of {name}: busy {share:.1%} of the time, {rate}<br>{counted(len(these), 'gang')}"
        texts.append(text + (f": {', '.join(told + more)}" if told else ""))
    return tuple(texts)
