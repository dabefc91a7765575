"""The closest GPUs: the best fitting node, else the rack where the fewest nodes do, of those the fullest.

Where no rack holds the gang, all of the rack with the most idle GPUs, and on. It is greedy: few nodes of two racks may
cost less than many of one, and where it takes several racks, others may.
"""

from __future__ import annotations

from ...compiled.kernel import Ints, lean, lean_kernel


@lean_kernel
def find_closest(need: int, begin: Ints, free: Ints, take: Ints) -> None:
    """Do what `closest` does, for Python."""
    closest(need, begin, free, take)


@lean
def closest(need: int, begin: Ints, free: Ints, take: Ints) -> None:
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
    left = need
    while left > 0:
        found, nodes, idle = -1, 0, 0
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


@lean
def best_fit(need: int, begin: int, end: int, free: Ints) -> int:
    """Return the node with the fewest idle GPUs that holds the job, -1 if there is none."""
    best = -1
    for node in range(begin, end):
        if free[node] >= need and (best < 0 or free[node] < free[best]):
            best = node
    return best


@lean
def rack_idle(begin: Ints, free: Ints, rack: int) -> int:
    """Return the idle GPUs of a rack."""
    idle = 0
    for node in range(begin[rack], begin[rack + 1]):
        idle += free[node]
    return idle


@lean
def take_idle(node: int, most: int, free: Ints, take: Ints) -> int:
    """Take a node's idle GPUs, at most so many; return how many that are."""
    take[node] = min(most, free[node])
    return int(take[node])


@lean
def _nodes_for(need: int, begin: Ints, free: Ints, rack: int) -> int:
    """Return the least number of nodes of a rack that hold so many GPUs, which it has."""
    size, nodes, left = 0, 0, need
    for node in range(begin[rack], begin[rack + 1]):
        size = max(size, free[node])
    while left > 0:
        for node in range(begin[rack], begin[rack + 1]):
            if free[node] == size and left > 0:
                left -= size
                nodes += 1
        size -= 1
    return nodes


@lean
def _fill(need: int, begin: Ints, free: Ints, take: Ints, rack: int) -> int:
    """Take the largest nodes of a rack one after the other, the last one as the best fit; return how many GPUs."""
    left = need
    while left > 0:
        largest, last = -1, -1
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
