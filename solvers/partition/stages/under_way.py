"""A bound by memory and work together: the earlier a stage, the more samples are under way in it.

Let a plan have stages of r replicas, each of t devices, and R replicas in all later stages. A device of a stage S with
v = ceil(R / r) further samples under way holds once(S) + v kept(S) <= capacity; the objective is T >= seconds(S) / r.
Take any prices pi_u >= 0 of units. With

    K(t, r, v) = max of pi z : seconds z <= T r, (once + v kept) z <= capacity, 0 <= z <= 1,

a stage has units of at most that price, and every unit is in some stage, so

    sum of pi_u <= max over sequences of stages, t r devices each and N in all, of the sum of K(t, r, v).

If T breaks this no plan has that objective; if every T does there is no plan. The maximum is a longest path over the
devices that later stages use: D of them hold at least ceil(D / t_max) replicas, and fewer samples under way allow more.
Instead of K a larger number is taken, for several weights w of a second (weak duality, then a fractional knapsack):

    K <= w T r + max of (pi - w seconds)+ z : (once + v kept) z <= capacity, 0 <= z <= 1.

Of order, transfers and synchronisation it knows nothing. Prices tried: the work of a unit, and more and more memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import StagesProblem
from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import TOLERANCE

from ...run import never
from .reduced import Units

Index = NDArray[np.int64]

_SLACK = 1e-9
"""Relative, for sums of many floats."""
_FINE = 32
"""Samples under way up to which each count has its own knapsack; above, one for each tenth more."""
_MEMORY = (np.inf, 0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Price of all memory if all work costs 1, in the order in which they are tried; infinite: nothing else costs."""
_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Of the prices of a second of the units: the weights w, besides 0."""
_HALVINGS = 20
"""Steps of a bisection, a millionth of the range."""


class Amounts(NamedTuple):
    """What units, or classes of ops, take at each degree of the menu: see `Units`, float64 (K, G) each."""

    problem: StagesProblem
    seconds: FloatArray
    once: FloatArray
    kept: FloatArray


class Refuted(NamedTuple):
    """A bound and its argument: prices of units, weights w by degree, counts of samples under way."""

    bound: float
    price: FloatArray
    weights: list[FloatArray]
    counts: Index


def under_way_bound(units: Units, least: float, stopped: Callable[[], bool] = never) -> float:
    """Return a bound on the seconds a sample, not below `least`; infinity if memory is too small for any plan."""
    found = refuted(Amounts(units.problem, units.seconds, units.once, units.kept), least, stopped)
    return least if found is None else found.bound


def refuted(amounts: Amounts, least: float, stopped: Callable[[], bool] = never) -> Refuted | None:
    """Return the best bound above `least` and why it holds, `None` if there is none."""
    best = None
    if not np.isfinite(float(amounts.problem.capacity()[0])):
        return None
    for price in _prices(amounts):
        if stopped():
            break
        sequences = _Sequences(amounts, price)
        bound = sequences.bound(least)
        if bound > least:
            best, least = Refuted(bound, price, sequences.weights, sequences.counts), bound
        if bound == np.inf:
            break
    return best


def _prices(amounts: Amounts) -> Iterator[FloatArray]:
    held = (amounts.once + amounts.kept).min(axis=0)
    seconds = amounts.seconds.min(axis=0)
    if not np.isfinite(seconds).all():
        return  # a class that no degree runs
    work, memory = (x / max(float(x.sum()), 1e-300) for x in (seconds, held))
    for much in _MEMORY:
        yield memory if much == np.inf else work + much * memory


class _Sequences:
    """The longest path over devices, at one vector of prices, float64 (G,)."""

    def __init__(self, amounts: Amounts, price: FloatArray) -> None:
        problem = amounts.problem
        self.price = price
        self.degree = problem.options().degree
        self.devices = problem.cluster.n_devices
        self.counts = _counts(self.devices if problem.training else 0)
        room = float(problem.capacity()[0]) * (1 + 1.25 * TOLERANCE)
        self.weights: list[FloatArray] = []
        self.packed: list[FloatArray] = []
        for seconds, once, kept in zip(amounts.seconds, amounts.once, amounts.kept, strict=True):
            able = np.isfinite(seconds)
            rate = price[able & (seconds > 0)] / seconds[able & (seconds > 0)]
            some = np.quantile(rate, _QUANTILES) if len(rate) else np.zeros(0)
            weights = np.unique(np.concatenate([[0.0], some]))
            gains = [price[able] - w * seconds[able] for w in weights]
            sizes = [once[able] + v * kept[able] for v in self.counts]
            self.weights.append(weights)
            self.packed.append(np.array([[_knapsack(size, gain, room) for gain in gains] for size in sizes]))

    def bound(self, least: float) -> float:
        """Return the least T that is not refuted, not below `least`, infinity if all are."""
        if self._allows(least):
            return least
        if not self._allows(np.inf):
            return np.inf
        low, high = least, max(2 * least, 1e-300)
        while not self._allows(high):
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._allows(middle) else (middle, high)
        return low

    def _allows(self, most: float) -> bool:
        """Return whether stages of at most so many seconds a sample could hold what all units cost together."""
        best = np.full(self.devices + 1, -np.inf)
        best[0] = 0.0
        for later in range(self.devices):
            behind = -(-later // int(self.degree.max()))
            for t, weights, packed in zip(self.degree.tolist(), self.weights, self.packed, strict=True):
                replicas = np.arange(1, (self.devices - later) // t + 1)
                if not len(replicas):
                    continue
                row = np.searchsorted(self.counts, -(-behind // replicas), side="right") - 1
                row = np.minimum(row, len(self.counts) - 1)
                seconds = np.multiply(weights, most, where=weights > 0, out=np.zeros(len(weights)))
                gained = best[later] + (replicas[:, None] * seconds + packed[row]).min(axis=1)
                ends = later + t * replicas
                best[ends] = np.maximum(best[ends], gained)
        return float(best.max()) >= float(self.price.sum()) * (1 - _SLACK)


def _counts(most: int) -> Index:
    """Return counts of samples under way up to `most`, from 0: each is near the next lower of these."""
    counts = list(range(min(most, _FINE) + 1))
    while counts[-1] < most:
        counts.append(min(most, counts[-1] + counts[-1] // 10))
    return np.array(counts, dtype=np.int64)


def _knapsack(size: FloatArray, gain: FloatArray, room: float) -> float:
    """Return the most that fits, in parts of things where need be."""
    useful = gain > 0
    size, gain = size[useful], gain[useful]
    with np.errstate(divide="ignore"):
        order = np.argsort(-gain / size, kind="stable")
    size, gain = size[order], gain[order]
    filled = np.cumsum(size)
    whole = int(np.searchsorted(filled, room, side="right"))
    total = float(gain[:whole].sum())
    if whole < len(size):
        total += gain[whole] * (room - (filled[whole - 1] if whole else 0.0)) / size[whole]
    return float(total)
