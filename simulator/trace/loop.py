"""The event loop, compiled. Times are compared exactly: two that the trace gives as equal are one instant.

Jobs of one size fit or do not fit alike, so the queue is one line a size, and only the first of a line that keeps the
rule can start. A line is a stretch of the leaves of a tree in which every node has the least value below it: the first
job from a place on that is short enough is found, and a job is put in or taken out, in O(log n). The nodes are found in
another such tree.
"""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cclass, cfunc, declare, final, nogil
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.native import Heap

from ..fit import EasyShadow, Held, Nodes

if not cython.compiled:
    from gangplan.solvers.native import Float, Floats, Int, Ints

    HEAD, OVERTAKE, EASY = range(3)
    """Disciplines, in the order of `gangplan.simulator.trace.DISCIPLINES`."""

Long = NDArray[np.int64]
NEVER = declare(Float, float("inf"))
ANY = declare(Float, float(np.finfo(np.float64).max))


@final
@cclass
class MinTree:
    """Room for more than so many leaves, all infinite; node i is above nodes 8i + 1 to 8i + 8, `inner` above others."""

    def __init__(self, leaves: Int) -> None:
        self.inner = 0
        while 7 * self.inner < leaves:  # there are 7 * inner + 1 leaves
            self.inner = 8 * self.inner + 1
        self.value = np.full(8 * self.inner + 1, np.inf)

    def put(self, leaf: Int, value: Float) -> None:
        """Give a leaf a value."""
        at: Int = self.inner + leaf
        self.value[at] = value
        while at > 0:
            at = (at - 1) // 8
            least = self.value[8 * at + 1]
            for below in range(8 * at + 2, 8 * at + 9):
                least = min(least, self.value[below])
            if self.value[at] == least:
                return
            self.value[at] = least

    def find(self, begin: Int, now: Float, until: Float) -> Int:
        """Return the first leaf from `begin` on for which ``now + value <= until``, -1 if there is none."""
        at: Int = self.inner + begin
        while now + self.value[at] > until:
            while at > 0 and at % 8 == 0:
                at = (at - 1) // 8
            if at == 0:
                return -1
            at += 1
        while at < self.inner:
            at = 8 * at + 1
            while now + self.value[at] > until:
                at += 1
        return at - self.inner


@final
@cclass
class SizeLines:
    """The queue of n jobs: those of each of k sizes in their order; nobody waits at first.

    Attributes:
        job, rank: the job in each place and its rank, int64 (n,).
        place, line: of each job, int64 (n,).
        size: GPUs of the jobs of each line, ascending, int64 (k,).
        begin: the first place of each line, and n, int64 (k + 1,).
        first: the place of the first job that waits, n if there is none, int64 (k,).
        spans: the seconds that waiting jobs will run, infinite for others.
    """

    def __init__(self, degree: Long, order: Long) -> None:
        self.n, there = len(degree), np.bincount(degree) > 0
        line = (np.cumsum(there) - 1)[degree]
        job = order[np.argsort(line[order].astype(np.min_scalar_type(line.max())), kind="stable")]
        place, rank = np.empty((2, len(degree)), np.int64)
        place[job], rank[order] = np.arange(len(degree)), np.arange(len(degree))
        self.job, self.place, self.rank, self.line = job, place, rank[job], line
        self.size = np.flatnonzero(there)
        self.begin, self.first = np.append(0, np.cumsum(np.bincount(line))), np.full(there.sum(), len(degree))
        self.spans = MinTree(len(degree))

    def join(self, job: Int, span: Float) -> None:
        """Put a job into the queue."""
        self.spans.put(self.place[job], span)
        self.first[self.line[job]] = min(self.first[self.line[job]], self.place[job])

    def leave(self, place: Int) -> None:
        """Take the job in a place out of the queue."""
        line = self.line[self.job[place]]
        self.spans.put(place, NEVER)
        if self.first[line] == place:
            self.first[line] = self.first_of(line, place, 0.0, ANY)

    def first_of(self, line: Int, begin: Int, now: Float, until: Float) -> Int:
        """Return the first place of a line, from `begin` on, of a job that ends by `until` if it starts now; or n."""
        place = self.spans.find(begin, now, until)
        return place if 0 <= place < self.begin[line + 1] else self.n

    def behind(self, line: Int, past: Int) -> Int:
        """Return the first place of a line of which the job is ranked beyond `past`, the end of the line if none is."""
        low: Int = self.begin[line]
        high: Int = self.begin[line + 1]
        while low < high:
            middle = (low + high) // 2
            if self.rank[middle] <= past:
                low = middle + 1
            else:
                high = middle
        return low


