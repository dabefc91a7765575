"""Local search over lines: another order of some items, and the best sequence of calls along it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangplan.instances import verify
from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify.partition import timetable

from ...run import Run
from .line import Orders
from .reduced import Reduced, host_slots, offer
from .sequence import sequence

_PATIENCE = 100
"""Lines without a better plan until the search ends, on graphs of some size."""
_MOVES = 10
"""Moves for each line."""


def local_search(run: Run, r: Reduced) -> None:
    """Improve the best plan until many lines in a row have brought nothing; do nothing if there is none.

    The keys of a line are the times at which items start in the best plan. Some are perturbed: of a few items near
    one another, of a branch, or of all by a little. After each line come moves of a few groups.
    """
    if run.plan is None:
        return
    rng = np.random.default_rng(run.seed)
    orders, moves = Orders(r), Moves(r, rng)
    tried, patience = 0, min(_PATIENCE, 5 + len(r.groups) // 2)
    base, value = _starts(run, r), run.objective
    while not run.stopped and tried < patience:
        tried += 1
        slots = sequence(orders.by_key(_perturbed(base, r, rng)), lambda: run.stopped)
        if slots is not None and not run.stopped:
            offer(run, r, slots, "local_search")
        _walk(run, r, moves)
        if run.objective != value:
            base, value, tried = _starts(run, r), run.objective, 0


def _walk(run: Run, r: Reduced, moves: Moves) -> None:
    """Make moves from the best plan that do not make it worse."""
    slots, value = r.slots_of(run.plan), run.objective
    for _ in range(_MOVES):
        if run.stopped or slots is None or value is None:
            return
        moved = moves.near(slots)
        if moved is None:
            continue
        plan = r.plan(moved)
        seconds = verify(run.problem, plan).objective
        if seconds is not None and seconds <= value:
            slots = moved
            if seconds < value:
                value = seconds
                run.offer(plan, "local_search")


def _starts(run: Run, r: Reduced) -> FloatArray:
    """Return when each item starts in the best plan; items of a call one after the other, (I,)."""
    verdict = verify(run.problem, run.plan)
    calls = timetable(run.problem, run.plan.device, verdict.load)
    start = np.zeros(r.n_items)
    placed = r.item_of >= 0
    np.maximum.at(start, r.item_of[placed], calls.start[calls.unit[placed]])
    # ties, as within a call, in topological order
    return start + np.arange(r.n_items) * (1e-9 * (float(start.max()) or 1.0) / r.n_items)


def _perturbed(base: FloatArray, r: Reduced, rng: np.random.Generator) -> FloatArray:
    span = float(np.ptp(base)) or 1.0
    key = base.copy()
    choice = rng.integers(3)
    if choice == 0:
        near = np.abs(np.arange(r.n_items) - rng.integers(r.n_items)) <= rng.integers(2, 30)
        key[near] += rng.normal(0.0, span * rng.choice([0.01, 0.05, 0.2]), int(near.sum()))
    elif choice == 1:
        shift = float(rng.normal(0.0, span * 0.05))
        beside = r.neighbours[int(rng.integers(2))]
        v = int(rng.integers(r.n_items))
        for _ in range(int(rng.integers(1, 12))):
            key[v] += shift
            if not beside[v]:
                break
            v = beside[v][int(rng.integers(len(beside[v])))]
    else:
        key += rng.normal(0.0, span * rng.choice([0.003, 0.01, 0.03]), r.n_items)
    return key


_BUNCH = 6
"""Items that may move at once."""


class Moves:
    """Makes random moves that respect what a slot can hold by itself.

    Args:
        r: the problem.
        rng: chooses.
    """

    def __init__(self, r: Reduced, rng: np.random.Generator) -> None:
        self.r, self.rng = r, rng
        self.home = host_slots(r)
        self.hosts = [s for s, slot in enumerate(r.slots) if slot.host]

    def near(self, slots: Sequence[int]) -> list[int] | None:
        """Return `slots` with a bunch moved to the slot of a neighbour, a host or an idle call, `None` if stuck."""
        r, rng = self.r, self.rng
        bunch = self._bunch(slots)
        here = slots[bunch[0]]
        before, after = r.neighbours
        around = {slots[r.group_of[u]] for g in bunch for v in r.groups[g] for u in (*before[v], *after[v])}
        idle = [s for s in r.callers if s not in set(slots)][:1]
        targets = sorted(({*around, *idle, *self.hosts, self.home[bunch[0]]} & set(range(len(r.slots)))) - {here})
        targets = [s for s in targets if all(r.fits[g, s] for g in bunch)]
        if not targets:
            return None
        moved = list(slots)
        target = targets[int(rng.integers(len(targets)))]
        for g in bunch:
            moved[g] = target
        return moved

    def _bunch(self, slots: Sequence[int]) -> list[int]:
        """Return some groups of one slot, each next to another."""
        r, rng = self.r, self.rng
        v = int(rng.integers(r.n_items))
        groups = [int(r.group_of[v])]
        for _ in range(int(rng.integers(_BUNCH))):
            beside = r.neighbours[int(rng.integers(2))][v]
            beside = [u for u in beside if slots[r.group_of[u]] == slots[groups[0]]]
            if not beside:
                break
            v = beside[int(rng.integers(len(beside)))]
            if int(r.group_of[v]) not in groups:
                groups.append(int(r.group_of[v]))
        return groups
