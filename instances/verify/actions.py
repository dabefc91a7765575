"""The verifiers of what a scheduler does: start a gang, whole, on free GPUs; stop a job that may be stopped."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..placement import Fleet, GangJob, SpeedModel

Held = tuple[GangJob, Mapping[int, Sequence[int]]]
"""A job and its GPUs by node."""
_SLACK = 1e-9
"""Of what a node has: sums of floating-point demands lose a little."""


def verify_start(
    fleet: Fleet,
    up: Sequence[bool],
    holders: Sequence[Mapping[int, str]],
    running: Mapping[str, Held],
    job: GangJob,
    degree: int,
    nodes: Mapping[int, Sequence[int]],
    speeds: SpeedModel | None = None,
) -> list[str]:
    """Return what is wrong with starting a job now, in plain words; nothing if it may start.

    It looks at the nodes that the job is to have, and at nothing that a method keeps for itself.

    Args:
        fleet: the nodes, m of them.
        up: which nodes are up, (m,).
        holders: of each node, who holds each of its GPUs that is held, (m,).
        running: the jobs that run, by name.
        job: the gang.
        degree: how many workers it starts with.
        nodes: the GPUs that it gets, by node, those of a worker on one. It may hold more than its workers need, with
            the cores, memory and NIC of as many workers, never fewer. A worker without GPUs has a number below 0.
            Parameter servers are beside the workers, see `GangJob.seat`.
        speeds: which models run on which GPUs; by default all run on all.
    """
    if job.name in running:
        return [f"{job.name}: it runs already"]
    if degree not in job.workers:
        return [f"{job.name}: {degree} is not one of its numbers of workers, {job.workers}"]
    wrong: list[str] = []
    held, each = 0, max(1, job.worker.grants)
    for node, gpus in nodes.items():
        if not 0 <= node < fleet.n_nodes:
            wrong.append(f"{job.name}: there is no node {node}")
            continue
        here = [
            *_gpus(fleet, holders[node], node, gpus, job),
            *_rules(fleet, holders[node], running, node, job, len(gpus)),
        ]
        if not up[node]:
            here.append("the node is down")
        if len(gpus) % each:
            here.append(f"{len(gpus)} GPUs are no whole number of workers, which need {each} each")
        if speeds is not None and job.worker.gpu and not _runs(fleet, speeds, node, job.model):
            here.append(f"{job.model} does not run on {fleet.gpu_types[fleet.gpu_type[node]]}")
        wrong += [f"{job.name} on {fleet.names[node]}: {words}" for words in here]
        held += len(gpus)
    need = degree * each
    if held < need:
        what = "GPUs" if job.worker.gpu else "seats"
        wrong.append(f"{job.name}: {held} {what} are fewer than its {degree} workers need, {need}")
    return wrong


def _runs(fleet: Fleet, speeds: SpeedModel, node: int, model: str) -> bool:
    kind = speeds.gpu_types.index(fleet.gpu_types[fleet.gpu_type[node]])
    return model in speeds.models and bool(np.isfinite(speeds.compute[kind, speeds.models.index(model)]))


def _gpus(fleet: Fleet, holders: Mapping[int, str], node: int, gpus: Sequence[int], job: GangJob) -> list[str]:
    """Return what is wrong with the GPUs on one node, or with the seats of workers without, which are below 0."""
    wrong = ["a GPU is given twice"] if len(set(gpus)) < len(gpus) else []
    wrong += [] if gpus else ["no GPU is given there"]
    for gpu in gpus:
        if not job.worker.gpu and gpu >= 0:
            wrong.append(f"GPU {gpu} is given to a worker that needs none")
        elif job.worker.gpu and not 0 <= gpu < fleet.gpus[node]:
            wrong.append(f"there is no GPU {gpu}")
        elif gpu in holders:
            wrong.append(f"GPU {gpu} is held by {holders[gpu]}")
    return wrong


def _rules(
    fleet: Fleet, holders: Mapping[int, str], running: Mapping[str, Held], node: int, job: GangJob, gpus: int
) -> list[str]:
    """Return what else is wrong with the job on one node: labels, neighbours, cores, memory, NIC."""
    others = sorted({*holders.values()})
    need = job.seat
    tasks = gpus / max(1, need.grants)
    wrong = [f"it has not the label {label}" for label in job.requires if not _has(fleet, label, node)]
    for i, taint in enumerate(fleet.taints):
        if taint not in job.tolerates and fleet.tainted[i, node]:
            wrong.append(f"it has the taint {taint}, which is not tolerated")
    if job.gpu_types and need.grants:
        kind = fleet.gpu_types[fleet.gpu_type[node]] if fleet.gpus[node] else "no GPU"
        if kind not in job.gpu_types:
            wrong.append(f"it has {kind}, accepted is {', '.join(job.gpu_types)}")
    if job.most_per_node is not None and tasks > job.most_per_node:
        wrong.append(f"{tasks:g} workers are more than {job.most_per_node}")
    for other in others:
        there = running[other][0]
        if job.whole_nodes or there.whole_nodes:
            wrong.append(f"one of them wants the node for itself, and {other} is there")
        if other in job.apart or job.name in there.apart:
            wrong.append(f"it is to be apart from {other}, which is there")
    asks = [what for what in ("cpu", "memory", "nic") if getattr(need, what)]
    held = [running[other] for other in others] if asks else []
    seats = [(gang.seat, len(where[node]) / max(1, gang.worker.grants)) for gang, where in held]
    for what in asks:
        asked = sum((getattr(seat, what) * count for seat, count in seats), getattr(need, what) * tasks)
        if asked > (whole := getattr(fleet, what)[node]) * (1 + _SLACK):
            wrong.append(f"{what}: {asked:g} are asked for, there are {whole:g}")
    return wrong


def _has(fleet: Fleet, label: str, node: int) -> bool:
    return label in fleet.labels and bool(fleet.labelled[fleet.labels.index(label), node])


@dataclass(frozen=True, slots=True)
class Exchange:
    """A running job that gives way to a waiting one.

    Attributes:
        job: that is stopped.
        price: seconds that its GPUs are held without getting on when it runs again; `None` if it may not be stopped.
        left: seconds that it is expected to run still.
        gpus: that it holds.
        other: for whom.
        lasts: seconds that that one is expected to run.
        needs: GPUs of that one.
        moved: whether the job goes on at once elsewhere.
    """

    job: str
    price: float | None
    left: float
    gpus: int
    other: str
    lasts: float
    needs: int
    moved: bool = False


def verify_stop(exchange: Exchange, running: Container[str], order: float) -> list[str]:
    """Return what is wrong with a stop, in plain words; nothing if it may be.

    A job that is stopped must have more left than the other one needs and than the stop costs, in seconds times GPUs
    to the power `order`. One that is moved delays nobody but itself: the GPU seconds that it loses must be fewer than
    those of the one that it makes room for.
    """
    e = exchange
    if e.job not in running:
        return [f"{e.job}: it does not run"]
    if e.other in running:
        return [f"{e.other}: it runs already, nobody need stop for it"]
    if e.price is None:
        return [f"{e.job}: it may not be stopped"]
    if e.left <= e.price:
        return [f"{e.job}: a stop costs {e.price:g} s, and it has {e.left:g} s left"]
    if e.moved:
        lost, gained = e.price * e.gpus, e.lasts * e.needs
        return [f"{e.job}: moving it costs {lost:g} GPU s, {e.other} needs {gained:g}"] if lost > gained else []
    left, needs = (e.left - e.price) * e.gpus**order, e.lasts * e.needs**order
    return [f"{e.job}: it has no more left than {e.other} needs and the stop costs"] if left <= needs else []


@dataclass(frozen=True, slots=True)
class Preempted:
    """A running job that is stopped because another may have it stopped.

    Attributes:
        job: that is stopped.
        price: as of `Exchange`.
        cause: ``priority``, ``turn``, ``reclaim``, or ``move`` if it goes on elsewhere at once.
        level: its class.
        ran: seconds since it started.
        least, most: seconds that a job runs at least, and after which it gives way to others of its class, if ever.
        other: for whom.
        other_level: the class of that one.
        same_queue: whether both are of one queue; else where the ways to theirs part in the tree of queues
        held, guaranteed: the one above `job` holds so much of the cluster, once those that stop before have, and is
            guaranteed so much;
        asks, owed: the one above `other` would hold so much with it, and is guaranteed so much.
        weight, other_weight: of these two, in what is left over guarantees.
    """

    job: str
    price: float | None
    cause: str
    level: int
    ran: float
    least: float
    most: float | None
    other: str
    other_level: int
    same_queue: bool
    held: float
    guaranteed: float
    asks: float
    owed: float
    weight: float = 1.0
    other_weight: float = 1.0


def verify_preemption(claim: Preempted, running: Container[str]) -> list[str]:
    """Return what is wrong with a stop that another job demands, in plain words; nothing if it may be."""
    c, within = claim, claim.asks <= claim.owed * (1 + _SLACK) + _SLACK
    least = max(c.least, c.price or 0.0)
    turn = c.same_queue and c.level == c.other_level and c.most is not None and c.ran >= c.most
    above, other_above = (c.held - c.guaranteed) / c.weight, (c.asks - c.owed) / c.other_weight
    fair = not c.same_queue and (within or above > other_above)
    allowed = {"reclaim": fair, "turn": turn, "priority": c.level < c.other_level}
    allowed["move"] = within
    rules = {
        f"{c.job}: it does not run": c.job in running,
        f"{c.other}: it runs already, nobody need stop for it": c.other not in running,
        f"{c.job}: it may not be stopped": c.price is not None,
        f"{c.job}: it ran for {c.ran:g} s, and runs for {least:g} s at least": c.ran >= least,
        f"{c.job}: its queue holds {c.held:.3%} of the cluster, and is owed {c.guaranteed:.3%}": (
            c.same_queue or c.cause == "move" or c.held > c.guaranteed
        ),
        f"{c.other}: {c.cause or 'nothing'} does not let it stop {c.job}": allowed.get(c.cause, False),
    }
    return [words for words, holds in rules.items() if not holds]


def verify_shared(
    fleet: Fleet, job: GangJob, nodes: Mapping[int, Sequence[int]], group: int, level: str, one_type: bool
) -> list[str]:
    """Return what is wrong with where a gang starts, beside what `verify_start` finds.

    Args:
        fleet: the nodes.
        job: the gang.
        nodes: its GPUs by node.
        group: so many workers are on one node, or a multiple.
        level: of the network, one group of which has all of it; ``node``, or "" if it may be anywhere.
        one_type: whether its GPUs are of one type.
    """
    wrong, each = [], max(1, job.worker.grants)
    wrong += [
        f"{job.name} on {fleet.names[node]}: {len(gpus) // each} workers are no groups of {group}"
        for node, gpus in nodes.items()
        if len(gpus) // each % group
    ]
    if level:
        levels = {each.name: i for i, each in enumerate(fleet.topology.levels)}
        groups = {node if level == "node" else int(fleet.topology.group[levels[level], node]) for node in nodes}
        if len(groups) > 1:
            wrong.append(f"{job.name}: it is in {len(groups)} parts of the level {level}, and is to be in one")
    types = {fleet.gpu_types[fleet.gpu_type[node]] for node in nodes}
    if one_type and len(types) > 1:
        wrong.append(f"{job.name}: its GPUs are of several types, {', '.join(sorted(types))}")
    return wrong
