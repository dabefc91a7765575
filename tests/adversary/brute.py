"""Optima of tiny problems by looking at every plan: the verifier is all that they know of a problem.

The verifier lets times be a little off. Plans are made twice, as they should be and as early as it lets them be: the
least of the two is what no bound may exceed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from gangplan.instances.partition import LatencyPlan, Links, PartitionPlan, StagesPlan, StepPlan
from gangplan.instances.placement import PlacementPlan
from gangplan.instances.schedule import NodePool, Pool, SchedulePlan
from gangplan.instances.verify import verify

EARLY = 0.999e-9
"""Share of a makespan by which starts of a step are early where the verifier lets them be; of a run, in a schedule."""


def optimum(problem: Any) -> tuple[float | None, Any]:
    """Return the least objective that the verifier finds of any plan, and the plan; `None` if none is feasible."""
    best: tuple[float | None, Any] = None, None
    for plan in PLANS[problem.objective](problem):
        objective = verify(problem, plan).objective
        if objective is not None and (best[0] is None or objective < best[0]):
            best = objective, plan
    return best


def _devices(problem: Any) -> Iterator[list[int]]:
    """Yield the devices of all ops, classes together, those that no device of a type runs left out."""
    graph, kinds = problem.graph, problem.cluster.type_of.tolist()
    runs = np.isfinite(problem.time()).tolist()
    able = [[d for d, t in enumerate(kinds) if runs[t][i]] for i in range(graph.n_ops)]
    leader = [min(j for j, d in enumerate(graph.colocation.tolist()) if d == c >= 0 or j == i)
              for i, c in enumerate(graph.colocation.tolist())]  # fmt: skip
    for device in product(*able):
        if all(device[i] == device[j] for i, j in enumerate(leader)):
            yield list(device)


def _throughput(problem: Any) -> Iterator[PartitionPlan]:
    names = problem.graph.names
    for device in _devices(problem):
        used = sorted(set(device))
        for order in permutations(used) if problem.variant == "contiguous" else [used]:
            yield PartitionPlan(names, device, [order.index(d) for d in device])


def _latency(problem: Any) -> Iterator[LatencyPlan]:
    return (LatencyPlan(problem.graph.names, device) for device in _devices(problem))


def _step(problem: Any) -> Iterator[StepPlan]:
    """Yield the plans in which ops, and transfers, begin as early as those before them on their machines allow."""
    for device in _devices(problem):
        for sequence in _sequences(problem, device):
            plan, makespan = _timed(problem, device, sequence, 0.0)
            yield plan
            yield _timed(problem, device, sequence, EARLY * makespan)[0]


def _sequences(problem: Any, device: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield the orders of ops (op, -1) and transfers (op, receiver) in which each comes after what it waits for."""
    graph = problem.graph
    edges = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    sends = {(u, device[v]) for u, v in edges if device[u] != device[v]}
    sends = {x for x in sends if problem.contention and problem.delay(np.array([x[0]]), device[x[0]], x[1])[0] > 0}
    waits: dict[tuple[int, int], set[tuple[int, int]]] = {(u, -1): set() for u in range(graph.n_ops)}
    waits |= {send: {(send[0], -1)} for send in sends}
    for u, v in edges:
        waits[v, -1].add((u, device[v]) if (u, device[v]) in sends else (u, -1))

    def extend(done: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        if len(done) == len(waits):
            yield done
        for item in sorted(waits.keys() - {*done}):
            if waits[item] <= {*done}:
                yield from extend([*done, item])

    return extend([])


def _timed(problem: Any, device: list[int], sequence: list[tuple[int, int]], early: float) -> tuple[StepPlan, float]:
    graph, links = problem.graph, Links(problem.cluster)
    seconds = problem.time()[problem.cluster.type_of[device], range(graph.n_ops)].tolist()
    start, there = [0.0] * graph.n_ops, dict[tuple[int, int], float]()
    free, sent = dict[Any, float](), list[tuple[int, int, float]]()
    before: list[list[int]] = [[] for _ in start]
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        before[v].append(u)
    for op, to in sequence:
        if to < 0:
            ready = [there.get((u, device[op]), there[u, -1]) for u in before[op]]
            start[op] = max(0.0, max([free.get(("device", device[op]), 0.0), *ready]) - early)
            free["device", device[op]] = there[op, -1] = start[op] + seconds[op]
            if not problem.contention:
                for d in range(problem.cluster.n_devices):
                    there[op, d] = there[op, -1] + float(problem.delay(np.array([op]), device[op], d)[0])
        else:
            route = links.route(device[op], to)
            at = max(0.0, max([there[op, -1], *(free.get(x, 0.0) for x in route)]) - early)
            sent.append((op, to, at))
            there[op, to] = at + float(problem.delay(np.array([op]), device[op], to)[0])
            free |= dict.fromkeys(route, there[op, to])
    ops, receivers, at = zip(*sent, strict=True) if sent else ((), (), ())
    makespan = max(there[u, -1] for u in range(graph.n_ops))
    return StepPlan(graph.names, device, start, ops, receivers, at), makespan


def _stages(problem: Any) -> Iterator[StagesPlan]:
    graph, n, devices = problem.graph, problem.graph.n_ops, problem.cluster.n_devices
    menu = problem.options().degree.tolist()
    for count in range(1, min(n, devices) + 1):
        for stage in product(range(count), repeat=n):
            if len({*stage}) < count:
                continue
            for serves in product(range(-1, count), repeat=devices):
                if {*range(count)} <= {*serves}:
                    for degree in product(menu, repeat=count):
                        yield StagesPlan(graph.names, stage, serves, degree)


def _schedule(problem: Any) -> Iterator[SchedulePlan]:
    """Yield the schedules in which jobs, one after the other, begin as soon as there is room."""
    modes = [list(_modes(problem, j)) for j in range(len(problem.jobs))]
    for chosen in product(*modes):
        run = [j for j, mode in enumerate(chosen) if mode]
        for order in permutations(run):
            for early in (0.0, EARLY):
                yield _started(problem, chosen, order, early)


def _modes(problem: Any, j: int) -> Iterator[Any]:
    """Yield how a job can run: its degree and what it holds of each machine; `None` if it may be left out."""
    capacity, job = problem.capacity, problem.jobs[j]
    if problem.price(j) is not None:
        yield None
    for k, degree in enumerate(job.degrees):
        if isinstance(capacity, Pool):
            yield from [(k, {0: degree})] if degree <= capacity.gpus else []
        else:
            assert isinstance(capacity, NodePool)
            full, rest = divmod(degree, capacity.gpus)
            for nodes in permutations(range(capacity.nodes), full + (rest > 0)):
                if list(nodes[:full]) == sorted(nodes[:full]):
                    yield k, dict.fromkeys(nodes[:full], capacity.gpus) | ({nodes[full]: rest} if rest else {})


def _started(problem: Any, chosen: Any, order: Any, early: float) -> SchedulePlan:
    room = problem.capacity.gpus
    held: list[tuple[float, float, dict[int, int]]] = []
    degree, start = [-1] * len(chosen), [0.0] * len(chosen)

    def off(seconds: float, at: float) -> float:
        return early * seconds + (3.9 * float(np.spacing(abs(at))) if early else 0.0)

    for j in order:
        k, machines = chosen[j]
        seconds, release = problem.jobs[j].durations[k], problem.jobs[j].release
        first = max(0.0, release - off(seconds, release))
        for at in sorted({first, *(end for _, end, _ in held if end > first)}):
            end = max(at, at + seconds - off(seconds, at + seconds))
            points = {at, *(a for a, _, _ in held if at <= a < end)}
            if end <= at or all(
                sum(m.get(x, 0) for a, b, m in held if a <= p < b) + need <= room
                for p in points for x, need in machines.items()
            ):  # fmt: skip
                break
        degree[j], start[j] = k, at
        held.append((at, end, machines))
    rows = [(j, x, g) for j in order for x, g in chosen[j][1].items()] if isinstance(problem.capacity, NodePool) else []
    job, node, gpus = zip(*rows, strict=True) if rows else ((), (), ())
    return SchedulePlan(tuple(job.name for job in problem.jobs), degree, start, job, node, gpus)


def _placement(problem: Any) -> Iterator[PlacementPlan]:
    """Yield the plans of all ways to seat each job: workers and servers on nodes, and the GPUs of each node."""
    fleet, jobs = problem.fleet, problem.jobs
    ways = []
    for job in jobs:
        mine: list[Any] = [[]] if job.value is not None else []
        for count in job.workers:
            for spread in product(range(count + 1), repeat=fleet.n_nodes):
                for served in product(range(job.servers + 1), repeat=fleet.n_nodes):
                    if sum(spread) == count and sum(served) == job.servers:
                        cards = [list(_cards(job, w, int(g))) for w, g in zip(spread, fleet.gpus, strict=True)]
                        mine += [
                            [(x, w, p, c) for x, (w, p, c) in enumerate(zip(spread, served, given, strict=True)) if w + p]
                            for given in product(*cards)
                        ]
        ways.append(mine)
    for chosen in product(*ways):
        rows = [(j, *row) for j, mine in enumerate(chosen) for row in mine]
        job, node, workers, servers, cards = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        grants = [(r, g) for r, own in enumerate(cards) for g in own]
        row, gpu = zip(*grants, strict=True) if grants else ((), ())
        yield PlacementPlan(tuple(x.name for x in jobs), job, node, workers, servers, row, gpu)


def _cards(job: Any, workers: int, gpus: int) -> Iterator[tuple[int, ...]]:
    if 0 < job.worker.gpu < 1:
        yield from (x for x in product(range(gpus), repeat=workers) if list(x) == sorted(x))
    else:
        yield from combinations(range(gpus), job.worker.grants * workers)


PLANS = {
    "throughput": _throughput,
    "latency": _latency,
    "step": _step,
    "stages": _stages,
    "schedule": _schedule,
    "placement": _placement,
}
"""All plans of a problem that may be best, by objective."""
