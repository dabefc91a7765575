"""Bounds of step time by order and memory: what would have to be near an op has no room there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import inf
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..cluster import TreeTopology
from .classes import numbered
from .document import Certificate
from .exact import SLACK, exact
from .paths import early
from .rows import unit_of

_STEPS = 10**8
"""Inputs that any certificate may have looked at: minutes."""
_FINE = 2**60
"""Parts of the longest time, and of the largest room, that amounts are rounded down to."""


class LevelRoom(NamedTuple):
    """A level of the tree: no transfer from outside a part of it takes less, and no part of it holds more.

    Attributes:
        delay: the least seconds to send the output of each op into a part of the level from outside.
        size: bytes of the largest part: a device, a node, a rack.
        fan: the most parts in one part of the level above.
    """

    delay: Sequence[Any]
    size: Any
    fan: int


class OpOrder(NamedTuple):
    """What is known of the ops, in floats or in whole numbers: an order, inputs, seconds, classes, bytes of classes."""

    order: Sequence[int]
    inputs: Sequence[Sequence[int]]
    seconds: Sequence[Any]
    of: Sequence[int]
    bytes: Sequence[Any]


def earliest(
    ops: OpOrder, rooms: Sequence[LevelRoom], head: Sequence[Any], more: Callable[[], bool], *, backwards: bool = False
) -> list[Any]:
    """Return the earliest start of each op, by what has no room beside it.

    Let v start at T, in some part of the tree: its device, say, or its node. An input u of v, or of another op w that
    is in that part, which starts b before v at the latest, is there too if

        head(u) + seconds(u) + least delay into the part + b > T,

    as its output would be late. If all of those, with their classes, have more bytes than a part has, T is too early.
    So inputs are taken in by when they would arrive, the last first, until there are too many: v does not start before
    the first arrival of those.

    Args:
        ops: what is known of them.
        rooms: the levels of the tree.
        head: what is known of their starts.
        more: says whether one more input may be looked at; if not, only what is before an op delays it.
        backwards: time runs the other way: outputs are inputs, and who waits is the sender.
    """
    starts = list(head)
    for v in ops.order:
        at = max([starts[v], *(starts[u] + ops.seconds[u] for u in ops.inputs[v])])
        for room in rooms:
            total = ops.bytes[ops.of[v]]
            for arrival, g in taken_in(ops, room, starts, v, at, more, backwards=backwards):
                total += ops.bytes[g]
                if total > room.size:
                    at = arrival
                    break
        starts[v] = at
    return starts


def taken_in(
    ops: OpOrder, room: LevelRoom, head: Sequence[Any], v: int, at: Any, more: Callable[[], bool], *, backwards: bool
) -> Iterator[tuple[Any, int]]:
    """Yield arrivals after `at`, each no later than the last, and a class in the part of v if that starts before."""
    inside, behind, first, w = {ops.of[v]}, {v: 0}, inf, v
    waiting: list[tuple[Any, int, Any]] = []
    while more():
        for u in ops.inputs[w]:
            before = behind[w] + ops.seconds[u]
            arrival = head[u] + before + room.delay[w if backwards else u]
            if arrival > at and behind.get(u, -1) < before:
                heappush(waiting, (-arrival, u, before))
        while waiting and behind.get(waiting[0][1], -1) >= waiting[0][2]:
            heappop(waiting)
        if not waiting:
            return
        arrival, w, before = heappop(waiting)
        first, behind[w] = min(first, -arrival), before
        if ops.of[w] not in inside:
            inside.add(ops.of[w])
            yield first, ops.of[w]


def rooms_of(problem: Any, capacity: list[Any]) -> list[LevelRoom]:
    """Return the levels of a problem's tree, delays in floats as the verifier has them; a mesh is one of devices.

    Args:
        problem: of step time.
        capacity: bytes of each device.
    """
    topology, output = problem.cluster.topology, problem.graph.output_bytes()
    tree = isinstance(topology, TreeTopology)
    links = [(x.bandwidth, x.latency) for x in topology.levels] if tree else [topology.slowest_link()]
    parts = [[*range(len(capacity))], *(topology.group.tolist() if tree else [[0] * len(capacity)])]
    rooms, delay = list[LevelRoom](), np.full(len(output), np.finfo(float).max)
    for below, above, (bandwidth, latency) in reversed([*zip(parts[:-1], parts[1:], links, strict=True)]):
        if len({*below}) == len({*above}):
            continue  # it joins no two parts
        delay = np.minimum(delay, np.where(output > 0, latency + output / bandwidth, 0.0))
        size = dict.fromkeys(below, capacity[0] * 0)
        for part, room in zip(below, capacity, strict=True):
            size[part] += room
        fan = max(Counter(whole for _, whole in {*zip(below, above, strict=True)}).values())
        rooms.insert(0, LevelRoom(delay.tolist(), max(size.values()), fan))
    return rooms


def passes(
    ops: OpOrder, rooms: Sequence[LevelRoom], head: Sequence[Any], tail: Sequence[Any], more: Callable[[], bool]
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield later starts, and longer times from ends to the end of all: by devices, then by all levels of the tree.

    Args: as of `earliest`; tail: what is known of times from ends.
    """
    outputs: list[list[int]] = [[] for _ in ops.inputs]
    for v, inputs in enumerate(ops.inputs):
        for u in inputs:
            outputs[u].append(v)
    back = ops._replace(order=ops.order[::-1], inputs=outputs)
    for levels in (rooms[:1], rooms)[: max(len(rooms), 1)]:
        head = earliest(ops, levels, head, more)
        tail = earliest(back, levels, tail, more, backwards=True)
        yield head, tail


