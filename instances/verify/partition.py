"""The verifiers of throughput, latency and step plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray, distinct, sums
from ..errors import InstanceError
from ..graph import topological_order
from ..partition import (
    LatencyPlan,
    LatencyProblem,
    Links,
    PartitionPlan,
    PartitionProblem,
    StepPlan,
    StepProblem,
    precedence,
)
from .verdict import TOLERANCE, Verdict, assignment, backwards, needed, shape, transfers


def verify_throughput(problem: PartitionProblem, plan: PartitionPlan) -> Verdict:
    """Check `plan` against every constraint of `problem` and recompute the maximum load.

    Load of an accelerator = compute of its ops + the transfer time of every output that crosses its
    boundary, once in or once out; load of a host = compute only (Tarnawski et al., NeurIPS 2020, section 3).
    """
    wrong = shape(problem, plan.ops, plan.device)
    if wrong:
        return Verdict.nothing(wrong, problem.cluster.n_devices)
    device = plan.device
    words, compute, memory = assignment(problem, device)
    transfer = transfers(problem, device)
    violations = (
        *words,
        *_stages(plan),
        *(backwards(problem, plan.stage, "contiguous") if problem.variant == "contiguous" else ()),
        *(_convex(problem, device) if problem.variant == "convex" else ()),
    )
    load = compute + transfer
    return Verdict(violations, None if violations else float(load.max()), load, transfer, memory)


def _stages(plan: PartitionPlan) -> list[str]:
    pairs, _, _ = distinct(plan.device, plan.stage)
    words = []
    for row, one, many in ((0, "device", "stages"), (1, "stage", "devices")):
        value, count = np.unique(pairs[row], return_counts=True)
        for x in value[count > 1]:
            others = ", ".join(map(str, pairs[1 - row][pairs[row] == x]))
            words.append(f"{one} {x} has {many} {others}")
    return words


def _convex(problem: PartitionProblem, device: IntArray) -> list[str]:
    """Find the ops that lie on a path which has left their own device before.

    One sweep in topological order carries, as the bits of an integer, the devices that paths to an op have left.
    """
    graph = problem.graph
    earlier, later = precedence(graph)
    where = device.tolist()
    predecessors: list[list[int]] = [[] for _ in where]
    for a, b in zip(earlier.tolist(), later.tolist(), strict=True):
        predecessors[b].append(a)
    left = [0] * graph.n_ops
    words = []
    for v in topological_order(graph.n_ops, earlier, later).tolist():
        for u in predecessors[v]:
            left[v] |= left[u] | (1 << where[u] if where[u] != where[v] else 0)
        if left[v] >> where[v] & 1:
            words.append(f"convex: a path leaves device {where[v]} and comes back to it at op {graph.names[v]}")
    return words


def verify_latency(problem: LatencyProblem, plan: LatencyPlan) -> Verdict:
    """Check `plan` and recompute when its last call or host op ends (Tarnawski et al., NeurIPS 2020, section 4)."""
    wrong = shape(problem, plan.ops, plan.device)
    if wrong:
        return Verdict.nothing(wrong, problem.cluster.n_devices)
    words, compute, memory = assignment(problem, plan.device)
    transfer = transfers(problem, plan.device)
    load = compute + transfer
    if not words:
        try:
            calls = timetable(problem, plan.device, load)
        except InstanceError as error:
            words = [f"contiguous: {error.problem}"]
    objective = None if words else float(calls.finish.max())
    return Verdict(tuple(words), objective, load, transfer, memory)


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls of accelerators and single ops of hosts, `units` of them.

    Attributes:
        unit: int32 (n,), the unit of each op.
        device: int32 (units,).
        start, finish: seconds, float64 (units,).
    """

    unit: IntArray
    device: IntArray
    start: FloatArray
    finish: FloatArray


def timetable(problem: LatencyProblem, device: IntArray, load: FloatArray) -> Calls:
    """Return when each call and host op runs, given each device's seconds of compute and transfers.

    Raises:
        InstanceError: if calls wait for one another in a circle; it names one.
    """
    graph, k = problem.graph, problem.cluster.n_devices
    host = problem.hosts()[device]
    label = np.where(host, k + np.arange(graph.n_ops), device)
    present, unit = np.unique(label, return_inverse=True)
    own = problem.time()[problem.cluster.type_of[device], np.arange(graph.n_ops)]
    on_host = present >= k
    seconds = np.where(on_host, own[np.maximum(present - k, 0)], load[np.minimum(present, k - 1)])
    names = tuple(
        f"op {graph.names[x - k]} on the host" if x >= k else f"the call on device {x}" for x in present.tolist()
    )
    a, b = unit[graph.source], unit[graph.target]
    pairs = np.unique(np.stack([a[a != b], b[a != b]]), axis=1)
    order = topological_order(len(present), pairs[0], pairs[1], names)
    inputs: list[list[int]] = [[] for _ in names]
    for u, v in pairs.T.tolist():
        inputs[v].append(u)
    start, finish = np.zeros(len(names)), np.zeros(len(names))
    for v in order.tolist():
        start[v] = max((finish[u] for u in inputs[v]), default=0.0)
        finish[v] = start[v] + seconds[v]
    where = np.where(on_host, device[np.maximum(present - k, 0)], present)
    return Calls(unit.astype(np.int32), where.astype(np.int32), start, finish)


