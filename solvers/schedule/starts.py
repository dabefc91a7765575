"""One step of the search over starts, compiled: every job that may start next, after what has started already.

Given prices pi of GPU-seconds (see `prices`), the cost of a schedule is Lagrange's bound, plus for each job what its
run costs more than its cheapest (reduced cost), plus what idle GPU-seconds are worth. All three terms only grow while
jobs are started in the order of their starts: a partial schedule whose sum exceeds that of a known schedule is not
completed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .prices import integral

_CACHE = 64


@njit(cache=True)
def at_least(
    pi: Any, zero: float, step: float, data: Any, least: Any, leave: Any, points: Any, begin: int, end: int, found: Any
) -> None:
    """Write the least reduced cost of each job that starts at a point or later or is left out, (n, points).

    Only those of jobs from `begin` up to `end`.
    """
    first, gpus, seconds, release, deadline, slope = data[:6]
    total = np.zeros(len(pi) + 1)
    total[1:] = np.cumsum(pi) * step
    many = len(points)
    inside = np.empty(2 * len(pi) + 3)
    for j in range(begin, end):
        found[j] = leave[j]
        for o in range(first[j], first[j + 1]):
            p = seconds[o]
            last = deadline[j] - p
            count = 1
            inside[0] = release[j]
            for k in range(len(pi) + 1):
                for s in (zero + k * step, zero + k * step - p):
                    if release[j] < s <= last:
                        inside[count] = s
                        count += 1
            if last < np.inf and last > release[j]:
                inside[count] = last
                count += 1
            breaks = np.sort(inside[:count])
            low, k = np.inf, count - 1
            for i in range(many - 1, -1, -1):
                while k >= 0 and breaks[k] >= points[i]:
                    low = min(low, _cost(total, pi, zero, step, slope[j], gpus[o], breaks[k], p))
                    k -= 1
                value = low
                s = max(points[i], release[j])
                if s <= last:
                    value = min(value, _cost(total, pi, zero, step, slope[j], gpus[o], s, p))
                found[j, i] = min(found[j, i], value - least[j])
        found[j] = np.maximum(found[j], 0.0)


@njit(cache=True)
def _cost(total: Any, pi: Any, zero: float, step: float, slope: float, gpus: int, s: float, p: float) -> float:
    return slope * (s + p) + gpus * (integral(total, pi, zero, step, s + p) - integral(total, pi, zero, step, s))


@njit(cache=True)
def extend(  # noqa: PLR0912, PLR0915, one loop read from top to bottom
    pi: Any,
    zero: float,
    step: float,
    data: Any,
    capacity: int,
    least: Any,
    rest: Any,
    fine: float,
    limit: float,
    old: Any,
    new: Any,
    parent: Any,
    chosen: Any,
    begin: int,
    end: int,
) -> Any:
    """Extend labels from `begin` up to `end` by every job that may start next; return (labels made, labels looked at).

    Stops when the room for new ones may not suffice. A label is (started, time, last, true, used, bound, running, ends,
    held): a bit set of the jobs, when and which the last started, the cost of those that run without prices, reduced
    costs and idle GPUs so far, that and the least of what is to come, how many run, until when, on how many GPUs each;
    by ends.

    A job that could be over before another starts goes first, and of jobs that start together the lower index.
    """
    first, gpus, seconds, release, deadline, slope, price = data[:7]
    total = np.zeros(len(pi) + 1)
    total[1:] = np.cumsum(pi) * step
    started, time, last, true, used, _, running, ends, held = old
    started_n, time_n, last_n, true_n, used_n, bound_n, running_n, ends_n, held_n = new
    n, options = len(release), len(gpus)
    at, idle = np.empty(options), np.empty(options)
    tabled, tabled_sum = np.full(_CACHE, -1, dtype=np.int64), np.empty(_CACHE)
    made, i = 0, begin
    while i < end and made + options <= len(time_n):
        now = time[i]
        free = capacity
        for k in range(running[i]):
            free -= held[i, k]
        soonest = np.inf
        tabled[:] = -1
        for j in range(n):
            if started[i, j // 64] >> np.uint64(j % 64) & np.uint64(1):
                continue
            for o in range(first[j], first[j + 1]):
                s, room, k, value, before = now, free, 0, 0.0, now
                # GPUs become free one job after the other; what is idle until the start is paid for
                need = gpus[o] if seconds[o] > 0 else 0
                while room < need:
                    s = ends[i, k]
                    value += room * (integral(total, pi, zero, step, s) - integral(total, pi, zero, step, before))
                    room, before = room + held[i, k], s
                    k += 1
                while s < release[j]:
                    s = ends[i, k] if k < running[i] and ends[i, k] < release[j] else release[j]
                    value += room * (integral(total, pi, zero, step, s) - integral(total, pi, zero, step, before))
                    before = s
                    if k < running[i] and ends[i, k] <= s:
                        room += held[i, k]
                        k += 1
                at[o], idle[o] = s, value
                done = s + seconds[o]
                if done <= deadline[j] and slope[j] * done <= price[j]:
                    soonest = min(soonest, done)
        for j in range(n):
            if started[i, j // 64] >> np.uint64(j % 64) & np.uint64(1):
                continue
            for o in range(first[j], first[j + 1]):
                s, done = at[o], at[o] + seconds[o]
                if (s >= soonest and seconds[o] > 0) or done > deadline[j]:
                    continue
                if s == now and j < last[i] and seconds[o] > 0:
                    continue
                spent = used[i] + idle[o] + _cost(total, pi, zero, step, slope[j], gpus[o], s, seconds[o]) - least[j]
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
                started_n[made] = started[i]
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


@njit(cache=True)
def dominated(order: Any, labels: Any, looks: int, begin: int, end: int, group: int, out: Any) -> int:
    """Write which labels some other with the same jobs makes superfluous, bool; `order` has equal sets together.

    One does if it has cost no more, is not later, and leaves at least as many GPUs free at any time. Each is compared
    with at most so many before it in `order`: from `begin` up to `end`, of which the first set begins at `group`.
    Return where the last one begins.
    """
    started, time, last, true, _, _, running, ends, held = labels
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
            if _better(a, b, time, last, true, running, ends, held):
                out[b] = True
                break
            if _better(b, a, time, last, true, running, ends, held):
                out[a] = True
    return group


@njit(cache=True)
def _better(a: int, b: int, time: Any, last: Any, true: Any, running: Any, ends: Any, held: Any) -> bool:
    if true[a] > true[b] or time[a] > time[b] or (time[a] == time[b] and last[a] > last[b]):
        return False
    # GPUs that b holds less those that a holds, just after b's last start and each of b's ends
    k, difference = 0, 0
    for i in range(running[b]):
        difference += held[b, i]
    for i in range(running[a]):
        difference -= held[a, i]
    while k < running[a] and ends[a, k] <= time[b]:
        difference += held[a, k]
        k += 1
    if difference < 0:
        return False
    for i in range(running[b]):
        difference -= held[b, i]
        while k < running[a] and ends[a, k] <= ends[b, i]:
            difference += held[a, k]
            k += 1
        if difference < 0:
            return False
    return True
