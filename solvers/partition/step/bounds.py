"""Bounds on the makespan that need no solver, and reasons why there can be no plan."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from ...run import Run
from .delays import delayed_heads, delayed_tails
from .model import Prepared
from .one_machine import one_machine


def impossible(p: Prepared) -> str | None:
    """Return why no plan exists if that is plain to see, else `None`."""
    names = p.problem.graph.names
    homeless = ~np.isfinite(p.group_time[p.types]).any(axis=0)
    if homeless.any():
        op = names[p.members[int(np.argmax(homeless))][0]]
        return f"no device type of the cluster runs op {op} and all ops colocated with it"
    fits = p.allowed.any(axis=1)
    if not fits.all():
        g = int(np.argmin(fits))
        op, need = names[p.members[g][0]], p.group_memory[g]
        return f"memory: op {op} and its colocated ops need {need:.6g} bytes; no device that runs them has that"
    total = float(p.capacity.sum())
    if p.group_memory.sum() > total * (1 + 1e-9):
        return f"memory: the ops need {p.group_memory.sum():.6g} bytes, all devices together have {total:.6g}"
    return None


def heads(p: Prepared) -> FloatArray:
    """Return the least time at which each op can start, whatever the devices, float64 (n,)."""
    head = [0.0] * p.n
    seconds, (first, index) = p.fastest.tolist(), p.predecessors
    for v in p.order.tolist():
        head[v] = max((head[u] + seconds[u] for u in index[first[v] : first[v + 1]].tolist()), default=0.0)
    return np.array(head)


def tails(p: Prepared) -> FloatArray:
    """Return the least time between the end of each op and the end of all, float64 (n,)."""
    tail = [0.0] * p.n
    seconds, (first, index) = p.fastest.tolist(), p.successors
    for v in p.order[::-1].tolist():
        tail[v] = max((seconds[w] + tail[w] for w in index[first[v] : first[v + 1]].tolist()), default=0.0)
    return np.array(tail)


def path_bound(p: Prepared) -> float:
    """Return the longest path of fastest times, seconds."""
    return float((heads(p) + p.fastest + tails(p)).max())


def load_bound(p: Prepared, head: FloatArray, tail: FloatArray) -> float:
    """Return the greatest h + W / R + t, seconds: ops that start after h and leave t behind share all devices.

    W is the fastest time of those ops in total, R what all devices get done in a second, counted in the same way: a
    device of type t no more than the largest ratio of the fastest time to its own. Energetic reasoning with one
    interval (Baptiste, Le Pape, Nuijten, 2001), of which h = t = 0 is the load bound.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.where(p.fastest > 0, p.fastest / p.time, 0.0)).max(axis=1)
    rate = float(ratio[p.type_of].sum())
    if rate <= 0:
        return 0.0
    by_tail = np.argsort(-tail, kind="stable")
    work, least, best = np.zeros(p.n), tail[by_tail], 0.0
    position = np.empty(p.n, dtype=np.int64)
    position[by_tail] = np.arange(p.n)
    for v in np.argsort(-head, kind="stable").tolist():
        # the work of ops so far that have at least such a tail; where there is none, no bound
        work[position[v] :] += p.fastest[v]
        best = max(best, float(head[v] + np.where(work > 0, work / rate + least, 0.0).max()))
    return best


def class_bound(p: Prepared, head: FloatArray, tail: FloatArray) -> float:
    """Return the longest time that the ops of one group need on their one device, seconds; preemption allowed."""
    best = 0.0
    for ops, seconds in zip(p.members, p.group_time.T, strict=True):
        if len(ops) > 1:
            types = [t for t in p.types.tolist() if np.isfinite(seconds[t])]
            jobs = [[(float(head[v]), float(p.time[t, v]), float(tail[v])) for v in ops] for t in types]
            best = max(best, min(map(one_machine, jobs), default=0.0))
    return best


def delay_bound(run: Run, p: Prepared) -> None:
    """Raise the bound with all that is known of single ops: see `delayed_heads`, `load_bound`, `class_bound`."""
    plain = heads(p), tails(p)
    run.raise_bound(load_bound(p, *plain), "load")
    if run.stopped or p.n_devices == 1:
        return
    head, tail = np.array(delayed_heads(p)), np.array(delayed_tails(p))
    run.raise_bound(float((head + p.fastest + tail).max()), "delays")
    for bound, by in ((load_bound, "load and delays"), (class_bound, "colocation and delays")):
        if run.stopped:
            return
        run.raise_bound(bound(p, head, tail), by)
