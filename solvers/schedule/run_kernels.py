"""Compiled: the cheapest runs by prices, and one machine as fast as all GPUs."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cfunc, declare, nogil, void

from ..native import Heap
from .kernels import Data
from .price_kernels import Grid

if not cython.compiled:
    from ..native import Float, Floats, Floats2, Int, Ints, within
    from .price_kernels import run_cost

NEVER = declare(Float, float("inf"))


def cheapest(g: Grid, d: Data, total_gpus: Int, cost: Floats, start: Floats) -> float:
    """Write the least cost of each option, inf if it cannot run, and its start; return the bound, less the constant."""
    if len(cost) != d.options or len(start) != d.options:
        raise ValueError(f"{len(cost)} costs and {len(start)} starts are not those of {d.options} options")
    with nogil:
        bound = _cheapest(g, d, total_gpus, cost, start)
    return bound


@cfunc
@nogil
def _cheapest(  # noqa: PLR0912, PLR0915, of each option in turn what starts, then what ends on the grid
    g: Grid, d: Data, total_gpus: Int, cost: Floats, start: Floats
) -> Float:
    bound: Float = 0.0
    for j in range(d.n):
        release, slope = d.release[j], d.slope[j]
        begin: Int = int((release - g.zero) / g.step)
        begin = max(0, begin)
        least_of_all = d.price[j]
        for o in range(d.first[j], d.first[j + 1]):
            p, gpus = d.seconds[o], d.gpus[o]
            last = d.due[o] - p
            least: Float = NEVER
            when: Float = release
            for which in range(2):
                s: Float = last if which else release
                if s < NEVER and s >= release:
                    value = run_cost(g, d, j, o, s)
                    if value < least:
                        least, when = value, s
            # of each run whose start, then end, is on the grid the other is as far between two points
            whole: Int = int(p / g.step)
            part = p / g.step - whole
            k: Int = begin
            while k <= g.count:
                s = g.zero + k * g.step
                at: Int = k + whole
                k += 1
                if s < release:
                    continue
                if s > last or slope * (s + p) >= least:
                    break
                paid: Float = g.total[min(at, g.count)] - g.total[k - 1]
                if at < g.count:
                    paid += part * g.step * g.cost[at]
                value = slope * (s + p) + gpus * paid
                if value < least:
                    least, when = value, s
            k = int((release + p - g.zero) / g.step)
            k = max(0, k)
            while k <= g.count:
                s = g.zero + k * g.step - p
                at = k - whole - 1
                k += 1
                if s < release:
                    continue
                if s > last or slope * (s + p) >= least:
                    break
                paid = g.total[k - 1]
                if at >= 0:
                    paid -= g.total[at] + (1.0 - part) * g.step * g.cost[at]
                value = slope * (s + p) + gpus * paid
                if value < least:
                    least, when = value, s
            cost[o], start[o] = least, when
            least_of_all = min(least_of_all, least)
        bound += least_of_all
    prices: Float = 0.0
    for k in range(g.count):
        prices += g.cost[k]
    return bound - total_gpus * g.step * prices


def answer(
    g: Grid, d: Data, cost: Floats, start: Floats, weight: Float, used: Floats, share: Floats, mean: Floats
) -> None:
    """Write the GPU-seconds that the cheapest runs use in each interval, and take these runs into the means.

    Args:
        g: prices.
        d: the problem.
        cost, start: of each option, as `cheapest` writes them.
        weight: of these runs in the means.
        used: written, (k,).
        share: of each option, how much of it runs, (o,).
        mean: start of each job, (n,).
    """
    if not len(cost) == len(start) == len(share) == d.options or len(used) != g.count or len(mean) != d.n:
        raise ValueError(f"{len(cost)} costs and {len(mean)} jobs are not those of {d.options} options and {d.n} jobs")
    with nogil:
        for k in range(g.count):
            used[k] = 0.0
        for j in range(d.n):
            _take(g, d, j, cost, start, weight, used, share, mean)


@cfunc
@nogil
def _take(
    g: Grid, d: Data, j: Int, cost: Floats, start: Floats, weight: Float, used: Floats, share: Floats, mean: Floats
) -> void:
    best: Int = -1
    least = d.price[j]
    for o in range(d.first[j], d.first[j + 1]):
        share[o] *= 1 - weight
        if cost[o] < least:
            best = o
            least = cost[o]
    if best < 0:
        return
    share[best] += weight
    begin = start[best]
    end = begin + d.seconds[best]
    mean[j] += weight * (begin - mean[j])
    k: Int = int((begin - g.zero) / g.step)
    k = max(0, k)
    while k < g.count and g.zero + k * g.step < end:
        low = g.zero + k * g.step
        used[k] += d.gpus[best] * max(0.0, min(end, low + g.step) - max(begin, low))
        k += 1


def flows(release: Any, work: Any, gain: Any, order: Any, shrinks: bint) -> tuple[float, float]:
    """Return, in sums of `gain` times seconds after release: (completions, mean times at which work is done).

    Who waits with the least left, or with the most gain a work, goes first, and gives way to who comes with less. Each
    turn of the loop ends a job or begins one, so rounding cannot hold it up; and the seconds are counted from when the
    machine was last idle, so that late times cost no digits. A job without work is done when it is released.

    Args:
        release, work, gain: of each job, seconds, (n,); no gain is negative.
        order: the jobs by their releases.
        shrinks: whether the key is what is left of the work (shortest remaining time), else it is work over gain.
    """
    columns: Floats2 = np.array([release, work, gain, work], dtype=np.float64)
    jobs: Ints = np.array(order, dtype=np.int64)
    if not within(jobs, columns.shape[1], False):
        raise ValueError(f"an order of other jobs than {columns.shape[1]}")
    key: Floats = np.empty(columns.shape[1])
    waiting = Heap(key)
    with nogil:
        ended, busy = _flows(columns[0], columns[1], columns[2], columns[3], jobs, key, waiting, shrinks)
    return ended, busy


@cfunc
@nogil
def _flows(
    release: Floats, work: Floats, gain: Floats, left: Floats, order: Ints, key: Floats, waiting: Heap, shrinks: bint
) -> tuple[Float, Float]:
    since: Float = 0.0
    spent: Float = 0.0
    ended: Float = 0.0
    busy: Float = 0.0
    i: Int = 0
    n: Int = len(order)
    while i < n or waiting.size:
        if not waiting.size:
            since, spent = release[order[i]], 0.0
        while i < n and release[order[i]] - since <= spent:
            j = order[i]
            i += 1
            if work[j] > 0:
                # the highest goes first
                key[j] = -work[j] if shrinks else -work[j] / gain[j] if gain[j] > 0 else -1e308
                waiting.push(j)
        if not waiting.size:
            continue
        j = waiting.pop()
        over: bint = i == n or spent + left[j] <= release[order[i]] - since
        done: Float = left[j] if over else release[order[i]] - since - spent
        begun = since - release[j] + spent
        busy += gain[j] * (done / work[j]) * (begun + done / 2)
        if over:
            spent += done
            ended += gain[j] * (begun + done)
        else:
            spent = release[order[i]] - since
            left[j] = max(left[j] - done, 0.0)
            if shrinks:
                key[j] = -left[j]
            waiting.push(j)
    return ended, busy
