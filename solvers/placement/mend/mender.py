"""Mends a whole placement: the gangs that cost most go, and come back where the batch gains most, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..prepare import Batch, Rows
from ..sizes import LARGE
from ..state import State
from .search import search
from .state import Fixed, Live

CHUNK = 64
"""Rounds between two looks at the clock, at most."""
SHORT, LONG, MOST = 4, 30, 2400
"""Rounds for each job: little beside a greedy placement, and less than sixteen of them take; and how many in all."""
_COLLECTIVES = {"ring": 0, "tree": 1, "hierarchical": 2, "ps": 3}
_ROWS = 512
"""Rows of one gang, at most."""
_HERE = 64
"""Jobs on a node, at most."""


class Mender:
    """Mends placements of one batch.

    Args:
        batch: the problem as the methods see it.

    Attributes:
        state: the placement that was mended last.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch, self.state = batch, State(batch)
        self.fixed: Fixed | None = None

    def __call__(
        self,
        rows: list[Rows],
        rounds: int,
        seed: int = 0,
        until: Callable[[], bool] = lambda: False,
        most: int = MOST,
    ) -> float:
        """Make a placement better, or leave it, in so many rounds for each job; return what it costs.

        Args:
            rows: of all jobs, none for those that are left out.
            rounds: for each job.
            seed: of what is drawn.
            until: ends it early once it says so.
            most: rounds in all.
        """
        state = self.state
        state.restore(rows)
        cost = state.exact()
        if self.fixed is None:
            self.fixed = _fixed(self.batch)
        if self.batch.n_nodes > LARGE or max(map(len, rows), default=0) > self.fixed.stand.shape[1]:
            return cost
        fixed, live, best, count = self._arrays(self.fixed)
        last, step = min(rounds * len(rows), most), max(1, min(CHUNK, LARGE // self.batch.n_nodes))
        for first in range(0, last, step):
            if until():
                break
            search(fixed, live, best, count, first, min(first + step, last), last, seed + first)
        after = [_row(best[j, :n]) for j, n in enumerate(count.tolist())]
        state.restore(after)
        if state.exact() >= cost:
            state.restore(rows)
        return state.exact()

    def _arrays(self, fixed: Fixed) -> tuple[Fixed, Live, Any, Any]:
        """Return the batch, an empty placement and the rows of `state`, for `search`."""
        batch, state, shape = self.batch, self.state, fixed.stand.shape
        rows, count, extra = np.zeros(shape, np.int64), np.zeros(shape[0], np.int64), np.zeros(shape[:2])
        live = _empty(fixed, batch, shape[1])
        live.left[:, 0] = state.free_gpu
        for j, row in enumerate(state.rows):
            count[j] = len(row)
            for x, (node, (w, p)) in enumerate(row.items()):
                rows[j, x] = node, w, p
                live.left[node, 0] += w * fixed.need[j, 0]
        speeds = batch.problem.speeds
        for node, pairs in state.meets.items():
            for i, k in (ordered for pair in pairs for ordered in (pair, pair[::-1])):
                a, b = batch.model[i], batch.model[k]
                extra[i, list(state.rows[i]).index(node)] += speeds.gpu[a, b] - speeds.host[a, b]
        return fixed._replace(extra=extra), live, rows, count


def _row(rows: Any) -> Rows:
    return {int(n): (int(w), int(p)) for n, w, p in sorted(rows.tolist())}


def _empty(f: Fixed, batch: Batch, most: int) -> Live:
    count, m, members = len(batch.jobs), batch.n_nodes, len(f.above)
    fleet = batch.problem.fleet
    left = np.stack([fleet.gpus.astype(float), fleet.cpu, fleet.memory, np.asarray(batch.nic, dtype=float)], axis=1)
    return Live(
        rows=np.zeros((count, most, 3), np.int64), count=np.zeros(count, np.int64), wide=np.zeros(count, np.bool_),
        here=np.zeros((m, min(count, _HERE), 3), np.int64), many=np.zeros(m, np.int64),
        suffer=np.zeros((m, len(f.host))), left=left, guarded=np.zeros(m, np.int64), load=np.zeros(members),
        compute=np.zeros(count), sync=np.zeros(count), cost=np.zeros(count), record=np.zeros(1),
        dirty=np.zeros(count, np.bool_), other=np.zeros((count, 2)), changed=np.zeros(count, np.int64),
        trial=np.zeros((most, 3), np.int64), place=np.zeros((most, 3), np.int64), size=np.zeros(1, np.int64),
        least=np.zeros(1), room=np.zeros(m, np.int64),
        members=np.zeros((2, most + 1), np.int64), sums=np.zeros((2, most + 1, 3), np.int64),
        mark=np.zeros(members, np.int64),
    )  # fmt: skip


def _fixed(batch: Batch) -> Fixed:
    jobs, group = batch.jobs, batch.group.astype(np.int64)
    count = len(jobs)
    sizes = group.max(axis=1) + 1
    offset = np.concatenate([[0], np.cumsum(sizes)])
    above, level, bandwidth = (np.zeros(offset[-1], t) for t in (np.int64, np.int64, np.float64))
    for i, size in enumerate(sizes):
        here = slice(offset[i], offset[i] + size)
        level[here] = i
        bandwidth[here] = batch.bandwidth[i] if i < len(batch.bandwidth) else np.inf
        up = min(i + 1, len(sizes) - 1)
        above[offset[i] + group[i]] = offset[up] + group[up]
    widest = max((job.workers[-1] + job.servers for job in jobs), default=1)
    stand = [rows for rows, _ in batch.standing.values()]
    most = max(1, min(batch.n_nodes, widest, _ROWS), *map(len, [*stand, *batch.pinned.values()]))
    standing, stood = np.zeros((count, most, 3), np.int64), np.zeros(count, np.int64)
    migration = np.zeros(count)
    for j, (rows, price) in batch.standing.items():
        migration[j], stood[j] = price, len(rows)
        standing[j, : len(rows)] = [(n, w, p) for n, (w, p) in rows.items()]
    apart = np.zeros((count if any(batch.apart) else 0, count), np.bool_)
    for j, others in enumerate(batch.apart if len(apart) else ()):
        apart[j, list(others)] = True
    degrees = np.zeros((count, max((len(job.workers) for job in jobs), default=1)), np.int64)
    for j, job in enumerate(jobs):
        degrees[j, : len(job.workers)] = job.workers[::-1]
    shared = (batch.share < 1) & (batch.each > 0)
    free = ~shared
    free[list(batch.pinned)] = False
    need = np.stack([
        batch.each, batch.worker_cpu, batch.worker_memory, batch.worker_nic, batch.server_cpu, batch.server_memory,
        batch.server_nic,
    ], axis=1).astype(float)  # fmt: skip
    need[shared, 0] = 0.0  # what is idle is counted without them, and stays so
    integers = np.int64
    return Fixed(
        above=above, level=level, bandwidth=bandwidth, kind=batch.kind.astype(integers), link=np.array(batch.link),
        host=np.array(batch.problem.speeds.host, dtype=float, order="C"), model=batch.model.astype(integers),
        weight=batch.weight.astype(float), best=batch.best.astype(float), gradient=batch.gradient.astype(float),
        overlap=batch.overlap.astype(float), duty=batch.duty.astype(float),
        collective=np.array([_COLLECTIVES[job.collective] for job in jobs], integers),
        servers=np.array([job.servers for job in jobs], integers),
        value=np.array([np.inf if job.value is None else job.value for job in jobs], dtype=float), migration=migration,
        whole=np.array([job.whole_nodes for job in jobs], np.bool_), free=free, need=need,
        alone=np.array(batch.alone, dtype=float, order="C"), room=batch.room.astype(integers), degrees=degrees,
        apart=apart, stand=standing, stood=stood, extra=np.zeros((count, most)),
        rates=batch.problem.goal == "throughput",
    )  # fmt: skip
