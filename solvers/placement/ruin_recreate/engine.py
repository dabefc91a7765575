"""Ruin and recreate for one batch: its arrays, made once, and searches that begin with any placement of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.verify import TOLERANCE

from ..prepare import Indices, PreparedBatch, Rows
from .arrays import BatchArrays, Placement
from .search import search

CHUNK = 64
"""Rounds, or jobs that are inserted, between two looks at the clock, at most."""
_LARGE = 65_536
"""Nodes beyond which there are fewer."""
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
        jobs: list[int] = np.asarray(self.now.gone).tolist()
        return [] if jobs[0] < 0 else [j for j in jobs if j >= 0]

    def here(self) -> list[Rows]:
        """Return where all are now, which may be worse than the best."""
        return _rows(np.asarray(self.now.rows), np.asarray(self.now.count))

    def current(self) -> float:
        """Return what that costs."""
        fragments = np.where(np.asarray(self.now.many) > 0, self.now.fragment, 0.0)
        return float(np.sum(self.now.cost) + fragments.sum())


class RuinRecreate:
    """Places the jobs of one batch by insertion, and improves placements of it.

    `until`: ends whatever is done early once it says so. `failed`: the job for which `insert` found no place.
    """

    def __init__(self, batch: PreparedBatch, until: Callable[[], bool] = lambda: False) -> None:
        self.batch, self.until = batch, until
        self.given = BatchArrays(batch)
        self.failed: int | None = None
        self.most_here = most_here(batch)
        self._step = max(1, min(CHUNK, _LARGE // max(batch.n_nodes, self.most_here**2 // _CROWD)))

    def holds(self, rows: Sequence[Rows]) -> bool:
        """Return whether no gang is on more nodes than there are rows for."""
        return max(map(len, rows), default=0) <= self.given.most

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
        return Placement(self.given, max(self.most_here, int(on.max())))

    def _arrays(self, rows: Sequence[Rows]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        jobs = len(self.batch.jobs)
        best, count = np.zeros((jobs, self.given.most, 3), np.int64), np.zeros(jobs, np.int64)
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


def most_here(batch: PreparedBatch) -> int:
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
