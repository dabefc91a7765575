"""A reservation for the first job that does not fit: nobody behind it may delay it (EASY; Lifka, JSSPP 1995)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from gangplan.solvers.placement.online.rooms import Room

from .book import Book, Stint


class Ends:
    """The running jobs in the order in which they are expected to end."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, int, str]] = []

    def add(self, stint: Stint) -> None:
        """Note a job that starts."""
        insort(self._ends, (stint.end, stint.request.serial, stint.request.name))

    def remove(self, stint: Stint) -> None:
        """Note a job that stops."""
        del self._ends[bisect_left(self._ends, (stint.end, stint.request.serial, stint.request.name))]

    def __iter__(self) -> Iterator[tuple[float, int, str]]:
        """Yield (end, serial, name)."""
        return iter(self._ends)


class Reservation:
    """When a gang fits if nobody else starts, and how much room it then has to spare.

    It looks at GPUs only. A job that runs longer than expected is taken to end now.

    Args:
        room: for its workers now.
        workers: how many it has.
        book, ends: what runs.
        free: idle GPUs of each node, int64 (m,).

    Attributes:
        time: when it fits, infinite if it never does.
    """

    def __init__(self, room: Room, workers: int, book: Book, ends: Ends, free: np.ndarray) -> None:
        self._need = max(1, room.kind.need[0])
        self._free, self._workers = free, workers
        self._more: defaultdict[int, int] = defaultdict(int)
        self._total = room.total
        self.time = np.inf
        for end, _, name in ends:
            if self._total >= workers and end > self.time:
                break
            self._free_up(book.running[name].nodes)
            self.time = max(end, book.now)
        if self._total < workers:
            self.time = np.inf

    def _free_up(self, nodes: Mapping[int, tuple[int, ...]]) -> None:
        for node, gpus in nodes.items():
            before = self._later(node)
            self._more[node] += len(gpus)
            self._total += self._later(node) - before

    def _later(self, node: int) -> int:
        """Return how many workers a node takes then."""
        return (int(self._free[node]) + self._more[node]) // self._need

    def stands(self, nodes: Mapping[int, tuple[int, ...]], end: float) -> bool:
        """Return whether it stands if a job, already seated on these GPUs, runs to `end`; if so that is noted."""
        if self.time == np.inf:
            return True
        if end <= self.time:
            for node, gpus in nodes.items():
                self._more[node] += len(gpus)  # they are free again by then
            return True
        lost = 0
        for node, gpus in nodes.items():
            now = int(self._free[node]) + self._more[node]
            lost += (now + len(gpus)) // self._need - now // self._need
        if self._total - lost < self._workers:
            return False
        self._total -= lost
        return True
