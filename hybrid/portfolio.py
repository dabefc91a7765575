"""Plan who has which part of the time, and carry it out; plan anew with what quick and registered methods leave."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import takewhile
from queue import Empty
from typing import Any, NamedTuple

from gangplan.solvers.method import suite
from gangplan.solvers.processes import POLL, can_serve, can_thread
from gangplan.solvers.run import Run, in_time

from .guard import ALONE, BESIDE, CHILD, PROCESS, THREAD, Heard, Performer, Process, Searcher, TimetableSlot
from .table import Entry, entry_for, parts, suited
from .worker import reason

SHORT = 0.5
"""Seconds left below which shares are larger, or they would be too small for anything.

Without this `auto` with 0.1 s is 23 and 6% worse on placements of 8 and 40 nodes.
"""
_QUICK_SHARE = 0.5
"""Least share of a quick method where time is short."""
_LARGE = 100_000
"""Parts of a problem from which on a draft comes first: preparing may take all of the time, and a draft some of it.

Drawn up after the time is up, the draft of 150,000 ops makes an answer due after 1 s come at 1.6 s instead of 1.3.
"""
_EXHAUSTED = 1e-3
"""Seconds of a round of searches below which another round, with other random numbers, is not worth its start."""
_INTERRUPTED = 0.5
"""Seconds that a method may take to stop on Ctrl-C."""
_TRIES = 2
"""Processes to begin until one is ready."""
_PATIENCE = 0.1
"""Share of the time left for which a process that is not ready is waited for before a search goes first."""
_AHEAD = 0.08
"""Seconds left from which on a process is begun before its first turn: with less it takes time from what runs."""
_LAST = 0.02
"""Share of the limit that methods may take to stop once it is over."""
_COLLECTS, _MANY = 1.0, 10_000
"""Seconds of a limit below which no garbage is collected, as many times as the problem has so many parts.

