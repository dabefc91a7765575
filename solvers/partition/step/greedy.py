"""Greedy construction: ops one after the other, each where a rule says, groups and memory kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gangplan.instances.arrays import IntArray

from ...run import Run
from .model import Prepared
from .room import Room, pack
from .schedule import Decoder, Partial, as_plan

Rule = Callable[[Partial, Room, int, list[int]], int]
"""Of a schedule and a placement in the making, an op and the devices it may go to, the one it goes to."""


def construct(run: Run, p: Prepared, order: list[int], rule: Rule, by: str) -> bool:
    """Put the ops in, in `order`, every edge forward, where `rule` says, and offer the plan.

    The first op of a group takes the whole group along. A group that has no room left starts all over from a packing,
    without the rule.

    Returns:
        Whether there is a plan.
    """
    decoder, room = Decoder(p), Room(p)
    partial = Partial(decoder)
    partial.stopped = lambda: run.stopped
    for v in order:
        if run.stopped:
            return False
        g = int(p.group_of[v])
        if room.where[g] < 0:
            choice = [d for d in room.first_of_twins() if room.fits(g, d)]
            if not choice:
                return packed(run, p, order, by)
            try:
                room.put(g, choice[0] if len(choice) == 1 else rule(partial, room, v, choice))
            except TimeoutError:
                return False
        partial.put(v, room.where[g])
    if not run.stopped:
        run.offer(as_plan(p, partial.device, partial.start, partial.sent), by)
    return True


def packed(run: Run, p: Prepared, order: list[int], by: str) -> bool:
    """Offer a plan that packs the memory and no more; return whether there is one."""
    where = pack(p, run.seed, lambda: run.stopped)
    if where is None or run.stopped:
        return False
    offer_placement(run, p, where, order, by)
    return True


def offer_placement(run: Run, p: Prepared, where: IntArray | Sequence[int], order: list[int], by: str) -> None:
    """Offer the plan of a device for each group, int (G,), and an order of the ops."""
    device = np.asarray(where)[p.group_of].tolist()
    start, _, sent = Decoder(p).times(device, order)
    run.offer(as_plan(p, device, start, sent), by)


def together(run: Run, p: Prepared, order: list[int], by: str) -> None:
    """Offer everything on one device, if that is possible: the fastest."""
    fits = p.allowed.all(axis=0) & (p.group_memory.sum() <= p.room)
    if not fits.any() or run.stopped:
        return
    seconds = np.where(fits, p.time.sum(axis=1)[p.type_of], np.inf)
    offer_placement(run, p, np.full(p.n_groups, int(seconds.argmin())), order, by)
