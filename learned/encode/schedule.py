"""Jobs over time at one moment: what waits, what runs and what is free, of a schedule problem or of the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gangplan.instances.placement import Fleet
from gangplan.instances.schedule import NodePool, Pool, ScheduleProblem
from gangplan.instances.schedule.capacity import ramp_blocks
from gangplan.instances.schedule.problem import GOALS
from gangplan.instances.topology import Level, RampTopology, TreeTopology
from gangplan.simulator.engine import View

from .encoding import Encoding, Floats, Index, first_positive, log_over, mean, over, signed_log_over
from .topology import add_racks, groups


@dataclass(frozen=True, slots=True)
class Moment:
    """What is decided already of a schedule problem; by default nothing.

    Attributes:
        now: seconds.
        done: jobs that have ended or are left out, by index: they are not shown.
        running: jobs that run, by index.
        until: when each of those ends, seconds.
        rows: for each of those the nodes that it holds, and how many GPUs of each; of a pool of counted GPUs the one
            node is 0.
    """

    now: float = 0.0
    done: Sequence[int] = ()
    running: Sequence[int] = ()
    until: Sequence[float] = ()
    rows: Sequence[tuple[Sequence[int], Sequence[int]]] = field(default=())


@dataclass(frozen=True, slots=True)
class _Scene:
    """k jobs, e degrees, m nodes; times are seconds from now, of `release` those before now are negative."""

    release: Floats
    weight: Floats
    deadline: Floats
    value: Floats
    running: Floats
    until: Floats
    first: Index
    gpus: Floats
    seconds: Floats
    node_gpus: Floats
    node_free: Floats
    held_job: Index
    held_node: Index
    held: Floats
    topology: TreeTopology | RampTopology
    blocks: RampTopology | None
    goal: str
    horizon: float = 0.0


def encode_schedule(problem: ScheduleProblem, moment: Moment | None = None) -> Encoding:
    """Encode a schedule problem at a moment: types ``jobs``, ``options``, ``nodes``, ``racks``, ``problem``.

    ``options`` are the degrees on the menus of the jobs that wait, all jobs of the problem that are not done among
    them, in order; a policy scores them. Relations, each with its reverse: options are ``of`` jobs, jobs are ``on``
    nodes, nodes are ``in`` racks. Times are shares of the mean duration, so units do not show.
    """
    moment = Moment() if moment is None else moment
    gone = set(moment.done)
    shown = [i for i in range(len(problem.jobs)) if i not in gone]
    place = {i: k for k, i in enumerate(shown)}
    jobs = [problem.jobs[i] for i in shown]
    gpus, topology = _machines(problem.capacity)
    free = gpus.copy()
    held: list[tuple[int, int, int]] = []
    until = np.zeros(len(jobs))
    for i, end, (nodes, counts) in zip(moment.running, moment.until, moment.rows, strict=True):
        until[place[i]] = end - moment.now
        held += [(place[i], node, count) for node, count in zip(nodes, counts, strict=True)]
    rows = np.array(held, dtype=np.int64).reshape(-1, 3).T
    np.subtract.at(free, rows[1], rows[2])
    running = np.isin(np.array(shown, dtype=np.int64), np.array(list(moment.running), dtype=np.int64))
    price = [problem.price(i) for i in shown]
    return _encode(
        _Scene(
            release=np.array([x.release for x in jobs], dtype=float) - moment.now,
            weight=np.array([x.weight for x in jobs], dtype=float),
            deadline=np.array([np.inf if x.deadline is None else x.deadline for x in jobs], dtype=float) - moment.now,
            value=np.array([np.inf if x is None else x for x in price]),
            running=running.astype(float),
            until=until,
            first=np.concatenate([[0], np.cumsum([len(x.degrees) for x in jobs])]).astype(np.int64),
            gpus=np.array([d for x in jobs for d in x.degrees], dtype=float),
            seconds=np.array([s for x in jobs for s in x.durations], dtype=float),
            node_gpus=gpus,
            node_free=np.maximum(free, 0.0),
            held_job=rows[0],
            held_node=rows[1],
            held=rows[2].astype(float),
            topology=topology,
            blocks=problem.capacity if isinstance(problem.capacity, RampTopology) else None,
            goal=problem.goal,
            horizon=0.0 if problem.horizon is None else max(problem.horizon - moment.now, 0.0),
        )
    )


def encode_view(view: View, jobs: Index | None = None) -> Encoding:
    """Encode what a policy of the simulator sees, as `encode_schedule` does; it looks at durations.

    Args:
        view: the window on the simulation.
        jobs: those that wait and are shown, by default all that wait; those that run come after them.
    """
    waiting = np.asarray(view.waiting if jobs is None else jobs, dtype=np.int64)
    running = np.sort(np.asarray(view.running, dtype=np.int64))
    shown = np.concatenate([waiting, running])
    work, menu, k = view.workload, view.menu, len(shown)
    size = (menu.first[shown + 1] - menu.first[shown]).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    entry = np.repeat(menu.first[shown] - first[:-1], size) + np.arange(first[-1])
    rows = [view.rows(j) for j in running.tolist()]
    none = [np.zeros(0, dtype=np.int64)]
    rate = view.rate[running]
    until = np.zeros(k)
    until[len(waiting) :] = np.where(rate > 0, view.left(running) / np.where(rate > 0, rate, 1.0), 0.0)
    fleet: Fleet = view.fleet
    return _encode(
        _Scene(
            release=work.submit[shown] - view.now,
            weight=np.ones(k),
            deadline=np.full(k, np.inf),
            value=np.full(k, np.inf),
            running=(np.arange(k) >= len(waiting)).astype(float),
            until=until,
            first=first,
            gpus=menu.gpus[entry].astype(float),
            seconds=menu.duration[entry],
            node_gpus=np.where(view.up, fleet.gpus, 0).astype(float),
            node_free=view.free.astype(float),
            held_job=np.repeat(np.arange(len(rows)) + len(waiting), [len(x.node) for x in rows]).astype(np.int64),
            held_node=np.concatenate([*none, *(x.node for x in rows)]).astype(np.int64),
            held=np.concatenate([*none, *(x.gpus for x in rows)]).astype(float),
            topology=fleet.topology,
            blocks=None,
            goal="mean_jct",
        )
    )


def _machines(capacity: Pool | NodePool | RampTopology) -> tuple[Floats, TreeTopology | RampTopology]:
    if isinstance(capacity, RampTopology):
        return np.ones(capacity.n_devices), capacity
    nodes, gpus = (1, capacity.gpus) if isinstance(capacity, Pool) else (capacity.nodes, capacity.gpus)
    level = Level("cluster", 1.0)
    return np.full(nodes, float(gpus)), TreeTopology((level,), np.zeros((1, nodes), dtype=np.int32))


def _encode(x: _Scene) -> Encoding:
    encoding, k, m = Encoding(), len(x.release), len(x.node_gpus)
    size = np.diff(x.first)
    of = np.repeat(np.arange(k), size)
    total, free = first_positive(float(x.node_gpus.sum())), float(x.node_free.sum())
    area = x.gpus * x.seconds
    shortest, least_area, smallest = (_least(v, of, k) for v in (x.seconds, area, x.gpus))
    second = first_positive(mean(shortest), mean(x.until))
    gpu_second = first_positive(mean(least_area), total * second)
    _add_jobs(encoding, x, shortest, least_area, smallest, second, gpu_second, total)
    offered = np.flatnonzero(x.running[of] == 0)
    mine = of[offered]
    gpus, seconds = x.gpus[offered], x.seconds[offered]
    packs, share = _packs(x, gpus), _blocks(x, gpus)
    counted = gpus <= free
    options = {
        "cluster": gpus / total,
        "free": over(gpus, free),
        "gpus": log_over(gpus, smallest[mine]),
        "seconds": log_over(seconds, second),
        "area": log_over(area[offered], gpu_second),
        "efficiency": over(least_area[mine], area[offered]),
        "slower": log_over(seconds, shortest[mine]),
        "in_time": np.maximum(x.release[mine], 0.0) + seconds <= x.deadline[mine],
        "counted": counted,
        "packs": packs,
        "blocks": share,
        "startable": (x.release[mine] <= 0) & (share > 0 if x.blocks else counted),
    }
    encoding.add("options", len(offered), options)
    encoding.join(("options", "of", "jobs"), np.arange(len(offered)), mine)
    until = np.full(m, np.inf)
    np.minimum.at(until, x.held_node, x.until[x.held_job])
    nodes = {
        "gpus": over(x.node_gpus, x.node_gpus.max(initial=0.0)),
        "free": over(x.node_free, x.node_gpus),
        "busy": np.isfinite(until),
        "until": log_over(np.where(np.isfinite(until), until, 0.0), second),
    }
    encoding.add("nodes", m, nodes)
    encoding.join(("jobs", "on", "nodes"), x.held_job, x.held_node, {"gpus": over(x.held, x.node_gpus[x.held_node])})
    found = groups(x.topology)
    has, left = np.zeros(len(found.level)), np.zeros(len(found.level))
    for level in found.of:
        has += np.bincount(level, weights=x.node_gpus, minlength=len(has))
        left += np.bincount(level, weights=x.node_free, minlength=len(has))
    add_racks(encoding, found, "nodes", {"free": over(left, has)})
    waits = (x.running == 0) & (x.release <= 0)
    about: dict[str, Any] = {name: float(x.goal == name) for name in GOALS}
    about |= {
        "free": free / total,
        "waiting": log_over(float(least_area[waits].sum()), total * second),
        "to_come": log_over(float(least_area[x.release > 0].sum()), total * second),
        "asked": log_over(float(smallest[waits].sum()), total),
        "horizon": log_over(x.horizon, second),
    }
    encoding.add("problem", 1, about)
    return encoding


def _add_jobs(
    encoding: Encoding,
    x: _Scene,
    shortest: Floats,
    area: Floats,
    smallest: Floats,
    second: float,
    gpu_second: float,
    total: float,
) -> None:
    bounded, optional = np.isfinite(x.deadline), np.isfinite(x.value)
    slack = np.where(bounded, x.deadline, 0.0) - np.maximum(x.release, 0.0) - shortest
    value = np.where(optional, x.value, 0.0)
    in_seconds = x.goal in ("weighted_completion", "mean_jct", "makespan")
    weight = x.weight if x.goal == "weighted_completion" else np.ones(len(x.weight))
    columns = {
        "running": x.running,
        "until": log_over(np.maximum(x.until, 0.0), second),
        "waited": log_over(np.maximum(-x.release, 0.0), second),
        "to_come": log_over(np.maximum(x.release, 0.0), second),
        "seconds": log_over(shortest, second),
        "area": log_over(area, gpu_second),
        "gpus": smallest / total,
        "weight": log_over(x.weight, mean(x.weight)),
        "bounded": bounded,
        "slack": np.where(bounded, signed_log_over(slack, second), 0.0),
        "optional": optional,
        "value": log_over(value, mean(value[optional])),
        "value_seconds": log_over(value, weight * second) if in_seconds else 0.0,
    }
    encoding.add("jobs", len(x.release), columns)


def _least(values: Floats, of: Index, k: int) -> Floats:
    found = np.full(k, np.inf)
    np.minimum.at(found, of, values)
    return found


def _packs(x: _Scene, gpus: Floats) -> Any:
    """Return whether each degree fits on as few nodes as can hold it: full nodes, and one for what is left."""
    most = first_positive(float(x.node_gpus.max(initial=0.0)))
    full, rest = np.divmod(gpus, most)
    free = np.sort(x.node_free)
    whole = len(free) - np.searchsorted(free, most)
    some = len(free) - np.searchsorted(free, rest)
    return (whole >= full) & ((rest == 0) | (some > full))


def _blocks(x: _Scene, gpus: Floats) -> Floats:
    """Return the share of the blocks of each degree that are free, 0 where there are no blocks."""
    if x.blocks is None:
        return np.zeros(len(gpus))
    free, share = x.node_free > 0, {}
    for size in np.unique(gpus).astype(int).tolist():
        found = ramp_blocks(x.blocks, size)
        share[size] = float(free[found].all(axis=1).mean()) if len(found) else 0.0
    return np.array([share[int(size)] for size in gpus.tolist()])
