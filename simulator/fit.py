"""Where gangs fit on nodes, who may start before whom, and who must stop for whom; compiled.

The loop of traces and the engine share it: one rule of placement, one EASY backfilling, and one choice of victims. No
array is indexed by what is free: conservative reservations may have promised more than there is.
"""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cast, cclass, cfunc, declare, final, nogil
from cython.cimports.libc.math import floor
from numpy.typing import NDArray

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.solvers.native import Heap

if not cython.compiled:
    from gangplan.solvers.native import Flags, Float, Floats, Int, Ints

SLACK = declare(Float, 1e-9)
NEVER = declare(Float, float("inf"))


@final
@cclass
class Held:
    """What running jobs hold: rows ``first[j]`` up to ``first[j] + count[j]``, node and GPUs, are those of job j."""

    def __init__(self, first: Ints, count: Ints, node: Ints, gpus: Ints) -> None:
        if len(first) != len(count) or len(node) != len(gpus):
            raise ValueError(f"{len(first)} and {len(count)} jobs, {len(node)} and {len(gpus)} rows are not as many")
        self.first, self.count, self.node, self.gpus = first, count, node, gpus


@final
@cclass
class Nodes:
    """What m nodes have, and n jobs need of it: R resources, GPUs, and cores and bytes if jobs name them.

    The arrays are the caller's, who may write to them.

    Attributes:
        degree: GPUs of each job, int64 (n,).
        unit: what a job needs for each GPU, of which 1 GPU, float64 (n, R).
        kind: class of each job, int64 (n,).
        span: seconds that each job will run, float64 (n,).
        free, whole: what nobody holds, and what there is at all, float64 (m, R).
        ok: nodes that are up and suit the jobs of a class, bool (classes, m).
        consolidate: whether jobs go on as few nodes as hold them.
        node, gpus: rows of the job that was found to fit last, int64 (m,).
    """

    def __init__(
        self,
        degree: NDArray[np.int64],
        unit: FloatArray,
        kind: NDArray[np.int64],
        span: FloatArray,
        free: FloatArray,
        whole: FloatArray,
        ok: BoolArray,
        consolidate: bint,
    ) -> None:
        (self.n, self.resources), self.m = unit.shape, len(free)
        shapes = [x.shape for x in (degree, kind, span, free, whole, ok)]
        n, m, wide = self.n, self.m, self.resources
        if not m or shapes != [(n,), (n,), (n,), (m, wide), (m, wide), (len(ok), m)]:
            raise ValueError(f"{shapes} are not the shapes of {n} jobs and {m} nodes with {wide} resources")
        if n and not 0 <= kind.min() <= kind.max() < len(ok):
            raise ValueError(f"jobs are not of {len(ok)} classes")
        self.degree, self.unit, self.kind, self.span = degree, unit, kind, span
        self.free, self.whole, self.ok, self.consolidate = free, whole, ok.view(np.uint8), consolidate
        self.biggest = int(whole[:, 0].max())
        self.node, self.gpus = np.empty((2, m), np.int64)

    def copy(self) -> Nodes:
        """Return the same jobs and nodes, which are free as these are now."""
        degree, unit, kind = np.asarray(self.degree), np.asarray(self.unit), np.asarray(self.kind)
        span, free, whole = np.asarray(self.span), np.array(self.free), np.asarray(self.whole)
        return Nodes(degree, unit, kind, span, free, whole, np.asarray(self.ok), self.consolidate)

    def place(self, job: Int, need: Int) -> int:
        """Write where `need` GPUs of a job go to `node` and `gpus`; return how many nodes that takes, see `find`."""
        if not 0 <= job < self.n:
            raise IndexError(f"{job} is not one of {self.n} jobs")
        return self.find(job, need)

    def change(self, held: Held, job: Int, sign: Int) -> None:
        """Take (-1) or give back (1) what a job holds: GPUs and what goes with them."""
        if not 0 <= job < self.n == len(held.first):
            raise IndexError(f"{job} is not one of {self.n} jobs")
        self.move(held, job, sign)

    def room(self, job: Int, whole: bint) -> NDArray[np.int64]:
        """Return how many GPUs of a job fit on each node, now or if it were `whole`, 0 where none may: int64 (m,)."""
        if not 0 <= job < self.n:
            raise IndexError(f"{job} is not one of {self.n} jobs")
        found = np.zeros(self.m, np.int64)
        able: Ints = found
        for n in range(self.m):
            if self.ok[self.kind[job], n]:
                gpus = self.whole[n, 0] if whole else self.free[n, 0]
                able[n] = max(0, self.able(job, n, cast(Int, gpus), whole))
        return found

    def able(self, job: Int, node: Int, most: Int, whole: bint) -> Int:
        """Return for how many GPUs of a job a node has cores and memory, now or if it is `whole`, at most `most`."""
        least: Float = most
        for r in range(1, self.resources):
            unit = self.unit[job, r]
            if unit > 0:
                has = self.whole[node, r] if whole else self.free[node, r]
                least = min(least, floor(has / unit * (1 + SLACK) + SLACK))
        return cast(Int, least)

    def find(self, job: Int, need: Int) -> Int:  # noqa: PLR0912, read from top to bottom
        """Write where GPUs of a job go to `node` and `gpus`; return how many nodes that takes, 0 if none will do.

        Consolidated: on the node with the fewest free GPUs that fits, lowest index first; a job larger than any node on
        whole free nodes, as is one that asks for more cores or memory than any has. Otherwise on whatever is free,
        lowest index first.
        """
        kind = self.kind[job]
        most: Int = 0
        if self.consolidate and need <= self.biggest:
            best: Int = -1
            for n in range(self.m):
                gpus = self.free[n, 0]
                if gpus < need or not self.ok[kind, n] or (best >= 0 and gpus >= self.free[best, 0]):
                    continue
                if self.resources == 1 or self.able(job, n, cast(Int, gpus), False) >= need:
                    best = n
            if best >= 0:
                self.node[0], self.gpus[0] = best, need
                return 1
            if self.resources == 1:
                return 0
            for n in range(self.m):  # one that no node would hold if it were empty goes on several
                if self.ok[kind, n]:
                    most = max(most, self.able(job, n, cast(Int, self.whole[n, 0]), True))
            if most >= need:
                return 0
        rows: Int = 0
        for n in range(self.m):
            gpus = self.free[n, 0]
            if not self.ok[kind, n] or gpus == 0 or (self.consolidate and gpus < self.whole[n, 0]):
                continue
            here = self.able(job, n, cast(Int, gpus), False)
            if self.consolidate and here < min(need, self.able(job, n, cast(Int, self.whole[n, 0]), True)):
                continue
            if here <= 0:
                continue
            self.node[rows], self.gpus[rows] = n, min(need, here)
            need -= self.gpus[rows]
            rows += 1
            if need == 0:
                return rows
        return 0

    def total(self) -> Float:
        """Return the free GPUs of all nodes."""
        total: Float = 0.0
        for n in range(self.m):
            total += self.free[n, 0]
        return total

    def give(self, job: Int, node: Int, gpus: Int) -> None:
        """Give back GPUs of a job, and what goes with them, or take them if there are fewer than 0."""
        for r in range(self.resources):
            self.free[node, r] += gpus * self.unit[job, r]

    def move(self, held: Held, job: Int, sign: Int) -> None:
        """Take (-1) or give back (1) what a running job holds."""
        for row in range(held.first[job], held.first[job] + held.count[job]):
            self.give(job, held.node[row], sign * held.gpus[row])

    def follow(self, other: Nodes) -> None:
        """Be free as others are now."""
        self.free[:, :] = other.free


