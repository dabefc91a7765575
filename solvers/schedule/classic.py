"""Heuristics that the literature names: priority lists, and dual approximation of the makespan.

Lists are orders of jobs, each at the option that costs least where a GPU-second has a price.

Dual approximation guesses when all jobs end, and lets a list show that they can. By a guess each job has the fewest
GPU-seconds with which it can end in time (Turek, Wolf and Yu 1992, after Hochbaum and Shmoys 1987); the widest are
placed first, of these the longest. Who ends late, or is left out for it, goes before all others in the next list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain, islice, product

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run
from .bounds import area, best_end
from .decode import Decoder
from .grain import LONG, ROOM
from .prepare import CHEAPEST, EARLIEST, LEFT_OUT, Ints, PreparedJobs

BY = "dual"
_GUESSES = 1.0, 1.003, 1.01, 1.02, 1.03, 1.06, 1.1
"""Of the least end that bounds allow."""
_ROUNDS = 4
"""Lists for a guess."""


def dual(run: Run, p: PreparedJobs) -> None:
    """Offer lists for guesses of the makespan from its bound on, as far as they are below the best list."""
    decoder, best, least = Decoder(p), np.inf, area(p)
    end, goal = best_end(p, least)
    # with jobs left out that end late by themselves, and with none of them
    ends = dict.fromkeys(guess * x for guess in _GUESSES for x in (end, max(goal, least)))
    for end in ends:
        if end >= best:
            continue
        wish, late = allotment(p, end), np.zeros(p.n)
        for turn in range(_ROUNDS):
            order = np.lexsort((-p.seconds[wish], -p.gpus[wish], -late))
            goal = decoder.decode(order, wish, stopped=lambda: run.stopped)
            if run.stopped:
                return
            if goal < best:
                best = goal
                run.offer(decoder.plan(), BY)
            made = decoder.made
            finish = np.where(made.option < 0, 0.0, made.start + p.seconds[made.option])
            over = np.where(made.option < 0, wish >= 0, finish > end * (1 + 1e-9))
            if not over.any():
                break
            # once the last one has its place, to run the others costs nothing
            late[over], late[finish.argmax()] = turn + 1, turn + 1.5


def allotment(p: PreparedJobs, end: float) -> Ints:
    """Return the option of fewest GPU-seconds with which each job can end by `end`, int64 (n,).

    One that cannot is left out, or if it must run takes what costs least.
    """
    fits = p.release[p.owner] + p.seconds <= end * (1 + 1e-12)
    option = p.first_least(np.where(fits, p.gpus * p.seconds, np.inf), LEFT_OUT)
    return np.where((option >= 0) & fits[option], option, np.where(np.isfinite(p.price), LEFT_OUT, CHEAPEST))


BY_PRICES = "rounded LP"
"""Who finds schedules of prices."""
BETTER = BY_PRICES, "dual"
"""Who finds schedules that are better than lists of a long queue."""
Listed = tuple[str, FloatArray, Ints, FloatArray]
"""Name, keys, wishes and penalties."""
Found = tuple[str, Ints, Ints, FloatArray]
"""Name, order, wishes and penalties."""
Order = Callable[[PreparedJobs, FloatArray, FloatArray], FloatArray]
"""Makes keys (ascending is first) of (prepared, seconds and GPU-seconds of each job's option), all float64 (n,)."""


def _urgent(p: PreparedJobs, seconds: FloatArray, work: FloatArray) -> FloatArray:
    # with equal deadlines, or none, the shorter first
    return np.asarray(np.where(np.isfinite(p.deadline), p.deadline, p.release + p.seconds.sum() + seconds))


def _smith(p: PreparedJobs, seconds: FloatArray, work: FloatArray) -> FloatArray:
    gain = np.where(np.isfinite(p.price) & (p.slope == 0), p.price, p.slope)
    return np.asarray(p.release + work / np.maximum(gain, 1e-12 * gain.max() or 1.0) * gain.mean() / p.total)


ORDERS: dict[str, Order] = {
    "fifo": lambda p, seconds, work: p.release,
    "shortest": lambda p, seconds, work: p.release + seconds,
    "smith": _smith,
    "smith_now": lambda p, seconds, work: work / np.maximum(p.slope, 1e-12 * p.slope.max() or 1.0),
    "urgent": _urgent,
    "largest": lambda p, seconds, work: -work,
}
"""First come first served, shortest, least work a weight (Smith 1956) with and without regard to releases, earliest
deadline, most work."""
PRICES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 512.0)
"""Of a GPU-second, in units of what it would cost if all jobs but one waited for it while it is used."""
_DEAREST = -4
"""Of long queues only one order and the highest prices are tried, of these so many, from the end."""


