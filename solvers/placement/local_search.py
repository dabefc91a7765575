"""Local search: take some gangs off their nodes and put each back where the whole batch gains most."""

from __future__ import annotations

import time

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.placement import PlacementPlan

from ..run import Run
from .best_case import BestCase
from .best_fit import best_fit
from .build import build, cheapest
from .closest import nearest, nearest_by_size
from .gang import Policy, nearest_first, take
from .least_interference import least_interference
from .minded import minded
from .prepare import Batch, Rows
from .state import State
from .topology import topology
from .wide import alone, wide

POLICIES: tuple[Policy, ...] = (topology, best_fit, least_interference, nearest)
ROUNDS = 250
"""Of removing and putting back, for each job; a quarter of them without a new best are the end."""
_MARGIN = 0.005
"""How much worse than the best a placement may be and be kept, as a share, at first."""
_RUIN = 5
"""Gangs that go with the one that is drawn, at most."""
_LAST = 1.2
"""Time kept for the last look at the plan, in terms of the one before."""
_OFFER = 25
"""Rounds between two looks at the plan by the verifier, which takes longer than a round."""


def local_search(run: Run, batch: Batch, rounds: int | None = None) -> None:
    """Improve the best plan, or the best that the policies build, by ruin and recreate.

    First every gang that is not at its best case is taken off and put back where the goal is least, as long as that
    helps. Then rounds: a gang that costs more than it might, drawn by how much, goes together with some that share
    its nodes or links, or that are where it might go, and they come back in random order, each where the goal is
    least. A result that is hardly worse is kept (record-to-record travel, Dueck 1993), the margin shrinking to none.

    Args:
        run: the solve.
        batch: its problem.
        rounds: how many at most, by default `ROUNDS` for each job.
    """
    state = first(run, batch)
    if state is None or run.stopped:
        return
    search = _Search(run, batch, state)
    search.descend()
    search.travel(ROUNDS * len(batch.jobs) if rounds is None else rounds)
    if search.late and not run.stopped:
        run.stop_reason = "time limit"


def first(run: Run, batch: Batch) -> State | None:
    """Return the placement of the best plan there is, or that of the best of some policies, offered."""
    if run.plan is not None:
        return from_plan(batch, run.plan)
    best: tuple[float, State] | None = None
    for policy in (alone, least_interference, nearest_by_size, topology):
        state = build(run, batch, [policy], "local_search")
        if state is not None and (best is None or state.total < best[0]):
            best = state.total, state
    return best[1] if best else build(run, batch, POLICIES, "local_search")


def from_plan(batch: Batch, plan: PlacementPlan) -> State:
    """Return the placement that a plan describes; which GPUs are shared is decided anew."""
    state = State(batch)
    rows: list[Rows] = [{} for _ in batch.jobs]
    for j, node, w, p in zip(plan.job, plan.node, plan.workers, plan.servers, strict=True):
        rows[int(j)][int(node)] = (int(w), int(p))
    for j, row in enumerate(rows):
        if row:
            state.add(j, row)
    state.settle()
    return state