@final
@cclass
class EasyShadow:
    """When a job that does not fit does if nobody else starts; to begin with, nobody has one.

    Attributes:
        job: who has it.
        shadow: seconds, infinite without end or without anybody.
        later: what is free then. Whoever starts a job that runs on takes it from there.
        ends: room to order running jobs by when they end, ties by `place`, int64 (n,).
    """

    def __init__(self, nodes: Nodes, place: NDArray[np.int64]) -> None:
        if len(place) != nodes.n:
            raise ValueError(f"{len(place)} places are not of {nodes.n} jobs")
        self.job, self.shadow, self.later, self.ends = -1, NEVER, nodes.copy(), Heap(np.zeros(len(place)), place)

    def reserve(self, job: Int, running: Ints, end: Floats, nodes: Nodes, held: Held) -> None:
        """Find when a job fits; running jobs end at `end`, float64 (n,)."""
        if not 0 <= job < nodes.n == len(end) == len(self.ends.value) == len(held.first) or len(running) > nodes.n:
            raise ValueError(f"{len(running)} of {len(end)} jobs run, and {job} waits, of {nodes.n}")
        self.ends.size = 0
        with nogil:
            for i in range(len(running)):
                self.ends.value[running[i]] = -end[running[i]]
                self.ends.push(running[i])
            self.wait(job, nodes, held)

    def clear(self) -> EasyShadow:
        """Have nobody wait for anything, and return this."""
        self.job, self.shadow = -1, NEVER
        return self

    def wait(self, job: Int, nodes: Nodes, held: Held) -> None:
        """Find when a job fits, with the running jobs in `ends`, by the negative of when they end."""
        self.job, self.shadow = job, NEVER
        self.later.follow(nodes)
        while self.ends.size:
            end = self.ends.value[self.ends.items[0]]
            while self.ends.size and self.ends.value[self.ends.items[0]] >= end:
                self.later.move(held, self.ends.pop(), 1)
            if self.later.find(job, nodes.degree[job]):
                self.shadow = -end
                return

    def stands(self, nodes: Nodes, other: Int, rows: Int) -> bint:
        """Return whether the reservation stands if another job holds the rows where it was found to fit."""
        self.take(nodes, other, rows, -1)
        fits = self.later.find(self.job, nodes.degree[self.job])
        self.take(nodes, other, rows, 1)
        return fits > 0

    def take(self, nodes: Nodes, other: Int, rows: Int, sign: Int) -> None:
        """Take (-1) from what is free later, or give back (1), the rows where a job was found to fit."""
        for k in range(rows):
            self.later.give(other, nodes.node[k], sign * nodes.gpus[k])


