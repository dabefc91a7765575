"""Who leaves so that a gang has room, against greedy rules, up to 100,000 GPUs: ``python -m benchmarks eviction``.

Full clusters of nodes with 8 GPUs and 64 cores: single GPUs; jobs of 1, 2, 4 and 8 GPUs on a node; these and gangs on
2 to 16 whole nodes, which have two fifths of the nodes. A job costs what it has done: log-normal hours times its GPUs.
Three gangs come to each, anywhere and in one rack of 16 nodes, and ask for GPUs, or for cores too. Milliseconds are of
one thread's processor, the median of three searches, which have a tenth of a second of it each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from heapq import heapify, heapreplace
from time import process_time
from unittest.mock import patch

import numpy as np

from gangplan.solvers.placement.eviction import Occupancy, cheapest_eviction

from .found import Found, table
from .rows import Task
from .study import Options, Study

SIZES, RACK, GPUS, CORES, LIMIT = (64, 1024, 12_500), 16, 8, 64, 0.1
KINDS = ("singles", "mixed", "gangs")
GANGS = ((1, 8), (8, 8), (33, 2))
"""Workers, and GPUs of each."""
RULES = ("cost", "youngest", "node")


@cache
def cluster(nodes: int, kind: str, cores: bool, seed: int) -> tuple[Occupancy, np.ndarray]:
    """Return who is where, in racks, and for how many hours each job has run."""
    rng = np.random.default_rng([nodes, KINDS.index(kind), seed])
    free, parts, gpus = np.array([[GPUS], [CORES]]).repeat(nodes, axis=1), [], []
    order, at = rng.permutation(nodes).tolist(), 0
    while kind == "gangs" and at < 0.4 * nodes:
        width = int(rng.choice([2, 4, 8, 16], p=[0.5, 0.25, 0.15, 0.1]))
        for n in order[at : at + width]:
            parts.append((len(gpus), n, GPUS, int(rng.integers(16, CORES + 1))))
            free[:, n] -= parts[-1][2:]
        gpus.append(width * GPUS)
        at += width
    for n in order[at:]:
        while free[0, n]:
            wide = 1 if kind == "singles" else min(int(rng.choice([1, 2, 4, 8], p=[0.5, 0.2, 0.15, 0.15])), free[0, n])
            parts.append((len(gpus), n, wide, min(int(rng.integers(1, 9)) * wide, int(free[1, n]))))
            free[:, n] -= parts[-1][2:]
            gpus.append(wide)
    job, node, *used = (np.array(column, np.int64) for column in zip(*parts, strict=True))
    rows, age = slice(0, 1 + cores), rng.lognormal(0.0, 1.5, len(gpus))
    of = Occupancy(
        free[rows], np.full(nodes, GPUS), np.arange(nodes) // RACK, job, node, np.stack(used)[rows],
        np.zeros(len(job), bool), age * gpus,
    )  # fmt: skip
    return of, age


def asked(workers: int, gpus: int, rack: bool) -> tuple[int, int]:
    """Return what a gang asks for: in a rack as much as that has at most."""
    return min(workers, RACK * GPUS // gpus) if rack else workers, gpus


def greedy(of: Occupancy, need: np.ndarray, workers: int, age: np.ndarray, rule: str) -> float:
    """Return what a rule's set costs in the best domain, worker by worker, less the jobs that can be spared.

    Args:
        of: who is where.
        need, workers: of the gang.
        age: of each job.
        rule: ``cost``: the node where room for one more worker costs least; its jobs leave by cost for what they hold.
            ``youngest``: the youngest jobs leave until the gang fits. ``node``: as Kubernetes does for one pod after
            the other, the node with the fewest jobs that leave, then the youngest, jobs being kept by age.
    """
    on: list[list[int]] = [[] for _ in of.most]
    of_job: list[list[int]] = [[] for _ in of.cost]
    for i, (j, n) in enumerate(zip(of.job.tolist(), of.node.tolist(), strict=True)):
        on[n].append(i)
        of_job[j].append(i)
    best = np.inf
    for domain in np.unique(of.domain).tolist():
        nodes = np.flatnonzero(of.domain == domain)
        if int(of.most[nodes].sum()) >= workers:
            best = min(best, _in_domain(of, need, workers, age, rule, nodes.tolist(), on, of_job))
    return best


def _in_domain(
    of: Occupancy, need: np.ndarray, workers: int, age: np.ndarray, rule: str, nodes: list[int],
    on: list[list[int]], of_job: list[list[int]],
) -> float:  # fmt: skip
    free, gone = of.free.copy(), set[int]()
    room = {n: int(min(of.most[n], (free[:, n] // need).min())) for n in nodes}
    held = (of.used / need[:, None]).max(axis=0)

    def leave(j: int, sign: int = 1) -> None:
        (gone.add if sign > 0 else gone.discard)(j)
        for i in of_job[j]:
            n = int(of.node[i])
            free[:, n] += sign * of.used[:, i]
            if n in room:
                room[n] = int(min(of.most[n], (free[:, n] // need).min()))

    def plan(n: int) -> tuple[tuple[float, ...], list[int]]:
        """Return what one more worker on a node is worth to the rule, and who leaves."""
        lack, out = (room[n] + 1) * need - free[:, n], list[int]()
        here = [i for i in on[n] if int(of.job[i]) not in gone]
        if room[n] == of.most[n]:
            return (np.inf,), []
        order = (lambda i: of.cost[of.job[i]] / held[i]) if rule == "cost" else (lambda i: age[of.job[i]])
        for i in sorted(here, key=order):
            if (lack <= 0).all():
                break
            out.append(i)
            lack = lack - of.used[:, i]
        for i in sorted(out, key=lambda i: -(of.cost if rule == "cost" else age)[of.job[i]]):
            if (lack + of.used[:, i] <= 0).all():  # it can be spared
                out.remove(i)
                lack = lack + of.used[:, i]
        jobs = [int(of.job[i]) for i in out]
        price = float(of.cost[jobs].sum())
        return ((price,) if rule == "cost" else (len(jobs), float(age[jobs].max(initial=0.0)))), jobs

    if rule == "youngest":
        jobs = sorted({int(of.job[i]) for n in nodes for i in on[n]}, key=lambda j: age[j])
        for j in jobs:
            if sum(room.values()) >= workers:
                break
            leave(j)
    else:
        heap = [(plan(n)[0], n) for n in nodes]
        heapify(heap)
        while sum(room.values()) < workers:
            key, n = heap[0]
            now, jobs = plan(n)
            if now == key:
                for j in jobs:
                    leave(j)
                now = plan(n)[0]
            heapreplace(heap, (now, n))
    for j in sorted(gone, key=lambda j: -of.cost[j]):
        leave(j, -1)
        if sum(room.values()) < workers:
            leave(j)
    return float(of.cost[list(gone)].sum())


def tasks(options: Options) -> Iterator[Task]:
    """Yield every size, anywhere and in a rack; the rules up to 1,024 nodes."""
    for case in options.chosen(f"{size} {where}" for size in SIZES for where in ("anywhere", "rack")):
        for policy in options.policies or ("cheapest", *RULES):
            if policy == "cheapest" or int(case.split()[0]) <= 1024:
                yield from (Task(case, policy, seed) for seed in range(options.seeds or 5))


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Return how long a search takes and how often it proves that no set costs less, or how much dearer a rule's is."""
    size, where = task.case.split()
    spent, proved, gap, dearer = list[float](), list[bool](), list[float](), list[float]()
    for kind in KINDS:
        for cores in (False, True):
            of, age = cluster(int(size), kind, cores, task.seed)
            domain = of.domain if where == "rack" else np.zeros_like(of.domain)
            for gang in GANGS:
                workers, gpus = asked(*gang, where == "rack")
                need = np.array([gpus, 4 * gpus])[: 1 + cores]
                there = _with(of, domain, GPUS // gpus)
                took = []
                for _ in range(3 if task.policy == "cheapest" else 1):
                    began = process_time()
                    with patch("time.perf_counter", process_time):  # others may use this machine
                        found = cheapest_eviction(there, need, workers, time_limit=LIMIT)
                    took.append(1e3 * (process_time() - began))
                assert found is not None
                if task.policy == "cheapest":
                    spent.append(float(np.median(took)))
                    proved.append(found.proved)
                    gap.append(1 - found.bound / found.cost if found.cost else 0.0)
                elif found.cost:
                    dearer.append(greedy(there, need, workers, age, task.policy) / found.cost - 1)
    if task.policy == "cheapest":
        return {
            "ms": float(np.median(spent)), "most_ms": max(spent), "proved": float(np.mean(proved)),
            "gap": float(np.max(gap)),
        }  # fmt: skip
    return {"dearer": float(np.mean(dearer))}


def _with(of: Occupancy, domain: np.ndarray, most: int) -> Occupancy:
    return Occupancy(of.free, np.full(len(of.most), most), domain, of.job, of.node, of.used, of.blocks, of.cost)


def rooms(found: Found) -> str:
    """Return a line a size: how long, how often proved, how much dearer the rules are."""
    lines = []
    for case in (f"{size} {where}" for size in SIZES for where in ("anywhere", "rack")):
        size, where = case.split()
        figures: Callable[[str, str], list[float]] = lambda policy, name, case=case: [  # noqa: E731
            run.figures[name] for run in found.runs.get((case, policy), {}).values()
        ]
        if not figures("cheapest", "ms"):
            continue
        rules = [f"+{np.mean(x):.0%}" if (x := figures(rule, "dearer")) else "" for rule in RULES]
        ms = f"{np.mean(figures('cheapest', 'ms')):.1f}, {max(figures('cheapest', 'most_ms')):.0f}"
        shares = f"{np.mean(figures('cheapest', 'proved')):.0%}", f"{max(figures('cheapest', 'gap')):.1%}"
        lines.append((f"{int(size):,}", "one rack" if where == "rack" else where, ms, *shares, *rules))
    head = ("nodes", "the gang is in", "ms, most", "proved", "largest gap")
    return table((*head, "by cost", "youngest first", "node by node"), lines)


STUDY = Study(
    "eviction",
    ("ms", "most_ms", "proved", "gap", "dearer"),
    tasks,
    measure,
    {"scheduler-results.md": {"eviction": rooms}},
)
"""Milliseconds, the median and the most; shares of the least-cost sets; of a rule's sets, of the cost of ours."""
