"""The jobs that wait, in lines of those that need the same: where the first does not fit, none behind it does."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from gangplan.solvers.placement.online.rooms import Kind

from .job import Request


@dataclass(frozen=True, slots=True)
class Shape:
    """What jobs of one line have in common.

    Attributes:
        kind: of their workers.
        degrees: how many workers they may have.
        gpus: that they hold with the most workers.
        alone: the job's name, if which nodes it may use is its own affair.
    """

    kind: Kind
    degrees: tuple[int, ...]
    gpus: int
    alone: str = ""


Place = tuple[float, int, str]
"""A job's seconds, how many were submitted before it, and its name: its place in its line."""


class Line:
    """The lines, each the shortest job first; ties go to who was submitted first.

    Jobs of a line need equally many GPUs, so that a line is in order whatever the exponent is.

    Attributes:
        order: the key of a job is its seconds times its GPUs to this power.
    """

    def __init__(self, order: float) -> None:
        self.order = order
        self._lines: dict[Shape, list[Place]] = {}
        self._at: dict[str, tuple[Shape, Place]] = {}

    def __len__(self) -> int:
        return len(self._at)

    def add(self, request: Request, shape: Shape, seconds: float) -> None:
        """Let a job wait."""
        place = seconds, request.serial, request.name
        insort(self._lines.setdefault(shape, []), place)
        self._at[request.name] = shape, place

    def remove(self, name: str) -> None:
        """Take a job out."""
        shape, place = self._at.pop(name)
        line = self._lines[shape]
        del line[bisect_left(line, place)]
        if not line:
            del self._lines[shape]

    def shape(self, name: str) -> Shape:
        """Return what line a job is in."""
        return self._at[name][0]

    def key(self, name: str) -> float:
        """Return the key of a job."""
        shape, place = self._at[name]
        return float(place[0] * shape.gpus**self.order)

    def shapes(self) -> Iterator[Shape]:
        """Return what lines there are."""
        return iter(self._lines)

    def first(self, count: int) -> list[str]:
        """Return the names of the first jobs of all lines, in the order of their keys."""
        walk = Walk(self)
        names: list[str] = []
        while len(names) < count and (head := walk.next()):
            names.append(head[1])
            walk.ahead(head[0])
        return names


class Walk:
    """One pass over the lines: always the least key of those lines that are still open.

    Args:
        line: the lines; jobs may be taken out while it goes on.
        skip: lines that are closed from the start.
    """

    def __init__(self, line: Line, skip: frozenset[Shape] | set[Shape] = frozenset()) -> None:
        self._line = line
        self._weight = {shape: shape.gpus**line.order for shape in line._lines}
        self._heap = [
            (jobs[0][0] * self._weight[shape], *jobs[0][1:], shape)
            for shape, jobs in line._lines.items()
            if shape not in skip
        ]
        heapify(self._heap)

    def next(self) -> tuple[Shape, str] | None:
        """Return the next job and its line, which is closed unless `again` or `ahead` is called."""
        if not self._heap:
            return None
        _, _, name, shape = heappop(self._heap)
        self._place = self._line._at[name][1]
        return shape, name

    def again(self, shape: Shape) -> None:
        """Go on with a line whose first job was taken out."""
        jobs = self._line._lines.get(shape)
        if jobs:
            self._push(jobs[0], shape)

    def ahead(self, shape: Shape) -> None:
        """Go on with a line behind the job that was returned last, which stays."""
        jobs = self._line._lines[shape]
        at = bisect_left(jobs, self._place) + 1
        if at < len(jobs):
            self._push(jobs[at], shape)

    def _push(self, place: Place, shape: Shape) -> None:
        heappush(self._heap, (place[0] * self._weight[shape], *place[1:], shape))
