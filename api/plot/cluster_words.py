"""How busy the links of a cluster are, and what a pointer on a part of its picture is told (``<br>`` parts lines)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.placement.rate import Rates, traffic
from gangplan.instances.quantities import counted, quantity
from gangplan.instances.verify import PlacementVerdict

from .cluster_layout import DOWN, IDLE, Tiles, shares
from .scene import FloatArray, IntArray


def jobs(problem: PlacementProblem, plan: PlacementPlan, found: Rates) -> tuple[str, ...]:
    """Return what each job is and how fast it runs."""
    count = len(problem.jobs)
    workers, servers = (np.bincount(plan.job, weights=x, minlength=count) for x in (plan.workers, plan.servers))
    nodes = np.bincount(plan.job, minlength=count)
    texts = []
    for j, job in enumerate(problem.jobs):
        if not nodes[j]:
            texts.append(f"{job.name}: {job.model}<br>left out")
            continue
        each = f"{job.worker.gpu:g} {'GPU' if job.worker.gpu <= 1 else 'GPUs'}"
        more = f", {counted(servers[j], 'parameter server')}" if servers[j] else ""
        step, compute, sync = (quantity(float(x[j]), "s") for x in (found.step, found.compute, found.sync))
        speed = f"step {step}: compute {compute}, synchronisation {sync}"
        last = f"slowdown {found.slowdown[j]:.4g}, weight {job.weight:g}"
        size = f"{counted(workers[j], 'worker')} of {each}{more} on {counted(nodes[j], 'node')}, {job.collective}"
        texts.append("<br>".join((f"{job.name}: {job.model}", size, speed, last)))
    return tuple(texts)


def sizes(problem: PlacementProblem, plan: PlacementPlan) -> tuple[str, ...]:
    """Return what each job is, where it is not known how fast it runs."""
    nodes = np.bincount(plan.job, minlength=len(problem.jobs)).tolist()
    on = (counted(n, "node") for n in nodes)
    return tuple(f"{x.name}<br>{counted(sum(x.workers), 'GPU')} on {n}" for x, n in zip(problem.jobs, on, strict=True))


def nodes(problem: PlacementProblem, plan: PlacementPlan) -> tuple[str, ...]:
    """Return what each node has, and what of it is in use."""
    fleet = problem.fleet
    gpus = np.bincount(plan.node[plan.grant_row], weights=shares(problem, plan), minlength=fleet.n_nodes)
    asks = ((x.worker.cpu, x.worker.memory, x.server.cpu, x.server.memory) for x in problem.jobs)
    ask, tasks = np.array([*asks])[plan.job], (plan.workers, plan.servers)
    held = (tasks[0] * ask[:, k] + tasks[1] * ask[:, k + 2] for k in (0, 1))
    cpu, memory = (np.bincount(plan.node, weights=x, minlength=fleet.n_nodes) for x in held)
    kinds = [f"{fleet.gpu_types[t]} GPU" if n else "GPU" for t, n in zip(fleet.gpu_type, fleet.gpus, strict=True)]
    return tuple(
        f"{name}: {gpus[n]:g} of {counted(fleet.gpus[n], kinds[n])}"
        f"<br>{cpu[n]:g} of {fleet.cpu[n]:g} cores, {quantity(memory[n], 'B')} of {quantity(fleet.memory[n], 'B')}"
        + ("" if usable else "<br>not usable")
        for n, (name, usable) in enumerate(zip(fleet.names, np.asarray(fleet.usable).tolist(), strict=True))
    )


def groups(problem: PlacementProblem, plan: PlacementPlan, unit: IntArray, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what each group of nodes holds, by the `unit` of each node."""
    fleet, count = problem.fleet, len(names)
    lost = np.bincount(unit, weights=~np.asarray(fleet.usable), minlength=count)
    members = np.bincount(unit, minlength=count)
    held = np.bincount(np.unique(np.stack([unit[plan.node], plan.job]), axis=1)[0], minlength=count)
    total = np.bincount(unit, weights=fleet.gpus, minlength=count)
    return tuple(
        f"{name}: {counted(members[u], 'node')}, {counted(total[u], 'GPU')}<br>{counted(held[u], 'job')}"
        + (f"<br>{counted(lost[u], 'node')} not usable" if lost[u] else "")
        for u, name in enumerate(names)
    )


def tiles(found: Tiles, of_unit: tuple[str, ...], of_job: tuple[str, ...]) -> tuple[str, ...]:
    """Return what each tile is, whose, and where."""
    texts = []
    columns = (x.tolist() for x in (found.job, found.unit, found.gpu, found.amount))
    for job, unit, gpu, amount in zip(*columns, strict=True):
        share = f"{amount:.4g} of GPU {gpu}" if gpu >= 0 else counted(amount, "GPU")
        what = f"GPU {gpu}" if gpu >= 0 and amount == 1 else share
        whose = {IDLE: "idle", DOWN: "not usable"}.get(job) or of_job[job]
        texts.append(f"{what}: {whose}<br><br>{of_unit[unit]}")
    return tuple(texts)


