"""When everything of a plan of a graph runs, as bars in rows, for pictures and tables; the timing is the verifier's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import BoolArray, FloatArray, sums
from ..graph import OpGraph
from ..partition import (
    GraphProblem,
    LatencyPlan,
    LatencyProblem,
    Links,
    PartitionPlan,
    PartitionProblem,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
)
from ..verify import TOLERANCE, Verdict, verify
from ..verify.partition import timetable
from ..verify.verdict import needed

KINDS = ("forward", "backward", "transfer", "call")
"""What a bar stands for: ops of one direction, data under way, a call to an accelerator."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One line of a timeline: a device, or a link.

    Attributes:
        name: what it is called.
        device: index of the device whose row or link it is, or of one of several that do the same; `None` for a link
            that several devices share.
        link: whether it shows transfers.
        lanes: how many bars lie on top of one another where it is fullest.
    """

    name: str
    device: int | None = None
    link: bool = False
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that takes time.

    Attributes:
        row: index into the timeline's rows.
        kind: one of `KINDS`.
        label: the name of the op, or what else it is.
        start, finish: seconds.
        size: bytes moved by a transfer, held in memory by ops.
        count: how many ops or outputs it stands for.
        sender, receiver: devices of a single transfer, otherwise `None`.
        lane: its place among those of its row; bars of one lane do not overlap.
        critical: whether it is on the chain that leads to the last finish.
    """

    row: int
    kind: str
    label: str
    start: float
    finish: float
    size: float = 0.0
    count: int = 1
    sender: int | None = None
    receiver: int | None = None
    lane: int = 0
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """When everything of a plan runs.

    Attributes:
        rows: the devices in use, each followed by its links, then links that devices share.
        bars: in no particular order; a transfer has one on each link that it is shown on.
        chain: bars in the order of time up to the last finish, each the last that the next one waited for.
        makespan: the last finish, seconds: the verifier's objective.
        verdict: the verifier's, for loads and memory.
        idle: how many devices do nothing.
    """

    rows: tuple[TimelineRow, ...]
    bars: tuple[Bar, ...]
    chain: tuple[int, ...]
    makespan: float
    verdict: Verdict
    idle: int


def assemble(
    rows: Sequence[TimelineRow],
    bars: Sequence[Bar],
    chain: Sequence[int],
    same: Sequence[int],
    verdict: Verdict,
    idle: int,
    slack: float,
) -> Timeline:
    """Put bars into lanes and mark the critical ones.

    Args:
        rows, bars, verdict, idle: of the timeline.
        chain: the bars of the chain.
        same: for each bar, a number that it shares with the bars of the same transfer on other links.
        slack: seconds that bars of one lane may overlap, for rounding.
    """
    lane, lanes = [0] * len(bars), [1] * len(rows)
    free: list[list[float]] = [[] for _ in rows]
    for i in sorted(range(len(bars)), key=lambda i: (bars[i].start, bars[i].finish, i)):
        bar, ends = bars[i], free[bars[i].row]
        k = next((k for k, end in enumerate(ends) if end <= bar.start + slack), len(ends))
        ends[k : k + 1] = [max(bar.finish, ends[k]) if k < len(ends) else bar.finish]
        lane[i], lanes[bar.row] = k, max(lanes[bar.row], k + 1)
    critical = {same[i] for i in chain}
    return Timeline(
        rows=tuple(replace(row, lanes=count) for row, count in zip(rows, lanes, strict=True)),
        bars=tuple(replace(bar, lane=lane[i], critical=same[i] in critical) for i, bar in enumerate(bars)),
        chain=tuple(chain),
        makespan=max((bar.finish for bar in bars), default=0.0),
        verdict=verdict,
        idle=idle,
    )


def critical_chain(finish: Sequence[float], waits_for: Sequence[Sequence[int]], slack: float) -> list[int]:
    """Return the items that lead to the last finish, in the order of time: each the last that the next waited for.

    Args:
        finish: seconds, of each item.
        waits_for: the items that each one cannot start before; of several that finish together within `slack`
            seconds the first counts.
        slack: seconds, for rounding.
    """
    item: int | None = max(range(len(finish)), key=finish.__getitem__, default=None)
    found: list[int] = []
    seen: set[int] = set()
    while item is not None:
        found.append(item)
        seen.add(item)
        last: int | None = None
        for other in waits_for[item]:
            # items that take no time can wait for one another in a circle
            if other not in seen and (last is None or finish[other] > finish[last] + slack):
                last = other
        item = last
    return found[::-1]