def verify_step(problem: StepProblem, plan: StepPlan) -> Verdict:
    """Check `plan` and recompute its makespan."""
    graph, cluster, device = problem.graph, problem.cluster, plan.device
    wrong = shape(problem, plan.ops, device)
    if not wrong and (late := plan.receiver >= cluster.n_devices).any():
        wrong = [f"a transfer goes to device {plan.receiver[late][0]}, the cluster has {cluster.n_devices}"]
    if wrong:
        return Verdict.nothing(wrong, cluster.n_devices)
    words, compute, memory = assignment(problem, device)
    seconds = problem.time()[cluster.type_of[device], np.arange(graph.n_ops)]
    finish = plan.start + np.where(np.isfinite(seconds), seconds, 0.0)
    makespan = float(finish.max())
    slack = TOLERANCE * makespan
    op, to = needed(problem, device)
    took, wanted = problem.delay(op, device[op], to), _pairs(problem, op, to)
    if problem.contention:
        words += _transfers(problem, plan, finish, slack)
        sent = _pairs(problem, plan.sent, plan.receiver)
        order = np.append(np.argsort(sent, kind="stable"), len(sent))
        sent, at = np.append(sent, -1)[order], np.append(plan.sent_at, np.inf)[order]
        place = np.searchsorted(sent[:-1], wanted)
        there = np.where(took > 0, np.where(sent[place] == wanted, at[place], np.inf) + took, finish[op])
    else:
        if len(plan.sent):
            words.append("the plan schedules transfers, but there is no contention")
        there = finish[op] + took
    words += _precedence(problem, plan, finish, wanted, there, slack)
    words += [
        f"device {d}: op {graph.names[b]} starts at {plan.start[b]:.9g}, before op {graph.names[a]} ends"
        for d, a, b in _overlaps(device, plan.start, finish, slack)
    ]
    transfer = sums(device[op], took, cluster.n_devices) + sums(to, took, cluster.n_devices)
    return Verdict(tuple(words), None if words else makespan, compute + transfer, transfer, memory)


def _pairs(problem: StepProblem, op: IntArray, device: IntArray) -> NDArray[np.int64]:
    """Return a number for each pair of an op and a device, in the order of the pairs."""
    return op.astype(np.int64) * problem.cluster.n_devices + device


def _precedence(
    problem: StepProblem, plan: StepPlan, finish: FloatArray, wanted: NDArray[np.int64], there: FloatArray, slack: float
) -> list[str]:
    """Check that ops start when their inputs are there: one from elsewhere when the pair `wanted` is `there`."""
    graph, device, start = problem.graph, plan.device, plan.start
    u, v = graph.source, graph.target
    ready, away = finish[u], device[u] != device[v]
    ready[away] = there[np.searchsorted(wanted, _pairs(problem, u[away], device[v[away]]))]
    return [
        f"precedence: op {graph.names[v[e]]} starts at {start[v[e]]:.9g}, "
        f"the output of op {graph.names[u[e]]} is there at {ready[e]:.9g}"
        for e in np.flatnonzero(start[v] < ready - slack)
    ]


def _transfers(problem: StepProblem, plan: StepPlan, finish: FloatArray, slack: float) -> list[str]:
    """Check that what has to be sent is sent once, not before it is made, and alone on its links."""
    graph, device = problem.graph, plan.device
    op, to = needed(problem, device)
    due = _pairs(problem, op, to)[problem.delay(op, device[op], to) > 0]
    made, times = np.unique(_pairs(problem, plan.sent, plan.receiver), return_counts=True)
    words = [
        f"the output of op {graph.names[u]} is {wrong} to device {d}{more}"
        for pairs, wrong, more in (
            (np.setdiff1d(due, made), "not sent", ""),
            (np.setdiff1d(made, due), "sent", " for nothing"),
            (made[times > 1], "sent", " twice"),
        )
        for u, d in zip(*(x.tolist() for x in np.divmod(pairs, problem.cluster.n_devices)), strict=True)
    ]
    early = plan.sent_at < finish[plan.sent] - slack
    words += [f"the output of op {graph.names[u]} is sent before the op ends" for u in plan.sent[early]]
    links = Links(problem.cluster)
    took = problem.delay(plan.sent, device[plan.sent], plan.receiver)
    which, machine = links.uses(device[plan.sent], plan.receiver)
    start, end = plan.sent_at[which], (plan.sent_at + took)[which]
    for x, a, b in _overlaps(machine, start, end, slack):
        one, other = (graph.names[plan.sent[which[i]]] for i in (a, b))
        words.append(f"link {links.names[x]}: the output of op {other} is sent before that of op {one} is through")
    return words


def _overlaps(machine: IntArray, start: FloatArray, end: FloatArray, slack: float) -> list[tuple[int, int, int]]:
    """Return (machine, earlier, later) of all that begins on a machine before what is earlier ends there.

    Earlier is what has the earlier middle: so either of two may begin first by as much as starts may be off.
    """
    found = []
    order = np.lexsort((start + end, machine))
    for held in np.split(order, np.flatnonzero(np.diff(machine[order])) + 1):
        last = np.maximum.accumulate(end[held])
        bad = np.flatnonzero(start[held[1:]] < last[:-1] - slack)
        before = (int(held[np.argmax(end[held[: i + 1]])]) for i in bad)
        found += [(int(machine[a]), a, int(held[i + 1])) for a, i in zip(before, bad, strict=True)]
    return found
