"""A bound for every variant: groups that no plan of some load can keep apart are one, until one is too large.

Suppose that a plan has no load above T. Let group a have a neighbour b (a net with both). If

    min over S with a in S and b not in S of w(S) + sum of c[e] over nets of which S has some pins and not all  >  T,

then no device has a without b: a and b are on one device, and the plan is one of the problem in which they are one
group. There are no hosts, w counts the type that runs a group fastest, and so this minimum, a cut (see `stage_bound`),
is no more than the load of the device that has a. With such groups merged others follow. If in the end some group fits
on no device, or the least load of a device that has it is above T, or the pigeonhole bound is (`counting_bound`), there
is no such plan, and T is a bound. {a} is among the S, so a group whose load alone is at most T merges with none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...run import OPTIMAL_GAP
from .bounds import counting_bound, impossible
from .quotient import Quotient, merged
from .stage_bound import Stages, has_stages

_EPSILON = 1e-9
_CLOSE = 0.004
"""Loads are tried until one that is refuted and one that is not are so near, as a share."""


def contraction_bounds(q: Quotient, floor: float, ceiling: float, stopped: Callable[[], bool]) -> Iterator[float]:
    """Yield greater and greater lower bounds in seconds on the load of plans of any variant.

    Args:
        q: the quotient of the problem.
        floor: a bound that is known, seconds.
        ceiling: the load of a plan; no bound is greater.
        stopped: whether to end.
    """
    low, high, load = floor, ceiling, ceiling * (1 - OPTIMAL_GAP / 2)
    while load > low and not stopped():
        if refutes(q, load, stopped):
            low = load
            yield load
        else:
            high = load
        load = (low * high) ** 0.5 if high > low * (1 + _CLOSE) else low


def refutes(q: Quotient, load: float, stopped: Callable[[], bool]) -> bool:
    """Return whether plainly no plan has all loads at most `load` seconds; false if `stopped` says so."""
    while not stopped():
        if impossible(q) is not None or counting_bound(q, stopped) > load * (1 + _EPSILON):
            return True
        if not has_stages(q):
            return False
        stages = Stages(q)
        heavy = np.flatnonzero(stages.alone > load)
        beside: dict[int, set[int]] = {a: set() for a in heavy.tolist()}
        for pins, _ in q.nets:
            for a in pins & beside.keys():
                beside[a] |= pins - {a}
        label = np.arange(q.n_groups)
        for a, others in beside.items():
            if stopped():
                return False
            if stages.least(a) > load * (1 + _EPSILON):
                return True
            for b in sorted(others):
                if label[a] != label[b] and stages.least(a, b) > load * (1 + _EPSILON):
                    label[label == label[b]] = label[a]
        if (label == np.arange(q.n_groups)).all():
            return False
        q = merged(q, np.unique(label, return_inverse=True)[1].astype(np.int32), ())
    return False
