"""Plans out of a bound: the calls that a path's recurrence has in mind, everything else on hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from gangplan.instances import verify

from ...run import Run
from .chain import Chain
from .reduced import Reduced


def rounded(
    chain: Chain, intervals: Iterable[tuple[int, int]], chosen: Mapping[tuple[int, int], frozenset[int]]
) -> list[list[int]]:
    """Return slots for the groups, in a few ways: what two calls want goes to the first of them or to the last."""
    r = chain.r
    calls = []
    for i, j in sorted(intervals):
        hull, _ = chain.sides(i, j)
        items = [*np.flatnonzero(hull).tolist(), *chosen.get((i, j), ())]
        calls.append(sorted({int(r.group_of[v]) for v in items}))
    if not calls or len(calls) > len(r.callers):
        return []
    home = host_slots(r)
    found = []
    for order in (calls, calls[::-1]):
        slots = list(home)
        taken: set[int] = set()
        free = list(r.callers)
        for groups in order:
            able = [s for s in free if all(r.fits[g, s] for g in groups)]
            if not able:
                break
            free.remove(able[0])
            for g in groups:
                if g not in taken:
                    taken.add(g)
                    slots[g] = able[0]
        else:
            if all(s >= 0 for s in slots):
                found.append(slots)
    return found


def host_slots(r: Reduced) -> list[int]:
    """Return for each group the host with memory for all where it is fastest, -1 if none runs it."""
    if not r.pools:
        return [-1] * len(r.groups)
    time = np.stack([r.group_time[r.slots[s].kind] for s in r.pools])
    best = time.argmin(axis=0)
    runs = np.isfinite(time.min(axis=0))
    return [r.pools[b] if able else -1 for b, able in zip(best.tolist(), runs.tolist(), strict=True)]


def offer(run: Run, r: Reduced, slots: list[int], by: str) -> bool:
    """Offer the plan with group g in slot `slots[g]` if it is one; return whether it is the best."""
    plan = r.plan(slots)
    return verify(run.problem, plan).ok and run.offer(plan, by)
