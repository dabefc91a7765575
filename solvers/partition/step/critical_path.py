"""Critical path on one device: CPOP (Topcuoglu, Hariri, Wu, IEEE TPDS 2002), as far as memory allows."""

from __future__ import annotations

import numpy as np

from ...run import Run
from .bounds import heads, tails
from .greedy import construct, together
from .heft import earliest
from .model import Prepared
from .rank import mean_rank, ranked
from .room import Room
from .schedule import Partial


def critical_path(run: Run, p: Prepared) -> None:
    """Offer the plan with the groups of a critical path on the device that runs them fastest, the others by HEFT.

    Where that device has no room left, the next takes over for the rest of the path: what is on it already stays.
    """
    order = ranked(p, mean_rank(p))
    together(run, p, order, "critical_path")
    length = heads(p) + p.fastest + tails(p)
    critical = length >= length.max() * (1 - 1e-9)
    on_path = np.zeros(p.n_groups, dtype=bool)
    on_path[p.group_of[critical]] = True
    seconds = np.where(np.isfinite(p.group_time), p.group_time, 1e3 * np.nanmax(p.fastest) * p.n)[:, on_path].sum(
        axis=1
    )
    favour = sorted(range(p.n_devices), key=lambda d: (seconds[p.type_of[d]], d))
    here = favour[0]

    def rule(partial: Partial, room: Room, v: int, choice: list[int]) -> int:
        nonlocal here
        if not on_path[p.group_of[v]]:
            return earliest(partial, room, v, choice)
        if here not in choice:
            # nearby first, then fast
            here = min(choice, key=lambda d: (p.level[here, d], favour.index(d)))
        return here

    if not run.stopped:
        construct(run, p, order, rule, "critical_path")
