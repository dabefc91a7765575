"""The jobs that wait, in lines of those that need the same."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from math import inf

from gangplan.solvers.placement.online.capacity import Kind

from .accounts import ALIKE, ROOT, Amounts, QueueGroup, Rank
from .request import Request


@dataclass(frozen=True, slots=True)
class Shape:
    """What jobs of one line of the queue have in common.

    Attributes:
        kind: of their workers.
        degrees: how many workers they may have.
        gpus: that they hold with the most workers.
        together: whether their workers stick together.
        alone: the job's name, if which nodes it may use is its own affair; or that nobody stops for them.
        intensity: of communication, where it says for which places they wait.
        whom: the windows in which nodes are closed, but not to them.
        group: whose they are, and their class.
        asks: what they hold with the fewest workers, see `accounts.Amounts`.
        number: the hash of the others.
    """

    kind: Kind
    degrees: tuple[int, ...]
    gpus: int
    together: bool
    alone: str = ""
    intensity: float = 0.0
    whom: frozenset[str] = frozenset()
    group: QueueGroup = ALIKE
    asks: Amounts = ()
    number: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = self.kind, self.degrees, self.together, self.alone, self.intensity, self.whom, self.group
        object.__setattr__(self, "number", hash(values))

    @property
    def stage(self) -> tuple[int, Amounts, int]:
        """What it depends on when in a decision its jobs have their turn: the queue, what they ask for, the class."""
        return self.group.queue, self.asks, self.group.level

    @property
    def anyone(self) -> Shape:
        """The same without whose its jobs are."""
        return replace(self, group=QueueGroup(self.group.queue, self.group.queue, "", self.group.level))

    def __hash__(self) -> int:
        """Return the hash, computed once: lines are looked up all the time."""
        return self.number


Place = tuple[float, int, str]
"""A job's seconds, how many were submitted before it, and its name: its place in its line."""
Entry = tuple[Rank, float, int, str, Shape | None]
"""The rank of its account, its key, how many were submitted before it, its name and its line; or of an account."""


@dataclass(slots=True, eq=False)
class Alike:
    """Lines of a queue that differ only in whose they are.

    Attributes:
        shape: of one of them.
        top: see `WaitingQueue`, of their queue.
        lines: their shapes.
        workers: bundles that the gangs have, 0 until it is known.
    """

    shape: Shape
    top: int
    lines: dict[Shape, None] = field(default_factory=dict)
    workers: int = 0


