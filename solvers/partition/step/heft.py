"""HEFT with insertion (Topcuoglu, Hariri, Wu, IEEE TPDS 2002), with delays by level, memory and colocation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from gangplan.instances.arrays import IntArray

from ...run import Run, never
from .model import Prepared
from .schedule import Decoder, Partial, as_plan, mean_rank, ranked

_TRIES = 40
"""Packings of the memory that are tried."""


def heft(run: Run, p: Prepared) -> None:
    """Offer the plan that puts each op where it ends first, those with the most behind them first.

    The first op of a group takes the whole group along. A group that has no room left starts all over from a packing
    of the memory. Everything on one device is offered too: HEFT looks at one op at a time and may do worse.
    """
    order = ranked(p, mean_rank(p))
    if p.alone is not None and not run.stopped:
        offer_placement(run, p, np.full(p.n_groups, p.alone), order)
    partial, count = Partial(Decoder(p)), 0
    for _ in one_by_one(run, p, partial, order):
        count += 1
    if run.stopped:
        return
    if count == p.n:
        run.offer(as_plan(p, partial.device, partial.start, partial.sent), "heft")
        return
    packing = pack(p, run.seed, lambda: run.stopped)
    if packing is not None and not run.stopped:
        offer_placement(run, p, packing, order)


def one_by_one(run: Run, p: Prepared, partial: Partial, order: list[int]) -> Iterator[tuple[int, int]]:
    """Put each op of `order` where it ends first, and yield it and its device; end where a group has no room left."""
    where, left = [-1] * p.n_groups, p.room.tolist()
    allowed, need, twins = p.allowed.tolist(), p.group_memory.tolist(), p.twins.tolist()
    for v in order:
        g = int(p.group_of[v])
        if where[g] < 0:
            used = set(where)
            # of twins in no use the first stands for all
            unused = {twin: d for d, twin in reversed(list(enumerate(twins))) if d not in used}
            others = (d for d, twin in enumerate(twins) if d in used or unused[twin] == d)
            choice = [d for d in others if allowed[g][d] and need[g] <= left[d]]
            if not choice:
                return
            where[g] = _earliest(run, partial, v, choice)
            left[where[g]] -= need[g]
        if run.stopped:
            return
        partial.put(v, where[g])
        yield v, where[g]


def _earliest(run: Run, partial: Partial, v: int, choice: list[int]) -> int:
    """Return the device on which op v ends first; of equals the one with most of what it reads."""
    if len(choice) == 1:
        return choice[0]
    near = [partial.device[u] for u in partial.decoder.before[v]]
    return min(choice, key=lambda d: (0.0 if run.stopped else partial.would_end(v, d), -near.count(d)))


def offer_placement(run: Run, p: Prepared, where: IntArray | Sequence[int], order: list[int]) -> None:
    """Offer the plan of a device for each group, int (G,), and an order of the ops."""
    device = np.asarray(where)[p.group_of].tolist()
    start, _, sent = Decoder(p).times(device, order)
    run.offer(as_plan(p, device, start, sent), "heft")


def pack(p: Prepared, seed: int = 0, stopped: Callable[[], bool] = never) -> IntArray | None:
    """Return a device for each group so that all fit, int32 (G,), or `None`: best fit, in orders ever more random."""
    rng = np.random.default_rng(seed)
    # those that few devices take come first
    choices, size = p.allowed.sum(axis=1), p.group_memory / max(1.0, float(p.group_memory.max()))
    for i in range(_TRIES):
        left, where = p.room.copy(), np.full(p.n_groups, -1, dtype=np.int32)
        for g in np.lexsort((-size - rng.random(p.n_groups) * i / _TRIES, choices)).tolist():
            if stopped():
                return None
            fitting = np.flatnonzero(p.allowed[g] & (p.group_memory[g] <= left))
            if not len(fitting):
                break
            where[g] = d = fitting[left[fitting].argmin()]
            left[d] -= p.group_memory[g]
        else:
            return where
    return None
