"""Heuristics that the literature names: priority lists, and dual approximation of the makespan.

Lists are orders of jobs, each at the option that costs least where a GPU-second has a price.

Dual approximation guesses when all jobs end, and lets a list show that they can. By a guess each job has the fewest
GPU-seconds with which it can end in time (Turek, Wolf and Yu 1992, after Hochbaum and Shmoys 1987); the widest are
placed first, of these the longest. Who ends late, or is left out for it, goes before all others in the next list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run, never
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
_FIRST = (2.0, 64.0)
"""Those at which every order is tried: the longer the queue, the more expensive are GPU-seconds."""
_AGAIN = 2
_DEAREST = -4
"""Of long queues only one order and the highest prices are tried, of these so many, from the end."""


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """A schedule and the list that makes it.

    Attributes:
        cost: the goal; inf if no list fits all jobs that must run.
        price: of a GPU-second, in the units of `PRICES`.
        rank: place of each job in the order of starts, float64 (n,).
        penalty: of each option, float64 (o,).
        start, option, finish: see `gangplan.solvers.schedule.kernels.Schedule`.
    """

    cost: float
    order: str
    price: float
    rank: FloatArray
    penalty: FloatArray
    start: FloatArray
    option: Ints
    finish: FloatArray


def base_of(decoder: Decoder, stopped: Callable[[], bool] = never) -> Base:
    """Return the best of the orders at two prices, then of all prices in that order; no other once `stopped` says so.

    It is decoded again in the order of its own starts for as long as that helps.
    """
    p = decoder.p
    costs = unit(p)
    best = np.inf, "", _FIRST[0], np.arange(p.n, dtype=float)
    names = [
        n for n in ORDERS if (n != "urgent" or np.isfinite(p.deadline).any()) and (n != "largest" or not p.slope.any())
    ]

    def attempt(name: str, price: float) -> None:
        nonlocal best
        if not stopped():
            # seconds count as they do for a mean job
            keys = keys_of(p, name, p.seconds * (1 + price * p.gpus / p.total))
            cost = decoder.decode(np.argsort(keys, kind="stable"), penalty=price * costs, stopped=stopped)
            if cost < best[0]:
                best = cost, name, price, keys

    for price in _FIRST:
        for name in names:
            attempt(name, price)
    for price in PRICES:
        if price not in _FIRST:
            attempt(best[1] or "fifo", price)
    _, name, price, rank = best
    penalty, made = price * costs, decoder.made
    cost = decoder.decode(np.argsort(rank, kind="stable"), penalty=penalty)
    for _ in range(_AGAIN):
        later = _ranks(np.where(made.option < 0, np.inf, made.start))
        again = decoder.decode(np.argsort(later), penalty=penalty, stopped=stopped)
        if not again <= cost:
            decoder.decode(np.argsort(rank, kind="stable"), penalty=penalty)
            break
        better, cost, rank = again < cost, again, later
        if not better:
            break
    return Base(cost, name, price, _ranks(rank), penalty, made.start.copy(), made.option.copy(), made.finish.copy())


def keys_of(p: PreparedJobs, order: str, value: FloatArray) -> FloatArray:
    """Return the keys of an order, each job at the option of least `value`, float64 (n,)."""
    mine = p.first_least(value, 0)
    seconds, gpus = (x[mine] if len(x) else np.zeros(p.n) for x in (p.seconds, p.gpus))
    return ORDERS[order](p, seconds, seconds * gpus)


def _ranks(keys: FloatArray | Ints) -> FloatArray:
    found = np.empty(len(keys))
    found[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    return found


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


@lru_cache(maxsize=1)
def _known(p: PreparedJobs) -> list[Base]:
    return []


def base(p: PreparedJobs, stopped: Callable[[], bool] = never) -> Base:
    """Return `base_of` the problem, which several methods of a solve ask for: it is found once."""
    known = _known(p)
    if known:
        return known[0]
    found = base_of(Decoder(p), stopped)
    if not stopped():
        known.append(found)
    return found


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
    found = base(p, lambda: run.stopped)
    best = found.cost, f"{found.order}, price {found.price:g}", found.rank, np.full(p.n, CHEAPEST), found.penalty
    for name, keys, wish, penalty in () if p.slope.any() else _counting(p):
        goal = decoder.decode(np.argsort(keys, kind="stable"), wish, penalty, lambda: run.stopped)
        best = min(best, (goal, name, keys, wish, penalty), key=lambda found: found[0])
    if np.isfinite(best[0]):
        decoder.offer(run, f"list: {best[1]}", np.argsort(best[2], kind="stable"), *best[3:])


def _waiting(p: PreparedJobs) -> Iterator[Listed]:
    work = p.gpus * p.seconds
    keys, cheapest = keys_of(p, "smith_now", work), np.full(p.n, CHEAPEST)
    yield "smith_now, least work", keys, p.first_least(work, LEFT_OUT), work
    for price in PRICES[:_DEAREST:-1]:
        yield f"smith_now, price {price:g}", keys, cheapest, price * unit(p)


def unit(p: PreparedJobs) -> FloatArray:
    """Return what the GPU-seconds of each option cost at the price 1, (o,)."""
    return np.asarray((float(p.slope.mean()) or 1.0 / max(p.total, 1)) / p.total * p.gpus * p.seconds)
