"""Ruin and recreate on a whole placement, compiled: some gangs go, and come back where the batch gains most."""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import Floats, Ints, Ints3, by_reference, inner, kernel, lean
from .moves import add, remove, rooms, settle
from .places import better, copied, insert
from .state import Fixed, Live

_RUIN = 6
"""Gangs that go with the one that is drawn, at most."""
_MARGIN = 0.02
"""How much worse than the best a placement may be and be kept, as a share, at first."""


@kernel
def search(  # noqa: PLR0912
    fixed: Fixed, moving: Live, best: Ints3, count: Ints, first: int, last: int, rounds: int, seed: int
) -> float:
    """Do some rounds, `first` to `last` of `rounds`, and return the least cost.

    In the first rounds, two for each job, every gang that costs more than it must is put back by itself. Then each
    takes off such a gang, drawn by how much, with some that are beside it, where it might go or anywhere; they come
    back in random order or the largest first. A result that is hardly worse is kept (record-to-record travel,
    Dueck 1993), the margin shrinking to none.

    Args:
        fixed, moving: the batch, and where all are, changed; empty before round 0.
        best, count: rows of each job, (J, R, 3), and how many, (J,), in the best placement so far; changed.
        first, last, rounds: which of how many.
        seed: of all that is drawn.
    """
    batch, live = by_reference(fixed), by_reference(moving)
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code, which has no other
    jobs = len(count)
    chosen, size = np.empty(_RUIN + 1, np.int64), np.empty(_RUIN + 1, np.int64)
    before = np.empty((_RUIN + 1, live.rows.shape[1], 3), np.int64)
    if first == 0:
        for j in range(jobs):
            live.dirty[j] = True
            if count[j]:
                add(batch, live, j, best[j], count[j])
        live.record[0] = settle(batch, live)
    slack = np.empty(jobs)
    for i in range(first, last):
        total, n = 0.0, 1
        for j in range(jobs):
            slack[j] = (
                max(live.cost[j] - (0.0 if batch.rates else min(batch.weight[j], batch.value[j])), 0.0)
                if batch.free[j]
                else 0.0
            )
            total += slack[j]
        record = live.record[0]
        if total <= 1e-9 * (1.0 + abs(record)):
            break
        if i < 2 * jobs:
            chosen[0] = i % jobs
            if slack[i % jobs] <= 1e-9:
                continue
        else:
            n = _ruined(batch, live, slack, total, chosen)
        for x in range(n):
            size[x] = live.count[chosen[x]]
            copied(live.rows[chosen[x]], before[x], size[x])
            remove(batch, live, chosen[x])
        settle(batch, live)
        _order(batch, chosen, before, size, n)
        x = 0
        while x < n and back(batch, live, chosen[x]):
            x += 1
        found = settle(batch, live)
        margin = _MARGIN * (1.0 - i / rounds) ** 2 if i >= 2 * jobs else 0.0
        if x < n or found > record * (1.0 + margin):
            for y in range(n):
                if live.count[chosen[y]]:
                    remove(batch, live, chosen[y])
            for y in range(n):
                if size[y]:
                    add(batch, live, chosen[y], before[y], size[y])
            settle(batch, live)
        elif found < record * (1.0 - 1e-9):
            live.record[0] = found
            for j in range(jobs):
                count[j] = live.count[j]
                copied(live.rows[j], best[j], live.count[j])
    return float(live.record[0])


@inner
def back(batch: Fixed, live: Live, j: int) -> bool:
    """Put job j, which is nowhere, where that costs least; return whether it may be as it is then."""
    live.least[0], live.size[0] = batch.value[j] + batch.migration[j], 0
    total = rooms(batch, live, j)
    if batch.stood[j] and not batch.servers[j]:
        fits = True
        for x in range(batch.stood[j]):
            fits = fits and live.room[batch.stand[j, x, 0]] >= batch.stand[j, x, 1]
        if fits:
            copied(batch.stand[j], live.trial, batch.stood[j])
            better(batch, live, j, batch.stood[j])
    for degree in batch.degrees[j]:
        if 0 < degree <= total:
            insert(batch, live, j, degree)
    if live.size[0]:
        add(batch, live, j, live.place, live.size[0])
        settle(batch, live)
        return True
    return bool(np.isfinite(batch.value[j]))


@lean
def _ruined(batch: Fixed, live: Live, slack: Floats, total: float, chosen: Ints) -> int:
    """Draw the gangs that go; return how many."""
    draw, j = np.random.random() * total, 0  # noqa: NPY002
    while j < len(slack) - 1 and draw >= slack[j]:
        draw -= slack[j]
        j += 1
    while slack[j] == 0.0:  # rounding
        j -= 1
    chosen[0], n = j, 1
    most = np.random.randint(1, _RUIN + 1)  # noqa: NPY002
    for _ in range(3 * most):
        if n > most:
            break
        kind = np.random.random()  # noqa: NPY002
        if kind < 0.45 and live.count[j]:
            node = live.rows[j, np.random.randint(live.count[j]), 0]  # noqa: NPY002
        elif kind < 0.9:
            node = np.random.randint(len(live.many))  # noqa: NPY002
        else:
            node = -1
        if node < 0:
            i = np.random.randint(len(slack))  # noqa: NPY002
        elif live.many[node]:
            i = live.here[node, np.random.randint(live.many[node]), 0]  # noqa: NPY002
        else:
            continue
        known = not batch.free[i]
        for x in range(n):
            known = known or chosen[x] == i
        if not known:
            chosen[n] = i
            n += 1
    return n


@lean
def _order(batch: Fixed, chosen: Ints, before: Ints3, size: Ints, n: int) -> None:
    """Put those that went in random order, or the largest first."""
    largest = np.random.random() < 0.5  # noqa: NPY002
    for x in range(n - 1, 0, -1):
        y = np.random.randint(x + 1)  # noqa: NPY002
        if largest:
            for z in range(x):
                y = z if _gpus(batch, chosen[z]) < _gpus(batch, chosen[y]) else y
            if _gpus(batch, chosen[y]) >= _gpus(batch, chosen[x]):
                y = x
        chosen[x], chosen[y] = chosen[y], chosen[x]
        size[x], size[y] = size[y], size[x]
        for z in range(before.shape[1]):
            for c in range(3):
                before[x, z, c], before[y, z, c] = before[y, z, c], before[x, z, c]


@lean
def _gpus(batch: Fixed, j: int) -> float:
    return float(batch.degrees[j, 0] * batch.need[j, 0])
