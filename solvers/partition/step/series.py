"""A job as a series of blocks: the ops that everything passes through, and how long what lies between two takes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.graph import one_machine

from .bounds import delayed_length
from .model import Prepared


@dataclass(frozen=True)
class Half:
    """What lies between two joints: ops in topological order, joints first and last, and edges by place in `ops`."""

    ops: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Unit:
    """A block of the series, with its mirror image in the backward pass if all its ops are colocated with that.

    Attributes:
        halves: one or two; each takes its own time.
        groups: of all ops; that of the first joint first, that of the last joint last unless it is the same.
    """

    halves: tuple[Half, ...]
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Series:
    """A job as a series.

    Attributes:
        joints: seconds of the ops between the units, on the types that run them fastest, in total.
        units: in order; each begins with the joint that the one before ends with.
        memory: bytes of the groups seen up to each joint, that included: before the first unit, and after each,
            float64 (len(units) + 1,).
        joint_memory: bytes of the joint's group alone, 0 if it was seen before, float64 (len(units) + 1,).
    """

    joints: float
    units: tuple[Unit, ...]
    memory: FloatArray
    joint_memory: FloatArray


def series(p: Prepared, *, jumped: bool = True) -> Series:
    """Split the job at its joints, ops that come before or after every other.

    Ops are left out that do not lie between the first joint and the last: those that feed or follow only a part of the
    job. Where the joints mirror one another in their groups, so a training step, the two halves make one series.

    Args:
        jumped: count also joints over which an edge jumps, as a residual connection does. That makes units smaller and
            memory sharper, but the edge belongs to no unit and is left out.
    """
    between, joints = _joints(p)
    place = {v: i for i, v in enumerate(p.order.tolist())}
    if not jumped:
        joints = _not_jumped(p, set(between), joints, place)
    inner: list[list[int]] = [[] for _ in joints]
    at, rank = 0, [place[v] for v in joints]
    for v in sorted(between, key=place.__getitem__):
        while at + 1 < len(joints) and place[v] >= rank[at + 1]:
            at += 1
        if v != joints[at]:
            inner[at].append(v)
    halves = [half_of(p, (joints[i], *inner[i], joints[i + 1])) for i in range(len(joints) - 1)]
    group = p.group_of.tolist()
    count = len(halves)
    seen = [[group[v] for v in half.ops] for half in halves]
    mirrored = count % 2 == 1 and all(
        set(seen[i]) == set(seen[~i]) and seen[i][0] == seen[~i][-1] and seen[i][-1] == seen[~i][0]
        for i in range(count // 2 + 1)
    )
    if mirrored and len(set(seen[count // 2])) == 1 and len(halves[count // 2].ops) == 2:
        pairs = [(halves[i], halves[count - 1 - i]) for i in range(count // 2)]
    else:
        pairs = [(half,) for half in halves]  # type: ignore[misc]
    units = tuple(_unit(group, pair) for pair in pairs)
    ends = [group[v] for v in joints[: len(units) + 1]]
    return Series(float(p.fastest[joints].sum()), units, *_memory(p, units, ends))


def _joints(p: Prepared) -> tuple[list[int], list[int]]:
    before, after = p.reach
    first = max(p.order.tolist(), key=lambda v: after[v].bit_count())
    reach = after[first] | 1 << first
    last = max((v for v in p.order.tolist() if reach >> v & 1), key=lambda v: (before[v] & reach).bit_count())
    main = reach & (before[last] | 1 << last)
    ops = [v for v in p.order.tolist() if main >> v & 1]
    joints = [v for v in ops if ((before[v] | after[v]) & main).bit_count() == len(ops) - 1]
    return ops, joints


def _not_jumped(p: Prepared, between: set[int], joints: list[int], place: dict[int, int]) -> list[int]:
    rank = [place[v] for v in joints]
    jumps = np.zeros(len(joints) + 1, dtype=np.int64)
    for u, v in zip(*(ends.tolist() for ends in p.edges), strict=True):
        if u in between and v in between:
            low, high = bisect_right(rank, place[u]), bisect_left(rank, place[v])
            jumps[low] += low < high
            jumps[high] -= low < high
    return [v for v, over in zip(joints, np.cumsum(jumps).tolist(), strict=False) if not over]


def half_of(p: Prepared, ops: tuple[int, ...]) -> Half:
    """Return what lies between the first and the last of some ops, which are in topological order."""
    place = {v: i for i, v in enumerate(ops)}
    first, index = p.successors[0].tolist(), p.successors[1].tolist()
    edges = [(i, place[w]) for v, i in place.items() for w in index[first[v] : first[v + 1]] if w in place]
    return Half(ops, tuple(sorted(edges)))


def _unit(group: list[int], halves: tuple[Half, ...]) -> Unit:
    ops = halves[0].ops
    ends = {group[ops[0]], group[ops[-1]]}
    inner = [g for g in dict.fromkeys(group[v] for half in halves for v in half.ops) if g not in ends]
    return Unit(halves, tuple(dict.fromkeys([group[ops[0]], *inner, group[ops[-1]]])))


def _memory(p: Prepared, units: tuple[Unit, ...], ends: list[int]) -> tuple[FloatArray, FloatArray]:
    seen: set[int] = set()
    total, joint = [], []
    for groups, end in zip([(ends[0],), *(unit.groups for unit in units)], ends, strict=True):
        new = [g for g in groups if g not in seen]
        seen.update(new)
        joint.append(float(p.group_memory[end]) if end in new else 0.0)
        total.append(float(p.group_memory[new].sum()))
    return np.cumsum(total), np.array(joint)


INFINITE = float("inf")


class Tables(NamedTuple):
    """What all searches of a problem read, as lists; see `Prepared`."""

    level: list[list[int]]
    delay: list[list[float]]
    seconds: list[list[float]]
    fastest: list[float]
    alike: list[tuple[int, int, tuple[int, ...]]]

    @classmethod
    def of(cls, p: Prepared) -> Tables:
        """Return those of a problem."""
        by_type = [row.tolist() for row in p.time]
        seconds = [by_type[t] for t in p.type_of.tolist()]
        return cls(p.level.tolist(), [*p.delay.tolist(), [0.0] * p.n], seconds, p.fastest.tolist(), _alike(p))


class UnitSearch:
    """Lower bounds on the seconds of a unit, joints left out, that grow with the work spent.

    A node is a device for each of the first groups; its bound is, for each half, the longest path with the delays
    between groups that are placed, and for each device the preemptive one-machine bound of the ops on it (Jackson;
    Carlier, EJOR 1982). The least bound of all open nodes holds for every placement.

    Args:
        spans: whether a placement is wanted, given the devices in use; others are left out.
    """

    def __init__(self, p: Prepared, tables: Tables, unit: Unit, spans: Callable[[set[int]], bool]) -> None:
        self.unit, self.spans = unit, spans
        self.level, self.delay, self.seconds, self.fastest, self.alike = tables
        self.allowed = p.allowed
        self.place = {g: i for i, g in enumerate(unit.groups)}
        self.group = [[self.place[int(p.group_of[v])] for v in half.ops] for half in unit.halves]
        self.tick, self.opened = count(), 0
        self.open: list[tuple[float, int, int, tuple[int, ...]]] = [(self._bound(()), 0, 0, ())]
        self.done = False
        # no placement at all is needed for this one
        self.floor = sum(delayed_length(p, half) for half in unit.halves)

    @property
    def bound(self) -> float:
        """No placement takes less, seconds; infinite if there is none."""
        return max(self.floor, self.open[0][0]) if self.open else INFINITE

    def work(self, nodes: int) -> None:
        """Open so many nodes more, or as many as it takes until the bound is that of a whole placement."""
        for _ in range(nodes):
            if self.done or not self.open:
                self.done = True
                return
            _, _, _, where = self.open[0]
            if len(where) == len(self.unit.groups):
                self.done = True
                return
            heappop(self.open)
            self.opened += 1
            g = self.unit.groups[len(where)]
            for d in self._choices(where):
                if not self.allowed[g, d]:
                    continue
                child = (*where, d)
                if len(child) == len(self.unit.groups) and not self.spans(set(child)):
                    continue
                value = self._bound(child)
                if value < INFINITE:
                    # of equals the one that is furthest
                    heappush(self.open, (value, -len(child), next(self.tick), child))

    def _choices(self, where: tuple[int, ...]) -> list[int]:
        used, found = set(where), []
        seen: set[tuple[object, ...]] = set()
        # a server that is in use is unlike one that is not
        busy = {self.alike[d][0] for d in used}
        for d, (server, twin, kind) in enumerate(self.alike):
            key = ("device", server, twin) if server in busy else ("server", *kind)
            if d in used or key not in seen:
                found.append(d)
            if d not in used:
                seen.add(key)
        return found

    def _bound(self, where: tuple[int, ...]) -> float:
        return sum(self._half(half, group, where) for half, group in zip(self.unit.halves, self.group, strict=True))

    def _half(self, half: Half, group: list[int], where: tuple[int, ...]) -> float:
        n, placed = len(half.ops), len(where)
        device = [where[g] if g < placed else -1 for g in group]
        took = [self.fastest[v] if d < 0 else self.seconds[d][v] for v, d in zip(half.ops, device, strict=True)]
        took[0] = took[-1] = 0.0
        if max(took) == INFINITE:
            return INFINITE
        head, tail = [0.0] * n, [0.0] * n
        edges = []
        for u, w in half.edges:
            a, b = device[u], device[w]
            away = 0.0 if a == b or a < 0 or b < 0 else self.delay[self.level[a][b]][half.ops[u]]
            edges.append((u, w, away))
            head[w] = max(head[w], head[u] + took[u] + away)
        for u, w, away in reversed(edges):
            tail[u] = max(tail[u], away + took[w] + tail[w])
        best = head[-1]
        for d in set(where):
            jobs = [(head[i], took[i], tail[i]) for i in range(n) if device[i] == d and took[i] > 0]
            if len(jobs) > 1:
                best = max(best, one_machine(jobs))
        return best


def _alike(p: Prepared) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return the server, the twin class, and what an idle device is alike to: another in an equal idle server.

    In a tree of at most two levels whole servers of equal devices may be swapped; elsewhere only twins.
    """
    server = p.servers
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for d in range(p.n_devices):
        kind: tuple[int, ...] = (-1, int(server[d]), int(p.twins[d]))
        if len(p.delay) <= 2:
            kind = (int(p.type_of[d]), *sorted(p.type_of[server == server[d]].tolist()))
        found.append((int(server[d]), int(p.twins[d]), kind))
    return found
