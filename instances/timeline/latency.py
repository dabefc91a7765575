"""The timeline of one sample: calls to accelerators, ops on hosts."""

from __future__ import annotations

import numpy as np

from ..arrays import sums
from ..partition import LatencyPlan, LatencyProblem
from ..verify import TOLERANCE, Verdict
from ..verify.latency import timetable
from .bars import Bar, Row, Timeline, assemble
from .chain import critical_chain


def latency_timeline(problem: LatencyProblem, plan: LatencyPlan, verdict: Verdict) -> Timeline:
    """Draw up `plan`: of a call the transfers in, the compute and the transfers out, of a host its ops in lanes."""
    graph, cluster, device = problem.graph, problem.cluster, plan.device
    calls = timetable(problem, device, verdict.load)
    unit, start, finish = calls.unit.tolist(), calls.start.tolist(), calls.finish.tolist()
    slack = TOLERANCE * max(finish)
    used = sorted(set(device.tolist()))
    rows = [Row(f"{d} ({cluster.device_types[cluster.type_of[d]].name})", d) for d in used]
    members: list[list[int]] = [[] for _ in start]
    for i, x in enumerate(unit):
        members[x].append(i)
    into, out = _moved(problem, device)
    host = problem.hosts()
    bars: list[Bar] = []
    same: list[int] = []
    of_unit: list[list[int]] = []
    for x, (d, ops) in enumerate(zip(calls.device.tolist(), members, strict=True)):
        row, held = used.index(d), float(graph.memory[ops].sum())
        made = []
        if host[d]:
            kind = "backward" if graph.backward[ops[0]] else "forward"
            made = [Bar(row, kind, graph.names[ops[0]], start[x], finish[x], held)]
        else:
            begin, end = start[x] + into[0][d], finish[x] - out[0][d]
            name = graph.names[ops[0]] if len(ops) == 1 else f"{len(ops)} ops"
            made = [Bar(row, "call", name, begin, end, held, len(ops))]
            if into[2][d]:
                made.insert(0, Bar(row, "transfer", "in", start[x], begin, into[1][d], int(into[2][d])))
            if out[2][d]:
                made.append(Bar(row, "transfer", "out", end, finish[x], out[1][d], int(out[2][d])))
        of_unit.append(list(range(len(bars), len(bars) + len(made))))
        bars += made
        same += [x] * len(made)
    waits: list[list[int]] = [[] for _ in start]
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        if unit[u] != unit[v]:
            waits[unit[v]].append(unit[u])
    chain = [bar for x in critical_chain(finish, waits, slack) for bar in of_unit[x]]
    return assemble(rows, bars, chain, same, verdict, cluster.n_devices - len(used), slack)


Moved = tuple[list[float], list[float], list[float]]
"""Seconds, bytes and number of outputs, of each device."""


def _moved(problem: LatencyProblem, device: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> tuple[Moved, Moved]:
    """Return what each device receives and what it sends; see `verify.verdict.transfers`."""
    u, v = problem.graph.source, problem.graph.target
    cut = device[u] != device[v]
    received = np.unique(np.stack([u[cut], device[v[cut]]]), axis=1)
    sent = np.unique(u[cut])
    weights = (problem.transfer(), problem.graph.output_bytes(), np.ones(problem.graph.n_ops))
    d = problem.cluster.n_devices
    seconds, size, count = (
        (sums(received[1], w[received[0]], d).tolist(), sums(device[sent], w[sent], d).tolist()) for w in weights
    )
    return (seconds[0], size[0], count[0]), (seconds[1], size[1], count[1])
