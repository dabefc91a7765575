"""How large the model of a method would be, and so whether it is worth building."""

from __future__ import annotations

from math import comb

import numpy as np

from .grain import down, tick_of
from .prepare import NODES, RAMP, Prepared

_TIME, _EVENTS, _LITERALS, _JOBS = 100_000, 4_000, 200_000, 2_000
"""Binaries of the time-indexed and the event-based MILP, literals of CP-SAT, jobs of the master of the LP."""


def places_of(p: Prepared, o: int) -> int:
    """Return how many places option o has."""
    c, degree = p.cluster, int(p.gpus[o])
    if c.kind == RAMP:
        return int((c.size == degree).sum())
    if c.kind != NODES:
        return 1
    full, rest = divmod(degree, c.gpus)
    return comb(c.nodes, full) * (c.nodes - full if rest else 1)


def horizon(p: Prepared) -> float:
    """Return when all jobs have run one after the other."""
    return float(p.release.max()) + p.slowest()


def ticks_of(p: Prepared, o: int, tick: float, end: float) -> range:
    """Return the ticks at which option o may start, to be over by its deadline and `end`."""
    j = int(p.owner[o])
    last = min(float(p.deadline[j]), end) - float(p.seconds[o])
    return range(down(float(p.release[j]), tick), down(last, tick) + 1)


def suits_milp_time(p: Prepared) -> bool:
    """Return whether times are whole ticks, and few enough."""
    tick, whole = tick_of(p)
    end = horizon(p)
    return whole and sum(places_of(p, o) * len(ticks_of(p, o, tick, end)) for o in range(len(p.gpus))) <= _TIME


def suits_milp_events(p: Prepared) -> bool:
    """Return whether there are few enough choices and events."""
    return p.n * sum(places_of(p, o) for o in range(len(p.gpus))) <= _EVENTS


def suits_cpsat(p: Prepared) -> bool:
    """Return whether there are few enough options on nodes, or in blocks."""
    if p.cluster.kind == RAMP:
        return int(np.bincount(p.cluster.size, minlength=p.cluster.total + 1)[p.gpus].sum()) <= _LITERALS
    return len(p.gpus) * p.cluster.nodes <= _LITERALS


def suits_prices(p: Prepared) -> bool:
    """Return whether there are few enough jobs; a makespan is no sum over jobs."""
    return p.n <= _JOBS and not p.makespan
