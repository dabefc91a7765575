"""The verifier of step plans: devices and links carry one thing at a time, and inputs are there before an op starts."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..arrays import FloatArray, IntArray, sums
from ..partition import StepPlan, StepProblem
from ..partition.route import Links
from .verdict import TOLERANCE, Verdict, assignment, shape


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
    took = problem.delay(op, device[op], to)
    if problem.contention:
        words += _transfers(problem, plan, finish, slack)
        arrival = _sent(plan)
        there = [arrival.get(pair, np.inf) for pair in zip(op.tolist(), to.tolist(), strict=True)]
        at = np.where(took > 0, np.array(there) + took, finish[op])
    else:
        if len(plan.sent):
            words.append("the plan schedules transfers, but there is no contention")
        at = finish[op] + took
    words += _precedence(
        problem, plan, finish, dict(zip(zip(op.tolist(), to.tolist(), strict=True), at, strict=True)), slack
    )
    words += [
        f"device {d}: op {graph.names[b]} starts at {plan.start[b]:.9g}, before op {graph.names[a]} ends"
        for d, a, b in _overlaps(device, plan.start, finish, slack)
    ]
    transfer = sums(device[op], took, cluster.n_devices) + sums(to, took, cluster.n_devices)
    return Verdict(tuple(words), None if words else makespan, compute + transfer, transfer, memory)


def needed(problem: StepProblem, device: IntArray) -> tuple[IntArray, IntArray]:
    """Return the transfers that a placement asks for, as (op, receiving device), each pair once, sorted."""
    u, v = problem.graph.source, problem.graph.target
    cut = device[u] != device[v]
    op, to = np.divmod(
        np.unique(u[cut].astype(np.int64) * problem.cluster.n_devices + device[v[cut]]), problem.cluster.n_devices
    )
    return op.astype(np.int32), to.astype(np.int32)


def _sent(plan: StepPlan) -> dict[tuple[int, int], float]:
    pairs = zip(plan.sent.tolist(), plan.receiver.tolist(), strict=True)
    return dict(zip(pairs, plan.sent_at.tolist(), strict=True))


def _precedence(
    problem: StepProblem, plan: StepPlan, finish: FloatArray, arrival: dict[tuple[int, int], float], slack: float
) -> list[str]:
    graph, device, start = problem.graph, plan.device.tolist(), plan.start.tolist()
    words = []
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        ready = finish[u] if device[u] == device[v] else arrival[u, device[v]]
        if start[v] < ready - slack:
            one, other = graph.names[v], graph.names[u]
            words.append(
                f"precedence: op {one} starts at {start[v]:.9g}, the output of op {other} is there at {ready:.9g}"
            )
    return words


def _transfers(problem: StepProblem, plan: StepPlan, finish: FloatArray, slack: float) -> list[str]:
    """Check that what has to be sent is sent once, not before it is made, and alone on its links."""
    graph, device = problem.graph, plan.device
    op, to = needed(problem, device)
    wanted = problem.delay(op, device[op], to) > 0
    due = set(zip(op[wanted].tolist(), to[wanted].tolist(), strict=True))
    made = list(zip(plan.sent.tolist(), plan.receiver.tolist(), strict=True))
    words = [f"the output of op {graph.names[u]} is not sent to device {d}" for u, d in sorted(due - set(made))]
    words += [f"the output of op {graph.names[u]} is sent to device {d} for nothing" for u, d in sorted({*made} - due)]
    words += [
        f"the output of op {graph.names[u]} is sent to device {d} twice" for u, d in set(made) if made.count((u, d)) > 1
    ]
    early = plan.sent_at < finish[plan.sent] - slack
    words += [f"the output of op {graph.names[u]} is sent before the op ends" for u in plan.sent[early]]
    links = Links(problem.cluster)
    took = problem.delay(plan.sent, device[plan.sent], plan.receiver)
    uses: dict[int, list[int]] = defaultdict(list)
    for i, (u, d) in enumerate(made):
        for link in links.route(int(device[u]), d):
            uses[link].append(i)
    machine = np.array([x for x, transfers in uses.items() for _ in transfers], dtype=np.int32)
    which = np.array([i for transfers in uses.values() for i in transfers], dtype=np.int32)
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