Collecting takes a tenth of a short solve, a third of a large problem's.
"""
QUICK, REGISTERED = "quick", "registered"
NO_PROCESS = "no time for a process of its own"


class Timetable(NamedTuple):
    """Slots in their order, and why other methods have none for want of time."""

    slots: tuple[TimetableSlot, ...]
    late: Mapping[str, str]


def run_methods(run: Run, method: str) -> None:
    """Run `method`, or for ``auto`` the methods that suit the problem, until the run has stopped."""
    crew = Crew(run, method)
    with _uncollected(run):
        try:
            with in_time(run):
                if parts(run.problem) > _LARGE:
                    crew.draft()
                crew.prepare()
                if not run.infeasible:
                    crew.carry_out()
        except KeyboardInterrupt:
            crew.last_words(_INTERRUPTED)
            crew.draft()
            raise
        finally:
            crew.end()
        if run.stop_reason in (None, "time limit"):
            crew.draft()


class Crew:
    """Who is at work on one problem: this thread, which listens to the others most of the time, and those.

    Attributes:
        prepared: what the suite has made of the problem; `None` if a thread that is left behind may still change it.
    """

    def __init__(self, run: Run, name: str) -> None:
        self.run, self.named = run, name != "auto"
        self.entries = [entry_for(run.problem, name, bare=run.bare)] if self.named else suited(run.problem)
        self.timetable, self.why = Timetable((), {}), dict[str, str]()
        self.prepared: Any = None
        self._heard, self._at_work = Heard(), list[Performer]()
        self._child: Process | None = None

    def prepare(self) -> None:
        """Have the suite make of the problem what all methods share."""
        with self.run.phase("prepare"):
            self.prepared = suite(self.run.problem.objective).prepared(self.run)

    def draft(self) -> None:
        """Draw up a plan if there is none."""
        run = self.run
        if run.plan is None and not (run.infeasible or run.bare):
            with run.phase("draft"), suppress(TimeoutError):
                suite(run.problem.objective).draft(run, self.prepared)

    def survey(self) -> None:
        """Note which methods cannot run; quick ones are no loss."""
        self.why = {entry.name: words for entry in self.entries if (words := unfit(entry, self.prepared))}
        for entry in self.entries:
            if entry.name in self.why and not entry.quick:
                self.run.leave_out(entry.name, self.why[entry.name])

    def plan(self, now: float, end: float, done: Sequence[Entry] = ()) -> Timetable:
        """Return the timetable from `now` to `end`, seconds since the call."""
        entries = [entry for entry in self.entries if entry.name not in self.why]
        return timetable(entries, now, end, done, cores=self.run.workers, serves=can_serve(), named=self.named)

    def carry_out(self) -> None:
        """Run the slots in turn, and renew the timetable after quick and after registered ones, not amid the others.

        There, what had time enough when it was planned would lose its turn with the time that the others take.
        """
        run, done, drawn, early = self.run, list[Entry](), list[TimetableSlot](), True
        self.survey()
        while early and not run.stopped:
            self.timetable = self.plan(run.seconds(), run.deadline - run.started, done)
            slots = self.timetable.slots
            first = [*takewhile(lambda x: x.why == slots[0].why in (QUICK, REGISTERED), slots)]  # noqa: B023
            early, queue = bool(first), deque(first or slots)
            if not any(slot.entry.alone for slot in first):
                self.begin_process([slot.entry for slot in slots if slot.where == CHILD])
            if not early:
                for name, words in self.timetable.late.items():
                    run.leave_out(name, words, late=True)
                if not self.named:
                    self.draft()  # for searches to start from
            drawn += [slot for slot in queue if slot.entry.does.draws and not self.named]
            while queue and not run.stopped:
                slot = queue.popleft()
                search = next((i for i, x in enumerate(queue) if x.where == THREAD), None)
                if slot.where == CHILD and search is not None and not self.is_ready(slot):
                    queue.insert(search + 1, slot)
                else:
                    done.append(slot.entry)
                    self.take_turn(slot)
        self._draw_on(drawn)
        if not run.stopped:
            self.attend()

    def _draw_on(self, slots: Sequence[TimetableSlot]) -> None:
        """Run searches that draw again and again, with other random numbers, until the run has stopped."""
        run, seed, spent = self.run, self.run.seed, 1.0
        try:
            while not run.stopped:
                slots = [slot for slot in slots if slot.entry.name not in run.left_out]
                if spent < _EXHAUSTED * len(slots) or not slots:
                    break
                since = time.perf_counter()
                run.seed = (run.seed + 1) % 2**31
                for slot in slots:
                    if not run.stopped:
                        self.take_turn(slot)
                spent = time.perf_counter() - since
        finally:
            run.seed = seed

    def begin_process(self, solvers: Sequence[Entry]) -> None:
        """Begin a process, which prepares beside the first methods, if a solver is to have a turn."""
        if solvers and self._child is None and self.run.remaining() >= _AHEAD:
            with suppress(OSError):  # which is noted when its turn comes
                self._child = self._process(min(solvers, key=lambda x: not x.does.library))

    def is_ready(self, slot: TimetableSlot) -> bool:
        """Return whether the process is ready within a moment, if one can be had: else a search goes first."""
        with suppress(OSError):  # which is noted when its turn comes
            who, until = self._performer(slot), time.perf_counter() + _PATIENCE * self.run.remaining()
            while isinstance(who, Process) and not (who.ready or who.gone or self.run.stopped):
                if (left := until - time.perf_counter()) <= 0:
                    return False
                self._listen(min(POLL, left))
        return True

    def take_turn(self, slot: TimetableSlot) -> None:
        """Have a method run, and listen until it is over, or until it has begun if that is beside the others."""
        run, why = self.run, "it ends at once"
        if slot.where != THREAD and run.remaining() < PROCESS:
            run.leave_out(slot.entry.name, NO_PROCESS, late=True)
            return
        self._at_work = [who for who in self._at_work if who.slot is not None]
        for _ in range(_TRIES):
            try:
                who = self._performer(slot)
                who.start(slot)
            except TimeoutError:  # preparing again has taken the time that was left; it is an OSError, too
                raise
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                break
            self._at_work.append(who)
            if slot.where != BESIDE:
                self.attend(who)
            if not who.gone or who.slot is None or run.stopped:
                return
            self._at_work.remove(who)
        library = slot.entry.does.library
        run.note(f"no process could be begun ({why}): methods run in this one")
        if slot.entry.added or slot.where == BESIDE:
            run.leave_out(slot.entry.name, "no process of its own, and this one is not to be risked", late=True)
        elif library and not can_thread(run.workers + 1):
            run.leave_out(slot.entry.name, f"no threads for {library} to start", late=True)
        else:
            self.take_turn(replace(slot, where=THREAD, why="no process to be had"))

    def _performer(self, slot: TimetableSlot) -> Performer:
        if slot.where == THREAD:
            if self.prepared is None:
                self.prepare()
            return Searcher(self.run, self._heard, self.prepared, named=self.named)
        if slot.where != CHILD:
            return self._process(slot.entry)
        if self._child is None or self._child.gone:
            self._child = self._process(slot.entry)
        return self._child

    def _process(self, entry: Entry) -> Process:
        return Process(self.run, self._heard, entry, named=self.named)

    def attend(self, *awaited: Performer) -> None:
        """Listen to all who are at work until some, or all of them, are done, as long as the run has not stopped."""
        run, awaited = self.run, awaited or tuple(self._at_work)
        while not run.stopped and any(who.slot is not None and not who.gone for who in awaited):
            self._listen(min(POLL, run.remaining()))
        if run.stopped and run.stop_reason != "callback":
            self.last_words(min(POLL, max(run.remaining(), _LAST * (run.deadline - run.started))))
        if any(isinstance(who, Searcher) and (who.gone or who.slot is not None) for who in awaited):
            self.prepared = None

    def _listen(self, seconds: float) -> None:
        """Take what is said within so many seconds, and give up who has had its time."""
        with suppress(Empty):
            who, message = self._heard.get(timeout=seconds)
            who.listen(message)
        for who in self._at_work:
            who.watch()

    def last_words(self, seconds: float) -> None:
        """Have all who are at work stop, and wait a moment for what they say in the end."""
        until = time.perf_counter() + seconds
        for who in self._at_work:
            who.stop()
        while any(who.slot is not None and not who.gone for who in self._at_work):
            if (left := until - time.perf_counter()) <= 0:
                break
            self._listen(left)

    def end(self) -> None:
        """End all who are at work, and say why who has not begun did not."""
        for who in (*self._at_work, *([self._child] if self._child else ())):
            who.end()
        ran = {turn.method for turn in self.run.turns.values()}
        waiting = dict.fromkeys((slot.entry.name for slot in self.timetable.slots), "the solve ended before its turn")
        for name, why in {**self.why, **self.timetable.late, **waiting}.items():
            if name not in ran:
                self.run.left_out.setdefault(name, why)


@contextmanager
def _uncollected(run: Run) -> Iterator[None]:
    """Let the garbage collector rest where there is little time."""
    short = run.deadline - run.started < _COLLECTS * max(1.0, parts(run.problem) / _MANY)
    rests = short and gc.isenabled()
    if rests:
        gc.disable()
    try:
        yield
    finally:
        if rests:
            gc.enable()


def unfit(entry: Entry, prepared: Any) -> str:
    """Return why a method cannot run at all, nothing if it can."""
    try:
        suits = entry.does.suits(prepared)
    except Exception as error:
        return reason(error)
    if not suits:
        return "it does not model all of the problem, or its model would be too large"
    if entry.added and not can_serve():
        return "no process of its own on this system, and this one is not to be risked"
    return "" if entry.does.installed else f"{entry.does.library} is not installed"


def timetable(
    entries: Sequence[Entry],
    now: float,
    end: float,
    done: Sequence[Entry] = (),
    *,
    cores: int = 1,
    serves: bool = True,
    named: bool = False,
) -> Timetable:
    """Lay out the time from `now` to `end`, seconds since the call, without the entries that are `done`.

    First come quick methods, then registered ones, each alone in a process, then the table: searches in threads,
    solvers and what only proves bounds in a process. What needs more seconds than are left goes last.

    Args:
        cores: that the solve may use.
        serves: whether the system has processes for methods.
        named: whether the method was asked for by name.
    """
    left, late, queue = end - now, dict[str, str](), list[Entry]()
    waiting = [x for x in entries if not any(x is y for y in done)]
    for entry in sorted(waiting, key=lambda x: (2 - x.added - 2 * _is_quick(x, left), left < x.least)):
        if entry.learned and left < entry.least:
            late[entry.name] = "no time to encode the problem"
        elif entry.added and left < PROCESS:
            late[entry.name] = NO_PROCESS
        elif queue and queue[-1].name == entry.name:
            queue[-1] = entry  # its search is as long as it has time
        elif queue or not done or done[-1].name != entry.name:
            queue.append(entry)
    aside = serves and cores > 1 and not named
    beside = [x for x in queue if aside and x.beside and left >= max(SHORT, x.least)]
    queue = [x for x in queue if x not in beside]
    slots, at, first = list[TimetableSlot](), now, 0
    for i, entry in enumerate(queue):
        is_quick, foreign = _is_quick(entry, left), serves and entry.foreign
        foreign = foreign and (entry.child or left >= SHORT or not named)
        where = THREAD if is_quick else ALONE if entry.added else CHILD if foreign else THREAD
        if where == CHILD and left < PROCESS:
            late[entry.name] = NO_PROCESS
            continue
        share = _share(entry, left)
        over = (end - at) * (1 - share)
        others = (x for x in queue[i + 1 :] if x.name != entry.name)
        # all that is left, if no other one could begin with what it would leave
        if not (is_quick or any(left >= x.least and (over >= PROCESS or not x.foreign) for x in others)):
            share, over = 1.0, 0.0
        why = "asked for by name" if named else QUICK if is_quick else REGISTERED if entry.added else "its turn"
        slots.append(TimetableSlot(entry, where, why, at, end - over, share))
        at = end - over
        first += is_quick or entry.added
    begin = slots[first].begin if first < len(slots) else at
    proofs = [TimetableSlot(entry, BESIDE, "only proves bounds", begin, end) for entry in beside]
    return Timetable((*slots[:first], *proofs, *slots[first:]), late)


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
