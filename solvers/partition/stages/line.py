"""Some of the ideals, where all are too many: those that linear extensions run through."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...run import never, watched
from ..throughput.lattice import linear_extension, prefixes
from .family import Family
from .reduced import Units

_ORDERS = 4
"""Linear extensions that are mixed."""
_REACH = (64, 32, 16, 8)


def mixed(units: Units, seed: int, stopped: Callable[[], bool]) -> Family:
    """Return the ideals of a few linear extensions."""
    rng = np.random.default_rng(seed)
    found = dict.fromkeys(prefixes(linear_extension(units.order)))
    for _ in watched(range(_ORDERS - 1), stopped, 1):
        found |= dict.fromkeys(prefixes(linear_extension(units.order, rng)))
    return Family(units, list(found), stopped)


def thinned(units: Units, most: int, stopped: Callable[[], bool] = never) -> Family:
    """Return at most `most` ideals of one linear extension: of each equal step of work the one that cuts least."""
    line = list(prefixes(linear_extension(units.order)))
    family = Family(units, line, stopped)
    work = family.seconds.sum(axis=1).min(axis=0)
    step = np.minimum((work / max(float(work[-1]), 1e-300) * (most - 1)).astype(int), most - 2)
    inner = [np.flatnonzero(step[1:-1] == s) + 1 for s in range(1, most - 1)]
    best = [int(inside[np.argmin(family.crossing[inside])]) for inside in inner if len(inside)]
    return Family(units, [line[i] for i in (0, *best, len(line) - 1)], stopped)


def around(units: Units, ends: list[int], stopped: Callable[[], bool] = never) -> Iterator[Family]:
    """Yield smaller and smaller families around the ideals `ends`: they and the next ones before and after.

    Args:
        units: what the ideals are sets of.
        ends: bits of integers, in the order of the pipeline, the last one full.
    """
    # a linear extension through all of them: the steps of each stage in the order of the plain one
    plain = linear_extension(units.order)
    place, done, line = [], 0, [0]
    for end in ends:
        fresh = end & ~done
        for g in plain:
            if fresh >> g & 1:
                line.append(line[-1] | 1 << g)
        place.append(len(line) - 1)
        done = end
    for reach in _REACH:
        kept = {0, len(line) - 1}
        for at in place:
            kept |= set(range(max(at - reach, 0), min(at + reach + 1, len(line))))
        yield Family(units, [line[i] for i in sorted(kept)], stopped)