__all__ = ["KINDS", "Bar", "Timeline", "TimelineRow", "timeline"]


def latency_timeline(problem: LatencyProblem, plan: LatencyPlan, verdict: Verdict) -> Timeline:
    """Draw up `plan`: of a call the transfers in, the compute and the transfers out, of a host its ops in lanes."""
    graph, cluster, device = problem.graph, problem.cluster, plan.device
    calls = timetable(problem, device, verdict.load)
    unit, start, finish = calls.unit.tolist(), calls.start.tolist(), calls.finish.tolist()
    slack = TOLERANCE * max(finish)
    used = sorted(set(device.tolist()))
    rows = [TimelineRow(f"{d} ({cluster.device_types[cluster.type_of[d]].name})", d) for d in used]
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
    received = needed(problem, device)
    sent = np.unique(received[0])
    weights = (problem.transfer(), problem.graph.output_bytes(), np.ones(problem.graph.n_ops))
    d = problem.cluster.n_devices
    seconds, size, count = (
        (sums(received[1], w[received[0]], d).tolist(), sums(device[sent], w[sent], d).tolist()) for w in weights
    )
    return (seconds[0], size[0], count[0]), (seconds[1], size[1], count[1])


def load_timeline(problem: PartitionProblem, plan: PartitionPlan, verdict: Verdict) -> Timeline:
    """Draw up `plan`: forward ops, backward ops, then transfers of each device, devices in the order of their stages.

    In which order a device does these for a sample is left open by the model; how long they take together is not.
    """
    graph, cluster, device = problem.graph, problem.cluster, plan.device
    seconds = problem.time()[cluster.type_of[device], np.arange(graph.n_ops)]
    cut = device[graph.source] != device[graph.target]
    ends = np.concatenate([device[graph.source[cut]], device[graph.target[cut]]])
    outputs = np.concatenate([graph.source[cut], graph.source[cut]])
    crossing = np.unique(np.stack([ends, outputs]), axis=1)
    stage = dict(zip(device.tolist(), plan.stage.tolist(), strict=True))
    rows: list[TimelineRow] = []
    bars: list[Bar] = []
    busiest = int(verdict.load.argmax())
    for x in sorted(stage, key=stage.__getitem__):
        moved = crossing[1][crossing[0] == x]
        load, transfer = float(verdict.load[x]), float(verdict.transfer[x])
        last = Bar(len(rows), "transfer", "transfer", 0, load, float(graph.output_bytes()[moved].sum()), len(moved))
        bars += _busy(graph, seconds, device == x, transfer, last)
        rows.append(TimelineRow(f"{x} ({cluster.device_types[cluster.type_of[x]].name})", x))
    chain = [i for i, bar in enumerate(bars) if rows[bar.row].device == busiest]
    idle, slack = cluster.n_devices - len(rows), TOLERANCE * float(verdict.load.max())
    return assemble(rows, bars, chain, list(range(len(bars))), verdict, idle, slack)


def stages_timeline(problem: StagesProblem, plan: StagesPlan, verdict: Verdict) -> Timeline:
    """Draw up `plan`: a row a stage, with its forward ops, backward ops and synchronisation, divided by its replicas.

    Where moves between stages set the pace there is one more row, for the slowest of them.
    """
    graph, objective = problem.graph, verdict.objective or 0.0
    kind = problem.cluster.device_types[problem.kind].name
    row = np.searchsorted(problem.options().degree, plan.degree)[plan.stage]
    seconds = problem.seconds()[row, np.arange(graph.n_ops)]
    rows: list[TimelineRow] = []
    bars: list[Bar] = []
    chain: list[int] = []
    for s, degree in enumerate(plan.degree.tolist()):
        serving = np.flatnonzero(plan.serves == s)
        d, mine = int(serving[0]), plan.stage == s
        load, begun, weights = float(verdict.load[d]), len(bars), float(graph.parameter_bytes[mine].sum())
        last = Bar(len(rows), "transfer", "synchronisation", 0, load, weights)
        bars += _busy(graph, seconds, mine, float(verdict.transfer[d]), last)
        if not chain and load >= objective * (1 - TOLERANCE):
            chain = list(range(begun, len(bars)))
        replicas = len(serving) // degree
        shared = f" of {degree}" if degree > 1 else ""
        rows.append(TimelineRow(f"stage {s}: {replicas}{shared} \u00d7 {kind}", d))
    if not chain:
        chain = [len(bars)]
        bars.append(Bar(len(rows), "transfer", "slowest move between stages", 0.0, objective))
        rows.append(TimelineRow("moves", link=True))
    idle = int((plan.serves < 0).sum())
    return assemble(rows, bars, chain, list(range(len(bars))), verdict, idle, TOLERANCE * objective)


