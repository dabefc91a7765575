"""Write a scheduler's log: a line for each call that changed its state, with what a decision did."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache, wraps
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gangplan.instances import InstanceError
from gangplan.instances.intake import file_name, io_error

from .values import encode, pairs

if TYPE_CHECKING:
    from ..decision import Decision
    from ..scheduler import Scheduler
    from .read import ReadLog

F = TypeVar("F", bound=Callable[..., Any])
FORMAT = 1
"""Version of the log's lines."""
_WORDS: dict[type[Exception], str] = {
    BlockingIOError: "another scheduler writes to it",
    FileExistsError: "exists: Scheduler.open goes on with it",
}
DECIDE, RESTORE = "decide", "restore"
"""Events whose lines say more than their arguments: what was decided; the whole state."""
OF_LOG = ("log", "sync", "checkpoint_every")
"""Arguments of `Scheduler` that say how its log is written, and are not in it."""


CALM = 0.3
"""Share of its deadline within which a decision ends that no clock cuts: the first cut is at 0.4 of it."""
DEADLINE = 0.05
"""Deadline of `decide` where none is given, seconds."""


class Before:
    """Keep what is known before a call, to tell what the call changed."""

    def __init__(self, scheduler: Scheduler, decides: bool) -> None:
        state = scheduler._state
        self.stale = self.is_stale(scheduler)
        if decides:
            self._promises, self._faults = dict(state.promises), dict(scheduler._watchdog.faults)
            self._undone, self._claims = state.undone, dict(state.notices.claims)
            self._kinds = 0 if state.learned is None else len(state.learned.model.kinds)
            self._thoughts = scheduler._network and scheduler._network.thoughts

    @staticmethod
    def is_stale(scheduler: Scheduler) -> bool:
        """Return whether speeds were reported that are not fitted yet."""
        learned = scheduler._state.learned
        return learned is not None and learned.model.stale

    def effects(self, scheduler: Scheduler, decision: Decision, deadline: float | None) -> dict[str, Any]:
        """Return what a decision changed, and whether another clock could have it decide otherwise."""
        state, after = scheduler._state, dict[str, Any]()
        if state.promises != self._promises:
            after["promises"] = dict(state.promises)
        if state.notices.claims != self._claims:
            after["claims"] = state.notices.claimed()
        if scheduler._watchdog.faults != self._faults:
            after["faults"] = dict(scheduler._watchdog.faults)
        if state.queue.order != state.settings.order:
            after["order"] = state.queue.order
        undone = state.undone != self._undone or any(stop.cause != "gain" for stop in decision.stops)
        if undone:
            after |= {"waiting": list(state.waiting), "running": list(state.running)}
            if state.interference is not None:
                after["weights"] = list(state.interference.recent)
        if (learned := state.learned) is not None:
            after["fits"] = self.stale and not learned.model.stale
            after["kinds"] = list(learned.model.kinds)[self._kinds :]
            after["speeds"] = learned.progress() if undone else {"seconds": learned.seconds}
        if state.sharing.halflife is not None:  # means of the past, to the last bit
            after["shares"] = [row for row in state.accounts.save() if row[2] == state.now]
        if scheduler._network is not None and scheduler._network.thoughts != self._thoughts:
            after["leader"] = scheduler._network.guard.leader
        after |= state.mending.save()
        row = {"after": after} if after else {}
        ahead = scheduler._ahead
        cut = decision.more or (ahead is not None and ahead.late)
        cut = cut or decision.seconds > CALM * (DEADLINE if deadline is None else deadline)
        return row | ({"cut": True} if cut or scheduler._asked is not None else {})


