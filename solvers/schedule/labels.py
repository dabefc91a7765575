"""Labels of the search over starts, compiled: every job that may start next, after what has started already.

Given prices pi of GPU-seconds (see `prices`), the cost of a schedule is Lagrange's bound, plus for each job what its
run costs more than its cheapest (reduced cost), plus what idle GPU-seconds are worth. All three terms only grow while
jobs are started in the order of their starts: a partial schedule whose sum exceeds that of a known schedule is not
completed.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types

from ..compiled.kernel import Bools, Floats, Floats2, Ints, by_reference, inner, kernel
from ..compiled.routines import argsort
from .prices import Grid, integral, run_cost
from .profile import Data

_CACHE = 64


class Labels(NamedTuple):
    """Beginnings of schedules, l of them.

    Attributes:
        started: a bit set of the jobs, (l, w).
        time, last: when and which the last started, (l,).
        true: the cost of those that run without prices, (l,).
        used, bound: reduced costs and idle GPUs so far, and with the least of what is to come, (l,).
        running, ends, held: how many run, (l,), until when, and on how many GPUs each, by ends, (l, wide).
    """

    started: Annotated[Any, types.Array(types.uint64, 2, "C")]
    time: Floats
    last: Ints
    true: Floats
    used: Floats
    bound: Floats
    running: Ints
    ends: Floats2
    held: Annotated[Any, types.Array(types.int32, 2, "C")]


@kernel
def at_least(
    prices: Grid, problem: Data, least: Floats, leave: Floats, points: Floats, begin: int, end: int, found: Floats2
) -> None:
    """Write the least reduced cost of jobs `begin` to `end` that start at a point or later or are left out."""
    grid, data = by_reference(prices), by_reference(problem)
    zero, step, count_of = grid.zero, grid.step, len(grid.pi)
    first, seconds, release, due = data.first, data.seconds, data.release, data.due
    many = len(points)
    inside = np.empty(2 * count_of + 3)
    for j in range(begin, end):
        for i in range(many):
            found[j, i] = leave[j]
        for o in range(first[j], first[j + 1]):
            p = seconds[o]
            last = due[o] - p
            count = 1
            inside[0] = release[j]
            for k in range(2 * count_of + 2):
                s = zero + k // 2 * step - (p if k % 2 else 0.0)
                if release[j] < s <= last:
                    inside[count] = s
                    count += 1
            if last < np.inf and last > release[j]:
                inside[count] = last
                count += 1
            order = argsort(inside[:count], False)
            low, k = np.inf, count - 1
            for i in range(many - 1, -1, -1):
                while k >= 0 and inside[order[k]] >= points[i]:
                    low = min(low, run_cost(grid, data, j, o, inside[order[k]]))
                    k -= 1
                value = low
                s = max(points[i], release[j])
                if s <= last:
                    value = min(value, run_cost(grid, data, j, o, s))
                found[j, i] = min(found[j, i], value - least[j])
        for i in range(many):
            found[j, i] = max(found[j, i], 0.0)


@kernel
def extend(  # noqa: PLR0912, PLR0915, one loop read from top to bottom
    prices: Grid,
    problem: Data,
    capacity: int,
    least: Floats,
    rest: Floats2,
    fine: float,
    limit: float,
    old: Labels,
    new: Labels,
    parent: Ints,
    chosen: Ints,
    begin: int,
    end: int,
) -> tuple[int, int]:
    """Extend labels from `begin` up to `end` by every job that may start next; return (labels made, labels looked at).

    Stops when the room for new ones may not suffice.

    A job that could be over before another starts goes first, and of jobs that start together the lower index.
    """
    grid, data = by_reference(prices), by_reference(problem)
    zero = grid.zero
    first, gpus, seconds, release, due = data.first, data.gpus, data.seconds, data.release, data.due
    slope, price = data.slope, data.price
    started, time, last, true, used = old.started, old.time, old.last, old.true, old.used
    running, ends, held = old.running, old.ends, old.held
    started_n, time_n, last_n, true_n, used_n, bound_n = new.started, new.time, new.last, new.true, new.used, new.bound
    running_n, ends_n, held_n = new.running, new.ends, new.held
    n, options = len(release), len(gpus)
    at, idle = np.empty(options), np.empty(options)
    tabled, tabled_sum = np.empty(_CACHE, np.int64), np.empty(_CACHE)
    made, i = 0, begin
    while i < end and made + options <= len(time_n):
        now = time[i]
        free = capacity
        for k in range(running[i]):
            free -= held[i, k]
        soonest = np.inf
        for k in range(_CACHE):
            tabled[k] = -1
        for j in range(n):
            if started[i, j // 64] >> np.uint64(j % 64) & np.uint64(1):
                continue
            for o in range(first[j], first[j + 1]):
                s, room, k, value, before = now, free, 0, 0.0, now
                # GPUs become free one job after the other; what is idle until the start is paid for
                need = gpus[o] if seconds[o] > 0 else 0
                while room < need:
                    s = ends[i, k]
                    value += room * (integral(grid, s) - integral(grid, before))
                    room, before = room + held[i, k], s
                    k += 1
                while s < release[j]:
                    s = ends[i, k] if k < running[i] and ends[i, k] < release[j] else release[j]
                    value += room * (integral(grid, s) - integral(grid, before))
                    before = s
                    if k < running[i] and ends[i, k] <= s:
                        room += held[i, k]
                        k += 1
                at[o], idle[o] = s, value
                done = s + seconds[o]
                if done <= due[o] and slope[j] * done <= price[j]:
                    soonest = min(soonest, done)
        for j in range(n):
            if started[i, j // 64] >> np.uint64(j % 64) & np.uint64(1):
                continue
            for o in range(first[j], first[j + 1]):
                s, done = at[o], at[o] + seconds[o]
                if (s >= soonest and seconds[o] > 0) or done > due[o]:
                    continue
                if s == now and j < last[i] and seconds[o] > 0:
                    continue
                spent = used[i] + idle[o] + run_cost(grid, data, j, o, s) - least[j]
                if spent >= limit:
                    continue
                column = min(rest.shape[1] - 1, int((s - zero) / fine))
                # most children start at one of a few times
                place = column % _CACHE
                if tabled[place] != column:
                    tabled[place] = column
                    waiting = 0.0
                    for other in range(n):
                        if not started[i, other // 64] >> np.uint64(other % 64) & np.uint64(1):
                            waiting += rest[other, column]
                    tabled_sum[place] = waiting
                most = spent + tabled_sum[place] - rest[j, column]
                if most >= limit:
                    continue
                parent[made], chosen[made] = i, o
                for k in range(started.shape[1]):
                    started_n[made, k] = started[i, k]
                started_n[made, j // 64] |= np.uint64(1) << np.uint64(j % 64)
                # a job of 0 s goes before all others of its time, whatever its index
                time_n[made], last_n[made] = s, j if seconds[o] > 0 else last[i] if s == now else -1
                true_n[made] = true[i] + slope[j] * done
                used_n[made], bound_n[made] = spent, most
                k, placed = 0, False
                for r in range(running[i]):
                    if ends[i, r] <= s:
                        continue
                    if not placed and ends[i, r] > done:
                        ends_n[made, k], held_n[made, k] = done, gpus[o]
                        placed = True
                        k += 1
                    ends_n[made, k], held_n[made, k] = ends[i, r], held[i, r]
                    k += 1
                if not placed and done > s:
                    ends_n[made, k], held_n[made, k] = done, gpus[o]
                    k += 1
                running_n[made] = k
                made += 1
        i += 1
    return made, i


@kernel
def dominated(order: Ints, labels: Labels, looks: int, begin: int, end: int, group: int, out: Bools) -> int:
    """Write which labels some other with the same jobs makes superfluous, bool; `order` has equal sets together.

    One does if it has cost no more, is not later, and leaves at least as many GPUs free at any time. Each is compared
    with at most so many before it in `order`: from `begin` up to `end`, of which the first set begins at `group`.
    Return where the last one begins.
    """
    known = by_reference(labels)
    started = known.started
    words = started.shape[1]
    for x in range(begin, end):
        b = order[x]
        for w in range(words):
            if started[order[group], w] != started[b, w]:
                group = x
                break
        seen = 0
        for y in range(x - 1, group - 1, -1):
            a = order[y]
            if out[a]:
                continue
            seen += 1
            if seen > looks:
                break
            if _better(known, a, b):
                out[b] = True
                break
            if _better(known, b, a):
                out[a] = True
    return group


@inner
def _better(labels: Labels, one: int, other: int) -> bool:
    time, last, true = labels.time, labels.last, labels.true
    running, ends, held = labels.running, labels.ends, labels.held
    if true[one] > true[other] or time[one] > time[other] or (time[one] == time[other] and last[one] > last[other]):
        return False
    # GPUs that other holds less those that one holds, just after other's last start and each of other's ends
    k, difference = 0, 0
    for i in range(running[other]):
        difference += held[other, i]
    for i in range(running[one]):
        difference -= held[one, i]
    while k < running[one] and ends[one, k] <= time[other]:
        difference += held[one, k]
        k += 1
    if difference < 0:
        return False
    for i in range(running[other]):
        difference -= held[other, i]
        while k < running[one] and ends[one, k] <= ends[other, i]:
            difference += held[one, k]
            k += 1
        if difference < 0:
            return False
    return True
