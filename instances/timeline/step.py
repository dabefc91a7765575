"""The timeline of a step: ops on devices, transfers on links."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from ..partition import StepPlan, StepProblem
from ..partition.route import Links
from ..verify import TOLERANCE, Verdict
from ..verify.step import needed
from .bars import Bar, Row, Timeline, assemble
from .chain import critical_chain


def step_timeline(problem: StepProblem, plan: StepPlan, verdict: Verdict) -> Timeline:
    """Draw up `plan`: with contention each transfer on every link of its way, else where it leaves and arrives."""
    graph, cluster, device = problem.graph, problem.cluster, plan.device
    n = graph.n_ops
    seconds = problem.time()[cluster.type_of[device], np.arange(n)]
    finish = plan.start + seconds
    slack = TOLERANCE * float(finish.max())
    op, to = needed(problem, device)
    took = problem.delay(op, device[op], to)
    op, to, took = op[took > 0], to[took > 0], took[took > 0]
    sent = dict(zip(zip(plan.sent.tolist(), plan.receiver.tolist(), strict=True), plan.sent_at.tolist(), strict=True))
    leaves = [sent.get(pair, float(finish[pair[0]])) for pair in zip(op.tolist(), to.tolist(), strict=True)]

    links = Links(cluster)
    routes = [links.route(a, b) for a, b in zip(device[op].tolist(), to.tolist(), strict=True)]
    shown = [route if problem.contention else (route[0], route[-1]) for route in routes]
    rows, of_link = _rows(problem, sorted(set(device.tolist())), links, {x for route in shown for x in route})
    of_device = {row.device: i for i, row in enumerate(rows) if not row.link}

    bars = [
        Bar(of_device[d], "backward" if back else "forward", name, a, b, size)
        for d, back, name, a, b, size in zip(
            device.tolist(),
            graph.backward.tolist(),
            graph.names,
            plan.start.tolist(),
            finish.tolist(),
            graph.memory.tolist(),
            strict=True,
        )
    ]
    same = list(range(n))
    size = graph.output_bytes()
    first: list[int] = []
    for i, (u, d, start, lasts) in enumerate(zip(op.tolist(), to.tolist(), leaves, took.tolist(), strict=True)):
        first.append(len(bars))
        for link in shown[i]:
            bars.append(
                Bar(
                    of_link[link],
                    "transfer",
                    graph.names[u],
                    start,
                    start + lasts,
                    float(size[u]),
                    sender=int(device[u]),
                    receiver=d,
                )
            )
            same.append(n + i)

    ends = finish.tolist() + [a + b for a, b in zip(leaves, took.tolist(), strict=True)]
    transfer_of = {pair: n + i for i, pair in enumerate(zip(op.tolist(), to.tolist(), strict=True))}
    waits: list[list[int]] = [[] for _ in range(n)] + [[u] for u in op.tolist()]
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        waits[v].append(transfer_of.get((u, int(device[v])), u))
    _queue(waits, list(enumerate(device.tolist())), plan.start.tolist() + leaves, ends)
    if problem.contention:
        _queue(waits, [(n + i, x) for i, route in enumerate(routes) for x in route], plan.start.tolist() + leaves, ends)
    chain = [i if i < n else first[i - n] for i in critical_chain(ends, waits, slack)]
    idle = cluster.n_devices - len(of_device)
    return assemble(rows, bars, chain, same, verdict, idle, slack)


def _rows(problem: StepProblem, used: list[int], links: Links, shown: set[int]) -> tuple[list[Row], dict[int, int]]:
    cluster = problem.cluster
    rows: list[Row] = []
    of_link: dict[int, int] = {}
    for d in used:
        rows.append(Row(f"{d} ({cluster.device_types[cluster.type_of[d]].name})", d))
        for link, way in ((2 * d, "out"), (2 * d + 1, "in")):
            if link in shown:
                of_link[link] = len(rows)
                rows.append(Row(way, d, link=True))
    for link in sorted(x for x in shown if x >= 2 * cluster.n_devices):
        of_link[link] = len(rows)
        rows.append(Row(links.names[link], link=True))
    return rows, of_link


def _queue(waits: list[list[int]], served: list[tuple[int, int]], start: list[float], finish: list[float]) -> None:
    """Let each item wait for the one that its machine serves before it."""
    queues: dict[int, list[int]] = defaultdict(list)
    for item, machine in served:
        queues[machine].append(item)
    for queue in queues.values():
        queue.sort(key=lambda i: (start[i], finish[i], i))
        for before, after in pairwise(queue):
            waits[after].append(before)
