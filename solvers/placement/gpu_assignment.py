"""Which GPUs of its nodes each job holds."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gangplan.instances.depth_first import walk
from gangplan.instances.placement import PlacementPlan
from gangplan.instances.verify import TOLERANCE

from .prepare import PreparedBatch, Rows

Item = tuple[int, float, int]
"""A job whose tasks need a share of a GPU: (job, share, tasks)."""
_STEPS = 3000
"""Of a search among packings."""
_FEW = 32
"""Tasks up to which there is a search: more are spread evenly or, where they do not fit so, put as tight as is easy."""


def pack(items: Sequence[Item], gpus: int, dislike: Callable[[int, int], float]) -> list[dict[int, int]] | None:
    """Put tasks that need shares on `gpus` GPUs: for each GPU, job -> its tasks there; `None` if they do not fit.

    Jobs share GPUs where that cannot be avoided, and then those that interfere least. With few tasks, all packings are
    looked at up to the order of GPUs and of equal tasks; with more the first that fits may be taken, of many only two.

    Args:
        dislike: what it costs that two jobs have a GPU in common; paid once.
    """
    whole = 1 + TOLERANCE
    alone = [-(-count // int(whole / share)) for _, share, count in items]
    if sum(alone) <= gpus:
        found: list[dict[int, int]] = []
        for (job, share, count), cards in zip(items, alone, strict=True):
            most = int(whole / share)
            found += [{job: min(most, count - i * most)} for i in range(cards)]
        return found + [{} for _ in range(gpus - len(found))]
    if sum(share * count for _, share, count in items) > gpus * whole:
        return None
    if _many(items):
        return _line_up(items, gpus, tight=False) or _line_up(items, gpus, tight=True)
    return _SharePacking(items, gpus, dislike).best


def _many(items: Sequence[Item]) -> bool:
    return sum(count for _, _, count in items) > _FEW


def _line_up(items: Sequence[Item], gpus: int, *, tight: bool) -> list[dict[int, int]] | None:
    """Put tasks, the largest first, on the fullest GPU that has room, or if not `tight` on the emptiest."""
    held: list[dict[int, int]] = [{} for _ in range(gpus)]
    order = [(0.0, -card) for card in reversed(range(gpus))]
    for job, share, count in sorted(items, key=lambda x: (-x[1], x[0])):
        for _ in range(count):
            at = bisect_right(order, (1 + TOLERANCE - share, 1)) - 1 if tight else 0
            if at < 0 or order[at][0] + share > 1 + TOLERANCE:
                return None
            used, card = order.pop(at)
            held[-card][job] = held[-card].get(job, 0) + 1
            insort(order, (used + share, card))
    return held


class _SharePacking:
    def __init__(self, items: Sequence[Item], gpus: int, dislike: Callable[[int, int], float]) -> None:
        self.tasks = [
            (share, job) for job, share, count in sorted(items, key=lambda x: (-x[1], x[0])) for _ in range(count)
        ]
        self.dislike = dislike
        self.used = [0.0] * gpus
        self.held: list[dict[int, int]] = [{} for _ in range(gpus)]
        self.best: list[dict[int, int]] | None = None
        self.least = float("inf")
        self.steps = 0
        walk(self._next(0, 0.0, frozenset()))

    def _next(self, i: int, cost: float, pairs: frozenset[tuple[int, int]]) -> Iterator[Any]:
        self.steps += 1
        if cost >= self.least or (self.steps > _STEPS and self.best is not None) or self.steps > 10 * _STEPS:
            return
        if i == len(self.tasks):
            self.best, self.least = [dict(x) for x in self.held], cost
            return
        share, job = self.tasks[i]
        seen = set()
        options = []
        for g, used in enumerate(self.used):
            content = tuple(sorted(self.held[g].items()))
            if used + share > 1 + TOLERANCE or content in seen:
                continue
            seen.add(content)
            new = frozenset((min(job, k), max(job, k)) for k in self.held[g] if k != job) - pairs
            options.append((sum(self.dislike(*pair) for pair in new), -used, g, new))
        for extra, _, g, new in sorted(options, key=lambda x: x[:3]):
            self.used[g] += share
            self.held[g][job] = self.held[g].get(job, 0) + 1
            yield self._next(i + 1, cost + extra, pairs | new)
            self.used[g] -= share
            self.held[g][job] -= 1
            if not self.held[g][job]:
                del self.held[g][job]


def fewest(items: Sequence[Item], gpus: int) -> int | None:
    """Return the least number of GPUs, up to `gpus`, that holds the tasks; `None` if that is not enough."""
    if _many(items):
        held = _line_up(items, gpus, tight=True)
        return None if held is None else sum(map(bool, held))
    need = sum(share * count for _, share, count in items)
    for cards in range(int(np.ceil(need * (1 - TOLERANCE) - TOLERANCE)), gpus + 1):
        if pack(items, cards, lambda a, b: 0.0) is not None:
            return cards
    return None


def undecided(items: Sequence[Item], gpus: int) -> bool:
    """Return whether `pack` finds no packing, and has not looked at all: it gives up on large ones."""
    if sum(share * count for _, share, count in items) > gpus * (1 + TOLERANCE):
        return False
    if _many(items):
        return pack(items, gpus, lambda a, b: 0.0) is None
    search = _SharePacking(items, max(0, gpus), lambda a, b: 0.0)
    return search.best is None and search.steps > 10 * _STEPS


def meeting(held: Sequence[dict[int, int]]) -> dict[int, set[int]]:
    """Return the GPUs that each job has a share of."""
    cards: defaultdict[int, set[int]] = defaultdict(set)
    for card, jobs in enumerate(held):
        for job in jobs:
            cards[job].add(card)
    return dict(cards)


def plan_of(batch: PreparedBatch, rows: Sequence[Rows]) -> PlacementPlan | None:
    """Return the plan of these rows with GPUs handed out, `None` if the shares on some node do not fit."""
    shared: dict[int, list[dict[int, int]]] = {}
    if ((batch.share < 1) & (batch.each > 0)).any():
        items: dict[int, list[Item]] = {}
        whole = np.zeros(batch.n_nodes, dtype=np.int64)
        for j, row in enumerate(rows):
            for node, (w, _) in row.items():
                if w and batch.each[j] and batch.share[j] < 1:
                    items.setdefault(node, []).append((j, float(batch.share[j]), w))
                elif batch.share[j] == 1:
                    whole[node] += w * int(batch.each[j])
        for node, here in items.items():
            held = pack(here, int(batch.problem.fleet.gpus[node] - whole[node]), lambda a, b: dislike(batch, a, b))
            if held is None:
                return None
            shared[node] = held
    return as_plan(batch, rows, lambda node: shared[node])


def dislike(batch: PreparedBatch, one: int, two: int) -> float:
    """Return what it costs two jobs to share a GPU rather than a host, alone and at best."""
    speeds, total = batch.problem.speeds, 0.0
    for j, other in ((one, two), (two, one)):
        a, b = batch.model[j], batch.model[other]
        total += batch.jobs[j].weight * float(speeds.gpu[a, b] - speeds.host[a, b])
    return total


def rows_of(batch: PreparedBatch, plan: PlacementPlan) -> list[Rows]:
    """Return the rows of each job in a plan."""
    rows: list[Rows] = [{} for _ in batch.jobs]
    for j, node, w, p in zip(*(x.tolist() for x in (plan.job, plan.node, plan.workers, plan.servers)), strict=True):
        rows[j][node] = (w, p)
    return rows


def as_plan(batch: PreparedBatch, rows: Sequence[Rows], shared: Callable[[int], list[dict[int, int]]]) -> PlacementPlan:
    """Return the plan of these rows: shares on the first GPUs of a node, as `shared` packs them, then whole ones."""
    flat = [(node, j, w, p) for j, row in enumerate(rows) for node, (w, p) in row.items()]
    flat.sort()
    cuts = [0, *(i for i, (a, b) in enumerate(pairwise(flat), 1) if a[0] != b[0]), len(flat)]
    grants: list[tuple[int, int]] = []
    for first, last in pairwise(cuts):
        if first == last:
            continue
        rows_of = {flat[r][1]: r for r in range(first, last)}
        card = 0
        if any(batch.share[j] < 1 and batch.each[j] and flat[r][2] for j, r in rows_of.items()):
            for held in shared(flat[first][0]):
                grants += [(rows_of[j], card) for j, count in held.items() for _ in range(count)]
                card += bool(held)
        for j, r in rows_of.items():
            if batch.share[j] == 1:
                need = int(batch.each[j]) * flat[r][2]
                grants += [(r, card + i) for i in range(need)]
                card += need
    table, given = (np.array(x, dtype=np.int32).reshape(-1, n) for x, n in ((flat, 4), (grants, 2)))
    return PlacementPlan(tuple(job.name for job in batch.jobs), *table.T[[1, 0, 2, 3]], *given.T)