def next_spare(queue: Ints, begin: Int, now: Float, nodes: Nodes, reservation: EasyShadow) -> int:
    """Return the first place in the queue from `begin` on whose job fits and delays nobody, -1 if there is none.

    This is EASY backfilling (Lifka, JSSPP 1995): who fits starts if it has ended by the shadow, when the job with the
    reservation starts, or if what is free then is enough for both. Where nobody waits for anything, the shadow is
    infinite: who fits is the next.
    """
    if (reservation.later.n, reservation.later.m) != (nodes.n, nodes.m):
        raise ValueError(f"the reservation is not of {nodes.n} jobs and {nodes.m} nodes")
    total = nodes.total()
    if total < 1:
        return -1
    alike: bint = nodes.resources == 1 and len(nodes.ok) == 1  # then jobs of a size have the same chances
    tried: Flags = np.zeros(cast(Int, total) + 1, np.uint8)  # 1 if such a job would delay, 2 if it does not fit
    found: Int = -1
    with nogil:
        for i in range(max(begin, 0), len(queue)):
            other = queue[i]
            need = nodes.degree[other]
            early: bint = now + nodes.span[other] <= reservation.shadow
            if need > total or (alike and (tried[need] == 2 or (tried[need] and not early))):
                continue
            rows = nodes.find(other, need)
            if rows and (early or reservation.stands(nodes, other, rows)):
                found = i
                break
            tried[need] = 1 if rows else 2
    return found


def next_claim(
    queue: Ints, begin: Int, key: Floats, rank: Ints, victims: Ints, nodes: Nodes, held: Held, room: Nodes
) -> tuple[int, NDArray[np.bool_]]:
    """Return the first place in the queue from `begin` on whose job fits, or fits once some of `victims` are stopped.

    The victims are running jobs, the last in order first; a job may stop those that come after it by key and rank. The
    second thing returned is which of them it needs stopped, bool (len(victims),). The place is -1 if there is none.
    `room`: nodes to try it on.
    """
    if not nodes.n == len(key) == len(rank) == len(held.first) or nodes.m != room.m:
        raise ValueError(f"{len(key)} keys and {len(rank)} ranks are not of {nodes.n} jobs")
    chosen = np.zeros(len(victims), bool)
    stop: Flags = chosen.view(np.uint8)
    # where jobs of a kind and size are alike, one that comes later has no better chance
    alike: bint = nodes.resources == 1
    most: Int = int(np.asarray(nodes.whole)[:, 0].sum())
    failed: Flags = np.zeros(len(nodes.ok) * (most + 1) if alike else 0, np.uint8)
    behind: Int = len(victims)
    found: Int = -1
    with nogil:
        for i in range(max(begin, 0), len(queue)):
            job = queue[i]
            need = nodes.degree[job]
            if need > most:
                continue
            if alike:
                at = nodes.kind[job] * (most + 1) + need
                if failed[at]:
                    continue
                failed[at] = 1
            if nodes.find(job, need):
                found = i
                break
            while behind:
                last = victims[behind - 1]
                if key[last] > key[job] or (key[last] == key[job] and rank[last] > rank[job]):
                    break
                behind -= 1
            if behind and _make_room(job, victims, behind, stop, nodes, held, room):
                found = i
                break
    return found, chosen


@cfunc
@nogil
def _make_room(job: Int, victims: Ints, behind: Int, stop: Flags, nodes: Nodes, held: Held, room: Nodes) -> bint:
    """Mark which of the first victims must stop for a job to fit; return whether it ever does.

    They are stopped from the first on until it fits; those of them that turn out to be in nobody's way are spared,
    the last ones first.
    """
    need = nodes.degree[job]
    total = nodes.total()
    reach: Float = total
    for i in range(behind):
        reach += nodes.degree[victims[i]]
    if reach < need:
        return False
    room.follow(nodes)
    last: Int = -1
    for i in range(behind):
        room.move(held, victims[i], 1)
        total += nodes.degree[victims[i]]
        if total >= need and room.find(job, need):
            last = i
            break
    if last < 0:
        return False
    stop[last] = True
    for i in range(last - 1, -1, -1):
        room.move(held, victims[i], -1)
        if not room.find(job, need):
            room.move(held, victims[i], 1)
            stop[i] = True
    return True


def occupants(running: Ints, held: Held, end: Floats, now: Float, nodes: Int) -> FloatArray:
    """Return the running jobs of each node, and how many seconds the first of them has left, float64 (2, nodes)."""
    if len(held.first) != len(end):
        raise ValueError(f"{len(end)} ends are not of {len(held.first)} jobs")
    found = np.zeros((2, nodes))
    jobs: Floats = found[0]
    until: Floats = found[1]
    for i in range(len(running)):
        first = held.first[running[i]]
        for k in range(first, first + held.count[running[i]]):
            n = held.node[k]
            if k > first and held.node[k - 1] == n:
                continue  # GPUs that are told apart have a row each
            left = end[running[i]] - now
            if jobs[n] == 0 or left < until[n]:
                until[n] = left
            jobs[n] += 1
    return found
