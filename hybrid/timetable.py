"""Lay out a solve: which method runs when, where and why. Nothing runs here, and no clock is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .table import Entry

PROCESS = 0.04
"""Seconds left from which on a worker is worth asking for."""
SHORT = 0.5
"""Seconds left below which shares are larger, or they would be too small for anything.

Without this `auto` with 0.1 s is 23 and 6% worse on placements of 8 and 40 nodes.
"""
_QUICK_SHARE = 0.5
"""Least share of a quick method where time is short."""

HERE, WORKER, BESIDE, ALONE = "here", "worker", "beside", "alone"
_NO_PROCESS = "no time for a process of its own"
_WHY = {WORKER: "its turn", BESIDE: "only proves bounds", ALONE: "registered"}


@dataclass(frozen=True, slots=True, eq=False)
class TimetableSlot:
    """A method's place in a timetable.

    Attributes:
        entry: the method.
        where, why, begin, end: as `Turn` has them.
        share: of the time left that it may take.
    """

    entry: Entry
    where: str = WORKER
    why: str = ""
    begin: float = 0.0
    end: float = 0.0
    share: float | None = None

    @property
    def given(self) -> Entry:
        """The entry with its share in this timetable."""
        return self.entry if self.share is None else replace(self.entry, share=self.share)


@dataclass(frozen=True, slots=True)
class Situation:
    """What a timetable depends on besides the time.

    Attributes:
        entries: of the table that are for the problem, in its order, or the one that was asked for.
        cores: that the solve may use.
        unfit: why methods cannot run at all, by name.
        local: methods that can begin in this process at once, and look at the clock all the time.
        serves: whether the system has workers.
        asked: whether a worker has been asked for.
        named: whether the method was asked for by name.
    """

    entries: Sequence[Entry]
    cores: int = 1
    unfit: Mapping[str, str] = field(default_factory=dict)
    local: frozenset[str] = frozenset()
    serves: bool = True
    asked: bool = True
    named: bool = False


@dataclass(frozen=True, slots=True)
class Timetable:
    """Slots in their order, and why other methods have none: for good, or for want of time."""

    slots: tuple[TimetableSlot, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    late: Mapping[str, str] = field(default_factory=dict)


def timetable(s: Situation, now: float, end: float, done: Sequence[Entry] = ()) -> Timetable:
    """Lay out the time from `now` to `end`, seconds since the call, without the entries that are `done`.

    First come quick methods here, then registered ones, each alone, then the table: here while no worker has been
    asked for, then in the worker. What needs more seconds than are left goes last.
    """
    left = end - now
    if s.named:
        (entry,) = s.entries
        where = WORKER if s.asked else ALONE if entry.added else HERE
        late = {entry.name: _NO_PROCESS} if where == ALONE and left < PROCESS else {}
        slot = TimetableSlot(entry, where, "asked for by name", now, end, 1.0)
        return Timetable(() if done or late or s.unfit else (slot,), s.unfit, late)
    queue, late = _queue(s, left, done)
    beside = [x for x in queue if x.beside and s.asked and s.cores > 1 and left >= max(SHORT, x.least)]
    queue = [x for x in queue if x not in beside]
    ours, workers, at = list[TimetableSlot](), list[TimetableSlot](), now
    for i, entry in enumerate(queue):
        where = ALONE if entry.added else HERE if not workers and _stays(s, entry, left) else WORKER
        if where == WORKER and not s.asked and end - at < PROCESS:
            late[entry.name] = _NO_PROCESS
            continue
        share = _share(entry, left)
        over = (end - at) * (1 - share)
        others = (x for x in queue[i + 1 :] if x.name != entry.name)
        # all that is left, if no other one could begin with what it would leave
        is_first = _is_first(s, entry, left)
        if not (is_first or any(_can_follow(s, x, left, over) for x in others)):
            share, over = 1.0, 0.0
        why = _WHY.get(where) or ("quick" if is_first else "short" if s.serves else "no workers here")
        (workers if where == WORKER else ours).append(TimetableSlot(entry, where, why, at, end - over, share))
        at = end - over
    begin = workers[0].begin if workers else at
    aside = [TimetableSlot(entry, BESIDE, _WHY[BESIDE], begin, end, 1.0) for entry in beside]
    return Timetable((*ours, *aside, *workers), s.unfit, late)


def _queue(s: Situation, left: float, done: Sequence[Entry]) -> tuple[list[Entry], dict[str, str]]:
    """Return who has a turn, in order, and why others have none for want of time."""
    queue, late = list[Entry](), dict[str, str]()
    waiting = (x for x in s.entries if not any(x is y for y in done) and x.name not in s.unfit)
    for entry in sorted(waiting, key=lambda x: (2 - x.added - 2 * _is_first(s, x, left), left < x.least)):
        if entry.learned and left < entry.least:
            late[entry.name] = "no time to encode the problem"
        elif entry.added and left < PROCESS:
            late[entry.name] = _NO_PROCESS
        elif queue and queue[-1].name == entry.name:
            queue[-1] = entry  # its search is as long as it has time
        elif queue or not done or done[-1].name != entry.name:
            queue.append(entry)
    return queue, late


def _is_first(s: Situation, entry: Entry, left: float) -> bool:
    """Return whether a method makes a quick plan here before all others."""
    return entry.quick and left >= entry.least and entry.name in s.local


def _stays(s: Situation, entry: Entry, left: float) -> bool:
    """Return whether a method runs here if nobody before it has gone to the worker."""
    return not s.serves or _is_first(s, entry, left) or (not s.asked and entry.name in s.local)


def _share(entry: Entry, left: float) -> float:
    """Return what a method may take of the time left: more if that is little."""
    if left >= SHORT:
        return entry.share
    if entry.quick and left >= entry.least:
        return max(entry.share, _QUICK_SHARE if left >= PROCESS else 1.0)
    return max(entry.share, entry.short)


def _can_follow(s: Situation, entry: Entry, left: float, over: float) -> bool:
    """Return whether a method could begin with what is left over for it."""
    return left >= entry.least and (over >= PROCESS or entry.name in s.local)
