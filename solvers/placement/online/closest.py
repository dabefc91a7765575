"""The closest GPUs: the best fitting node, else the rack where the fewest nodes do, of those the fullest.

Where no rack holds the gang, all of the rack with the most idle GPUs, and on. It is greedy: few nodes of two racks may
cost less than many of one, and where it takes several racks, others may.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from ...native import Int, Ints


def find_closest(need: Int, begin: Ints, free: Ints, take: Ints) -> None:
    """Do what `closest` does, for Python.

    Raises:
        ValueError: if fewer GPUs are idle, or the arrays do not fit together.
    """
    m, racks = len(free), len(begin) - 1
    if len(take) != m or racks < 0 or begin[0] < 0 or begin[racks] > m or (need > 0 and racks == 0):
        raise ValueError(f"{len(take)} GPUs taken and {m} idle are not of {racks} racks")
    idle: Int = 0
    for rack in range(racks):
        if begin[rack] > begin[rack + 1]:
            raise ValueError(f"rack {rack} ends at node {begin[rack + 1]}, before it begins")
        idle += rack_idle(begin, free, rack)
    if idle < need:
        raise ValueError(f"{need} GPUs are more than the {idle} that are idle")
    closest(need, begin, free, take)


def closest(need: Int, begin: Ints, free: Ints, take: Ints) -> None:
    """Write how many GPUs a job of `need`, no more than are idle, gets of each node.

    Args:
        need: GPUs of the job.
        begin: the first node of each rack, and m, int64 (racks + 1,).
        free: idle GPUs of each node, int64 (m,).
        take: the answer, zeros before, int64 (m,).
    """
    best = best_fit(need, 0, len(free), free)
    if best >= 0:
        take[best] = need
        return
    left: Int = need
    while left > 0:
        found: Int = -1
        nodes: Int = 0
        idle: Int = 0
        for rack in range(len(begin) - 1):
            there = rack_idle(begin, free, rack) - rack_idle(begin, take, rack)
            if there < left:
                continue
            needs = _nodes_for(left, begin, free, rack)
            if found < 0 or needs < nodes or (needs == nodes and there < idle):
                found, nodes, idle = rack, needs, there
        if found < 0:  # no rack holds the rest: all of the one with the most idle GPUs, and on
            for rack in range(len(begin) - 1):
                there = rack_idle(begin, free, rack) - rack_idle(begin, take, rack)
                if found < 0 or there > idle:
                    found, idle = rack, there
        left -= _fill(left, begin, free, take, found)


def best_fit(need: Int, begin: Int, end: Int, free: Ints) -> Int:
    """Return the node with the fewest idle GPUs that holds the job, -1 if there is none."""
    best: Int = -1
    for node in range(begin, end):
        if free[node] >= need and (best < 0 or free[node] < free[best]):
            best = node
            if free[best] == need:
                break
    return best


def rack_idle(begin: Ints, free: Ints, rack: Int) -> Int:
    """Return the idle GPUs of a rack."""
    idle: Int = 0
    for node in range(begin[rack], begin[rack + 1]):
        idle += free[node]
    return idle


def take_idle(node: Int, most: Int, free: Ints, take: Ints) -> Int:
    """Take a node's idle GPUs, at most so many; return how many that are."""
    take[node] = min(most, free[node])
    return take[node]


def _nodes_for(need: Int, begin: Ints, free: Ints, rack: Int) -> Int:
    """Return the least number of nodes of a rack that hold so many GPUs, which it has."""
    size: Int = 0
    nodes: Int = 0
    left: Int = need
    for node in range(begin[rack], begin[rack + 1]):
        size = max(size, free[node])
    while left > 0:
        for node in range(begin[rack], begin[rack + 1]):
            if free[node] == size and left > 0:
                left -= size
                nodes += 1
        size -= 1
    return nodes


def _fill(need: Int, begin: Ints, free: Ints, take: Ints, rack: Int) -> Int:
    """Take the largest nodes of a rack one after the other, the last one as the best fit; return how many GPUs."""
    left: Int = need
    while left > 0:
        largest: Int = -1
        last: Int = -1
        for node in range(begin[rack], begin[rack + 1]):
            if take[node] or not free[node]:
                continue
            if free[node] >= left and (last < 0 or free[node] < free[last]):
                last = node
            if largest < 0 or free[node] > free[largest]:
                largest = node
        if last < 0:
            last = largest
        if last < 0:
            break
        left -= take_idle(last, left, free, take)
    return need - left
