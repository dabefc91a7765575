"""Compiled: prices of GPU-seconds, and the search over starts by them: labels, and which are dominated."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, cfunc, declare, final, nogil, void

from gangplan.instances.arrays import FloatArray

from .kernels import Data

if not cython.compiled:
    from ..native import Flags, Float, Floats, Floats2, Int, Ints, Word, within

NEVER = declare(Float, float("inf"))
SAME = declare(Int, 64)
"""Times of which the sum of what is to come is kept."""


@final
@cclass
class Grid:
    """Prices of a GPU-second, constant within k intervals.

    Attributes:
        pi: of each interval, (k,).
        total: of a GPU from the beginning of the grid to that of each interval, and to the end, (k + 1,).
        zero, step: the beginning, and the seconds of an interval.
    """

    def __init__(self, pi: FloatArray, zero: Float, step: Float) -> None:
        self.pi, self.cost, self.count, self.zero, self.step = pi, pi, len(pi), zero, step
        self.total = np.concatenate([[0.0], np.cumsum(pi) * step])


@cfunc
@nogil
def integral(g: Grid, at: Float) -> Float:
    """Return the price of a GPU from the beginning of the grid to `at`; beyond its end GPUs cost nothing."""
    x = (at - g.zero) / g.step
    if x <= 0:
        return 0.0
    if x >= g.count:
        return g.total[g.count]
    k: Int = int(x)
    return g.total[k] + (x - k) * g.step * g.cost[k]


@cfunc
@nogil
def run_cost(g: Grid, d: Data, job: Int, option: Int, start: Float) -> Float:
    """Return what a run costs, prices included."""
    end = start + d.seconds[option]
    return d.slope[job] * end + d.gpus[option] * (integral(g, end) - integral(g, start))


def at_least(
    g: Grid, d: Data, least: Floats, leave: Floats, points: Floats, fine: Float, begin: Int, end: Int, found: Floats2
) -> None:
    """Write the least reduced cost of jobs `begin` to `end` that start at a point or later or are left out.

    Args:
        g: prices.
        d: the problem.
        least, leave: what each job costs at least, and what more to leave it out, (n,).
        points: times, so many seconds apart, `fine`, (t,).
        fine: seconds.
        begin, end: jobs.
        found: written, (n, t).
    """
    many = len(points)
    if not len(least) == len(leave) == found.shape[0] == d.n or found.shape[1] != many or begin < 0 or end > d.n:
        raise ValueError(f"{found.shape[0]} jobs at {found.shape[1]} times are not {d.n} at {many}")
    low: Floats = np.empty(many)
    with nogil:
        for j in range(begin, end):
            _at_least(g, d, least[j], leave[j], points, fine, j, low, found)


@cfunc
@nogil
def _at_least(
    g: Grid, d: Data, least: Float, leave: Float, points: Floats, fine: Float, j: Int, low: Floats, found: Floats2
) -> void:
    many, release = len(points), d.release[j]
    for i in range(many):
        found[j, i] = leave
    for o in range(d.first[j], d.first[j + 1]):
        p = d.seconds[o]
        last = d.due[o] - p
        for i in range(many):
            low[i] = NEVER
        _enter(g, d, j, o, release, points, fine, low)
        for k in range(2 * g.count + 2):
            s: Float = g.zero + k // 2 * g.step - (p if k % 2 else 0.0)
            if release < s <= last:
                _enter(g, d, j, o, s, points, fine, low)
        if last < NEVER and last > release:
            _enter(g, d, j, o, last, points, fine, low)
        best: Float = NEVER
        for back in range(many):
            i = many - 1 - back
            best = min(best, low[i])
            value: Float = best
            s = max(points[i], release)
            if s <= last:
                value = min(value, run_cost(g, d, j, o, s))
            found[j, i] = min(found[j, i], value - least)
    for i in range(many):
        found[j, i] = max(found[j, i], 0.0)


@cfunc
@nogil
def _enter(g: Grid, d: Data, j: Int, o: Int, s: Float, points: Floats, fine: Float, low: Floats) -> void:
    """Enter what a run that starts at s costs at the last point that is not after s, if there is one."""
    x, last = (s - points[0]) / fine, len(points) - 1
    i: Int = last
    if x < last:
        i = int(x)
    while i < last and points[i + 1] <= s:
        i += 1
    while i >= 0 and points[i] > s:
        i -= 1
    if i >= 0:
        low[i] = min(low[i], run_cost(g, d, j, o, s))


@final
@cclass
class LabelArrays:
    """The columns of `gangplan.solvers.schedule.starts.Labels`, l of them; they are the caller's.

    Attributes:
        many, words, wide: l, w and how many may run.
    """

    def __init__(self, labels: Any) -> None:
        if {len(column) for column in labels} != {len(labels.time)} or labels.ends.shape != labels.held.shape:
            raise ValueError("columns of labels differ in length")
        self.many, self.words, self.wide = len(labels.time), labels.started.shape[1], labels.ends.shape[1]
        self.started, self.time, self.last, self.true = labels.started, labels.time, labels.last, labels.true
        self.used, self.bound, self.running = labels.used, labels.bound, labels.running
        self.ends, self.held = labels.ends, labels.held


@final
@cclass
class Extension:
    """What labels are extended by, and room for one at a time.

    Attributes:
        capacity: GPUs; fine: seconds between two times of `rest`; limit: reduced costs from which no label is kept.
        least, rest: cost of each job at least, (n,), and its least reduced cost from some times on, (n, t).
        at, idle: when each option could start, and what is idle until then, (o,).
        column, waiting: times of `rest`, and what all that has not started costs more from these on, (`SAME`,).
        parent, chosen: written: which label each new one extends, by which option, (l,).
    """

    def __init__(
        self, d: Data, capacity: Int, least: Floats, rest: Floats2, fine: Float, most: Float, parent: Ints, chosen: Ints
    ) -> None:
        if len(least) != d.n or rest.shape[0] != d.n or not rest.shape[1]:
            raise ValueError(f"{rest.shape[0]} jobs are not {d.n}")
        self.capacity, self.fine, self.limit, self.least, self.rest = capacity, fine, most, least, rest
        self.at, self.idle = np.empty((2, d.options))
        self.column, self.waiting = np.empty(SAME, np.int64), np.empty(SAME)
        self.parent, self.chosen = parent, chosen


def extend(
    g: Grid, d: Data, capacity: Int, least: Floats, rest: Floats2, fine: Float, limit: Float, labels: Any, new: Any,
    parent: Ints, chosen: Ints, begin: Int, end: Int,
) -> tuple[int, int]:  # fmt: skip
    """Extend labels from `begin` up to `end` by every job that may start next; return (labels made, labels looked at).

    Stops when the room for new ones may not suffice. A job that could be over before another starts goes first, and of
    jobs that start together the lower index.

    Args:
        g: prices.
        d: the problem.
        labels, new: what is extended, and what is written.
        begin, end: labels.
        capacity, least, rest, fine, limit, parent, chosen: see `Extension`.
    """
    x = Extension(d, capacity, least, rest, fine, limit, parent, chosen)
    old, made_of = LabelArrays(labels), LabelArrays(new)
    words, wide = (d.n + 63) // 64, min(d.n, capacity)
    if old.words != words or made_of.words != words or min(old.wide, made_of.wide) < wide:
        raise ValueError(f"labels of {made_of.words} words and {made_of.wide} runs are too narrow for {d.n} jobs")
    if not 0 <= begin <= end <= old.many or not len(parent) == len(chosen) == made_of.many:
        raise ValueError(f"{len(parent)} parents of {made_of.many} labels, {end} of {old.many}")
    made: Int = 0
    i: Int = begin
    with nogil:
        while i < end and made + d.options <= made_of.many:
            made = _extend(g, d, x, old, made_of, i, made)
            i += 1
    return made, i


@cfunc
@nogil
def _started(labels: LabelArrays, i: Int, j: Int) -> bint:
    return (labels.started[i, j // 64] >> (j % 64)) & 1


@cfunc
@nogil
def _extend(g: Grid, d: Data, x: Extension, old: LabelArrays, new: LabelArrays, i: Int, made: Int) -> Int:
    """Extend label i; return how many have been made then."""
    now: Float = old.time[i]
    soonest = _ready(g, d, x, old, i)
    for k in range(SAME):
        x.column[k] = -1
    for j in range(d.n):
        if _started(old, i, j):
            continue
        for o in range(d.first[j], d.first[j + 1]):
            s: Float = x.at[o]
            lasts: Float = d.seconds[o]
            if (s >= soonest and lasts > 0) or s + lasts > d.due[o]:
                continue
            if s == now and j < old.last[i] and lasts > 0:
                continue
            spent = old.used[i] + x.idle[o] + run_cost(g, d, j, o, s) - x.least[j]
            if spent >= x.limit:
                continue
            column: Int = int((s - g.zero) / x.fine)
            column = min(x.rest.shape[1] - 1, column)
            # most children start at one of a few times
            place = column % SAME
            if x.column[place] != column:
                x.column[place] = column
                x.waiting[place] = _waiting(d, x, old, i, column)
            bound = spent + x.waiting[place] - x.rest[j, column]
            if bound >= x.limit:
                continue
            x.parent[made], x.chosen[made] = i, o
            new.used[made], new.bound[made] = spent, bound
            _start(d, old, new, i, made, j, o, s)
            made += 1
    return made


@cfunc
@nogil
def _ready(g: Grid, d: Data, x: Extension, old: LabelArrays, i: Int) -> Float:
    """Write when every option could start after label i, and what is idle until then; return when one could be over."""
    now: Float = old.time[i]
    soonest: Float = NEVER
    free: Int = x.capacity
    for k in range(old.running[i]):
        free -= old.held[i, k]
    for j in range(d.n):
        if _started(old, i, j):
            continue
        for o in range(d.first[j], d.first[j + 1]):
            s: Float = now
            before: Float = now
            value: Float = 0.0
            room: Int = free
            at: Int = 0
            # GPUs become free one job after the other; what is idle until the start is paid for
            need: Int = d.gpus[o] if d.seconds[o] > 0 else 0
            while room < need:
                s = old.ends[i, at]
                value += room * (integral(g, s) - integral(g, before))
                room += old.held[i, at]
                before = s
                at += 1
            while s < d.release[j]:
                s = d.release[j]
                if at < old.running[i] and old.ends[i, at] < s:
                    s = old.ends[i, at]
                value += room * (integral(g, s) - integral(g, before))
                before = s
                if at < old.running[i] and old.ends[i, at] <= s:
                    room += old.held[i, at]
                    at += 1
            x.at[o], x.idle[o] = s, value
            done = s + d.seconds[o]
            if done <= d.due[o] and d.slope[j] * done <= d.price[j]:
                soonest = min(soonest, done)
    return soonest


@cfunc
@nogil
def _waiting(d: Data, x: Extension, old: LabelArrays, i: Int, column: Int) -> Float:
    """Return what all that has not started in label i costs more at least, from a time on."""
    waiting: Float = 0.0
    for j in range(d.n):
        if not _started(old, i, j):
            waiting += x.rest[j, column]
    return waiting


@cfunc
@nogil
def _start(d: Data, old: LabelArrays, new: LabelArrays, i: Int, made: Int, j: Int, o: Int, s: Float) -> void:
    """Write label i with option o of job j from s on."""
    done, lasts = s + d.seconds[o], d.seconds[o]
    one: Word = 1
    for k in range(old.words):
        new.started[made, k] = old.started[i, k]
    new.started[made, j // 64] |= one << (j % 64)
    # a job of 0 s goes before all others of its time, whatever its index
    last: Int = j if lasts > 0 else old.last[i] if s == old.time[i] else -1
    new.time[made], new.last[made], new.true[made] = s, last, old.true[i] + d.slope[j] * done
    at: Int = 0
    placed: bint = False
    for r in range(old.running[i]):
        if old.ends[i, r] <= s:
            continue
        if not placed and old.ends[i, r] > done:
            new.ends[made, at], new.held[made, at] = done, d.gpus[o]
            placed = True
            at += 1
        new.ends[made, at], new.held[made, at] = old.ends[i, r], old.held[i, r]
        at += 1
    if not placed and done > s:
        new.ends[made, at], new.held[made, at] = done, d.gpus[o]
        at += 1
    new.running[made] = at


def dominated(order: Ints, labels: Any, looks: Int, begin: Int, end: Int, group: Int, out: Flags) -> int:
    """Write which labels some other with the same jobs makes superfluous; `order` has equal sets together.

    One does if it has cost no more, is not later, and leaves at least as many GPUs free at any time. Each is compared
    with at most so many before it in `order`: from `begin` up to `end`, of which the first set begins at `group`.
    Return where the last one begins.
    """
    known = LabelArrays(labels)
    sound = len(order) == len(out) == known.many and within(order, known.many, False)
    if not sound or not 0 <= group <= begin <= end <= known.many:
        raise ValueError(f"{len(order)} places are not of {known.many} labels, from {begin} up to {end}")
    with nogil:
        for x in range(begin, end):
            group = _compare(order, known, looks, x, group, out)
    return group


@cfunc
@nogil
def _compare(order: Ints, known: LabelArrays, looks: Int, x: Int, group: Int, out: Flags) -> Int:
    """Compare the label at place x with those before it from `group` on; return where its set begins."""
    b = order[x]
    for w in range(known.words):
        if known.started[order[group], w] != known.started[b, w]:
            return x
    seen: Int = 0
    y: Int = x - 1
    while y >= group and seen < looks:
        a = order[y]
        y -= 1
        if out[a]:
            continue
        seen += 1
        if _better(known, a, b):
            out[b] = True
            break
        if _better(known, b, a):
            out[a] = True
    return group


@cfunc
@nogil
def _better(known: LabelArrays, one: Int, other: Int) -> bint:
    if known.true[one] > known.true[other] or known.time[one] > known.time[other]:
        return False
    if known.time[one] == known.time[other] and known.last[one] > known.last[other]:
        return False
    # GPUs that other holds less those that one holds, just after other's last start and each of other's ends
    k: Int = 0
    difference: Int = 0
    for i in range(known.running[other]):
        difference += known.held[other, i]
    for i in range(known.running[one]):
        difference -= known.held[one, i]
    while k < known.running[one] and known.ends[one, k] <= known.time[other]:
        difference += known.held[one, k]
        k += 1
    if difference < 0:
        return False
    for i in range(known.running[other]):
        difference -= known.held[other, i]
        while k < known.running[one] and known.ends[one, k] <= known.ends[other, i]:
            difference += known.held[one, k]
            k += 1
        if difference < 0:
            return False
    return True
