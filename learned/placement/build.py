"""A batch under construction: whose turn it is, where it may go, and back again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.solvers.placement.build import stays
from gangplan.solvers.placement.gang import placements
from gangplan.solvers.placement.prepare import Batch, Rows
from gangplan.solvers.placement.state import State

from .board import Board, Gang
from .candidates import Turn, Workers, candidates
from .features import NAMES, Ahead, Place, Scene, features
from .wires import Members

SLOTS = 40
"""Places of one gang that are asked for, at most."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The places for one job.

    Attributes:
        job: index in the batch.
        rows: of each place; empty where the job is left out.
        x: figures, float64 (C, F), see `features.NAMES`.
        price: what each costs at once, float64 (C,).
    """

    job: int
    rows: list[Rows]
    x: FloatArray
    price: FloatArray


class Builder:
    """Places the gangs of a batch one by one; what is placed can be taken back, the last first.

    Attributes:
        state: what is feasible, and what it costs.
        board: what a decision looks at.
        waiting: the jobs that are not placed.
        unit: mean weight of the jobs.
        pinned: how many jobs were placed before, and stay.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.state = State(batch)
        problem = batch.problem
        self.board = Board(problem.fleet, problem.speeds, problem.goal)
        self.gangs = [
            Gang(int(batch.model[j]), float(batch.weight[j]), float(batch.best[j]), job.collective, int(batch.each[j]))
            for j, job in enumerate(batch.jobs)
        ]
        self.unit = float(batch.weight.mean()) or 1.0
        self.gpus = np.array([job.workers[0] * job.worker.gpu for job in batch.jobs])
        self.waiting = np.ones(len(batch.jobs), dtype=bool)
        self.done: list[int] = []
        for j, rows in batch.pinned.items():
            self.place(j, rows)
        self.pinned = len(self.done)

    def free(self) -> list[int]:
        """Return the jobs that may be placed anywhere."""
        return [j for j in range(len(self.batch.jobs)) if j not in self.batch.pinned]

    def decide(self, j: int) -> Decision | None:
        """Return the places for a job that waits; `None` if there is none and it must not be left out."""
        job, state, gang = self.batch.jobs[j], self.state, self.gangs[j]
        standing = self.batch.standing.get(j, ({}, 0.0))[0]
        ahead = self._ahead(j)
        cost = ahead.cost(self.board)
        free = state.free_gpu
        cache: dict[int, list[Workers]] = {}

        def slot(i: int) -> Callable[[State, int, int, IntArray], Workers]:
            def policy(state: State, j: int, degree: int, room: IntArray) -> Workers:
                if degree not in cache:
                    cache[degree] = candidates(Turn(self.board, gang, degree, room, free, cost))
                return cache[degree][i] if i < len(cache[degree]) else {}

            return policy

        rows: list[Rows] = []
        if standing and stays(state, j, standing):
            rows.append(standing)
        rows += [x for x in placements(state, j, [slot(i) for i in range(SLOTS)]) if x != standing]
        if job.value is not None:
            rows.append({})
        if not rows:
            return None
        if len(rows) == 1:  # there is nothing to compare
            return Decision(j, rows, np.zeros((1, len(NAMES))), np.zeros(1))
        return self.judged(j, rows, ahead, cost)

    def judged(
        self, j: int, rows: list[Rows], ahead: Ahead | None = None, ahead_cost: FloatArray | None = None
    ) -> Decision:
        """Return these places for a job that waits, with their figures; the rest says what comes, if it is known."""
        job = self.batch.jobs[j]
        ahead = self._ahead(j) if ahead is None else ahead
        cost = ahead.cost(self.board) if ahead_cost is None else ahead_cost
        standing, migration = self.batch.standing.get(j, ({}, 0.0))
        places = [self._place(j, x, standing, migration) for x in rows]
        scene = Scene(
            self.board, self.gangs[j], job.value is not None, job.workers[-1], self.state.free_gpu, ahead, cost,
            self.unit,
        )  # fmt: skip
        x, price = features(scene, places)
        return Decision(j, rows, x, price)

    def place(self, j: int, rows: Rows) -> None:
        """Put a job that waits on these rows, or leave it out."""
        self.waiting[j] = False
        self.done.append(j)
        if rows:
            self.state.add(j, rows)
            nodes, workers, servers = _arrays(rows)
            self.board.add(j, self.gangs[j], nodes, workers, servers if self.batch.jobs[j].servers else None)

    def back(self, count: int) -> None:
        """Take back what was placed last, until only `count` of the free jobs are."""
        while len(self.done) > self.pinned + count:
            j = self.done.pop()
            self.waiting[j] = True
            if self.state.rows[j]:
                self.board.remove(j, np.array(list(self.state.rows[j]), dtype=np.int64))
                self.state.remove(j)

    def total(self) -> float:
        """Return what the batch costs as it is."""
        return self.state.exact()

    def _place(self, j: int, rows: Rows, standing: Rows, migration: float) -> Place:
        moved = migration if j in self.batch.standing and rows != standing else 0.0
        if not rows:
            return Place(_NONE, _NONE, None, float(self.batch.jobs[j].value or 0.0) + moved)
        nodes, workers, servers = _arrays(rows)
        return Place(nodes, workers, servers if self.batch.jobs[j].servers else None, moved, bool(rows == standing))

    def _ahead(self, j: int) -> Ahead:
        batch, kinds = self.batch, self.board.host.shape[0]
        left = self.waiting.copy()
        left[j] = False
        who = np.flatnonzero(left)
        count = np.bincount(batch.model[who], minlength=kinds).astype(float)
        weight = np.bincount(batch.model[who], weights=batch.weight[who], minlength=kinds)
        sizes = np.sort(self.gpus[who])
        share, worth = count / max(len(who), 1), weight / np.maximum(count, 1)
        return Ahead(len(who), share, worth, float(sizes.sum()), sizes, len(batch.jobs))


_NONE = np.zeros(0, dtype=np.int64)


def _arrays(rows: Rows) -> tuple[Members, Members, Members]:
    table = np.array([(node, w, p) for node, (w, p) in rows.items()], dtype=np.int64)
    return table[:, 0], table[:, 1], table[:, 2]


Score = Callable[[Decision, Builder], FloatArray]
"""Scores of the places of a decision, (C,): the largest is taken."""


def run(
    builder: Builder,
    order: Sequence[int],
    score: Score,
    tries: int = 12,
    until: Callable[[], bool] = lambda: False,
) -> bool:
    """Place the jobs of `order`, each where `score` says; return whether all that must be placed are.

    A job that finds no place goes to the front, and all are placed anew. It ends early once `until` says so.
    """
    order = list(order)
    for _ in range(tries):
        failed = None
        for j in order:
            if until():
                return False
            decision = builder.decide(j)
            if decision is None:
                failed = j
                break
            builder.place(j, decision.rows[int(np.argmax(score(decision, builder)))])
        if failed is None:
            return True
        builder.back(0)
        if order[0] == failed:
            return False
        order.remove(failed)
        order.insert(0, failed)
    return False