def _busy(graph: OpGraph, seconds: FloatArray, mine: BoolArray, transfer: float, last: Bar) -> list[Bar]:
    """Return a bar for the forward ops among `mine`, one for the backward ops, and `last` if it takes any time.

    Ops share the time that `last`, which says when all is done, leaves: replicas take samples in turn.
    """
    bars, at = list[Bar](), 0.0
    each = (last.finish - transfer) / (float(seconds[mine].sum()) or 1.0)
    for word, chosen in (("forward", mine & ~graph.backward), ("backward", mine & graph.backward)):
        if chosen.any():
            end, held = at + each * float(seconds[chosen].sum()), float(graph.memory[chosen].sum())
            bars.append(Bar(last.row, word, word, at, end, held, int(chosen.sum())))
            at = end
    return [*bars, replace(last, start=at)] if transfer > 0 else bars


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

    where, size = device.tolist(), graph.output_bytes().tolist()
    kinds = np.where(graph.backward, "backward", "forward").tolist()
    spans = zip(where, kinds, graph.names, *(x.tolist() for x in (plan.start, finish, graph.memory)), strict=True)
    bars = [Bar(of_device[d], kind, name, a, b, held) for d, kind, name, a, b, held in spans]
    same = list(range(n))
    first: list[int] = []
    for i, (u, d, start, lasts) in enumerate(zip(op.tolist(), to.tolist(), leaves, took.tolist(), strict=True)):
        first.append(len(bars))
        end = start + lasts
        bars += [Bar(of_link[x], "transfer", graph.names[u], start, end, size[u], 1, where[u], d) for x in shown[i]]
        same += [n + i] * len(shown[i])

    ends = finish.tolist() + [a + b for a, b in zip(leaves, took.tolist(), strict=True)]
    transfer_of = {pair: n + i for i, pair in enumerate(zip(op.tolist(), to.tolist(), strict=True))}
    waits: list[list[int]] = [[] for _ in range(n)] + [[u] for u in op.tolist()]
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        waits[v].append(transfer_of.get((u, where[v]), u))
    _queue(waits, list(enumerate(where)), plan.start.tolist() + leaves, ends)
    if problem.contention:
        _queue(waits, [(n + i, x) for i, route in enumerate(routes) for x in route], plan.start.tolist() + leaves, ends)
    chain = [i if i < n else first[i - n] for i in critical_chain(ends, waits, slack)]
    idle = cluster.n_devices - len(of_device)
    return assemble(rows, bars, chain, same, verdict, idle, slack)


def _rows(
    problem: StepProblem, used: list[int], links: Links, shown: set[int]
) -> tuple[list[TimelineRow], dict[int, int]]:
    cluster = problem.cluster
    rows: list[TimelineRow] = []
    of_link: dict[int, int] = {}
    for d in used:
        rows.append(TimelineRow(f"{d} ({cluster.device_types[cluster.type_of[d]].name})", d))
        for link, way in ((2 * d, "out"), (2 * d + 1, "in")):
            if link in shown:
                of_link[link] = len(rows)
                rows.append(TimelineRow(way, d, link=True))
    for link in sorted(x for x in shown if x >= 2 * cluster.n_devices):
        of_link[link] = len(rows)
        rows.append(TimelineRow(links.names[link], link=True))
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


_DRAFTS: dict[type[GraphProblem], Callable[[Any, Any, Any], Timeline]] = {
    PartitionProblem: load_timeline,
    LatencyProblem: latency_timeline,
    StepProblem: step_timeline,
    StagesProblem: stages_timeline,
}


def timeline(problem: GraphProblem, plan: Any) -> Timeline:
    """Return when everything of `plan` runs.

    Raises:
        InstanceError: if `plan` is no plan of this kind of problem.
        ValueError: if the plan violates a constraint.
    """
    verdict = verify(problem, plan)
    if verdict.objective is None:
        raise ValueError(f"an infeasible plan has no timeline: {verdict.violations[0]}")
    return _DRAFTS[type(problem)](problem, plan, verdict)
