"""A bound for pipelines that counts the transfers they cannot avoid.

For a plan with load below T on k equal accelerators, the ideal I[s] at boundary s = 1 .. k-1 has work within a window

    W - (k-s) T + M[s..k-1] / 2  <=  w(I[s])  <=  s T - M[1..s] / 2.

A net e that is open at b[e] boundaries is paid by at least two stages, so with c'[e] = 2 c[e] / b[e]

    k T >= sum of loads >= W + sum over s of m[s],    m[s] = min over ideals I in the window of c'(nets open at I),

and M adds up the m. Half of each m[s], the home stage's share, falls on the stages up to s, half on those after it,
which narrows the windows; so we iterate. b[e] is bounded by the work that can lie strictly between the stages of e's
first pin and any other. A group whose ancestors do not fit under the window is out of I[s], one whose descendants do
not fit above it is in; the minimum over the rest is a minimum cut, with a Lagrange multiplier for what is left of
the window.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...flows import minimum_cut
from .. import reached
from .quotient import Quotient

_UNITS = 1 << 40
"""Integer capacity that stands for the threshold; costs are rounded down, so the bound stays valid."""
_INFINITE = 1 << 60
_MOST = 1 << 50
"""No finite capacity is larger, lest sums overflow; lower prices leave the bound valid."""
_BISECTIONS = 18
Index = NDArray[np.int64]


def cut_bound(q: Quotient, threshold: float, stopped: Callable[[], bool], rounds: int = 4) -> float:
    """Return a lower bound in seconds on any contiguous plan's load, given that `threshold` can be reached.

    Returns 0 where the argument does not apply: hosts, several device types, fewer than two devices.
    """
    present = np.flatnonzero(q.counts)
    if len(present) != 1 or q.host[present[0]] or q.counts[present[0]] < 2 or not q.nets:
        return 0.0
    if threshold <= 0 or not q.work.any():
        return 0.0
    cuts = _PricedCuts(q, int(q.counts[present[0]]), threshold)
    total = 0.0
    for _ in range(rounds):
        before = total
        for s in range(1, cuts.k):
            if stopped():
                return (cuts.total_work + total) / cuts.k
            cuts.price[s] = max(cuts.price[s], cuts.cheapest(s))
        total = float(cuts.price.sum())
        if total < before * 1.01:
            break
    return min(threshold, (cuts.total_work + total) / cuts.k)


class _PricedCuts:
    def __init__(self, q: Quotient, k: int, threshold: float) -> None:
        self.q, self.k, self.threshold = q, k, threshold
        self.work = q.work
        self.total_work = float(q.work.sum())
        self.price = np.zeros(k + 1)
        groups = range(q.n_groups)
        self.up, self.down = reached(groups, q.neighbours[0]), reached(groups[::-1], q.neighbours[1])
        self._padded = np.pad(q.work, (0, -len(q.work) % 8))
        self.work_up, self.work_down = (
            np.array([self._weigh(sets[g] | 1 << g) for g in groups]) for sets in (self.up, self.down)
        )
        self.scale = _UNITS / threshold
        self.steepest = 4 * sum(cost for _, cost in q.nets) / self.total_work
        self._arcs()

    def _weigh(self, bits: int) -> float:
        """Return the work of a set of groups."""
        raw = np.frombuffer(bits.to_bytes(len(self._padded) // 8, "little"), dtype=np.uint8)
        return float(np.unpackbits(raw, bitorder="little") @ self._padded)

    def _arcs(self) -> None:
        q, n = self.q, self.q.n_groups
        everything, arcs = (1 << n) - 1, list[tuple[int, int, int]]()
        # a stage short of this much work would leave more than the others can take
        least = max(self.total_work * (1 - 1e-9) - (self.k - 1) * self.threshold, 0.0)
        for e, (pins, cost) in enumerate(q.nets):
            firsts = [g for g in pins if not self.up[g] & sum(1 << p for p in pins)]
            # open means that the first pin is done and not all are; nets without one first pin are left out
            if len(firsts) != 1:
                continue
            first, others = firsts[0], sorted(pins - {firsts[0]})
            # what is before the first pin or after the last cannot lie in a stage strictly between theirs
            outside = [self.up[first] | self.down[last] | 1 << first | 1 << last for last in others]
            between = max(self._weigh(everything & ~groups) for groups in outside)
            boundaries = self.k - 1 if least <= 0 else min(self.k - 1, int(between / least) + 1)
            arcs.append((first, n + e, int(min(2 * cost / boundaries * self.scale, _MOST))))
            arcs += [(n + e, g, _INFINITE) for g in others]
        self.arcs = np.array([*arcs, *((b, a, _INFINITE) for a, b in q.edges)], dtype=np.int64).reshape(-1, 3).T

    def cheapest(self, s: int) -> float:
        """Return m[s]: the least price of the nets open at an ideal in window s."""
        low = self.total_work - (self.k - s) * self.threshold + self.price[s:].sum() / 2
        high = s * self.threshold - self.price[: s + 1].sum() / 2
        inside = np.flatnonzero(self.total_work - self.work_down < low * (1 - 1e-9))
        outside = np.flatnonzero(self.work_up > high * (1 + 1e-9))
        best, left, right = 0.0, -self.steepest, self.steepest
        for _ in range(_BISECTIONS):
            multiplier = (left + right) / 2
            value, work = self._cut(multiplier, inside, outside)
            best = max(best, value - multiplier * (low if multiplier < 0 else high))
            if low <= work <= high:
                break
            left, right = (left, multiplier) if work < low else (multiplier, right)
        return best

    def _cut(self, multiplier: float, inside: Index, outside: Index) -> tuple[float, float]:
        """Return the minimum over ideals I of price(I) + multiplier * w(I), and w of the minimiser."""
        n, e = self.q.n_groups, len(self.q.nets)
        source, sink = n + e, n + e + 1
        pull = np.minimum(np.abs(multiplier) * self.work * self.scale, _MOST).astype(np.int64)
        groups = np.arange(n)
        towards = (groups, np.full(n, sink)) if multiplier > 0 else (np.full(n, source), groups)
        tail = np.concatenate([self.arcs[0], towards[0], np.full(len(inside), source), outside, [source]])
        head = np.concatenate([self.arcs[1], towards[1], inside, np.full(len(outside), sink), [sink]])
        limit = np.concatenate([self.arcs[2], pull, np.full(len(inside) + len(outside), _INFINITE), [0]])
        found = minimum_cut((tail, head, limit), source, sink)
        if found is None:
            return -np.inf, 0.0
        offset = 0.0 if multiplier > 0 else multiplier * self.total_work
        return found[0] / self.scale + offset, float(self.work[found[1][found[1] < n]].sum())
