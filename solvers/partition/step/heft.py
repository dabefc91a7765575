"""HEFT with insertion (Topcuoglu, Hariri, Wu, IEEE TPDS 2002), with delays by level, memory and colocation."""

from __future__ import annotations

from ...run import Run
from .greedy import construct, together
from .model import Prepared
from .rank import mean_rank, ranked
from .room import Room
from .schedule import Partial


def heft(run: Run, p: Prepared) -> None:
    """Offer the plan that puts each op where it ends first, those with the most behind them first.

    An op whose group is placed goes where that is. Everything on one device is offered too: HEFT looks at one op at a
    time and may do worse.
    """
    order = ranked(p, mean_rank(p))
    together(run, p, order, "heft")
    if not run.stopped:
        construct(run, p, order, earliest, "heft")


def earliest(partial: Partial, room: Room, v: int, choice: list[int]) -> int:
    """Return the device on which op v ends first; of equals the one with most of what it reads."""
    near = [partial.device[u] for u in partial.decoder.before[v]]
    if partial.stopped():
        raise TimeoutError
    return min(choice, key=lambda d: (partial.would_end(v, d), -near.count(d)))
