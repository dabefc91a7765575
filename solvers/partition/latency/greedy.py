"""Greedy: the best sequence of calls along a few lines of the items."""

from __future__ import annotations

from collections.abc import Iterator

from ...run import Run
from .orders import Orders
from .reduced import Reduced
from .rounding import host_slots, offer
from .segments import Line
from .sequence import sequence

_COARSE = 300
"""Positions of a line that a plan is quickly found for."""


def greedy(run: Run, r: Reduced) -> None:
    """Offer everything on hosts and the best sequence of calls along nine lines; see `sequence`."""
    home = host_slots(r)
    if not run.stopped and all(s >= 0 for s in home):
        offer(run, r, home, "hosts")
    for line in _lines(Orders(r)):
        if run.stopped:
            return
        slots = sequence(line, lambda: run.stopped)
        if slots is not None and not run.stopped:
            offer(run, r, slots, "greedy")


def _lines(orders: Orders) -> Iterator[Line]:
    first = orders.depth_first()
    if first.length > _COARSE:
        yield first.coarse(_COARSE)
    yield first
    for key in orders.candidates():
        yield orders.by_key(key)