class WaitingQueue:
    """Lines of jobs that need the same, each the shortest job first; ties go to who was submitted first.

    Where the first of a line does not fit, none behind it does. Jobs of a line need equally many GPUs, so that a line
    is in order whatever the exponent is.

    Attributes:
        order: the key of a job is its seconds times its GPUs to this power.
        alike: the lines by what they ask for, in which class, and the queue; then by all but whose they are.
        rank: of the account that pays for a line; the least is first, whatever the keys are.
        top: the account below the root on the way to one; the root if that makes no difference to ranks.
        open: the lines that are looked at, `None` if all are.
        stays: whether lines are still some of them.
        fresh: lines that came since these were chosen.
    """

    def __init__(
        self, order: float, rank: Callable[[int], Rank] = lambda _: (), top: Callable[[int], int] = lambda _: ROOT
    ) -> None:
        self.order, self.rank, self.top = order, rank, top
        self.open: Collection[Alike | Shape] | None = None
        self.stays: Callable[[Alike | Shape], bool] = lambda _: True
        self.fresh: set[Shape] = set()
        self._gone: set[Shape] = set()  # lines that were there then, and may come back as jobs stop again
        self._former: dict[Shape, Alike] = {}
        self.alike: dict[tuple[int, Amounts, int], dict[Shape, Alike]] = {}
        self._of: dict[Shape, Alike] = {}
        self._lines: dict[Shape, list[Place]] = {}
        self._at: dict[str, tuple[Shape, Place]] = {}
        self._entries: dict[Shape, tuple[Rank, Place, float, Entry]] = {}  # kept while nothing of them changes
        self._heads: list[tuple[Place, Shape]] = []  # the first of each line, ascending

    def add(self, request: Request, shape: Shape, seconds: float) -> None:
        """Let a job wait."""
        place = seconds, request.serial, request.name
        if shape not in self._lines:
            self._lines[shape] = []
            kind = shape.anyone
            some = self.alike.setdefault(shape.stage, {})
            if kind not in some:
                former = self._former.pop(kind, None)
                some[kind] = former or Alike(shape, self.top(shape.group.queue))
            self._of[shape] = some[kind]
            self._of[shape].lines[shape] = None
            if shape in self._gone:
                self._gone.remove(shape)
            else:
                self.fresh.add(shape)
        line = self._lines[shape]
        insort(line, place)
        self._at[request.name] = shape, place
        if line[0] is place:
            if len(line) > 1:
                self._behead(line[1])
            insort(self._heads, (place, shape))

    def remove(self, name: str) -> None:
        """Take a job out."""
        shape, place = self._at.pop(name)
        line = self._lines[shape]
        at = bisect_left(line, place)
        del line[at]
        if not at:
            self._behead(place)
        if line:
            if not at:
                insort(self._heads, (line[0], shape))
            return
        del self._lines[shape]
        alike, some = self._of.pop(shape), self.alike[shape.stage]
        del alike.lines[shape]
        if shape in self.fresh:
            self.fresh.remove(shape)
        else:
            self._gone.add(shape)
        self._entries.pop(shape, None)
        if not alike.lines:
            self._former[shape.anyone] = some.pop(shape.anyone)
        if not some:
            del self.alike[shape.stage]

    def settle(self) -> None:
        """Have the lines be chosen from that are there now."""
        self.fresh.clear()
        self._gone.clear()
        self._former.clear()

    def of(self, shape: Shape) -> Alike:
        """Return the lines that are like one."""
        return self._of[shape]

    def head(self, shape: Shape) -> str:
        """Return the name of the first job of a line."""
        return self._lines[shape][0][2]

    def shows(self, shape: Shape) -> bool:
        """Return whether a line is looked at."""
        some = self.open
        return some is None or ((self._of[shape] in some or shape in some) and shape not in self.fresh)

    def _behead(self, place: Place) -> None:
        """Note that a job is not the first of its line any more."""
        del self._heads[bisect_left(self._heads, (place,))]

    def ripe(self, most: float) -> list[Shape]:
        """Return the lines whose first has no more than so many seconds."""
        return [shape for _, shape in self._heads[: bisect_left(self._heads, ((most, inf),))]]

    def entry(self, shape: Shape, place: Place) -> Entry:
        """Return where a job of a line stands among the first ones of all lines."""
        rank, kept = self.rank(shape.group.leaf), self._entries.get(shape)
        if kept is not None and kept[0] is rank and kept[1] is place and kept[2] == self.order:
            return kept[3]
        entry = rank, place[0] * shape.gpus**self.order, *place[1:], shape
        self._entries[shape] = rank, place, self.order, entry
        return entry

    def lines(self) -> list[tuple[Shape, list[str]]]:
        """Return the lines, and the names of their jobs."""
        return [(shape, [name for _, _, name in line]) for shape, line in self._lines.items()]

    def shapes(self) -> Collection[Shape]:
        """Return what tells the lines apart; a view."""
        return self._lines.keys()

    def key(self, name: str) -> float:
        """Return the key of a job."""
        shape, place = self._at[name]
        return float(place[0] * shape.gpus**self.order)

    def place(self, name: str) -> tuple[Shape, Place]:
        """Return the line of a job, and its place there."""
        return self._at[name]

    def some(self, count: int) -> list[tuple[Shape, list[Place]]]:
        """Return the lines whose first jobs have the least seconds, whatever waited before."""
        return [(shape, self._lines[shape]) for _, shape in self._heads[:count]]


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
            top = each.top if isinstance(each, Alike) else queue.top(each.group.queue)
            self._below.setdefault(top, []).append(each)
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
