"""The times at which a device or a link is taken."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort


class Busy:
    """The times at which a device or a link is taken, in order."""

    __slots__ = ("end", "start")

    def __init__(self) -> None:
        self.start: list[float] = []
        self.end: list[float] = []

    def first(self, ready: float, took: float) -> float:
        """Return the earliest start from `ready` on."""
        start, end = self.start, self.end
        for i in range(bisect_right(end, ready), len(start)):
            if ready + took <= start[i]:
                return ready
            ready = max(ready, end[i])
        return ready

    def take(self, at: float, took: float) -> None:
        """Book the time; nothing may run across what takes none."""
        # intervals do not overlap, so sorting both lists keeps them paired
        insort(self.start, at)
        insort(self.end, at + took)

    def give_back(self, at: float, took: float) -> None:
        """Undo `take`."""
        del self.start[bisect_left(self.start, at)]
        del self.end[bisect_left(self.end, at + took)]


def common_gap(way: list[Busy], ready: float, took: float) -> float:
    """Return the earliest start from `ready` on at which all links of a way are free."""
    while True:
        before = ready
        for link in way:
            ready = link.first(ready, took)
        if ready == before:
            return ready