class _Search:
    def __init__(self, run: Run, batch: Batch, state: State) -> None:
        self.run, self.batch, self.state = run, batch, state
        self.rng = np.random.default_rng(run.seed)
        best = BestCase(batch)
        self.floor = np.array([best.cost(j) for j in range(len(batch.jobs))])
        self.minded = minded(batch.n_nodes)
        self.free = [j for j in range(len(batch.jobs)) if j not in batch.pinned]
        self.record = state.exact()
        self.kept = state.snapshot()
        before = time.perf_counter()
        run.offer(state.plan(), "local_search")
        self.look = time.perf_counter() - before
        self.shown = self.record if run.objective is None else run.objective

    @property
    def over(self) -> bool:
        """Whether to end: told to, or what time is left a last look at the plan will take."""
        return self.run.stopped or self.late

    @property
    def late(self) -> bool:
        """Whether what time is left a last look at the plan will take."""
        return self.run.remaining() < _LAST * self.look

    def descend(self) -> None:
        """Put back one gang after the other while that helps, those with most to gain first."""
        tried: dict[int, float] = {}
        while not self.over:
            slack = self._slack()
            order = [j for j in np.argsort(-slack, kind="stable").tolist() if slack[j] > 1e-9 * (1 + abs(self.record))]
            moved = False
            for j in order:
                if self.over or tried.get(j) == self.state.cost[j]:
                    continue
                before = self.state.settle()
                rows = self.state.remove(j)
                self._insert(j, rows)
                moved |= self.state.settle() < before * (1 - 1e-9)
                tried[j] = self.state.cost[j]
            self._record()
            if not moved:
                break
        self._show()

    def travel(self, rounds: int) -> None:
        """Ruin and recreate, `rounds` times at most."""
        last = self.record
        since = 0
        for i in range(rounds):
            since += 1
            if self.over or not self.free or since > rounds // 4 or not self._slack().any():
                break
            ruined = self._related()
            before = {j: self.state.rows[j] for j in ruined}
            for j in ruined:
                self.state.remove(j)
            self.rng.shuffle(ruined)
            for j in ruined:
                self._insert(j, before[j], keep=False)
            total = self.state.settle()
            margin = _MARGIN * (1 - i / rounds) ** 2 * abs(self.record)
            if total > self.record + margin or not self.state.complete():
                self._back(before)
            elif total < self.record * (1 - 1e-9):
                since = 0
                self._record()
            if i % _OFFER == _OFFER - 1:
                if self.record < last * (1 - 1e-9):
                    self._show()
                    last = self.record
                elif i % (8 * _OFFER) == 8 * _OFFER - 1:
                    self.state.restore(self.kept)
        self._show()

    def _slack(self) -> FloatArray:
        slack = np.array(self.state.cost) - self.floor
        slack[list(self.batch.pinned)] = 0.0
        return np.where(slack > 1e-9 * np.abs(self.floor), slack, 0.0)

    def _insert(self, j: int, before: Rows, keep: bool = True) -> None:
        """Put job j back where the goal is least, among the policies' places, a random part's, and its old one."""
        around = self._around(int(self.rng.integers(self.batch.n_nodes)))
        policies = [*POLICIES, *wide(self.batch.jobs[j]), *self.minded, around]
        cheapest(self.state, j, policies, before if keep else {})

    def _around(self, seed: int) -> Policy:
        def policy(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
            return take(nearest_first(state, seed), room, degree)

        return policy

    def _related(self) -> list[int]:
        """Return a gang that could do better and some that stand in its way."""
        slack = self._slack()
        j = int(self.rng.choice(len(slack), p=slack / slack.sum()))
        near = self._neighbours(j)
        if len(near) < 6:
            # where it could go is as good a guess as any
            near |= set(self.rng.choice(self.free, min(len(self.free), 6), replace=False).tolist())
        near -= {j, *self.batch.pinned}
        pool = sorted(near)
        count = min(len(pool), int(self.rng.integers(1, _RUIN + 1)))
        return [j, *self.rng.choice(pool, count, replace=False).tolist()] if count else [j]

    def _neighbours(self, j: int) -> set[int]:
        state = self.state
        near = {i for node in state.rows[j] for i in state.at[node]}
        for level, touched in enumerate(state.touched[j][:1]):
            worst = max(touched, key=lambda member: (len(state.crossers[level][member]), member))
            near |= state.crossers[level][worst]
        return near

    def _back(self, before: dict[int, Rows]) -> None:
        for j in before:
            self.state.remove(j)
        for j, rows in before.items():
            if rows:
                self.state.add(j, rows)
        self.state.settle()

    def _record(self) -> None:
        total = self.state.exact()
        if total < self.record and self.state.complete():
            self.record, self.kept = total, self.state.snapshot()

    def _show(self) -> None:
        """Offer the best placement if it is better than what was offered."""
        if self.record < self.shown * (1 - 1e-9) and not self.run.stopped:
            before = time.perf_counter()
            current = self.state.snapshot()
            self.state.restore(self.kept)
            self.run.offer(self.state.plan(), "local_search")
            self.state.restore(current)
            self.shown = self.record
            self.look = time.perf_counter() - before
