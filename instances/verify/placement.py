"""The verifier of placements: every gang whole or not at all, each GPU given once; and what FGD calls fragments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, distinct, sums
from ..placement import PlacementPlan, PlacementProblem, Running
from ..placement.job import Task
from ..placement.rate import Rates, communication, rates
from .verdict import TOLERANCE, Judgement, in_order

_SHOWN = 5
"""Jobs on one node that are named."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacementVerdict(Judgement):
    """What the verifier found.

    Attributes:
        rates: how fast each job runs, `None` if the plan is infeasible.
        gpus: GPUs given out on each node, shares as shares, float64 (m,).
    """

    rates: Rates | None
    gpus: FloatArray


def verify_placement(problem: PlacementProblem, plan: PlacementPlan) -> PlacementVerdict:
    """Check `plan` against every constraint of `problem` and recompute the goal."""
    words = _shape(problem, plan)
    if words:
        return PlacementVerdict(tuple(words), None, None, np.zeros(problem.fleet.n_nodes))
    cards, used = _grants(problem, plan)
    words = [*_gangs(problem, plan), *_nodes(problem, plan), *_capacity(problem, plan), *cards, *_pinned(problem, plan)]
    if words:
        return PlacementVerdict(tuple(words), None, None, used)
    found = rates(problem, plan)
    return PlacementVerdict((), goal(problem, plan, found), found, used)


def goal(problem: PlacementProblem, plan: PlacementPlan, found: Rates) -> float:
    """Return what `problem` minimises: see `PlacementProblem.goal`."""
    total = 0.0
    placed = set(plan.job.tolist())
    for j, job in enumerate(problem.jobs):
        if j not in placed:
            total += job.value or 0.0
        elif problem.goal == "slowdown":
            total += job.weight * float(found.slowdown[j])
        elif problem.goal == "throughput":
            # a job that is faster than its reference loses nothing, and makes up for no other
            total += job.weight * max(0.0, 1.0 - 1.0 / float(found.slowdown[j]))
    if problem.goal == "communication":
        total += float(np.array([job.weight for job in problem.jobs], dtype=float) @ communication(problem, plan))
    elif problem.goal == "fragmentation":
        total += float(fragments(problem, plan).sum())
    return total + sum(run.migration for run in _moved(problem, plan))


def _shape(problem: PlacementProblem, plan: PlacementPlan) -> list[str]:
    names = tuple(job.name for job in problem.jobs)
    if wrong := in_order("job", plan.jobs, "batch", names):
        return wrong
    m = problem.fleet.n_nodes
    words = [
        f"job {names[plan.job[r]]} is on node {plan.node[r]}, the fleet has {m}" for r in np.flatnonzero(plan.node >= m)
    ]
    (jobs, nodes), _, count = distinct(plan.job, plan.node)
    words += [f"job {names[jobs[i]]} has several rows on node {nodes[i]}" for i in np.flatnonzero(count > 1)]
    empty = plan.workers + plan.servers == 0
    return words + [f"job {names[j]} has an empty row" for j in plan.job[empty]]


def _gangs(problem: PlacementProblem, plan: PlacementPlan) -> list[str]:
    count = len(problem.jobs)
    workers, servers = (np.bincount(plan.job, weights=x, minlength=count) for x in (plan.workers, plan.servers))
    words = []
    for j, job in enumerate(problem.jobs):
        if not workers[j] and not servers[j]:
            if job.value is None:
                words.append(f"gang: job {job.name} is left out, and it must be placed")
        elif int(workers[j]) not in job.workers:
            menu = " or ".join(map(str, job.workers))
            words.append(f"gang: job {job.name} has {int(workers[j])} workers, it runs with {menu}")
        elif int(servers[j]) != job.servers:
            words.append(f"gang: job {job.name} has {int(servers[j])} parameter servers, it runs with {job.servers}")
    return words


