"""What each device does when, compiled: busy stretches in order of time, those that touch joined to one."""

from __future__ import annotations

from typing import Any

from ....compiled.kernel import lean


@lean
def first_gap(low: Any, high: Any, count: int, ready: float, took: float) -> float:
    """Return the earliest start from `ready` on of something that takes `took`.

    Args:
        low, high: beginnings and ends of the busy stretches, ascending.
        count: how many there are.
        ready, took: seconds.
    """
    if count == 0 or ready >= high[count - 1]:
        return ready
    a, b = 0, count
    while a < b:
        middle = (a + b) // 2
        if high[middle] > ready:
            b = middle
        else:
            a = middle + 1
    at = ready
    for i in range(a, count):
        if at + took <= low[i]:
            return at
        at = max(at, high[i])
    return at


@lean
def occupy(low: Any, high: Any, count: int, start: float, end: float) -> int:
    """Make a stretch that is free busy and return how many there are then; one of no length changes nothing."""
    if end <= start:
        return count
    i = count
    while i > 0 and low[i - 1] > start:
        i -= 1
    left = i > 0 and high[i - 1] == start
    right = i < count and low[i] == end
    if left and right:
        high[i - 1] = high[i]
        for j in range(i, count - 1):
            low[j], high[j] = low[j + 1], high[j + 1]
        return count - 1
    if left:
        high[i - 1] = end
        return count
    if right:
        low[i] = start
        return count
    for j in range(count, i, -1):
        low[j], high[j] = low[j - 1], high[j - 1]
    low[i], high[i] = start, end
    return count + 1