def keys_of(p: PreparedJobs, order: str, value: FloatArray) -> FloatArray:
    """Return the keys of an order, each job at the option of least `value`, float64 (n,)."""
    mine = p.first_least(value, 0)
    seconds, gpus = (x[mine] if len(x) else np.zeros(p.n) for x in (p.seconds, p.gpus))
    return ORDERS[order](p, seconds, seconds * gpus)


def _counting(p: PreparedJobs) -> Iterator[Listed]:
    """Yield (name, keys, wish, penalty) where no completion costs anything: degrees by the end, the work, or both."""
    work = p.gpus * p.seconds
    # a tie-break: no penalty is worth a job
    tiny = 0.5 * min(p.price[np.isfinite(p.price) & (p.price > 0)], default=1.0)
    for how, value in (("both", work + p.total / 8 * p.seconds), ("work", work), ("earliest", p.seconds)):
        wish = np.full(p.n, EARLIEST if how == "earliest" else CHEAPEST)
        if p.makespan and how != "earliest":  # whoever adds least to it now takes too many GPUs
            wish = p.first_least(value, EARLIEST)
        for name in reversed(ORDERS):
            yield f"{name}, {how}", keys_of(p, name, value), wish, tiny / max(value.max(initial=0.0), 1e-12) * value


def lists(run: Run, p: PreparedJobs, most: int | None = None) -> None:
    """Offer the best of all priority lists; of a long problem of `most`, those that are good where queues are long."""
    if run.stopped or p.n * p.nodes > ROOM or (p.n > LONG and run.trace and run.trace[-1].by in BETTER):
        return
    decoder = Decoder(p)
    if p.n > LONG:
        # as they come: there may be no time for all of them
        for name, keys, wish, penalty in islice(_waiting(p) if p.slope.any() else _counting(p), most):
            decoder.offer(run, f"list: {name}", np.argsort(keys, kind="stable"), wish, penalty)
            if run.stopped:
                break
        return
    name, order, wish, penalty = best_list(p, lambda: run.stopped)
    decoder.offer(run, f"list: {name}", order, wish, penalty)


def best_list(p: PreparedJobs, stopped: Callable[[], bool]) -> Found:
    """Return (name, order, wish, penalty) of the best list, or of those until `stopped`; it is found once a solve."""
    if not (known := _known(p)):
        decoder, least = Decoder(p), np.inf
        for name, keys, wish, penalty in chain(_priced(p), () if p.slope.any() else _counting(p)):
            order = np.argsort(keys, kind="stable")
            goal = decoder.decode(order, wish, penalty, stopped)
            if goal < least or not known:
                known[:], least = [(name, order, wish, penalty)], goal
        if stopped():
            return known.pop()
    return known[0]


@lru_cache(maxsize=1)
def _known(p: PreparedJobs) -> list[Found]:
    return []


def _priced(p: PreparedJobs) -> Iterator[Listed]:
    """Yield all orders, seconds as they count for a mean job, at all prices."""
    names = [
        n for n in ORDERS if (n != "urgent" or np.isfinite(p.deadline).any()) and (n != "largest" or not p.slope.any())
    ]
    for price, name in product(PRICES, names):
        keys = keys_of(p, name, p.seconds * (1 + price * p.gpus / p.total))
        yield f"{name}, price {price:g}", keys, np.full(p.n, CHEAPEST), price * unit(p)


def _waiting(p: PreparedJobs) -> Iterator[Listed]:
    work = p.gpus * p.seconds
    keys, cheapest = keys_of(p, "smith_now", work), np.full(p.n, CHEAPEST)
    yield "smith_now, least work", keys, p.first_least(work, LEFT_OUT), work
    for price in PRICES[:_DEAREST:-1]:
        yield f"smith_now, price {price:g}", keys, cheapest, price * unit(p)


def unit(p: PreparedJobs) -> FloatArray:
    """Return what the GPU-seconds of each option cost at the price 1, (o,)."""
    return np.asarray((float(p.slope.mean()) or 1.0 / max(p.total, 1)) / p.total * p.gpus * p.seconds)