def _nodes(problem: PlacementProblem, plan: PlacementPlan) -> list[str]:
    """Check what each row alone says, and which jobs may meet."""
    fleet, compute = problem.fleet, problem.compute_at(plan.job, plan.node)
    usable = np.asarray(fleet.usable)[plan.node]
    able = (plan.workers == 0) | np.isfinite(compute)
    labels = {label: i for i, label in enumerate(fleet.labels)}
    words = []
    # only rows that may be wrong are looked at one by one
    picky = np.array([bool(job.requires) or job.most_per_node is not None for job in problem.jobs])[plan.job]
    picky |= fleet.tainted[:, plan.node].any(axis=0)
    for r in np.flatnonzero(picky | ~usable | ~able).tolist():
        node = int(plan.node[r])
        job, where = problem.jobs[plan.job[r]], fleet.names[node]
        if not usable[r]:
            words.append(f"node: job {job.name} is on {where}, which is not usable")
        if not able[r]:
            words.append(f"node: job {job.name} cannot run on the GPUs of {where}")
        words += [
            f"selector: job {job.name} is on {where}, which lacks the label {label}"
            for label in job.requires
            if not fleet.labelled[labels[label], node]
        ]
        words += [
            f"taint: job {job.name} is on {where}, which has the taint {taint}, and does not tolerate it"
            for taint, has in zip(fleet.taints, fleet.tainted[:, node].tolist(), strict=True)
            if has and taint not in job.tolerates
        ]
        if job.most_per_node is not None and plan.workers[r] > job.most_per_node:
            words.append(
                f"spread: job {job.name} has {plan.workers[r]} workers on {where}, at most {job.most_per_node} may"
            )
    shy = {j for j, job in enumerate(problem.jobs) if job.apart or job.whole_nodes}
    if not shy:
        return words
    present: dict[int, list[int]] = defaultdict(list)
    for j, node in zip(plan.job.tolist(), plan.node.tolist(), strict=True):
        present[node].append(j)
    for node, jobs in present.items():
        names = {problem.jobs[j].name for j in jobs}
        for j in sorted(shy.intersection(jobs)) if len(jobs) > 1 else ():
            job = problem.jobs[j]
            if job.whole_nodes and len(jobs) > 1:
                others = [problem.jobs[i].name for i in jobs[: _SHOWN + 1] if i != j][:_SHOWN]
                more = len(jobs) - 1 - len(others)
                with_whom = ", ".join(others) + (f" and {more} more" if more else "")
                words.append(f"whole nodes: job {job.name} shares {fleet.names[node]} with {with_whom}")
            words += [
                f"apart: jobs {job.name} and {name} are both on {fleet.names[node]}"
                for name in job.apart
                if name in names
            ]
    return words


def _used(problem: PlacementProblem, plan: PlacementPlan) -> FloatArray:
    """Return the cores, bytes of memory and bytes/s of the NIC that tasks take on each node, (3, m)."""
    tasks = [
        np.array([(x.cpu, x.memory, x.nic) for x in demands]).reshape(-1, 3)[plan.job].T
        for demands in ((job.worker for job in problem.jobs), (job.server for job in problem.jobs))
    ]
    need = tasks[0] * plan.workers + tasks[1] * plan.servers
    return np.array([sums(plan.node, row, problem.fleet.n_nodes) for row in need])


def _capacity(problem: PlacementProblem, plan: PlacementPlan) -> list[str]:
    fleet = problem.fleet
    has = np.array([fleet.cpu, fleet.memory, fleet.nic])
    used = _used(problem, plan)
    return [
        f"{field}: the tasks on {fleet.names[i]} need {used[k, i]:.6g} {unit}, it has {has[k, i]:.6g}"
        for k, (field, unit) in enumerate((("cpu", "cores"), ("memory", "bytes"), ("nic", "bytes/s")))
        for i in np.flatnonzero(used[k] > has[k] * (1 + TOLERANCE))
    ]


def _grants(problem: PlacementProblem, plan: PlacementPlan) -> tuple[list[str], FloatArray]:
    """Check that every worker holds its GPUs, and that no GPU is given out beyond itself."""
    fleet, jobs = problem.fleet, problem.jobs
    words = []
    grants = np.bincount(plan.grant_row, minlength=len(plan.job))
    each = np.array([job.worker.grants for job in jobs], dtype=int)[plan.job]
    for r in np.flatnonzero(grants != each * plan.workers):
        name, where = jobs[plan.job[r]].name, fleet.names[plan.node[r]]
        words.append(
            f"GPUs: job {name} holds {grants[r]} on {where}, its workers there need {each[r] * plan.workers[r]}"
        )
    share = np.array([min(job.worker.gpu, 1.0) for job in jobs])[plan.job][plan.grant_row]
    node = plan.node[plan.grant_row]
    for g in np.flatnonzero(plan.grant_gpu >= fleet.gpus[node]):
        words.append(
            f"GPUs: GPU {plan.grant_gpu[g]} of {fleet.names[node[g]]} is given out, it has {fleet.gpus[node[g]]}"
        )
    (nodes, cards), index, _ = distinct(node, plan.grant_gpu)
    used = sums(index, share, len(cards))
    for i in np.flatnonzero(used > 1 + TOLERANCE):
        words.append(f"GPUs: {used[i]:.6g} of GPU {cards[i]} of {fleet.names[nodes[i]]} are given out")
    return words, sums(nodes, used, fleet.n_nodes)