def rows(problem: PlacementProblem, plan: PlacementPlan, row: IntArray, of_job: tuple[str, ...]) -> tuple[str, ...]:
    """Return what tasks without a GPU each row of a plan has."""
    texts = []
    for r in row.tolist():
        job = int(plan.job[r])
        here = [counted(plan.servers[r], "parameter server")] if plan.servers[r] else []
        if problem.jobs[job].worker.gpu == 0 and plan.workers[r]:
            here.append(f"{counted(plan.workers[r], 'worker')} without GPU")
        texts.append(f"{', '.join(here)} on {problem.fleet.names[plan.node[r]]}<br>{of_job[job]}")
    return tuple(texts)


def title(problem: PlacementProblem) -> str:
    """Return how many jobs and nodes there are, and GPUs of which types."""
    fleet = problem.fleet
    held = np.bincount(fleet.gpu_type[fleet.gpus > 0], fleet.gpus[fleet.gpus > 0], len(fleet.gpu_types)).astype(int)
    kinds = " + ".join(f"{n:,} \u00d7 {kind}" for n, kind in zip(held.tolist(), fleet.gpu_types, strict=True) if n)
    return f"{counted(len(problem.jobs), 'job')} on {counted(fleet.n_nodes, 'node')} with {kinds or 'no GPU'}"


def more(problem: PlacementProblem, plan: PlacementPlan, verdict: PlacementVerdict) -> list[str]:
    """Return how full the cluster is, and what of it and of the jobs is left out."""
    left = len(problem.jobs) - len(np.unique(plan.job))
    down = int((~np.asarray(problem.fleet.usable)).sum())
    return [
        f"{verdict.gpus.sum():,.10g} of {problem.fleet.n_gpus:,} GPUs in use",
        f"{counted(left, 'job')} left out" if left else "",
        f"{counted(down, 'node')} not usable" if down else "",
    ]


def of_levels(problem: PlacementProblem, level: int) -> list[tuple[str, ...]]:
    """Return what the nodes and groups of the tree are called, per level from `level` up.

    Of host names the first part is enough, if it tells them apart.
    """
    topology = problem.fleet.topology
    full = problem.fleet.names
    short = tuple(name.split(".")[0] for name in full)
    names = [short if len(set(short)) == len(full) and all(short) else full]
    for kind, group in zip(topology.levels, topology.group, strict=True):
        names.append(tuple(f"{kind.name} {i}" for i in np.unique(group).tolist()))
    return names[level:]


def typed(problem: PlacementProblem, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return `names` of nodes with their types of GPU, if there are several."""
    fleet = problem.fleet
    if len(np.unique(fleet.gpu_type[fleet.gpus > 0])) < 2:
        return names
    kinds = [fleet.gpu_types[t] if n else "" for t, n in zip(fleet.gpu_type.tolist(), fleet.gpus, strict=True)]
    return tuple(f"{name} ({kind})" if kind else name for name, kind in zip(names, kinds, strict=True))


MOST_NAMED = 6
"""Gangs of a link that are named."""


@dataclass(frozen=True, slots=True)
class Flows:
    """What gangs send over links.

    The links of level 0 are those of the nodes, of level l those of the groups of level l - 1.

    Attributes:
        members: per level, which of its links each node lies under, numbered from 0, int (m,).
        sent: per level the gangs on its links, three arrays: link, gang, and bytes/s in one direction.
        bandwidth: bytes/s of the links of each level.
    """

    members: tuple[IntArray, ...]
    sent: list[tuple[IntArray, IntArray, FloatArray]]
    bandwidth: tuple[float, ...]

    def gangs(self, level: int) -> IntArray:
        """Return how many gangs cross each link of a level."""
        return np.bincount(self.sent[level][0], minlength=int(self.members[level].max()) + 1)

    def busy(self, level: int) -> FloatArray:
        """Return the share of the time that each link of a level is busy, from 0 to 1."""
        link, _, rate = self.sent[level]
        return np.bincount(link, rate, int(self.members[level].max()) + 1) / self.bandwidth[level]


def flows(problem: PlacementProblem, plan: PlacementPlan, found: Rates) -> Flows:
    """Return what every gang sends over every link it crosses: the bytes of the cost model over its step's seconds.

    A gang waits at least as long as they take at its fair share of the link, so that no link is busy for more than all
    of the time.
    """
    topology = problem.fleet.topology
    known = [np.unique(group, return_inverse=True) for group in (np.arange(problem.fleet.n_nodes), *topology.group)]
    sent = [
        (np.searchsorted(names, link), job, size / found.step[job])
        for (names, _), (link, job, size) in zip(known, traffic(problem, plan), strict=False)
    ]
    return Flows(tuple(of for _, of in known), sent, tuple(level.bandwidth for level in topology.levels))


def link_texts(problem: PlacementProblem, found: Flows, level: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what crosses each link of a level, whose members have these `names`."""
    bandwidth, texts = found.bandwidth[level], []
    for i, (name, share) in enumerate(zip(names, found.busy(level).tolist(), strict=True)):
        link, job, rate = found.sent[level]
        mine = np.flatnonzero(link == i)
        these = job[mine[np.argsort(-rate[mine], kind="stable")]].tolist()
        told = [problem.jobs[j].name for j in these[:MOST_NAMED]]
        more = [f"{len(these) - MOST_NAMED} more"] if len(these) > MOST_NAMED else []
        speed = f"{quantity(share * bandwidth, 'B')}/s of {quantity(bandwidth, 'B')}/s"
        text = f"link of {name}: busy {share:.1%} of the time, {speed}<br>{counted(len(these), 'gang')}"
        texts.append(text + (f": {', '.join(told + more)}" if told else ""))
    return tuple(texts)
