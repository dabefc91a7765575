"""Rules that choose a degree and keep the job in one block of it, compiled: rivals to be held against."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import kernel

from .play import hold
from .tables import DEGREES

RULES = np.array([(i, constant) for i in range(1, len(DEGREES)) for constant in (1, 0)])
"""A degree as an index into `DEGREES`, and whether it is constant: then the job gets the first block of that degree, as
published. Else it gets the next degree that will do, upwards, then downwards, and the block that leaves the most free
blocks; int64 (rules, 2)."""

WIDE_RULES = np.array([(i, way) for i in range(1, len(DEGREES)) for way in (1, 2)])
"""The same for large clusters: 2 is the next degree that will do, in its first block, for which few are looked at."""


@kernel
def by_rule(end: Any, now: float, jct: Any, limit: float, rule: Any, tables: Any) -> int:
    """Return the block that a rule gives a job, or -1.

    Args:
        end: when each server is free, float64 (n,).
        now: the time.
        jct: of the job in each shape, float64 (s,).
        limit: the longest that its user accepts.
        rule: one of `RULES` or `WIDE_RULES`.
        tables: of the cluster.
    """
    free = _free(end, now, tables)
    degree = _degree(free, jct, limit, rule, tables)
    best, found = len(free) + 1, -1
    met = np.zeros(len(free), np.int64)
    for b in range(len(free)):
        if tables.degree[b] != degree or not free[b] or jct[tables.shape[b]] > limit:
            continue
        if rule[1]:
            return b
        lost = _lost(b, free, met, tables)
        if lost < best:
            best, found = lost, b
    return found


@kernel
def go_on(ends: Any, block: Any, now: float, jct: Any, limit: float, rules: Any, tables: Any) -> None:
    """Let a job arrive at clusters of which the first gets the block that it is given, and the others go by rules.

    Args:
        ends: when each server of each cluster is free, float64 (1 + rules, n); is written.
        block: that the job gets in each cluster, or -1, int64 (1 + rules,); all but the first is written.
        now, jct, limit, tables: as in `by_rule`.
        rules: as `RULES` or `WIDE_RULES`.
    """
    for r in range(len(ends)):
        if r > 0:
            block[r] = by_rule(ends[r], now, jct, limit, rules[r - 1], tables)
        if block[r] >= 0:
            hold(ends[r], block[r], now + jct[tables.shape[block[r]]], tables)


@kernel
def _free(end: Any, now: float, tables: Any) -> Any:
    """Return which blocks are free."""
    free = np.ones(len(tables.size), np.bool_)
    for s in range(tables.n):
        if end[s] > now:
            for j in range(tables.first[s], tables.first[s + 1]):
                free[tables.holds[j]] = False
    return free


@kernel
def _degree(free: Any, jct: Any, limit: float, rule: Any, tables: Any) -> int:
    """Return the degree that a rule chooses of those that would do, -1 for none."""
    up, down = len(DEGREES), -1
    for b in range(len(free)):
        if free[b] and jct[tables.shape[b]] <= limit:
            q = tables.degree[b]
            if q < rule[0]:
                down = max(down, q)
            else:
                up = min(up, q)
    if rule[1] == 1:
        return rule[0] if up == rule[0] else -1
    return up if up < len(DEGREES) else down


@kernel
def _lost(block: int, free: Any, met: Any, tables: Any) -> int:
    """Return how many of the free blocks share a server with a block; `met` is written."""
    lost = 0
    for i in range(tables.size[block]):
        s = tables.servers[block, i]
        for j in range(tables.first[s], tables.first[s + 1]):
            other = tables.holds[j]
            if free[other] and met[other] != block + 1:
                met[other] = block + 1
                lost += 1
    return lost
