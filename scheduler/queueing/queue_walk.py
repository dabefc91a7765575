"""Go through a queue: the least key of the lines that are open, job by job."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf

from .accounts import ROOT
from .queue import Alike, Entry, Place, Shape, WaitingQueue


class QueueWalk:
    """One pass over a queue: always the least key of those lines that are still open.

    Lines below an account are looked at when it is its turn. Some lines may be left out then, to come back when
    something is freed, unless by then it would have been their turn.

    Args:
        queue: jobs may be taken out of it while the pass goes on.
        some: the lines, by default those that are open.
        idle: whether it makes no difference to look at lines until something is freed.
    """

    def __init__(
        self,
        queue: WaitingQueue,
        some: Iterable[Alike | Shape] | None = None,
        idle: Callable[[Alike], bool] | None = None,
    ) -> None:
        self._queue, self._lines, self._at, self._idle = queue, queue._lines, queue._at, idle or (lambda _: False)
        self._seen: set[Shape] = set()
        self._left: list[Alike] = []  # out
        self._heap: list[Entry] = []
        self._last: Entry | None = None
        some = queue.open if some is None else some
        if some is None:
            some = [alike for kinds in queue.alike.values() for alike in kinds.values()]
        self._below: dict[int, list[Alike | Shape]] = {}
        for each in some:
            group = (each.shape if isinstance(each, Alike) else each).group
            self._below.setdefault(queue.top(group.queue), []).append(each)
        self._heap = self._look(self._below.pop(ROOT, []))
        self._heap += [(queue.rank(number), -inf, number, "", None) for number in self._below]
        heapify(self._heap)

    def next(self) -> tuple[Shape, str] | None:
        """Return the next job and its line, which is closed unless `again` or `skip` is called."""
        while self._heap:
            rank, _, number, name, shape = entry = heappop(self._heap)
            if shape is not None and not self._queue.stays(shape):
                continue
            if (now := self._queue.rank(number if shape is None else shape.group.leaf)) > rank:  # it got more meanwhile
                heappush(self._heap, (now, *entry[1:]))
                continue
            if shape is None:
                for each in self._look(self._below.pop(number)):
                    heappush(self._heap, each)
                continue
            self._last, self._place = entry, self._at[name][1]
            return shape, name
        return None

    def _look(self, some: Iterable[Alike | Shape]) -> list[Entry]:
        """Return the first of lines, but of those that are idle."""
        shapes = list[Shape]()
        for each in some:
            if isinstance(each, Shape):
                shapes.append(each)
            elif self._idle(each):
                self._left.append(each)
            else:
                shapes += each.lines
        return self._entries(shapes)

    def _entries(self, shapes: Iterable[Shape]) -> list[Entry]:
        queue, found = self._queue, list[Entry]()
        hidden = queue.fresh if queue.open is not None else ()
        for shape in shapes:
            if shape not in self._seen and shape in self._lines and shape not in hidden:
                self._seen.add(shape)
                found.append(queue.entry(shape, self._lines[shape][0]))
        return found

    def thaw(self) -> None:
        """Look at all lines whose turn is still to come: something is about to be freed."""
        some = [each for below in self._below.values() for each in below]
        self._below = {}
        rest = [each for each in self._heap if each[4] is not None]
        for each in some:
            rest += self._entries((each,) if isinstance(each, Shape) else list(each.lines))
        left = self._entries([shape for alike in self._left for shape in alike.lines])
        self._left = []
        self._heap = rest + [each for each in left if self._last is None or each > self._last]
        heapify(self._heap)

    def close(self) -> None:
        """Have lines that were left out be looked at later where they are for later now."""
        for alike in self._left:
            self._queue.stays(alike)

    def again(self, shape: Shape) -> None:
        """Go on with a line whose first job was taken out."""
        if jobs := self._lines.get(shape):
            self._push(jobs[0], shape)

    def skip(self, shape: Shape, more: int = 0) -> None:
        """Go on with a line behind the job that was returned last, and behind so `more` of it."""
        jobs = self._lines.get(shape, [])
        at = bisect_right(jobs, self._place) + more
        if at < len(jobs):
            self._push(jobs[at], shape)

    def behind(self, shape: Shape) -> list[str]:
        """Return the names of those of a line behind the job that was returned last."""
        jobs = self._lines[shape]
        return [name for _, _, name in jobs[bisect_right(jobs, self._place) :]]

    def _push(self, place: Place, shape: Shape) -> None:
        heappush(self._heap, self._queue.entry(shape, place))


def in_order(queue: WaitingQueue) -> Iterator[str]:
    """Yield the names of all jobs in the order of their keys."""
    walk = QueueWalk(queue)
    while head := walk.next():
        yield head[1]
        walk.skip(head[0])
