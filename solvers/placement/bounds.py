"""Bounds on the goal that cost little: every job at its best, and what must meet on nodes that are too few.

A job whose step is as its floors say costs w b / d max(c, (1 - o) c + s). That is convex in c and s, so it grows at
least along the branch that is active at the floors: by w b / d (1 - o or 1) for a second of compute, by w b / d for a
second of synchronisation where that branch counts. What a job i on a node of job j adds is thus at least m_ji (its
share of j's compute; a NIC's time again, by the duty of i, if both must cross their NICs), and j pays for its worst
node, which is no less than the mean over its workers: with y_jn the share of j's workers on node n, and k_i y_in at
most 1 and at most the presence of i there,

    goal >= sum of floors + sum over nodes of sum over i < j of y_in y_jn N_ij,   N_ij = k_i m_ji + k_j m_ij.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.placement.rate import ring_bytes
from gangplan.instances.verify.placement import Fragmentation

from .best_case import BestCase
from .build import stays
from .prepare import Batch
from .state import State

_LARGEST = 2_000_000
"""Nodes times GPUs of a fleet whose left-over GPUs are counted one by one."""


def left_over(batch: Batch) -> float:
    """Return a bound on the expected fragments of all nodes, in GPUs."""
    measure = Fragmentation(batch.problem)
    return max(_stranded(batch, measure), _whole(batch, measure))


def _stranded(batch: Batch, measure: Fragmentation) -> float:
    """Return what is left, once the jobs fill them, of nodes that a kind of task cannot use even if they are empty."""
    fleet = batch.problem.fleet
    gpus, count = fleet.gpus[batch.sample], _usable(batch)
    most = np.array([job.workers[-1] for job in batch.jobs])
    total = 0.0
    for task, share in measure.kinds:
        useless = np.array(
            [not measure.fits(n, task, [1.0] * int(fleet.gpus[n]), _all(batch, n)) for n in batch.sample.tolist()]
        )
        workers = np.minimum(most, batch.room[:, useless].astype(np.int64) @ count[useless])
        filled = float(workers @ (batch.each * batch.share))
        total += share * max(0.0, float(gpus[useless] @ count[useless]) - filled)
    return total


def _whole(batch: Batch, measure: Fragmentation) -> float:
    """Return the least fragments of any numbers of idle GPUs of the nodes that add up to what must be left idle.

    A dynamic programme over the nodes; 0 if the fleet is large. Cores and memory are taken to be all there, and GPUs
    that are shared to leave nothing.
    """
    fleet = batch.problem.fleet
    usable = np.flatnonzero(np.asarray(fleet.usable))
    gpus = int(fleet.gpus[usable].sum())
    must = np.array([job.gang if job.value is None else 0 for job in batch.jobs])
    fewest = ceil(float(must @ (batch.each * batch.share)) - 1e-6)
    most = sum(job.workers[-1] * int(each) for job, each in zip(batch.jobs, batch.each, strict=True))
    if fewest > gpus or len(usable) * gpus > _LARGEST:
        return 0.0
    harm = [_harm(batch, measure, n) for n in batch.sample.tolist()]
    least = np.zeros(1)
    for node in usable.tolist():
        kind = int(batch.kind[node])
        here = harm[kind]
        # a node that no job may use keeps all its GPUs
        left = range(len(here)) if batch.usable[node] else [len(here) - 1]
        after = np.full(len(least) + len(here) - 1, np.inf)
        for free in left:
            np.minimum(after[free : free + len(least)], least + here[free], out=after[free : free + len(least)])
        least = after
    return float(least[max(0, gpus - most) : gpus - fewest + 1].min())


def _harm(batch: Batch, measure: Fragmentation, node: int) -> FloatArray:
    """Return the expected fragments of a node with 0, 1, 2, ... of its GPUs free, (GPUs + 1,)."""
    gpus = int(batch.problem.fleet.gpus[node])
    return np.array([measure(node, [1.0] * free, _all(batch, node)) for free in range(gpus + 1)])


def _all(batch: Batch, node: int) -> tuple[float, float, float]:
    fleet = batch.problem.fleet
    return float(fleet.cpu[node]), float(fleet.memory[node]), float(batch.nic[node])


def _usable(batch: Batch) -> FloatArray:
    """Return the usable nodes of each kind."""
    usable = np.asarray(batch.problem.fleet.usable)[batch.sample]
    return np.asarray(np.bincount(batch.kind, minlength=len(batch.sample)) * usable, dtype=np.float64)


_SWEEPS = 3
_MOST = 2000
"""Jobs of a batch whose pairs are looked at."""


def bound(batch: Batch, stopped: Callable[[], bool] = lambda: False) -> tuple[float, str]:
    """Return a bound on the goal and the name of what proves it.

    Args:
        batch: the problem.
        stopped: says when to be content with what is proved; without a time it takes seconds for thousands of jobs.
    """
    best = BestCase(batch)
    floor = np.array([best.cost(j) for j in range(len(batch.jobs))])
    state = State(batch)
    for j, rows in batch.pinned.items():
        if stays(state, j, rows):
            state.add(j, rows)
    state.settle()
    for j in batch.pinned:
        if state.rows[j] and batch.problem.goal != "fragmentation":
            floor[j] = max(floor[j], state.cost[j])
    total = float(floor.sum())
    if batch.problem.goal == "fragmentation":
        return total + left_over(batch), "left over"
    if batch.problem.goal != "slowdown" or not np.isfinite(total):
        return total, "best case"
    pairs = None if stopped() else _pairs(batch, best)
    if pairs is None:
        return total, "best case"
    jobs, meeting, k, squares, base = pairs
    able = np.asarray((batch.room[jobs] > 0).any(axis=0))
    nodes = int(able[batch.kind].sum())
    rest = total - float(floor[jobs].sum()) + float(base.sum())
    found = {
        "best case": total,
        "even spread": rest + _even(meeting, squares, nodes, stopped),
        "pigeonhole": rest + _pigeonhole(meeting / np.outer(k, k), k, nodes),
    }
    name = max(found, key=lambda x: found[x])
    return found[name], name


def _pairs(batch: Batch, best: BestCase) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray] | None:
    """Return jobs that must be placed and are free to go, N, k, the most that sum of y^2 can be, and their floors."""
    jobs = np.array(
        [
            j
            for j, job in enumerate(batch.jobs)
            if job.value is None and len(job.workers) == 1 and j not in batch.pinned and batch.each[j]
        ],
        dtype=np.int32,
    )
    if len(jobs) < 2 or len(jobs) > _MOST:
        return None
    by_compute, by_nic, crosses, base = (np.zeros(len(jobs)) for _ in range(4))
    k, squares = np.ones(len(jobs)), np.ones(len(jobs))
    for a, j in enumerate(jobs.tolist()):
        degree = batch.jobs[j].workers[0]
        compute, sync = best.floors(j, degree)
        overlap = float(batch.overlap[j])
        rate = float(batch.weight[j] * batch.best[j]) / degree
        base[a] = rate * max(compute, (1 - overlap) * compute + sync)
        most = best.reach(j).holds[0]
        shown = sync > overlap * compute
        by_compute[a] = rate * compute * ((1 - overlap) if shown else 1.0)
        if degree > most:
            crosses[a] = batch.duty[j]
            by_nic[a] = rate * _nic(batch, j, degree, sync) if shown else 0.0
            k[a] = degree / most
            full, left = divmod(degree, most)
            squares[a] = (full * most**2 + left**2) / degree**2
    host = batch.problem.speeds.host[np.ix_(batch.model[jobs], batch.model[jobs])]
    more = by_compute[:, None] * host + by_nic[:, None] * crosses
    meeting = more * k + (more * k).T
    np.fill_diagonal(meeting, np.inf)
    return jobs, meeting, k, squares, base


def _nic(batch: Batch, j: int, degree: int, sync: float) -> float:
    """Return the seconds that a further gang on a NIC of job j, which must cross one, adds to its synchronisation."""
    size, nic = float(batch.gradient[j]), batch.bandwidth[0]
    collective = batch.jobs[j].collective
    if collective == "ps":
        return 0.0
    if collective == "hierarchical":
        return size / nic  # one of its phases moves at least 2 (2 - 1) / 2 gradients no faster than its NICs
    moved = (ring_bytes(degree, size) if collective == "ring" else 2 * size) / nic
    return moved if moved >= sync * (1 - 1e-12) else 0.0  # else the uplinks are what counts, up to a point


def _even(meeting: FloatArray, squares: FloatArray, nodes: int, stopped: Callable[[], bool]) -> float:
    """Return what meetings cost at least if they cost a_i a_j: least when the a are spread evenly over the nodes.

    Sum over i < j of a_i a_j y_i y_j is ((sum of a y)^2 - sum of a^2 y^2) / 2 on a node; the first sum of squares is
    at least (sum of all a)^2 / nodes, the second is known at most. Any a with a_i a_j <= N_ij will do.
    """
    finite = np.where(np.isfinite(meeting), meeting, np.nan)
    kept = np.arange(len(meeting))
    best = 0.0
    if float((1 / squares).sum()) <= nodes:
        return best  # by Cauchy and Schwarz nothing need meet, as far as this bound can see
    while len(kept) > 1 and not stopped():
        a = _factor(meeting[np.ix_(kept, kept)])
        value = (a.sum() ** 2 / nodes - float((a**2 * squares[kept]).sum())) / 2
        best = max(best, value)
        # jobs that slow nobody down hold the others' figures down
        weak = np.nanmin(finite[np.ix_(kept, kept)], axis=1)
        drop = int(max(1, len(kept) // 16))
        kept = np.sort(kept[np.argsort(weak, kind="stable")[drop:]])
    return best


def _factor(meeting: FloatArray) -> FloatArray:
    """Return a >= 0, large, with a_i a_j <= meeting_ij for i != j."""
    least = meeting.min(axis=1)
    a = np.sqrt(least)  # a_i a_j <= sqrt(least_i least_j) <= meeting_ij
    for _ in range(_SWEEPS):
        before = a.copy()
        for i in np.argsort(-least, kind="stable").tolist():
            ratio = np.full(len(a), np.inf)
            np.divide(meeting[i], a, out=ratio, where=a > 0)
            ratio[i] = np.inf
            most = float(ratio.min())
            a[i] = max(a[i], most) if np.isfinite(most) else a[i]
        if np.array_equal(a, before):
            break
    return np.asarray(a)


def _pigeonhole(meeting: FloatArray, k: FloatArray, nodes: int) -> float:
    """Return what meetings cost at least by their number, and by how many must be of the more expensive kind.

    Parts of jobs on a node sum to s; n whole ones make n (n - 1) / 2 meetings, and in between it is no less than on
    the line: the bound of Turan's graph. Jobs are taken in an order in which their meetings with those before get
    cheaper; a meeting costs the sum of the steps down from its own price, so the numbers of meetings among the first
    c jobs, each at least what c pigeonholes say, count with the step from c to the next.
    """
    count = len(k)
    finite = np.where(np.isfinite(meeting), meeting, -np.inf)
    order = [int(np.argmax(finite.max(axis=1)))]
    near = meeting[order[0]].copy()
    price = [np.inf]
    for _ in range(count - 1):
        near[order[-1]] = -np.inf
        i = int(np.argmax(near))
        price.append(min(price[-1], float(near[i])))
        order.append(i)
        near = np.minimum(near, meeting[i])
    mean = np.cumsum(k[order]) / nodes
    whole = np.floor(mean)
    least = np.where(mean > 1, nodes * (whole * (whole - 1) / 2 + whole * (mean - whole)), 0.0)
    step = np.array(price[1:]) - np.array([*price[2:], 0.0])
    return float(step @ least[1:])
