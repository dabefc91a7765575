"""The cheapest set of nodes with some in it and others out of it: a minimum cut, in whole numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

Arcs = list[dict[int, int]]


def cheapest(
    own: Sequence[int], nets: Iterable[tuple[Iterable[int], int]], side: Mapping[int, int], most: int
) -> tuple[int, set[int], int]:
    """Return the least cost of a set, or something from `most` on, the nodes of such a set, and the arcs looked at.

    A set costs what each of its nodes does, and each net that has a node in it and one out of it.

    Args:
        own: cost of each node.
        nets: (nodes, cost) of each net.
        side: of some nodes, 0 if they are in the set and 1 if they are not.
        most: cost from which on it does not matter, and more than no arc may take is twice that.
    """
    value, arcs, node = 0, list[dict[int, int]]([{}, {}]), dict(side)

    def arc(a: int, b: int, room: int) -> None:
        arcs[a][b] = arcs[a].get(b, 0) + room
        arcs[b].setdefault(a, 0)

    for v, cost in enumerate(own):
        if v not in node:
            node[v] = len(arcs)
            arcs.append({})
        at = node[v]
        if at == 0:
            value += cost
        elif at > 1:
            arc(at, 1, cost)
    for pins, cost in nets:
        ends = {node[v] for v in pins}
        if {0, 1} <= ends:
            value += cost
        elif len(ends) > 1:
            arcs += [{}, {}]
            arc(len(arcs) - 2, len(arcs) - 1, cost)
            for x in ends:
                arc(x, len(arcs) - 2, most)
                arc(len(arcs) - 1, x, most)
    flow, inside, looked = _flow(arcs, most - value)
    return value + flow, {v for v, x in node.items() if x in inside}, looked


def _flow(arcs: Arcs, most: int) -> tuple[int, Collection[int], int]:
    """Return the maximum flow from node 0 to node 1, by shortest ways, and the side of node 0 of a minimum cut."""
    total, came, looked = 0, dict[int, int](), 0
    while total < most:
        came, todo = {0: 0}, deque([0])
        while todo and 1 not in came:
            a = todo.popleft()
            looked += len(arcs[a])
            for b, room in arcs[a].items():
                if room and b not in came:
                    came[b] = a
                    todo.append(b)
        if 1 not in came:
            break
        way = [1]
        while way[-1]:
            way.append(came[way[-1]])
        steps = list(zip(way[1:], way, strict=False))
        room = min(arcs[a][b] for a, b in steps)
        for a, b in steps:
            arcs[a][b] -= room
            arcs[b][a] += room
        total += room
    return total, came, looked
