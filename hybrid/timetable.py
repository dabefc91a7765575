"""Lay out a solve: which method runs when, where and why. Nothing runs here, and no clock is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .table import Entry

PROCESS = 0.04
"""Seconds left from which on a method is worth a process of its own."""
SHORT = 0.5
"""Seconds left below which shares are larger, or they would be too small for anything.

Without this `auto` with 0.1 s is 23 and 6% worse on placements of 8 and 40 nodes.
"""
_QUICK_SHARE = 0.5
"""Least share of a quick method where time is short."""

HERE, THREAD, CHILD, BESIDE, ALONE = "here", "thread", "child", "beside", "alone"
QUICK, REGISTERED = "quick", "registered"
NO_PROCESS = "no time for a process of its own"


@dataclass(frozen=True, slots=True, eq=False)
class TimetableSlot:
    """A method's place in a timetable.

    Attributes:
        entry: the method.
        where, why, begin, end: as `Turn` has them.
        share: of the time left that it may take.
    """

    entry: Entry
    where: str = THREAD
    why: str = ""
    begin: float = 0.0
    end: float = 0.0
    share: float = 1.0

    @property
    def given(self) -> Entry:
        """The entry with its share in this timetable."""
        return replace(self.entry, share=self.share)


@dataclass(frozen=True, slots=True)
class Situation:
    """What a timetable depends on besides the time.

    Attributes:
        entries: of the table that are for the problem, in its order, or the one that was asked for.
        cores: that the solve may use.
        unfit: why methods cannot run at all, by name.
        serves: whether the system has processes for methods.
        named: whether the method was asked for by name.
    """

    entries: Sequence[Entry]
    cores: int = 1
    unfit: Mapping[str, str] = field(default_factory=dict)
    serves: bool = True
    named: bool = False


@dataclass(frozen=True, slots=True)
class Timetable:
    """Slots in their order, and why other methods have none for want of time."""

    slots: tuple[TimetableSlot, ...]
    late: Mapping[str, str] = field(default_factory=dict)


def timetable(s: Situation, now: float, end: float, done: Sequence[Entry] = ()) -> Timetable:
    """Lay out the time from `now` to `end`, seconds since the call, without the entries that are `done`.

    First come quick methods, then registered ones, each alone in a process, then the table: searches in threads,
    solvers and what only proves bounds in a process. What needs more seconds than are left goes last.
    """
    left = end - now
    if s.named:
        (entry,) = s.entries
        where = _where(s, entry) if entry.added or entry.child or left >= SHORT else THREAD
        late = {entry.name: NO_PROCESS} if entry.added and left < PROCESS else {}
        slot = TimetableSlot(entry, where, "asked for by name", now, end)
        return Timetable(() if done or late or s.unfit else (slot,), late)
    queue, late = _queue(s, left, done)
    beside = [x for x in queue if x.beside and s.serves and s.cores > 1 and left >= max(SHORT, x.least)]
    queue = [x for x in queue if x not in beside]
    slots, at, first = list[TimetableSlot](), now, 0
    for i, entry in enumerate(queue):
        is_quick = _is_quick(entry, left)
        where = THREAD if is_quick else _where(s, entry)
        if where == CHILD and left < PROCESS:
            late[entry.name] = NO_PROCESS
            continue
        share = _share(entry, left)
        over = (end - at) * (1 - share)
        others = (x for x in queue[i + 1 :] if x.name != entry.name)
        # all that is left, if no other one could begin with what it would leave
        if not (is_quick or any(_can_follow(x, left, over) for x in others)):
            share, over = 1.0, 0.0
        why = QUICK if is_quick else REGISTERED if entry.added else "its turn"
        slots.append(TimetableSlot(entry, where, why, at, end - over, share))
        at = end - over
        first += is_quick or entry.added
    begin = slots[first].begin if first < len(slots) else at
    aside = [TimetableSlot(entry, BESIDE, "only proves bounds", begin, end) for entry in beside]
    return Timetable((*slots[:first], *aside, *slots[first:]), late)


def _queue(s: Situation, left: float, done: Sequence[Entry]) -> tuple[list[Entry], dict[str, str]]:
    """Return who has a turn, in order, and why others have none for want of time."""
    queue, late = list[Entry](), dict[str, str]()
    waiting = (x for x in s.entries if not any(x is y for y in done) and x.name not in s.unfit)
    for entry in sorted(waiting, key=lambda x: (2 - x.added - 2 * _is_quick(x, left), left < x.least)):
        if entry.learned and left < entry.least:
            late[entry.name] = "no time to encode the problem"
        elif entry.added and left < PROCESS:
            late[entry.name] = NO_PROCESS
        elif queue and queue[-1].name == entry.name:
            queue[-1] = entry  # its search is as long as it has time
        elif queue or not done or done[-1].name != entry.name:
            queue.append(entry)
    return queue, late


def _where(s: Situation, entry: Entry) -> str:
    """Return where a method has its turn."""
    return ALONE if entry.added else CHILD if s.serves and entry.foreign else THREAD


def _is_quick(entry: Entry, left: float) -> bool:
    """Return whether a method runs here before all others."""
    return entry.quick and left >= entry.least and (entry.alone or not entry.foreign)


def _share(entry: Entry, left: float) -> float:
    """Return what a method may take of the time left: more if that is little."""
    if left >= SHORT:
        return entry.share
    if entry.quick and left >= entry.least:
        return max(entry.share, _QUICK_SHARE if left >= PROCESS else 1.0)
    return max(entry.share, entry.short)


def _can_follow(entry: Entry, left: float, over: float) -> bool:
    """Return whether a method could begin with what is left over for it."""
    return left >= entry.least and (over >= PROCESS or not entry.foreign)