class Journal:
    """Append lines to a file, each with one call of the system, so that nothing written is lost with the process.

    What cannot be written must not keep a decision from whoever carries it out: it is a warning, and the next line that
    can be written has the whole state. With `sync` each line is on disk before the call returns.

    Attributes:
        every: lines after which the whole state follows, or as many as there are jobs if that is more; 0 for never.
        since: lines since the last whole state.
        lines: of the file.
    """

    def __init__(self, path: Any, flags: int, sync: bool, every: int) -> None:
        self.path, self.sync, self.busy, self.gap, self.stale = file_name(path), sync, False, False, False
        self.every, self.since, self.lines = every, 0, 0
        self._file = -1
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | flags, 0o666)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (OSError, ValueError) as error:
            words = (
                "is a folder: name a file" if os.path.isdir(self.path) else _WORDS.get(type(error)) or io_error(error)
            )
            raise InstanceError("log", words, self.path) from None

    @classmethod
    def begin(cls, path: Any, given: Mapping[str, Any]) -> Journal:
        """Begin a log of a scheduler that was made with these arguments."""
        journal = cls(path, os.O_CREAT | os.O_EXCL, given["sync"], given["checkpoint_every"])
        head = {"gangplan": "log", "format": FORMAT, "version": version("gangplan")}
        arguments = {key: value for key, value in given.items() if key not in ("self", *OF_LOG)}
        journal.write(head | {"hash": content_hash(_line(given["cluster"])), "arguments": arguments})
        if journal.gap:
            os.unlink(journal.path)  # half of a line, which is nobody's
            os.close(journal._file)
            journal._file = -1
            raise InstanceError("log", "cannot be written", journal.path)
        return journal

    @classmethod
    def resume(cls, log: ReadLog, sync: bool, every: int) -> Journal:
        """Append to a log that was read: a half-written line is cut off."""
        journal = cls(log.path, 0, sync, every)
        os.ftruncate(journal._file, log.size)
        journal.since, journal.lines = len(log.rows), log.rows[-1][0] if log.rows else 1
        return journal

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a line; one that has the whole state says which it is, so that none before it need be read."""
        if whole := row.get("event") == RESTORE:
            row = {"event": RESTORE, "line": self.lines + 1, **row}
        try:
            left = f"{_line(row)}\n".encode()
            while left:
                left = left[os.write(self._file, left) :]
            if self.sync:
                os.fsync(self._file)
            self.lines, self.since = self.lines + 1, 0 if whole else self.since + 1
        except (OSError, TypeError, ValueError) as error:
            self.gap = True
            words = f"gangplan.Scheduler: the log {self.path} lacks what happened now: {error}"
            warnings.warn(words, RuntimeWarning, stacklevel=4)

    def mend(self, scheduler: Scheduler) -> None:
        """Append the whole state after a gap, behind whatever was half-written."""
        with suppress(OSError):
            os.write(self._file, b"\n")
            self.lines, self.gap = self.lines + 1, False
            row = {"event": RESTORE, "now": scheduler.now, "gap": True, "settings": "keep"}
            row["snapshot"] = scheduler.snapshot()
            self.write(row | {"nodes": scheduler._state.fleet})

    def tidy(self, scheduler: Scheduler) -> None:
        """Append the whole state if there are many lines since the last one."""
        jobs = len(scheduler._state.running) + len(scheduler._state.waiting)
        if not self.every or self.since < max(self.every, jobs):
            return
        self.since = 0  # what goes wrong is tried again after as many lines
        try:
            scheduler.checkpoint()
        except Exception as error:  # no decision is lost for that
            words = f"gangplan.Scheduler: the log {self.path} gets no state to begin from: {error}"
            warnings.warn(words, RuntimeWarning, stacklevel=4)

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


def recorded(method: F) -> F:
    """Have a method of `Scheduler` that changes its state write a line once it has succeeded.

    The line is ``{"event": name, "now": seconds, argument: value, ...}``; arguments as usual are left out.
    """
    name, code = method.__name__, method.__code__
    names = code.co_varnames[1 : code.co_argcount]
    usual = dict(zip(reversed(names), reversed(method.__defaults__ or ()), strict=False))
    usual |= method.__kwdefaults__ or {}

    @wraps(method)
    def call(self: Scheduler, *args: Any, **options: Any) -> Any:
        journal = self._journal
        if journal is None or journal.busy or options.get("dry_run"):
            return method(self, *args, **options)
        before = Before(self, name == DECIDE)
        journal.busy = True
        try:
            answer = method(self, *args, **options)
        except BaseException as error:
            journal.gap |= not isinstance(error, InstanceError)  # who knows what has changed
            raise
        finally:
            journal.busy = False
        row: dict[str, Any] = {"event": name, "now": self.now}
        if journal.stale and not before.stale:
            row["fitted"] = True  # a call that only asks had what was reported fitted
        for key, value in (*zip(names, args, strict=False), *options.items()):
            if key != "now" and value is not ... and (value is not None or usual.get(key, ...) is not None):
                row[key] = pairs(value)
        if name == RESTORE:
            row["nodes"] = self._state.fleet
        if name == DECIDE:
            row |= _decided(answer) | before.effects(self, answer, row.get("deadline"))
        if journal.gap:
            journal.mend(self)
        else:
            journal.write(row)
            journal.tidy(self)
        journal.stale = before.is_stale(self)
        return answer

    call.recorded = True  # type: ignore[attr-defined]
    return cast(F, call)


def _decided(decision: Any) -> dict[str, Any]:
    """Return what a decision says, but for its time and what is as usual."""
    row = {"number": decision.number, "tier": decision.tier, "seconds": round(decision.seconds, 6)}
    for name in ("stops", "starts", "stopping"):
        if some := getattr(decision, name):
            row[name] = [{f: getattr(x, f) for f in _fields(x.__class__)} for x in some]
    if decision.notes:
        row["notes"] = decision.notes
    return row | ({"more": True} if decision.more else {})


@cache
def _fields(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


_line = json.JSONEncoder(separators=(",", ":"), default=encode, check_circular=False).encode


def content_hash(cluster: str) -> str:
    """Return the hash of a cluster, given as its text in the log."""
    return "sha256:" + hashlib.sha256(cluster.encode()).hexdigest()
