"""Ruin and recreate for one batch: its arrays, made once, and searches that begin with any placement of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.job import COLLECTIVES
from gangplan.instances.placement.problem import GOALS
from gangplan.instances.placement.rate import pair_seconds
from gangplan.instances.verify import TOLERANCE

from ..best_case import BestCase
from ..prepare import Batch, Indices, Rows
from .arrays import COMMUNICATION, FRAGMENTATION, SLOWDOWN, BatchArrays, Placement
from .search import RUIN, search

CHUNK = 64
"""Rounds, or jobs that are inserted, between two looks at the clock, at most."""
_LARGE = 65_536
"""Nodes beyond which there are fewer."""
_ROWS = 512
"""Rows of one gang, at most."""
_CROWD = 16
"""Jobs on a node, squared, that take as long as this many nodes."""


class RuinWalk(NamedTuple):
    """A search under way, in arrays that it goes on to change: `now`, the best rows, how many, and their cost."""

    now: Placement
    best: Indices
    held: Indices
    cost: float

    def gone(self) -> list[int]:
        """Return the jobs that went in the last round, in the order in which they came back."""
        jobs: list[int] = self.now.gone.tolist()
        return [] if jobs[0] < 0 else [j for j in jobs if j >= 0]

    def here(self) -> list[Rows]:
        """Return where all are now, which may be worse than the best."""
        return _rows(self.now.rows, self.now.count)


class RuinRecreate:
    """Places the jobs of one batch by insertion, and improves placements of it.

    `until`: ends whatever is done early once it says so. `failed`: the job for which `insert` found no place.
    """

    def __init__(self, batch: Batch, until: Callable[[], bool] = lambda: False) -> None:
        self.batch, self.until = batch, until
        self.given = given_of(batch)
        self.failed: int | None = None
        self.most_here = most_here(batch)
        self._step = max(1, min(CHUNK, _LARGE // max(batch.n_nodes, self.most_here**2 // _CROWD)))

    def holds(self, rows: Sequence[Rows]) -> bool:
        """Return whether no gang is on more nodes than there are rows for."""
        return bool(max(map(len, rows), default=0) <= self.given.standing.shape[1])

    def insert(self, rows: Sequence[Rows], queue: Sequence[int], seed: int = 0) -> tuple[list[Rows], float]:
        """Put jobs of `queue` one after the other where the batch then costs least; return the placement and its cost.

        Infinite cost if some job finds no place, which is noted in `failed`, or if it was ended early.
        """
        self.failed = None
        best, count = self._arrays(rows)
        now, waiting = self._empty(rows), np.array(queue, dtype=np.int64)
        cost = np.inf
        for first in range(0, max(1, len(queue)), self._step):
            if self.until():
                return list(rows), np.inf
            last = min(first + self._step, len(queue))
            cost = search(self.given, now, best, count, waiting, first, last, len(queue), seed + first)
            if cost < 0:
                self.failed = int(now.changed[0])
                return list(rows), np.inf
        return _rows(best, count), cost

    def improve(self, rows: Sequence[Rows], rounds: int, seed: int = 0) -> tuple[list[Rows], float]:
        """Improve a placement in so many rounds, or leave it; return it and its cost, which 0 rounds only compute."""
        for walk in self.walk(rows, rounds, seed):
            best = walk
        return _rows(best.best, best.held), best.cost

    def walk(self, rows: Sequence[Rows], rounds: int, seed: int = 0, few: int | None = None) -> Iterator[RuinWalk]:
        """Yield the search of `improve` after every `few` rounds, by default as many as between two looks at a clock.

        Numbers are drawn anew after each: another `few` is another walk.
        """
        best, count = self._arrays(rows)
        now, none = self._empty(rows), np.zeros(0, dtype=np.int64)
        step = few or self._step
        for first in range(0, max(1, rounds), step):
            if first and self.until():
                return
            last = min(first + step, rounds)
            cost = search(self.given, now, best, count, none, first, last, max(1, rounds), seed + first)
            yield RuinWalk(now, best, count, cost)

    def _empty(self, rows: Sequence[Rows]) -> Placement:
        on = np.bincount([node for row in rows for node in row], minlength=1)
        return empty(self.given, max(self.most_here, int(on.max())))

    def _arrays(self, rows: Sequence[Rows]) -> tuple[Indices, Indices]:
        shape = self.given.standing.shape
        best, count = np.zeros(shape, np.int64), np.zeros(shape[0], np.int64)
        for job, row in enumerate(rows):
            if row:
                count[job] = len(row)
                best[job, : len(row)] = [(node, *tasks) for node, tasks in row.items()]
        return best, count


def _rows(best: Indices, count: Indices) -> list[Rows]:
    return [
        {int(node): (int(w), int(p)) for node, w, p in sorted(best[job, :rows].tolist())}
        for job, rows in enumerate(count.tolist())
    ]


def empty(given: BatchArrays, here: int) -> Placement:
    """Return the arrays of a placement with no job, for up to `here` jobs on a node."""
    jobs, most, _ = given.standing.shape
    nodes, groups, models = len(given.kind), len(given.above), len(given.host)
    tasks = max(1, int(given.degrees[given.together > 0].max(axis=1, initial=0).sum()))
    gpus, inside = min(int(given.gpus.max(initial=1)), tasks), min(int(given.together.max(initial=0)) + 1, tasks)
    return Placement(
        rows=np.zeros((jobs, most, 3), np.int64), count=np.zeros(jobs, np.int64), wide=np.zeros(jobs, np.bool_),
        here=np.zeros((nodes, here, 3), np.int64), many=np.zeros(nodes, np.int64),
        suffer=np.zeros((nodes, models)), extra=np.zeros((jobs, most)),
        left=np.concatenate([given.gpus[:, None].astype(float), given.amounts], axis=1),
        whole=np.zeros(nodes, np.int64), guarded=np.zeros(nodes, np.int64), load=np.zeros(groups),
        compute=np.zeros(jobs), sync=np.zeros(jobs), cost=np.zeros(jobs), fragment=np.zeros(nodes),
        record=np.zeros(1), dirty=np.zeros(jobs, np.bool_), other=np.zeros((jobs, 2)),
        changed=np.zeros(jobs, np.int64), spot=np.zeros(jobs, np.int64),
        trial=np.zeros((most, 3), np.int64), place=np.zeros((most, 3), np.int64),
        size=np.zeros(1, np.int64), least=np.zeros(1), window=np.arange(nodes), seen=np.full(1, nodes),
        room=np.zeros(nodes, np.int64),
        groups=np.zeros((2, most + 1), np.int64), sums=np.zeros((2, most + 1, 3), np.int64),
        mark=np.zeros(groups, np.int64), bins=np.zeros(gpus),
        inside=np.zeros((gpus, inside), np.int64), filled=np.zeros(gpus, np.int64),
        order=np.zeros(here + 1, np.int64), met=np.zeros(here + 1, np.int64),
        gone=np.full(RUIN + 1, -1), found=np.zeros(1),
    )  # fmt: skip


def most_here(batch: Batch) -> int:
    """Return how many jobs a node holds at most: those that ask for least of what it has least of."""
    fleet, servers = batch.problem.fleet, np.array([job.servers > 0 for job in batch.jobs])
    needs: list[tuple[Any, Any]] = [
        (fleet.gpus, np.where(servers, 0.0, batch.each * batch.share)),
        *zip(batch.amounts, np.where(servers, np.minimum(batch.worker, batch.server), batch.worker), strict=True),
    ]
    most = 1
    for kind, node in enumerate(batch.sample.tolist()):
        able = (batch.room[:, kind] > 0) | (servers & batch.allowed[:, kind])
        held = [np.cumsum(np.sort(need[able])) <= has[node] * (1 + 2 * TOLERANCE) for has, need in needs]
        most = max(most, min(int(row.sum()) for row in held))
    return most


def given_of(batch: Batch) -> BatchArrays:
    """Return the arrays of a batch."""
    problem, jobs, count = batch.problem, batch.jobs, len(batch.jobs)
    goal, fleet = GOALS.index(problem.goal), problem.fleet
    above, level, bandwidth = _network(batch)
    widest = max((job.workers[-1] + job.servers for job in jobs), default=1)
    stand = [rows for rows, _ in batch.standing.values()]
    most = max(1, min(batch.n_nodes, widest, _ROWS), *map(len, [*stand, *batch.pinned.values()]))
    standing, standing_rows, migration = (
        np.zeros((count, most, 3), np.int64),
        np.zeros(count, np.int64),
        np.zeros(count),
    )
    for job, (rows, price) in batch.standing.items():
        migration[job], standing_rows[job] = price, len(rows)
        standing[job, : len(rows)] = [(node, *tasks) for node, tasks in rows.items()]
    apart = np.zeros((count if any(batch.apart) else 0, count), np.bool_)
    for job in range(len(apart)):
        apart[job, list(batch.apart[job])] = True
    degrees = np.zeros((count, max(len(job.workers) for job in jobs)), np.int64)
    for row, job_ in zip(degrees, jobs, strict=True):
        row[: len(job_.workers)] = job_.workers[::-1]
    shared = (batch.share < 1) & (batch.each > 0)
    together = np.minimum((1 + TOLERANCE) / np.where(shared, batch.share, 1.0), 2.0**31)
    free = np.ones(count, np.bool_)
    free[list(batch.pinned)] = False
    need = np.stack([np.where(shared, 0, batch.each), *batch.worker, *batch.server], axis=1).astype(float)
    inside, across = pair_seconds(fleet)
    tasks = [x for x in problem.expected() if x.task.demand.grants] if goal == FRAGMENTATION else []
    type_of = [fleet.gpu_types[fleet.gpu_type[n]] if fleet.gpus[n] else "" for n in batch.sample]
    usable = np.asarray(fleet.usable)[batch.sample]
    accepts = [[not x.task.gpu_types or kind in x.task.gpu_types for kind in type_of] for x in tasks]
    chance = np.array([x.share for x in tasks], dtype=float)
    whole = np.int64
    return BatchArrays(
        goal=goal, sharing=bool(shared.any()), above=above, level=level, bandwidth=bandwidth,
        inside=inside.astype(float), across=across.astype(float), kind=batch.kind.astype(whole),
        link=np.array(batch.link, dtype=float), gpus=fleet.gpus.astype(whole),
        amounts=batch.amounts.T.copy(),
        usable=usable.astype(np.bool_), host=_matrix(problem.speeds.host), gpu=_matrix(problem.speeds.gpu),
        model=batch.model.astype(whole), weight=batch.weight.astype(float), floor=_floor(batch, goal),
        best=batch.best.astype(float), gradient=batch.gradient.astype(float), overlap=batch.overlap.astype(float),
        duty=batch.duty.astype(float), collective=np.array([COLLECTIVES.index(job.collective) for job in jobs], whole),
        servers=np.array([job.servers for job in jobs], whole),
        value=np.array([np.inf if job.value is None else job.value for job in jobs], dtype=float), migration=migration,
        alone_on_nodes=np.array([job.whole_nodes for job in jobs], np.bool_), free=free,
        together=np.where(shared, together, 0).astype(whole),
        share=np.where(shared, batch.share, 0.0).astype(float), need=need, alone=_matrix(batch.alone),
        room=batch.room.astype(whole), degrees=degrees, apart=apart, standing=standing, standing_rows=standing_rows,
        expected=np.array(
            [(d.grants, min(1.0, d.gpu), d.cpu, d.memory, d.nic) for d in (x.task.demand for x in tasks)], dtype=float
        ).reshape(len(tasks), 5),
        chance=chance, accepts=np.array(accepts, np.bool_).reshape(len(tasks), len(type_of)),
    )  # fmt: skip


def _matrix(values: FloatArray) -> FloatArray:
    return np.array(values, dtype=float, order="C")


def _floor(batch: Batch, goal: int) -> FloatArray:
    """Return what each job costs at least if it need not move, as far as that is quickly known."""
    count = len(batch.jobs)
    floor = np.zeros(count)
    if goal == SLOWDOWN:
        most = np.array([job.workers[-1] for job in batch.jobs])
        alone = batch.alone.min(axis=1)
        # who runs nowhere is left out, whatever its weight
        able = np.isfinite(alone)
        floor = np.where(able, batch.weight * batch.best * np.where(able, alone, 0.0) / most, np.inf)
    elif goal == COMMUNICATION:
        best = BestCase(batch)
        floor = np.array([best.floor(job) for job in range(count)])
    return np.minimum(floor, [np.inf if job.value is None else job.value for job in batch.jobs])


def _network(batch: Batch) -> tuple[Indices, Indices, FloatArray]:
    group = batch.group.astype(np.int64)
    sizes = group.max(axis=1) + 1
    offset = np.concatenate([[0], np.cumsum(sizes)])
    above, level, bandwidth = np.zeros(offset[-1], np.int64), np.zeros(offset[-1], np.int64), np.zeros(offset[-1])
    for i, size in enumerate(sizes):
        here = slice(offset[i], offset[i] + size)
        level[here] = i
        bandwidth[here] = batch.bandwidth[i] if i < len(batch.bandwidth) else np.inf
        high = min(i + 1, len(sizes) - 1)
        above[offset[i] + group[i]] = offset[high] + group[high]
    return above, level, bandwidth
