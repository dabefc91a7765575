"""Ruin and recreate on a whole placement, compiled: some gangs go, and come back where the batch gains most."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .moves import add, remove, rooms, settle
from .places import better, copied, insert
from .state import inner

_RUIN = 6
"""Gangs that go with the one that is drawn, at most."""
_MARGIN = 0.02
"""How much worse than the best a placement may be and be kept, as a share, at first."""


@njit(cache=True)
def search(f: Any, s: Any, best: Any, count: Any, first: Any, last: Any, rounds: Any, seed: Any) -> Any:  # noqa: PLR0912
    """Do some rounds, `first` to `last` of `rounds`, and return the least cost.

    In the first rounds, two for each job, every gang that costs more than it must is put back by itself. Then each
    takes off such a gang, drawn by how much, with some that are beside it, where it might go or anywhere; they come
    back in random order or the largest first. A result that is hardly worse is kept (record-to-record travel,
    Dueck 1993), the margin shrinking to none.

    Args:
        f, s: the batch, and where all are, changed; empty before round 0.
        best, count: rows of each job, (J, R, 3), and how many, (J,), in the best placement so far; changed.
        first, last, rounds: which of how many.
        seed: of all that is drawn.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code, which has no other
    jobs = len(count)
    chosen, size = np.empty(_RUIN + 1, np.int64), np.empty(_RUIN + 1, np.int64)
    before = np.empty((_RUIN + 1, s.rows.shape[1], 3), np.int64)
    if first == 0:
        for j in range(jobs):
            s.dirty[j] = True
            if count[j]:
                add(f, s, j, best[j], count[j])
        s.record[0] = settle(f, s)
    slack = np.empty(jobs)
    for i in range(first, last):
        total, n = 0.0, 1
        for j in range(jobs):
            slack[j] = max(s.cost[j] - (0.0 if f.rates else min(f.weight[j], f.value[j])), 0.0) if f.free[j] else 0.0
            total += slack[j]
        record = s.record[0]
        if total <= 1e-9 * (1.0 + abs(record)):
            break
        if i < 2 * jobs:
            chosen[0] = i % jobs
            if slack[i % jobs] <= 1e-9:
                continue
        else:
            n = _ruined(f, s, slack, total, chosen)
        for x in range(n):
            size[x] = s.count[chosen[x]]
            copied(s.rows[chosen[x]], before[x], size[x])
            remove(f, s, chosen[x])
        settle(f, s)
        _order(f, chosen, before, size, n)
        x = 0
        while x < n and back(f, s, chosen[x]):
            x += 1
        found = settle(f, s)
        margin = _MARGIN * (1.0 - i / rounds) ** 2 if i >= 2 * jobs else 0.0
        if x < n or found > record * (1.0 + margin):
            for y in range(n):
                if s.count[chosen[y]]:
                    remove(f, s, chosen[y])
            for y in range(n):
                if size[y]:
                    add(f, s, chosen[y], before[y], size[y])
            settle(f, s)
        elif found < record * (1.0 - 1e-9):
            s.record[0] = found
            for j in range(jobs):
                count[j] = s.count[j]
                copied(s.rows[j], best[j], s.count[j])
    return s.record[0]


@inner
def back(f: Any, s: Any, j: Any) -> Any:
    """Put job j, which is nowhere, where that costs least; return whether it may be as it is then."""
    s.least[0], s.size[0] = f.value[j] + f.migration[j], 0
    total = rooms(f, s, j)
    if f.stood[j] and not f.servers[j]:
        fits = True
        for x in range(f.stood[j]):
            fits = fits and s.room[f.stand[j, x, 0]] >= f.stand[j, x, 1]
        if fits:
            copied(f.stand[j], s.trial, f.stood[j])
            better(f, s, j, f.stood[j])
    for degree in f.degrees[j]:
        if 0 < degree <= total:
            insert(f, s, j, degree)
    if s.size[0]:
        add(f, s, j, s.place, s.size[0])
        settle(f, s)
        return True
    return np.isfinite(f.value[j])


@inner
def _ruined(f: Any, s: Any, slack: Any, total: Any, chosen: Any) -> Any:
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
        if kind < 0.45 and s.count[j]:
            node = s.rows[j, np.random.randint(s.count[j]), 0]  # noqa: NPY002
        elif kind < 0.9:
            node = np.random.randint(len(s.many))  # noqa: NPY002
        else:
            node = -1
        if node < 0:
            i = np.random.randint(len(slack))  # noqa: NPY002
        elif s.many[node]:
            i = s.here[node, np.random.randint(s.many[node]), 0]  # noqa: NPY002
        else:
            continue
        known = not f.free[i]
        for x in range(n):
            known = known or chosen[x] == i
        if not known:
            chosen[n] = i
            n += 1
    return n


@inner
def _order(f: Any, chosen: Any, before: Any, size: Any, n: Any) -> None:
    """Put those that went in random order, or the largest first."""
    largest = np.random.random() < 0.5  # noqa: NPY002
    for x in range(n - 1, 0, -1):
        y = np.random.randint(x + 1)  # noqa: NPY002
        if largest:
            for z in range(x):
                y = z if _gpus(f, chosen[z]) < _gpus(f, chosen[y]) else y
            if _gpus(f, chosen[y]) >= _gpus(f, chosen[x]):
                y = x
        chosen[x], chosen[y] = chosen[y], chosen[x]
        size[x], size[y] = size[y], size[x]
        for z in range(before.shape[1]):
            for c in range(3):
                before[x, z, c], before[y, z, c] = before[y, z, c], before[x, z, c]


@inner
def _gpus(f: Any, j: Any) -> Any:
    return f.degrees[j, 0] * f.need[j, 0]