def _moved(problem: PlacementProblem, plan: PlacementPlan) -> list[Running]:
    if not problem.running:
        return []
    index = {job.name: j for j, job in enumerate(problem.jobs)}
    node = {name: i for i, name in enumerate(problem.fleet.names)}
    rows: dict[int, dict[int, tuple[int, int]]] = {index[run.job]: {} for run in problem.running}
    mine = np.isin(plan.job, list(rows))
    for j, n, w, p in np.stack([plan.job, plan.node, plan.workers, plan.servers], axis=1)[mine].tolist():
        rows[j][n] = (w, p)
    return [
        run
        for run in problem.running
        if rows[index[run.job]]
        != {node[n]: (w, p) for n, w, p in zip(run.nodes, run.workers, run.servers, strict=True) if w or p}
    ]


def _pinned(problem: PlacementProblem, plan: PlacementPlan) -> list[str]:
    return [f"pinned: job {run.job} runs already and may not move" for run in _moved(problem, plan) if not run.movable]


Left = tuple[float, float, float]
"""Cores, bytes of memory and bytes/s of the NIC."""


class Fragmentation:
    """Expected fragments of nodes under the mix of a problem (FGD: Weng et al., USENIX ATC 2023, section 4).

    To a task k with GPUs, the fragment F(k) of a node is all that is free on its GPUs if k does not fit there, and else
    what is free on GPUs that have less free than the share of a GPU that k asks for. Expected is the sum over k of
    p(k) F(k), in GPUs, with p(k) the share of k in the mix. Tasks without GPUs use none anywhere and are not counted.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        """Take the mix and the nodes of `problem`."""
        fleet = problem.fleet
        self.kinds = [(x.task, x.share) for x in problem.expected() if x.task.demand.grants]
        self._type = [fleet.gpu_types[t] if g else "" for t, g in zip(fleet.gpu_type, fleet.gpus, strict=True)]
        self._has = list(zip(fleet.cpu.tolist(), fleet.memory.tolist(), fleet.nic.tolist(), strict=True))
        self._usable = np.asarray(fleet.usable).tolist()
        self._known: dict[object, float] = {}

    def __call__(self, node: int, free: Sequence[float], left: Left) -> float:
        """Return the expected fragments of `node`, in GPUs; nothing is free on one that is not usable.

        Args:
            node: its number.
            free: what is free of each GPU, from 0 to 1; GPUs that are taken may be missing.
            left: what else is free.
        """
        if not self._usable[node]:
            return 0.0
        key = self._type[node], self._has[node], tuple(free), left
        if key not in self._known:
            total = sum(free)
            self._known[key] = sum(p * (total - self._used(node, task, free, left)) for task, p in self.kinds)
        return self._known[key]

    def fits(self, node: int, task: Task, free: Sequence[float], left: Left) -> bool:
        """Return whether a task with GPUs fits `node`, given what is free there."""
        demand = task.demand
        enough = sum(x >= min(1.0, demand.gpu) - TOLERANCE for x in free) >= demand.grants
        accepted = not task.gpu_types or self._type[node] in task.gpu_types
        needs = demand.cpu, demand.memory, demand.nic
        return (
            enough
            and accepted
            and all(need <= x + TOLERANCE * has for need, x, has in zip(needs, left, self._has[node], strict=True))
        )

    def _used(self, node: int, task: Task, free: Sequence[float], left: Left) -> float:
        """Return the free GPUs that tasks like `task` can use, each for itself."""
        if not self.fits(node, task, free, left):
            return 0.0
        share = min(1.0, task.demand.gpu)
        return sum(x for x in free if x >= share - TOLERANCE)


def fragments(problem: PlacementProblem, plan: PlacementPlan) -> FloatArray:
    """Return the expected fragments of each node under `plan`, which must be feasible, in GPUs, float64 (m,)."""
    fleet, jobs = problem.fleet, problem.jobs
    measure, m = Fragmentation(problem), fleet.n_nodes
    left = (np.array([fleet.cpu, fleet.memory, fleet.nic]) - _used(problem, plan)).tolist()
    used = np.zeros((m, int(fleet.gpus.max(initial=0))))
    share = np.array([min(job.worker.gpu, 1.0) for job in jobs])[plan.job][plan.grant_row]
    np.add.at(used, (plan.node[plan.grant_row], plan.grant_gpu), share)
    free = [np.maximum(0.0, 1 - used[n, :g]).tolist() for n, g in enumerate(fleet.gpus.tolist())]
    return np.array([measure(n, free[n], (left[0][n], left[1][n], left[2][n])) for n in range(m)])