@final
@cclass
class Levels:
    """Equal nodes by their free GPUs; all are free at first.

    Attributes:
        count: nodes with so many free GPUs, int64 (GPUs + 1,).
        most: the highest number of which there is a node.
        there: leaf ``free * m + node`` of each node is 0, others infinite; without a leaf where GPUs are only counted.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.most, self.count = nodes.biggest, np.zeros(nodes.biggest + 1, np.int64)
        self.count[self.most] = nodes.m
        self.there = MinTree((self.most + 1) * nodes.m if nodes.consolidate else 0)
        if nodes.consolidate:
            for node in range(nodes.m):
                self.there.put(self.most * nodes.m + node, 0.0)

    def give(self, nodes: Nodes, node: Int, gpus: Int) -> None:
        """Give back GPUs of a node, or take them if there are fewer than 0."""
        before: Int = int(nodes.free[node, 0])
        after = before + gpus
        nodes.free[node, 0] = after
        self.count[before] -= 1
        self.count[after] += 1
        self.most = max(self.most, after)
        while self.count[self.most] == 0:
            self.most -= 1
        if nodes.consolidate:
            self.there.put(before * nodes.m + node, NEVER)
            self.there.put(after * nodes.m + node, 0.0)

    def fits(self, nodes: Nodes, need: Int) -> bint:
        """Return whether a job of so many GPUs fits."""
        return need <= self.most or nodes.biggest < need <= self.count[nodes.biggest] * nodes.biggest

    def take(self, nodes: Nodes, job: Int, held: Held, used: Int) -> Int:
        """Give a job that fits its GPUs, as `Nodes.find` would, in rows behind `used` ones; return their number."""
        need: Int = nodes.degree[job]
        least = min(need, nodes.biggest)
        while need > 0:
            gpus = min(need, nodes.biggest)
            node: Int = self.there.find(least * nodes.m, 0.0, 0.0) % nodes.m if nodes.consolidate else 0
            held.node[used], held.gpus[used] = node, gpus
            self.give(nodes, node, -gpus)
            need -= gpus
            used += 1
        return used


def run(  # noqa: PLR0912, PLR0915, one loop read from top to bottom
    submit: Floats, arrivals: Ints, order: Long, nodes: Nodes, discipline: Int
) -> tuple[FloatArray, Long]:
    """Run to the end; return the start of each job, float64 (n,), and rows (job, node, GPUs), int64 (3, r).

    Args:
        submit: seconds, float64 (n,).
        arrivals: the jobs by submit time, int64 (n,).
        order: the jobs as they stand in the queue, int64 (n,).
        discipline: `HEAD`, `OVERTAKE` or `EASY`.
    """
    if not nodes.n == len(submit) == len(arrivals) == len(order) or nodes.resources > 1:
        raise ValueError(f"{len(submit)} times of {len(arrivals)} jobs, of {len(order)} in order, are not of {nodes.n}")
    n, degree = nodes.n, np.asarray(nodes.degree)
    rows, start = np.empty((3, int((-(-degree // nodes.biggest)).sum())), np.int64), np.full(n, np.inf)
    owner: Ints = rows[0]
    begin: Floats = start
    lines, levels = SizeLines(degree, order), Levels(nodes)
    held = Held(np.zeros(n, np.int64), np.zeros(n, np.int64), rows[1], rows[2])
    reservation = EasyShadow(nodes, np.asarray(lines.place))
    running = Heap(np.asarray(reservation.ends.value), np.asarray(lines.place))
    used: Int = 0
    arrived: Int = 0
    place: Int
    with nogil:
        while arrived < n or running.size:
            now: Float = -running.value[running.items[0]] if running.size else NEVER
            if arrived < n and submit[arrivals[arrived]] < now:
                now = submit[arrivals[arrived]]
            while running.size and -running.value[running.items[0]] <= now:
                job: Int = running.pop()
                for row in range(held.first[job], held.first[job] + held.count[job]):
                    levels.give(nodes, held.node[row], held.gpus[row])
            while arrived < n and submit[arrivals[arrived]] <= now:
                lines.join(arrivals[arrived], nodes.span[arrivals[arrived]])
                arrived += 1
            past: Int = -1
            reservation.job = -1
            while True:
                if reservation.job < 0:
                    place = _first_in_turn(lines, levels, nodes, discipline == OVERTAKE)
                else:
                    place = _first_spare(lines, levels, past, now, nodes, reservation)
                if place < 0:
                    break
                past, job = lines.rank[place], lines.job[place]
                if not levels.fits(nodes, nodes.degree[job]):
                    if discipline == HEAD:
                        break
                    reservation.ends.size = running.size
                    for row in range(running.size):
                        reservation.ends.items[row] = running.items[row]
                    reservation.wait(job, nodes, held)
                    continue
                lines.leave(place)
                held.first[job] = used
                used = levels.take(nodes, job, held, used)
                held.count[job] = used - held.first[job]
                for row in range(held.first[job], used):
                    owner[row] = job
                begin[job], running.value[job] = now, -(now + nodes.span[job])
                running.push(job)
                if reservation.job >= 0 and now + nodes.span[job] > reservation.shadow:
                    reservation.later.move(held, job, -1)
    return start, rows[:, :used]


@cfunc
@nogil
def _first_in_turn(lines: SizeLines, levels: Levels, nodes: Nodes, overtake: bint) -> Int:
    """Return the place of the first job, or of the first that fits, -1 if there is none."""
    best: Int = -1
    least: Int = lines.n
    for line in range(len(lines.size)):
        place = lines.first[line]
        if place == lines.n or lines.rank[place] > least:
            continue
        if not overtake or levels.fits(nodes, lines.size[line]):
            best, least = place, lines.rank[place]
    return best


@cfunc
@nogil
def _first_spare(lines: SizeLines, levels: Levels, past: Int, now: Float, nodes: Nodes, reservation: EasyShadow) -> Int:
    """Return the place of the first job ranked beyond `past` that may start by EASY, else -1; as `fit.next_spare`."""
    best: Int = -1
    least: Int = lines.n
    for line in range(len(lines.size)):
        if lines.first[line] == lines.n or not levels.fits(nodes, lines.size[line]):
            continue
        place: Int = lines.first_of(line, max(lines.behind(line, past), lines.first[line]), 0.0, ANY)
        if place == lines.n or lines.rank[place] >= least:
            continue
        job = lines.job[place]
        if now + nodes.span[job] > reservation.shadow:
            rows = nodes.find(job, lines.size[line])
            if not reservation.stands(nodes, job, rows):
                place = lines.first_of(line, place, now, reservation.shadow)
                if place == lines.n or lines.rank[place] >= least:
                    continue
        best, least = place, lines.rank[place]
    return best
