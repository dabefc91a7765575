"""What the scores start from: the best of some orders and prices of GPU-seconds, each decoded once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.schedule.decode import ORDERS
from gangplan.solvers.schedule.prepare import Ints, Prepared

from .decode import Decoder

PRICES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 512.0)
"""Of a GPU-second, in units of what it would cost if all jobs but one waited for it while it is used."""
_FIRST = (2.0, 64.0)
"""Those at which every order is tried: the longer the queue, the dearer are GPU-seconds."""
_AGAIN = 2


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """A schedule and the list that makes it.

    Attributes:
        cost: the goal; inf if no list fits all jobs that must run.
        order: name of the order.
        price: of a GPU-second, in the units of `PRICES`.
        rank: place of each job in the order of starts, float64 (n,).
        penalty: of each option, float64 (o,).
        out: of leaving out each job, float64 (n,).
        start, option, finish: see `gangplan.learned.schedule.decode.place`.
    """

    cost: float
    order: str
    price: float
    rank: FloatArray
    penalty: FloatArray
    out: FloatArray
    start: FloatArray
    option: Ints
    finish: FloatArray


def base_of(decoder: Decoder, stopped: Callable[[], bool] = lambda: False) -> Base:
    """Return the best of the orders at two prices, then of all prices in that order, settled.

    Once `stopped` says so, no other is tried.
    """
    p = decoder.p
    mean = float(p.slope.mean()) or 1.0 / max(p.cluster.total, 1)
    unit = mean / p.cluster.total * p.gpus * p.seconds
    none, best = np.zeros(p.n), (np.inf, "", _FIRST[0], np.arange(p.n, dtype=float))
    names = [
        n for n in ORDERS if (n != "urgent" or np.isfinite(p.deadline).any()) and (n != "largest" or not p.slope.any())
    ]
    for price in _FIRST:
        for name in names:
            if not stopped():
                best = _try(decoder, name, price, unit, none, best)
    for price in PRICES:
        if price not in _FIRST and not stopped():
            best = _try(decoder, best[1] or "fifo", price, unit, none, best)
    _, name, price, keys = best
    return settled(decoder, keys, price * unit, none, name, price)


def settled(
    decoder: Decoder, keys: FloatArray, penalty: FloatArray, out: FloatArray, name: str = "", price: float = 0.0
) -> Base:
    """Return the schedule of a list, decoded again in the order of its own starts for as long as that helps."""
    cost, rank = decoder.decode(keys, penalty, out), keys
    for _ in range(_AGAIN):
        later = _ranks(np.where(decoder.option < 0, np.inf, decoder.start))
        again = decoder.decode(later, penalty, out)
        if not again <= cost:
            decoder.decode(rank, penalty, out)
            break
        better, cost, rank = again < cost, again, later
        if not better:
            break
    return Base(
        *(cost, name, price, _ranks(rank), penalty, out),
        *(decoder.start.copy(), decoder.option.copy(), decoder.finish.copy()),
    )


def typical(p: Prepared, price: float) -> Ints:
    """Return the option of each job that costs least if it started at once, int64 (n,); 0 where it has none."""
    o = len(p.gpus)
    if not o:
        return np.zeros(p.n, dtype=np.int64)
    # seconds count as they do for a mean job
    value = p.seconds * (1 + price * p.gpus / p.cluster.total)
    order = np.lexsort((np.arange(o), value, p.owner))
    found = np.zeros(p.n, dtype=np.int64)
    some = np.diff(p.first) > 0
    found[some] = order[p.first[:-1][some]]
    return found


def _try(
    decoder: Decoder,
    name: str,
    price: float,
    unit: FloatArray,
    none: FloatArray,
    best: tuple[float, str, float, FloatArray],
) -> tuple[float, str, float, FloatArray]:
    p = decoder.p
    mine = typical(p, price)
    seconds = p.seconds[mine] if len(p.seconds) else none
    work = seconds * p.gpus[mine] if len(p.seconds) else none
    keys = ORDERS[name](p, seconds, work)
    cost = decoder.decode(keys, price * unit, none)
    return (cost, name, price, keys) if cost < best[0] else best


def _ranks(keys: FloatArray) -> FloatArray:
    found = np.empty(len(keys))
    found[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    return found