@dataclass(frozen=True, slots=True)
class RoomsCertificate(Certificate):
    """Let inputs be late, or near; and those that are near have room: see `earliest`.

    That holds of starts, and of ends with time running backwards: no plan is shorter than the earliest start of an op,
    its fastest time, and what follows its end. Only order and memory are used, so starts that are early by a part of
    the makespan each cost a bound no more than such parts of a path.

    Attributes:
        steps: inputs that are looked at, at most; beyond them only the longest path counts.
    """

    objectives: ClassVar[tuple[str, ...]] = ("step",)

    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the longest way through an op, in seconds; `inf` if one runs nowhere."""
        graph, cluster = problem.graph, problem.cluster
        rows = [row for row, count in zip(exact(problem.time()), cluster.counts().tolist(), strict=True) if count]
        fastest = [min(column) for column in zip(*rows, strict=True)]
        if inf in fastest:
            return inf
        unit = unit_of(max(*fastest, Fraction(1, _FINE))) / _FINE
        of = numbered(graph.colocation.tolist())
        kinds = [cluster.device_types[t].memory for t in cluster.type_of.tolist()]
        limited = all(x is not None for x in kinds)
        capacity = [Fraction(x or 0) * (1 + SLACK) for x in kinds]
        byte = max(*capacity, Fraction(1, _FINE)) / _FINE
        size = [0] * (max(of) + 1)
        for g, memory in zip(of, graph.memory.tolist(), strict=True):
            size[g] += int(Fraction(memory) / byte)
        inputs: list[list[int]] = [[] for _ in of]
        for u, v in sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))):
            inputs[v].append(u)
        ops = OpOrder(graph.topological_order().tolist(), inputs, [int(x / unit) for x in fastest], of, size)
        every = rooms_of(problem, [x / byte for x in capacity]) if limited else []
        rooms = [
            room._replace(delay=[int(x / unit) for x in exact(np.array([room.delay]))[0]], size=int(room.size))
            for room in every
            if room.size < sum(size)
        ]
        left = [min(max(self.steps, 0), _STEPS)]

        def more() -> bool:
            left[0] -= 1
            return left[0] >= 0

        nothing = [0] * len(of)
        *_, (head, tail) = passes(ops, rooms, nothing, nothing, more)
        longest: int = max(map(sum, zip(head, ops.seconds, tail, strict=True)))
        return longest * unit / (1 + early(problem, len(of)))
